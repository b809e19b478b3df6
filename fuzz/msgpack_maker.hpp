// MsgpackMaker: values and messages of JsonMaker in MessagePack, mixed with values that only MessagePack has. The same
// seed makes the same bytes. A value with one owner, one thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "codec/transcode.hpp"
#include "fuzz/json_maker.hpp"
#include "wirecall/bytes.hpp"

namespace fuzz {

class MsgpackMaker {
 public:
  explicit MsgpackMaker(std::uint64_t seed) : json_(seed) {}
  std::string value() {
    using namespace std::string_view_literals;
    static constexpr std::array<std::string_view, 16> kOnly{
        "\xC1"sv,
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
    if (random().one_in(4)) return std::string{random().of(kOnly)};
    return msgpack_of(json_.value());
  }
  /// A message, or nearly one, behind its length in one byte, as in fuzz/frames.cpp.
  std::string frame() {
    std::string bytes = random().one_in(8) ? value() : msgpack_of(json_.message());
    if (random().one_in(4)) json_.damage(bytes, 255);
    if (bytes.size() > 255) bytes.resize(255);
    return std::string(1, static_cast<char>(bytes.size())) + bytes;
  }
  void damage(std::string& text, std::size_t bytes_max) { json_.damage(text, bytes_max); }
  Random& random() noexcept { return json_.random(); }

 private:
  std::string msgpack_of(std::string_view text) {
    wirecall::Buffer json{text};
    wirecall::Buffer out;
    to_msgpack_(json.padded(), out);
    return std::string{out.view()};
  }

  JsonMaker json_;
  wirecall::codec::JsonToMsgpack to_msgpack_;
};

}  // namespace fuzz
