// WebSocketHandshake: a connection on which a client asks for a WebSocket (RFC 6455 section 4.1), and waits for the
// answer; then it gives way to the channel that `make` makes. An answer that is none ends it, and `failure` says why.
// Owned by a ClientConnection; lives on the thread that drives the client. The host and all that it refers to outlive
// it.
#pragma once

#include <expected>

#include "connection/channel.hpp"
#include "framing/http1.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/options.hpp"

namespace wirecall::net {

/// A request for a WebSocket, with a key of its own, and what it is to be answered with.
struct WebSocketRequest {
  std::string text;
  std::string accept;    ///< what Sec-WebSocket-Accept has to say
  std::string protocol;  ///< the subprotocol that was offered
  bool deflate = false;  ///< compression was offered
};
[[nodiscard]] WebSocketRequest make_websocket_request(const Endpoint& endpoint, std::string_view token,
                                                      Encoding encoding = Encoding::json, bool deflate = false);
/// What an answer that begins a WebSocket says of it.
struct WebSocketAnswer {
  std::optional<int> window_bits;  ///< messages are compressed, ours with that window; nothing: they are not
};
/// The error says why that answer begins none.
[[nodiscard]] std::expected<WebSocketAnswer, std::string> read_handshake_answer(const framing::HttpResponseHead& head,
                                                                                const WebSocketRequest& request);

class WebSocketHandshake final : public Channel, private Timer {
 public:
  WebSocketHandshake(Host& host, std::unique_ptr<transport::ByteStream> stream, const Endpoint& endpoint,
                     const ClientOptions& options, Successor make);
  ~WebSocketHandshake() override;

  void stop_calls() noexcept override {}
  /// Why there is no WebSocket, after the end; empty where that was the connection's own.
  [[nodiscard]] std::string failure() const override { return failure_; }
  /// Of what is sent, where messages are compressed, once there is a WebSocket.
  [[nodiscard]] std::optional<int> window_bits() const noexcept { return window_bits_; }

 private:
  std::size_t read(std::span<char> input) override;
  std::size_t read_head(std::span<char> input);
  void input_complete() override;
  // The two are about handlers, of which there are none.
  void leave_message(std::vector<Buffer>&) override {}
  [[nodiscard]] bool working() const noexcept override { return false; }
  void abandon() noexcept override {}
  void on_turn_end() override { give_way(); }
  void output_drained() override { give_way(); }
  void expired() override;

  void give_way();
  void fail(CloseReason why, std::string cause);

  Successor make_;
  const WebSocketRequest request_;
  Buffer head_;  // the beginning of the answer
  std::string failure_;
  bool agreed_ = false;
  std::optional<int> window_bits_;
  bool timed_ = false;
};

}  // namespace wirecall::net
