// A node whose process is replaced by another one while calls are in progress between it and other nodes.
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/cluster_fixture.hpp"
#include "wirecall/value.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

class ReplacedNodeTest : public ClusterTest {
 protected:
  static constexpr std::uint64_t kNextEpoch = 0x6000000000;

  static std::string lost(std::string_view delivered, std::string_view id = "1") {
    return remote_error("the provider's node has gone", delivered, "remote", id);
  }
  // Another process takes the place of that one.
  [[nodiscard]] std::unique_ptr<BrokerNode> take_over_from(BrokerNode& before, std::uint64_t epoch = kNextEpoch) {
    before.router.replaced();
    return std::make_unique<BrokerNode>(network, scheduler, std::string{before.cluster->node()}, epoch);
  }
  // What the provider has been asked, by its id.
  [[nodiscard]] std::string asked(NodeClient& provider) {
    advance(kHop);
    const std::string text = provider.received();
    EXPECT_NE(text, "");
    return text.empty() ? std::string{} : id_of(text);
  }
  void answer(NodeClient& provider, const std::string& id, std::string_view result) {
    provider.send(result_reply(result, id));
    advance(kHop);
  }
};

TEST_F(ReplacedNodeTest, CallsThatAreInProgressBothWaysAreAnswered) {
  NodeClient gpu{*b};
  gpu.provide("gpu.add");
  NodeClient cpu{*a};
  cpu.provide("cpu.add");
  NodeClient at_a{*a};
  NodeClient at_b{*b};
  advance(kMeet);
  at_a.send(request("gpu.add", "[1]", "1"));
  at_b.send(request("cpu.add", "[2]", "2"));
  const std::string to_gpu = asked(gpu);
  const std::string to_cpu = asked(cpu);
  const std::unique_ptr<BrokerNode> next = take_over_from(*b);
  advance(10s);
  EXPECT_EQ(a->cluster->find("b")->last_heartbeat().epoch, kNextEpoch);
  EXPECT_TRUE(next->cluster->find("a")->is_open());
  EXPECT_TRUE(b->cluster->busy());
  EXPECT_EQ(at_a.received() + at_b.received(), "");
  answer(gpu, to_gpu, "10");
  answer(cpu, to_cpu, "20");
  EXPECT_EQ(at_a.received(), result_reply("10", "1"));
  EXPECT_EQ(at_b.received(), result_reply("20", "2"));
  EXPECT_FALSE(b->cluster->busy());
  EXPECT_EQ(a->cluster->departing(), 1U);
  gpu.leave();
  at_b.leave();
  b.reset();
  advance(kMeet);
  EXPECT_EQ(a->cluster->departing(), 0U);
  EXPECT_TRUE(a->cluster->find("b")->is_open());
}

TEST_F(ReplacedNodeTest, ACallThatIsOnTheWayToTheProcessThatIsReplacedIsAnswered) {
  NodeClient gpu{*b};
  gpu.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  network.delay = 10ms;
  caller.send(request("gpu.add", "[1]"));
  advance(kHop);
  const std::unique_ptr<BrokerNode> next = take_over_from(*b);
  advance(10ms);
  network.delay = 40us;
  answer(gpu, asked(gpu), "10");
  advance(30ms);
  EXPECT_EQ(caller.received(), result_reply("10"));
}

TEST_F(ReplacedNodeTest, StreamsGoOnWithTheirCreditAndCallsAreCancelled) {
  NodeClient gpu{*b};
  gpu.provide("numbers");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(R"({"jsonrpc":"2.0","method":"numbers","id":7,"stream":2})");
  const std::string id = asked(gpu);
  const std::unique_ptr<BrokerNode> next = take_over_from(*b);
  advance(1s);
  gpu.send(notification("rpc.item", R"({"id":)" + id + R"(,"value":1})"));
  advance(kHop);
  EXPECT_NE(caller.received().find(R"("value":1)"), std::string::npos);
  caller.send(notification("rpc.credit", R"({"id":7,"n":3})"));
  advance(kHop);
  EXPECT_NE(gpu.received().find("rpc.credit"), std::string::npos);
  caller.send(cancel_notification("7"));
  EXPECT_EQ(caller.received(), cancelled("7"));
  advance(kHop);
  EXPECT_EQ(gpu.received(), cancel_notification(id));
}

