// The demo methods, and the banner that lists them, without any socket.
#include "cli/commands/demo.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/serve.hpp"

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

TEST(Banner, ListsEveryWayInWithLinesToCopy) {
  Registry registry;
  add_demo_methods(registry);
  ServeOptions options;
  options.demo = true;
  options.version = "1.2.3";
  const std::vector<Endpoint> usual{Endpoint{"tcp://127.0.0.1:8545"}, Endpoint{"tcp://[::1]:9000"}};
  const std::string text = banner(options, usual, registry);
  EXPECT_NE(text.find("tcp://127.0.0.1:8545"), std::string::npos);
  EXPECT_NE(text.find("tcp://[::1]:9000"), std::string::npos);
  EXPECT_NE(text.find("  wirecall call subtract 42 23\n"), std::string::npos);
  EXPECT_NE(text.find("| nc -q1 127.0.0.1 8545\n"), std::string::npos);
  EXPECT_NE(text.find("subtract(minuend, subtrahend)"), std::string::npos);
  EXPECT_NE(text.find("sum(...)"), std::string::npos);
}

TEST(Banner, OfABrokerWithoutMethodsOfItsOwnCopiesNoCallOfThem) {
  const std::string text = banner({}, std::vector<Endpoint>{Endpoint{"tcp://127.0.0.1"}}, {});
  EXPECT_EQ(text.find("subtract"), std::string::npos);
  EXPECT_NE(text.find("  wirecall reply greet 'Hello, {name}!'\n"), std::string::npos);
  EXPECT_NE(text.find("  wirecall call greet name=Ada\n"), std::string::npos);
  EXPECT_EQ(text.find("Methods:"), std::string::npos);
}

TEST(Banner, WhereATokenIsAskedForTheLinesShowOne) {
  ServeOptions options;
  options.server.principals_file = "principals.json";
  const std::string text = banner(options, std::vector<Endpoint>{Endpoint{"tcp://127.0.0.1"}}, {});
  EXPECT_NE(text.find("with a token in $WIRECALL_TOKEN:\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" those that principals.json names; "), std::string::npos) << text;
  EXPECT_EQ(text.find("whoever can connect"), std::string::npos) << text;
  EXPECT_NE(text.find("curl -H \"Authorization: Bearer $WIRECALL_TOKEN\" -d '"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("params":{"token":"%s"},"id":0}\n{)"), std::string::npos) << text;
  EXPECT_NE(text.find("\\n' \"$WIRECALL_TOKEN\" | nc "), std::string::npos) << text;
}

TEST(Banner, AContentLengthIsThatOfTheTextBehindIt) {
  const std::vector<Endpoint> usual{Endpoint{"tcp://127.0.0.1"}};
  const std::string text = banner({}, usual, {});
  constexpr std::string_view kHead = "printf 'Content-Length: ";
  const std::size_t at = text.find(kHead);
  ASSERT_NE(at, std::string::npos);
  const std::size_t body = text.find("\\r\\n\\r\\n", at) + 8;
  EXPECT_EQ(std::stoul(text.substr(at + kHead.size())), text.find("' | nc", at) - body);
}

TEST(Banner, ALengthOfFourBytesIsThatOfTheTextBehindIt) {
  const std::string text = banner({}, std::vector<Endpoint>{Endpoint{"tcp://127.0.0.1"}}, {});
  constexpr std::string_view kHead = R"(printf '\000\000\000\)";
  const std::size_t at = text.find(kHead);
  ASSERT_NE(at, std::string::npos);
  const std::size_t body = at + kHead.size() + 3;
  EXPECT_EQ(std::stoul(text.substr(at + kHead.size(), 3), nullptr, 8), text.find("' | nc", at) - body);
}

TEST(Banner, LinesToCopyNameTheServerWhereItIsNotTheUsualOne) {
  ServeOptions options;
  options.demo = true;
  options.program = "build/wirecall";
  const std::vector<Endpoint> everywhere{Endpoint{"tcp://0.0.0.0:9000"}};
  EXPECT_NE(banner(options, everywhere, {}).find("build/wirecall call subtract 42 23 --url tcp://127.0.0.1:9000\n"),
            std::string::npos);
}

}  // namespace
}  // namespace wirecall::cli
