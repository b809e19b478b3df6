// The events of a broker by HTTP: GET /events as text/event-stream.
#include "http/events.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "broker/router.hpp"
#include "rpc/access.hpp"
#include "tests/http/served.hpp"
#include "tests/rpc/peer.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;

const std::string kHead =
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
    "X-Accel-Buffering: no\r\n\r\n";

std::string event(int id, std::string_view topic, std::string_view params) {
  return "id: " + std::to_string(id) + "\nevent: " + std::string{topic} +
         "\ndata: " + test::notification(topic, params) + "\n\n";
}

// A connection that speaks HTTP, at a broker that others publish to.
class Events : public Http {
 public:
  explicit Events(unsigned seed = 1, Limits given = {}) : Http(seed, given) { loop_context.services.broker = &router; }
  ~Events() {
    connection.reset();
    former.reset();
    publisher.abandon();
  }
  void publish(std::string_view topic, std::string_view params, std::string_view more = {}) {
    say(test::request("rpc.publish", R"({"topic":")" + std::string{topic} + R"(","params":)" + std::string{params} +
                                         std::string{more} + "}"));
  }
  void say(std::string_view message) {
    const test::PaddedText frame{message};
    Received received;
    static_cast<void>(read_message(frame.view(), limits, true, received));
    publisher.handle(received);
  }
  std::string come() {
    turns();
    return peer->take();
  }

  broker::Router router{registry, limits, loop_context};
  test::RecordingSink sink;
  rpc::Dispatcher publisher{registry, sink, limits, loop_context};
};

TEST(HttpEvents, come_with_id_topic_and_message) {
  Events server;
  EXPECT_EQ(server.ask(get("/events?topic=a.*")), kHead);
  server.publish("a.b", R"({"x":1})");
  server.publish("b.b", "[1]");
  server.say("{\"jsonrpc\":\"2.0\",\r\n\"method\":\"a.c\",\n\"params\":[2]}");
  EXPECT_EQ(server.come(), event(1, "a.b", R"({"x":1})") +
                               "id: 2\nevent: a.c\ndata: {\"jsonrpc\":\"2.0\",  \"method\":\"a.c\", "
                               "\"params\":[2]}\n\n");
}

TEST(HttpEvents, of_several_topics_and_without_their_names) {
  Events server;
  EXPECT_EQ(server.ask(get("/events?topic=a&names=false&topic=%62.%3E")), kHead);
  server.publish("b.c", "[1]");
  server.publish("a", "[2]");
  EXPECT_EQ(server.come(), "id: 1\ndata: " + test::notification("b.c", "[1]") +
                               "\n\nid: 2\ndata: " + test::notification("a", "[2]") + "\n\n");
}

TEST(HttpEvents, that_are_retained_come_first_for_those_who_ask_or_come_back) {
  for (const std::string& request :
       {get("/events?topic=a.*&last=true"), get("/events?topic=a.*", "Last-Event-ID: 7\r\n")}) {
    Events server;
    server.publish("a.b", "[1]", R"(,"retain":true)");
    server.publish("a.c", "[2]");
    EXPECT_EQ(server.ask(request), kHead + event(1, "a.b", "[1]"));
  }
  Events server;
  server.publish("a.b", "[1]", R"(,"retain":true)");
  EXPECT_EQ(server.ask(get("/events?topic=a.*")), kHead);
}

