// Writing HTTP/1.1 responses into a buffer. A response whose body is written bit by bit gets its head first, with room
// for the length, which is filled in when the body is complete. Not a decision: status and fields come from
// HttpConnection. Functions of values, for the thread that owns the buffer.
#pragma once

#include "message/message_codec.hpp"
#include "wirecall/bytes.hpp"

namespace wirecall::net {

inline constexpr std::string_view kJsonType = "application/json";
[[nodiscard]] inline std::string_view media_type_of(Encoding encoding) noexcept {
  return encoding == Encoding::json ? kJsonType : message::codec_of(encoding).media_types.front();
}

struct ResponseHead {
  std::uint16_t status = 200;
  std::string_view content_type = kJsonType;
  /// Further fields, each with its CR LF.
  std::string_view fields = {};
  /// Nothing follows the response.
  bool closes = false;
  /// Something may, though the request is one of HTTP/1.0.
  bool keeps_alive = false;
};

[[nodiscard]] std::string_view reason_of(std::uint16_t status) noexcept;

/// A response between begin_response and end_response.
struct OpenResponse {
  std::size_t begin = 0;      ///< of the response in the buffer
  std::size_t length_at = 0;  ///< where the length stands
  std::size_t body_at = 0;
};
/// `digits` is how many the length probably has: then nothing needs to be moved.
[[nodiscard]] OpenResponse begin_response(Buffer& out, const ResponseHead& head, std::size_t digits);
/// `out` ends with the body. `head_only` takes it away again and leaves its length. Returns the digits of the length.
std::size_t end_response(Buffer& out, const OpenResponse& response, bool head_only);

void write_response(Buffer& out, const ResponseHead& head, std::string_view body, bool head_only);
/// The head of a response whose body goes on until the connection ends, and is kept nowhere on its way.
void write_endless_response(Buffer& out, const ResponseHead& head);
/// Has the connection go on as one of `protocol`.
void write_upgrade_response(Buffer& out, std::string_view protocol, std::string_view fields);
/// Without body or content type: for 204, without length too.
void write_empty_response(Buffer& out, const ResponseHead& head);

}  // namespace wirecall::net
