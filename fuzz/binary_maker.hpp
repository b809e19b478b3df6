// MsgpackMaker and CborMaker: values and messages of JsonMaker in another encoding, mixed with values that only that
// has. The same seed makes the same bytes. A value with one owner, one thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/json_maker.hpp"
#include "message/binary_transcoder.hpp"
#include "wirecall/bytes.hpp"

namespace fuzz {

using namespace std::string_view_literals;

/// Values that JSON does not have, and what is no value.
inline constexpr std::array kOnlyMsgpack{"\xC1"sv,
                                         "\xC4\x02\x00\xFF"sv,
                                         "\xC5\x00\x01x"sv,
                                         "\xD5\x4E\x01\x02"sv,
                                         "\xC7\x03\x49\x01\x02\x03"sv,
                                         "\xD6\xFF\x00\x00\x00\x01"sv,
                                         "\xD7\xFF\xA1\xDC\xD7\xC8\x5A\x4A\xF6\xA5"sv,
                                         "\xC7\x0C\xFF\x00\x00\x00\x01\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"sv,
                                         "\xCA\x3D\xCC\xCC\xCD"sv,
                                         "\xCB\x7F\xF8\x00\x00\x00\x00\x00\x00"sv,
                                         "\x81\xA1$\x81\xA2$x\x01"sv,
                                         "\x81\xA6$bytes\xA4/w=="sv,
                                         "\x82\x01\x02\xC0\x03"sv,
                                         "\xDD\xFF\xFF\xFF\xFF"sv,
                                         "\xDE\x00\x01\xA1$\x90"sv,
                                         "\xD9\x01\xC3"sv};
inline constexpr std::array kOnlyCbor{"\xFF"sv,
                                      "\x42\x00\xFF"sv,
                                      "\x5F\x41\x01\x40\x42\x02\x03\xFF"sv,
                                      "\x7F\x61x\x60\x62yz\xFF"sv,
                                      "\xDA\x77\x63\x00\x4E\x42\x01\x02"sv,
                                      "\xDA\x77\x63\x00\x49\x5F\x41\x01\xFF"sv,
                                      "\xC0\x74"
                                      "2013-03-21T20:04:00Z"sv,
                                      "\xC1\xFB\x41\xD4\x52\xD9\xEC\x20\x00\x00"sv,
                                      "\xC2\x49\x01\x00\x00\x00\x00\x00\x00\x00\x00"sv,
                                      "\xC3\x5F\x41\x01\x41\x02\xFF"sv,
                                      "\x3B\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"sv,
                                      "\xF9\x7E\x00"sv,
                                      "\xF7"sv,
                                      "\xF8\xFF"sv,
                                      "\xC6\xC6\x01"sv,
                                      "\x9F\x01\x82\x02\xF9\x3C\x00\xFF"sv,
                                      "\xBF\x62$x\xBF\x62$y\x01\xFF\xFF"sv,
                                      "\xA2\x01\x02\xF6\x03"sv,
                                      "\x9B\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"sv,
                                      "\xD9\xD9\xF7\xA0"sv};

template <class Of, const auto& kOnly>
class BinaryMaker {
 public:
  explicit BinaryMaker(std::uint64_t seed) : json_(seed) {}
  std::string value() {
    if (random().one_in(4)) return std::string{random().of(kOnly)};
    return value_of(json_.value());
  }
  /// A message, or nearly one, behind its length in one byte, as in fuzz/frames.cpp.
  std::string frame() {
    std::string bytes = random().one_in(8) ? value() : message_of(json_.message());
    if (random().one_in(4)) json_.damage(bytes, 255);
    if (bytes.size() > 255) bytes.resize(255);
    return std::string(1, static_cast<char>(bytes.size())) + bytes;
  }
  void damage(std::string& text, std::size_t bytes_max) { json_.damage(text, bytes_max); }
  Random& random() noexcept { return json_.random(); }

 private:
  std::string value_of(std::string_view text) {
    wirecall::Buffer json{text};
    wirecall::Buffer out;
    from_json_(json.padded(), out);
    return std::string{out.view()};
  }
  std::string message_of(std::string_view text) {
    wirecall::Buffer json{text};
    wirecall::Buffer out;
    transcoder_.from_json(json.padded(), {}, out);
    return std::string{out.view()};
  }

  JsonMaker json_;
  wirecall::codec::FromJson<typename Of::Values> from_json_;
  wirecall::message::BinaryTranscoder<Of> transcoder_;
};

using MsgpackMaker = BinaryMaker<wirecall::message::MsgpackMessages, kOnlyMsgpack>;
using CborMaker = BinaryMaker<wirecall::message::CborMessages, kOnlyCbor>;

}  // namespace fuzz
