// MessageCodec: an encoding of whole messages, as a row of one list: its name, its media types, its first bytes, and
// what makes messages of it JSON and JSON them. A new encoding is a file with its Transcoder, and its places in
// message_codec.cpp or a call of add_codec. JSON, MessagePack, CBOR and Protocol Buffers are in the list; further ones
// are added before anything is served. Thread: adding is the main thread's; the rest any.
#pragma once

#include <array>
#include <optional>

#include "wirecall/codec.hpp"

namespace wirecall::message {

class Transcoder;

struct MessageCodec {
  std::string_view name;                          ///< by which options choose it
  std::span<const std::string_view> media_types;  ///< of HTTP; the first is said, all are understood
  /// A message begins with such a byte. Of two codecs no byte is the same; null for JSON,
  /// which all bytes are that no codec claims.
  bool (*begins_with)(unsigned char first);
  /// What params and results are in that are not made JSON.
  const Codec& (*values)() noexcept = &json_codec;
  // A request whose params are that: what is in front of the method's name, and of the params.
  std::string_view request_head = {};
  std::string_view params_head = {};
  std::unique_ptr<Transcoder> (*make_transcoder)();  ///< null for JSON
  /// Whether all messages may stay in it: it is JSON, or has a NativeTranscoder.
  bool is_native = false;
};

/// All fit MessageForm, which has six bits for one.
inline constexpr std::size_t kEncodingsMax = 8;

/// Adds one that lives as long as the program. One of a name that is there already is that.
Encoding add_codec(const MessageCodec& codec);
[[nodiscard]] const MessageCodec& codec_of(Encoding encoding) noexcept;
/// The names in the order of their numbers.
[[nodiscard]] std::span<const std::string_view> encoding_names() noexcept;
/// Its parameters aside; nothing for what is no media type of an encoding.
[[nodiscard]] std::optional<Encoding> encoding_of_type(std::string_view media_type) noexcept;

namespace detail {
extern std::array<Encoding, 256> encoding_of_byte;
}
/// The encoding of a message that has a length, by its first byte: the only place that asks.
[[nodiscard]] inline Encoding encoding_of(char first) noexcept {
  return detail::encoding_of_byte[static_cast<unsigned char>(first)];
}
/// The same of a message whose sender says besides that it is `said`, which tells apart what begins alike: arrays of
/// MessagePack and of CBOR without its tag, text and Protocol Buffers. What the first byte alone tells, it tells.
[[nodiscard]] Encoding encoding_of(std::string_view message, Encoding said) noexcept;

}  // namespace wirecall::message
