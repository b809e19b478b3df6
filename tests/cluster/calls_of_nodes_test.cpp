// Calls across brokers on a simulated bus: registered at one, made at another.
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/cluster/cluster_fixture.hpp"
#include "wirecall/caller.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

TEST_F(ClusterTest, AMethodOfAnotherNodeIsCalledAndAnswered) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("gpu.add", "[1,2]", "\"x\""));
  advance(kHop);
  const std::string asked = provider.received();
  EXPECT_EQ(asked, request("gpu.add", "[1,2]", id_of(asked)));
  provider.send(result_reply("3", id_of(asked)));
  advance(kHop);
  EXPECT_EQ(caller.received(), result_reply("3", "\"x\""));
}

TEST_F(ClusterTest, AnErrorOfTheProviderComesAsItIs) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("gpu.add", "[1,2]"));
  advance(kHop);
  const std::string id = id_of(provider.received());
  provider.send(error_reply(7, "out of paper", R"({"tray":2})", id));
  advance(kHop);
  EXPECT_EQ(caller.received(), error_reply(7, "out of paper", R"({"tray":2})"));
}

TEST_F(ClusterTest, AFreeProviderOfTheOwnNodeIsPreferredAndThenAnotherNodeIsAsked) {
  NodeClient own{*a};
  own.provide("gpu.add", R"(,"concurrency":1)");
  NodeClient other{*b};
  other.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("gpu.add", "[1]", "1"));
  caller.send(request("gpu.add", "[2]", "2"));
  advance(kHop);
  EXPECT_NE(own.received().find("[1]"), std::string::npos);
  EXPECT_NE(other.received().find("[2]"), std::string::npos);
}

TEST_F(ClusterTest, ACallIsCancelledAtTheOtherNode) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("gpu.add", "[1,2]", "\"x\""));
  advance(kHop);
  const std::string asked = provider.received();
  caller.send(cancel_notification("\"x\""));
  EXPECT_EQ(caller.received(), cancelled("\"x\""));
  advance(kHop);
  EXPECT_EQ(provider.received(), cancel_notification(id_of(asked)));
  EXPECT_EQ(b->router.relayed_calls().in_use(), 0U);
}

TEST_F(ClusterTest, ACallThatRunsOutOfTimeEndsAtBothNodes) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(R"({"jsonrpc":"2.0","method":"gpu.add","params":[1],"id":1,"timeout_ms":500})");
  advance(kHop);
  const std::string asked = provider.received();
  EXPECT_NE(asked.find("\"timeout_ms\":"), std::string::npos);
  advance(510ms);
  EXPECT_EQ(caller.received(), error_reply(-32002, "Timeout",
                                           R"({"reason":"the call was not answered in time","origin":"remote",)"
                                           R"("delivered":"maybe"})"));
  EXPECT_EQ(provider.received(), cancel_notification(id_of(asked)));
  EXPECT_EQ(a->router.relayed_calls().in_use(), 0U);
  EXPECT_EQ(b->router.relayed_calls().in_use(), 0U);
}

TEST_F(ClusterTest, AStreamComesItemByItemAsItsCallerTakesIt) {
  NodeClient provider{*b};
  provider.provide("numbers");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(R"({"jsonrpc":"2.0","method":"numbers","id":7,"stream":2})");
  advance(kHop);
  const std::string asked = provider.received();
  const std::string id = id_of(asked);
  EXPECT_NE(asked.find("\"stream\":2"), std::string::npos) << asked;
  const auto item = [&](std::string_view of, int number) {
    return R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":)" + std::string{of} + R"(,"value":)" +
           std::to_string(number) + "}}";
  };
  provider.send(item(id, 1));
  provider.send(item(id, 2));
  advance(kHop);
  EXPECT_EQ(caller.received(), item("7", 1) + "\n" + item("7", 2));
  EXPECT_EQ(provider.received(), "");
  caller.send(R"({"jsonrpc":"2.0","method":"rpc.credit","params":{"id":7,"n":3}})");
  advance(kHop);
  EXPECT_NE(provider.received().find("\"n\":3"), std::string::npos);
  provider.send(item(id, 3));
  provider.send(result_reply("null", id));
  advance(kHop);
  EXPECT_EQ(caller.received(), item("7", 3) + "\n" + result_reply("null", "7"));
}

