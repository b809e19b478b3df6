// What a peer may try with JSON text against a registry: each is answered as the contract says, the next honest call is
// answered as ever, and no reply is anything but JSON.
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "codec/json_scan.hpp"
#include "tests/rpc/instruction_count.hpp"
#include "tests/rpc/peer.hpp"
#include "wirecall/registry.hpp"

namespace wirecall {
namespace {

using namespace std::string_literals;
using test::count_instructions;
using test::error_reply;
using test::internal_error;
using test::invalid_request;
using test::kCountsInstructions;
using test::notification;
using test::parse_error;
using test::request;
using test::result_reply;

struct Person {
  std::string name;
  std::optional<int> age;
  std::vector<std::string> tags;
};

std::string repeated(std::string_view text, std::size_t times) {
  std::string all;
  all.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

class Hostile : public testing::Test {
 protected:
  Hostile() {
    registry.method("echo", [](const Value& value) { return value; }, {"value"});
    registry.method("echo_raw", [](const Raw& value) { return value; }, {"value"});
    registry.method("integer", [](std::int64_t n) { return n; }, {"n"});
    registry.method("real", [](double n) { return n; }, {"n"});
    registry.method("size", [](std::string_view text) { return text.size(); }, {"text"});
    registry.method("person", [](const Person& person) { return person.name; }, {"person"});
    registry.method("map", [](const std::map<std::string, int>& map) { return map.size(); }, {"map"});
    registry.method("count", [this] { ++calls; });
  }
  // Whatever was sent must have left the registry as it was.
  void TearDown() override { EXPECT_EQ(registry.handle(request("integer", "[7]")), result_reply("7")); }

  std::string handle(std::string_view text) {
    std::string reply = registry.handle(text);
    EXPECT_TRUE(reply.empty() || nlohmann::json::accept(reply)) << reply.substr(0, 200);
    return reply;
  }

  Registry registry;
  int calls = 0;
};

// ---- depth ----

TEST_F(Hostile, MillionsOfBracketsAreTooDeepAndTakeNoStack) {
  const std::string too_deep = error_reply(-32700, "Parse error", R"({"limit":"depth"})", "null");
  constexpr std::size_t kMillions = 5'000'000;
  for (const std::uint32_t depth : {256U, kDepthMax}) {
    Limits limits;
    limits.max_message_size = 64U << 20U;
    limits.depth = depth;
    registry.set_limits(limits);
    EXPECT_EQ(handle(std::string(kMillions, '[')), too_deep);
    EXPECT_EQ(handle(std::string(kMillions, '[') + std::string(kMillions, ']')), too_deep);
    EXPECT_EQ(handle(repeated("{\"a\":", kMillions)), too_deep);
    EXPECT_EQ(handle(repeated("[{\"a\":", kMillions / 2)), too_deep);
    EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"echo","id":1,"params":)" + std::string(kMillions, '[')), too_deep);
    EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"echo","id":)" + std::string(kMillions, '[')), too_deep);
  }
}

TEST_F(Hostile, DeepestAllowedNestingIsEchoed) {
  Limits limits;
  limits.depth = kDepthMax;
  registry.set_limits(limits);
  const std::string arrays = std::string(kDepthMax - 2, '[') + std::string(kDepthMax - 2, ']');
  const std::string objects = repeated("{\"a\":", kDepthMax - 2) + "1" + std::string(kDepthMax - 2, '}');
  for (const std::string& value : {arrays, objects}) {
    EXPECT_TRUE(handle(request("echo", "[" + value + "]")) == result_reply(value));
    EXPECT_TRUE(handle(request("echo_raw", "[" + value + "]")) == result_reply(value));
  }
}

// ---- numbers ----

TEST_F(Hostile, NumbersOfAnySizeAreRelayedVerbatimAndIntegersAreExact) {
  for (const char* number :
       {"-0", "1e400", "-1e400", "1e-400", "9007199254740991", "9007199254740993", "-9007199254740993",
        "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551615",
        "18446744073709551616", "1E+3", "0.10", "100000000000000000000000000000"}) {
    const std::string params = "[" + std::string{number} + "]";
    EXPECT_EQ(registry.handle(request("echo_raw", params)), result_reply(number));
    EXPECT_EQ(registry.handle(R"({"jsonrpc":"2.0","method":"count","id":)" + std::string{number} + "}"),
              result_reply("null", number));
  }
  for (const char* integer :
       {"9007199254740991", "9007199254740993", "-9007199254740993", "9223372036854775807", "-9223372036854775808"}) {
    EXPECT_EQ(handle(request("integer", "[" + std::string{integer} + "]")), result_reply(integer));
    EXPECT_EQ(handle(request("echo", "[" + std::string{integer} + "]")), result_reply(integer));
  }
  for (const char* integer : {"9223372036854775808", "18446744073709551615"})
    EXPECT_EQ(handle(request("echo", "[" + std::string{integer} + "]")), result_reply(integer));
  EXPECT_EQ(registry.handle(request("echo", "[1e400]")), result_reply("1e400"));
}

TEST_F(Hostile, MegabyteOfDigitsIsANumber) {
  const std::string digits(1U << 20U, '7');
  EXPECT_TRUE(registry.handle(request("echo_raw", "[" + digits + "]")) == result_reply(digits));
  EXPECT_TRUE(registry.handle(request("echo", "[" + digits + "]")) == result_reply(digits));
  const std::string refused = handle(request("integer", "[" + digits + "]"));
  EXPECT_TRUE(refused.starts_with(R"({"jsonrpc":"2.0","error":{"code":-32602,)")) << refused.substr(0, 200);
  EXPECT_LT(refused.size(), 500U) << "what was sent is shown shortened";
  EXPECT_EQ(handle(request("real", "[0." + digits + "]")), result_reply("0.7777777777777778"));
  EXPECT_EQ(handle(request("integer", "[5." + std::string(1U << 20U, '0') + "]")), result_reply("5"));
  EXPECT_EQ(handle(request("integer", "[0e" + digits + "]")), result_reply("0"));
  EXPECT_TRUE(handle(request("real", "[1e" + digits + "]")).starts_with(R"({"jsonrpc":"2.0","error":{"code":-32602,)"));
  EXPECT_EQ(handle(request("count") + digits), parse_error());
}

// ---- bytes that are no text ----

TEST_F(Hostile, InvalidTextIsAParseErrorAndIsNeverEchoed) {
  for (const char* wrong : {"\\ud800", "\\udc00", "\\udc00\\ud800", "\\ud800\\u0041", "\xC0\xAF", "\xE0\x80\xAF",
                            "\xF0\x80\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF", "\xFE", "\x80", "\xC3",
                            "\x01", "\x1F", "\n", "\t", "\\x", "\\u12"}) {
    const std::string string = '"' + std::string{wrong} + '"';
    EXPECT_EQ(handle(request("echo", "[" + string + "]")), parse_error());
    EXPECT_EQ(handle(request("echo", "{" + string + ":1}")), parse_error());
    EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":)" + string + R"(,"id":1})"), parse_error());
    EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"count","id":)" + string + "}"), parse_error());
    EXPECT_EQ(handle("{" + string + R"(:1,"jsonrpc":"2.0","method":"count","id":1})"), parse_error());
    EXPECT_EQ(handle(R"({"jsonrpc":"2.0","result":)" + string + R"(,"id":1})"), parse_error());
  }
  EXPECT_EQ(handle("\xEF\xBB\xBF" + request("count")), parse_error());
  EXPECT_EQ(calls, 0);
}

