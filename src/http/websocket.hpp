// The handshake of WebSocket (RFC 6455 section 4), of a server and of a client: what a request must say, what it is
// answered, and which of the subprotocols that are offered is chosen (docs/wire.md "WebSocket"). What follows it is a
// MessageConnection with a framing of its own.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "framing/http1.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::net {

class HttpConnection;
struct RoutedRequest;

/// Bytes of a Sec-WebSocket-Key, which is their base64.
inline constexpr std::size_t kWebSocketKeyBytes = 16;

/// The value of the field, of all its lines, with commas between them; empty for none. `name` in small letters.
[[nodiscard]] std::string join_field(const framing::HttpFields& head, std::string_view name);

/// What Sec-WebSocket-Accept says to that Sec-WebSocket-Key.
[[nodiscard]] std::string websocket_accept(std::string_view key);

/// By which a client asks for messages in that encoding.
[[nodiscard]] std::string subprotocol_of(Encoding encoding);

/// What of Sec-WebSocket-Protocol has been taken in.
struct WebSocketOffer {
  std::string chosen;                  ///< the subprotocol; empty where none was offered
  Encoding encoding = Encoding::json;  ///< what it says of the messages of ours before the peer's first
  std::string token;                   ///< that it brought; empty for none
};
/// `offered` is the field's value, of all its lines. The error is for people.
[[nodiscard]] std::expected<WebSocketOffer, std::string_view> choose_subprotocol(std::string_view offered);

/// Serves a request for a WebSocket: turns the connection over, or refuses.
void begin_websocket(HttpConnection& connection, const RoutedRequest& request);
/// Refuses what should have been one.
void require_websocket(HttpConnection& connection, const RoutedRequest& request);

}  // namespace wirecall::net
