// Methods that two brokers have registered otherwise: neither calls those of the other's clients, until its own end.
#include <gtest/gtest.h>

#include "tests/cluster/cluster_fixture.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

class WithheldMethods : public ClusterTest {
 protected:
  static constexpr auto kTick = 251ms;

  static void unregister(NodeClient& client, std::string_view method = "work") {
    EXPECT_TRUE(client.ask(request("rpc.unregister", R"({"method":")" + std::string{method} + "\"}"))
                    .ends_with(result_reply("1")));
  }
  // Whether a client of `a` that calls it reaches that one.
  [[nodiscard]] bool reaches(NodeClient& provider) {
    NodeClient caller{*a};
    const std::string params = "[" + std::to_string(++calls) + "]";
    caller.send(request("work", params));
    advance(kHop);
    for (const std::string& asked : std::exchange(provider.sink.messages, {})) {
      if (!asked.contains(R"("method":"work","params":)" + params)) continue;
      provider.send(result_reply("6", id_of(asked)));
      advance(kHop);
      return caller.received() == result_reply("6");
    }
    return false;
  }

  int calls = 0;
};

TEST_F(WithheldMethods, OneOfAnotherPolicyIsCalledOnceTheOwnOneHasEnded) {
  NodeClient own{*a};
  own.provide("work");
  NodeClient far{*b};
  far.provide("work", R"(,"policy":"round_robin")");
  advance(kMeet);
  EXPECT_FALSE(reaches(far));
  EXPECT_TRUE(reaches(own));
  unregister(own);
  advance(kHop);
  EXPECT_TRUE(reaches(far));
}

TEST_F(WithheldMethods, BothNodesCallTheOthersOnceTheirOwnHaveEnded) {
  NodeClient own{*a};
  own.provide("work", R"(,"policy":"last")");
  NodeClient far{*b};
  far.provide("work", R"(,"policy":"first")");
  advance(kMeet);
  far.leave();
  advance(kHop);
  NodeClient caller{*b};
  caller.send(request("work", "[5]"));
  advance(kHop);
  own.send(result_reply("6", id_of(own.received())));
  advance(kHop);
  EXPECT_EQ(caller.received(), result_reply("6"));
}

TEST_F(WithheldMethods, OneThatHasEndedMeanwhileIsNotCalled) {
  NodeClient own{*a};
  own.provide("work");
  NodeClient far{*b};
  far.provide("work", R"(,"policy":"round_robin")");
  advance(kMeet);
  unregister(far);
  advance(kHop);
  unregister(own);
  advance(kTick);
  NodeClient caller{*a};
  EXPECT_TRUE(caller.ask(request("work", "[]")).contains("-32601"));
}

TEST_F(WithheldMethods, OneThatIsRegisteredAlikeMeanwhileIsCalledAtOnce) {
  NodeClient own{*a};
  own.provide("work", R"(,"concurrency":1)");
  NodeClient far{*b};
  far.provide("work", R"(,"policy":"round_robin")");
  advance(kMeet);
  unregister(far);
  far.provide("work");
  advance(kHop);
  NodeClient caller{*a};
  caller.send(request("work", "[1]", "1"));
  caller.send(request("work", "[2]", "2"));
  advance(kHop);
  EXPECT_TRUE(own.received().contains("[1]"));
  EXPECT_TRUE(far.received().contains("[2]"));
}

TEST_F(WithheldMethods, OneOfAnotherKindIsCalledOnceNoCallIsAtWorkAnyMore) {
  NodeClient own{*a};
  own.provide("work", R"(,"subscription":{"unsubscribe":"work.off","notification":"work.event"})");
  NodeClient far{*b};
  far.provide("work");
  advance(kMeet);
  NodeClient subscriber{*a};
  subscriber.send(request("work", "[]"));
  const std::string asked = own.received();
  unregister(own);
  advance(kTick);
  EXPECT_FALSE(reaches(far));
  own.send(error_reply(7, "no", {}, id_of(asked)));
  advance(kTick);
  EXPECT_TRUE(reaches(far));
}

TEST_F(WithheldMethods, OneOfANodeThatHasGoneIsNotKnown) {
  NodeClient own{*a};
  own.provide("work");
  NodeClient far{*b};
  far.provide("work", R"(,"policy":"round_robin")");
  advance(kMeet);
  far.leave();
  b.reset();
  advance(kTick);
  unregister(own);
  advance(kTick);
  NodeClient caller{*a};
  EXPECT_TRUE(caller.ask(request("work", "[]")).contains("-32601"));
}

TEST_F(WithheldMethods, OneThatWantsToBeTheOnlyOneIsCalledOnceTheOtherNodeHasGone) {
  // b and c do not know of each other, and a knows both.
  BrokerNode c{network, scheduler, "c", 0x3000000000};
  network.part(*b->bus, *c.bus);
  NodeClient lower{*b};
  lower.provide("work", R"(,"policy":"exclusive")");
  NodeClient higher{c};
  higher.provide("work", R"(,"policy":"exclusive")");
  advance(kMeet);
  EXPECT_TRUE(reaches(higher));
  unregister(higher);
  advance(kTick);
  EXPECT_TRUE(reaches(lower));
}

}  // namespace
}  // namespace wirecall::test
