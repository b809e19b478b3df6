// rpc.call_all across brokers: the providers of all nodes are asked, and what becomes of those of one that fails.
#include <gtest/gtest.h>

#include "rpc/access.hpp"
#include "tests/cluster/cluster_fixture.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

class CallAllOfNodes : public ClusterTest {
 protected:
  // Each of the clients is asked once, and answers.
  static void answer(NodeClient& client, std::string_view json) {
    const std::string asked = client.received();
    client.send(result_reply(json, id_of(asked)));
  }
  static std::string error_of(int code, std::string_view message, std::string_view reason, std::string_view origin,
                              std::string_view delivered) {
    return R"("error":{"code":)" + std::to_string(code) + R"(,"message":")" + std::string{message} +
           R"(","data":{"reason":")" + std::string{reason} + R"(","origin":")" + std::string{origin} +
           R"(","delivered":")" + std::string{delivered} + "\"}}";
  }
  static std::string lost(std::string_view reason, std::string_view origin, std::string_view delivered) {
    return error_of(-32001, "Provider lost", reason, origin, delivered);
  }
  void nothing_is_left() const {
    EXPECT_EQ(a->router.relayed_calls().in_use(), 0U);
    EXPECT_EQ(b->router.relayed_calls().in_use(), 0U);
    EXPECT_FALSE(b->cluster->busy());
  }

  const std::string all = request("rpc.call_all", R"({"method":"version","params":[1]})", "\"all\"");
};

TEST_F(CallAllOfNodes, EachProviderOfEachNodeIsAskedOnce) {
  BrokerNode c{network, scheduler, "c", 0x3000000000};
  NodeClient own{*a};
  NodeClient first{*b};
  NodeClient second{*b};
  NodeClient far{c};
  static_cast<void>(second.ask(request("rpc.hello", R"({"name":"worker"})")));
  for (NodeClient* const one : {&own, &first, &second, &far}) one->provide("version");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(all);
  advance(kHop);
  for (NodeClient* const one : {&own, &first, &second, &far}) {
    const std::string asked = one->received();
    EXPECT_EQ(asked, request("version", "[1]", id_of(asked)));
    one->send(result_reply(one == &own ? "1" : one == &first ? "2" : one == &second ? "3" : "4", id_of(asked)));
    EXPECT_EQ(caller.received(), "");
  }
  advance(kHop);
  EXPECT_EQ(caller.received(),
            result_reply(R"([{"result":1},{"node":"b","result":2},{"node":"b","client":"worker","result":3},)"
                         R"({"node":"c","result":4}])",
                         "\"all\""));
  nothing_is_left();
}

TEST_F(CallAllOfNodes, AMethodOfOtherNodesAloneIsAskedOfThem) {
  NodeClient provider{*b};
  provider.provide("version");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(all);
  advance(kHop);
  answer(provider, "7");
  advance(kHop);
  EXPECT_EQ(caller.received(), result_reply(R"([{"node":"b","result":7}])", "\"all\""));
  EXPECT_EQ(caller.dispatcher->in_flight(), 0U);
}

TEST_F(CallAllOfNodes, WhatTheOtherBrokerSaysOfItselfIsRemoteAndWhatAProviderSaysIsItsOwn) {
  NodeClient leaving{*b};
  NodeClient failing{*b};
  for (NodeClient* const one : {&leaving, &failing}) one->provide("version");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(all);
  advance(kHop);
  failing.send(error_reply(7, "out of paper", R"({"origin":"local","tray":2})", id_of(failing.received())));
  leaving.leave();
  advance(kHop);
  EXPECT_EQ(caller.received(),
            result_reply(R"([{"node":"b",)" + lost("the provider has gone", "remote", "maybe") +
                             R"(},{"node":"b","error":{"code":7,"message":"out of paper","data":{"tray":2}}}])",
                         "\"all\""));
}

TEST_F(CallAllOfNodes, ANodeThatIsKilledIsOneOutcomeWithinASecond) {
  NodeClient own{*a};
  NodeClient first{*b};
  NodeClient second{*b};
  for (NodeClient* const one : {&own, &first, &second}) one->provide("version");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(all);
  advance(kHop);
  answer(own, "1");
  answer(first, "2");
  b->bus->become(cluster::Bus::State::disconnected);
  advance(300ms);  // a ping finds nobody
  EXPECT_EQ(caller.received(), result_reply(R"([{"result":1},{"node":"b",)" +
                                                lost("the provider's node has gone", "remote", "maybe") + "}]",
                                            "\"all\""));
  nothing_is_left();
}