TEST(HttpEvents, are_refused_where_there_is_nothing_to_subscribe_to) {
  const auto status = [](std::string_view request) {
    Events server;
    return server.ask(request).substr(9, 3);
  };
  EXPECT_EQ(status(get("/events")), "400");
  EXPECT_EQ(status(get("/events?topic=")), "400");
  EXPECT_EQ(status(get("/events?topic=a..b")), "400");
  EXPECT_EQ(status(get("/events?topic=a&topic=>.b")), "400");
  EXPECT_EQ(status(get("/events?topic=%ff")), "400");
  EXPECT_EQ(status(get("/events?topic=a%2")), "400");
  EXPECT_EQ(status(get("/events?topic=" + std::string(2000, 'a'))), "400");
  EXPECT_EQ(status(get("/events?topic=a&last=1")), "400");
  EXPECT_EQ(status(get("/events?topic=a", "Origin: http://evil.example\r\n")), "403");
  EXPECT_EQ(status("GET /events?topic=a HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "403");
  EXPECT_EQ(status(get("/events?topic=a", {}, "PUT")), "405");
  EXPECT_EQ(status(get("/events?topic=a", {}, "HEAD")), "200");
  EXPECT_EQ(status(get("/events?topic=a", {}, "OPTIONS")), "204");
  EXPECT_TRUE(answer({get("/events?topic=a")}).starts_with("HTTP/1.1 404")) << "of a server that is no broker";
}

TEST(HttpEvents, leave_no_subscription_behind_where_one_of_them_is_refused) {
  Events server;
  EXPECT_EQ(server.ask(get("/events?topic=a&topic=b..c")).substr(9, 3), "400");
  server.publish("a", "[1]");
  EXPECT_EQ(server.come(), "");
  EXPECT_EQ(server.ask(get("/healthz")), text("200 OK", "ok\n")) << "the connection is kept";
}

TEST(HttpEvents, are_for_those_who_may_subscribe) {
  const auto ask = [](std::string_view fields, std::string_view topic) {
    Events server;
    server.loop_context.services.authority =
        std::make_shared<const rpc::Authority>(std::vector<Principal>{{.name = "a",
                                                                       .tokens = {"secret"},
                                                                       .call = {},
                                                                       .provide = {},
                                                                       .publish = {},
                                                                       .subscribe = {"a.>"},
                                                                       .admin = false}});
    return server.ask(get("/events?topic=" + std::string{topic}, fields));
  };
  EXPECT_EQ(ask({}, "a.b").substr(9, 3), "401");
  EXPECT_EQ(ask("Authorization: Bearer wrong\r\n", "a.b").substr(9, 3), "401");
  EXPECT_EQ(ask("Authorization: Bearer secret\r\n", "b").substr(9, 3), "403");
  EXPECT_TRUE(
      ask("Authorization: Bearer secret\r\n", "b").ends_with("Forbidden: the principal has no grant for that\n"));
  EXPECT_EQ(ask("Authorization: Bearer secret\r\n", "a.b&topic=>").substr(9, 3), "403");
  EXPECT_EQ(ask("Authorization: Bearer secret\r\n", "a.*"), kHead);
}

TEST(HttpEvents, end_when_their_principal_is_removed) {
  Events server;
  const auto know = [&](std::string token) {
    server.loop_context.services.authority =
        std::make_shared<const rpc::Authority>(std::vector<Principal>{{.name = "a",
                                                                       .tokens = {std::move(token)},
                                                                       .call = {},
                                                                       .provide = {},
                                                                       .publish = {},
                                                                       .subscribe = {">"},
                                                                       .admin = false}});
  };
  know("secret");
  EXPECT_EQ(server.ask(get("/events?topic=a", "Authorization: Bearer secret\r\n")), kHead);
  server.connection->authority_changed(false);
  EXPECT_FALSE(server.peer->shut_down);
  know("other");
  server.connection->authority_changed(false);
  server.turns();
  EXPECT_TRUE(server.peer->shut_down);
}

TEST(HttpEvents, are_lost_and_counted_for_one_that_takes_too_little) {
  Events server{1, Limits{.soft_output = 4096}};
  EXPECT_EQ(server.ask(get("/events?topic=a")), kHead);
  const std::string params = "[\"" + std::string(1000, 'x') + "\"]";
  for (int i = 0; i < 20; ++i) server.publish("a", params);
  const std::string got = server.come();
  EXPECT_NE(got.find("event: rpc.lagged\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"rpc.lagged\",\"params\":{\"topic\":"
                     "\"a\",\"dropped\":"),
            std::string::npos)
      << got.substr(got.size() - 200);
  server.publish("a", "[1]");
  EXPECT_TRUE(server.come().ends_with("\"params\":[1]}\n\n"));
}

TEST(HttpEvents, are_kept_alive_by_comments_and_are_never_idle) {
  Events server;
  EXPECT_EQ(server.ask(get("/events?topic=a")), kHead);
  for (int i = 0; i < 10; ++i) server.connection->end_if_idle(4);
  server.pass(15s);
  EXPECT_EQ(server.come(), ":\n\n");
  server.pass(15s);
  EXPECT_EQ(server.come(), ":\n\n");
  server.publish("a", "[1]");
  EXPECT_EQ(server.come(), event(1, "a", "[1]"));
}

TEST(HttpEvents, end_with_their_peer) {
  Events server;
  EXPECT_EQ(server.ask(get("/events?topic=a") + get("/healthz")), kHead) << "nothing else is looked at";
  server.peer->send("POST /rpc HTTP/1.1\r\n\r\n");
  server.peer->finish();
  server.turns();
  EXPECT_EQ(server.end, CloseReason::finished);
  server.publish("a", "[1]");
}

TEST(HttpEvents, end_when_the_server_drains) {
  Events server;
  EXPECT_EQ(server.ask(get("/events?topic=a")), kHead);
  server.connection->drain();
  EXPECT_FALSE(server.connection->busy());
  server.connection->finish();
  server.publish("a", "[1]");
  EXPECT_EQ(server.come(), "");
  EXPECT_TRUE(server.peer->shut_down);
  Events late;
  EXPECT_EQ(late.ask(get("/healthz")), text("200 OK", "ok\n"));
  late.connection->drain();
  EXPECT_EQ(late.ask(get("/events?topic=a")).substr(9, 3), "503");
}

}  // namespace
}  // namespace wirecall::net
