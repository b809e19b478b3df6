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
const std::string kRetry = "retry: 3000\n";

std::string event(std::string_view topic, std::string_view params) {
  return "event: " + std::string{topic} + "\ndata: " + test::notification(topic, params) + "\n\n";
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
  void retain(std::string_view topic, std::string_view params) { publish(topic, params, R"(,"retain":true)"); }
  std::string come() {
    turns();
    return peer->take();
  }
  std::string id(int number) {
    return "id: " + std::string{router.retained_position().epoch} + "-" + std::to_string(number) + "\n";
  }
  // How a stream begins that is sent nothing of what is retained, up to that number.
  std::string begin(int number = 0) { return kHead + kRetry + id(number) + "\n"; }
  // The peer goes, and comes back on a new connection.
  void come_back() {
    peer->finish();
    turns();
    end.reset();
    auto [descriptor, other_end] = backend->pair();
    peer = other_end;
    connection = std::make_unique<ProtocolDetector>(host, protocols,
                                                    std::make_unique<transport::SocketStream>(loop, descriptor));
  }

  broker::Router router{registry, limits, loop_context};
  test::RecordingSink sink;
  rpc::Dispatcher publisher{registry, sink, limits, loop_context};
};

TEST(HttpEvents, come_with_topic_and_message) {
  Events server;
  EXPECT_EQ(server.ask(get("/events?topic=a.*")), server.begin());
  server.publish("a.b", R"({"x":1})");
  server.publish("b.b", "[1]");
  server.say("{\"jsonrpc\":\"2.0\",\r\n\"method\":\"a.c\",\n\"params\":[2]}");
  EXPECT_EQ(server.come(), event("a.b", R"({"x":1})") +
                               "event: a.c\ndata: {\"jsonrpc\":\"2.0\",  \"method\":\"a.c\", "
                               "\"params\":[2]}\n\n");
}

TEST(HttpEvents, of_several_topics_and_without_their_names) {
  Events server;
  EXPECT_EQ(server.ask(get("/events?topic=a&names=false&topic=%62.%3E")), server.begin());
  server.publish("b.c", "[1]");
  server.publish("a", "[2]");
  EXPECT_EQ(server.come(),
            "data: " + test::notification("b.c", "[1]") + "\n\ndata: " + test::notification("a", "[2]") + "\n\n");
}

// ---- what is retained ----

TEST(HttpEvents, that_are_retained_come_first_for_those_who_ask) {
  Events server;
  server.retain("a.b", "[1]");
  server.publish("a.c", "[2]");
  server.retain("a.a", "[3]");
  EXPECT_EQ(server.ask(get("/events?topic=a.*&last=true")),
            kHead + kRetry + "\n" + event("a.a", "[3]") + event("a.b", "[1]") + server.id(2) + "\n");
  server.retain("a.c", "[4]");
  server.publish("a.c", "[5]");
  EXPECT_EQ(server.come(), server.id(3) + event("a.c", "[4]") + event("a.c", "[5]"));
  Events none;
  none.retain("a.b", "[1]");
  EXPECT_EQ(none.ask(get("/events?topic=a.*")), none.begin(1));
}

// As browsers do.
TEST(HttpEvents, that_are_retained_meanwhile_come_to_one_that_comes_back) {
  Events server;
  server.retain("a.1", "[1]");
  EXPECT_EQ(server.ask(get("/events?topic=a.*&topic=b")), server.begin(1));
  server.retain("a.2", "[2]");
  EXPECT_EQ(server.come(), server.id(2) + event("a.2", "[2]"));
  server.come_back();
  server.retain("b", "[3]");
  server.retain("c", "[4]");
  server.publish("a.2", "[5]");
  server.retain("a.3", "[6]");
  server.retain("a.3", "[7]");
  server.retain("a.4", "[8]");
  server.say(test::request("rpc.publish", R"({"topic":"a.4","retain":true})"));
  const std::string epoch{server.router.retained_position().epoch};
  EXPECT_EQ(server.ask(get("/events?topic=a.*&topic=b", "Last-Event-ID: " + epoch + "-2\r\n")),
            kHead + kRetry + "\n" + event("a.3", "[7]") + event("b", "[3]") + server.id(7) + "\n");
  server.come_back();
  EXPECT_EQ(server.ask(get("/events?topic=a.*&last=true", "Last-Event-ID: " + epoch + "-7\r\n")),
            kHead + kRetry + "\n" + server.id(7) + "\n");
}

