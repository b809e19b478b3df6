// A call whose params are long is answered as any other, though its answer is written off the loop and given later.
#include <cmath>
#include <expected>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "wirecall/error.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/registry.hpp"

namespace wirecall {
namespace {

constexpr std::size_t kLong = 300'000;

class OffLoopReply : public testing::Test {
 protected:
  OffLoopReply() {
    registry.method("size", [](std::string_view text) { return text.size(); });
    registry.method("nothing", [](std::string_view) {});
    registry.method("first", [](std::string_view text) { return text.substr(0, 3); });
    registry.method("same", [](const std::string& text) -> const std::string& { return text; });
    registry.method("method", [](const Context& context, std::string_view) { return context.method(); });
    registry.method("nan", [](std::string_view) { return std::nan(""); });
    registry.method("raise", [](std::string_view) -> int { throw std::runtime_error{"not for the wire"}; });
    registry.method("error", [](std::string_view) -> int { throw Error{-5, "no", R"({"why": 1})"}; });
    registry.method("expected",
                    [](std::string_view) -> std::expected<int, Error> { return std::unexpected{Error{-7, "no"}}; });
    registry.method("wrong", [](std::string_view, int) { return 1; });
    registry.method("default", [](std::string_view, std::string_view more) { return more; },
                    {"text", Param{"more"}.default_value(std::string{"\"quoted\""})});
  }

  static std::string request(std::string_view method, std::size_t size, std::string_view id = R"(,"id":1)") {
    return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":["\n)" + std::string(size, 'x') +
           "\"]" + std::string{id} + "}";
  }

  Registry registry;
};

TEST_F(OffLoopReply, IsWhatAShortCallIsAnswered) {
  for (const std::string_view method : {"nothing", "first", "method", "nan", "raise", "error", "expected", "default"}) {
    SCOPED_TRACE(method);
    EXPECT_EQ(registry.handle(request(method, kLong)), registry.handle(request(method, 3)));
  }
  EXPECT_EQ(registry.handle(request("nothing", kLong)), R"({"jsonrpc":"2.0","result":null,"id":1})");
  EXPECT_EQ(registry.handle(request("size", kLong)), R"({"jsonrpc":"2.0","result":300001,"id":1})");
  EXPECT_EQ(registry.handle(request("first", kLong)), R"({"jsonrpc":"2.0","result":"\nxx","id":1})");
  EXPECT_EQ(registry.handle(request("default", kLong)), R"({"jsonrpc":"2.0","result":"\"quoted\"","id":1})");
  EXPECT_EQ(registry.handle(request("same", kLong)),
            R"({"jsonrpc":"2.0","result":"\n)" + std::string(kLong, 'x') + R"(","id":1})");
}

TEST_F(OffLoopReply, OfWrongParamsSaysWhatIsWrong) {
  EXPECT_EQ(registry.handle(request("wrong", kLong)),
            R"({"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params","data":{"loc":["arg1"],)"
            R"("expected":"integer","got":"nothing"}},"id":1})");
}

TEST_F(OffLoopReply, IsNotSentToANotification) {
  for (const std::string_view method : {"size", "nothing", "nan", "error", "wrong"})
    EXPECT_EQ(registry.handle(request(method, kLong, "")), "");
}

TEST_F(OffLoopReply, ThatIsTooLargeIsReplaced) {
  Limits limits;
  limits.max_message_size = kLong + 100;
  registry.set_limits(limits);
  registry.method("twice", [](const std::string& text) { return text + text; });
  EXPECT_NE(registry.handle(request("twice", kLong)).find(R"("code":-32006)"), std::string::npos);
}

}  // namespace
}  // namespace wirecall
