// The fixed text around a result, inline because it is on the way of every call. include/wirecall/message.hpp has the
// compiled face.
#pragma once

#include <cstring>

#include "codec/json_writer.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/error.hpp"

namespace wirecall::message {

[[gnu::always_inline]] inline char* put(char* to, std::string_view text) noexcept {
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

/// Ids are short: two overlapping copies of a fixed size cost less than a call of memcpy.
inline char* put_id(char* to, std::string_view id) noexcept {
  const std::size_t size = id.size();
  if (size < 4) {
    for (std::size_t i = 0; i < size; ++i) to[i] = id[i];
  } else if (size <= 8) {
    std::memcpy(to, id.data(), 4);
    std::memcpy(to + size - 4, id.data() + size - 4, 4);
  } else if (size <= 16) {
    std::memcpy(to, id.data(), 8);
    std::memcpy(to + size - 8, id.data() + size - 8, 8);
  } else {
    return put(to, id);
  }
  return to + size;
}

inline constexpr std::string_view kResultHead = R"({"jsonrpc":"2.0","result":)";
inline constexpr std::string_view kErrorReplyHead = R"({"jsonrpc":"2.0","error":)";
inline constexpr std::string_view kIdHead = R"(,"id":)";

inline void begin_result(Buffer& out) { out.set_end(put(out.reserve(kResultHead.size()), kResultHead)); }

/// Where it ends; kIdHead.size() + id_json.size() + 1 bytes are written.
inline char* put_end(char* to, std::string_view id_json) noexcept {
  to = put_id(put(to, kIdHead), id_json);
  *to++ = '}';
  return to;
}

inline void end_reply(Buffer& out, std::string_view id_json) {
  out.set_end(put_end(out.reserve(kIdHead.size() + id_json.size() + 1), id_json));
}

/// A whole reply whose result is an integer.
inline void write_integer_result(Buffer& out, std::int64_t value, std::string_view id_json) {
  constexpr std::size_t kBytesMax = kResultHead.size() + json::kIntegerBytesMax + kIdHead.size() + 1;
  char* p = put(out.reserve(kBytesMax + id_json.size()), kResultHead);
  out.set_end(put_end(json::write_integer(p, value), id_json));
}

/// A whole reply with one of the specification's errors about the message itself, which has no data.
inline void write_plain_error(Buffer& out, ErrorCode code, std::string_view id_json) {
  constexpr std::string_view kSyntax = R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":)";
  constexpr std::string_view kRequest = R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":)";
  constexpr std::string_view kMethod = R"({"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":)";
  char* p = out.reserve(kMethod.size() + id_json.size() + 1);
  if (code == ErrorCode::parse_error) {
    p = put(p, kSyntax);
  } else if (code == ErrorCode::invalid_request) {
    p = put(p, kRequest);
  } else {
    p = put(p, kMethod);
  }
  p = put_id(p, id_json);
  *p++ = '}';
  out.set_end(p);
}

}  // namespace wirecall::message
