// What connections may hold together: those of one principal or source, those of peers that have not said who they are,
// and what waits for callers that have ended their side.
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/access.hpp"
#include "rpc/accounts.hpp"
#include "tests/broker/world.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::Client;
using test::id_of;
using test::notification;
using test::request;
using test::result_reply;
using test::World;

bool exceeds(std::string_view reply, std::string_view limit) {
  return reply.find("\"code\":-32005") != std::string_view::npos &&
         reply.find("\"limit\":\"" + std::string{limit} + "\"") != std::string_view::npos;
}

// ---- callers that have ended their side ----

class HalfClosed : public testing::Test {
 protected:
  HalfClosed() { provider.provide("slow"); }
  void call(Client& caller, int id) { caller.send(request("slow", "[1]", std::to_string(id))); }

  World world{Limits{.half_closed_calls = 8, .half_closed_ms = 1000}};
  Client provider{world};
  Client a{world};
  Client b{world};
};

TEST_F(HalfClosed, calls_are_answered_while_the_time_lasts) {
  call(a, 1);
  const std::string asked = provider.received();
  a.dispatcher->peer_ended();
  world.advance(999ms);
  EXPECT_EQ(a.received(), "");
  provider.send(R"({"jsonrpc":"2.0","result":7,"id":)" + id_of(asked) + "}");
  EXPECT_EQ(a.received(), result_reply("7"));
}

TEST_F(HalfClosed, calls_end_with_the_time_and_their_provider_is_told) {
  call(a, 1);
  const std::string asked = provider.received();
  call(b, 2);
  static_cast<void>(provider.received());
  a.dispatcher->peer_ended();
  world.advance(1010ms);
  EXPECT_NE(a.received().find("\"code\":-32002"), std::string::npos);
  EXPECT_EQ(provider.received(), test::cancel_notification(id_of(asked)));
  EXPECT_EQ(b.received(), "") << "who has not ended its side waits as long as it wants to";
  world.advance(20s);
  EXPECT_EQ(b.received(), "");
}

TEST_F(HalfClosed, a_shorter_time_of_the_calls_own_holds) {
  a.send(R"({"jsonrpc":"2.0","method":"slow","id":1,"timeout_ms":100})");
  a.dispatcher->peer_ended();
  world.advance(110ms);
  EXPECT_NE(a.received().find("\"code\":-32002"), std::string::npos);
}

TEST_F(HalfClosed, one_caller_keeps_half_of_what_is_left_and_its_oldest_calls) {
  for (int i = 1; i <= 10; ++i) call(a, i);
  a.dispatcher->peer_ended();
  const std::string refused = a.received();
  for (int i = 1; i <= 10; ++i) {
    EXPECT_EQ(refused.find("\"id\":" + std::to_string(i) + "}") == std::string::npos, i <= 4) << i << ": " << refused;
  }
  EXPECT_TRUE(exceeds(refused, "half_closed_calls")) << refused;
  call(b, 1);
  b.dispatcher->peer_ended();
  EXPECT_EQ(b.received(), "") << "there is room for another";
  a.leave();
  Client c{world};
  for (int i = 1; i <= 4; ++i) call(c, i);
  c.dispatcher->peer_ended();
  EXPECT_EQ(c.received(), "") << "what was kept for one that has gone is free again";
}

TEST_F(HalfClosed, calls_of_the_servers_own_methods_count_as_well) {
  World own{Limits{.half_closed_calls = 8, .half_closed_ms = 1000}};
  std::vector<ReplySink> sinks;
  own.registry.method("waits", [] {});
  own.registry.use([&sinks](Call& call, const Next&) { sinks.push_back(call.detach()); });
  Client caller{own};
  for (int i = 1; i <= 6; ++i) caller.send(request("waits", "[]", std::to_string(i)));
  caller.dispatcher->peer_ended();
  EXPECT_TRUE(exceeds(caller.received(), "half_closed_calls"));
  EXPECT_EQ(caller.dispatcher->in_flight(), 4U);
  own.advance(1000ms);
  EXPECT_NE(caller.received().find("\"code\":-32002"), std::string::npos);
  EXPECT_EQ(caller.dispatcher->in_flight(), 0U);
}

