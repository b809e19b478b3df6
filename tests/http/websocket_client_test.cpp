// The opening handshake of a client's WebSocket over a simulated system: the answer may come in any pieces, with the
// first frames right behind it, compressed or not.
#include "http/websocket_client.hpp"

#include <cstddef>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "connection/message_connection.hpp"
#include "framing/websocket.hpp"
#include "http/websocket.hpp"
#include "http/zlib_deflate.hpp"
#include "tests/framing/websocket_frames.hpp"
#include "tests/http/served.hpp"

namespace wirecall::net {
namespace {

using framing::kPingFrame;
using framing::kPongFrame;
using framing::kTextFrame;
using framing::masked;
using framing::server_frame;

constexpr int kPackedText = 0xC1;

// A client that has asked for a WebSocket; behind the handshake its end answers calls, as any end does.
class Asking : public Http {
 public:
  explicit Asking(unsigned seed = 1, bool deflate = true) : Http(seed) {
    host.deflate = &deflate_;
    connection.reset();
    auto [descriptor, other_end] = backend->pair();
    peer = other_end;
    options_.websocket_deflate = deflate;
    auto made = std::make_unique<WebSocketHandshake>(
        host, std::make_unique<transport::SocketStream>(loop, descriptor), Endpoint{"ws://place/ws"}, options_,
        [this](Host& own, std::unique_ptr<transport::ByteStream> stream) {
          compresses = handshake->window_bits().has_value();
          framing::WebSocket::Packing packing;
          if (compresses) packing.deflate = own.deflate;
          return std::make_unique<MessageConnection>(
              own, std::move(stream),
              std::make_unique<framing::WebSocket>(framing::WebSocket::Role::client, own.limits, packing));
        });
    handshake = made.get();
    connection = std::move(made);
    turns();
    const std::string asked = peer->take();
    constexpr std::string_view kName = "Sec-WebSocket-Key: ";
    EXPECT_TRUE(asked.starts_with("GET /ws HTTP/1.1\r\nHost: place\r\n")) << asked;
    EXPECT_EQ(asked.find("\r\nSec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; "
                         "client_no_context_takeover; client_max_window_bits\r\n") != std::string::npos,
              deflate)
        << asked;
    if (const std::size_t at = asked.find(kName); at != std::string::npos) key = asked.substr(at + kName.size(), 24);
  }
  std::string answer(std::string_view fields = {}) const {
    return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
           websocket_accept(key) + "\r\n" + std::string{fields} + "\r\n";
  }
  // Why there is no WebSocket.
  std::string failure_of(std::string_view answer) {
    peer->send(answer);
    loop.turn(std::chrono::milliseconds{1});
    for (int i = 0; i < 40 && !end; ++i) loop.turn(std::chrono::milliseconds{1});
    return end ? handshake->failure() : "none";
  }

  WebSocketHandshake* handshake;
  std::string key;
  bool compresses = false;

