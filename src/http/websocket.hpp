// The handshake of WebSocket (RFC 6455 section 4), of a server and of a client: what a request must say, what it is
// answered, and which of the subprotocols that are offered is chosen (docs/wire.md "WebSocket"). What follows it is a
// MessageConnection with a framing of its own.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "wirecall/codec.hpp"

namespace wirecall::net {

class HttpConnection;
struct RoutedRequest;

/// Bytes of a Sec-WebSocket-Key, which is their base64.
inline constexpr std::size_t kWebSocketKeyBytes = 16;

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

/// How messages are compressed: what of the offers in Sec-WebSocket-Extensions is taken.
struct DeflateAgreement {
  int window_bits = 15;  ///< of what we send
  std::string answer;    ///< the field's value
};
/// nullopt where none of the offers can be taken (RFC 7692 section 7). Neither end keeps anything between messages.
[[nodiscard]] std::optional<DeflateAgreement> agree_on_deflate(std::string_view offers);

/// Serves a request for a WebSocket: turns the connection over, or refuses.
void begin_websocket(HttpConnection& connection, const RoutedRequest& request);
/// Refuses what should have been one.
void require_websocket(HttpConnection& connection, const RoutedRequest& request);

}  // namespace wirecall::net
