// WebSockets of a server, from the handshake to the last close, over a simulated system.
#include "http/websocket.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "connection/message_connection.hpp"
#include "rpc/access.hpp"
#include "tests/codec/msgpack.hpp"
#include "tests/framing/websocket_frames.hpp"
#include "tests/http/served.hpp"

namespace wirecall::net {
namespace {

using namespace std::string_literals;
using framing::client_frame;
using framing::code;
using framing::kBinaryFrame;
using framing::kCloseFrame;
using framing::kPingFrame;
using framing::kPongFrame;
using framing::kTextFrame;
using framing::server_frame;

// RFC 6455 section 1.3.
constexpr std::string_view kKey = "dGhlIHNhbXBsZSBub25jZQ==";
constexpr std::string_view kAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
const std::string kUpgrade = "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n";
const std::string kVersion = "Sec-WebSocket-Version: 13\r\n";
const std::string kAsks = kUpgrade + kVersion + "Sec-WebSocket-Key: " + std::string{kKey} + "\r\n";

std::string switched(std::string_view protocol = {}) {
  std::string head = "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: " + std::string{kAccept} + "\r\n";
  if (!protocol.empty()) head.append("Sec-WebSocket-Protocol: ").append(protocol).append("\r\n");
  return head + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
}
std::string offering(std::string_view protocols) {
  return kAsks + "Sec-WebSocket-Protocol: " + std::string{protocols} + "\r\n";
}
std::string asks(std::string_view message) { return client_frame(kTextFrame, message); }
std::string says(std::string_view message) { return server_frame(kTextFrame, message); }
std::string closes(int number, std::string_view reason = {}) {
  return server_frame(kCloseFrame, code(number) + std::string{reason});
}

// A server whose peer has made a WebSocket of its connection.
class Socket : public Http {
 public:
  explicit Socket(unsigned seed = 1, Limits given = {}, const std::string& fields = {}) : Http(seed, given) {
    EXPECT_TRUE(ask(get("/ws", kAsks + fields)).starts_with("HTTP/1.1 101 "));
  }
};

// What comes of frames behind the handshake, wherever the bytes are cut.
void expect_said(const std::string& frames, const std::string& expected, Limits limits = {}) {
  expect_answer(get("/ws", kAsks) + frames, switched() + expected, {}, limits);
}

// ---- the handshake ----

TEST(WebSocketHandshake, is_that_of_the_rfc) {
  EXPECT_EQ(websocket_accept(kKey), kAccept);
  for (const std::string_view path : {"/", "/rpc", "/ws", "/ws?x=1"}) {
    expect_answer(get(path, kAsks) + asks(request(1)), switched() + says(result("19", 1)));
  }
  expect_answer(post(request(1)) + get("/rpc", kAsks) + asks(request(2)),
                ok(result("19", 1)) + switched() + says(result("19", 2)));
}

TEST(WebSocketHandshake, of_another_version_is_426) {
  const std::string refused = text("426 Upgrade Required", "Upgrade Required: this is a WebSocket of version 13\n",
                                   "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
  const std::string key = "Sec-WebSocket-Key: " + std::string{kKey} + "\r\n";
  for (const std::string& fields : {kUpgrade + key, kUpgrade + key + "Sec-WebSocket-Version: 8\r\n",
                                    kUpgrade + key + "Sec-WebSocket-Version: 13, 8\r\n", std::string{}})
    expect_answer(get("/ws", fields) + post(request(1)), refused + ok(result("19", 1)));
}

TEST(WebSocketHandshake, without_a_key_is_400) {
  for (const std::string_view key :
       {"", "Sec-WebSocket-Key: \r\n", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ\r\n",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZSE=\r\n", "Sec-WebSocket-Key: ************************\r\n",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"}) {
    EXPECT_EQ(answer({get("/ws", kUpgrade + kVersion + std::string{key})}),
              text("400 Bad Request",
                   "Bad Request: a Sec-WebSocket-Key that is not 16 bytes in base64, or not the only one\n"))
        << key;
  }
  EXPECT_TRUE(answer({"GET /ws HTTP/1.0\r\nHost: localhost\r\n" + kAsks + "\r\n"}).starts_with("HTTP/1.1 400 "));
}

TEST(WebSocketHandshake, is_asked_for_by_get) {
  EXPECT_EQ(answer({get("/ws", kAsks, "PUT")}),
            text("405 Method Not Allowed", "Method Not Allowed: a WebSocket is asked for by GET\n", "Allow: GET\r\n"));
  EXPECT_TRUE(answer({get("/ws", kAsks, "BREW")}).starts_with("HTTP/1.1 501 "));
  EXPECT_EQ(answer({get("/ws", kAsks + "Content-Length: 1\r\n") + "x"}),
            text("400 Bad Request", "Bad Request: a request for an upgrade has no body\n", kClose));
  // A call by POST is one, whatever else its head says.
  EXPECT_EQ(answer({post(request(1), kAsks)}), ok(result("19", 1)));
}

TEST(WebSocketHandshake, passes_the_rules_for_browsers) {
  EXPECT_TRUE(answer({get("/ws", kAsks + "Origin: http://elsewhere\r\n")}).starts_with("HTTP/1.1 403 "));
  EXPECT_TRUE(answer({get("/ws", kAsks + "Origin: null\r\n")}).starts_with("HTTP/1.1 403 "));
  EXPECT_TRUE(answer({"GET /ws HTTP/1.1\r\nHost: elsewhere\r\n" + kAsks + "\r\n"}).starts_with("HTTP/1.1 403 "));
  EXPECT_EQ(answer({get("/ws", kAsks + "Origin: http://localhost\r\n")}), switched());
  HttpSettings settings;
  settings.allow_origins = {"https://app.example"};
  EXPECT_TRUE(answer({get("/ws", kAsks + "Origin: https://app.example\r\n")}, settings).starts_with("HTTP/1.1 101 "));
}

// What is refused says which option would admit it.
TEST(WebSocketHandshake, that_the_rules_for_browsers_refuse_is_told_the_cure) {
  const auto refused = [](std::string_view why) {
    return text("403 Forbidden", "Forbidden: " + std::string{why} + "\n");
  };
  EXPECT_EQ(answer({get("/ws", kAsks + "Origin: http://elsewhere\r\n")}),
            refused("pages of this Origin may not call; name it in allow_origins if they may"));
  EXPECT_EQ(answer({"GET /ws HTTP/1.1\r\nHost: elsewhere\r\n" + kAsks + "\r\n"}),
            refused("this Host is not one of ours; name it in allow_hosts if it is"));
  EXPECT_EQ(answer({get("/ws", kAsks + "Sec-Fetch-Site: cross-site\r\n")}),
            refused("pages of other sites may ask for this only with an Origin that allow_origins names"));
}

TEST(WebSocketHandshake, with_extensions_that_are_malformed_is_400) {
  const std::string refused = text("400 Bad Request", "Bad Request: a Sec-WebSocket-Extensions that is malformed\n");
  for (const std::string_view offers : {"permessage-deflate;", "x; a=\"b", "x y", "permessage-deflate; a=\"b c\""})
    EXPECT_EQ(answer({get("/ws", kAsks + "Sec-WebSocket-Extensions: " + std::string{offers} + "\r\n")}), refused);
  for (const std::string_view offers :
       {"", "x; a=b", "permessage-deflate", "permessage-deflate; client_max_window_bits"})
    EXPECT_EQ(answer({get("/ws", kAsks + "Sec-WebSocket-Extensions: " + std::string{offers} + "\r\n")}), switched());
}

TEST(WebSocketHandshake, is_not_taken_behind_requests_that_wait) {
  Http server;
  EXPECT_EQ(server.ask(post(call("wait", 1)) + get("/ws", kAsks) + asks(request(2))), "");
  server.waiting.answer(0, "late");
  server.turns();
  EXPECT_EQ(server.peer->take(),
            ok(result("\"late\"", 1)) +
                text("400 Bad Request", "Bad Request: earlier requests of this connection are still to be answered\n",
                     kClose));
  EXPECT_TRUE(server.peer->shut_down);
}

TEST(WebSocketHandshake, has_no_body_however_it_comes) {
  const std::string refused = text("400 Bad Request", "Bad Request: a request for an upgrade has no body\n", kClose);
  EXPECT_EQ(answer({get("/ws", kAsks + "Transfer-Encoding: chunked\r\n") + "0\r\n\r\n" + asks(request(1))}), refused);
  EXPECT_EQ(answer({get("/ws", kAsks + "Content-Length: 5\r\n") + asks(request(1))}), refused);
  EXPECT_EQ(answer({get("/ws", kAsks + "Content-Length: 0\r\n") + asks(request(1))}),
            switched() + says(result("19", 1)));
}

TEST(WebSocketHandshake, takes_no_secret_in_the_address) {
  for (const std::string_view query :
       {"hello=%7B%7D", "a=1&token=secret", "access_token=secret", "%74oken=secret", "Token=secret"}) {
    EXPECT_EQ(answer({get("/ws?" + std::string{query}, kAsks)}),
              text("400 Bad Request",
                   "Bad Request: a token does not belong in the address: show it by Authorization, by the subprotocol "
                   "bearer., or by rpc.hello\n"));
  }
}

// ---- subprotocols ----

TEST(WebSocketSubprotocol, ours_is_chosen_or_else_the_first) {
  const auto chosen = [](std::string_view offered) {
    const auto offer = choose_subprotocol(offered);
    return offer ? offer->chosen : "refused";
  };
  EXPECT_EQ(chosen(""), "");
  EXPECT_EQ(chosen("jsonrpc"), "jsonrpc");
  EXPECT_EQ(chosen("graphql-ws, jsonrpc.msgpack, jsonrpc"), "jsonrpc.msgpack");
  EXPECT_EQ(chosen("graphql-ws, jsonrpc.protobuf, jsonrpc"), "jsonrpc.protobuf");
  EXPECT_EQ(chosen("graphql-ws, mqtt"), "graphql-ws");
  EXPECT_EQ(chosen("jsonrpc.other, jsonrpcx, jsonrpc."), "jsonrpc.other");
  EXPECT_EQ(chosen("jsonrpc, bearer.c2VjcmV0"), "jsonrpc");
  EXPECT_EQ(chosen("bearer.c2VjcmV0, jsonrpc"), "jsonrpc");
  EXPECT_EQ(chosen("bearer.c2VjcmV0"), "refused");
  EXPECT_EQ(chosen("jsonrpc, bearer."), "refused");
  EXPECT_EQ(chosen("jsonrpc, bearer.a+b/"), "refused");
  EXPECT_EQ(chosen("jsonrpc, bearer.c2VjcmV0, bearer.c2VjcmV0"), "refused");
  EXPECT_EQ(chosen("json rpc"), "refused");
  EXPECT_EQ(answer({get("/ws", offering("mqtt") + "Sec-WebSocket-Protocol: jsonrpc\r\n")}), switched("jsonrpc"));
}

TEST(WebSocketSubprotocol, a_token_alone_is_refused_with_the_cure) {
  EXPECT_EQ(answer({get("/ws", offering("bearer.c2VjcmV0"))}),
            text("400 Bad Request",
                 "Bad Request: a token alone among the subprotocols: offer jsonrpc beside it, since it is never "
                 "chosen\n"));
}

// ---- who the peer is ----

std::shared_ptr<const rpc::Authority> two_principals() {
  return std::make_shared<const rpc::Authority>(std::vector<Principal>{
      {.name = "a", .tokens = {"secret"}, .call = {"sum"}, .provide = {}, .publish = {}, .subscribe = {}},
      {.name = "b", .tokens = {"~?~?"}, .call = {">"}, .provide = {}, .publish = {}, .subscribe = {}}});
}
std::string authorized(std::string_view bytes) {
  Http server;
  server.loop_context.services.authority = two_principals();
  return server.ask(bytes);
}
const std::string kSum = call("sum", 1, "[[1,2]]");
const std::string kUnauthenticated =
    R"({"jsonrpc":"2.0","error":{"code":-32004,"message":"say who you are: rpc.hello with a token that is known, or )"
    R"(Authorization by HTTP","data":{"reason":"unauthenticated","origin":"local","delivered":"no"}},"id":1})";

