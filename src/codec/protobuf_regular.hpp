// Values of docs/wirecall.proto that are read where they are: as serializers of protobuf write them, each field of a
// message once and in the order of the numbers, none that the file does not have, lengths as short as they may be,
// numbers finite, text UTF-8. Whatever else is valid, as parts that protobuf would merge, becomes JSON
// (protobuf_value.hpp).
//
// A value here is a Value with its length in front, as it stands behind the tag of a field.
// Pure functions over memory of the caller; all but `regular_end` trust what that has looked at.
#pragma once

#include "codec/protobuf_value.hpp"
#include "codec/protobuf_wire.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::protobuf_wire {

/// Of a field whose tag has one byte.
[[nodiscard]] consteval char short_tag(std::uint32_t field, WireType type) {
  return static_cast<char>(field < 16 ? tag_of(field, type) : throw "a tag of two bytes");
}
[[nodiscard]] consteval char short_tag(codec::ProtobufKind kind, WireType type) {
  return short_tag(codec::field_of(kind), type);
}

inline constexpr char kNullTag = short_tag(codec::ProtobufKind::null, WireType::varint);
inline constexpr char kBooleanTag = short_tag(codec::ProtobufKind::boolean, WireType::varint);
inline constexpr char kIntegerTag = short_tag(codec::ProtobufKind::integer, WireType::varint);
inline constexpr char kUnsignedTag = short_tag(codec::ProtobufKind::unsigned_integer, WireType::varint);
inline constexpr char kNumberTag = short_tag(codec::ProtobufKind::number, WireType::fixed64);
inline constexpr char kTextTag = short_tag(codec::ProtobufKind::text, WireType::length);
inline constexpr char kBinaryTag = short_tag(codec::ProtobufKind::binary, WireType::length);
inline constexpr char kListTag = short_tag(codec::ProtobufKind::list, WireType::length);
inline constexpr char kMapTag = short_tag(codec::ProtobufKind::map, WireType::length);
inline constexpr char kNpyTag = short_tag(codec::ProtobufKind::npy, WireType::length);
inline constexpr char kImageTag = short_tag(codec::ProtobufKind::image, WireType::length);
inline constexpr char kPackedTag = short_tag(codec::ProtobufKind::packed, WireType::length);
inline constexpr char kMessageTag = short_tag(codec::ProtobufKind::message, WireType::length);
inline constexpr char kElementTag = short_tag(codec::kElementField, WireType::length);
inline constexpr char kNameTag = short_tag(codec::kNameField, WireType::length);
inline constexpr char kValueTag = short_tag(codec::kValueField, WireType::length);

/// Deeper ones are not regular.
inline constexpr std::uint32_t kRegularDepthMax = 64;

/// Where the value at `p` ends; null where it is not regular, nests deeper or is not all in front of `end`.
[[nodiscard]] const char* regular_end(const char* p, const char* end, std::uint32_t depth_max) noexcept;

[[nodiscard]] Scan scan_regular(std::string_view bytes, std::uint32_t depth_max) noexcept;

/// What a list of one value holds, bytes of that tag, if each of their lengths has one byte; empty where
/// something else is at `p`, which need not be regular.
[[nodiscard]] inline std::string_view only_content(const char* p, const char* end, char tag) noexcept {
  constexpr std::size_t kHead = 7;  // lengths of the value, the list, the element and its content, and tags between
  if (static_cast<std::size_t>(end - p) <= kHead) return {};
  const auto size = static_cast<unsigned char>(p[6]);
  const char head[kHead]{static_cast<char>(size + 6), kListTag, static_cast<char>(size + 4), kElementTag,
                         static_cast<char>(size + 2), tag,      static_cast<char>(size)};
  if (size + 6U >= 0x80 || size > static_cast<std::size_t>(end - p) - kHead) return {};
  return std::memcmp(p, head, kHead) == 0 ? std::string_view{p + kHead, size} : std::string_view{};
}

// ---- of what is regular ----

/// The varint at `p`, which becomes its end.
[[nodiscard, gnu::always_inline]] inline std::uint64_t take_varint(const char*& p) noexcept {
  std::uint64_t value = static_cast<unsigned char>(*p++);
  if (value < 0x80) [[likely]]
    return value;
  value &= 0x7F;
  for (unsigned shift = 7;; shift += 7) {
    const std::uint64_t byte = static_cast<unsigned char>(*p++);
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
}

[[nodiscard]] inline const char* end_of_regular(const char* p) noexcept {
  const std::uint64_t size = take_varint(p);
  return p + size;
}

/// A value, taken apart.
struct RegularValue {
  codec::ProtobufKind kind = codec::ProtobufKind::none;
  std::uint64_t number = 0;  ///< of a varint, or the bits of a double
  const char* content;       ///< of what has a length
  const char* end;           ///< of that, and of the value
  [[nodiscard]] std::string_view text() const noexcept { return {content, static_cast<std::size_t>(end - content)}; }
};

[[nodiscard]] inline RegularValue regular_at(const char* p) noexcept {
  RegularValue value;
  const std::uint64_t size = take_varint(p);
  value.content = p;
  value.end = p + size;
  if (size == 0) return value;
  const char tag = *p++;
  value.kind = static_cast<codec::ProtobufKind>(static_cast<unsigned char>(tag) >> 3);
  if (tag == kNumberTag) {
    value.number = load_little_endian<std::uint64_t>(p);
  } else {
    value.number = take_varint(p);
    value.content = p;
  }
  return value;
}

}  // namespace wirecall::protobuf_wire
