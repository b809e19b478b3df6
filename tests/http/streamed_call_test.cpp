// A request that is posted with "Accept: text/event-stream": its items and its answer are events of the response.
#include "http/streamed_call.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "broker/router.hpp"
#include "rpc/access.hpp"
#include "tests/http/served.hpp"
#include "tests/rpc/peer.hpp"
#include "wirecall/stream.hpp"

namespace wirecall::net {
namespace {

const std::string kHead =
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
    "X-Accel-Buffering: no\r\n\r\n";
constexpr std::string_view kEvents = "Accept: text/event-stream\r\n";

std::string event(std::string_view message) { return "data: " + std::string{message} + "\n\n"; }
std::string item(int id, int sequence, std::string_view value) {
  return event(R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":)" + std::to_string(id) + R"(,"seq":)" +
               std::to_string(sequence) + R"(,"value":)" + std::string{value} + "}}");
}

class StreamedCalls : public Http {
 public:
  explicit StreamedCalls(Limits given = {}) : Http(1, given) {
    registry.method("count", [](int n) -> Stream<int> {
      for (int i = 0; i < n; ++i) co_yield i;
    });
    registry.method("fails", [](int n) -> Stream<int> {
      for (int i = 0; i < n; ++i) co_yield i;
      throw Error{7, "as it is"};
    });
  }
};

TEST(StreamedCall, sends_items_as_they_come_and_then_the_answer_and_ends) {
  StreamedCalls server;
  EXPECT_EQ(server.ask(post(call("count", 5, "[3]"), kEvents)),
            kHead + item(5, 0, "0") + item(5, 1, "1") + item(5, 2, "2") + event(result("null", 5)));
  EXPECT_TRUE(server.peer->shut_down);
}

TEST(StreamedCall, needs_no_credit) {
  const std::string given = R"({"jsonrpc":"2.0","method":"count","params":[3],"stream":1,"id":5})";
  EXPECT_EQ(StreamedCalls{}.ask(post(given, kEvents)),
            kHead + item(5, 0, "0") + item(5, 1, "1") + item(5, 2, "2") + event(result("null", 5)));
}

TEST(StreamedCall, of_a_method_that_gives_one_result_is_one_event) {
  EXPECT_EQ(StreamedCalls{}.ask(post(request(1), kEvents)), kHead + event(result("19", 1)));
  EXPECT_EQ(StreamedCalls{}.ask(post(call("nothing", 2), kEvents)),
            kHead + event(R"({"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":2})"));
  EXPECT_EQ(StreamedCalls{}.ask(post(call("fails", 3, "[1]"), kEvents)),
            kHead + item(3, 0, "0") + event(R"({"jsonrpc":"2.0","error":{"code":7,"message":"as it is"},"id":3})"));
}

TEST(StreamedCall, that_waits_is_answered_when_it_ends) {
  StreamedCalls server;
  EXPECT_EQ(server.ask(post(call("wait", 1), kEvents)), kHead);
  server.waiting.answer(0, "done");
  server.turns();
  EXPECT_EQ(server.peer->take(), event(result("\"done\"", 1)));
  EXPECT_TRUE(server.peer->shut_down);
}

TEST(StreamedCall, is_waited_for_by_a_server_that_drains_and_stopped_when_its_time_is_up) {
  for (const bool in_time : {true, false}) {
    StreamedCalls server;
    EXPECT_EQ(server.ask(post(call("wait", 1), kEvents)), kHead);
    server.connection->drain();
    server.turns();
    EXPECT_TRUE(server.connection->busy());
    if (in_time) {
      server.waiting.answer(0, "done");
    } else {
      server.connection->stop_calls();
    }
    server.turns();
    const std::string last = server.peer->take();
    if (in_time) {
      EXPECT_EQ(last, event(result("\"done\"", 1)));
    } else {
      EXPECT_TRUE(last.starts_with(R"(data: {"jsonrpc":"2.0","error":{"code":-32009)")) << last;
    }
    EXPECT_TRUE(server.peer->shut_down);
  }
}

TEST(StreamedCall, may_be_as_large_as_any) {
  const std::string asked = call("greet", 1, R"([")" + std::string(100, 'x') + R"("])");
  Limits limits;
  limits.max_message_size = asked.size();
  StreamedCalls server{limits};
  EXPECT_EQ(server.ask(post(asked, kEvents)), kHead + event(result("\"hello " + std::string(100, 'x') + "\"", 1)));
}

TEST(StreamedCall, ends_with_its_connection) {
  StreamedCalls server;
  EXPECT_EQ(server.ask(post(call("wait", 1), kEvents)), kHead);
  server.peer->reset();
  server.turns();
  EXPECT_EQ(server.loop_context.stats.calls_in_flight, 0U);
}

TEST(StreamedCall, is_asked_for_by_the_first_type_that_is_known) {
  for (const std::string_view accept : {"application/json, text/event-stream", "text/html, application/json",
                                        "application/json;q=0.5, text/event-stream", "text/event-stream;q=0",
                                        "text/event-stream; Q=0.000 ;x=1", "text/event-stream;q=0, */*"}) {
    EXPECT_EQ(StreamedCalls{}.ask(post(request(1), "Accept: " + std::string{accept} + "\r\n")), ok(result("19", 1)))
        << accept;
  }
  for (const std::string_view accept :
       {"text/event-stream, application/json", "text/html, Text/Event-Stream;q=1", "*/*, text/event-stream",
        "application/json;q=0, text/event-stream; q=0.01", "text/event-stream;a=0"}) {
    EXPECT_EQ(StreamedCalls{}.ask(post(request(1), "Accept: " + std::string{accept} + "\r\n")),
              kHead + event(result("19", 1)))
        << accept;
  }
}

TEST(StreamedCall, is_one_request_and_all_else_is_answered_as_ever) {
  EXPECT_EQ(StreamedCalls{}.ask(post("[" + request(1) + "]", kEvents)), ok("[" + result("19", 1) + "]"));
  EXPECT_EQ(StreamedCalls{}.ask(post(R"({"jsonrpc":"2.0","method":"sum","params":[[1]]})", kEvents)),
            "HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_EQ(StreamedCalls{}.ask(post("{", kEvents)), ok(kParseError));
  EXPECT_EQ(StreamedCalls{}.ask(post("[]", kEvents) + post(request(2))), ok(kInvalid) + ok(result("19", 2)));
  EXPECT_EQ(StreamedCalls{}.ask(post("", kEvents)), ok(kParseError));
}

TEST(StreamedCall, with_a_wrong_credit_is_refused) {
  for (const std::string_view credit : {"0", "-1", "\"1\"", "null", "1.5"}) {
    const std::string given =
        R"({"jsonrpc":"2.0","method":"count","params":[3],"stream":)" + std::string{credit} + R"(,"id":5})";
    const std::string answered = StreamedCalls{}.ask(post(given, kEvents));
    EXPECT_EQ(answered,
              kHead + event(R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":5})"))
        << credit;
  }
}

TEST(StreamedCall, comes_whole_or_in_parts) {
  const std::string asked = post(call("count", 5, "[2]"), kEvents);
  const std::string expected = kHead + item(5, 0, "0") + item(5, 1, "1") + event(result("null", 5));
  for (std::size_t cut = 1; cut < asked.size(); ++cut) {
    StreamedCalls server;
    server.peer->send(asked.substr(0, cut));
    server.turns(8);
    server.peer->send(asked.substr(cut));
    server.turns();
    ASSERT_EQ(server.peer->take(), expected) << "cut at " << cut;
  }
}

TEST(StreamedCall, has_its_time_from_the_head) {
  StreamedCalls server;
  const std::string late = server.ask(post(call("wait", 1), std::string{kEvents} + "Wirecall-Timeout-Ms: 0\r\n"));
  EXPECT_TRUE(late.starts_with(kHead + R"(data: {"jsonrpc":"2.0","error":{"code":-32002)")) << late;
  EXPECT_TRUE(StreamedCalls{}
                  .ask(post(request(1), std::string{kEvents} + "Wirecall-Timeout-Ms: x\r\n"))
                  .starts_with("HTTP/1.1 400"));
}

TEST(StreamedCall, is_made_by_the_principal_of_its_head) {
  StreamedCalls server;
  server.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::vector<Principal>{
      {.name = "a", .tokens = {"secret"}, .call = {"count"}, .provide = {}, .publish = {}, .subscribe = {}}});
  const std::string known = std::string{kEvents} + "Authorization: Bearer secret\r\n";
  EXPECT_EQ(server.ask(post(call("count", 1, "[1]"), known)), kHead + item(1, 0, "0") + event(result("null", 1)));
  StreamedCalls other;
  other.loop_context.services.authority = server.loop_context.services.authority;
  EXPECT_EQ(other.ask(post(request(1), known)),
            kHead + event(R"({"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":1})"));
  EXPECT_TRUE(other.end != CloseReason::lost);
}

TEST(StreamedCall, ends_when_its_principal_is_removed) {
  StreamedCalls server;
  const auto know = [&](std::string token) {
    server.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::vector<Principal>{
        {.name = "a", .tokens = {std::move(token)}, .call = {">"}, .provide = {}, .publish = {}, .subscribe = {}}});
  };
  know("secret");
  const std::string known = std::string{kEvents} + "Authorization: Bearer secret\r\n";
  EXPECT_EQ(server.ask(post(call("wait", 1), known)), kHead);
  server.connection->authority_changed(false);
  server.turns();
  EXPECT_EQ(server.peer->take(), "");
  know("other");
  server.connection->authority_changed(false);
  server.turns();
  const std::string last = server.peer->take();
  EXPECT_TRUE(last.starts_with(R"(data: {"jsonrpc":"2.0","error":{"code":-32004,)")) << last;
  EXPECT_TRUE(server.peer->shut_down);
}

TEST(StreamedCall, is_never_idle) {
  StreamedCalls server;
  EXPECT_EQ(server.ask(post(call("wait", 1), kEvents)), kHead);
  for (int i = 0; i < 10; ++i) server.connection->end_if_idle(4);
  server.waiting.answer(0, "x");
  server.turns();
  EXPECT_EQ(server.peer->take(), event(result("\"x\"", 1)));
}

TEST(StreamedCall, is_refused_while_earlier_responses_are_due) {
  StreamedCalls server;
  EXPECT_EQ(server.ask(post(call("wait", 1)) + post(call("count", 2, "[1]"), kEvents)), "");
  server.waiting.answer(0, "x");
  server.turns();
  const std::string answered = server.peer->take();
  EXPECT_TRUE(answered.starts_with(ok(result("\"x\"", 1)) + "HTTP/1.1 400")) << answered;
}

// The provider is the test's end of a connection at the same broker.
TEST(StreamedCall, of_a_method_that_a_client_provides_comes_item_by_item) {
  StreamedCalls server;
  broker::Router router{server.registry, server.limits, server.loop_context};
  server.loop_context.services.broker = &router;
  test::RecordingSink sink;
  sink.can = rpc::PeerCapabilities::all();
  rpc::Dispatcher provider{server.registry, sink, server.limits, server.loop_context};
  const auto say = [&](std::string_view message) {
    const test::PaddedText frame{message};
    Received received;
    static_cast<void>(read_message(frame.view(), server.limits, true, received));
    if (received.kind == MessageKind::response) {
      EXPECT_TRUE(provider.response(received));
    } else {
      provider.handle(received);
    }
  };
  say(test::request("rpc.register", R"({"method":"made"})"));
  static_cast<void>(sink.take());
  EXPECT_EQ(server.ask(post(call("made", 5), kEvents)), kHead);
  const std::string asked = sink.take();
  const Value relayed = Value::parse(asked).value();
  const std::string name = to_json(relayed["id"]);
  EXPECT_NE(to_json(relayed["stream"]), "null") << asked;
  for (int i = 0; i < 2; ++i) {
    say(R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":)" + name + R"(,"seq":)" + std::to_string(i) +
        R"(,"value":)" + std::to_string(i * 7) + "}}");
  }
  server.turns();
  EXPECT_EQ(server.peer->take(), item(5, 0, "0") + item(5, 1, "7"));
  say(R"({"jsonrpc":"2.0","result":"end","id":)" + name + "}");
  server.turns();
  EXPECT_EQ(server.peer->take(), event(result("\"end\"", 5)));
  EXPECT_TRUE(server.peer->shut_down);
  server.connection.reset();
  server.former.reset();
  provider.abandon();
}

}  // namespace
}  // namespace wirecall::net
