// Methods that cannot be called now, of nodes that are away or about to come: what callers are told of them, and
// whether their calls were delivered.
#include <gtest/gtest.h>

#include "tests/cluster/cluster_fixture.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

class AbsentMethodsTest : public ClusterTest {};

TEST_F(AbsentMethodsTest, MethodsOfAPrefixAreExpectedToo) {
  BrokerNode next{network, scheduler, "c", 0x3000000000};
  next.cluster->expect_methods({"tpu.>"});
  NodeClient caller{next};
  EXPECT_NE(caller.ask(request("tpu.add", "[0]")).find("the provider's node has gone"), std::string::npos);
  EXPECT_NE(caller.ask(request("gpu.add", "[0]")).find("-32601"), std::string::npos);
}

TEST_F(AbsentMethodsTest, WithoutTheBusWhatIsExpectedStaysExpected) {
  BrokerNode next{network, scheduler, "c", 0x3000000000};
  next.bus->become(cluster::Bus::State::disconnected);
  next.cluster->expect_methods({"cpu.add"});
  NodeClient caller{next};
  advance(5s);
  EXPECT_NE(caller.ask(request("cpu.add", "[0]")).find(R"("origin":"bus","delivered":"no"})"), std::string::npos);
  next.bus->become(cluster::Bus::State::connected);
  EXPECT_NE(caller.ask(request("cpu.add", "[0]")).find("the provider's node has gone"), std::string::npos);
  advance(5s);
  EXPECT_NE(caller.ask(request("cpu.add", "[0]")).find("-32601"), std::string::npos);
}

TEST_F(AbsentMethodsTest, OfACallOfAllANodeThatWouldNotBeAskedIsNoOutcome) {
  NodeClient own{*a};
  own.provide("ver.a");
  NodeClient far{*b};
  far.provide("ver.>");
  NodeClient caller{*a};
  advance(kMeet);
  a->bus->become(cluster::Bus::State::disconnected);
  caller.send(request("rpc.call_all", R"({"method":"ver.a"})"));
  own.send(result_reply("1", id_of(own.received())));
  EXPECT_EQ(caller.received(), result_reply(R"([{"result":1}])"));
}

TEST_F(AbsentMethodsTest, OneThatHasGoneFromTheOnlyNodeThatHadItIsNotDelivered) {
  NodeClient far{*b};
  far.provide("gpu.add");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("gpu.add", "[1]"));
  EXPECT_EQ(far.ask(request("rpc.unregister", R"({"method":"gpu.add"})")), result_reply("1"));
  advance(kHop);
  EXPECT_NE(caller.received().find(
                R"({"reason":"the method is not provided on its node any more","origin":"remote","delivered":"no"})"),
            std::string::npos);
}

TEST_F(AbsentMethodsTest, WhoGivesWayInAQueueMayHaveBeenDoneByTheFirst) {
  NodeClient own{*a};
  own.provide("gpu.add", R"(,"concurrency":1,"queue":2,"idempotent":true)");
  NodeClient there{*b};
  there.provide("gpu.add", R"(,"idempotent":true)");
  NodeClient ada{*a};
  NodeClient bob{*a};
  advance(kMeet);
  for (const char* const id : {"1", "2", "3"}) ada.send(request("gpu.add", "[1]", id));
  advance(kHop);
  ASSERT_EQ(there.sink.messages.size(), 2U);
  b->bus->become(cluster::Bus::State::disconnected);
  advance(300ms);
  bob.send(request("gpu.add", "[1]", "4"));
  const std::string answer = ada.received();
  EXPECT_NE(answer.find("-32005"), std::string::npos) << answer;
  EXPECT_NE(answer.find(R"("delivered":"maybe")"), std::string::npos) << answer;
}

}  // namespace
}  // namespace wirecall::test
