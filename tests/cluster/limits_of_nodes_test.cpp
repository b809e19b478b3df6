// Limits of one broker that are others at another.
#include <gtest/gtest.h>
#include <string>

#include "tests/cluster/cluster_fixture.hpp"
#include "wirecall/caller.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

class ClusterLimitsTest : public ClusterTest {
 protected:
  static Limits narrow() {
    Limits limits;
    limits.depth = 16;
    limits.max_message_size = 10'000;
    return limits;
  }
  static std::string nested(int levels) {
    const auto count = static_cast<std::size_t>(levels);
    return std::string(count, '[') + std::string(count, ']');
  }
  static std::string text(std::size_t bytes) { return "[\"" + std::string(bytes, 'x') + "\"]"; }
  // What the caller is answered to a call whose params these are, where the provider answers with that result.
  std::string called(BrokerNode& from, BrokerNode& at, const std::string& params, const std::string& result) {
    NodeClient provider{at};
    provider.provide("echo");
    NodeClient caller{from};
    NodeClient other{from};
    advance(kMeet);
    other.send(request("echo", "[]", "8"));
    advance(kHop);
    const std::string slow = id_of(provider.received());
    caller.send(request("echo", params, "7"));
    advance(kHop);
    if (const std::string asked = provider.received(); !asked.empty())
      provider.send(result_reply(result, id_of(asked)));
    advance(kHop);
    // All others go on.
    provider.send(result_reply("1", slow));
    advance(kHop);
    EXPECT_EQ(other.received(), result_reply("1", "8"));
    return caller.received();
  }
  static void expect_too_large(const std::string& answer, std::string_view limit, std::string_view delivered) {
    EXPECT_NE(answer.find(R"("code":-32006)"), std::string::npos) << answer;
    EXPECT_NE(answer.find(R"("origin":"remote","delivered":")" + std::string{delivered} + R"(","limit":")" +
                          std::string{limit} + '"'),
              std::string::npos)
        << answer;
  }

  BrokerNode c{network, scheduler, "c", 0x3000000000, {}, narrow()};
};

TEST_F(ClusterLimitsTest, ACallThatIsTooMuchForTheOtherNodeEndsAlone) {
  expect_too_large(called(*a, c, nested(40), "1"), "depth", "no");
  expect_too_large(called(*a, c, text(200'000), "1"), "max_message_size", "no");
  EXPECT_EQ(called(*a, c, text(5'000), "1"), result_reply("1", "7"));
  EXPECT_EQ(a->cluster->find("c")->sessions_lost(), 0U);
  EXPECT_EQ(c.cluster->find("a")->sessions_lost(), 0U);
}

TEST_F(ClusterLimitsTest, AnAnswerThatIsTooMuchForTheCallersNodeEndsItsCallAlone) {
  expect_too_large(called(c, *a, "[]", nested(40)), "depth", "maybe");
  expect_too_large(called(c, *a, "[]", text(200'000)), "max_message_size", "maybe");
  EXPECT_EQ(called(c, *a, "[]", text(5'000)), result_reply(text(5'000), "7"));
  EXPECT_EQ(a->cluster->find("c")->sessions_lost(), 0U);
  EXPECT_EQ(c.cluster->find("a")->sessions_lost(), 0U);
}

TEST_F(ClusterLimitsTest, AnItemThatIsTooMuchForTheCallersNodeEndsItsStreamAlone) {
  NodeClient provider{*a};
  provider.provide("numbers");
  NodeClient caller{c};
  advance(kMeet);
  caller.send(R"({"jsonrpc":"2.0","method":"numbers","id":7,"stream":2})");
  advance(kHop);
  provider.send(R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":)" + id_of(provider.received()) +
                R"(,"value":)" + nested(40) + "}}");
  advance(kHop);
  expect_too_large(caller.received(), "depth", "maybe");
  EXPECT_EQ(c.cluster->find("a")->sessions_lost(), 0U);
}

TEST_F(ClusterLimitsTest, ALimitThatIsRaisedHoldsForWhatOtherNodesSend) {
  advance(kMeet);
  c.limits.depth = 256;
  c.limits.max_message_size = 1 << 20;
  advance(300ms);
  EXPECT_EQ(called(*a, c, nested(40), "1"), result_reply("1", "7"));
  EXPECT_EQ(called(*a, c, text(200'000), "1"), result_reply("1", "7"));
}

}  // namespace
}  // namespace wirecall::test