TEST_F(ClusterTest, ACallThatComesTooLateForItsProviderIsMadeOnceElsewhere) {
  BrokerNode c{network, scheduler, "c", 0x3000000000};
  NodeClient first{*b};
  first.provide("gpu.add");
  NodeClient second{c};
  second.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  // Both go at the same time as the calls are on their way, but for one of them.
  caller.send(request("gpu.add", "[1]", "1"));
  caller.send(request("gpu.add", "[2]", "2"));
  first.leave();
  advance(kHop);
  std::string asked = second.received();
  EXPECT_NE(asked.find("[1]"), std::string::npos);
  EXPECT_NE(asked.find("[2]"), std::string::npos);
}

TEST_F(ClusterTest, WhatComesFromANodeIsNeverPassedOn) {
  BrokerNode c{network, scheduler, "c", 0x3000000000};
  NodeClient provider{c};
  provider.provide("gpu.add");
  NodeClient leaving{*b};
  leaving.provide("gpu.add", R"(,"policy":"last")");
  advance(kMeet);
  NodeClient caller{*a};
  caller.send(request("gpu.add", "[1]", "1"));
  leaving.leave();
  advance(kHop);
  // Whichever was asked, b has not asked c.
  EXPECT_EQ(b->router.relayed_calls().in_use(), 0U);
}

TEST_F(ClusterTest, ACallThatRunsOutOfTimeWhileItWaitsAtTheOtherNodeWasNotDelivered) {
  NodeClient provider{*b};
  provider.provide("gpu.add", R"(,"concurrency":1)");
  NodeClient caller{*a};
  NodeClient other{*b};
  advance(kMeet);
  other.send(request("gpu.add", "[0]"));
  caller.send(R"({"jsonrpc":"2.0","method":"gpu.add","params":[1],"id":1,"timeout_ms":500})");
  caller.send(R"({"jsonrpc":"2.0","method":"gpu.add","params":[2],"id":2})");
  advance(505ms);
  EXPECT_EQ(caller.received(), error_reply(-32002, "Timeout",
                                           R"({"reason":"the call was not answered in time","origin":"remote",)"
                                           R"("delivered":"no"})"));
}

TEST_F(ClusterTest, AStreamThatIsMadeElsewhereHasAllItsCredit) {
  BrokerNode c{network, scheduler, "c", 0x3000000000};
  NodeClient first{*b};
  first.provide("numbers");
  NodeClient second{c};
  second.provide("numbers");
  NodeClient caller{*a};
  advance(kMeet);
  for (const std::string_view id : {"1", "2"})
    caller.send(R"({"jsonrpc":"2.0","method":"numbers","stream":2,"id":)" + std::string{id} + "}");
  first.leave();
  advance(kHop);
  ASSERT_EQ(second.sink.messages.size(), 2U);
  for (const std::string& asked : second.sink.messages) EXPECT_NE(asked.find("\"stream\":2"), std::string::npos);
}

TEST_F(ClusterTest, AMessageLargerThanTheBusTakesComesInPieces) {
  network.payload_bytes_max = 1000;
  NodeClient provider{*b};
  provider.provide("echo");
  NodeClient caller{*a};
  advance(kMeet);
  const std::string long_text(10'000, 'x');
  caller.send(request("echo", "[\"" + long_text + "\"]"));
  advance(kHop);
  const std::string asked = provider.received();
  EXPECT_NE(asked.find(long_text), std::string::npos);
  provider.send(result_reply('"' + long_text + '"', id_of(asked)));
  advance(kHop);
  EXPECT_EQ(caller.received(), result_reply('"' + long_text + '"'));
}

TEST_F(ClusterTest, ManyCallsOfOneTurnLeaveAsOneMessage) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  const std::uint64_t before = network.published;
  for (int i = 0; i != 100; ++i) caller.send(request("gpu.add", "[1]", std::to_string(i)));
  advance(200us);
  EXPECT_EQ(network.published - before, 1U);
  EXPECT_EQ(provider.sink.messages.size(), 100U);
}