// ---- one principal, or source ----

TEST(PrincipalRate, outlasts_connections_and_is_of_one_source) {
  World world{Limits{.principal_rate = 2}};
  Client a{world};
  a.sink->source = "10.0.0.1";
  EXPECT_EQ(a.ask(request("rpc.ping")), result_reply("\"pong\""));
  EXPECT_EQ(a.ask(request("rpc.ping")), result_reply("\"pong\""));
  EXPECT_TRUE(exceeds(a.ask(request("rpc.ping")), "principal_rate"));
  a.leave();
  a.connect();
  a.sink->source = "10.0.0.1";
  const std::string refused = a.ask(request("rpc.ping"));
  EXPECT_TRUE(exceeds(refused, "principal_rate")) << "a new connection brings no new burst";
  EXPECT_NE(refused.find("\"retry_after_ms\":500"), std::string::npos) << refused;
  Client b{world};
  b.sink->source = "10.0.0.2";
  EXPECT_EQ(b.ask(request("rpc.ping")), result_reply("\"pong\""));
  world.advance(500ms);
  EXPECT_EQ(a.ask(request("rpc.ping")), result_reply("\"pong\""));
}

const Principal kRobot{.name = "robot",
                       .tokens = {"robot-token"},
                       .call = {">"},
                       .provide = {">"},
                       .publish = {">"},
                       .subscribe = {">"},
                       .admin = false};

TEST(PrincipalRate, is_of_the_principal_wherever_it_comes_from) {
  World world{Limits{.principal_rate = 3}};
  Principal desk = kRobot;
  desk.name = "desk";
  desk.tokens = {"desk-token"};
  world.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::vector{kRobot, desk});
  const auto hello = [](std::string_view token) {
    return request("rpc.hello", R"({"token":")" + std::string{token} + "\"}");
  };
  Client a{world};
  a.sink->source = "10.0.0.1";
  EXPECT_NE(a.ask(hello("robot-token")).find("\"result\""), std::string::npos);
  Client b{world};
  b.sink->source = "10.0.0.2";
  EXPECT_NE(b.ask(hello("robot-token")).find("\"result\""), std::string::npos);
  Client c{world};
  c.sink->source = "10.0.0.1";
  EXPECT_NE(c.ask(hello("desk-token")).find("\"result\""), std::string::npos);
  for (int i = 0; i < 3; ++i) EXPECT_EQ((i % 2 == 0 ? a : b).ask(request("rpc.ping")), result_reply("\"pong\"")) << i;
  EXPECT_TRUE(exceeds(a.ask(request("rpc.ping")), "principal_rate"));
  EXPECT_TRUE(exceeds(b.ask(request("rpc.ping")), "principal_rate"));
  EXPECT_EQ(c.ask(request("rpc.ping")), result_reply("\"pong\"")) << "another principal from the same address";
}

TEST(PrincipalCalls, the_connection_with_the_most_gives_way_to_another_of_its_source) {
  World world{Limits{.principal_calls = 4}};
  Client provider{world};
  provider.sink->source = "p";
  provider.provide("slow");
  Client a{world};
  Client b{world};
  Client c{world};
  a.sink->source = b.sink->source = "one";
  c.sink->source = "two";
  for (int i = 1; i <= 4; ++i) a.send(request("slow", "[1]", std::to_string(i)));
  EXPECT_EQ(a.received(), "");
  EXPECT_TRUE(exceeds(a.ask(request("slow", "[1]", "5")), "principal_calls")) << "itself it gives no way";
  world.advance(10ms);  // now and then it is looked for
  EXPECT_EQ(b.ask(request("slow", "[1]", "1")), "");
  const std::string given_up = a.received();
  EXPECT_TRUE(exceeds(given_up, "principal_calls")) << given_up;
  EXPECT_NE(given_up.find("\"id\":4}"), std::string::npos) << "its last: " << given_up;
  EXPECT_EQ(b.ask(request("slow", "[1]", "2")), "");
  EXPECT_NE(a.received().find("\"id\":3}"), std::string::npos);
  EXPECT_TRUE(exceeds(b.ask(request("slow", "[1]", "3")), "principal_calls")) << "both have as many";
  EXPECT_EQ(a.received(), "");
  EXPECT_EQ(c.ask(request("slow", "[1]", "1")), "") << "another source";
  a.leave();
  EXPECT_EQ(b.ask(request("slow", "[1]", "4")), "") << "what has gone counts no more";
  EXPECT_EQ(b.ask(request("slow", "[1]", "5")), "");
}

