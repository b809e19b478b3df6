// See response.hpp.
#include "http/response.hpp"

#include <charconv>

namespace wirecall::net {

constexpr std::string_view kLength = "Content-Length: ";
constexpr std::string_view kHeadEnd = "\r\n\r\n";
// The head of nearly all responses, up to the length.
constexpr std::string_view kUsualHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ";

static void write_status(Buffer& out, const ResponseHead& head) {
  char digits[4];
  out.append("HTTP/1.1 ");
  out.append(
      {digits, static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, head.status).ptr - digits)});
  out.append(" ");
  out.append(reason_of(head.status));
  out.append("\r\n");
  out.append(head.fields);
  if (head.closes) {
    out.append("Connection: close\r\n");
  } else if (head.keeps_alive) {
    out.append("Connection: keep-alive\r\n");
  }
}

static std::size_t digits_of(std::size_t number) noexcept {
  std::size_t digits = 1;
  for (; number >= 10; number /= 10) ++digits;
  return digits;
}

std::string_view reason_of(std::uint16_t status) noexcept {
  switch (status) {
    case 101: return "Switching Protocols";
    case 200: return "OK";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 205: return "Reset Content";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 426: return "Upgrade Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    default: return "Unknown";
  }
}

OpenResponse begin_response(Buffer& out, const ResponseHead& head, std::size_t digits) {
  OpenResponse response{.begin = out.size()};
  const bool usual = head.status == 200 && head.fields.empty() && !head.closes && !head.keeps_alive &&
                     head.content_type.data() == kJsonType.data();
  if (usual) [[likely]] {
    char* const to = out.reserve(kUsualHead.size() + digits + kHeadEnd.size());
    std::memcpy(to, kUsualHead.data(), kUsualHead.size());
    out.grow(kUsualHead.size());
  } else {
    write_status(out, head);
    out.append("Content-Type: ");
    out.append(head.content_type);
    out.append("\r\n");
    out.append(kLength);
  }
  response.length_at = out.size();
  response.body_at = response.length_at + digits + kHeadEnd.size();
  static_cast<void>(out.reserve(digits + kHeadEnd.size()));
  out.grow(digits + kHeadEnd.size());
  return response;
}

std::size_t end_response(Buffer& out, const OpenResponse& response, bool head_only) {
  const std::size_t body_bytes = out.size() - response.body_at;
  const std::size_t digits = digits_of(body_bytes);
  const std::size_t body_at = response.length_at + digits + kHeadEnd.size();
  if (body_at != response.body_at) [[unlikely]] {
    static_cast<void>(out.reserve(kHeadEnd.size() + digits));
    std::memmove(out.data() + body_at, out.data() + response.body_at, body_bytes);
  }
  char* const at = std::to_chars(out.data() + response.length_at, out.data() + body_at, body_bytes).ptr;
  std::memcpy(at, kHeadEnd.data(), kHeadEnd.size());
  out.set_end(out.data() + body_at + (head_only ? 0 : body_bytes));
  return digits;
}

void write_response(Buffer& out, const ResponseHead& head, std::string_view body, bool head_only) {
  const OpenResponse response = begin_response(out, head, digits_of(body.size()));
  out.append(body);
  end_response(out, response, head_only);
}

void write_endless_response(Buffer& out, const ResponseHead& head) {
  write_status(out, head);
  if (!head.closes) out.append("Connection: close\r\n");
  out.append("Content-Type: ");
  out.append(head.content_type);
  out.append("\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\n\r\n");
}

void write_upgrade_response(Buffer& out, std::string_view protocol, std::string_view fields) {
  write_status(out, {.status = 101, .fields = fields});
  out.append("Connection: Upgrade\r\nUpgrade: ");
  out.append(protocol);
  out.append("\r\n\r\n");
}

void write_empty_response(Buffer& out, const ResponseHead& head) {
  write_status(out, head);
  if (head.status != 204 && head.status != 304) out.append("Content-Length: 0\r\n");
  out.append("\r\n");
}

}  // namespace wirecall::net