TEST_F(ReplacedNodeTest, ClientsThatStayCallMethodsOfOtherNodesAndLearnWhichTheseAre) {
  NodeClient cpu{*a};
  cpu.provide("cpu.add");
  NodeClient stays{*b};
  advance(kMeet);
  const std::unique_ptr<BrokerNode> next = take_over_from(*b);
  advance(10s);
  stays.send(request("cpu.add", "[1]", "1"));
  answer(cpu, asked(cpu), "1");
  EXPECT_EQ(stays.received(), result_reply("1", "1"));
  cpu.provide("cpu.sub");
  advance(kHop);
  stays.send(request("cpu.sub", "[2]", "2"));
  answer(cpu, asked(cpu), "2");
  EXPECT_EQ(stays.received(), result_reply("2", "2"));
  cpu.leave();
  advance(kHop);
  EXPECT_NE(stays.ask(request("cpu.add", "[3]", "3")).find("-32009"), std::string::npos);
  // A node that has begun since it does not meet.
  BrokerNode c{network, scheduler, "c", 0x7000000000};
  NodeClient far{c};
  far.provide("far.add");
  advance(2s);
  EXPECT_NE(stays.ask(request("far.add", "[4]", "4")).find("-32009"), std::string::npos);
}

TEST_F(ReplacedNodeTest, MethodsAreCalledAtTheProcessThatIsReplacedUntilTheOtherOneTellsOfThem) {
  NodeClient stays{*b};
  stays.provide("gpu.add");
  stays.provide("gpu.sub");
  NodeClient caller{*a};
  advance(kMeet);
  b->router.replaced();
  advance(kMeet);
  ASSERT_NE(a->cluster->find("b"), nullptr);  // nobody takes it for gone
  caller.send(request("gpu.add", "[1]", "1"));
  answer(stays, asked(stays), "1");
  EXPECT_EQ(caller.received(), result_reply("1", "1"));
  BrokerNode next{network, scheduler, "b", kNextEpoch};
  NodeClient comes{next};
  comes.provide("gpu.add");
  // Of each call there is a provider meanwhile.
  const cluster::Node& node = *a->cluster->find("b");
  int calls = 10;
  for (; node.state() != cluster::Node::State::up && calls != 1000; ++calls) {
    caller.send(request("gpu.add", "[2]", std::to_string(calls)));
    scheduler.advance(50us);
  }
  ASSERT_LT(calls, 1000);
  advance(kHop);
  for (NodeClient* const one : {&stays, &comes}) {
    for (const std::string& text : std::exchange(one->sink.messages, {})) answer(*one, id_of(text), "2");
  }
  for (const std::string& text : std::exchange(caller.sink.messages, {})) {
    EXPECT_NE(text.find("\"result\":2"), std::string::npos) << text;
    --calls;
  }
  EXPECT_EQ(calls, 10);
  caller.send(request("gpu.add", "[3]", "3"));
  answer(comes, asked(comes), "3");
  EXPECT_EQ(caller.received(), result_reply("3", "3"));
  EXPECT_EQ(stays.received(), "");
  // What it does not provide nobody does.
  EXPECT_NE(caller.ask(request("gpu.sub", "[4]", "4")).find("-32601"), std::string::npos);
  EXPECT_EQ(a->cluster->find("b"), &node);
}

TEST_F(ReplacedNodeTest, OneThatDoesNotComeHasGoneAfterItsSilenceAndCallsInProgressGoOn) {
  NodeClient stays{*b};
  stays.provide("gpu.add");
  NodeClient caller{*a};
  NodeClient patient{*a};
  advance(kMeet);
  patient.send(request("gpu.add", "[0]", "0"));
  const std::string id = asked(stays);
  b->router.replaced();
  advance(4s);
  EXPECT_EQ(a->cluster->find("b"), nullptr);
  EXPECT_NE(caller.ask(request("gpu.add", "[1]")).find("-32601"), std::string::npos);
  answer(stays, id, "0");
  EXPECT_EQ(patient.received(), result_reply("0", "0"));
}

TEST_F(ReplacedNodeTest, WhoAsksAllProvidersAsksThoseOfTheNodeOnce) {
  NodeClient stays{*b};
  stays.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  const std::unique_ptr<BrokerNode> next = take_over_from(*b);
  NodeClient comes{*next};
  comes.provide("gpu.add");
  advance(kMeet);
  caller.send(request("rpc.call_all", R"({"method":"gpu.add"})", "1"));
  answer(comes, asked(comes), "1");
  EXPECT_EQ(caller.received(), result_reply(R"([{"node":"b","result":1}])", "1"));
  EXPECT_EQ(stays.received(), "");
}