TEST(PrincipalRetained, within_a_principal_the_client_of_most_gives_way_to_one_of_less) {
  for (const Limits& limits : {Limits{.retained_bytes = 10'000, .principal_retained_bytes = 9000},
                               Limits{.retained_bytes = 9000, .principal_retained_bytes = 9000}}) {
    World world{limits};
    Client a{world};
    Client b{world};
    static_cast<void>(a.ask(request("rpc.hello", R"({"name":"a"})")));
    static_cast<void>(b.ask(request("rpc.hello", R"({"name":"b"})")));
    const auto keep = [&](Client& who, std::string_view topic, int i) {
      return who.ask(request("rpc.publish", R"({"topic":")" + std::string{topic} + std::to_string(i) +
                                                R"(","params":[")" + std::string(500, 'x') + R"("],"retain":true})"));
    };
    int kept = 0;
    while (keep(a, "a.", kept) == result_reply("0") && kept < 100) ++kept;
    EXPECT_GE(kept, 9);
    a.leave();  // what it retains outlives it
    int others = 0;
    while (keep(b, "b.", others) == result_reply("0") && others < 100) ++others;
    EXPECT_GE(others, kept / 2 - 1) << "the newcomer has a half";
    EXPECT_LE(others, kept / 2 + 1) << "and no more";
    a.connect();
    static_cast<void>(a.ask(request("rpc.hello", R"({"name":"a"})")));
    EXPECT_EQ(keep(a, "a.", kept - 1), result_reply("0")) << "its last is still there to be replaced";
    EXPECT_EQ(keep(b, "b.", 0), result_reply("0")) << "in place of its own";
  }
}

