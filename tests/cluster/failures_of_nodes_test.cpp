// What fails between brokers: providers, nodes, frames, the bus; and brokers that stop, end or are replaced.
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "tests/cluster/cluster_fixture.hpp"
#include "wirecall/caller.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

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
