// Calls across brokers on a simulated bus: registered at one, made at another.
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/cluster/cluster_world.hpp"
#include "wirecall/caller.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

class ClusterTest : public testing::Test {
 protected:
  // So long it takes until nodes know each other, and what they provide.
  static constexpr auto kMeet = 100ms;
  static constexpr auto kHop = 1ms;

  void advance(std::chrono::nanoseconds by) { scheduler.advance(by); }
  static std::string remote_error(std::string_view reason, std::string_view delivered,
                                  std::string_view origin = "remote", std::string_view id = "1") {
    return error_reply(-32001, "Provider lost",
                       R"({"reason":")" + std::string{reason} + R"(","origin":")" + std::string{origin} +
                           R"(","delivered":")" + std::string{delivered} + "\"}",
                       id);
  }

  VirtualScheduler scheduler;
  SimulatedNetwork network{scheduler};
  std::unique_ptr<BrokerNode> a = std::make_unique<BrokerNode>(network, scheduler, "a", 0x1000000000);
  std::unique_ptr<BrokerNode> b = std::make_unique<BrokerNode>(network, scheduler, "b", 0x2000000000);
};

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

TEST_F(ClusterTest, AMethodRegisteredLaterIsKnownAndOneUnregisteredIsNot) {
  NodeClient caller{*a};
  NodeClient provider{*b};
  advance(kMeet);
  EXPECT_NE(caller.ask(request("gpu.add", "[]")).find("-32601"), std::string::npos);
  provider.provide("gpu.add");
  advance(kHop);
  caller.send(request("gpu.add", "[]"));
  advance(kHop);
  EXPECT_EQ(caller.received(), "");
  const std::string asked = provider.received();
  provider.send(result_reply("1", id_of(asked)));
  advance(kHop);
  EXPECT_EQ(caller.received(), result_reply("1"));
  EXPECT_EQ(provider.ask(request("rpc.unregister", R"({"method":"gpu.add"})")), result_reply("1"));
  advance(kHop);
  EXPECT_NE(caller.ask(request("gpu.add", "[]")).find("-32601"), std::string::npos);
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

TEST_F(ClusterTest, AProviderOfTheOtherNodeThatIsLostIsLostForItsCallers) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("gpu.add", "[1,2]"));
  advance(kHop);
  provider.leave();
  advance(kHop);
  EXPECT_EQ(caller.received(), remote_error("the provider has gone", "maybe"));
}

TEST_F(ClusterTest, ANodeThatGoesEndsItsCallsAtOnceAndIsForgotten) {
  NodeClient caller{*a};
  NodeClient patient{*a};
  {
    NodeClient provider{*b};
    provider.provide("gpu.add");
    advance(kMeet);
    caller.send(request("gpu.add", "[1,2]"));
    advance(kHop);
    EXPECT_NE(provider.received(), "");
    b->bus->become(cluster::Bus::State::disconnected);  // as if it were killed
    advance(300ms);                                     // a ping finds nobody
    EXPECT_EQ(caller.received(), remote_error("the provider's node has gone", "maybe"));
  }
  EXPECT_EQ(a->cluster->find("b"), nullptr);
  EXPECT_NE(caller.ask(request("gpu.add", "[]")).find("-32601"), std::string::npos);
}

TEST_F(ClusterTest, ANodeThatIsCutOffEndsItsCallsWithinFourSeconds) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("gpu.add", "[1,2]"));
  advance(kHop);
  network.part(*a->bus, *b->bus);
  advance(3400ms);
  EXPECT_EQ(caller.received(), remote_error("the provider's node has gone", "maybe"));
  // Nothing is replayed when they meet again, and calls go on.
  static_cast<void>(provider.received());
  network.heal();
  advance(2s);
  EXPECT_EQ(provider.received().find("\"method\":\"gpu.add\""), std::string::npos);
  caller.send(request("gpu.add", "[3]"));
  advance(kHop);
  const std::string asked = provider.received();
  provider.send(result_reply("3", id_of(asked)));
  advance(kHop);
  EXPECT_EQ(caller.received(), result_reply("3"));
}

TEST_F(ClusterTest, WithoutTheBusPendingCallsFailNewOnesAreRefusedAndOwnOnesGoOn) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  NodeClient own{*a};
  own.provide("own.add");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("gpu.add", "[1,2]"));
  advance(kHop);
  a->bus->become(cluster::Bus::State::disconnected);
  advance(kHop);
  EXPECT_EQ(caller.received(), remote_error("the bus between the nodes has failed", "maybe", "bus"));
  EXPECT_EQ(caller.ask(request("gpu.add", "[1]", "2")),
            remote_error("the bus between the nodes has failed", "no", "bus", "2"));
  EXPECT_TRUE(a->cluster->is_degraded());
  caller.send(request("own.add", "[1]", "3"));
  own.send(result_reply("1", id_of(own.received())));
  EXPECT_EQ(caller.received(), result_reply("1", "3"));
  a->bus->become(cluster::Bus::State::connected);
  advance(1500ms);
  EXPECT_FALSE(a->cluster->is_degraded());
  static_cast<void>(provider.received());
  caller.send(request("gpu.add", "[5]", "4"));
  advance(kHop);
  provider.send(result_reply("5", id_of(provider.received())));
  advance(kHop);
  EXPECT_EQ(caller.received(), result_reply("5", "4"));
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

TEST_F(ClusterTest, ALostFrameEndsTheSessionAndAllThatWasUnderWay) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  network.lost_of_million = 1'000'000;
  caller.send(request("gpu.add", "[1]", "1"));
  advance(kHop);
  network.lost_of_million = 0;
  EXPECT_EQ(provider.received(), "");
  caller.send(request("gpu.add", "[2]", "2"));
  advance(kMeet);
  EXPECT_EQ(caller.received(), remote_error("the provider's node has gone", "no", "remote", "1") + "\n" +
                                   remote_error("the provider's node has gone", "no", "remote", "2"));
  caller.send(request("gpu.add", "[3]", "3"));
  advance(kHop);
  provider.send(result_reply("3", id_of(provider.received())));
  advance(kHop);
  EXPECT_EQ(caller.received(), result_reply("3", "3"));
}

TEST_F(ClusterTest, WhileASessionBeginsAnewItsMethodsAreNotUnknown) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  provider.provide("tpu.>");
  NodeClient caller{*a};
  advance(kMeet);
  network.lost_of_million = 1'000'000;
  caller.send(request("gpu.add", "[1]", "1"));
  advance(kHop);
  network.lost_of_million = 0;
  caller.send(request("gpu.add", "[2]", "2"));
  advance(100us);  // a knows that something was lost
  ASSERT_EQ(a->cluster->find("b")->state(), cluster::Node::State::joining);
  static_cast<void>(caller.received());
  const auto lost = [](std::string_view id) {
    return remote_error("the provider's node has gone", "no", "remote", id);
  };
  EXPECT_EQ(caller.ask(request("gpu.add", "[3]", "3")), lost("3"));
  EXPECT_EQ(caller.ask(request("tpu.add", "[4]", "4")), lost("4"));
  EXPECT_NE(caller.ask(request("other", "[5]", "5")).find("-32601"), std::string::npos);
  EXPECT_EQ(provider.ask(request("rpc.unregister", R"({"method":"gpu.add"})")), result_reply("1"));
  advance(kMeet);
  EXPECT_NE(caller.ask(request("gpu.add", "[6]", "6")).find("-32601"), std::string::npos);
}

TEST_F(ClusterTest, WithoutTheBusMethodsOfAPrefixAreNotUnknownEither) {
  NodeClient provider{*b};
  provider.provide("tpu.>");
  NodeClient caller{*a};
  advance(kMeet);
  a->bus->become(cluster::Bus::State::disconnected);
  EXPECT_EQ(caller.ask(request("tpu.add", "[1]")), remote_error("the bus between the nodes has failed", "no", "bus"));
}

TEST_F(ClusterTest, OfALostFrameThoseBeforeItMayHaveBeenDeliveredAndThoseBehindItHaveNot) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("gpu.add", "[1]", "1"));
  advance(kHop);
  network.lost_of_million = 1'000'000;
  caller.send(request("gpu.add", "[2]", "2"));
  advance(kHop);
  network.lost_of_million = 0;
  caller.send(request("gpu.add", "[3]", "3"));
  advance(kMeet);
  EXPECT_EQ(caller.received(), remote_error("the provider's node has gone", "maybe", "remote", "1") + "\n" +
                                   remote_error("the provider's node has gone", "no", "remote", "2") + "\n" +
                                   remote_error("the provider's node has gone", "no", "remote", "3"));
}

TEST_F(ClusterTest, ALostAnswerIsOfACallThatMayHaveBeenDelivered) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("gpu.add", "[1]", "1"));
  caller.send(request("gpu.add", "[2]", "2"));
  advance(kHop);
  const std::string first = id_of(provider.sink.messages.at(0));
  const std::string second = id_of(provider.sink.messages.at(1));
  network.lost_of_million = 1'000'000;
  provider.send(result_reply("1", first));
  advance(kHop);
  network.lost_of_million = 0;
  provider.send(result_reply("2", second));
  advance(kMeet);
  EXPECT_EQ(caller.received(), remote_error("the provider's node has gone", "maybe", "remote", "1") + "\n" +
                                   remote_error("the provider's node has gone", "maybe", "remote", "2"));
}

