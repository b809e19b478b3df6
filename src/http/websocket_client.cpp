// See websocket_client.hpp.
#include "http/websocket_client.hpp"

#include <random>

#include "codec/base64.hpp"
#include "framing/token.hpp"
#include "http/response.hpp"
#include "http/websocket.hpp"
#include "http/websocket_deflate.hpp"

namespace wirecall::net {

using framing::HttpField;
using framing::HttpResponseHead;

// Of a Location, for a message to people.
constexpr std::size_t kLocationBytesMax = 512;

static std::string make_key() {
  std::random_device random;
  std::array<std::byte, kWebSocketKeyBytes> bytes;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  std::string key(codec::base64_size(bytes.size()), '\0');
  codec::base64_encode(bytes, key.data());
  return key;
}

WebSocketRequest make_websocket_request(const Endpoint& endpoint, std::string_view token, Encoding encoding,
                                        bool deflate) {
  const std::string key = make_key();
  WebSocketRequest request{
      .text = "GET ", .accept = websocket_accept(key), .protocol = subprotocol_of(encoding), .deflate = deflate};
  request.text.append(endpoint.path()).append(" HTTP/1.1\r\nHost: ").append(endpoint.authority());
  request.text.append("\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
  request.text.append("Sec-WebSocket-Key: ").append(key).append("\r\n");
  request.text.append("Sec-WebSocket-Protocol: ").append(request.protocol).append("\r\n");
  if (deflate) request.text.append("Sec-WebSocket-Extensions: ").append(kDeflateOffer).append("\r\n");
  if (!token.empty()) request.text.append("Authorization: Bearer ").append(token).append("\r\n");
  request.text.append("\r\n");
  return request;
}

static std::string fault_of_status(const HttpResponseHead& head) {
  if (head.status >= 300 && head.status < 400 && head.has(HttpField::location)) {
    const std::string_view location = head[HttpField::location].substr(0, kLocationBytesMax);
    return std::string{"it leads to "}.append(location) + "; connect there";
  }
  std::string cause = "the server refused a WebSocket: HTTP status " + std::to_string(head.status);
  cause.append(" ").append(reason_of(head.status));
  if (head.status == 401) cause += "; give a token that it knows";
  if (head.status == 403) cause += "; name the host in the server's allow_hosts";
  if (head.status == 404) cause += "; check the path";
  return cause;
}

std::expected<WebSocketAnswer, std::string> read_handshake_answer(const HttpResponseHead& head,
                                                                  const WebSocketRequest& request) {
  if (head.status != 101) return std::unexpected{fault_of_status(head)};
  const bool agrees = head.upgrades && framing::same_word(head[HttpField::upgrade], "websocket") &&
                      join_field(head, "sec-websocket-accept") == request.accept;
  if (!agrees) return std::unexpected{"the server's answer is none to a request for a WebSocket"};
  const std::string protocol = join_field(head, "sec-websocket-protocol");
  const std::string extensions = join_field(head, "sec-websocket-extensions");
  if ((!extensions.empty() && !request.deflate) || (!protocol.empty() && protocol != request.protocol))
    return std::unexpected{"the server has chosen what was not offered for the WebSocket"};
  const std::expected<std::optional<int>, std::string> window_bits = takes_deflate(extensions);
  if (!window_bits) return std::unexpected{window_bits.error()};
  return WebSocketAnswer{.window_bits = *window_bits};
}

WebSocketHandshake::WebSocketHandshake(Host& host, std::unique_ptr<transport::ByteStream> stream,
                                       const Endpoint& endpoint, const ClientOptions& options, Successor make)
    : Channel(host, std::move(stream)),
      make_(std::move(make)),
      request_(make_websocket_request(endpoint, options.token, options.encoding, options.websocket_deflate)) {
  output().append(request_.text);
  output_grew(0);
  host.loop.start(*this, std::chrono::milliseconds{options.connect_timeout_ms});  // last: nothing may fail after it
  timed_ = true;
}

WebSocketHandshake::~WebSocketHandshake() {
  if (timed_) host_->loop.stop(*this);
  give_back(head_);
}

std::size_t WebSocketHandshake::read(std::span<char> input) {
  std::size_t at = 0;
  while (at < input.size() && !agreed_) at += read_head(input.subspan(at));
  return at;
}

std::size_t WebSocketHandshake::read_head(std::span<char> input) {
  HttpResponseHead head;
  std::string_view text{input.data(), input.size()};
  const std::size_t kept = head_.size();
  if (kept != 0) {
    head_.append(text.substr(0, host_->limits.header_bytes + 1 - kept));
    text = head_.view();
  }
  const framing::HttpHeadRead found = read_http_response_head(text, host_->limits.header_bytes, head);
  if (found.status != 0) {
    fail(CloseReason::unreadable, std::string{"the server sent what is no HTTP response: "}.append(found.cause));
    return input.size();
  }
  if (found.size == 0) {
    if (kept == 0) head_.append(text);
    return input.size();
  }
  if (head.status < 200 && head.status != 101) {
    give_back(head_);
    return found.size - kept;  // the answer is still to come
  }
  std::expected<WebSocketAnswer, std::string> answer = read_handshake_answer(head, request_);
  give_back(head_);  // in which the head stands
  if (!answer) {
    fail(CloseReason::refused, std::move(answer.error()));
    return input.size();
  }
  agreed_ = true;
  window_bits_ = answer->window_bits;
  // What follows is the successor's.
  block();
  request_turn_end();
  return found.size - kept;
}

// Not before the request has gone, as a server may have answered while it was still coming.
void WebSocketHandshake::give_way() {
  if (!agreed_ || over()) return;
  if (has_output()) return await_writable();
  replace_by(make_);
}

void WebSocketHandshake::input_complete() {
  if (!agreed_) fail(CloseReason::finished, "the server closed it without an answer");
}

void WebSocketHandshake::expired() {
  timed_ = false;
  if (!over()) fail(CloseReason::silent, "the server did not answer the request for a WebSocket in time");
}

void WebSocketHandshake::fail(CloseReason why, std::string cause) {
  failure_ = std::move(cause);
  end(why);
}

}  // namespace wirecall::net
