// Events across brokers: subscribed to at one, published at another.
#include <gtest/gtest.h>
#include <string>

#include "tests/cluster/cluster_fixture.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

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

}  // namespace
}  // namespace wirecall::test
