// The table of methods: which names it takes, how it finds them, what it suggests; and serving it without a socket.
#include "wirecall/registry.hpp"

#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/rpc/peer.hpp"

namespace wirecall {
namespace {

using namespace std::string_literals;
using test::request;
using test::result_reply;

void refuse(const std::string& name) {
  Registry registry;
  EXPECT_THROW(registry.method(name, [] {}), std::invalid_argument) << name;
  EXPECT_TRUE(registry.methods().empty());
}
void take(const std::string& name) {
  Registry registry;
  EXPECT_NO_THROW(registry.method(name, [] {})) << name;
  EXPECT_NE(registry.find(name), nullptr);
}

// ---- names ----

TEST(Registry, RefusesReservedNames) {
  for (const char* name : {"rpc.", "rpc.hello", "rpc.x", "$/", "$/cancelRequest"}) refuse(name);
  for (const char* name : {"rpc", "rpcs", "RPC.x", "my.rpc.x", "$", "$x", "a$/b", "/$"}) take(name);
}

TEST(Registry, RefusesMalformedNames) {
  for (const std::string& name : {""s, "."s, ".a"s, "a."s, "a..b"s, "a b"s, " a"s, "a\t"s, "a\n"s, "a\0"s, "a\x1F"s,
                                  "a\x7F"s, "a*"s, "*"s, "a.>"s, ">"s, std::string(256, 'x')})
    refuse(name);
  for (const std::string& name :
       {"a"s, "a.b.c"s, "a/b"s, "a-b_c"s, "caf\xC3\xA9"s, "\xF0\x9F\x98\x80"s, "\"quoted\""s, std::string(255, 'x')})
    take(name);
}

TEST(Registry, RefusesNamesThatAreNotUtf8BecauseNobodyCouldCallThem) {
  for (const char* name : {"\xFF", "caf\xE9", "a\xC3", "\xED\xA0\x80"}) refuse(name);
}

TEST(Registry, RefusesANameThatIsTaken) {
  Registry registry;
  registry.method("f", [] { return 1; });
  try {
    registry.method("f", [] { return 2; });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), -32007);
  }
  EXPECT_EQ(registry.methods().size(), 1U);
  EXPECT_EQ(registry.handle(request("f")), result_reply("1"));
}

TEST(Registry, RefusesMoreParameterNamesThanParameters) {
  Registry registry;
  EXPECT_THROW(registry.method("f", [](int) {}, {"a", "b"}), std::invalid_argument);
  EXPECT_THROW(registry.method("f", [](const Context&, int, const Rest<int>&) {}, {"a", "rest"}),
               std::invalid_argument);
  EXPECT_TRUE(registry.methods().empty());
  EXPECT_EQ(registry.find("f"), nullptr);
}

TEST(Registry, RefusesTwoParametersOfOneName) {
  Registry registry;
  EXPECT_THROW(registry.method("f", [](int, int) {}, {"a", "a"}), std::invalid_argument);
  EXPECT_THROW(registry.method("f", [](int, int) {}, {"arg1"}), std::invalid_argument);
}

// ---- finding ----

TEST(Registry, FindsEachOfThousandsOfMethodsAndNoOther) {
  Registry registry;
  std::vector<std::string> names;
  for (int i = 0; i < 3000; ++i) {
    names.push_back((i % 3 == 0   ? "m"
                     : i % 3 == 1 ? "module.method_"
                                  : "a.rather.long.name.of.a.method.") +
                    std::to_string(i));
    registry.method(names.back(), [i] { return i; });
  }
  for (int i = 0; i < 3000; ++i) {
    const Method* method = registry.find(names[static_cast<std::size_t>(i)]);
    ASSERT_NE(method, nullptr);
    ASSERT_EQ(method->name(), names[static_cast<std::size_t>(i)]);
  }
  EXPECT_EQ(registry.find("m1"), nullptr);
  EXPECT_EQ(registry.find(""), nullptr);
  EXPECT_EQ(registry.find("m0\0"s), nullptr);
  EXPECT_EQ(registry.methods().size(), 3000U);
  EXPECT_EQ(registry.methods()[7]->name(), names[7]);
  EXPECT_EQ(registry.handle(request(names[2999])), result_reply("2999"));
}

TEST(Registry, EmptyOneFindsNothing) {
  const Registry registry;
  EXPECT_EQ(registry.find("f"), nullptr);
  EXPECT_EQ(registry.nearest("f"), "");
}

TEST(Registry, KnowsWhatAMethodIsMadeOf) {
  Registry registry;
  registry
      .method("f", [](const Context&, int, std::optional<double>) { return "x"s; },
              {Param("a").description("the a"), "b"})
      .summary("does f");
  const Method& method = *registry.find("f");
  EXPECT_EQ(method.summary(), "does f");
  ASSERT_EQ(method.params().size(), 2U);
  EXPECT_EQ(method.params()[0].name(), "a");
  EXPECT_EQ(method.params()[0].description(), "the a");
  ASSERT_EQ(method.signature().arguments.size(), 2U);
  EXPECT_FALSE(method.signature().arguments[0].optional);
  EXPECT_TRUE(method.signature().arguments[1].optional);
  EXPECT_EQ(method.signature().result->kind, TypeKind::string);
}