TEST(WebSocketIdentity, comes_with_the_handshake) {
  EXPECT_EQ(authorized(get("/ws", kAsks + "Authorization: Bearer secret\r\n") + asks(kSum)),
            switched() + says(result("3", 1)));
  EXPECT_EQ(authorized(get("/ws", offering("jsonrpc, bearer.c2VjcmV0")) + asks(kSum)),
            switched("jsonrpc") + says(result("3", 1)));
  // 7e 3f 7e 3f
  EXPECT_EQ(authorized(get("/ws", offering("bearer.fj9-Pw, jsonrpc")) + asks(request(1))),
            switched("jsonrpc") + says(result("19", 1)));
  for (const std::string& fields :
       {kAsks + "Authorization: Bearer wrong\r\n", offering("jsonrpc, bearer.d3Jvbmc"), kAsks + "Authorization: x\r\n"})
    EXPECT_TRUE(authorized(get("/ws", fields)).starts_with("HTTP/1.1 401 "));
}

TEST(WebSocketIdentity, shown_twice_has_to_be_the_same) {
  const auto ask = [](const std::string& token, const std::string& offered) {
    return authorized(get("/ws", offering("jsonrpc, bearer." + offered) + "Authorization: Bearer " + token + "\r\n") +
                      asks(kSum));
  };
  EXPECT_EQ(ask("secret", "c2VjcmV0"), switched("jsonrpc") + says(result("3", 1)));
  EXPECT_TRUE(ask("secret", "fj9-Pw").starts_with("HTTP/1.1 401 ")) << "another principal's";
  EXPECT_TRUE(ask("secret", "d3Jvbmc").starts_with("HTTP/1.1 401 ")) << "nobody's";
  EXPECT_TRUE(ask("wrong", "c2VjcmV0").starts_with("HTTP/1.1 401 "));
}

