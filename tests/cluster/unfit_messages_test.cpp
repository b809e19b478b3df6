// What one node has taken and another does not, and answers that are none: of what is in progress that call alone ends,
// with an error that says why.
#include <gtest/gtest.h>

#include "tests/cluster/cluster_world.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

class UnfitMessages : public testing::Test {
 protected:
  static constexpr auto kMeet = 100ms;
  static constexpr auto kHop = 1ms;

  static Limits narrow() {
    Limits limits;
    limits.depth = 16;
    limits.max_message_size = 10'000;
    return limits;
  }
  static std::string nested() { return std::string(40, '[') + std::string(40, ']'); }
  static std::string long_text() { return '"' + std::string(200'000, 'x') + '"'; }
  static std::string item(std::string_view id, std::string_view value, int sequence = 0) {
    return notification("rpc.item", R"({"id":)" + std::string{id} + R"(,"seq":)" + std::to_string(sequence) +
                                        R"(,"value":)" + std::string{value} + "}");
  }
  static std::string brings_items(std::string_view method, std::string_view id) {
    return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","id":)" + std::string{id} +
           R"(,"input":true})";
  }
  static std::string credit(std::string_view id, int more) {
    return notification("rpc.credit", R"({"id":)" + std::string{id} + R"(,"n":)" + std::to_string(more) + "}");
  }
  static void expect_too_large(const std::string& answer, std::string_view limit) {
    EXPECT_TRUE(answer.contains(R"("code":-32006)")) << answer;
    EXPECT_TRUE(answer.contains(R"("origin":"remote","delivered":"maybe","limit":")" + std::string{limit} + '"'))
        << answer;
  }
  static constexpr std::string_view kMalformed =
      R"("error":{"code":-32603,"message":"Internal error","data":{"reason":"the provider's response is malformed"}})";
  void no_session_was_lost() const {
    for (const BrokerNode* const one : {a.get(), c.get()}) {
      EXPECT_EQ(one->cluster->find(one == c.get() ? "a" : "c")->sessions_lost(), 0U);
    }
  }
  void advance(std::chrono::nanoseconds by) { scheduler.advance(by); }

  VirtualScheduler scheduler;
  SimulatedNetwork network{scheduler};
  std::unique_ptr<BrokerNode> a = std::make_unique<BrokerNode>(network, scheduler, "a", 0x1000000000);
  std::unique_ptr<BrokerNode> c =
      std::make_unique<BrokerNode>(network, scheduler, "c", 0x3000000000, broker::Settings{}, narrow());
};

// ---- items ----

TEST_F(UnfitMessages, AnItemTowardsAProviderThatItsNodeDoesNotTakeEndsItsCallAlone) {
  NodeClient provider{*c};
  provider.provide("sum");
  NodeClient caller{*a};
  NodeClient other{*a};
  advance(kMeet);
  for (const auto& [value, limit] : {std::pair{long_text(), "max_message_size"}, std::pair{nested(), "depth"}}) {
    other.send(brings_items("sum", "8"));
    advance(kHop);
    const std::string others = id_of(provider.received());
    caller.send(brings_items("sum", "7"));
    advance(kHop);
    const std::string id = id_of(provider.received());
    for (const std::string& one : {others, id}) provider.send(credit(one, 4));
    advance(kHop);
    EXPECT_EQ(caller.received(), credit("7", 4));
    EXPECT_EQ(other.received(), credit("8", 4));
    caller.send(item("7", value));
    advance(kHop);
    expect_too_large(caller.received(), limit);
    EXPECT_EQ(provider.received(), cancel_notification(id));
    caller.send(item("7", "1", 1));
    other.send(item("8", "1"));
    advance(kHop);
    EXPECT_EQ(provider.received(), item(others, "1"));
    provider.send(result_reply("1", others));
    advance(kHop);
    EXPECT_EQ(caller.received(), "");
    EXPECT_EQ(other.received(), result_reply("1", "8"));
  }
  EXPECT_EQ(a->router.relayed_calls().in_use(), 0U);
  EXPECT_EQ(c->router.relayed_calls().in_use(), 0U);
  no_session_was_lost();
}

TEST_F(UnfitMessages, AnItemTowardsAHandlerOfTheOtherBrokersOwnEndsItsCallAlone) {
  BrokerNode late{network, scheduler, "late", 0x4000000000, {}, narrow()};
  int items = 0;
  late.registry.method("count", [&items](InputStream<std::string> in) -> Task<int> {
    while (co_await in.next()) ++items;
    co_return items;
  });
  BrokerNode from{network, scheduler, "from", 0x5000000000};
  NodeClient caller{from};
  advance(kMeet);
  caller.send(brings_items("count", "7"));
  advance(kHop);
  EXPECT_TRUE(caller.received().contains("rpc.credit"));
  caller.send(item("7", "\"a\""));
  caller.send(item("7", long_text(), 1));
  advance(kHop);
  expect_too_large(caller.received(), "max_message_size");
  EXPECT_EQ(items, 1);
  EXPECT_FALSE(late.cluster->busy());
}

TEST_F(UnfitMessages, AProviderWhoseItemTheCallersNodeDoesNotTakeIsToldToStop) {
  NodeClient provider{*a};
  provider.provide("numbers");
  NodeClient caller{*c};
  advance(kMeet);
  caller.send(R"({"jsonrpc":"2.0","method":"numbers","id":7,"stream":2})");
  advance(kHop);
  const std::string id = id_of(provider.received());
  provider.send(item(id, long_text()));
  advance(kHop);
  expect_too_large(caller.received(), "max_message_size");
  EXPECT_EQ(provider.received(), cancel_notification(id));
  EXPECT_EQ(a->router.relayed_calls().in_use(), 0U);
  no_session_was_lost();
}

// ---- answers ----

TEST_F(UnfitMessages, AMalformedAnswerOfAProviderEndsItsCallAtOnceAsAtOneBroker) {
  NodeClient provider{*c};
  provider.provide("work");
  NodeClient own{*a};
  own.provide("own");
  NodeClient caller{*a};
  advance(kMeet);
  int number = 0;
  for (const std::string_view answer :
       {R"("jsonrpc":"2.0","result":1,"error":{"code":1,"message":"m"})", R"("jsonrpc":"2.0","error":1)",
        R"("jsonrpc":"2.0","error":{})", R"("jsonrpc":"2.0","error":{"code":"1","message":"m"})",
        R"("jsonrpc":"2.0","error":{"message":"m"})", R"("jsonrpc":"2.0","error":null)", R"("result":1)",
        R"("jsonrpc":"1.0","result":1)", R"("jsonrpc":"2.0","result":1,"result":2)"}) {
    const std::string id = std::to_string(++number);
    caller.send(request("own", "[]", id));
    own.send("{" + std::string{answer} + R"(,"id":)" + id_of(own.received()) + "}");
    const std::string at_one = caller.received();
    EXPECT_EQ(at_one, R"({"jsonrpc":"2.0",)" + std::string{kMalformed} + R"(,"id":)" + id + "}") << answer;
    caller.send(request("work", "[]", id));
    advance(kHop);
    provider.send("{" + std::string{answer} + R"(,"id":)" + id_of(provider.received()) + "}");
    advance(kHop);
    EXPECT_EQ(caller.received(), at_one) << answer;
  }
}

}  // namespace
}  // namespace wirecall::test