TEST_F(CallAllOfNodes, ANodeThatIsCutOffIsOneOutcomeInTime) {
  NodeClient own{*a};
  NodeClient far{*b};
  for (NodeClient* const one : {&own, &far}) one->provide("version");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(all);
  advance(kHop);
  answer(own, "1");
  network.part(*a->bus, *b->bus);
  advance(3400ms);
  EXPECT_EQ(caller.received(), result_reply(R"([{"result":1},{"node":"b",)" +
                                                lost("the provider's node has gone", "remote", "maybe") + "}]",
                                            "\"all\""));
}

TEST_F(CallAllOfNodes, WhatHasNotComeToTheNodeWasNotDelivered) {
  NodeClient far{*b};
  far.provide("version");
  NodeClient caller{*a};
  advance(kMeet);
  network.lost_of_million = 1'000'000;
  caller.send(all);
  advance(kHop);
  network.lost_of_million = 0;
  advance(600ms);
  EXPECT_EQ(caller.received(),
            result_reply(R"([{"node":"b",)" + lost("the provider's node has gone", "remote", "no") + "}]", "\"all\""));
  EXPECT_EQ(far.received(), "");
}

TEST_F(CallAllOfNodes, WithoutTheBusTheOutcomesOfOtherNodesSaySo) {
  NodeClient own{*a};
  NodeClient far{*b};
  for (NodeClient* const one : {&own, &far}) one->provide("version");
  far.provide("far");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(all);
  advance(kHop);
  answer(own, "1");
  a->bus->become(cluster::Bus::State::disconnected);
  advance(kHop);
  constexpr std::string_view kReason = "the bus between the nodes has failed";
  EXPECT_EQ(caller.received(),
            result_reply(R"([{"result":1},{"node":"b",)" + lost(kReason, "bus", "maybe") + "}]", "\"all\""));
  // It is known that there are others, and that they are not asked.
  caller.send(all);
  answer(own, "2");
  EXPECT_EQ(caller.received(),
            result_reply(R"([{"result":2},{"node":"b",)" + lost(kReason, "bus", "no") + "}]", "\"all\""));
  EXPECT_EQ(caller.ask(request("rpc.call_all", R"(["far"])")),
            "{\"jsonrpc\":\"2.0\"," + lost(kReason, "bus", "no") + ",\"id\":1}");
  EXPECT_EQ(caller.dispatcher->in_flight(), 0U);
}

TEST_F(CallAllOfNodes, ANodeWhoseSessionBeginsAnewIsOneOutcome) {
  NodeClient own{*a};
  NodeClient far{*b};
  for (NodeClient* const one : {&own, &far}) one->provide("version");
  NodeClient caller{*a};
  advance(kMeet);
  network.lost_of_million = 1'000'000;
  far.provide("other");
  advance(kHop);
  network.lost_of_million = 0;
  far.provide("another");
  advance(100us);  // a knows that something was lost
  ASSERT_EQ(a->cluster->find("b")->state(), cluster::Node::State::joining);
  caller.send(all);
  answer(own, "1");
  EXPECT_EQ(caller.received(),
            result_reply(R"([{"result":1},{"node":"b",)" + lost("the provider's node has gone", "remote", "no") + "}]",
                         "\"all\""));
  advance(kMeet);
  caller.send(all);
  advance(kHop);
  answer(own, "2");
  answer(far, "3");
  advance(kHop);
  EXPECT_EQ(caller.received(), result_reply(R"([{"result":2},{"node":"b","result":3}])", "\"all\""));
}

TEST_F(CallAllOfNodes, AProviderThatGoesBeforeTheCallComesIsNotDelivered) {
  NodeClient own{*a};
  own.provide("version");
  NodeClient far{*b};
  far.provide("version");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(all);
  far.leave();
  advance(kHop);
  answer(own, "1");
  const std::string answered = caller.received();
  EXPECT_TRUE(answered.starts_with(R"({"jsonrpc":"2.0","result":[{"result":1},{"node":"b","error":{"code":-32001,)"))
      << answered;
  EXPECT_TRUE(answered.contains(R"("origin":"remote","delivered":"no")")) << answered;
}

TEST_F(CallAllOfNodes, ItIsCancelledAtAllNodes) {
  NodeClient first{*b};
  NodeClient second{*b};
  for (NodeClient* const one : {&first, &second}) one->provide("version");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(all);
  advance(kHop);
  answer(first, "1");
  const std::string id = id_of(second.received());
  caller.send(cancel_notification("\"all\""));
  EXPECT_EQ(caller.received(), cancelled("\"all\""));
  advance(kHop);
  EXPECT_EQ(first.received(), "");
  EXPECT_EQ(second.received(), cancel_notification(id));
  nothing_is_left();
}

TEST_F(CallAllOfNodes, ACallerThatGoesEndsItAtAllNodes) {
  NodeClient provider{*b};
  provider.provide("version");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(all);
  advance(kHop);
  const std::string id = id_of(provider.received());
  caller.leave();
  advance(kHop);
  EXPECT_EQ(provider.received(), cancel_notification(id));
  nothing_is_left();
}

