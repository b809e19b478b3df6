// The demo methods, without any socket.
#include "cli/commands/demo.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace wirecall::cli {
namespace {

/// The reply to a call, from behind "jsonrpc" to before "id".
std::string answer(const std::string& method, const std::string& params) {
  Registry registry;
  add_demo_methods(registry);
  std::string reply =
      registry.handle(R"({"jsonrpc":"2.0","method":")" + method + R"(","params":)" + params + R"(,"id":1})");
  const std::string_view head = R"({"jsonrpc":"2.0",)";
  const std::string_view tail = R"(,"id":1})";
  EXPECT_TRUE(reply.starts_with(head) && reply.ends_with(tail)) << reply;
  return reply.substr(head.size(), reply.size() - head.size() - tail.size());
}

TEST(Demo, SubtractTakesPositionsAndNames) {
  EXPECT_EQ(answer("subtract", "[42,23]"), R"("result":19)");
  EXPECT_EQ(answer("subtract", R"({"subtrahend":23,"minuend":42})"), R"("result":19)");
}

TEST(Demo, IntegersStayIntegersWithAllTheirDigits) {
  EXPECT_EQ(answer("subtract", "[1.0,1e0]"), R"("result":0)");
  EXPECT_EQ(answer("subtract", "[9007199254740993,1]"), R"("result":9007199254740992)");
  EXPECT_EQ(answer("subtract", "[-9223372036854775808,-1]"), R"("result":-9223372036854775807)");
  EXPECT_EQ(answer("sum", "[18446744073709551615,1]"), R"("result":18446744073709551616)");
}

TEST(Demo, OtherNumbersAreDoubles) { EXPECT_EQ(answer("sum", "[1,0.5]"), R"("result":1.5)"); }

TEST(Demo, ADifferenceBeyond64BitsIsAnError) {
  EXPECT_EQ(answer("subtract", "[-9223372036854775808,1]"),
            R"("error":{"code":-32000,"message":"the difference does not fit 64 bits"})");
}

TEST(Demo, SubtractOfOtherThanIntegersIsInvalidParams) {
  EXPECT_EQ(
      answer("subtract", R"([42,"x"])"),
      R"("error":{"code":-32602,"message":"Invalid params","data":{"loc":["subtrahend"],"expected":"integer","got":"\"x\""}})");
}

TEST(Demo, SumTakesAnyNumbers) {
  EXPECT_EQ(answer("sum", "[]"), R"("result":0)");
  EXPECT_EQ(answer("sum", "[1,2,4]"), R"("result":7)");
}

TEST(Demo, EchoKeepsTheValueAsWrittenButForTheSpaceBetween) {
  EXPECT_EQ(answer("echo", R"([{"a" : 1e400, "\u0062":"c d"}])"), R"("result":{"a":1e400,"\u0062":"c d"})");
}

TEST(Demo, FailAnswersWithTheErrorOfYourChoice) {
  EXPECT_EQ(answer("fail", R"([4711,"no"])"), R"("error":{"code":4711,"message":"no"})");
}

TEST(Demo, CountYieldsFromZero) {
  EXPECT_EQ(answer("count", "[4]"), R"("result":[0,1,2,3])");
  EXPECT_EQ(answer("count", "[0]"), R"("result":[])");
}

}  // namespace
}  // namespace wirecall::cli
