// Retained events across brokers: what one retains all do.
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "tests/cluster/cluster_fixture.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

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

}  // namespace
}  // namespace wirecall::test