 private:
  ZlibDeflate deflate_;
  ClientOptions options_;
};

// The frames of a client, without their masks: first bytes and payloads.
std::vector<std::pair<int, std::string>> frames_of(std::string_view bytes) {
  std::vector<std::pair<int, std::string>> frames;
  while (bytes.size() >= 6) {
    const std::size_t size = static_cast<unsigned char>(bytes[1]) & 0x7FU;
    EXPECT_LE(size, 125U);
    frames.emplace_back(static_cast<unsigned char>(bytes[0]), masked(bytes.substr(6, size), bytes.substr(2, 4)));
    bytes.remove_prefix(std::min(bytes.size(), 6 + size));
  }
  EXPECT_TRUE(bytes.empty());
  return frames;
}

std::string packed(std::string_view text) {
  ZlibDeflate deflate;
  Buffer out;
  deflate.deflate(text, 15, out);
  return std::string{out.view()};
}

const std::string kTaken = "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n";

TEST(WebSocketClientHandshake, is_answered_in_any_pieces_with_packed_frames_behind_it) {
  const std::string frames = server_frame(kPackedText, packed(request(1))) + server_frame(kPingFrame, "p") +
                             server_frame(kTextFrame, request(2));
  const std::vector<std::pair<int, std::string>> expected{
      {kTextFrame, result("19", 1)}, {kPongFrame, "p"}, {kTextFrame, result("19", 2)}};
  const std::size_t size = Asking{}.answer(kTaken).size() + frames.size();
  for (std::size_t cut = 0; cut <= size; ++cut) {
    SCOPED_TRACE(cut);
    Asking client{static_cast<unsigned>(cut) + 1};
    const std::string bytes = client.answer(kTaken) + frames;
    ASSERT_EQ(bytes.size(), size);
    client.peer->send(bytes.substr(0, cut));
    client.turns(8);
    client.peer->send(bytes.substr(cut));
    client.turns();
    ASSERT_FALSE(client.end.has_value()) << client.handshake->failure();
    EXPECT_TRUE(client.compresses);
    ASSERT_EQ(frames_of(client.peer->take()), expected);
  }
}

TEST(WebSocketClientHandshake, is_answered_byte_by_byte) {
  for (const bool deflate : {false, true}) {
    Asking client{7, deflate};
    const std::string bytes =
        client.answer(deflate ? kTaken : std::string{}) +
        (deflate ? server_frame(kPackedText, packed(request(1))) : server_frame(kTextFrame, request(1)));
    for (const char byte : bytes) {
      client.peer->send({&byte, 1});
      client.turns(4);
    }
    client.turns();
    EXPECT_EQ(client.compresses, deflate);
    EXPECT_EQ(frames_of(client.peer->take()),
              (std::vector<std::pair<int, std::string>>{{kTextFrame, result("19", 1)}}));
  }
}

TEST(WebSocketClientHandshake, looks_over_interim_responses) {
  const std::string hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n";
  const std::size_t size = 2 * hints.size() + Asking{}.answer(kTaken).size();
  for (std::size_t cut = 0; cut <= size; ++cut) {
    SCOPED_TRACE(cut);
    Asking client;
    const std::string bytes =
        "HTTP/1.1 100 Continue\r\n\r\n" + hints + client.answer(kTaken) + server_frame(kTextFrame, request(1));
    client.peer->send(bytes.substr(0, cut));
    client.turns(8);
    client.peer->send(bytes.substr(cut));
    client.turns();
    ASSERT_FALSE(client.end.has_value()) << client.handshake->failure();
    EXPECT_TRUE(client.compresses);
    ASSERT_EQ(frames_of(client.peer->take()),
              (std::vector<std::pair<int, std::string>>{{kTextFrame, result("19", 1)}}));
  }
}

TEST(WebSocketClientHandshake, goes_without_compression_that_is_not_taken_up) {
  Asking client;
  client.peer->send(client.answer() + server_frame(kTextFrame, request(1)) +
                    server_frame(kPackedText, packed(request(2))));
  client.turns();
  EXPECT_FALSE(client.compresses);
  const auto frames = frames_of(client.peer->take());
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0], std::pair(kTextFrame, result("19", 1)));
  EXPECT_EQ(frames[1].first, framing::kCloseFrame);
  EXPECT_EQ(frames[1].second.substr(0, 2), framing::code(1002));
}

// A field that may be there once, and is there twice, says nothing (RFC 6455 section 11.3).
TEST(WebSocketClientHandshake, looks_at_all_lines_of_a_field) {
  const std::string not_offered = "the server has chosen what was not offered for the WebSocket";
  const auto failure = [](const std::string& fields) {
    Asking client;
    return client.failure_of(client.answer(fields));
  };
  EXPECT_EQ(failure("Sec-WebSocket-Protocol: jsonrpc\r\n"), "none");
  EXPECT_EQ(failure("Sec-WebSocket-Protocol: jsonrpc\r\nSec-WebSocket-Protocol: jsonrpc\r\n"), not_offered);
  EXPECT_EQ(failure("Sec-WebSocket-Protocol: jsonrpc\r\nSec-WebSocket-Protocol: mqtt\r\n"), not_offered);
  EXPECT_EQ(failure(kTaken + kTaken),
            "the server has answered the offer of compression with what cannot be: permessage-deflate; "
            "server_no_context_takeover, permessage-deflate; server_no_context_takeover");
  EXPECT_EQ(failure(kTaken + "Sec-WebSocket-Extensions: x\r\n"),
            "the server has answered the offer of compression with what cannot be: permessage-deflate; "
            "server_no_context_takeover, x");
  Asking client;
  EXPECT_EQ(client.failure_of(client.answer("Sec-WebSocket-Accept: " + websocket_accept(client.key) + "\r\n")),
            "the server's answer is none to a request for a WebSocket");
}

TEST(WebSocketClientHandshake, that_is_forbidden_is_told_the_cure) {
  Asking client;
  EXPECT_EQ(client.failure_of("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"),
            "the server refused a WebSocket: HTTP status 403 Forbidden; name the host in the server's allow_hosts");
}

}  // namespace
}  // namespace wirecall::net
