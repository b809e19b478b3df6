// A third encoding, as little as one can be: a byte in front of JSON, each byte of which is turned over. It is chosen
// by its name, and goes wherever messages go.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "message/message_codec.hpp"
#include "message/transcoder.hpp"

namespace wirecall::message {

inline constexpr char kToyTag = '\xC1';  // which MessagePack never uses

inline std::string turned_over(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out.push_back(static_cast<char>(~c));
  return out;
}
inline std::string toy_of(std::string_view json) { return kToyTag + turned_over(json); }
/// What it is in JSON; a text that says so where it is none.
inline std::string json_of_toy(std::string_view toy) {
  return toy.starts_with(kToyTag) ? turned_over(toy.substr(1)) : "no toy: " + std::string{toy};
}

class ToyTranscoder final : public WholeTranscoder {
  Status decode(std::string_view message, const Limits&, std::size_t, Buffer& out) override {
    if (message.size() < 2) return Status::malformed;
    out.append(turned_over(message.substr(1)));
    return Status::done;
  }
  void encode(std::string_view json, Buffer& out) override { out.append(toy_of(json)); }
};

inline constexpr std::array<std::string_view, 2> kToyTypes{"application/x-toy", "application/toy"};
inline constexpr MessageCodec kToyCodec{
    .name = "toy",
    .media_types = kToyTypes,
    .begins_with = [](unsigned char first) { return first == static_cast<unsigned char>(kToyTag); },
    .make_transcoder = []() -> std::unique_ptr<Transcoder> { return std::make_unique<ToyTranscoder>(); }};
/// Its number, from the program's start on.
inline const Encoding kToy = add_codec(kToyCodec);

}  // namespace wirecall::message