TEST(HttpEvents, that_are_retained_come_all_to_one_that_comes_from_elsewhere) {
  const std::string other(16, '0');
  const std::vector<std::string> ids{"7",          "",
                                     "-1",         "x-1",
                                     "EPOCH",      "EPOCH-",
                                     "EPOCH-x",    "EPOCH-+1",
                                     "EPOCH--1",   "EPOCH-1x",
                                     "EPOCH-1 1",  "EPOCH-0",
                                     "EPOCH1-1",   other,
                                     other + "-1", "EPOCH-99999999999999999999",
                                     "EPOCH-2",    "EPOCH-18446744073709551615"};
  for (const std::string& id : ids) {
    Events server;
    server.retain("a", "[1]");
    std::string given = id;
    if (given.starts_with("EPOCH")) given.replace(0, 5, server.router.retained_position().epoch);
    EXPECT_EQ(server.ask(get("/events?topic=a", "Last-Event-ID: " + given + "\r\n")),
              kHead + kRetry + "\n" + event("a", "[1]") + server.id(1) + "\n")
        << id;
  }
}

TEST(HttpEvents, that_are_retained_have_no_id_before_all_have_been_sent) {
  Events server{1, Limits{.soft_output = 4096}};
  const std::string params = "[\"" + std::string(1000, 'x') + "\"]";
  for (int i = 0; i < 20; ++i) server.retain("a." + std::to_string(10 + i), params);
  server.peer->window = 2000;
  std::string got = server.ask(get("/events?topic=a.*&last=true"));
  server.retain("a.29", "[1]");
  EXPECT_EQ(got.find("\nid: "), std::string::npos) << got;
  server.peer->window = std::size_t{1} << 40;
  got += server.come();
  EXPECT_EQ(got.find("\nid: "), got.find("\n" + server.id(21))) << got;
  EXPECT_TRUE(got.ends_with(event("a.29", "[1]") + server.id(21) + "\n")) << got.substr(got.size() - 200);
  server.retain("b", "[2]");
  server.retain("a.10", "[3]");
  EXPECT_EQ(server.come(), server.id(23) + event("a.10", "[3]"));
}

// An id would say that it has what it has lost.
TEST(HttpEvents, that_are_retained_have_no_id_behind_a_loss) {
  Events server{1, Limits{.soft_output = 4096}};
  EXPECT_EQ(server.ask(get("/events?topic=a.*")), server.begin());
  const std::string params = "[\"" + std::string(1000, 'x') + "\"]";
  for (int i = 0; i < 20; ++i) server.retain("a." + std::to_string(10 + i), params);
  const std::string got = server.come();
  const std::size_t last = got.rfind("\nid: ");
  EXPECT_LT(last, got.find("event: rpc.lagged"));
  server.retain("a.1", "[1]");
  EXPECT_EQ(server.come(), event("a.1", "[1]"));
  const std::string id = got.substr(last + 5, got.find('\n', last + 5) - last - 5);
  server.come_back();
  const std::string again = server.ask(get("/events?topic=a.*", "Last-Event-ID: " + id + "\r\n"));
  EXPECT_NE(again.find(event("a.29", params)), std::string::npos) << "what was lost";
  EXPECT_EQ(again.find(event("a.10", params)), std::string::npos) << "what was not";
}

TEST(HttpEvents, that_are_retained_and_large_have_their_ids_in_order) {
  Events server{1, Limits{.soft_output = 16 << 20, .hard_output = 32 << 20}};
  EXPECT_EQ(server.ask(get("/events?topic=>")), server.begin());
  server.sink.holds_input = true;
  server.retain("a", "[\"" + std::string(2 << 20, 'x') + "\"]");  // which is sent in a later turn
  test::RecordingSink other_sink;
  rpc::Dispatcher other{server.registry, other_sink, server.limits, server.loop_context};
  const test::PaddedText frame{test::request("rpc.publish", R"({"topic":"b","params":[2],"retain":true})")};
  Received received;
  static_cast<void>(read_message(frame.view(), server.limits, true, received));
  other.handle(received);
  other.abandon();
  server.turns(200);
  const std::string got = server.peer->take();
  EXPECT_TRUE(got.starts_with(event("b", "[2]") + server.id(1) + "event: a\n")) << got.substr(0, 200);
  server.retain("c", "[3]");
  EXPECT_EQ(server.come(), server.id(3) + event("c", "[3]"));
}

// One that is still being told to some has an id for those who have it.
TEST(HttpEvents, that_are_retained_and_still_being_told_may_have_been_read) {
  Events server;
  const rpc::RetainedPosition position{.epoch = "e", .number = 3, .last_number = 6};
  EXPECT_EQ(number_in("e-3", position), 3U);
  EXPECT_EQ(number_in("e-4", position), 4U);
  EXPECT_EQ(number_in("e-5", position), 0U);
  EXPECT_EQ(number_in("e-7", position), 0U);
  const rpc::RetainedPosition all_told{.epoch = "e", .number = 6, .last_number = 6};
  EXPECT_EQ(number_in("e-6", all_told), 6U);
  EXPECT_EQ(number_in("e-7", all_told), 0U);
  EXPECT_EQ(number_in("e-18446744073709551615", all_told), 0U);
}

// ---- who may ----

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