TEST_F(CallAllOfNodes, ProvidersOfAllNodesHaveTheTimeThatIsGiven) {
  NodeClient own{*a};
  NodeClient quick{*b};
  NodeClient slow{*b};
  for (NodeClient* const one : {&own, &quick, &slow}) one->provide("version");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(request("rpc.call_all", R"({"method":"version","timeout_ms":500})"));
  EXPECT_TRUE(own.received().contains(R"("timeout_ms":500)"));
  advance(kHop);
  EXPECT_TRUE(slow.received().contains(R"("timeout_ms":49)"));
  answer(quick, "2");
  advance(480ms);
  EXPECT_EQ(caller.received(), "");
  advance(30ms);
  const auto timed_out = [](std::string_view origin) {
    return error_of(-32002, "Timeout", "the call was not answered in time", origin, "maybe");
  };
  EXPECT_EQ(caller.received(), result_reply("[{" + timed_out("local") + R"(},{"node":"b","result":2},{"node":"b",)" +
                                            timed_out("remote") + "}]"));
  advance(kHop);
  EXPECT_TRUE(slow.received().contains("$/cancelRequest"));
  nothing_is_left();
}

TEST_F(CallAllOfNodes, ANodeThatSaysNothingInTimeIsOneOutcome) {
  NodeClient far{*b};
  far.provide("version");
  NodeClient caller{*a};
  advance(kMeet);
  b->stop();
  caller.send(request("rpc.call_all", R"({"method":"version","timeout_ms":500})"));
  advance(510ms);
  EXPECT_EQ(caller.received(),
            result_reply(R"([{"node":"b",)" +
                         error_of(-32002, "Timeout", "the call was not answered in time", "local", "maybe") + "}]"));
}

TEST_F(CallAllOfNodes, WhereNoTimeIsGivenProvidersAreToldNone) {
  NodeClient far{*b};
  far.provide("version");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(all);
  advance(kHop);
  const std::string asked = far.received();
  EXPECT_EQ(asked, request("version", "[1]", id_of(asked)));
}

TEST_F(CallAllOfNodes, ProvidersLearnWhoAsksWhereTheirBrokerDisclosesIt) {
  BrokerNode telling{network, scheduler, "t", 0x3000000000, {.disclose_callers = true}};
  NodeClient told{telling};
  NodeClient untold{*b};
  for (NodeClient* const one : {&told, &untold}) one->provide("version");
  NodeClient caller{*a};
  static_cast<void>(caller.ask(request("rpc.hello", R"({"name":"ada"})")));
  advance(kMeet);
  caller.send(all);
  advance(kHop);
  EXPECT_TRUE(told.received().contains(R"("from":"ada")"));
  EXPECT_FALSE(untold.received().contains("from"));
}

TEST_F(CallAllOfNodes, TheMembersOfTheCallGoToTheProvidersOfAllNodes) {
  NodeClient far{*b};
  far.provide("version");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(R"({"jsonrpc":"2.0","method":"rpc.call_all","params":["version"],"hops":3,"timeout_ms":900,"id":1})");
  advance(kHop);
  const std::string asked = far.received();
  EXPECT_TRUE(asked.contains(R"("hops":3)")) << asked;
  EXPECT_TRUE(asked.contains(R"("timeout_ms":84)")) << asked;
}

TEST_F(CallAllOfNodes, WhatAPrincipalMayNotCallAtANodeIsThatNodesOutcome) {
  const auto principal = [](std::string name, std::vector<std::string> call, std::vector<std::string> provide = {}) {
    return Principal{.name = name,
                     .tokens = {name + "-token"},
                     .call = std::move(call),
                     .provide = std::move(provide),
                     .publish = {},
                     .subscribe = {}};
  };
  const auto know = [](BrokerNode& node, std::vector<Principal> principals) {
    node.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::move(principals));
  };
  const auto greet = [](NodeClient& client, const std::string& name) {
    static_cast<void>(client.ask(request("rpc.hello", R"({"token":")" + name + "-token\"}")));
  };
  know(*a, {principal("ada", {">"}), principal("worker", {}, {">"})});
  know(*b, {principal("ada", {"other"}), principal("worker", {}, {">"})});
  NodeClient own{*a};
  NodeClient far{*b};
  for (NodeClient* const one : {&own, &far}) {
    greet(*one, "worker");
    one->provide("version");
  }
  NodeClient ada{*a};
  greet(ada, "ada");
  advance(kMeet);
  ada.send(all);
  advance(kHop);
  answer(own, "1");
  EXPECT_EQ(far.received(), "");
  EXPECT_EQ(
      ada.received(),
      result_reply(R"([{"result":1},{"node":"b","error":{"code":-32601,"message":"Method not found"}}])", "\"all\""));
}

