// See load_websocket.hpp.
#include "cli/load/load_websocket.hpp"

#include "framing/token.hpp"
#include "framing/websocket.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::cli {

using framing::WebSocket;

std::string websocket_frame(std::string_view request) {
  static const Limits limits;
  WebSocket framing{WebSocket::Role::client, limits};
  Buffer out;
  static_cast<void>(out.reserve(framing.head_bytes()));
  out.grow(framing.head_bytes());
  out.append(request);
  framing.seal(out, 0, true);
  return std::string{out.view()};
}

WebSocketReply read_websocket_answer(std::string_view text, const WebSocketRequest& request) {
  const Limits limits;
  framing::HttpResponseHead head;
  const framing::HttpHeadRead read = read_http_response_head(text, limits.header_bytes, head);
  if (read.status != 0) return {.cause = "the server has sent what is no HTTP response: " + std::string{read.cause}};
  if (read.size == 0) return {};
  std::expected<net::WebSocketAnswer, std::string> answer = net::read_handshake_answer(head, request);
  return {.size = read.size,
          .unauthenticated = head.status == 401,
          .cause = answer ? std::string{} : std::move(answer.error())};
}

// A server's frame has no mask, and ours come in one each.
WebSocketReply read_websocket_reply(std::string_view text) {
  constexpr unsigned kClose = 8;
  const auto byte = [&](std::size_t at) { return static_cast<std::size_t>(static_cast<unsigned char>(text[at])); };
  if (text.size() < 2) return {};
  const std::size_t more = byte(1) < 126 ? 0 : byte(1) == 126 ? 2 : 8;
  const std::size_t head = 2 + more;
  if (text.size() < head) return {};
  std::size_t size = more == 0 ? byte(1) : 0;
  for (std::size_t at = 2; at < head; ++at) size = size << 8 | byte(at);
  const unsigned opcode = byte(0) & 15U;
  if (opcode == kClose) return {.cause = "the server has closed a connection"};
  if (byte(1) > 127 || size > framing::kLengthMax)
    return {.cause = "the server has sent what is no frame of a WebSocket"};
  if (text.size() - head < size) return {};
  return {.size = head + size, .body = opcode < kClose ? text.substr(head, size) : std::string_view{}};
}

}  // namespace wirecall::cli