TEST_F(ClusterTest, WhatTheBusHasNotTakenYetWasNotDelivered) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("gpu.add", "[1]", "1"));
  advance(kHop);
  caller.send(request("gpu.add", "[2]", "2"));  // leaves when the turn ends
  a->bus->become(cluster::Bus::State::disconnected);
  advance(kHop);
  EXPECT_EQ(caller.received(), remote_error("the bus between the nodes has failed", "maybe", "bus", "1") + "\n" +
                                   remote_error("the bus between the nodes has failed", "no", "bus", "2"));
}

TEST_F(ClusterTest, ACallThatHasNotComeToItsNodeIsMadeAtAnother) {
  BrokerNode c{network, scheduler, "c", 0x3000000000};
  NodeClient first{*b};
  first.provide("gpu.add");
  NodeClient second{c};
  second.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  network.part(*a->bus, *b->bus);
  caller.send(request("gpu.add", "[1]", "1"));
  caller.send(request("gpu.add", "[2]", "2"));
  advance(kHop);
  EXPECT_EQ(first.received(), "");
  network.heal();
  caller.send(request("gpu.add", "[3]", "3"));
  caller.send(request("gpu.add", "[4]", "4"));
  advance(kMeet);
  EXPECT_EQ(caller.received(), "");
  EXPECT_EQ(second.sink.messages.size(), 4U);
}

TEST_F(ClusterTest, ACallThatMayHaveBeenDeliveredOnceIsNeverSaidNotToHaveBeen) {
  BrokerNode c{network, scheduler, "c", 0x3000000000};
  NodeClient first{*b};
  first.provide("gpu.add", R"(,"idempotent":true)");
  NodeClient second{c};
  second.provide("gpu.add", R"(,"idempotent":true)");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("gpu.add", "[1]"));
  advance(kHop);
  NodeClient& asked = first.sink.messages.empty() ? second : first;
  BrokerNode& gone = &asked == &first ? *b : c;
  EXPECT_NE(asked.received(), "");
  a->bus->become(cluster::Bus::State::connected);  // all nodes are lost at once, and then asked anew
  gone.bus->become(cluster::Bus::State::disconnected);
  advance(kMeet);
  EXPECT_EQ(caller.received().find(R"("delivered":"no")"), std::string::npos);
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

// ---- what is lost, and comes late ----

TEST_F(ClusterTest, ACallThatIsLostIsFoundThoughNothingFollows) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  network.lost_of_million = 1'000'000;
  caller.send(request("gpu.add", "[1]"));
  advance(kHop);
  network.lost_of_million = 0;
  advance(300ms);
  EXPECT_EQ(caller.received(), remote_error("the provider's node has gone", "no"));
  EXPECT_EQ(provider.received(), "");
}

TEST_F(ClusterTest, AnAnswerThatIsLostIsFoundThoughNothingFollows) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("gpu.add", "[1]"));
  advance(kHop);
  network.lost_of_million = 1'000'000;
  provider.send(result_reply("1", id_of(provider.received())));
  advance(kHop);
  network.lost_of_million = 0;
  advance(300ms);
  EXPECT_EQ(caller.received(), remote_error("the provider's node has gone", "maybe"));
}

TEST_F(ClusterTest, AMethodThatIsToldInALostFrameIsKnownSoon) {
  NodeClient provider{*b};
  advance(1s);
  network.lost_of_million = 1'000'000;
  provider.provide("gpu.add");
  advance(kHop);
  network.lost_of_million = 0;
  advance(300ms);
  EXPECT_TRUE(a->cluster->find("b")->methods().contains("gpu.add"));
}

TEST_F(ClusterTest, ABrokerThatJoinsIsGreetedByEachAndGreetsEachAndNobodyElseHearsOfIt) {
  SimulatedNetwork other{scheduler};
  std::vector<std::unique_ptr<BrokerNode>> nodes;
  for (int i = 0; i != 20; ++i) {
    nodes.push_back(std::make_unique<BrokerNode>(other, scheduler, "n" + std::to_string(i),
                                                 static_cast<std::uint64_t>(i + 1) << 32));
  }
  advance(1100ms);
  SimulatedBus heard{other};
  int heartbeats = 0;
  heard.subscribe("wc.shop.hb", [&](const cluster::BusMessage&) { ++heartbeats; });
  BrokerNode joins{other, scheduler, "joins", 0x9000000000};
  advance(kMeet);
  EXPECT_EQ(heartbeats, 1);
  for (const auto& node : nodes) EXPECT_EQ(node->cluster->find("joins")->state(), cluster::Node::State::up);
  for (const auto& node : nodes) EXPECT_EQ(node->cluster->find("joins")->sessions_lost(), 0U);
}

TEST_F(ClusterTest, WhereNothingIsSentNobodyIsPinged) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  advance(2s);
  const std::uint64_t before = network.published;
  advance(10s);
  EXPECT_EQ(network.published - before, 20U);  // heartbeats
}

TEST_F(ClusterTest, ANodeIsPingedAsLongAsACallIsPendingWhateverBecameOfOthers) {
  network.delay = 300ms;
  NodeClient provider{*b};
  provider.provide("gpu.add");
  NodeClient caller{*a};
  advance(5s);
  caller.send(request("gpu.add", "[1]", "1"));
  advance(1s);
  caller.send(cancel_notification("1"));
  EXPECT_EQ(caller.received(), cancelled("1"));
  advance(260ms);
  caller.send(request("gpu.add", "[2]", "2"));
  advance(1s);
  EXPECT_EQ(caller.received(), "");
  b->bus->become(cluster::Bus::State::disconnected);  // as if it were killed
  advance(600ms);
  EXPECT_EQ(caller.received(), remote_error("the provider's node has gone", "maybe", "remote", "2"));
}

TEST_F(ClusterTest, AProviderThatSaysThatItsMethodHasMovedIsNotBelieved) {
  BrokerNode c{network, scheduler, "c", 0x3000000000};
  NodeClient first{*b};
  first.provide("gpu.add");
  NodeClient second{c};
  second.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("gpu.add", "[1]"));
  advance(kHop);
  NodeClient& asked = first.sink.messages.empty() ? second : first;
  NodeClient& other = &asked == &first ? second : first;
  asked.send(error_reply(-32001, "Provider lost", R"({"reason":"x","origin":"local","delivered":"no","moved":true})",
                         id_of(asked.received())));
  advance(kHop);
  EXPECT_NE(caller.received().find("-32001"), std::string::npos);
  EXPECT_EQ(other.received(), "");
}

TEST_F(ClusterTest, ACallOfANodeThatSubscribesIsNotPassedOnWhenItsProviderIsLost) {
  BrokerNode c{network, scheduler, "c", 0x3000000000};
  constexpr std::string_view kTerms =
      R"(,"idempotent":true,"subscription":{"unsubscribe":"ticks.end","notification":"ticks"})";
  NodeClient first{*b};
  first.provide("ticks.begin", kTerms);
  advance(kMeet);
  NodeClient caller{*a};
  caller.send(request("ticks.begin", "[]"));
  advance(kHop);
  ASSERT_NE(first.received(), "");
  NodeClient second{c};
  second.provide("ticks.begin", kTerms);
  advance(kMeet);
  first.leave();
  advance(kHop);
  EXPECT_EQ(c.cluster->find("b")->calls_here(), 0U);
}

// ---- registered otherwise at two nodes ----

constexpr std::string_view kTicks = R"(,"subscription":{"unsubscribe":"ticks.end","notification":"ticks"})";