TEST_F(ClusterTest, AHandlerDoesNotCallItsCallerAtAnotherNode) {
  SimulatedNetwork other{scheduler};
  BrokerNode d{other, scheduler, "d", 0x4000000000};
  int refused = 0;
  d.registry.method("own.ask", [&refused](Context context) -> Task<int> {
    const Caller caller{context};
    caller.notify("own.note", 1);
    try {
      static_cast<void>(co_await caller.call<int>("own.note", 1));
    } catch (const Error& error) {
      refused = error.code();
    }
    co_return 2;
  });
  int noted = 0;
  BrokerNode e{other, scheduler, "e", 0x5000000000};
  e.registry.method("own.note", [&noted](int) { return ++noted; });
  NodeClient caller{e};
  advance(kMeet);
  caller.send(request("own.ask", "[]"));
  advance(kHop);
  EXPECT_EQ(caller.received(), result_reply("2"));
  EXPECT_EQ(refused, -32001);
  EXPECT_EQ(noted, 0);
}

TEST_F(ClusterTest, AMethodOfTheProcessItselfIsCalledFromOtherNodes) {
  SimulatedNetwork other{scheduler};
  BrokerNode d{other, scheduler, "d", 0x4000000000};
  d.registry.method("own.add", [](std::int64_t x, std::int64_t y) { return x + y; });
  BrokerNode e{other, scheduler, "e", 0x5000000000};
  NodeClient caller{e};
  advance(kMeet);
  caller.send(request("own.add", "[1,2]"));
  advance(kHop);
  EXPECT_EQ(caller.received(), result_reply("3"));
}

TEST_F(ClusterTest, ByHashACallStaysWithItsProviderThoughOthersComeAtAnotherNode) {
  constexpr std::string_view kByUser = R"(,"policy":"hash:user")";
  std::vector<std::unique_ptr<NodeClient>> providers;
  for (int i = 0; i != 3; ++i) {
    providers.push_back(std::make_unique<NodeClient>(*a));
    providers.back()->provide("cart", kByUser);
  }
  NodeClient caller{*a};
  // The index of who is asked; 3 for one at the other node.
  const auto asked_for = [&](int user) {
    caller.send(request("cart", R"({"user":)" + std::to_string(user) + "}"));
    std::size_t asked = 0;
    while (asked != providers.size() && providers[asked]->received().empty()) ++asked;
    return asked;
  };
  std::vector<std::size_t> before;
  for (int user = 0; user != 64; ++user) before.push_back(asked_for(user));
  EXPECT_EQ(std::set<std::size_t>(before.begin(), before.end()).size(), 3U);
  NodeClient there{*b};
  there.provide("cart", kByUser);
  advance(kMeet);
  std::size_t gone = 0;
  for (int user = 0; user != 64; ++user) {
    const std::size_t asked = asked_for(user);
    if (asked == 3) {
      ++gone;
    } else {
      EXPECT_EQ(asked, before[static_cast<std::size_t>(user)]) << user;
    }
  }
  EXPECT_GT(gone, 0U);
  EXPECT_LT(gone, 48U);
}

TEST_F(ClusterTest, ACallToAClientOfAnotherNodeIsThatOnesAlone) {
  NodeClient first{*b};
  NodeClient second{*b};
  for (NodeClient* const one : {&first, &second}) {
    const std::string name = one == &first ? "one" : "two";
    static_cast<void>(one->ask(request("rpc.hello", R"({"name":")" + name + "\"}")));
    one->provide("gpu.add");
  }
  NodeClient caller{*a};
  advance(kMeet);
  for (int i = 0; i != 4; ++i)
    caller.send(R"({"jsonrpc":"2.0","method":"gpu.add","params":[1],"to":"two","id":)" + std::to_string(i) + "}");
  caller.send(R"({"jsonrpc":"2.0","method":"gpu.add","params":[1],"to":"two"})");
  advance(kHop);
  EXPECT_EQ(second.sink.messages.size(), 5U);
  EXPECT_EQ(second.received().find("\"to\""), std::string::npos);
  EXPECT_EQ(first.received(), "");
  const std::string nobody =
      error_reply(-32001, "Provider lost",
                  R"({"reason":"no client of that name provides the method","origin":"local","delivered":"no"})", "9");
  EXPECT_EQ(caller.ask(R"({"jsonrpc":"2.0","method":"gpu.add","to":"three","id":9})"), nobody);
  second.leave();
  advance(kHop);
  static_cast<void>(caller.received());
  EXPECT_EQ(caller.ask(R"({"jsonrpc":"2.0","method":"gpu.add","to":"two","id":9})"), nobody);
}