TEST(WebSocketIdentity, comes_with_the_first_message_or_never) {
  for (const std::string_view path : {"/", "/rpc", "/ws"}) {
    const std::string hello = authorized(get(path, kAsks) + asks(call("rpc.hello", 1, R"({"token":"secret"})")));
    EXPECT_TRUE(hello.starts_with(switched() + "\x81"s)) << hello;
    EXPECT_NE(hello.find("\"result\":"), std::string::npos) << hello;
    const std::string refused = authorized(get(path, kAsks) + asks(kSum) + asks(kSum));
    EXPECT_TRUE(refused.starts_with(switched())) << refused;
    EXPECT_NE(refused.find("\"code\":-32004"), std::string::npos) << refused;
    EXPECT_TRUE(refused.ends_with(closes(1008))) << refused;
  }
}

TEST(WebSocketIdentity, opens_no_other_request) {
  for (const std::string& request :
       {post(kSum), post(kSum, kAsks), post(kSum, kAsks, "/"), get("/ws"), get("/"),
        get("/", kUpgrade.substr(0, kUpgrade.find("Upgrade: "))), get("/metrics", kAsks), get("/rpc/sum", kAsks)})
    EXPECT_TRUE(authorized(request).starts_with("HTTP/1.1 401 ")) << request;
  EXPECT_TRUE(authorized(get("/rpc", kAsks, "OPTIONS")).starts_with("HTTP/1.1 405 "));
  // An upgrade of a program's own is not open, whatever the method.
  Http server;
  server.http.routes.add(
      {.path = "/mine",
       .methods = {},
       .handle = [](HttpConnection& connection, const RoutedRequest&) { connection.current().respond(200, "secret"); },
       .upgrade = "mine"});
  server.loop_context.services.authority = two_principals();
  EXPECT_TRUE(
      server.ask(get("/mine", "Connection: Upgrade\r\nUpgrade: mine\r\n", "OPTIONS")).starts_with("HTTP/1.1 401 "));
}

