// What a broker makes of a node that says what no broker would.
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "rpc/access.hpp"
#include "tests/cluster/cluster_fixture.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

// A node that says what no broker would.
class HostileNode {
 public:
  explicit HostileNode(SimulatedNetwork& network, bool is_heard = true) : bus_(network) {
    bus_.subscribe("wc.shop.n.x.call", [this](const cluster::BusMessage& message) {
      if (const auto frame = cluster::read_frame(message.payload)) {
        session = frame->head.from_session;
        said += frame->payload;
      }
      ++answers;
    });
    if (is_heard) beat();
  }
  void beat() { static_cast<void>(bus_.publish("wc.shop.hb", {}, R"({"node":"x","epoch":"9","version":1})")); }
  void say(cluster::FrameKind kind, std::string_view payload, std::string_view name = "x") {
    Buffer out;
    cluster::append_frame_head(out, {.kind = kind,
                                     .from_session = 5,
                                     .to_session = session,
                                     .sequence = kind == cluster::FrameKind::data ? sequence++ : 0,
                                     .node = name});
    out.append(payload);
    EXPECT_TRUE(bus_.publish("wc.shop.n.a.call", {}, out.view()));
  }
  void tell(cluster::RecordKind kind, std::string_view body, std::optional<std::string_view> principal = {}) {
    Buffer out;
    cluster::RecordWriter writer{out, {.kind = kind, .principal = principal}};
    out.append(body);
    EXPECT_TRUE(writer.close());
    say(cluster::FrameKind::data, out.view());
  }

  std::uint64_t session = 0;  // of a's link
  std::uint32_t sequence = 0;
  int answers = 0;
  std::string said;  // to it, by a

 private:
  SimulatedBus bus_;
};

class ClusterAttackTest : public ClusterTest {
 protected:
  void SetUp() override {
    advance(kMeet);
    node = std::make_unique<HostileNode>(network);
    advance(kHop);
    node->say(cluster::FrameKind::open, "?");
    advance(kHop);
    ASSERT_TRUE(a->cluster->find("x") != nullptr);
  }
  // Calls of others go on.
  void TearDown() override {
    NodeClient provider{*b};
    provider.provide("gpu.add");
    NodeClient caller{*a};
    advance(kMeet);
    caller.send(request("gpu.add", "[3]"));
    advance(kHop);
    provider.send(result_reply("3", id_of(provider.received())));
    advance(kHop);
    EXPECT_EQ(caller.received(), result_reply("3"));
  }

  std::unique_ptr<HostileNode> node;
};

