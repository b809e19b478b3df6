// The fields of docs/wirecall.proto's Envelope, Batch and Error, and the members of JSON's envelope that they are: what
// both directions of ProtobufTranscoder and its first bytes are made of.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "codec/protobuf_wire.hpp"

namespace wirecall::message {

enum class ProtobufType : std::uint8_t { text, count, flag, value, error };

struct ProtobufMember {
  std::uint32_t field;
  std::string_view name;
  ProtobufType type;

  [[nodiscard]] constexpr std::uint32_t tag() const noexcept {
    const bool is_varint = type == ProtobufType::count || type == ProtobufType::flag;
    return protobuf_wire::tag_of(field, is_varint ? protobuf_wire::WireType::varint : protobuf_wire::WireType::length);
  }
};

inline constexpr std::uint32_t kMethodField = 2;
inline constexpr std::uint32_t kResultField = 3;
inline constexpr std::uint32_t kErrorField = 5;
inline constexpr std::uint32_t kIdField = 7;
inline constexpr std::uint32_t kParamsField = 8;
inline constexpr std::uint32_t kBatchField = 9;

/// In the order in which they are written. The tags of 4 and 6 are a quote and a digit, with which JSON begins: so
/// these come last.
inline constexpr std::array kProtobufMembers{ProtobufMember{kMethodField, "method", ProtobufType::text},
                                             ProtobufMember{kResultField, "result", ProtobufType::value},
                                             ProtobufMember{kErrorField, "error", ProtobufType::error},
                                             ProtobufMember{kIdField, "id", ProtobufType::value},
                                             ProtobufMember{kParamsField, "params", ProtobufType::value},
                                             ProtobufMember{10, "timeout_ms", ProtobufType::count},
                                             ProtobufMember{11, "stream", ProtobufType::count},
                                             ProtobufMember{12, "input", ProtobufType::flag},
                                             ProtobufMember{13, "hops", ProtobufType::count},
                                             ProtobufMember{14, "to", ProtobufType::text},
                                             ProtobufMember{15, "from", ProtobufType::text},
                                             ProtobufMember{4, "traceparent", ProtobufType::text},
                                             ProtobufMember{6, "tracestate", ProtobufType::text}};

inline constexpr ProtobufMember kToMember = *std::ranges::find(kProtobufMembers, "to", &ProtobufMember::name);
inline constexpr ProtobufMember kFromMember = *std::ranges::find(kProtobufMembers, "from", &ProtobufMember::name);

inline constexpr std::uint32_t kBatchTag = protobuf_wire::tag_of(kBatchField, protobuf_wire::WireType::length);
inline constexpr std::uint32_t kMessagesField = 1;  ///< of a batch
inline constexpr std::uint32_t kMessagesTag = protobuf_wire::tag_of(kMessagesField, protobuf_wire::WireType::length);

// Of an error.
inline constexpr std::uint32_t kCodeField = 1;
inline constexpr std::uint32_t kMessageField = 2;
inline constexpr std::uint32_t kDataField = 3;

/// Null for what is none of them: an unknown field, or a batch.
[[nodiscard]] constexpr const ProtobufMember* protobuf_member(std::uint32_t tag) noexcept {
  const auto* const found = std::ranges::find(kProtobufMembers, tag, &ProtobufMember::tag);
  return found == kProtobufMembers.end() ? nullptr : found;
}

/// Whether a message may begin with that byte: the tag of a field that is written first.
[[nodiscard]] constexpr bool begins_protobuf(unsigned char first) noexcept {
  const ProtobufMember* const member = protobuf_member(first);
  return first == kBatchTag || (member != nullptr && member->field != 4 && member->field != 6);
}

/// Whether all of it is fields. Text that begins with such a byte is not, but by chance.
[[nodiscard]] inline bool is_protobuf(std::string_view message) noexcept {
  protobuf_wire::FieldReader fields{message};
  for (protobuf_wire::Field field; fields.next(field);) {
  }
  return !fields.malformed();
}

}  // namespace wirecall::message