TEST_F(ClusterTest, AProviderIsToldWhoCallsAtAnotherNodeWhereItsBrokerTellsThat) {
  BrokerNode d{network, scheduler, "d", 0x4000000000, {.disclose_callers = true}};
  NodeClient tells{d};
  tells.provide("told");
  NodeClient silent{*b};
  silent.provide("not.told");
  NodeClient caller{*a};
  static_cast<void>(caller.ask(request("rpc.hello", R"({"name":"ada"})")));
  advance(kMeet);
  for (const char* const method : {"told", "not.told"})
    caller.send(R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","from":"eve","id":1})");
  advance(kHop);
  EXPECT_NE(tells.received().find(R"("from":"ada")"), std::string::npos);
  EXPECT_EQ(silent.received().find("\"from\""), std::string::npos);
}

TEST_F(ClusterTest, ACallThatHasWaitedForANodeCountsForItsCallerUntilItIsAnswered) {
  Limits limits;
  limits.soft_output = 100'000;
  BrokerNode c{network, scheduler, "c", 0x3000000000, {}, limits};
  NodeClient provider{*b};
  provider.provide("gpu.add");
  NodeClient caller{c};
  advance(kMeet);
  const std::string params = "[\"" + std::string(200'000, 'x') + "\"]";
  const auto held = [&] { return static_cast<broker::Peer&>(*caller.dispatcher->join_broker()).load().held_bytes; };
  caller.send(request("gpu.add", params, "1"));
  caller.send(request("gpu.add", params, "2"));  // waits until the first one has left
  EXPECT_GE(held(), params.size());
  advance(kHop);
  ASSERT_EQ(provider.sink.messages.size(), 2U);
  EXPECT_GE(held(), params.size());
  for (const std::string& asked : std::exchange(provider.sink.messages, {}))
    provider.send(result_reply("1", id_of(asked)));
  advance(kHop);
  EXPECT_EQ(caller.sink.messages.size(), 2U);
  EXPECT_EQ(held(), 0U);
}

TEST_F(ClusterTest, ACallThatGoesRoundAmongNodesEndsByItsHops) {
  NodeClient one{*a};
  one.provide("ping");
  NodeClient other{*b};
  other.provide("pong");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("pong", "[]"));
  advance(kHop);
  const std::string asked = other.received();
  EXPECT_NE(asked.find("\"pong\""), std::string::npos) << asked;
  // As a provider's own library hands them on: one more with each call that it makes for one.
  const std::string answer = [&] {
    other.send(R"({"jsonrpc":"2.0","method":"ping","id":5,"hops":32})");
    advance(kHop);
    return other.received();
  }();
  const bool refused = answer.find("-32010") != std::string::npos || answer.find("hops") != std::string::npos;
  const std::string there = one.received();
  EXPECT_TRUE(refused || there.find("\"hops\":") != std::string::npos) << answer << there;
}

TEST_F(ClusterTest, TheTokenOfAProgressGoesToTheProviderAtTheOtherNode) {
  NodeClient provider{*b};
  provider.provide("work");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(R"({"jsonrpc":"2.0","method":"work","params":{"_meta":{"progressToken":"t"}},"id":7})");
  advance(kHop);
  const std::string asked = provider.received();
  EXPECT_NE(asked.find("progressToken"), std::string::npos) << asked;
}

}  // namespace
}  // namespace wirecall::test