class ClusterRegistrationTest : public ClusterTest {
 protected:
  static std::string registered(NodeClient& client, std::string_view method, std::string_view terms = {}) {
    return client.ask(request("rpc.register", R"({"method":")" + std::string{method} + '"' + std::string{terms} + "}"));
  }
  // A call that goes from a to the provider, and back.
  void expect_served(NodeClient& provider, std::string_view method) {
    NodeClient caller{*a};
    caller.send(request(method, "[]"));
    advance(kHop);
    provider.send(result_reply("1", id_of(provider.received())));
    advance(kHop);
    EXPECT_EQ(caller.received(), result_reply("1"));
  }
};

TEST_F(ClusterRegistrationTest, WhatAnotherNodeProvidesIsRegisteredAlikeOrNot) {
  NodeClient provider{*b};
  provider.provide("begin", R"(,"policy":"round_robin")");
  NodeClient other{*a};
  advance(kMeet);
  EXPECT_NE(registered(other, "begin", kTicks).find("the method is provided otherwise"), std::string::npos);
  EXPECT_NE(registered(other, "begin", R"(,"policy":"last")").find("under another policy"), std::string::npos);
  EXPECT_NE(registered(other, "begin", R"(,"policy":"exclusive")").find("under another policy"), std::string::npos);
  EXPECT_EQ(registered(other, "begin"), result_reply("1"));
  EXPECT_EQ(other.ask(request("rpc.unregister", R"({"method":"begin"})")), result_reply("1"));
  expect_served(provider, "begin");
}

TEST_F(ClusterRegistrationTest, OfTwoThatAreRegisteredOtherwiseAtOneMomentEachIsCalledByItsOwnNode) {
  BrokerNode c{network, scheduler, "c", 0x3000000000};
  advance(kMeet);
  NodeClient plain{*b};
  plain.provide("begin");
  NodeClient subscribing{c};
  subscribing.provide("begin", kTicks);
  advance(kHop);
  expect_served(plain, "begin");  // it was heard of first
  NodeClient own{c};
  own.send(request("begin", "[]"));
  subscribing.send(result_reply("\"s\"", id_of(subscribing.received())));
  EXPECT_NE(own.received().find("\"result\""), std::string::npos);
  subscribing.leave();
  advance(kHop);
  expect_served(plain, "begin");
  EXPECT_EQ(plain.ask(request("rpc.unregister", R"({"method":"begin"})")), result_reply("1"));
  plain.leave();
  advance(kHop);
  EXPECT_EQ(a->router.methods().find("begin"), nullptr);
}

TEST_F(ClusterRegistrationTest, WhatIsRegisteredAnewOtherwiseIsSoAtAllNodes) {
  NodeClient provider{*b};
  provider.provide("begin", R"(,"policy":"last")");
  advance(kMeet);
  EXPECT_EQ(provider.ask(request("rpc.unregister", R"({"method":"begin"})")), result_reply("1"));
  provider.provide("begin", R"(,"policy":"round_robin")");
  advance(kHop);
  EXPECT_EQ(a->router.methods().find("begin")->policy(), broker::Policy::round_robin);
  EXPECT_EQ(provider.ask(request("rpc.unregister", R"({"method":"begin"})")), result_reply("1"));
  provider.provide("begin", kTicks);
  advance(kHop);
  EXPECT_TRUE(a->router.methods().find("begin")->description.subscription.has_value());
}

// ---- subscriptions to a method of another node ----

class ClusterSubscriptionTest : public ClusterTest {
 protected:
  void SetUp() override {
    provider = std::make_unique<NodeClient>(*b);
    provider->provide("ticks.begin", kTicks);
    provider->provide("slow");
    caller = std::make_unique<NodeClient>(*a);
    advance(kMeet);
    caller->send(request("ticks.begin", "[]"));
    advance(kHop);
    provider->send(result_reply("\"s\"", id_of(provider->received())));
    advance(kHop);
    const std::string answer = caller->received();
    const std::string_view head = R"({"jsonrpc":"2.0","result":)";
    ASSERT_TRUE(answer.starts_with(head)) << answer;
    id = answer.substr(head.size(), answer.find(',', head.size()) - head.size());
    other.send(request("slow", "[]", "8"));
    advance(kHop);
    slow_id = id_of(provider->received());
  }
  // It has ended, and nothing else has.
  void TearDown() override {
    advance(kHop);
    EXPECT_EQ(provider->received(), request("ticks.end", "[\"s\"]", "\"rpc.unsubscribe\""));
    provider->send(result_reply("1", slow_id));
    advance(kHop);
    EXPECT_EQ(other.received(), result_reply("1", "8"));
    EXPECT_EQ(a->cluster->find("b")->sessions_lost(), 0U);
    EXPECT_EQ(b->cluster->find("a")->sessions_lost(), 0U);
  }

  NodeClient other{*a};
  std::unique_ptr<NodeClient> provider;
  std::unique_ptr<NodeClient> caller;
  std::string id;
  std::string slow_id;
};

TEST_F(ClusterSubscriptionTest, ItsEventsComeUntilItsCallerEndsIt) {
  const auto event = [](std::string_view of) {
    return notification("ticks", R"({"subscription":)" + std::string{of} + R"(,"result":1})");
  };
  provider->send(event("\"s\""));
  advance(kHop);
  EXPECT_EQ(caller->received(), event(id));
  EXPECT_EQ(caller->ask(request("ticks.end", '[' + id + ']')), result_reply("true"));
  EXPECT_EQ(caller->ask(request("ticks.end", '[' + id + ']')), result_reply("false"));
}

TEST_F(ClusterSubscriptionTest, ItEndsWithItsCaller) { caller->leave(); }

// ---- limits that are others at the other node ----

class ClusterLimitsTest : public ClusterTest {
 protected:
  static Limits narrow() {
    Limits limits;
    limits.depth = 16;
    limits.max_message_size = 10'000;
    return limits;
  }
  static std::string nested(int levels) {
    const auto count = static_cast<std::size_t>(levels);
    return std::string(count, '[') + std::string(count, ']');
  }
  static std::string text(std::size_t bytes) { return "[\"" + std::string(bytes, 'x') + "\"]"; }
  // What the caller is answered to a call whose params these are, where the provider answers with that result.
  std::string called(BrokerNode& from, BrokerNode& at, const std::string& params, const std::string& result) {
    NodeClient provider{at};
    provider.provide("echo");
    NodeClient caller{from};
    NodeClient other{from};
    advance(kMeet);
    other.send(request("echo", "[]", "8"));
    advance(kHop);
    const std::string slow = id_of(provider.received());
    caller.send(request("echo", params, "7"));
    advance(kHop);
    if (const std::string asked = provider.received(); !asked.empty())
      provider.send(result_reply(result, id_of(asked)));
    advance(kHop);
    // All others go on.
    provider.send(result_reply("1", slow));
    advance(kHop);
    EXPECT_EQ(other.received(), result_reply("1", "8"));
    return caller.received();
  }
  static void expect_too_large(const std::string& answer, std::string_view limit, std::string_view delivered) {
    EXPECT_NE(answer.find(R"("code":-32006)"), std::string::npos) << answer;
    EXPECT_NE(answer.find(R"("origin":"remote","delivered":")" + std::string{delivered} + R"(","limit":")" +
                          std::string{limit} + '"'),
              std::string::npos)
        << answer;
  }

  BrokerNode c{network, scheduler, "c", 0x3000000000, {}, narrow()};
};