TEST_F(ReplacedNodeTest, TheProcessThatTakesOverMayBeHeardBeforeTheWordOfTheOther) {
  NodeClient gpu{*b};
  gpu.provide("gpu.add");
  NodeClient cpu{*a};
  cpu.provide("cpu.add");
  NodeClient at_a{*a};
  NodeClient at_b{*b};
  advance(kMeet);
  at_a.send(request("gpu.add", "[1]", "1"));
  at_b.send(request("cpu.add", "[2]", "2"));
  const std::string to_gpu = asked(gpu);
  const std::string to_cpu = asked(cpu);
  b->stop();  // its loop stands still while the other process takes over
  BrokerNode next{network, scheduler, "b", kNextEpoch};
  advance(500ms);
  EXPECT_TRUE(a->cluster->find("b")->is_open());
  b->router.replaced();
  b->go_on();
  advance(5s);
  EXPECT_TRUE(next.cluster->find("a")->is_open());
  EXPECT_FALSE(next.cluster->is_degraded());
  answer(gpu, to_gpu, "10");
  answer(cpu, to_cpu, "20");
  EXPECT_EQ(at_a.received(), result_reply("10", "1"));
  EXPECT_EQ(at_b.received(), result_reply("20", "2"));
}

TEST_F(ReplacedNodeTest, BothNodesAreReplacedAndCallsBetweenTheFormerProcessesAreAnswered) {
  NodeClient gpu{*b};
  gpu.provide("gpu.add");
  NodeClient cpu{*a};
  cpu.provide("cpu.add");
  NodeClient at_a{*a};
  NodeClient at_b{*b};
  advance(kMeet);
  at_a.send(request("gpu.add", "[1]", "1"));
  at_b.send(request("cpu.add", "[2]", "2"));
  const std::string to_gpu = asked(gpu);
  const std::string to_cpu = asked(cpu);
  const std::unique_ptr<BrokerNode> next_b = take_over_from(*b);
  advance(10ms);
  const std::unique_ptr<BrokerNode> next_a = take_over_from(*a);
  advance(10s);
  EXPECT_TRUE(next_a->cluster->find("b")->is_open());
  EXPECT_TRUE(next_b->cluster->find("a")->is_open());
  answer(gpu, to_gpu, "10");
  answer(cpu, to_cpu, "20");
  EXPECT_EQ(at_a.received(), result_reply("10", "1"));
  EXPECT_EQ(at_b.received(), result_reply("20", "2"));
  at_b.send(request("cpu.add", "[3]", "3"));  // and those that stay call each other
  answer(cpu, asked(cpu), "30");
  EXPECT_EQ(at_b.received(), result_reply("30", "3"));
}

// ---- what fails meanwhile ----

TEST_F(ReplacedNodeTest, AProcessThatIsKilledAfterItWasReplacedEndsItsCallsAtOnceAndNoOthers) {
  NodeClient gpu{*b};
  gpu.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("gpu.add", "[1]"));
  static_cast<void>(asked(gpu));
  const std::unique_ptr<BrokerNode> next = take_over_from(*b);
  advance(1s);
  EXPECT_EQ(caller.received(), "");
  b->bus->become(cluster::Bus::State::disconnected);
  advance(300ms);  // a ping finds nobody
  EXPECT_EQ(caller.received(), lost("maybe"));
  EXPECT_EQ(a->cluster->departing(), 0U);
  EXPECT_TRUE(a->cluster->find("b")->is_open());
  EXPECT_EQ(a->cluster->find("b")->sessions_lost(), 0U);
}

TEST_F(ReplacedNodeTest, TheProcessThatIsTheNodeIsFoundToBeGoneAtOnceThoughTheOneBeforeIsThere) {
  NodeClient stays{*b};
  const std::unique_ptr<BrokerNode> next = take_over_from(*b);
  NodeClient gpu{*next};
  gpu.provide("gpu.add");
  NodeClient caller{*a};
  advance(1s);
  caller.send(request("gpu.add", "[1]"));
  static_cast<void>(asked(gpu));
  next->bus->become(cluster::Bus::State::disconnected);
  advance(300ms);
  EXPECT_EQ(caller.received(), lost("maybe"));
}