TEST(WebSocketIdentity, that_is_revoked_is_the_end) {
  Http server;
  server.loop_context.services.authority = two_principals();
  EXPECT_EQ(server.ask(get("/ws", kAsks + "Authorization: Bearer secret\r\n")), switched());
  server.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::vector<Principal>{
      {.name = "b", .tokens = {"other"}, .call = {">"}, .provide = {}, .publish = {}, .subscribe = {}}});
  server.connection->authority_changed(false);
  server.turns();
  EXPECT_EQ(server.peer->take(), closes(1008));
}

// ---- messages ----

TEST(WebSocketMessages, are_calls_batches_and_notifications) {
  const std::string note = R"({"jsonrpc":"2.0","method":"subtract","params":[1,2]})";
  expect_said(
      asks(request(1)) + asks(note) + asks("[" + request(2) + "," + request(3) + "]") + asks(request(4)),
      says(result("19", 1)) + says("[" + result("19", 2) + "," + result("19", 3) + "]") + says(result("19", 4)));
}

TEST(WebSocketMessages, come_in_fragments_with_control_frames_between) {
  const std::string text = request(1);
  expect_said(client_frame(0x01, text.substr(0, 9)) + client_frame(kPingFrame, "p") +
                  client_frame(0x00, text.substr(9, 20)) + client_frame(kPongFrame, "") +
                  client_frame(0x80, text.substr(29)),
              server_frame(kPongFrame, "p") + says(result("19", 1)));
}

