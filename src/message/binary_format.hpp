// What MsgpackTranscoder and CborTranscoder need to know of their encodings beyond values: by which bytes a message is
// known, and how one is checked.
// Pure functions over memory of the caller.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "codec/cbor_format.hpp"
#include "codec/msgpack_format.hpp"
#include "message/cbor_walk.hpp"
#include "message/json_bytes.hpp"
#include "message/msgpack_walk.hpp"

namespace wirecall::message {

struct MsgpackMessages : msgpack::Format {
  using Values = msgpack::Format;

  static constexpr Encoding kEncoding = Encoding::msgpack;
  static constexpr std::string_view kMalformed = "no MessagePack, or something follows it";
  static constexpr std::string_view kTooDeep = "MessagePack that nests deeper than allowed";
  /// What a message begins with.
  static constexpr std::string_view kMessageTag = {};
  /// Whether a name in an envelope that is no string makes it invalid; else it is no member that anybody asks for.
  static constexpr bool kNamesAreStrings = false;

  static ScanStatus walk(std::string_view message, std::uint32_t depth_max, EnvelopeMembers& members) noexcept {
    return walk_message(message, depth_max, members);
  }
  static bool read_request(std::string_view message, std::uint32_t depth_max, IdText& id, Received& out) noexcept {
    return read_msgpack_request(message, depth_max, id, out);
  }
  static const char* end_of(const char* p) noexcept { return message::end_of(p); }
  static std::optional<JsonBytes> json_bytes(std::string_view envelope, std::uint32_t depth_max) noexcept {
    return json_bytes_of(envelope, depth_max);
  }
  /// How many of the next `count` values, from `p` on, surely are no map.
  static std::uint64_t pass_small(const char*& p, std::uint64_t count) noexcept {
    const std::uint64_t passed = msgpack::one_byte_values(p, count);
    p += passed;
    return passed;
  }
};

struct CborMessages : cbor::Format {
  using Values = cbor::Format;

  static constexpr Encoding kEncoding = Encoding::cbor;
  static constexpr std::string_view kMalformed = "no CBOR, or something follows it";
  static constexpr std::string_view kTooDeep = "CBOR that nests deeper than allowed";
  static constexpr std::string_view kMessageTag = cbor::kMessageTag;
  static constexpr bool kNamesAreStrings = true;

  static ScanStatus walk(std::string_view message, std::uint32_t depth_max, EnvelopeMembers& members) noexcept {
    return walk_cbor(message, depth_max, members);
  }
  static bool read_request(std::string_view message, std::uint32_t depth_max, IdText& id, Received& out) noexcept {
    return read_cbor_request(message, depth_max, id, out);
  }
  static const char* end_of(const char* p) noexcept { return cbor::skip_value(p); }
  static std::optional<JsonBytes> json_bytes(std::string_view, std::uint32_t) noexcept { return std::nullopt; }
  static std::uint64_t pass_small(const char*& p, std::uint64_t count) noexcept {
    if (count == codec::kIndefinite) return 0;
    const std::uint64_t passed = small_integers(p, count);
    p += passed;
    return passed;
  }
};

}  // namespace wirecall::message