TEST_F(ReplacedNodeTest, AProcessThatIsCutOffAfterItWasReplacedEndsItsCallsWithinFourSeconds) {
  NodeClient gpu{*b};
  gpu.provide("gpu.add");
  NodeClient cpu{*a};
  cpu.provide("cpu.add");
  NodeClient at_a{*a};
  NodeClient at_b{*b};
  advance(kMeet);
  at_a.send(request("gpu.add", "[1]", "1"));
  at_b.send(request("cpu.add", "[2]", "2"));
  static_cast<void>(asked(gpu));
  static_cast<void>(asked(cpu));
  const std::unique_ptr<BrokerNode> next = take_over_from(*b);
  advance(1s);
  network.part(*a->bus, *b->bus);
  advance(3400ms);
  EXPECT_EQ(at_a.received(), lost("maybe", "1"));
  EXPECT_EQ(at_b.received(), lost("maybe", "2"));
  EXPECT_TRUE(a->cluster->find("b")->is_open());
  EXPECT_FALSE(b->cluster->busy());
}

TEST_F(ReplacedNodeTest, AProcessThatBeginsAfterACrashEndsTheCallsOfTheOneBefore) {
  NodeClient gpu{*b};
  gpu.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("gpu.add", "[1]"));
  static_cast<void>(asked(gpu));
  b->bus->become(cluster::Bus::State::disconnected);
  BrokerNode next{network, scheduler, "b", kNextEpoch};
  advance(300ms);
  EXPECT_EQ(caller.received(), lost("maybe"));
  EXPECT_TRUE(a->cluster->find("b")->is_open());
}

TEST_F(ReplacedNodeTest, AMessageThatIsLostEndsThatSessionAlone) {
  NodeClient gpu{*b};
  gpu.provide("gpu.add");
  NodeClient cpu{*a};
  cpu.provide("cpu.add");
  NodeClient at_a{*a};
  NodeClient at_b{*b};
  advance(kMeet);
  at_a.send(request("gpu.add", "[1]", "1"));
  at_b.send(request("cpu.add", "[2]", "2"));
  const std::string to_gpu = asked(gpu);
  static_cast<void>(asked(cpu));
  const std::unique_ptr<BrokerNode> next = take_over_from(*b);
  advance(1s);
  network.lost_of_million = 1'000'000;
  answer(gpu, to_gpu, "10");
  network.lost_of_million = 0;
  advance(600ms);
  EXPECT_EQ(at_a.received(), lost("maybe", "1"));
  EXPECT_EQ(at_b.received(), lost("maybe", "2"));
  EXPECT_EQ(a->cluster->departing(), 0U);
  EXPECT_NE(at_b.ask(request("cpu.add", "[3]", "3")).find("-32009"), std::string::npos);
  EXPECT_EQ(a->cluster->find("b")->sessions_lost(), 0U);
}

TEST_F(ReplacedNodeTest, WhatANodeThatEndsHasNotGotWasNotDelivered) {
  NodeClient gpu{*b};
  gpu.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("gpu.add", "[1]", "1"));
  EXPECT_NE(asked(gpu), "");
  network.delay = 10ms;
  caller.send(request("gpu.add", "[2]", "2"));
  advance(kHop);
  gpu.leave();
  b.reset();
  advance(30ms);
  const std::string ended = caller.received();
  EXPECT_NE(ended.find(lost("no", "2")), std::string::npos) << ended;
  EXPECT_NE(ended.find(lost("maybe", "1")), std::string::npos) << ended;
}

TEST_F(ReplacedNodeTest, TheSessionWithTheOldestEndsWhereTooManyHaveBeenReplaced) {
  NodeClient gpu{*b};
  gpu.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("gpu.add", "[1]"));
  static_cast<void>(asked(gpu));
  std::vector<std::unique_ptr<BrokerNode>> all;
  all.push_back(take_over_from(*b));
  for (std::size_t i = 2; i <= cluster::Cluster::kDepartingMax + 3; ++i) {
    advance(kMeet);
    EXPECT_EQ(caller.received(), i <= cluster::Cluster::kDepartingMax + 1 ? "" : lost("maybe")) << i;
    if (i > cluster::Cluster::kDepartingMax + 1) break;
    all.push_back(take_over_from(*all.back(), kNextEpoch + i));
  }
  EXPECT_EQ(a->cluster->departing(), cluster::Cluster::kDepartingMax);
  EXPECT_EQ(b->cluster->next(""), nullptr);  // it knows that its session has ended
  all.erase(all.begin(), all.end() - 1);
  advance(kMeet);
  EXPECT_EQ(a->cluster->departing(), 0U);
}

