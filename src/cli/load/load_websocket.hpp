// What `wirecall bench` sends and reads where WebSocket is spoken: the handshake, a request as a frame, and the next
// reply. Pure.
#pragma once

#include <string>
#include <string_view>

#include "http/websocket_client.hpp"

namespace wirecall::cli {

using net::make_websocket_request;
using net::WebSocketRequest;

/// What has been read of replies.
struct WebSocketReply {
  std::size_t size = 0;          ///< bytes of it, head included; 0: it has not come as a whole
  std::string_view body = {};    ///< of a message; empty for other frames
  bool unauthenticated = false;  ///< the server asks who calls, as `cause` has it
  std::string cause = {};        ///< why there are no more replies
};

/// The request as a client's frame, masked.
[[nodiscard]] std::string websocket_frame(std::string_view request);
/// The answer to the handshake, of which the size alone matters.
[[nodiscard]] WebSocketReply read_websocket_answer(std::string_view text, const WebSocketRequest& request);
/// The frame with which `text` begins.
[[nodiscard]] WebSocketReply read_websocket_reply(std::string_view text);

}  // namespace wirecall::cli
