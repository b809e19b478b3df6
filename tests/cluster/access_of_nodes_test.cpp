// Principals and grants across brokers: both check whose call it is.
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "rpc/access.hpp"
#include "tests/cluster/cluster_fixture.hpp"
#include "wirecall/caller.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

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

}  // namespace
}  // namespace wirecall::test