TEST_F(ReplacedNodeTest, WhereTheBusIsLostAllEnds) {
  NodeClient gpu{*b};
  gpu.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("gpu.add", "[1]"));
  static_cast<void>(asked(gpu));
  const std::unique_ptr<BrokerNode> next = take_over_from(*b);
  advance(1s);
  a->bus->become(cluster::Bus::State::disconnected);
  EXPECT_NE(caller.received().find(R"("origin":"bus","delivered":"maybe")"), std::string::npos);
  a->bus->become(cluster::Bus::State::connected);
  advance(4s);
  EXPECT_EQ(a->cluster->departing(), 0U);
  EXPECT_TRUE(a->cluster->find("b")->is_open());
  EXPECT_FALSE(b->cluster->busy());
}

// ---- what is no call ----

TEST_F(ReplacedNodeTest, AnEventIsToldByTheProcessThatIsTheNodeAndOnce) {
  NodeClient here{*a};
  EXPECT_EQ(here.ask(request("rpc.subscribe", R"({"topic":"t"})")), result_reply("true"));
  NodeClient stays{*b};
  EXPECT_EQ(stays.ask(request("rpc.subscribe", R"({"topic":"t"})")), result_reply("true"));
  advance(kMeet);
  stays.send(notification("t", "[1]"));
  const std::unique_ptr<BrokerNode> next = take_over_from(*b);
  advance(kMeet);
  EXPECT_EQ(here.received(), notification("t", "[1]"));
  stays.send(notification("t", "[2]"));  // which goes by the connection between the two processes
  NodeClient comes{*next};
  comes.send(notification("t", "[3]"));
  advance(kMeet);
  EXPECT_EQ(here.received(), notification("t", "[3]"));
  const std::uint64_t before = network.published;
  here.send(notification("t", "[4]"));
  advance(100us);
  EXPECT_EQ(network.published, before);  // nobody at the node as it is now subscribes
}

TEST_F(ReplacedNodeTest, OneOfTwoThatHaveOneNameIsHeardAgainWhenTheOtherHasGone) {
  NodeClient gpu{*b};
  gpu.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("gpu.add", "[1]", "1"));
  static_cast<void>(asked(gpu));
  {
    BrokerNode rival{network, scheduler, "b", kNextEpoch};
    advance(kMeet);
    EXPECT_EQ(caller.received(), lost("maybe"));
    EXPECT_EQ(a->cluster->find("b")->last_heartbeat().epoch, kNextEpoch);
    EXPECT_EQ(a->cluster->departing(), 0U);
  }
  advance(6s);
  ASSERT_NE(a->cluster->find("b"), nullptr);
  EXPECT_EQ(a->cluster->find("b")->last_heartbeat().epoch, 0x2000000000U);
  static_cast<void>(gpu.received());  // that the first one was cancelled
  caller.send(request("gpu.add", "[2]", "2"));
  answer(gpu, asked(gpu), "2");
  EXPECT_EQ(caller.received(), result_reply("2", "2"));
}

TEST_F(ReplacedNodeTest, ACallOfAClientThatStaysEndsWhosePrincipalIsTakenAwayAtTheOtherNode) {
  const auto know = [](BrokerNode& node, const std::vector<std::string>& names) {
    std::vector<Principal> principals;
    for (const std::string& name : names) {
      principals.push_back(
          {.name = name, .tokens = {name + "-token"}, .call = {">"}, .provide = {">"}, .publish = {}, .subscribe = {}});
    }
    node.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::move(principals));
  };
  const auto greet = [](NodeClient& client, const std::string& name) {
    const std::string answer = client.ask(request("rpc.hello", R"({"token":")" + name + "-token\"}"));
    EXPECT_NE(answer.find("\"result\""), std::string::npos) << answer;
  };
  for (BrokerNode* const node : {a.get(), b.get()}) know(*node, {"ada", "worker"});
  NodeClient cpu{*a};
  greet(cpu, "worker");
  cpu.provide("cpu.add");
  NodeClient ada{*b};
  greet(ada, "ada");
  advance(kMeet);
  ada.send(request("cpu.add", "[1]", "1"));
  static_cast<void>(asked(cpu));
  const std::unique_ptr<BrokerNode> next = take_over_from(*b);
  advance(1s);
  EXPECT_EQ(ada.received(), "");
  know(*a, {"worker"});
  advance(300ms);
  const std::string ended = ada.received();
  EXPECT_NE(ended.find("-32004"), std::string::npos) << ended;
  EXPECT_NE(ended.find(R"("delivered":"maybe")"), std::string::npos) << ended;
}

}  // namespace
}  // namespace wirecall::test
