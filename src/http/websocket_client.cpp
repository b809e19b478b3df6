// See websocket_client.hpp.
#include "http/websocket_client.hpp"

#include <random>

#include "base/ascii.hpp"
#include "codec/base64.hpp"
#include "framing/token.hpp"
#include "http/response.hpp"
#include "http/websocket.hpp"

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
  if (deflate) {
    request.text.append(
        "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; "
        "client_no_context_takeover\r\n");
  }
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
  if (head.status == 404) cause += "; check the path";
  return cause;
}

std::string fault_of_answer(const HttpResponseHead& head, const WebSocketRequest& request) {
  if (head.status != 101) return fault_of_status(head);
  const std::string_view chosen = head.find("sec-websocket-protocol").value_or(std::string_view{});
  const bool agrees = head.upgrades && framing::same_word(head[HttpField::upgrade], "websocket") &&
                      head.find("sec-websocket-accept") == std::optional<std::string_view>{request.accept};
  if (!agrees) return "the server's answer is none to a request for a WebSocket";
  const bool extended = head.find("sec-websocket-extensions").value_or("") != "";
  if ((extended && !request.deflate) || (!chosen.empty() && chosen != request.protocol))
    return "the server has chosen what was not offered for the WebSocket";
  const std::expected<bool, std::string> deflate = takes_deflate(head);
  return deflate ? std::string{} : deflate.error();
}

// We keep nothing between messages: so a server has to say that it does neither (RFC 7692 section 7.1.1.1).
std::expected<bool, std::string> takes_deflate(const HttpResponseHead& head) {
  std::string_view answer = head.find("sec-websocket-extensions").value_or(std::string_view{});
  if (answer.empty()) return false;
  const std::unexpected<std::string> refused{"the server has answered the offer of compression with what cannot be: " +
                                             std::string{answer.substr(0, kLocationBytesMax)}};
  if (answer.contains(',')) return refused;
  const auto next = [&answer] {
    const std::string_view one = answer.substr(0, answer.find(';'));
    answer.remove_prefix(std::min(one.size() + 1, answer.size()));
    return trimmed(one);
  };
  if (!framing::same_word(next(), "permessage-deflate")) return refused;
  bool server = false;
  bool client = false;
  bool bits = false;
  while (!answer.empty()) {
    const std::string_view parameter = next();
    if (parameter == "server_no_context_takeover" && !server) {
      server = true;
    } else if (parameter == "client_no_context_takeover" && !client) {
      client = true;
    } else if (parameter.starts_with("server_max_window_bits=") && !bits) {
      bits = true;
      const std::string_view value = parameter.substr(parameter.find('=') + 1);
      const bool one = value.size() == 1 && (value == "8" || value == "9");
      const bool two = value.size() == 2 && value[0] == '1' && value[1] >= '0' && value[1] <= '5';
      if (!one && !two) return refused;
    } else {
      return refused;
    }
  }
  return server ? std::expected<bool, std::string>{true} : refused;
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
  std::string fault = fault_of_answer(head, request_);
  agreed_ = fault.empty();
  compresses_ = agreed_ && takes_deflate(head).value_or(false);
  give_back(head_);  // in which the head stands
  if (!agreed_) {
    fail(CloseReason::refused, std::move(fault));
    return input.size();
  }
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
