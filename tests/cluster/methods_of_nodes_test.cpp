// What brokers know of the methods that clients of others provide.
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/cluster/cluster_fixture.hpp"
#include "wirecall/caller.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

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

TEST_F(ClusterTest, WhatIsExpectedOfOtherNodesIsUnknownWhereTheyHaveNotSaidItInTime) {
  BrokerNode next{network, scheduler, "c", 0x6000000000};
  next.cluster->expect_methods({"cpu.add"});
  NodeClient caller{next};
  EXPECT_EQ(caller.ask(request("cpu.add", "[0]")), remote_error("the provider's node has gone", "no"));
  advance(4s);
  EXPECT_NE(caller.ask(request("cpu.add", "[0]")).find("-32601"), std::string::npos);
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

}  // namespace
}  // namespace wirecall::test
