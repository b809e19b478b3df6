// Clients by WebSocket over real sockets: the handshake, which scripted servers answer as they should not, compression
// and the close. Their calls are in scheme_test.cpp.
#include "http/websocket.hpp"

#include <gtest/gtest.h>
#include <utility>

#include "tests/connection/peer.hpp"
#include "tests/framing/websocket_frames.hpp"
#include "wirecall/client.hpp"

namespace wirecall::net {
namespace {

std::string websocket_of(const std::string& tcp, std::string_view path = "/") {
  return "ws" + tcp.substr(3) + std::string{path};
}

TEST(ClientWebSocketPath, is_any_that_the_server_upgrades) {
  Server server;
  server.method("seven", [] { return 7; });
  const std::string tcp = server.listen("tcp://127.0.0.1:0").uri();
  const RunningServer running{server};
  for (const std::string_view path : {"/", "/rpc", "/ws"})
    EXPECT_EQ((Client{websocket_of(tcp, path)}.call<int>("seven")), 7) << path;
}

TEST(ClientWebSocketToken, is_shown_by_the_handshake) {
  Server server;
  server.method("seven", [] { return 7; });
  server.set_principals(
      {{.name = "a", .tokens = {"secret"}, .call = {">"}, .provide = {}, .publish = {}, .subscribe = {}}});
  const std::string uri = websocket_of(server.listen("tcp://127.0.0.1:0").uri());
  const RunningServer running{server};
  ClientOptions options;
  options.token = "secret";
  EXPECT_EQ((Client{uri, options}.call<int>("seven")), 7);
  options.token = "wrong";
  try {
    Client{uri, options}.connect();
    FAIL();
  } catch (const ConnectionError& error) {
    EXPECT_EQ(error.message(), "cannot connect to " + uri +
                                   ": the server refused a WebSocket: HTTP status 401 "
                                   "Unauthorized; give a token that it knows");
  }
}

// ---- the handshake ----

// That of the client's request, which is read.
std::string key_of(RawPeer& peer) {
  std::string key;
  for (std::string line = peer.line(); line != "\r" && !line.empty(); line = peer.line()) {
    constexpr std::string_view kName = "Sec-WebSocket-Key: ";
    if (line.starts_with(kName)) key = line.substr(kName.size(), 24);
  }
  return key;
}

// What a client says of a server that answers its handshake like that; {accept} is what it should be told.
std::string said_to(std::string answer, bool deflate = false) {
  ScriptedServer server{[&](RawPeer peer) {
    const std::string key = key_of(peer);
    if (const std::size_t at = answer.find("{accept}"); at != std::string::npos)
      answer.replace(at, 8, websocket_accept(key));
    peer.send(answer);
    peer.finish();
    peer.all();
  }};
  const std::string uri = websocket_of(server.uri());
  ClientOptions options;
  options.connect_attempts = 1;
  options.websocket_deflate = deflate;
  Client client{uri, options};
  try {
    client.connect();
    return client.call<std::string>("echo");
  } catch (const Error& error) {
    const std::string text = error.message();
    const std::string before = "cannot connect to " + uri + ": ";
    return text.starts_with(before) ? text.substr(before.size()) : text;
  }
}

const std::string kAnswer =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ";

TEST(ClientWebSocketHandshake, is_looked_at_before_anything_is_sent) {
  EXPECT_EQ(said_to("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
            "the server refused a WebSocket: HTTP status 404 Not Found; check the path");
  EXPECT_EQ(said_to("HTTP/1.1 302 Found\r\nLocation: wss://other/\r\nContent-Length: 0\r\n\r\n"),
            "it leads to wss://other/; connect there");
  EXPECT_EQ(said_to(kAnswer + "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"),
            "the server's answer is none to a request for a WebSocket");
  EXPECT_EQ(said_to("HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"),
            "the server's answer is none to a request for a WebSocket");
  EXPECT_EQ(said_to(kAnswer + "{accept}\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"),
            "the server has chosen what was not offered for the WebSocket");
  EXPECT_EQ(said_to(kAnswer + "{accept}\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"),
            "the server has chosen what was not offered for the WebSocket");
  EXPECT_TRUE(said_to("SSH-2.0-x\r\n\r\n").starts_with("the server sent what is no HTTP response: "));
  EXPECT_EQ(said_to(""), "the server closed it without an answer");
}

TEST(ClientWebSocketHandshake, takes_compression_that_keeps_nothing_and_no_other) {
  const std::string refused = "the server has answered the offer of compression with what cannot be: ";
  for (const std::string answer :
       {"permessage-deflate", "permessage-deflate; client_no_context_takeover",
        "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
        "permessage-deflate; server_no_context_takeover; client_max_window_bits",
        "permessage-deflate; server_no_context_takeover; server_max_window_bits",
        "permessage-deflate; server_no_context_takeover; server_max_window_bits=16",
        "permessage-deflate; server_no_context_takeover=1", "permessage-bzip2; server_no_context_takeover",
        "permessage-deflate; server_no_context_takeover, permessage-deflate; server_no_context_takeover"}) {
    EXPECT_EQ(said_to(kAnswer + "{accept}\r\nSec-WebSocket-Extensions: " + answer + "\r\n\r\n", true),
              refused + answer);
  }
  for (const std::string answer :
       {"permessage-deflate; server_no_context_takeover",
        "permessage-deflate;client_no_context_takeover;server_no_context_takeover; server_max_window_bits=8",
        "Permessage-Deflate; server_no_context_takeover; server_max_window_bits=15",
        "permessage-deflate; server_no_context_takeover; client_max_window_bits=8"}) {
    const std::string said = said_to(kAnswer + "{accept}\r\nSec-WebSocket-Extensions: " + answer + "\r\n\r\n", true);
    EXPECT_FALSE(said.starts_with(refused)) << said;
    EXPECT_FALSE(said.contains("WebSocket")) << said;
  }
}

TEST(ClientWebSocketDeflate, is_used_by_both_ends_where_both_say_so) {
  for (const bool by_server : {false, true}) {
    for (const bool by_client : {false, true}) {
      Options served;
      served.websocket_deflate = by_server;
      Server server{std::move(served)};
      server.method("echo", [](std::string text) { return text; });
      const std::string uri = websocket_of(server.listen("tcp://127.0.0.1:0").uri());
      const RunningServer running{server};
      ClientOptions options;
      options.websocket_deflate = by_client;
      Client client{uri, options};
      std::uint64_t before = 0;
      for (const std::size_t bytes : {0, 100, 1000, 100'000, 3'000'000}) {
        before = server.stats().bytes_in;
        EXPECT_EQ(client.call<std::string>("echo", std::string(bytes, 'x')), std::string(bytes, 'x'));
      }
      const std::uint64_t sent = server.stats().bytes_in - before;
      EXPECT_EQ(sent < 100'000, by_server && by_client) << sent;
    }
  }
}

// Reads a request for a WebSocket, and answers it; `behind` follows at once.
void accept_websocket(RawPeer& peer, const std::string& behind = {}) {
  peer.send(kAnswer + websocket_accept(key_of(peer)) + "\r\n\r\n" + behind);
}

TEST(ClientWebSocketHandshake, may_have_frames_right_behind_it) {
  using framing::kTextFrame;
  using framing::server_frame;
  ScriptedServer server{[&](RawPeer peer) {
    accept_websocket(peer, server_frame(framing::kPingFrame, "p"));
    // The pong, in a mask, before the call.
    const std::string pong = peer.take(7);
    EXPECT_EQ(pong.substr(0, 2), "\x8A\x81");
    const std::string head = peer.take(2);
    EXPECT_EQ(head[0], '\x81');
    const std::string mask = peer.take(4);
    const std::string call = framing::masked(peer.take(static_cast<unsigned char>(head[1]) - 128U), mask);
    const std::string id = call.substr(call.find("\"id\":") + 5,
                                       call.find_first_of(",}", call.find("\"id\":")) - call.find("\"id\":") - 5);
    peer.send(server_frame(kTextFrame, R"({"jsonrpc":"2.0","result":7,"id":)" + id + "}"));
    peer.all();
  }};
  Client client{websocket_of(server.uri())};
  EXPECT_EQ(client.call<int>("seven"), 7);
}

TEST(ClientWebSocketClose, tells_the_server_what_was_wrong_and_the_caller_too) {
  std::string last;
  ScriptedServer server{[&](RawPeer peer) {
    accept_websocket(peer);
    const std::string head = peer.take(2);
    peer.take(4 + static_cast<unsigned char>(head[1]) - 128U);
    peer.send(framing::client_frame(framing::kTextFrame, "{}"));
    last = peer.all();
  }};
  ClientOptions options;
  options.connect_attempts = 1;
  Client client{websocket_of(server.uri()), options};
  const std::expected<int, Error> result = client.try_call<int>("any");
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(std::string{result.error().message()}.find("the server broke the rules of WebSocket: "), std::string::npos)
      << result.error().message();
  server.join();
  ASSERT_GT(last.size(), 8U);
  EXPECT_EQ(last[0], '\x88');
  EXPECT_EQ(framing::masked(last.substr(6), last.substr(2, 4)).substr(0, 2), framing::code(1002));
}

TEST(ClientWebSocketClose, of_a_server_is_told_with_its_code_and_reason) {
  const auto told_of = [](std::string payload) {
    ScriptedServer server{[&](RawPeer peer) {
      accept_websocket(peer);
      peer.take(6);
      peer.send(framing::server_frame(framing::kCloseFrame, payload));
      peer.all();
    }};
    ClientOptions options;
    options.connect_attempts = 1;
    Client client{websocket_of(server.uri()), options};
    const std::string message = client.try_call<int>("any").error().message();
    return message.substr(message.find(" is gone: ") + 10);
  };
  using framing::code;
  EXPECT_EQ(told_of(code(1008) + "who are you?\n"), "the server closed the WebSocket with code 1008: who are you? ");
  EXPECT_EQ(told_of(code(1001)), "the server closed the WebSocket with code 1001");
  EXPECT_EQ(told_of(code(1000)), "the server closed it");
  EXPECT_EQ(told_of(""), "the server closed it");
}

// A server that is there no more says nothing, not even that.
TEST(ClientWebSocketKeepalive, asks_a_server_that_says_nothing_and_leaves_one_that_does_not_answer) {
  std::string asked;
  ScriptedServer server{[&](RawPeer peer) {
    accept_websocket(peer);
    const std::string head = peer.take(2);
    peer.take(4 + static_cast<unsigned char>(head[1]) - 128U);  // the call
    asked = peer.all();
  }};
  ClientOptions options;
  options.connect_attempts = 1;
  options.limits.keepalive_timeout_ms = 40;
  Client client{websocket_of(server.uri()), options};
  const std::expected<int, Error> result = client.try_call<int>("any");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), -32001);
  EXPECT_NE(std::string{result.error().message()}.find("has said nothing"), std::string::npos)
      << result.error().message();
  server.join();
  EXPECT_TRUE(asked.starts_with("\x89\x80")) << "a ping, masked";
}

TEST(ClientWebSocketKeepalive, has_a_subscriber_connect_anew_whose_server_has_vanished) {
  int connections = 0;
  ScriptedServer server{2, [&](RawPeer peer) {
                          ++connections;
                          accept_websocket(peer);
                          if (connections == 1) peer.all();
                        }};
  ClientOptions options;
  options.limits.keepalive_timeout_ms = 40;
  options.reconnect_min_ms = 1;
  Client client{websocket_of(server.uri()), options};
  const Subscription subscription = client.subscribe("news.>", [](const Event&) {});
  server.join();
  EXPECT_EQ(connections, 2);
}

TEST(ClientWebSocketKeepalive, keeps_a_server_that_answers_its_pings) {
  ScriptedServer server{[&](RawPeer peer) {
    accept_websocket(peer);
    const std::string head = peer.take(2);
    const std::string mask = peer.take(4);
    const std::string call = framing::masked(peer.take(static_cast<unsigned char>(head[1]) - 128U), mask);
    const std::size_t at = call.find("\"id\":") + 5;
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(peer.take(6).substr(0, 2), "\x89\x80");
      peer.send(framing::server_frame(framing::kPongFrame, ""));
    }
    peer.send(framing::server_frame(framing::kTextFrame, R"({"jsonrpc":"2.0","result":7,"id":)" +
                                                             call.substr(at, call.find_first_of(",}", at) - at) + "}"));
    peer.all();
  }};
  ClientOptions options;
  options.limits.keepalive_timeout_ms = 1000;
  Client client{websocket_of(server.uri()), options};
  EXPECT_EQ(client.call<int>("seven"), 7);
}

TEST(ClientWebSocketClose, is_said_by_a_client_that_goes_and_answered_by_one_that_stays) {
  std::string last;
  ScriptedServer server{2, [&](RawPeer peer) {
                          accept_websocket(peer);
                          last = peer.all();
                        }};
  const std::string uri = websocket_of(server.uri());
  {
    Client client{uri};
    client.connect();
  }
  {
    Client client{uri};
    client.connect();
  }
  server.join();
  ASSERT_EQ(last.size(), 8U);
  EXPECT_EQ(last.substr(0, 2), "\x88\x82");
  EXPECT_EQ(framing::masked(last.substr(6), last.substr(2, 4)), framing::code(1000));
}

}  // namespace
}  // namespace wirecall::net
