// Methods that want one provider in the realm, on a simulated bus.
#include "cluster/exclusive_claims.hpp"

#include <gtest/gtest.h>

#include "tests/cluster/cluster_world.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

class ExclusiveClaimsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* const name : {"a", "b", "c"})
      nodes[name] = std::make_unique<BrokerNode>(network, scheduler, name, ++epoch << 40);
    scheduler.advance(100ms);
  }
  BrokerNode& node(const std::string& name) { return *nodes.at(name); }
  static std::string registration() { return request("rpc.register", R"({"method":"gpu.add","policy":"exclusive"})"); }
  // Whose provider is asked by a call at that node: "a", "b"; or the error.
  std::string asked_at(const std::string& name) {
    NodeClient caller{node(name)};
    caller.send(request("gpu.add", "[]"));
    scheduler.advance(1ms);
    for (const auto& [own, client] : providers) {
      const std::string asked = client->received();
      if (asked.find("\"method\":\"gpu.add\"") == asked.npos) continue;
      client->send(result_reply("1", id_of(asked)));
      scheduler.advance(1ms);
      EXPECT_EQ(caller.received(), result_reply("1"));
      return own;
    }
    return caller.received();
  }
  std::string provide(const std::string& name) {
    auto& client = providers[name];
    if (client == nullptr) client = std::make_unique<NodeClient>(node(name));
    return client->ask(registration());
  }

  VirtualScheduler scheduler;
  SimulatedNetwork network{scheduler};
  std::uint64_t epoch = 0;
  std::map<std::string, std::unique_ptr<BrokerNode>> nodes;
  std::map<std::string, std::unique_ptr<NodeClient>> providers;
};

TEST_F(ExclusiveClaimsTest, ASecondRegistrationIsRefusedAtWhicheverNode) {
  EXPECT_EQ(provide("a"), result_reply("1"));
  scheduler.advance(1ms);
  EXPECT_NE(provide("b").find("-32007"), std::string::npos);
  EXPECT_NE(provide("c").find("-32007"), std::string::npos);
  EXPECT_EQ(asked_at("b"), "a");
  providers.at("a")->leave();
  scheduler.advance(1ms);
  EXPECT_EQ(provide("b"), result_reply("1"));
  scheduler.advance(1ms);
  EXPECT_EQ(asked_at("c"), "b");
}

TEST_F(ExclusiveClaimsTest, OfTwoSidesOfANetworkThatWasCutOneStays) {
  network.part(*node("a").bus, *node("b").bus);
  network.part(*node("a").bus, *node("c").bus);
  scheduler.advance(5s);
  EXPECT_EQ(provide("a"), result_reply("1"));
  EXPECT_EQ(provide("b"), result_reply("1"));
  scheduler.advance(1s);
  EXPECT_EQ(asked_at("a"), "a");
  EXPECT_EQ(asked_at("c"), "b");
  network.heal();
  scheduler.advance(3s);
  for (const char* const name : {"a", "b", "c"}) EXPECT_EQ(asked_at(name), "b") << name;
  EXPECT_NE(provide("a").find("-32007"), std::string::npos);
}

TEST_F(ExclusiveClaimsTest, OfTwoAtOneMomentOneStays) {
  EXPECT_EQ(provide("c"), result_reply("1"));
  EXPECT_EQ(provide("a"), result_reply("1"));
  EXPECT_EQ(provide("b"), result_reply("1"));
  scheduler.advance(1s);
  for (const char* const name : {"a", "b", "c"}) EXPECT_EQ(asked_at(name), "c") << name;
}

}  // namespace
}  // namespace wirecall::test