TEST_F(Hostile, RepliesAreUtf8WhateverAHandlerReturnsOrRaises) {
  const std::string wrong = "caf\xE9 \xED\xA0\x80 \xF0\x9F";
  registry.method("returns", [wrong] { return wrong; });
  registry.method("returns_key", [wrong] { return std::map<std::string, int>{{wrong, 1}}; });
  registry.method("raises", [wrong] { throw Error{1, wrong, '"' + wrong + '"'}; });
  registry.method("expected",
                  [wrong]() -> std::expected<int, Error> { return std::unexpected(Error{1, wrong, wrong}); });
  registry.method("throws", [wrong] { throw std::runtime_error(wrong); });
  EXPECT_EQ(handle(request("returns")), internal_error());
  EXPECT_EQ(handle(request("returns_key")), internal_error());
  EXPECT_EQ(handle(request("throws")), internal_error());
  EXPECT_TRUE(handle(request("raises")).starts_with(R"({"jsonrpc":"2.0","error":{"code":1,"message":"caf)"));
  EXPECT_TRUE(handle(request("expected")).starts_with(R"({"jsonrpc":"2.0","error":{"code":1,"message":"caf)"));
}

TEST_F(Hostile, NulCharactersAreComparedLikeAnyOther) {
  EXPECT_EQ(handle(request("count\\u0000")), error_reply(-32601, "Method not found", R"({"did_you_mean":"count"})"));
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"count","id":"a\u0000b"})"), result_reply("null", R"("a\u0000b")"));
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method\u0000":"count","id":1})"), invalid_request("1"));
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0\u0000","method":"count","id":1})"), invalid_request("1"));
  EXPECT_EQ(handle(request("size", R"(["a\u0000b"])")), result_reply("3"));
  EXPECT_EQ(handle(request("echo", R"(["a\u0000b"])")), result_reply(R"("a\u0000b")"));
  EXPECT_EQ(handle(request("map", R"([{"a":1,"a\u0000":2}])")), result_reply("2"));
  EXPECT_EQ(calls, 1);
}