TEST(Registry, MovesWithItsMethods) {
  Registry registry;
  registry.method("f", [] { return 1; });
  Registry moved = std::move(registry);
  EXPECT_EQ(moved.handle(request("f")), result_reply("1"));
}

// ---- suggesting ----

TEST(Registry, SuggestsTheNearestName) {
  Registry registry;
  for (const char* name : {"subtract", "sum", "get_data", "user.create", "user.delete"}) registry.method(name, [] {});
  EXPECT_EQ(registry.nearest("subtrac"), "subtract");
  EXPECT_EQ(registry.nearest("usbtract"), "subtract") << "two letters exchanged are one mistake";
  EXPECT_EQ(registry.nearest("SUM"), "") << "three of three letters wrong is another name";
  EXPECT_EQ(registry.nearest("sun"), "sum");
  EXPECT_EQ(registry.nearest("getdata"), "get_data");
  EXPECT_EQ(registry.nearest("user.delet"), "user.delete");
  EXPECT_EQ(registry.nearest("usr.creat"), "user.create");
  EXPECT_EQ(registry.nearest("multiply"), "");
  EXPECT_EQ(registry.nearest(""), "");
  EXPECT_EQ(registry.nearest("x"), "");
  EXPECT_EQ(registry.nearest(std::string(1 << 20, 's')), "");
}

// ---- handle ----

TEST(Registry, HandleReplacesWhatWasInTheOutput) {
  Registry registry;
  registry.method("f", [] { return 1; });
  std::string text = "left over";
  registry.handle(request("f"), text);
  EXPECT_EQ(text, result_reply("1"));
  registry.handle(test::notification("f"), text);
  EXPECT_EQ(text, "");
  Buffer buffer{"left over"};
  registry.handle(request("f"), buffer);
  EXPECT_EQ(buffer.view(), result_reply("1"));
  registry.handle(test::notification("f"), buffer);
  EXPECT_EQ(buffer.view(), "");
}

TEST(Registry, HandlePaddedReadsInPlace) {
  Registry registry;
  registry.method("f", [](const Raw& raw) { return std::string{raw.text}; });
  const std::string text = request("f", "[[1, 2]]");
  const test::PaddedText padded{text};
  Buffer out;
  registry.handle_padded(padded.view(), out);
  EXPECT_EQ(out.view(), result_reply(R"("[1, 2]")"));
}

TEST(Registry, HandlerMayCallHandle) {
  Registry registry;
  registry.method("deep", [&registry](int n, const std::string& text) -> std::string {
    if (n == 0) return text;
    // The strings of this call must outlive the inner one.
    const std::string inner = registry.handle(request("deep", "[" + std::to_string(n - 1) + R"(,"in\u006eer"])"));
    return text + std::to_string(n) + '|' + std::to_string(inner.size());
  });
  EXPECT_EQ(registry.handle(request("deep", R"([0,"\u0061"])")), result_reply(R"("a")"));
  EXPECT_EQ(registry.handle(request("deep", R"([1,"\u0061"])")),
            result_reply(R"("a1|)" + std::to_string(result_reply(R"("inner")").size()) + "\""));
  const std::string reply = registry.handle(request("deep", R"([20,"\u0061"])"));
  EXPECT_TRUE(reply.starts_with(R"({"jsonrpc":"2.0","result":"a20|)")) << reply;
}

TEST(Registry, HandlerInABatchMayHandleABatch) {
  Registry registry;
  registry.method("one", [](std::string_view) { return 1; });
  registry.method("inner", [&registry](std::string_view text) {
    const std::string reply = registry.handle("[" + request("one", R"(["\n"])") + "," + request("unknown") + ",5]");
    return std::string{text} + std::to_string(reply.size());
  });
  const std::string inner = "[" + result_reply("1") + "," + test::error_reply(-32601, "Method not found") + "," +
                            test::invalid_request() + "]";
  const std::string one = result_reply("\"\\t" + std::to_string(inner.size()) + "\"");
  const std::string call = request("inner", R"(["\t"])");
  EXPECT_EQ(registry.handle("[" + call + "," + call + "]"), "[" + one + "," + one + "]");
}

TEST(Registry, LimitsThatCannotBeAreRefused) {
  Registry registry;
  Limits limits;
  limits.depth = 0;
  EXPECT_THROW(registry.set_limits(limits), std::invalid_argument);
  limits.depth = kDepthMax + 1;
  EXPECT_THROW(registry.set_limits(limits), std::invalid_argument);
  limits.depth = kDepthMax;
  registry.set_limits(limits);
  EXPECT_EQ(registry.handle(std::string(kDepthMax, '[') + std::string(kDepthMax, ']')),
            "[" + test::invalid_request() + "]");
}

}  // namespace
}  // namespace wirecall