TEST(PrincipalRetained, a_bounded_number_of_events_gives_way_to_one) {
  World world{Limits{.retained_bytes = 4'000'000, .principal_retained_bytes = 4'000'000}};
  Client a{world};
  Client b{world};
  a.sink->source = "one";
  b.sink->source = "two";
  const auto keep = [](Client& who, const std::string& topic, std::size_t bytes) {
    return who.ask(request("rpc.publish", R"({"topic":")" + topic + R"(","params":[")" + std::string(bytes, 'x') +
                                              R"("],"retain":true})"));
  };
  int small = 0;
  while (keep(a, "a." + std::to_string(small), 1) == result_reply("0") && small < 20'000) ++small;
  ASSERT_GT(small, 9000);
  ASSERT_LT(small, 20'000);
  int tries = 0;
  while (tries < 20 && keep(b, "b", 1'500'000) != result_reply("0")) ++tries;
  EXPECT_GE(tries, 1);
  EXPECT_LE(tries, 3) << "each time 2,048";
}

TEST(PrincipalRetained, the_owner_of_most_gives_way_to_one_of_less) {
  World world{Limits{.retained_bytes = 10'000, .principal_retained_bytes = 9000}};
  Client a{world};
  Client b{world};
  a.sink->source = "one";
  b.sink->source = "two";
  const std::string text(500, 'x');
  const auto keep = [&](Client& who, std::string_view topic, int i) {
    return who.ask(request("rpc.publish", R"({"topic":")" + std::string{topic} + std::to_string(i) +
                                              R"(","params":[")" + text + R"("],"retain":true})"));
  };
  int kept = 0;
  while (keep(a, "a.", kept) == result_reply("0") && kept < 100) ++kept;
  EXPECT_GE(kept, 9);
  EXPECT_TRUE(exceeds(keep(a, "a.", kept), "principal_retained_bytes"));
  // More than is left for it, and as much as the other one: the oldest of that go.
  int others = 0;
  while (keep(b, "b.", others) == result_reply("0") && others < 100) ++others;
  EXPECT_GE(others, kept / 2 - 1);
  EXPECT_TRUE(exceeds(keep(b, "b.", others), "retained_bytes"));
  const auto last = [&](std::string_view topic) {
    Client reader{world};
    const std::string got =
        reader.ask(request("rpc.subscribe", R"({"topic":")" + std::string{topic} + R"(","last":true})"));
    return got.find(R"("method":)") != std::string::npos;
  };
  EXPECT_FALSE(last("a.0")) << "the oldest has gone";
  EXPECT_TRUE(last("a." + std::to_string(kept - 1)));
  EXPECT_TRUE(last("b.0"));
  // Who publishes to another's topic has it from then on.
  EXPECT_EQ(keep(a, "b.", 0), result_reply("0"));
  EXPECT_EQ(keep(b, "b.", others), result_reply("0"));
}

TEST(Accounts, are_kept_as_long_as_somebody_uses_them_or_their_rate_remembers) {
  rpc::Accounts accounts;
  const std::shared_ptr<rpc::Account> used = accounts.of("used", 0ns);
  accounts.of("busy", 0ns)->rate_due = 5s;
  for (int i = 0; i < 10'000; ++i) static_cast<void>(accounts.of("n" + std::to_string(i), 1s));
  EXPECT_LT(accounts.size(), 200U);
  EXPECT_EQ(accounts.of("used", 1s), used);
  EXPECT_EQ(accounts.of("busy", 1s)->rate_due, 5s);
}

TEST(Accounts, calls_in_progress_go_where_their_connection_goes) {
  const auto one = std::make_shared<rpc::Account>();
  const auto two = std::make_shared<rpc::Account>();
  {
    rpc::CallCount calls;
    ++calls;
    calls.use(one);
    calls += 2;
    EXPECT_EQ(one->calls, 3U);
    calls.use(two);
    EXPECT_EQ(one->calls, 0U);
    EXPECT_EQ(two->calls, 3U);
    --calls;
    EXPECT_EQ(calls.of_account(), 2U);
  }
  EXPECT_EQ(two->calls, 0U);
}

// ---- peers that have not said who they are ----

class Unidentified : public testing::Test {
 protected:
  Unidentified() {
    world.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::vector{kRobot});
    for (Client* const one : {&a, &b, &c}) one->dispatcher->await_identity();
  }

  World world{Limits{.unidentified_bytes = 100'000}};
  Client a{world};
  Client b{world};
  Client c{world};
};

TEST_F(Unidentified, peers_hold_so_much_together_and_the_one_with_most_is_closed) {
  a.dispatcher->hold_unidentified(50'000);
  b.dispatcher->hold_unidentified(40'000);
  EXPECT_EQ(a.sink->closes + b.sink->closes, 0);
  c.dispatcher->hold_unidentified(20'000);
  EXPECT_EQ(a.sink->closes, 1) << "not the newcomer";
  EXPECT_EQ(b.sink->closes + c.sink->closes, 0);
  EXPECT_EQ(world.loop_context.budgets.unidentified.bytes(), 60'000U);
  b.leave();
  EXPECT_EQ(world.loop_context.budgets.unidentified.bytes(), 20'000U);
}

TEST_F(Unidentified, peers_count_no_more_once_they_have_said_who_they_are) {
  a.dispatcher->hold_unidentified(50'000);
  EXPECT_TRUE(a.dispatcher->is_unidentified());
  EXPECT_NE(a.ask(request("rpc.hello", R"({"token":"robot-token"})")).find("\"result\""), std::string::npos);
  EXPECT_FALSE(a.dispatcher->is_unidentified());
  EXPECT_EQ(world.loop_context.budgets.unidentified.bytes(), 0U);
  a.dispatcher->hold_unidentified(200'000);
  EXPECT_EQ(world.loop_context.budgets.unidentified.bytes(), 0U);
}

TEST_F(Unidentified, a_peer_that_leaves_its_answers_unread_is_closed) {
  a.sink->waiting = 64 * 1024;
  EXPECT_EQ(a.ask(request("rpc.ping")), result_reply("\"pong\""));
  a.sink->waiting += 1;
  EXPECT_EQ(a.ask(request("rpc.ping")), "");
  EXPECT_EQ(a.sink->closes, 1);
}

}  // namespace
}  // namespace wirecall