TEST(HttpEvents, are_refused_with_what_is_wrong) {
  const auto body = [](std::string_view query) {
    Events server;
    const std::string got = server.ask(get("/events" + std::string{query}));
    return got.substr(got.find("\r\n\r\n") + 4);
  };
  const std::string expected =
      ": topic: expected words between dots, of which * stands for one and > at the end for the rest, got ";
  EXPECT_EQ(body("?topic=a..b"), "Bad Request: Invalid params" + expected + "\"a..b\"\n");
  EXPECT_EQ(body("?topic=a&topic=%3E.b"), "Bad Request: Invalid params" + expected + "\">.b\"\n");
  EXPECT_EQ(body("?topic=%ff"), "Bad Request: a topic that is not UTF-8\n");
  EXPECT_EQ(body(""), "Bad Request: no topic: /events?topic=PATTERN\n");
}

// RFC 9110 section 9.3.2: the same header fields, or none of those that only the body tells.
TEST(HttpEvents, have_the_same_head_for_head_as_for_get) {
  Events server;
  EXPECT_EQ(server.ask(get("/events?topic=a", {}, "HEAD") + get("/healthz")), kHead);
  EXPECT_TRUE(server.peer->shut_down) << "as Connection: close says";
  server.publish("a", "[1]");
  EXPECT_EQ(server.come(), "") << "nobody has subscribed";
}

TEST(HttpEvents, are_not_asked_for_behind_others_that_wait) {
  Events server;
  EXPECT_EQ(server.ask(post(call("wait", 1)) + get("/events?topic=a")), "");
  server.waiting.answer(0, "late");
  server.turns();
  const std::string got = server.peer->take();
  EXPECT_TRUE(got.starts_with(ok(result("\"late\"", 1)) + "HTTP/1.1 400 Bad Request\r\n" + kClose)) << got;
  EXPECT_TRUE(got.ends_with("Bad Request: earlier requests of this connection are still to be answered\n")) << got;
}

// Each topic costs as much as a call does, also of a request that is refused for its last one.
TEST(HttpEvents, of_very_many_topics_cost_a_turn_no_more_than_its_share) {
  constexpr std::int64_t kShareSteps = 2048;
  constexpr std::int64_t kTopics = 1000;
  constexpr int kRequests = 20;
  Events server;
  std::string path = "/events?topic=a0";
  for (int i = 1; i < kTopics; ++i) path += "&topic=a" + std::to_string(i);
  std::string flood = get("/healthz");
  for (int i = 0; i < kRequests; ++i) flood += get(path + "&topic=a..b");
  server.peer->send(flood);
  std::int64_t steps = 0;
  for (int i = 0; i < 2000; ++i) {
    server.turn();
    const auto* const channel = dynamic_cast<const Channel*>(server.connection.get());
    const std::int64_t of_turn = channel != nullptr ? channel->steps_used() : 0;
    EXPECT_LE(of_turn, kShareSteps + 3 * kTopics);
    steps += of_turn;
  }
  EXPECT_GE(steps, kRequests * 2 * kTopics);
  const std::string got = server.peer->take();
  std::size_t refused = 0;
  for (std::size_t at = got.find("HTTP/1.1 400"); at != got.npos; at = got.find("HTTP/1.1 400", at + 1)) ++refused;
  EXPECT_EQ(refused, std::size_t{kRequests});
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
  EXPECT_TRUE(ask("Authorization: Bearer secret\r\n", "a.*").starts_with(kHead));
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
  EXPECT_EQ(server.ask(get("/events?topic=a", "Authorization: Bearer secret\r\n")), server.begin());
  server.connection->authority_changed(false);
  EXPECT_FALSE(server.peer->shut_down);
  know("other");
  server.connection->authority_changed(false);
  server.turns();
  EXPECT_TRUE(server.peer->shut_down);
}

TEST(HttpEvents, are_lost_and_counted_for_one_that_takes_too_little) {
  Events server{1, Limits{.soft_output = 4096}};
  EXPECT_EQ(server.ask(get("/events?topic=a")), server.begin());
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
  EXPECT_EQ(server.ask(get("/events?topic=a")), server.begin());
  for (int i = 0; i < 10; ++i) server.connection->end_if_idle(4);
  server.pass(15s);
  EXPECT_EQ(server.come(), ":\n\n");
  server.pass(15s);
  EXPECT_EQ(server.come(), ":\n\n");
  server.publish("a", "[1]");
  EXPECT_EQ(server.come(), event("a", "[1]"));
}

TEST(HttpEvents, end_with_their_peer) {
  Events server;
  EXPECT_EQ(server.ask(get("/events?topic=a") + get("/healthz")), server.begin()) << "nothing else is looked at";
  server.peer->send("POST /rpc HTTP/1.1\r\n\r\n");
  server.peer->finish();
  server.turns();
  EXPECT_EQ(server.end, CloseReason::finished);
  server.publish("a", "[1]");
}

TEST(HttpEvents, end_when_the_server_drains) {
  Events server;
  EXPECT_EQ(server.ask(get("/events?topic=a")), server.begin());
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