TEST_F(ClusterLimitsTest, ACallThatIsTooMuchForTheOtherNodeEndsAlone) {
  expect_too_large(called(*a, c, nested(40), "1"), "depth", "no");
  expect_too_large(called(*a, c, text(200'000), "1"), "max_message_size", "no");
  EXPECT_EQ(called(*a, c, text(5'000), "1"), result_reply("1", "7"));
  EXPECT_EQ(a->cluster->find("c")->sessions_lost(), 0U);
  EXPECT_EQ(c.cluster->find("a")->sessions_lost(), 0U);
}

TEST_F(ClusterLimitsTest, AnAnswerThatIsTooMuchForTheCallersNodeEndsItsCallAlone) {
  expect_too_large(called(c, *a, "[]", nested(40)), "depth", "maybe");
  expect_too_large(called(c, *a, "[]", text(200'000)), "max_message_size", "maybe");
  EXPECT_EQ(called(c, *a, "[]", text(5'000)), result_reply(text(5'000), "7"));
  EXPECT_EQ(a->cluster->find("c")->sessions_lost(), 0U);
  EXPECT_EQ(c.cluster->find("a")->sessions_lost(), 0U);
}

TEST_F(ClusterLimitsTest, AnItemThatIsTooMuchForTheCallersNodeEndsItsStreamAlone) {
  NodeClient provider{*a};
  provider.provide("numbers");
  NodeClient caller{c};
  advance(kMeet);
  caller.send(R"({"jsonrpc":"2.0","method":"numbers","id":7,"stream":2})");
  advance(kHop);
  provider.send(R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":)" + id_of(provider.received()) +
                R"(,"value":)" + nested(40) + "}}");
  advance(kHop);
  expect_too_large(caller.received(), "depth", "maybe");
  EXPECT_EQ(c.cluster->find("a")->sessions_lost(), 0U);
}

TEST_F(ClusterLimitsTest, ALimitThatIsRaisedHoldsForWhatOtherNodesSend) {
  advance(kMeet);
  c.limits.depth = 256;
  c.limits.max_message_size = 1 << 20;
  advance(300ms);
  EXPECT_EQ(called(*a, c, nested(40), "1"), result_reply("1", "7"));
  EXPECT_EQ(called(*a, c, text(200'000), "1"), result_reply("1", "7"));
}

TEST_F(ClusterTest, MoreThanMayWaitForANodeIsToldInShares) {
  Limits tight;
  tight.soft_output = 16'384;
  tight.hard_output = 262'144;
  BrokerNode c{network, scheduler, "c", 0x3000000000, {}, tight};
  NodeClient provider{c};
  const std::string schema = R"(,"params":{"description":")" + std::string(2'000, 'x') + "\"}";
  for (int i = 0; i != 300; ++i) provider.provide("m" + std::to_string(i), schema);
  std::vector<std::unique_ptr<NodeClient>> clients;
  for (int i = 0; i != 300; ++i) {
    clients.push_back(std::make_unique<NodeClient>(c));
    static_cast<void>(clients.back()->ask(request("rpc.hello", R"({"name":"client-)" + std::to_string(i) + "\"}")));
  }
  BrokerNode d{network, scheduler, "d", 0x4000000000};
  advance(kMeet);
  ASSERT_NE(d.cluster->find("c"), nullptr);
  EXPECT_EQ(d.cluster->find("c")->state(), cluster::Node::State::up);
  EXPECT_EQ(d.cluster->find("c")->methods().size(), 300U);
  EXPECT_TRUE(d.cluster->find("c")->has_client("client-299"));
  EXPECT_EQ(c.cluster->find("d")->sessions_lost(), 0U);
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

// ---- to whom, and whose ----

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

TEST_F(ClusterTest, NamesOfAnyLengthAreToldToOtherNodes) {
  std::vector<std::unique_ptr<NodeClient>> clients;
  std::vector<std::string> names;
  for (int i = 0; i != 12; ++i) {
    NodeClient& one = *clients.emplace_back(std::make_unique<NodeClient>(*b));
    const std::string answer = one.ask(request("rpc.hello", R"({"name":")" + std::string(253, 'n') + R"(ö"})"));
    const std::string_view head = R"("name":")";
    const std::size_t at = answer.find(head) + head.size();
    names.push_back(answer.substr(at, answer.find('"', at) - at));
    EXPECT_LE(names.back().size(), 255U);
  }
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(names[0], std::string(253, 'n') + "ö");
  EXPECT_EQ(names[1], std::string(253, 'n') + "~2");
  advance(kMeet);
  for (const std::string& name : names) EXPECT_TRUE(a->cluster->find("b")->has_client(name)) << name;
  EXPECT_EQ(a->cluster->find("b")->sessions_lost(), 0U);
}

TEST_F(ClusterTest, ASchemaAsDeepAsAMessageMayBeIsToldToOtherNodes) {
  NodeClient provider{*b};
  // The message, its params, and so many levels.
  constexpr std::size_t kLevels = 256 - 2;
  std::string schema = "true";
  for (std::size_t i = 0; i != kLevels; ++i) schema = R"({"not":)" + schema + "}";
  provider.provide("deep", R"(,"params":)" + schema);
  advance(kMeet);
  EXPECT_TRUE(a->cluster->find("b")->methods().contains("deep"));
  EXPECT_EQ(a->cluster->find("b")->sessions_lost(), 0U);
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

TEST_F(ClusterTest, WhoIsAskedInPlaceOfALostNodeIsToldWhoCallsAsItsBrokerTells) {
  for (const bool discloses : {false, true}) {
    SimulatedNetwork other{scheduler};
    BrokerNode d{other, scheduler, "d", 0x4000000000, {.disclose_callers = discloses}};
    BrokerNode e{other, scheduler, "e", 0x5000000000, {.disclose_callers = true}};
    NodeClient own{d};
    own.provide("gpu.add", R"(,"concurrency":1,"idempotent":true)");
    NodeClient there{e};
    there.provide("gpu.add", R"(,"idempotent":true)");
    NodeClient caller{d};
    static_cast<void>(caller.ask(request("rpc.hello", R"({"name":"ada"})")));
    advance(kMeet);
    caller.send(request("gpu.add", "[1]", "1"));
    caller.send(request("gpu.add", "[2]", "2"));
    advance(kHop);
    EXPECT_NE(there.received().find(R"("from":"ada")"), std::string::npos);
    own.send(result_reply("1", id_of(own.received())));
    e.bus->become(cluster::Bus::State::disconnected);  // as if it were killed
    advance(300ms);
    const std::string asked = own.received();
    EXPECT_NE(asked.find("[2]"), std::string::npos);
    EXPECT_EQ(asked.find(R"("from":"ada")") != std::string::npos, discloses) << asked;
  }
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

TEST_F(ClusterTest, WhatTheClientsOfThePredecessorProvideIsProvidedThoughAnotherNodeHasIt) {
  SimulatedNetwork other{scheduler};
  BrokerNode old{other, scheduler, "a", 0x500000000};
  NodeClient stays{old};
  stays.provide("gpu.add");
  NodeClient link{*a};
  a->router.take_over(old.router.hand_over(), link.dispatcher->trust());
  NodeClient provider{*b};
  provider.provide("gpu.add");
  advance(kMeet);
  ASSERT_TRUE(a->router.methods().find("gpu.add")->is_at_nodes());
  EXPECT_NE(a->router.methods().find("gpu.add")->linked(), nullptr);
  NodeClient comes{*a};
  comes.provide("gpu.add");  // it has come over
  EXPECT_EQ(a->router.methods().find("gpu.add")->linked(), nullptr);
}

// ---- who is stopped, or begins ----

TEST_F(ClusterTest, ABrokerThatWasStoppedHasNotFoundTheOthersSilent) {
  BrokerNode c{network, scheduler, "c", 0x3000000000};
  NodeClient provider{*b};
  provider.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  const std::uint64_t lost = a->cluster->find("c")->sessions_lost();
  a->stop();
  advance(2900ms);  // the others still know it
  for (const auto* const node : {"b", "c"}) EXPECT_NE(a->cluster->find(node), nullptr);
  a->go_on();
  for (const auto* const node : {"b", "c"}) EXPECT_NE(a->cluster->find(node), nullptr);
  a->stop();
  advance(10s);
  EXPECT_EQ(b->cluster->find("a"), nullptr);
  a->go_on();
  for (const auto* const node : {"b", "c"}) EXPECT_NE(a->cluster->find(node), nullptr) << node;
  advance(kMeet);  // and the others hear of it at once
  EXPECT_LE(a->cluster->find("c")->sessions_lost(), lost + 1);
  caller.send(request("gpu.add", "[3]"));
  advance(kHop);
  provider.send(result_reply("3", id_of(provider.received())));
  advance(kHop);
  EXPECT_EQ(caller.received(), result_reply("3"));
}

TEST_F(ClusterTest, WhileAHandlerKeepsWhatTheBusBringsNobodyIsSilent) {
  SimulatedNetwork other{scheduler};
  BrokerNode d{other, scheduler, "d", 0x4000000000};
  d.registry.method("own.slow", [&] {
    d.bus->hold();  // what comes is not read before the handler has returned
    scheduler.advance(10s);
    return 1;
  });
  BrokerNode e{other, scheduler, "e", 0x5000000000};
  BrokerNode f{other, scheduler, "f", 0x6000000000};
  NodeClient caller{e};
  advance(kMeet);
  caller.send(request("own.slow", "[]"));
  advance(kHop);
  d.bus->release();
  EXPECT_NE(d.cluster->find("f"), nullptr);
  EXPECT_EQ(d.cluster->find("f")->sessions_lost(), 0U);
  advance(kMeet);
  EXPECT_EQ(caller.received(), result_reply("1"));
}

TEST_F(ClusterTest, WhatIsExpectedOfOtherNodesIsUnknownWhereTheyHaveNotSaidItInTime) {
  BrokerNode next{network, scheduler, "c", 0x6000000000};
  next.cluster->expect_methods({"cpu.add"});
  NodeClient caller{next};
  EXPECT_EQ(caller.ask(request("cpu.add", "[0]")), remote_error("the provider's node has gone", "no"));
  advance(4s);
  EXPECT_NE(caller.ask(request("cpu.add", "[0]")).find("-32601"), std::string::npos);
}

TEST_F(ClusterTest, WhatABrokerSaysThatHasEndedIsNotTakenForTheNextOfItsName) {
  NodeClient caller{*a};
  advance(kMeet);
  network.delay = 50ms;
  auto next = std::make_unique<BrokerNode>(network, scheduler, "b", 0x6000000000);
  NodeClient provider{*next};
  provider.provide("gpu.add");
  advance(1s);
  network.delay = 500us;
  b.reset();  // it says that it leaves
  advance(kHop);
  ASSERT_NE(a->cluster->find("b"), nullptr);
  EXPECT_TRUE(a->cluster->find("b")->is_open());
}

TEST_F(ClusterTest, ANodeThatDrainsTellsNoMethodsInANewSession) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  advance(kMeet);
  EXPECT_TRUE(a->cluster->find("b")->methods().contains("gpu.add"));
  b->router.drain();
  advance(kHop);
  EXPECT_FALSE(a->cluster->find("b")->methods().contains("gpu.add"));
  a->bus->become(cluster::Bus::State::connected);  // sessions begin anew
  advance(1500ms);
  ASSERT_TRUE(a->cluster->find("b")->is_open());
  EXPECT_EQ(a->cluster->find("b")->state(), cluster::Node::State::up);
  EXPECT_FALSE(a->cluster->find("b")->methods().contains("gpu.add"));
}

TEST_F(ClusterTest, AnEventReachesSubscribersOfAllNodesOnce) {
  BrokerNode c{network, scheduler, "c", 0x3000000000};
  NodeClient here{*a};
  NodeClient there{*b};
  NodeClient far{c};
  NodeClient other{c};
  for (NodeClient* const one : {&here, &there, &far}) {
    EXPECT_EQ(one->ask(request("rpc.subscribe", R"({"topic":"orders.>"})")), result_reply("true"));
    EXPECT_EQ(one->ask(request("rpc.subscribe", R"({"topic":"orders.*"})")), result_reply("true"));
  }
  EXPECT_EQ(other.ask(request("rpc.subscribe", R"({"topic":"bills"})")), result_reply("true"));
  advance(kMeet);
  NodeClient publisher{*a};
  const std::uint64_t before = network.published;
  publisher.send(notification("orders.new", R"({"n":1})"));
  publisher.send(notification("orders.new", R"({"n":2})"));
  advance(kHop);
  const std::string both = notification("orders.new", R"({"n":1})") + "\n" + notification("orders.new", R"({"n":2})");
  EXPECT_EQ(here.received(), both);
  EXPECT_EQ(there.received(), both);
  EXPECT_EQ(far.received(), both);
  EXPECT_EQ(other.received(), "");
  EXPECT_EQ(network.published - before, 2U);  // one message to each node, for both
  // Who subscribes no more is told no more, and nothing is sent where nobody does.
  EXPECT_EQ(there.ask(request("rpc.unsubscribe", R"({"topic":"orders.>"})")), result_reply("true"));
  EXPECT_EQ(there.ask(request("rpc.unsubscribe", R"({"topic":"orders.*"})")), result_reply("true"));
  far.leave();
  advance(kHop);
  const std::uint64_t after = network.published;
  publisher.send(notification("orders.new", "[3]"));
  advance(100us);
  EXPECT_EQ(network.published, after);
  EXPECT_EQ(here.received(), notification("orders.new", "[3]"));
}

TEST_F(ClusterTest, OfAGroupOneMemberOfAllNodesIsTold) {
  NodeClient here{*a};
  NodeClient there{*b};
  for (NodeClient* const one : {&here, &there})
    EXPECT_EQ(one->ask(request("rpc.subscribe", R"({"topic":"jobs","group":"workers"})")), result_reply("true"));
  advance(kMeet);
  NodeClient publisher{*a};
  for (int i = 0; i != 4; ++i) {
    publisher.send(notification("jobs", "[" + std::to_string(i) + "]"));
    advance(kHop);
  }
  EXPECT_EQ(here.sink.messages.size(), 2U);
  EXPECT_EQ(there.sink.messages.size(), 2U);
}

TEST_F(ClusterTest, ANotificationToAMethodOfAnotherNodeIsOneEventThere) {
  NodeClient provider{*b};
  provider.provide("note");
  NodeClient subscriber{*b};
  EXPECT_EQ(subscriber.ask(request("rpc.subscribe", R"({"topic":"note"})")), result_reply("true"));
  advance(kMeet);
  NodeClient caller{*a};
  caller.send(notification("note", "[1]"));
  advance(kHop);
  EXPECT_EQ(provider.received(), notification("note", "[1]"));
  EXPECT_EQ(subscriber.received(), notification("note", "[1]"));
}

// What is retained, everywhere.
class ClusterRetainedTest : public ClusterTest {
 protected:
  static void publish(BrokerNode& at, std::string_view topic, std::string_view params) {
    NodeClient publisher{at};
    const std::string given = params.empty() ? "" : R"(,"params":)" + std::string{params};
    const std::string answer = publisher.ask(
        request("rpc.publish", R"({"topic":")" + std::string{topic} + R"(","retain":true)" + given + "}"));
    EXPECT_NE(answer.find("\"result\""), std::string::npos) << answer;
  }
  // What a client is sent there that subscribes now.
  static std::string retained(BrokerNode& at, std::string_view topic) {
    NodeClient subscriber{at};
    const std::string subscribed = result_reply("true");
    const std::string sent =
        subscriber.ask(request("rpc.subscribe", R"({"topic":")" + std::string{topic} + R"(","last":true})"));
    EXPECT_TRUE(sent.starts_with(subscribed)) << sent;
    return sent.size() > subscribed.size() ? sent.substr(subscribed.size() + 1) : std::string{};
  }
};

TEST_F(ClusterRetainedTest, WhatAClientOfThePredecessorDeletesIsGoneAtAllNodes) {
  advance(kMeet);
  publish(*a, "door", "[1]");
  advance(kHop);
  ASSERT_EQ(retained(*b, "door"), notification("door", "[1]"));
  a->router.events().clear_handed("door");
  advance(kHop);
  EXPECT_EQ(retained(*b, "door"), "");
}

TEST_F(ClusterRetainedTest, WhatGivesWayToAValueOfThePredecessorIsGoneAtAllNodes) {
  Limits limits;
  limits.retained_bytes = limits.principal_retained_bytes = 2'000;
  BrokerNode c{network, scheduler, "c", 0x3000000000, {}, limits};
  advance(kMeet);
  const std::string large = "[\"" + std::string(1'500, 'x') + "\"]";
  publish(c, "door", large);
  advance(kHop);
  ASSERT_EQ(retained(*b, "door"), notification("door", large));
  const std::string event = notification("window", "[\"" + std::string(300, 'x') + "\"]");
  c.router.events().keep_handed("window", event, {.owner = "other", .client = "other"});
  advance(kHop);
  EXPECT_EQ(retained(*b, "window"), event);
  EXPECT_EQ(retained(*b, "door"), "");
}

TEST_F(ClusterRetainedTest, WhatIsRetainedAtOneNodeIsRetainedAtAll) {
  advance(kMeet);
  publish(*a, "door", "[1]");
  advance(kHop);
  EXPECT_EQ(retained(*b, "door"), notification("door", "[1]"));
  publish(*b, "door", "[2]");
  advance(kHop);
  EXPECT_EQ(retained(*a, "door"), notification("door", "[2]"));
  publish(*a, "door", "");
  advance(kHop);
  EXPECT_EQ(retained(*b, "door"), "");
  EXPECT_EQ(retained(*a, "door"), "");
}

TEST_F(ClusterRetainedTest, ANodeThatComesLaterLearnsIt) {
  advance(kMeet);
  publish(*a, "door", "[1]");
  publish(*b, "window", "[2]");
  advance(kMeet);
  BrokerNode c{network, scheduler, "c", 0x3000000000};
  advance(kMeet);
  EXPECT_EQ(retained(c, "door"), notification("door", "[1]"));
  EXPECT_EQ(retained(c, "window"), notification("window", "[2]"));
}

TEST_F(ClusterRetainedTest, ASubscriberIsToldOfAnEventOnceThoughItIsRetained) {
  NodeClient subscriber{*b};
  EXPECT_EQ(subscriber.ask(request("rpc.subscribe", R"({"topic":"door"})")), result_reply("true"));
  advance(kMeet);
  publish(*a, "door", "[1]");
  advance(kHop);
  EXPECT_EQ(subscriber.received(), notification("door", "[1]"));
}

TEST_F(ClusterRetainedTest, ASubscriberOfWhomThePublishersNodeDoesNotKnowYetIsToldWhatIsRetained) {
  advance(kMeet);
  NodeClient subscriber{*b};
  EXPECT_EQ(subscriber.ask(request("rpc.subscribe", R"({"topic":"door","last":true})")), result_reply("true"));
  publish(*a, "door", "[1]");
  advance(kHop);
  EXPECT_EQ(subscriber.received(), notification("door", "[1]"));
}

TEST_F(ClusterRetainedTest, AfterBothSidesOfACutHaveWrittenAllHaveTheSame) {
  BrokerNode c{network, scheduler, "c", 0x3000000000};
  advance(kMeet);
  publish(*a, "door", "[0]");
  publish(*a, "old", "[0]");
  advance(kMeet);
  network.part(*a->bus, *c.bus);
  network.part(*b->bus, *c.bus);
  advance(5s);
  publish(*a, "door", "[1]");
  publish(c, "door", "[2]");
  publish(c, "door", "[3]");  // it has been written once more, and so later
  publish(*b, "old", "");
  network.heal();
  advance(5s);
  for (BrokerNode* const one : {a.get(), b.get(), &c}) {
    EXPECT_EQ(retained(*one, "door"), notification("door", "[3]"));
    EXPECT_EQ(retained(*one, "old"), "");
    EXPECT_EQ(one->cluster->retained().digest(), a->cluster->retained().digest());
  }
}

TEST_F(ClusterRetainedTest, WhatANodeWritesAfterItHasBegunAnewIsLaterThanWhatItWroteBefore) {
  advance(kMeet);
  for (int i = 0; i != 5; ++i) publish(*b, "door", "[\"before\"]");
  advance(kMeet);
  b = std::make_unique<BrokerNode>(network, scheduler, "b", 0x4000000000);
  publish(*b, "door", "[\"after\"]");
  advance(3s);
  EXPECT_EQ(retained(*a, "door"), notification("door", "[\"after\"]"));
  EXPECT_EQ(retained(*b, "door"), notification("door", "[\"after\"]"));
}

TEST_F(ClusterRetainedTest, WhereThereIsNoRoomForAllTheSameGoEverywhere) {
  Limits few;
  few.retained_bytes = few.principal_retained_bytes = 2000;
  BrokerNode d{network, scheduler, "d", 0x4000000000, {}, few};
  BrokerNode e{network, scheduler, "e", 0x5000000000, {}, few};
  a.reset();
  b.reset();
  advance(kMeet);
  network.part(*d.bus, *e.bus);
  for (int i = 0; i != 5; ++i) {
    publish(d, "d" + std::to_string(i), "[1]");
    publish(e, "e" + std::to_string(i), "[1]");
  }
  advance(5s);
  network.heal();
  advance(5s);
  EXPECT_EQ(d.cluster->retained().digest(), e.cluster->retained().digest());
  EXPECT_LE(d.router.events().retained().bytes(), 2000U);
  EXPECT_NE(retained(d, "e4"), "");
  EXPECT_NE(retained(e, "d4"), "");
  EXPECT_EQ(retained(d, "*"), retained(e, "*"));
}

TEST_F(ClusterRetainedTest, MoreThanMayWaitForANodeComesInSteps) {
  advance(kMeet);
  const std::string text(10'000, 'x');
  for (int i = 0; i != 3000; ++i) publish(*a, "t" + std::to_string(i), "[\"" + text + "\"]");
  BrokerNode c{network, scheduler, "c", 0x3000000000};
  advance(5s);
  EXPECT_EQ(c.cluster->retained().digest(), a->cluster->retained().digest());
  EXPECT_EQ(a->cluster->find("c")->sessions_lost(), 0U);
}

TEST_F(ClusterRetainedTest, WhatIsGoneIsForgottenInTheEnd) {
  advance(kMeet);
  publish(*a, "door", "[1]");
  publish(*a, "door", "");
  advance(kHop);
  EXPECT_EQ(b->cluster->retained().size(), 1U);
  advance(std::chrono::hours{1} + 2s);
  EXPECT_EQ(a->cluster->retained().size(), 0U);
  EXPECT_EQ(b->cluster->retained().size(), 0U);
}

// Nodes at which peers have to say who they are.
class ClusterAccessTest : public ClusterTest {
 protected:
  static Principal principal(std::string name, std::vector<std::string> call, std::vector<std::string> provide = {}) {
    return {.name = name,
            .tokens = {name + "-token"},
            .call = std::move(call),
            .provide = std::move(provide),
            .publish = {},
            .subscribe = {}};
  }
  static void know(BrokerNode& node, std::vector<Principal> principals) {
    node.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::move(principals));
  }
  static void greet(NodeClient& client, const std::string& name) {
    const std::string answer = client.ask(request("rpc.hello", R"({"token":")" + name + "-token\"}"));
    EXPECT_NE(answer.find("\"result\""), std::string::npos) << answer;
  }
  // What ada at a is answered who calls gpu.add, which somebody at b provides.
  std::string called() {
    NodeClient provider{*b};
    greet(provider, "worker");
    provider.provide("gpu.add");
    NodeClient ada{*a};
    greet(ada, "ada");
    advance(kMeet);
    ada.send(request("gpu.add", "[1]", "7"));
    advance(kHop);
    if (const std::string asked = provider.received(); !asked.empty()) provider.send(result_reply("1", id_of(asked)));
    advance(kHop);
    return ada.received();
  }
};

TEST_F(ClusterAccessTest, ACallIsMadeWhoseCallerMayMakeItAtBothNodes) {
  know(*a, {principal("ada", {"gpu.*"}), principal("worker", {}, {">"})});
  know(*b, {principal("ada", {"gpu.*"}), principal("worker", {}, {">"})});
  EXPECT_EQ(called(), result_reply("1", "7"));
}

TEST_F(ClusterAccessTest, AMethodThatTheCallerMayNotCallAtTheOtherNodeIsUnknown) {
  know(*a, {principal("ada", {"gpu.*"})});
  know(*b, {principal("ada", {"other"}), principal("worker", {}, {">"})});
  EXPECT_NE(called().find("-32601"), std::string::npos);
}

TEST_F(ClusterAccessTest, AMethodThatTheCallerMayNotCallHereIsUnknown) {
  know(*a, {principal("ada", {"other"})});
  know(*b, {principal("ada", {"gpu.*"}), principal("worker", {}, {">"})});
  EXPECT_NE(called().find("-32601"), std::string::npos);
  EXPECT_EQ(a->cluster->find("b")->calls_sent(), 0U);
}

TEST_F(ClusterAccessTest, APrincipalThatTheOtherNodeDoesNotKnowIsRefusedThere) {
  know(*a, {principal("ada", {"gpu.*"})});
  know(*b, {principal("worker", {}, {">"})});
  const std::string answer = called();
  EXPECT_NE(answer.find("-32004"), std::string::npos) << answer;
  EXPECT_NE(answer.find(R"("origin":"remote","delivered":"no")"), std::string::npos) << answer;
}

TEST_F(ClusterAccessTest, ACallEndsWhosePrincipalIsTakenAwayAtTheOtherNode) {
  know(*a, {principal("ada", {"gpu.*"})});
  know(*b, {principal("ada", {"gpu.*"}), principal("worker", {}, {">"})});
  NodeClient provider{*b};
  greet(provider, "worker");
  provider.provide("gpu.add");
  NodeClient ada{*a};
  greet(ada, "ada");
  advance(kMeet);
  ada.send(request("gpu.add", "[1]", "7"));
  advance(kHop);
  EXPECT_NE(provider.received(), "");
  know(*b, {principal("worker", {}, {">"})});
  ada.send(request("gpu.add", "[2]", "8"));
  advance(kHop);
  const std::string answers = ada.received();
  EXPECT_NE(answers.find("\"id\":7"), std::string::npos) << answers;
  EXPECT_NE(answers.find("\"id\":8"), std::string::npos) << answers;
  EXPECT_EQ(answers.find("\"result\""), std::string::npos) << answers;
}

TEST_F(ClusterAccessTest, ACallEndsAtOnceWhosePrincipalIsTakenAwayAtTheOtherNodeThoughNothingFollows) {
  know(*a, {principal("ada", {"gpu.*"})});
  know(*b, {principal("ada", {"gpu.*"}), principal("worker", {}, {">"})});
  NodeClient provider{*b};
  greet(provider, "worker");
  provider.provide("gpu.add");
  NodeClient ada{*a};
  greet(ada, "ada");
  advance(kMeet);
  ada.send(request("gpu.add", "[1]", "7"));
  advance(kHop);
  const std::string asked = provider.received();
  ASSERT_NE(asked, "");
  know(*b, {principal("worker", {}, {">"})});
  advance(300ms);
  const std::string answer = ada.received();
  EXPECT_NE(answer.find("-32004"), std::string::npos) << answer;
  EXPECT_EQ(provider.received(), cancel_notification(id_of(asked)));
}

TEST_F(ClusterAccessTest, OfMethodsOfOtherNodesThoseAreToldWhoMayCallThem) {
  const auto subscribing = [](std::string name, std::vector<std::string> call) {
    Principal one = principal(std::move(name), std::move(call));
    one.subscribe = {"rpc.>"};
    return one;
  };
  know(*a, {subscribing("ada", {"gpu.*"}), subscribing("bob", {"other"})});
  know(*b, {principal("worker", {}, {">"})});
  NodeClient ada{*a};
  NodeClient bob{*a};
  greet(ada, "ada");
  greet(bob, "bob");
  for (NodeClient* const one : {&ada, &bob})
    EXPECT_EQ(one->ask(request("rpc.subscribe", R"({"topic":"rpc.method.*"})")), result_reply("true"));
  advance(kMeet);
  NodeClient provider{*b};
  greet(provider, "worker");
  provider.provide("gpu.add");
  advance(kHop);
  EXPECT_NE(ada.received().find(R"("method":"gpu.add")"), std::string::npos);
  EXPECT_EQ(bob.received(), "");
}

TEST_F(ClusterAccessTest, AStreamComesFromANodeAtWhichPeersSayWhoTheyAre) {
  know(*a, {principal("ada", {"gpu.*"})});
  know(*b, {principal("ada", {"gpu.*"}), principal("worker", {}, {">"})});
  NodeClient provider{*b};
  greet(provider, "worker");
  provider.provide("gpu.count");
  NodeClient ada{*a};
  greet(ada, "ada");
  advance(kMeet);
  ada.send(R"({"jsonrpc":"2.0","method":"gpu.count","id":7,"stream":2})");
  advance(kHop);
  const std::string id = id_of(provider.received());
  const auto item = [](std::string_view of) {
    return R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":)" + std::string{of} + R"(,"value":1}})";
  };
  provider.send(item(id));
  provider.send(result_reply("null", id));
  advance(kHop);
  EXPECT_EQ(ada.received(), item("7") + "\n" + result_reply("null", "7"));
}

TEST_F(ClusterTest, ItIsToldOnceThatAMethodComesAndGoesAndAtWhichNode) {
  BrokerNode c{network, scheduler, "c", 0x3000000000};
  NodeClient early{*b};
  early.provide("gpu.sub");
  NodeClient subscriber{*a};
  EXPECT_EQ(subscriber.ask(request("rpc.subscribe", R"({"topic":"rpc.>"})")), result_reply("true"));
  advance(kMeet);
  const auto event = [](std::string_view topic, std::string_view method, std::string_view client = "null") {
    return notification("rpc." + std::string{topic}, R"({"client":)" + std::string{client} + R"(,"method":")" +
                                                         std::string{method} + R"(","node":"b"})");
  };
  EXPECT_EQ(subscriber.received(), event("method.registered", "gpu.sub"));
  NodeClient provider{*b};
  static_cast<void>(provider.ask(request("rpc.hello", R"({"name":"worker"})")));
  advance(kHop);
  EXPECT_EQ(subscriber.received(), notification("rpc.client.joined", R"({"client":"worker","node":"b"})"));
  provider.provide("gpu.add");
  advance(kHop);
  EXPECT_EQ(subscriber.received(), event("method.registered", "gpu.add", "\"worker\""));
  EXPECT_EQ(provider.ask(request("rpc.unregister", R"({"method":"gpu.add"})")), result_reply("1"));
  advance(kHop);
  EXPECT_EQ(subscriber.received(), event("method.unregistered", "gpu.add", "\"worker\""));
  b->bus->become(cluster::Bus::State::disconnected);
  advance(5s);
  EXPECT_EQ(subscriber.received(), notification("rpc.method.unregistered", R"({"client":null,"method":"gpu.sub"})"));
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

// A node that says what no broker would.
class HostileNode {
 public:
  explicit HostileNode(SimulatedNetwork& network, bool is_heard = true) : bus_(network) {
    bus_.subscribe("wc.shop.n.x.call", [this](const cluster::BusMessage& message) {
      if (const auto frame = cluster::read_frame(message.payload)) {
        session = frame->head.from_session;
        said += frame->payload;
      }
      ++answers;
    });
    if (is_heard) beat();
  }
  void beat() { static_cast<void>(bus_.publish("wc.shop.hb", {}, R"({"node":"x","epoch":"9","version":1})")); }
  void say(cluster::FrameKind kind, std::string_view payload, std::string_view name = "x") {
    Buffer out;
    cluster::append_frame_head(out, {.kind = kind,
                                     .from_session = 5,
                                     .to_session = session,
                                     .sequence = kind == cluster::FrameKind::data ? sequence++ : 0,
                                     .node = name});
    out.append(payload);
    EXPECT_TRUE(bus_.publish("wc.shop.n.a.call", {}, out.view()));
  }
  void tell(cluster::RecordKind kind, std::string_view body, std::optional<std::string_view> principal = {}) {
    Buffer out;
    cluster::RecordWriter writer{out, {.kind = kind, .principal = principal}};
    out.append(body);
    EXPECT_TRUE(writer.close());
    say(cluster::FrameKind::data, out.view());
  }

  std::uint64_t session = 0;  // of a's link
  std::uint32_t sequence = 0;
  int answers = 0;
  std::string said;  // to it, by a

 private:
  SimulatedBus bus_;
};

class ClusterAttackTest : public ClusterTest {
 protected:
  void SetUp() override {
    advance(kMeet);
    node = std::make_unique<HostileNode>(network);
    advance(kHop);
    node->say(cluster::FrameKind::open, "?");
    advance(kHop);
    ASSERT_TRUE(a->cluster->find("x") != nullptr);
  }
  // Calls of others go on.
  void TearDown() override {
    NodeClient provider{*b};
    provider.provide("gpu.add");
    NodeClient caller{*a};
    advance(kMeet);
    caller.send(request("gpu.add", "[3]"));
    advance(kHop);
    provider.send(result_reply("3", id_of(provider.received())));
    advance(kHop);
    EXPECT_EQ(caller.received(), result_reply("3"));
  }

  std::unique_ptr<HostileNode> node;
};

TEST_F(ClusterAttackTest, AMillionMethodsAreNotAllTaken) {
  for (int i = 0; i != 110; ++i) {
    std::string set;
    for (int j = 0; j != 1000; ++j)
      set += std::string{j == 0 ? "" : ","} + R"([1,{"method":"m)" + std::to_string(i * 1000 + j) + R"("}])";
    node->tell(cluster::RecordKind::methods, R"({"set":[)" + set + R"(],"gone":[]})");
    advance(100us);
  }
  advance(kHop);
  EXPECT_LE(a->cluster->find("x")->methods().size(), 100'000U);
  EXPECT_LE(a->router.methods().size(), 100'001U);
}

TEST_F(ClusterAttackTest, ANodeThatSaysThatItHasAnyNumberOfProvidersDelaysNoCall) {
  NodeClient own{*a};
  own.provide("cart", R"(,"policy":"hash:user")");
  node->tell(cluster::RecordKind::methods,
             R"({"set":[[4294967295,{"method":"cart","policy":"hash:user"}]],"all":true})");
  advance(kHop);
  NodeClient caller{*a};
  for (int user = 0; user != 1000; ++user) {
    caller.send(request("cart", R"({"user":)" + std::to_string(user) + "}", std::to_string(user)));
  }
  EXPECT_GT(a->router.relayed_calls().in_use(), 0U);
}

TEST_F(ClusterAttackTest, WhatHoldsForAConnectionIsNotSaidByCallsOfANode) {
  for (const std::optional<std::string_view> principal : {std::optional<std::string_view>{""}, {}}) {
    node->tell(cluster::RecordKind::call, request("rpc.hello", R"({"name":"eve"})"), principal);
    node->tell(cluster::RecordKind::call, request("rpc.register", R"({"method":"evil"})"), principal);
    node->tell(cluster::RecordKind::call, notification("rpc.register", R"({"method":"evil"})"), principal);
    node->tell(cluster::RecordKind::call,
               R"({"jsonrpc":"2.0","method":"rpc.r\u0065gister","params":{"method":"evil"}})", principal);
    node->tell(cluster::RecordKind::call, request("rpc.subscribe", R"({"topic":">"})"), principal);
    for (const std::string_view invalid :
         {R"({"jsonrpc":"2.0","id":1})", R"({"jsonrpc":"2.0","method":5,"id":1})", "7"})
      node->tell(cluster::RecordKind::call, invalid, principal);
  }
  advance(kHop);
  EXPECT_EQ(a->router.methods().find("evil"), nullptr);
  EXPECT_EQ(a->router.context().peers.find("eve"), nullptr);
  EXPECT_TRUE(a->router.topics().empty());
  EXPECT_EQ(a->cluster->find("x")->sessions_lost(), 0U);
}

TEST_F(ClusterAttackTest, AHundredThousandPrincipalsAreNoMoreThanOneWhereNobodyHasToSayWhoHeIs) {
  NodeClient provider{*a};
  provider.provide("slow");
  for (int i = 0; i != 5000; ++i)
    node->tell(cluster::RecordKind::call, request("slow", "[]", std::to_string(i)), "p" + std::to_string(i));
  advance(kHop);
  EXPECT_LE(a->cluster->find("x")->calls_here(), 5000U);
  EXPECT_EQ(a->cluster->find("x")->sides(), 1U);
}

TEST_F(ClusterAttackTest, GroupsAndSubscriptionsAreBounded) {
  for (int i = 0; i != 2000; ++i) {
    node->tell(cluster::RecordKind::topics, R"({"set":[["jobs","g)" + std::to_string(i) + R"("]],"gone":[]})");
  }
  advance(kHop);
  EXPECT_LE(a->cluster->find("x")->groups(), 1000U);
  for (int i = 0; i != 2000; ++i) {
    node->tell(cluster::RecordKind::topics, R"({"set":[],"gone":[["jobs","g)" + std::to_string(i) + R"("]]})");
  }
  advance(kHop);
  EXPECT_EQ(a->cluster->find("x")->groups(), 0U);
}

TEST_F(ClusterAttackTest, EventsOfGroupsInWhichItHasNobodyTakeNoMemory) {
  NodeClient subscriber{*a};
  EXPECT_EQ(subscriber.ask(request("rpc.subscribe", R"({"topic":"jobs","group":"g1999"})")), result_reply("true"));
  for (int i = 0; i != 2000; ++i)
    node->tell(cluster::RecordKind::event, notification("jobs", "[1]"), "g" + std::to_string(i));
  advance(kHop);
  EXPECT_EQ(a->cluster->find("x")->groups(), 0U);
  EXPECT_EQ(subscriber.received(), notification("jobs", "[1]"));
}

TEST_F(ClusterAttackTest, WhatIsRetainedForItIsBoundedAndNothingElseIsTaken) {
  const std::size_t before = a->cluster->retained().size();
  for (
      const std::string_view text :
      {R"({"topic":"t","counter":0,"node":"x","epoch":"9","owner":"","client":"","gone":true,"told":false,"ask":false})",
       R"({"topic":"..","counter":1,"node":"x","epoch":"9","owner":"","client":"","gone":true,"told":false,"ask":false})",
       R"({"topic":"t","counter":18446744073709551615,"node":"x","epoch":"9","gone":true})", "", "{}", "[1]",
       "{\"topic\":\"t\",\"counter\":1,\"node\":\"x\",\"epoch\":\"9\"}\nnot an event",
       "{\"topic\":\"t\",\"counter\":1,\"node\":\"x\",\"epoch\":\"9\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"u\"}"}) {
    node->tell(cluster::RecordKind::retained, text);
    advance(kMeet);
    // It has begun a new session: so does the test.
    node->sequence = 0;
    node->say(cluster::FrameKind::open, "?");
    advance(kHop);
  }
  EXPECT_EQ(a->cluster->retained().size(), before);
}

TEST_F(ClusterAttackTest, WhatIsNoArrayOfOutcomesIsOneOutcome) {
  node->tell(cluster::RecordKind::methods, R"({"set":[[4000000000,{"method":"evil"}]],"gone":[],"all":true})");
  advance(kHop);
  NodeClient caller{*a};
  int number = 0;
  for (const std::string_view answer :
       {R"([])", R"([1])", R"({})", R"([{"node":"b","result":1}])", R"([{"result":1,"error":{"code":1,"message":""}}])",
        R"([{"result":1},{}])", R"([{"result":1},[]])", R"([{"client":"only a name"}])"}) {
    const std::string id = std::to_string(++number);
    caller.send(request("rpc.call_all", R"(["evil"])", id));
    advance(kHop);
    const std::string asked{node->said.substr(node->said.rfind(R"("id":)"))};
    node->tell(cluster::RecordKind::answer,
               R"({"jsonrpc":"2.0","result":)" + std::string{answer} + "," + asked.substr(0, asked.find('}') + 1));
    advance(kHop);
    EXPECT_EQ(caller.received(), result_reply(R"([{"node":"x","error":{"code":-32603,"message":"Internal error",)"
                                              R"("data":{"reason":"the provider's response is malformed"}}}])",
                                              id))
        << answer;
  }
}

// Nodes may have calls for many principals here: what belongs to one is no work for the others.
TEST_F(ClusterAttackTest, WhatBelongsToACallNamesItsPrincipalAndIsLookedForAmongThatOnesCalls) {
  const auto principal = [](std::string name) {
    return Principal{
        .name = name, .tokens = {name + "-token"}, .call = {">"}, .provide = {">"}, .publish = {}, .subscribe = {}};
  };
  a->loop_context.services.authority =
      std::make_shared<const rpc::Authority>(std::vector{principal("ada"), principal("bob")});
  NodeClient ada{*a};
  static_cast<void>(ada.ask(request("rpc.hello", R"({"token":"ada-token"})")));
  ada.provide("numbers");
  node->tell(cluster::RecordKind::call, R"({"jsonrpc":"2.0","method":"numbers","id":7,"stream":2})", "bob");
  advance(kHop);
  const std::string id = id_of(ada.received());
  node->tell(cluster::RecordKind::call, cancel_notification("7"), "ada");
  advance(kHop);
  EXPECT_EQ(ada.received(), "");
  node->tell(cluster::RecordKind::call, cancel_notification("7"), "bob");
  advance(kHop);
  EXPECT_EQ(ada.received(), cancel_notification(id));
  node->tell(cluster::RecordKind::methods, R"({"set":[[1,{"method":"evil"}]],"all":true})");
  advance(kHop);
  ada.send(R"({"jsonrpc":"2.0","method":"evil","id":8,"stream":1})");
  ada.send(notification("rpc.credit", R"({"id":8,"n":1000})"));
  ada.send(cancel_notification("8"));
  advance(kHop);
  EXPECT_TRUE(node->said.contains(R"(ada{"jsonrpc":"2.0","method":"rpc.credit")"));
  EXPECT_TRUE(node->said.contains(R"(ada{"jsonrpc":"2.0","method":"$/cancelRequest")"));
  a->loop_context.services.authority = nullptr;
}

TEST_F(ClusterAttackTest, WhatIsNoResponseEndsTheCallThatItNames) {
  node->tell(cluster::RecordKind::methods, R"({"set":[[1,{"method":"evil"}]],"all":true})");
  advance(kHop);
  NodeClient caller{*a};
  int number = 0;
  for (const std::string_view answer : {R"("jsonrpc":"2.0")", R"("jsonrpc":"2.0","results":1)", R"("params":[])"}) {
    const std::string id = std::to_string(++number);
    caller.send(request("evil", "[]", id));
    advance(kHop);
    const std::string asked{node->said.substr(node->said.rfind(R"("id":)"))};
    node->tell(cluster::RecordKind::answer, "{" + std::string{answer} + "," + asked.substr(0, asked.find('}') + 1));
    advance(kHop);
    EXPECT_EQ(caller.received(),
              error_reply(-32603, "Internal error", R"({"reason":"the provider's response is malformed"})", id))
        << answer;
  }
}

TEST_F(ClusterAttackTest, WhatIsNoMessageOfItsEncodingIsPassedOver) {
  using namespace std::string_literals;
  for (const std::string& text : {"\x84\xA7json"s, "\x84"s, "\xA4\x67jsonrpc"s, "\xDF\xFF\xFF\xFF\xFF"s,
                                  "\x92\x80\x80"s, "\x0A\x05method"s, "\xC1"s}) {
    for (const auto kind : {cluster::RecordKind::call, cluster::RecordKind::answer, cluster::RecordKind::event}) {
      node->tell(kind, text, "");
      advance(kHop);
    }
  }
  EXPECT_EQ(a->cluster->find("x")->sessions_lost(), 0U);
  EXPECT_EQ(a->cluster->find("x")->events_lost(), 7U);
  node->tell(cluster::RecordKind::methods, R"({"set":[[1,{"method":"own.add"}]],"all":true})");
  advance(kHop);
  EXPECT_TRUE(a->cluster->find("x")->methods().contains("own.add"));
}

TEST_F(ClusterAttackTest, FramesOfOtherSessionsAreNothing) {
  node->session += 1000;
  node->tell(cluster::RecordKind::methods, R"({"set":[[1,{"method":"evil"}]],"gone":[]})");
  advance(kHop);
  EXPECT_EQ(a->cluster->find("x")->methods().size(), 0U);
}

TEST_F(ClusterAttackTest, NamesThatNeverBeganTakeNoMemory) {
  for (int i = 0; i != 3000; ++i) node->say(cluster::FrameKind::data, "x", "made-up-" + std::to_string(i));
  for (int i = 0; i != 3000; ++i) node->say(cluster::FrameKind::ping, "x", "made-up-" + std::to_string(i));
  advance(kHop);
  EXPECT_EQ(a->cluster->find("made-up-1"), nullptr);
}

TEST_F(ClusterAttackTest, AFloodOfOpensIsAnsweredByFew) {
  const int before = node->answers;
  for (int i = 0; i != 1000; ++i) node->say(cluster::FrameKind::open, "?");
  advance(200us);
  EXPECT_LE(node->answers - before, 16);
}

TEST_F(ClusterTest, WhatIsToldBeforeTheFirstHeartbeatIsToldAnewBehindIt) {
  HostileNode x{network, false};
  x.say(cluster::FrameKind::open, "?");
  advance(kHop);
  x.tell(cluster::RecordKind::methods, R"({"set":[[1,{"method":"gpu.add","policy":"exclusive"}]],"all":true})");
  advance(kHop);
  ASSERT_TRUE(a->cluster->find("x")->methods().contains("gpu.add"));
  x.beat();
  advance(kHop);
  EXPECT_EQ(a->cluster->find("x")->sessions_lost(), 1U);
  EXPECT_FALSE(a->cluster->find("x")->methods().contains("gpu.add"));
}

TEST_F(ClusterTest, OneNodeOfTwoWithOneNameTakesNoPart) {
  BrokerNode twin{network, scheduler, "b", 0x6000000000};
  advance(2500ms);
  EXPECT_TRUE(b->cluster->is_degraded());
  EXPECT_FALSE(twin.cluster->is_degraded());
}

TEST_F(ClusterTest, ANodeOfAnotherVersionIsSeenAndNotCalled) {
  SimulatedBus old{network};
  ASSERT_TRUE(old.publish("wc.shop.hb", {}, R"({"node":"old","epoch":"77","version":99,"load":1})"));
  advance(kMeet);
  NodeClient asker{*a};
  asker.send(request("rpc.cluster"));
  EXPECT_NE(asker.received().find(R"("state":"other version","version":99)"), std::string::npos);
}

TEST_F(ClusterTest, GarbageOnItsSubjectsHurtsNobody) {
  NodeClient provider{*b};
  provider.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  SimulatedBus stranger{network};
  for (const std::string_view subject : {"wc.shop.hb", "wc.shop.n.a.call", "wc.shop.n.b.call", "wc.shop.n.a.gone.b"}) {
    for (const std::string_view text : {"", "W", "{}", "null", "W\x01\x02\x03", "{\"node\":\"..\",\"epoch\":\"1\"}"})
      ASSERT_TRUE(stranger.publish(subject, {}, text));
  }
  advance(kHop);
  caller.send(request("gpu.add", "[3]"));
  advance(kHop);
  provider.send(result_reply("3", id_of(provider.received())));
  advance(kHop);
  EXPECT_EQ(caller.received(), result_reply("3"));
}

}  // namespace
}  // namespace wirecall::test