TEST(WebSocketMessages, of_empty_fragments_hold_nothing) {
  Socket server;
  std::string flood = client_frame(0x01, "");
  for (int i = 0; i < 20'000; ++i) flood += client_frame(0x00, "");
  server.peer->send(flood);
  server.turns(2000);
  EXPECT_EQ(server.peer->take(), "");
  EXPECT_EQ(static_cast<MessageConnection&>(*server.connection).unfinished_bytes(), 0U);
  EXPECT_EQ(server.ask(client_frame(0x80, request(1))), says(result("19", 1)));
}

// Seven bytes for each that counts; what is kept is the message and no more.
TEST(WebSocketMessages, of_fragments_of_one_byte_are_read) {
  Socket server;
  std::string frames;
  const std::string text = std::string(5'000, ' ') + request(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int first = (i == 0 ? 0x01 : 0x00) | (i + 1 == text.size() ? 0x80 : 0);
    frames += client_frame(first, text.substr(i, 1));
  }
  server.peer->send(frames);
  std::size_t most = 0;
  for (int i = 0; i < 2000; ++i) {
    server.turn();
    most = std::max(most, static_cast<MessageConnection&>(*server.connection).unfinished_bytes());
  }
  EXPECT_EQ(server.peer->take(), says(result("19", 1)));
  EXPECT_LE(most, 2 * text.size());
}

TEST(WebSocketMessages, that_are_no_json_cost_themselves_alone) {
  expect_said(asks("{\"a\"") + asks("") + asks("\xdf\xbf") + asks("1") + asks(request(1)),
              says(kParseError) + says(kParseError) + says(kParseError) + says(kInvalid) + says(result("19", 1)));
}

TEST(WebSocketMessages, in_binary_are_messagepack) {
  using packing::msgpack_of;
  expect_said(
      client_frame(kBinaryFrame, msgpack_of(request(1))) + asks(request(2)) + client_frame(kBinaryFrame, request(3)),
      server_frame(kBinaryFrame, msgpack_of(result("19", 1))) + says(result("19", 2)) + says(result("19", 3)));
}

TEST(WebSocketMessages, of_every_length_are_answered) {
  for (const std::size_t bytes : {80, 126, 60'000, 70'000, 300'000}) {
    Socket server;
    EXPECT_EQ(server.ask(asks(call("big", 1, "[" + std::to_string(bytes) + "]"))),
              says(result("\"" + std::string(bytes, 'x') + "\"", 1)));
    const std::string padding(bytes, ' ');
    EXPECT_EQ(server.ask(asks(padding + request(2))), says(result("19", 2)));
  }
}

TEST(WebSocketMessages, wait_and_are_answered_later) {
  Socket server;
  EXPECT_EQ(server.ask(asks(call("wait", 1)) + asks(request(2))), says(result("19", 2)));
  server.waiting.answer(0, "late");
  server.turns();
  EXPECT_EQ(server.peer->take(), says(result("\"late\"", 1)));
}

// ---- control ----

TEST(WebSocketControl, pings_are_answered) {
  const std::string payload(125, '\xff');
  expect_said(client_frame(kPingFrame, "") + client_frame(kPingFrame, payload) + asks(request(1)),
              server_frame(kPongFrame, "") + server_frame(kPongFrame, payload) + says(result("19", 1)));
}

TEST(WebSocketControl, a_flood_of_pings_waits_as_other_answers_do) {
  Limits limits;
  limits.soft_output = 64 * 1024;
  Socket server{1, limits};
  server.peer->window = 0;
  std::string flood;
  for (int i = 0; i < 20'000; ++i) flood += client_frame(kPingFrame, std::string(125, 'p'));
  server.peer->send(flood);
  server.turns(400);
  EXPECT_FALSE(server.end.has_value());
  EXPECT_LE(server.connection->output_bytes(), 2 * limits.soft_output);
  server.peer->window = std::size_t{1} << 40;
  server.turns(4000);
  EXPECT_EQ(server.peer->take().size(), 20'000U * 127);
}

// ---- the end ----

TEST(WebSocketClose, of_the_peer_is_answered_at_once) {
  Socket server;
  EXPECT_EQ(server.ask(asks(call("wait", 1)) + asks(request(2)) + client_frame(kCloseFrame, code(1000) + "bye"s) +
                       asks(request(3)) + client_frame(kCloseFrame, code(1000))),
            says(result("19", 2)) + closes(1000));
  EXPECT_TRUE(server.peer->shut_down);
  server.peer->finish();
  server.turns();
  EXPECT_EQ(server.end, CloseReason::finished);
}

TEST(WebSocketClose, is_followed_by_an_end_in_order_though_the_peer_resets_the_connection) {
  Socket server;
  EXPECT_EQ(server.ask(client_frame(kCloseFrame, code(1000))), closes(1000));
  server.peer->reset();
  server.turns();
  EXPECT_EQ(server.end, CloseReason::finished);
}

TEST(WebSocketClose, is_not_waited_for_for_ever) {
  Socket server;
  EXPECT_EQ(server.ask(client_frame(kCloseFrame, "")), server_frame(kCloseFrame, ""));
  EXPECT_FALSE(server.end.has_value());
  server.pass(std::chrono::milliseconds{1100});
  EXPECT_EQ(server.end, CloseReason::finished);
}

TEST(WebSocketClose, tells_what_was_wrong_and_nothing_else_does) {
  Limits limits;
  limits.max_message_size = 100;
  expect_said(server_frame(kTextFrame, "x"), closes(1002, "a frame of a client without a mask"), limits);
  expect_said(asks(request(1)) + asks("{\"\xff\":1}") + asks(request(2)),
              says(result("19", 1)) + closes(1007, "text that is not UTF-8"), limits);
  expect_said(asks(std::string(101, ' ')), closes(1009, "the message is larger than allowed"), limits);
  expect_said(client_frame(kCloseFrame, code(1005)), closes(1002, "a close code that may not be sent"), limits);
}

// RFC 6455 section 7.4.2, and the registry: 1012, 1013 and 1014.
TEST(WebSocketClose, is_answered_with_its_code_where_that_may_be_sent) {
  for (const int number :
       {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999})
    EXPECT_EQ(Socket{}.ask(client_frame(kCloseFrame, code(number) + "why"s)), closes(number)) << number;
  for (const int number : {0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535}) {
    EXPECT_EQ(Socket{}.ask(client_frame(kCloseFrame, code(number) + "why"s)),
              closes(1002, "a close code that may not be sent"))
        << number;
  }
  EXPECT_EQ(Socket{}.ask(client_frame(kCloseFrame, "\x03")), closes(1002, "half of a close code"));
  EXPECT_EQ(Socket{}.ask(client_frame(kCloseFrame, code(1000) + "\xce"s)),
            closes(1007, "a close reason that is not UTF-8"));
  EXPECT_EQ(Socket{}.ask("\x88\xfe\0\x7e"s + std::string(4 + 126, '\0')),
            closes(1002, "a control frame of more than 125 bytes"));
}

TEST(WebSocketClose, comes_after_what_is_due) {
  Socket server;
  EXPECT_EQ(server.ask(asks(call("wait", 1)) + server_frame(kTextFrame, "x")), "");
  server.waiting.answer(0, "due");
  server.turns();
  EXPECT_EQ(server.peer->take(), says(result("\"due\"", 1)) + closes(1002, "a frame of a client without a mask"));
}

TEST(WebSocketClose, of_a_server_that_shuts_down_is_1001) {
  Socket server;
  server.connection->drain();
  server.turns();
  server.connection->finish();
  server.turns();
  EXPECT_EQ(server.peer->take(), closes(1001));
}

TEST(WebSocketClose, of_a_server_that_has_lost_an_answer_is_1011) {
  Socket server;
  EXPECT_EQ(server.ask(asks(call("wait", 1))), "");
  static_cast<MessageConnection&>(*server.connection).lose_answer();
  server.turns();
  EXPECT_EQ(server.peer->take(), closes(1011));
}

TEST(WebSocketClose, of_an_idle_connection_is_1000) {
  Limits limits;
  limits.keepalive_timeout_ms = 4000;
  Socket server{1, limits};
  for (int i = 0; i < 5; ++i) server.connection->end_if_idle(4);
  server.turns();
  EXPECT_EQ(server.peer->take(), closes(1000));
}

// Of a server that is no broker, whose connections have no counts of their own.
TEST(WebSocketKeepalive, of_a_subscription_to_a_method_has_pings_and_ends_in_silence) {
  Limits limits;
  limits.keepalive_timeout_ms = 4000;
  Socket server{1, limits};
  server.registry.subscription({.subscribe = "begin", .unsubscribe = "end", .notification = "n"}, [](Context context) {
    return [](Context held) -> Stream<int> {
      co_await sleep_for(held, std::chrono::hours{1});
      co_yield 1;
    }(std::move(context));
  });
  EXPECT_NE(server.ask(asks(call("begin", 1))), "");
  const auto look = [&] {
    server.connection->end_if_idle(4);
    server.turns();
    return server.peer->take();
  };
  EXPECT_EQ(look(), "") << "it has just been heard";
  EXPECT_EQ(look(), "");
  EXPECT_EQ(look(), server_frame(kPingFrame, ""));
  EXPECT_EQ(server.ask(client_frame(kPongFrame, "")), "");
  EXPECT_EQ(look(), "");
  EXPECT_EQ(look(), "");
  EXPECT_EQ(look(), server_frame(kPingFrame, ""));
  EXPECT_EQ(look(), server_frame(kPingFrame, ""));
  static_cast<void>(look());
  EXPECT_EQ(server.end, CloseReason::silent);
}

TEST(WebSocketClose, follows_the_answers_of_a_peer_that_has_ended_its_side) {
  Socket server;
  server.peer->send(asks(call("wait", 1)));
  server.peer->finish();
  server.turns();
  server.waiting.answer(0, "due");
  server.turns();
  EXPECT_EQ(server.peer->take(), says(result("\"due\"", 1)) + closes(1000));
  EXPECT_EQ(server.end, CloseReason::finished);
}

TEST(WebSocketClose, of_a_peer_that_ends_within_a_message_is_no_answer) {
  Socket server;
  server.peer->send(asks(request(1)).substr(0, 20));
  server.peer->finish();
  server.turns();
  EXPECT_EQ(server.peer->take(), closes(1000));
  EXPECT_EQ(server.end, CloseReason::finished);
}

TEST(WebSocketClose, of_a_head_that_does_not_come_is_by_time) {
  Socket server;
  server.peer->send(asks(request(1)).substr(0, 3));
  server.pass(std::chrono::milliseconds{server.limits.header_timeout_ms + 10});
  EXPECT_EQ(server.peer->take(), closes(1000));
}

}  // namespace
}  // namespace wirecall::net