// ---- the envelope ----

TEST_F(Hostile, NamesGivenTwiceAreRefused) {
  for (const char* twice : {R"("id":1,"id":2)", R"("id":1,"method":"echo")", R"("id":1,"params":[1],"params":[2])",
                            R"("id":1,"\u0070arams":[1],"params":[2])", R"("id":1,"m\u0065thod":"echo")",
                            R"("id":1,"\u0069\u0064":2)", R"("id":1,"jsonrpc":"2.0")"}) {
    const std::string reply = handle(R"({"jsonrpc":"2.0","method":"count",)" + std::string{twice} + "}");
    EXPECT_TRUE(reply == invalid_request() || reply == invalid_request("1")) << reply;
  }
  EXPECT_EQ(calls, 0);
}

TEST_F(Hostile, IdCannotInjectAReply) {
  for (const char* id :
       {R"("\",\"result\":\"injected\",\"id\":\"")", R"("}{\"jsonrpc\":\"2.0\",\"result\":1,\"id\":2}")",
        R"("\n{\"id\":1}\n")", R"("\\")", R"("\\\"")"}) {
    const std::string reply = handle(R"({"jsonrpc":"2.0","method":"count","id":)" + std::string{id} + "}");
    EXPECT_EQ(reply, result_reply("null", id));
    EXPECT_EQ(nlohmann::json::parse(reply).size(), 3U);
  }
}

TEST_F(Hostile, LongIdsAreEchoedUpTo64KiB) {
  const std::string id = '"' + std::string(kIdBytesMax - 2, 'i') + '"';
  EXPECT_TRUE(handle(R"({"jsonrpc":"2.0","method":"count","id":)" + id + "}") == result_reply("null", id));
  const std::string too_long = error_reply(-32600, "Invalid Request", R"({"limit":"id"})", "null");
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"count","id":"i)" + id.substr(1) + "}"), too_long);
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"count","id":")" + std::string(1U << 20U, 'i') + "\"}"), too_long);
  EXPECT_EQ(calls, 1);
}

// ---- batches ----

