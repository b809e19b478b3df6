// What the dearest that a client may ask of another node costs there: calls, messages of the bus and bytes, and no
// time.
#include <gtest/gtest.h>

#include "tests/cluster/encoded_client.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

class CostOfCalls : public testing::Test {
 protected:
  static constexpr auto kMeet = 100ms;
  static constexpr auto kHop = 1ms;

  struct Sent {
    std::uint64_t messages;
    std::uint64_t bytes;
  };
  // What both have published since that was asked last.
  Sent sent() {
    const Sent all{network.published, network.published_bytes};
    return {all.messages - std::exchange(before.messages, all.messages),
            all.bytes - std::exchange(before.bytes, all.bytes)};
  }
  void advance(std::chrono::nanoseconds by) { scheduler.advance(by); }

  VirtualScheduler scheduler;
  SimulatedNetwork network{scheduler};
  BrokerNode a{network, scheduler, "a", 0x1000000000};
  BrokerNode b{network, scheduler, "b", 0x2000000000};
  Sent before{0, 0};
};

TEST_F(CostOfCalls, ABatchOfCallAllsAsksTheOtherNodesProvidersNoMoreThanMayBeInFlight) {
  constexpr std::size_t kProviders = 50;
  a.limits.in_flight = 256;
  std::vector<std::unique_ptr<NodeClient>> providers;
  for (std::size_t i = 0; i != kProviders; ++i) {
    providers.push_back(std::make_unique<NodeClient>(b));
    providers.back()->provide("version");
  }
  NodeClient caller{a};
  advance(kMeet);
  static_cast<void>(sent());
  std::string batch = "[";
  for (int i = 0; i != 1000; ++i)
    batch += (i == 0 ? "" : ",") + request("rpc.call_all", R"(["version"])", std::to_string(i));
  caller.send(batch + "]");
  advance(kMeet);
  std::size_t asked = 0;
  for (const auto& provider : providers) {
    for (const char c : provider->received()) asked += c == '{' ? 1 : 0;
  }
  EXPECT_EQ(asked, 5 * kProviders);
  const Sent cost = sent();
  EXPECT_LE(cost.messages, 3U);  // a ping and its pong
  EXPECT_LE(cost.bytes, 1000U);
}

TEST_F(CostOfCalls, ACallThatNamesSomebodyIsLookedForAtOneNode) {
  BrokerNode c{network, scheduler, "c", 0x3000000000};
  NodeClient named{b};
  NodeClient other{c};
  static_cast<void>(named.ask(request("rpc.hello", R"({"name":"worker"})")));
  named.provide("work");
  other.provide("work");
  NodeClient caller{a};
  advance(kMeet);
  static_cast<void>(sent());
  const std::string call = R"({"jsonrpc":"2.0","method":"work","params":[1],"to":"worker","id":7})";
  for (int i = 0; i != 1000; ++i) caller.send(call);
  advance(kHop);
  const Sent cost = sent();
  EXPECT_EQ(cost.messages, 1U);
  EXPECT_LE(cost.bytes, 1000 * (call.size() + 24));
  EXPECT_EQ(other.received(), "");
}

TEST_F(CostOfCalls, ItemsOfATurnAreOneMessage) {
  NodeClient provider{b};
  provider.provide("numbers");
  NodeClient caller{a};
  advance(kMeet);
  caller.send(R"({"jsonrpc":"2.0","method":"numbers","id":7,"stream":64})");
  advance(kHop);
  const std::string item = notification("rpc.item", R"({"id":)" + id_of(provider.received()) + R"(,"value":1})");
  static_cast<void>(sent());
  for (int i = 0; i != 64; ++i) provider.send(item);
  advance(kHop);
  const Sent cost = sent();
  EXPECT_EQ(cost.messages, 1U);
  EXPECT_LE(cost.bytes, 64 * (item.size() + 24));
}

class CostOfEncodings : public CostOfCalls, public testing::WithParamInterface<Encoding> {};

TEST_P(CostOfEncodings, WhatIsLargeIsSentOnceAsLargeAsItCame) {
  EncodedClient provider{b, GetParam()};
  provider.send_json(request("rpc.register", R"({"method":"work"})"));
  EncodedClient caller{a, GetParam()};
  advance(kMeet);
  Buffer call;
  const PaddedText json{request("work", "[\"" + std::string(3'000'000, 'x') + "\"]")};
  ASSERT_TRUE(a.loop_context.codecs.transcoder(GetParam()).from_json(json.view(), a.limits, call));
  static_cast<void>(sent());
  caller.send(call.view());
  advance(kHop);
  const Sent cost = sent();
  EXPECT_EQ(cost.messages, 3U);  // of a MiB each
  EXPECT_LE(cost.bytes, call.size() + 400);
  EXPECT_EQ(a.cluster->find("b")->sessions_lost(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Binary, CostOfEncodings,
                         testing::Values(Encoding::msgpack, Encoding::cbor, Encoding::protobuf));

}  // namespace
}  // namespace wirecall::test
