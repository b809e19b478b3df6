// Slow and hostile peers that speak HTTP, and how much one of them may have in flight.
#include <chrono>
#include <cstddef>
#include <gtest/gtest.h>
#include <string>

#include "tests/http/served.hpp"
#include "wirecall/stream.hpp"

namespace wirecall::net {
namespace {

using std::chrono::milliseconds;

TEST(HttpSlow, heads_end_at_the_header_timeout_whatever_they_bring) {
  Http server;
  server.ask("GET / HTTP/1.1\r\n");
  for (int i = 0; i < 9; ++i) {
    server.pass(milliseconds{1000});
    server.peer->send("X: y\r\n");
  }
  EXPECT_EQ(server.peer->take(), "");
  server.pass(milliseconds{1001});
  EXPECT_EQ(server.peer->take(),
            text("408 Request Timeout", "Request Timeout: the request did not come in time\n", kClose));
  server.pass(milliseconds{1100});
  EXPECT_TRUE(server.peer->closed);
}

TEST(HttpSlow, bodies_go_on_as_long_as_they_bring_something) {
  Http server;
  server.ask("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n");
  for (int i = 0; i < 5; ++i) {
    server.peer->send(std::string(4096, ' '));
    server.pass(milliseconds{9990});
  }
  EXPECT_EQ(server.peer->take(), "");
  server.pass(milliseconds{20'000});
  EXPECT_TRUE(server.peer->take().starts_with("HTTP/1.1 408 "));
}

TEST(HttpSlow, connections_that_are_between_requests_have_no_such_timeout) {
  Http server;
  server.ask(post(request(1)));
  server.pass(milliseconds{60'000});
  EXPECT_EQ(server.ask(post(request(2))), ok(result("19", 2)));
}

TEST(HttpSlow, readers_are_no_longer_read_from_and_lose_nothing) {
  Limits limits;
  limits.soft_output = 4096;
  Http server{3, limits};
  server.peer->window = 0;
  std::string requests;
  std::string expected;
  for (int i = 0; i < 50; ++i) {
    requests += post(call("big", i, "[1000]"));
    expected += ok(result("\"" + std::string(1000, 'x') + "\"", i));
  }
  EXPECT_EQ(server.ask(requests), "");
  EXPECT_LT(server.connection->output_bytes(), 4096U + 2000U);
  server.peer->window = std::size_t{1} << 40;
  server.turns(500);
  EXPECT_EQ(server.peer->take(), expected);
}

TEST(HttpHostile, pipelining_behind_a_call_that_waits_is_bounded_and_complete) {
  Http server{5};
  std::string requests = post(call("wait", 0));
  std::string expected = ok(result("\"a\"", 0));
  for (int i = 1; i <= 2000; ++i) {
    requests += post(request(i));
    expected += ok(result("19", i));
  }
  EXPECT_EQ(server.ask(requests), "");
  server.waiting.answer(0, "a");
  server.turns(500);
  EXPECT_EQ(server.peer->take(), expected);
}

TEST(HttpHostile, half_close_gets_its_answers_and_then_the_end) {
  for (unsigned seed = 1; seed < 20; ++seed) {
    Http server{seed};
    server.peer->send(post(call("wait", 1)) + post(request(2)));
    server.peer->finish();
    server.turns();
    EXPECT_FALSE(server.end.has_value());
    server.waiting.answer(0, "a");
    server.turns();
    EXPECT_EQ(server.peer->take(), ok(result("\"a\"", 1)) + ok(result("19", 2)));
    EXPECT_EQ(server.end, CloseReason::finished);
  }
}

TEST(HttpHostile, an_end_within_a_request_is_answered_and_makes_no_call) {
  for (const std::string& part : {post(request(1)).substr(0, 30), post(request(1)).substr(0, 100)}) {
    Http server;
    server.peer->send(part);
    server.peer->finish();
    server.turns();
    EXPECT_EQ(server.peer->take(),
              text("400 Bad Request", "Bad Request: the connection ended within the request\n", kClose));
    EXPECT_TRUE(server.peer->closed);
  }
}

TEST(HttpHostile, a_reset_while_a_call_waits_ends_the_session) {
  Http server;
  server.ask(post(call("wait", 1)) + post(request(2)));
  server.peer->reset();
  server.turns();
  EXPECT_EQ(server.end, CloseReason::lost);
  server.waiting.answer(0, "late");
  server.turns();
}

// A connection may have so many calls in flight, however many requests of HTTP bring them.
class HttpInFlight : public testing::Test {
 protected:
  static Limits ten_calls() {
    Limits limits;
    limits.in_flight = 10;
    limits.hard_output = 64 * 1024;
    return limits;
  }
  static std::string refused(int id) {
    return R"({"jsonrpc":"2.0","error":{"code":-32005,"message":"Limit exceeded","data":{"reason":"too many calls of )"
           R"(this connection are in flight","origin":"local","delivered":"no","limit":"in_flight"}},"id":)" +
           std::to_string(id) + "}";
  }

  Http server{1, ten_calls()};
};

TEST_F(HttpInFlight, counts_the_calls_of_all_requests_together) {
  const std::string four =
      "[" + call("wait", 1) + "," + call("wait", 2) + "," + call("wait", 3) + "," + call("wait", 4) + "]";
  EXPECT_EQ(server.ask(post(four) + post(four) + post(four)), "");
  EXPECT_EQ(server.waiting.calls.size(), 10U);
  EXPECT_EQ(server.ask(post(request(5))), "") << "it has its place behind them";
  for (std::size_t i = 0; i < 10; ++i) server.waiting.answer(i, "a");
  server.turns();
  const std::string a = "\"a\"";
  const std::string all = "[" + result(a, 1) + "," + result(a, 2) + "," + result(a, 3) + "," + result(a, 4) + "]";
  EXPECT_EQ(server.peer->take(),
            ok(all) + ok(all) +
                ok("[" + result(a, 1) + "," + result(a, 2) + "," + refused(3) + "," + refused(4) + "]") +
                ok(refused(5)));
  EXPECT_EQ(server.ask(post(request(6))), ok(result("19", 6))) << "there is room again";
}

TEST_F(HttpInFlight, counts_notifications_too_and_forgets_those_that_are_done) {
  const std::string notification = R"({"jsonrpc":"2.0","method":"wait"})";
  for (std::size_t round = 0; round < 3; ++round) {
    std::string requests;
    std::string empty;
    for (int i = 0; i < 11; ++i) {
      requests += post(notification);
      empty += "HTTP/1.1 204 No Content\r\n\r\n";
    }
    EXPECT_EQ(server.ask(requests + post(request(1))), empty + ok(refused(1)));
    EXPECT_EQ(server.waiting.calls.size(), 10 * (round + 1));
    for (std::size_t i = 0; i < 10; ++i) server.waiting.answer(10 * round + i, "a");
    server.turns();
    EXPECT_FALSE(server.connection->busy());
  }
}

TEST_F(HttpInFlight, bounds_what_is_gathered_for_all_requests_together) {
  const std::string item(40'000, 'x');
  server.registry.method("gather", [&]() -> Stream<std::string> {
    co_yield item;
    static_cast<void>(co_await server.waiting.wait());
  });
  EXPECT_EQ(server.ask(post(call("gather", 1)) + post(call("gather", 2))), "");
  ASSERT_EQ(server.waiting.calls.size(), 1U);
  server.waiting.answer(0, "");
  server.turns(500);
  const std::string too_much =
      R"({"jsonrpc":"2.0","error":{"code":-32005,"message":"Limit exceeded","data":{"reason":"too many items are being )"
      R"(gathered for this connection","origin":"local","delivered":"maybe","limit":"hard_output"}},"id":2})";
  EXPECT_EQ(server.peer->take(), ok(result("[\"" + item + "\"]", 1)) + ok(too_much));
}

}  // namespace
}  // namespace wirecall::net