TEST_F(Hostile, BatchesOfEverySizeGetTheirAnswer) {
  EXPECT_EQ(handle("[]"), invalid_request());
  EXPECT_EQ(handle("[1]"), "[" + invalid_request() + "]");
  const std::string over = error_reply(-32600, "Invalid Request", R"({"limit":"batch"})", "null");
  EXPECT_EQ(handle("[1" + repeated(",1", 999'999) + "]"), over);
  // More ids than a peer is told of at once.
  EXPECT_EQ(handle("[" + request("count") + repeated("," + request("count"), 249'999) + "]"), over);
  EXPECT_EQ(handle("[" + notification("count") + repeated("," + notification("count"), 100'000) + "]"), over);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(handle("[" + notification("count") + repeated("," + notification("count"), 999) + "]"), "");
  EXPECT_EQ(calls, 1000);
  EXPECT_EQ(handle("[[" + request("count") + "]]"), "[" + invalid_request() + "]");
  EXPECT_EQ(handle("[1" + repeated(",1", 999) + "]"),
            "[" + invalid_request() + repeated("," + invalid_request(), 999) + "]");
}

TEST_F(Hostile, MillionElementBatchIsReadToItsEnd) {
  // Over the limit, but only if it is JSON.
  EXPECT_EQ(handle("[1" + repeated(",1", 999'999) + ",]"), parse_error());
}

// ---- handlers ----

TEST_F(Hostile, HugeResultIsTooLargeAndCostsTheNextCallNothing) {
  registry.method("huge", [] { return std::string(20U << 20U, 'x'); });
  registry.method("huge_error", [] { throw Error{1, std::string(20U << 20U, 'x')}; });
  registry.method("huge_items", []() -> Stream<std::string> {
    for (;;) co_yield std::string(1U << 20U, 'x');
  });
  for (const char* method : {"huge", "huge_error", "huge_items"}) {
    const std::string reply = handle(request(method));
    EXPECT_TRUE(reply.starts_with(R"({"jsonrpc":"2.0","error":{"code":-32006,"message":"Too large")")) << method;
    EXPECT_NE(reply.find(R"("limit":"max_message_size")"), reply.npos) << method;
    EXPECT_EQ(handle(notification(method)), "");
  }
  const std::string both = handle("[" + request("huge") + "," + request("integer", "[3]") + "]");
  EXPECT_TRUE(both.ends_with("," + result_reply("3") + "]")) << both;
}

// ---- work grows no faster than input ----

class Work : public Hostile {
 protected:
  void SetUp() override {
    if (!kCountsInstructions) GTEST_SKIP() << "instructions cannot be counted in this build";
  }
  // Instructions for twice the input, over those for the input.
  double growth(const std::function<std::string(std::size_t)>& make, std::size_t size) {
    const auto work = [&](std::size_t n) {
      const std::string text = make(n);
      const test::PaddedText padded{text};
      Buffer out;
      // Warm: memory is allocated, and lazily bound functions are.
      registry.handle_padded(padded.view(), out);
      return static_cast<double>(count_instructions([&] { registry.handle_padded(padded.view(), out); }));
    };
    return work(2 * size) / work(size);
  }
};

// The bound of 2.3 leaves room for what does not grow at all or grows with the logarithm.
constexpr double kGrowthMax = 2.3;

TEST_F(Work, GrowsWithEscapesOnlyAsTheyDo) {
  constexpr std::string_view kEscapes = R"(\n\u0041\ud83d\ude00a\\\")";
  EXPECT_LT(growth([&](std::size_t n) { return request("size", "[\"" + repeated(kEscapes, n) + "\"]"); }, 12),
            kGrowthMax);
  EXPECT_LT(growth([&](std::size_t n) { return request(repeated(kEscapes, n)); }, 12), kGrowthMax);
}

TEST_F(Work, GrowsWithMembersOnlyAsTheyDo) {
  const auto unknown_of_envelope = [](std::size_t n) {
    return R"({"jsonrpc":"2.0","method":"count")" + repeated(R"(,"k":1)", n) + R"(,"id":1})";
  };
  EXPECT_LT(growth(unknown_of_envelope, 30), kGrowthMax);
  const auto unknown_of_struct = [](std::size_t n) {
    return request("person", R"([{"name":"x","tags":[])" + repeated(R"(,"k":1)", n) + "}]");
  };
  EXPECT_LT(growth(unknown_of_struct, 12), kGrowthMax);
  const auto keys_of_map = [](std::size_t n) {
    std::string members = R"("k":1)";
    for (std::size_t i = 0; i < n; ++i) members += R"(,"\u006b)" + std::to_string(1000 + i) + "\":1";
    return request("map", "[{" + members + "}]");
  };
  EXPECT_LT(growth(keys_of_map, 10), kGrowthMax);
}

TEST_F(Work, GrowsWithNestingSpaceAndDigitsOnlyAsTheyDo) {
  EXPECT_LT(growth([](std::size_t n) { return std::string(n, '['); }, 50), kGrowthMax);
  EXPECT_LT(growth([](std::size_t n) { return request("count", std::string(n, ' ') + "[]"); }, 150), kGrowthMax);
  EXPECT_LT(growth([](std::size_t n) { return request("integer", "[5." + std::string(n, '0') + "]"); }, 100),
            kGrowthMax);
  EXPECT_LT(growth([](std::size_t n) { return request("real", "[0." + std::string(n, '7') + "]"); }, 100), kGrowthMax);
}

TEST_F(Work, GrowsWithBatchesOnlyAsTheyDo) {
  // Many more elements than are kept from the first pass, which are not read again.
  const auto batch = [](std::size_t n) { return "[1" + repeated(",1", n) + "]"; };
  EXPECT_LT(growth(batch, 4 * kBatchElementsKept), kGrowthMax);
}

// The scanner's steps, where inputs are large: how often it looks for the next special byte, and over how many bytes.
struct CountingOps : json::ScalarOps {
  static inline std::size_t looks = 0;
  static inline std::size_t bytes = 0;

  static const char* find_special(const char* p) noexcept {
    const char* const found = json::ScalarOps::find_special(p);
    ++looks;
    bytes += static_cast<std::size_t>(found - p) + 1;
    return found;
  }
  static const char* skip_digits(const char* p) noexcept {
    const char* const found = json::ScalarOps::skip_digits(p);
    ++looks;
    bytes += static_cast<std::size_t>(found - p) + 1;
    return found;
  }
};

TEST(ScannerWork, IsOnePassOverLargeInputs) {
  constexpr std::size_t kTimes = 100'000;
  const std::string inputs[] = {"[\"" + repeated("\\n", kTimes) + "\"]",
                                "[\"" + repeated("\\u0041x", kTimes) + "\"]",
                                "[\"" + repeated("\\ud83d\\ude00", kTimes) + "\"]",
                                "[\"" + repeated("\xC3\xA9x", kTimes) + "\"]",
                                "{\"a\":1" + repeated(",\"a\":1", kTimes) + "}",
                                "{\"a\":1" + repeated(",\"\\u0061\":1", kTimes) + "}",
                                "[" + repeated("[],", kTimes) + "0]",
                                "[0." + std::string(kTimes, '7') + "e1]",
                                std::string(1000, '[') + std::string(1000, ']')};
  for (const std::string& input : inputs) {
    const test::PaddedText text{input};
    CountingOps::looks = CountingOps::bytes = 0;
    json::Scanner<CountingOps> scanner{kDepthMax};
    ASSERT_NE(scanner.value(text.view().data(), 0), nullptr);
    EXPECT_LE(CountingOps::looks, input.size());
    EXPECT_LE(CountingOps::bytes, 2 * input.size()) << "each byte is looked at, and where a look begins, once more";
  }
}

}  // namespace
}  // namespace wirecall