TEST_F(ClusterAttackTest, AMillionMethodsAreNotAllTaken) {
  for (int i = 0; i != 110; ++i) {
    std::string set;
    for (int j = 0; j != 1000; ++j)
      set += std::string{j == 0 ? "" : ","} + R"([1,{"method":"m)" + std::to_string(i * 1000 + j) + R"("}])";
    node->tell(cluster::RecordKind::methods, R"({"set":[)" + set + R"(],"gone":[]})");
    advance(100us);
  }
  advance(kHop);
  EXPECT_LE(a->cluster->find("x")->methods().size(), 100'000U);
  EXPECT_LE(a->router.methods().size(), 100'001U);
}

TEST_F(ClusterAttackTest, ANodeThatSaysThatItHasAnyNumberOfProvidersDelaysNoCall) {
  NodeClient own{*a};
  own.provide("cart", R"(,"policy":"hash:user")");
  node->tell(cluster::RecordKind::methods,
             R"({"set":[[4294967295,{"method":"cart","policy":"hash:user"}]],"all":true})");
  advance(kHop);
  NodeClient caller{*a};
  for (int user = 0; user != 1000; ++user) {
    caller.send(request("cart", R"({"user":)" + std::to_string(user) + "}", std::to_string(user)));
  }
  EXPECT_GT(a->router.relayed_calls().in_use(), 0U);
}

TEST_F(ClusterAttackTest, WhatHoldsForAConnectionIsNotSaidByCallsOfANode) {
  for (const std::optional<std::string_view> principal : {std::optional<std::string_view>{""}, {}}) {
    node->tell(cluster::RecordKind::call, request("rpc.hello", R"({"name":"eve"})"), principal);
    node->tell(cluster::RecordKind::call, request("rpc.register", R"({"method":"evil"})"), principal);
    node->tell(cluster::RecordKind::call, notification("rpc.register", R"({"method":"evil"})"), principal);
    node->tell(cluster::RecordKind::call,
               R"({"jsonrpc":"2.0","method":"rpc.r\u0065gister","params":{"method":"evil"}})", principal);
    node->tell(cluster::RecordKind::call, request("rpc.subscribe", R"({"topic":">"})"), principal);
    for (const std::string_view invalid :
         {R"({"jsonrpc":"2.0","id":1})", R"({"jsonrpc":"2.0","method":5,"id":1})", "7"})
      node->tell(cluster::RecordKind::call, invalid, principal);
  }
  advance(kHop);
  EXPECT_EQ(a->router.methods().find("evil"), nullptr);
  EXPECT_EQ(a->router.context().peers.find("eve"), nullptr);
  EXPECT_TRUE(a->router.topics().empty());
  EXPECT_EQ(a->cluster->find("x")->sessions_lost(), 0U);
}

TEST_F(ClusterAttackTest, AHundredThousandPrincipalsAreNoMoreThanOneWhereNobodyHasToSayWhoHeIs) {
  NodeClient provider{*a};
  provider.provide("slow");
  for (int i = 0; i != 5000; ++i)
    node->tell(cluster::RecordKind::call, request("slow", "[]", std::to_string(i)), "p" + std::to_string(i));
  advance(kHop);
  EXPECT_LE(a->cluster->find("x")->calls_here(), 5000U);
  EXPECT_EQ(a->cluster->find("x")->sides(), 1U);
}

TEST_F(ClusterAttackTest, GroupsAndSubscriptionsAreBounded) {
  for (int i = 0; i != 2000; ++i) {
    node->tell(cluster::RecordKind::topics, R"({"set":[["jobs","g)" + std::to_string(i) + R"("]],"gone":[]})");
  }
  advance(kHop);
  EXPECT_LE(a->cluster->find("x")->groups(), 1000U);
  for (int i = 0; i != 2000; ++i) {
    node->tell(cluster::RecordKind::topics, R"({"set":[],"gone":[["jobs","g)" + std::to_string(i) + R"("]]})");
  }
  advance(kHop);
  EXPECT_EQ(a->cluster->find("x")->groups(), 0U);
}

TEST_F(ClusterAttackTest, EventsOfGroupsInWhichItHasNobodyTakeNoMemory) {
  NodeClient subscriber{*a};
  EXPECT_EQ(subscriber.ask(request("rpc.subscribe", R"({"topic":"jobs","group":"g1999"})")), result_reply("true"));
  for (int i = 0; i != 2000; ++i)
    node->tell(cluster::RecordKind::event, notification("jobs", "[1]"), "g" + std::to_string(i));
  advance(kHop);
  EXPECT_EQ(a->cluster->find("x")->groups(), 0U);
  EXPECT_EQ(subscriber.received(), notification("jobs", "[1]"));
}

TEST_F(ClusterAttackTest, WhatIsRetainedForItIsBoundedAndNothingElseIsTaken) {
  const std::size_t before = a->cluster->retained().size();
  for (
      const std::string_view text :
      {R"({"topic":"t","counter":0,"node":"x","epoch":"9","owner":"","client":"","gone":true,"told":false,"ask":false})",
       R"({"topic":"..","counter":1,"node":"x","epoch":"9","owner":"","client":"","gone":true,"told":false,"ask":false})",
       R"({"topic":"t","counter":18446744073709551615,"node":"x","epoch":"9","gone":true})", "", "{}", "[1]",
       "{\"topic\":\"t\",\"counter\":1,\"node\":\"x\",\"epoch\":\"9\"}\nnot an event",
       "{\"topic\":\"t\",\"counter\":1,\"node\":\"x\",\"epoch\":\"9\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"u\"}"}) {
    node->tell(cluster::RecordKind::retained, text);
    advance(kMeet);
    // It has begun a new session: so does the test.
    node->sequence = 0;
    node->say(cluster::FrameKind::open, "?");
    advance(kHop);
  }
  EXPECT_EQ(a->cluster->retained().size(), before);
}

TEST_F(ClusterAttackTest, WhatIsNoArrayOfOutcomesIsOneOutcome) {
  node->tell(cluster::RecordKind::methods, R"({"set":[[4000000000,{"method":"evil"}]],"gone":[],"all":true})");
  advance(kHop);
  NodeClient caller{*a};
  int number = 0;
  for (const std::string_view answer :
       {R"([])", R"([1])", R"({})", R"([{"node":"b","result":1}])", R"([{"result":1,"error":{"code":1,"message":""}}])",
        R"([{"result":1},{}])", R"([{"result":1},[]])", R"([{"client":"only a name"}])"}) {
    const std::string id = std::to_string(++number);
    caller.send(request("rpc.call_all", R"(["evil"])", id));
    advance(kHop);
    const std::string asked{node->said.substr(node->said.rfind(R"("id":)"))};
    node->tell(cluster::RecordKind::answer,
               R"({"jsonrpc":"2.0","result":)" + std::string{answer} + "," + asked.substr(0, asked.find('}') + 1));
    advance(kHop);
    EXPECT_EQ(caller.received(), result_reply(R"([{"node":"x","error":{"code":-32603,"message":"Internal error",)"
                                              R"("data":{"reason":"the provider's response is malformed"}}}])",
                                              id))
        << answer;
  }
}

// Nodes may have calls for many principals here: what belongs to one is no work for the others.
TEST_F(ClusterAttackTest, WhatBelongsToACallNamesItsPrincipalAndIsLookedForAmongThatOnesCalls) {
  const auto principal = [](std::string name) {
    return Principal{
        .name = name, .tokens = {name + "-token"}, .call = {">"}, .provide = {">"}, .publish = {}, .subscribe = {}};
  };
  a->loop_context.services.authority =
      std::make_shared<const rpc::Authority>(std::vector{principal("ada"), principal("bob")});
  NodeClient ada{*a};
  static_cast<void>(ada.ask(request("rpc.hello", R"({"token":"ada-token"})")));
  ada.provide("numbers");
  node->tell(cluster::RecordKind::call, R"({"jsonrpc":"2.0","method":"numbers","id":7,"stream":2})", "bob");
  advance(kHop);
  const std::string id = id_of(ada.received());
  node->tell(cluster::RecordKind::call, cancel_notification("7"), "ada");
  advance(kHop);
  EXPECT_EQ(ada.received(), "");
  node->tell(cluster::RecordKind::call, cancel_notification("7"), "bob");
  advance(kHop);
  EXPECT_EQ(ada.received(), cancel_notification(id));
  node->tell(cluster::RecordKind::methods, R"({"set":[[1,{"method":"evil"}]],"all":true})");
  advance(kHop);
  ada.send(R"({"jsonrpc":"2.0","method":"evil","id":8,"stream":1})");
  ada.send(notification("rpc.credit", R"({"id":8,"n":1000})"));
  ada.send(cancel_notification("8"));
  advance(kHop);
  EXPECT_TRUE(node->said.contains(R"(ada{"jsonrpc":"2.0","method":"rpc.credit")"));
  EXPECT_TRUE(node->said.contains(R"(ada{"jsonrpc":"2.0","method":"$/cancelRequest")"));
  a->loop_context.services.authority = nullptr;
}

TEST_F(ClusterAttackTest, WhatIsNoResponseEndsTheCallThatItNames) {
  node->tell(cluster::RecordKind::methods, R"({"set":[[1,{"method":"evil"}]],"all":true})");
  advance(kHop);
  NodeClient caller{*a};
  int number = 0;
  for (const std::string_view answer : {R"("jsonrpc":"2.0")", R"("jsonrpc":"2.0","results":1)", R"("params":[])"}) {
    const std::string id = std::to_string(++number);
    caller.send(request("evil", "[]", id));
    advance(kHop);
    const std::string asked{node->said.substr(node->said.rfind(R"("id":)"))};
    node->tell(cluster::RecordKind::answer, "{" + std::string{answer} + "," + asked.substr(0, asked.find('}') + 1));
    advance(kHop);
    EXPECT_EQ(caller.received(),
              error_reply(-32603, "Internal error", R"({"reason":"the provider's response is malformed"})", id))
        << answer;
  }
}

TEST_F(ClusterAttackTest, WhatIsNoMessageOfItsEncodingIsPassedOver) {
  using namespace std::string_literals;
  for (const std::string& text : {"\x84\xA7json"s, "\x84"s, "\xA4\x67jsonrpc"s, "\xDF\xFF\xFF\xFF\xFF"s,
                                  "\x92\x80\x80"s, "\x0A\x05method"s, "\xC1"s}) {
    for (const auto kind : {cluster::RecordKind::call, cluster::RecordKind::answer, cluster::RecordKind::event}) {
      node->tell(kind, text, "");
      advance(kHop);
    }
  }
  EXPECT_EQ(a->cluster->find("x")->sessions_lost(), 0U);
  EXPECT_EQ(a->cluster->find("x")->events_lost(), 7U);
  node->tell(cluster::RecordKind::methods, R"({"set":[[1,{"method":"own.add"}]],"all":true})");
  advance(kHop);
  EXPECT_TRUE(a->cluster->find("x")->methods().contains("own.add"));
}

TEST_F(ClusterAttackTest, FramesOfOtherSessionsAreNothing) {
  node->session += 1000;
  node->tell(cluster::RecordKind::methods, R"({"set":[[1,{"method":"evil"}]],"gone":[]})");
  advance(kHop);
  EXPECT_EQ(a->cluster->find("x")->methods().size(), 0U);
}

TEST_F(ClusterAttackTest, NamesThatNeverBeganTakeNoMemory) {
  for (int i = 0; i != 3000; ++i) node->say(cluster::FrameKind::data, "x", "made-up-" + std::to_string(i));
  for (int i = 0; i != 3000; ++i) node->say(cluster::FrameKind::ping, "x", "made-up-" + std::to_string(i));
  advance(kHop);
  EXPECT_EQ(a->cluster->find("made-up-1"), nullptr);
}

TEST_F(ClusterAttackTest, AFloodOfOpensIsAnsweredByFew) {
  const int before = node->answers;
  for (int i = 0; i != 1000; ++i) node->say(cluster::FrameKind::open, "?");
  advance(200us);
  EXPECT_LE(node->answers - before, 16);
}

TEST_F(ClusterTest, WhatIsToldBeforeTheFirstHeartbeatIsToldAnewBehindIt) {
  HostileNode x{network, false};
  x.say(cluster::FrameKind::open, "?");
  advance(kHop);
  x.tell(cluster::RecordKind::methods, R"({"set":[[1,{"method":"gpu.add","policy":"exclusive"}]],"all":true})");
  advance(kHop);
  ASSERT_TRUE(a->cluster->find("x")->methods().contains("gpu.add"));
  x.beat();
  advance(kHop);
  EXPECT_EQ(a->cluster->find("x")->sessions_lost(), 1U);
  EXPECT_FALSE(a->cluster->find("x")->methods().contains("gpu.add"));
}

}  // namespace
}  // namespace wirecall::test