TEST_F(CallAllOfNodes, EachProviderOfAnotherNodeCountsAsACallInFlight) {
  BrokerNode few{network, scheduler, "few", 0x3000000000, {}, {.in_flight = 4}};
  NodeClient first{*b};
  NodeClient second{*b};
  for (NodeClient* const one : {&first, &second}) one->provide("version");
  NodeClient caller{few};
  advance(kMeet);
  caller.send(all);
  EXPECT_TRUE(caller.ask(request("rpc.call_all", R"(["version"])")).contains(R"("limit":"in_flight")"));
  advance(kHop);
  answer(first, "1");
  answer(second, "2");
  advance(kHop);
  EXPECT_TRUE(caller.received().contains(R"("result":2)"));
  EXPECT_EQ(caller.dispatcher->in_flight(), 0U);
}

TEST_F(CallAllOfNodes, OutcomesOfANodeThatAreTooLargeTogetherAreOne) {
  BrokerNode small{network, scheduler, "small", 0x3000000000, {}, {.max_message_size = 1000}};
  NodeClient own{*a};
  own.provide("version");
  NodeClient first{small};
  NodeClient second{small};
  for (NodeClient* const one : {&first, &second}) one->provide("version");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(all);
  advance(kHop);
  answer(own, "1");
  for (NodeClient* const one : {&first, &second}) answer(*one, '"' + std::string(600, 'x') + '"');
  advance(kHop);
  const std::string answered = caller.received();
  EXPECT_TRUE(answered.contains(R"([{"result":1},{"node":"small","error":{"code":-32006,)")) << answered;
}

class CallAllOfProcesses : public CallAllOfNodes {
 protected:
  // Own methods are told when nodes meet.
  void SetUp() override {
    own.registry.method("version", [](Context context, int value) -> Task<int> {
      if (value < 0) throw Error{7, "out of paper"};
      if (value == 0) co_await sleep_for(context, 1s);
      co_return value;
    });
  }
  static std::string asks(std::string_view params, std::string_view more = {}) {
    return request("rpc.call_all", R"({"method":"version","params":)" + std::string{params} + std::string{more} + "}",
                   "\"all\"");
  }

  BrokerNode own{network, scheduler, "own", 0x3000000000};
};

TEST_F(CallAllOfProcesses, AnotherBrokersOwnProcessIsOneOfTheProviders) {
  NodeClient near{*a};
  NodeClient far{*b};
  for (NodeClient* const one : {&near, &far}) one->provide("version");
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(asks("[5]"));
  advance(kHop);
  answer(near, "1");
  answer(far, "2");
  advance(kHop);
  EXPECT_EQ(caller.received(),
            result_reply(R"([{"result":1},{"node":"b","result":2},{"node":"own","result":5}])", "\"all\""));
  EXPECT_EQ(caller.dispatcher->in_flight(), 0U);
  EXPECT_EQ(own.loop_context.stats.calls_in_flight, 0U);
  nothing_is_left();
}

TEST_F(CallAllOfProcesses, WhatItAnswersWithIsItsOutcome) {
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(asks("[-1]"));
  advance(kHop);
  EXPECT_EQ(caller.received(),
            result_reply(R"([{"node":"own","error":{"code":7,"message":"out of paper"}}])", "\"all\""));
  caller.send(asks(R"(["a"])"));
  advance(kHop);
  EXPECT_TRUE(caller.received().contains(R"([{"node":"own","error":{"code":-32602,)"));
}

TEST_F(CallAllOfProcesses, ItHasTheTimeThatIsGiven) {
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(asks("[0]", R"(,"timeout_ms":300)"));
  advance(290ms);
  EXPECT_EQ(caller.received(), "");
  advance(20ms);
  EXPECT_EQ(caller.received(),
            result_reply(R"([{"node":"own",)" +
                             error_of(-32002, "Timeout", "the call was not answered in time", "remote", "maybe") + "}]",
                         "\"all\""));
  advance(2s);
  EXPECT_FALSE(own.cluster->busy());
}

TEST_F(CallAllOfProcesses, ItIsCancelled) {
  NodeClient caller{*a};
  advance(kMeet);
  caller.send(asks("[0]"));
  advance(kHop);
  EXPECT_TRUE(own.cluster->busy());
  caller.send(cancel_notification("\"all\""));
  EXPECT_EQ(caller.received(), cancelled("\"all\""));
  advance(kHop);
  EXPECT_FALSE(own.cluster->busy());
  nothing_is_left();
}

TEST_F(CallAllOfProcesses, ItsOwnCallersCallItByItself) {
  NodeClient far{*a};
  advance(kMeet);
  NodeClient caller{own};
  EXPECT_TRUE(caller.ask(asks("[5]")).contains(R"("code":-32602)"));
}

}  // namespace
}  // namespace wirecall::test
