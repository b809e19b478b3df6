// How params become arguments: positions and names, what may be missing, what is refused and how that is told; and
// which callables can be methods.
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/rpc/peer.hpp"
#include "wirecall/registry.hpp"

namespace wirecall {
namespace {

using namespace std::string_literals;
using test::invalid_params;
using test::request;
using test::result_reply;

class Params : public testing::Test {
 protected:
  std::string call(std::string_view method, std::string_view params = {}) {
    return registry.handle(request(method, params));
  }
  Registry registry;
};

std::string failure(std::string_view loc, std::string_view expected, std::string_view got) {
  return invalid_params(R"({"loc":)" + std::string{loc} + R"(,"expected":")" + std::string{expected} + R"(","got":")" +
                        std::string{got} + "\"}");
}

constexpr std::string_view kParseError =
    R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null})";

int subtract(int a, int b) { return a - b; }

// ---- positions and names ----

TEST_F(Params, ComeByPositionOrByName) {
  registry.method("subtract", subtract, {"a", "b"});
  EXPECT_EQ(call("subtract", "[42,23]"), result_reply("19"));
  EXPECT_EQ(call("subtract", R"({"a":42,"b":23})"), result_reply("19"));
  EXPECT_EQ(call("subtract", R"({"b":23,"a":42})"), result_reply("19"));
  EXPECT_EQ(call("subtract", R"( { "\u0062" : 23 , "a" : 42 } )"), result_reply("19"));
  EXPECT_EQ(call("subtract", " [ 42 , 23 ] "), result_reply("19"));
}

// Each as `failure` has it, the first with the others behind it.
std::string failures(std::string_view first, std::string_view also) {
  return invalid_params(std::string{first} + R"(,"also":[)" + std::string{also} + "]}");
}

constexpr std::string_view kNoB = R"({"loc":["b"],"expected":"integer","got":"nothing"})";

TEST_F(Params, ThatDoNotFitAreAllToldAtOnce) {
  registry.method("subtract", subtract, {"minuend", "subtrahend"});
  EXPECT_EQ(call("subtract", R"(["x","y"])"), failures(R"({"loc":["minuend"],"expected":"integer","got":"\"x\"")",
                                                       R"({"loc":["subtrahend"],"expected":"integer","got":"\"y\""})"));
  EXPECT_EQ(call("subtract", R"({"subtrahend":"y","minuend":"x"})"),
            failures(R"({"loc":["subtrahend"],"expected":"integer","got":"\"y\"")",
                     R"({"loc":["minuend"],"expected":"integer","got":"\"x\""})"));
  EXPECT_EQ(call("subtract"), failures(R"({"loc":["minuend"],"expected":"integer","got":"nothing")",
                                       R"({"loc":["subtrahend"],"expected":"integer","got":"nothing"})"));
  EXPECT_EQ(call("subtract", R"(["x",1,2,3])"),
            failures(R"({"loc":["minuend"],"expected":"integer","got":"\"x\"")",
                     R"({"loc":[2],"expected":"nothing","got":"2"},{"loc":[3],"expected":"nothing","got":"3"})"));
}

TEST_F(Params, AMisspeltNameIsToldWithTheOneThatIsMeantAndWhatIsMissing) {
  registry.method("subtract", subtract, {"minuend", "subtrahend"});
  EXPECT_EQ(call("subtract", R"({"minuend":42,"subtrahnd":23})"),
            failures(R"({"loc":["subtrahnd"],"expected":"nothing","got":"23","did_you_mean":"subtrahend")",
                     R"({"loc":["subtrahend"],"expected":"integer","got":"nothing"})"));
  EXPECT_EQ(call("subtract", R"({"minuend":42,"subtrahend":23,"other":1})"), failure(R"(["other"])", "nothing", "1"));
}

TEST_F(Params, WithinAValueTheFirstThatDoesNotFitIsTold) {
  registry.method("join",
                  [](const std::vector<int>& a, const std::map<std::string, int>& b, int c) {
                    return a.size() + b.size() + static_cast<std::size_t>(c);
                  },
                  {"a", "b", "c"});
  EXPECT_EQ(call("join", R"([[1,"x","y"],{"k":"v"},3])"),
            failures(R"({"loc":["a",1],"expected":"integer","got":"\"x\"")",
                     R"({"loc":["b","k"],"expected":"integer","got":"\"v\""})"));
  EXPECT_EQ(call("join", R"([[1],{"k":1},3])"), result_reply("5"));
}

TEST_F(Params, ThatAreWrongByTheThousandAreToldInPart) {
  registry.method("subtract", subtract, {"minuend", "subtrahend"});
  std::string many = R"({"minuend":1,"subtrahend":2)";
  for (int i = 0; i != 2000; ++i) many += ",\"x" + std::to_string(i) + "\":\"" + std::string(200, 'y') + "\"";
  const std::string reply = call("subtract", many + "}");
  EXPECT_NE(reply.find(R"("loc":["x7"])"), std::string::npos) << reply;
  EXPECT_EQ(reply.find(R"("loc":["x8"])"), std::string::npos) << reply;
  EXPECT_LT(reply.size(), 2000U);
}

TEST_F(Params, ADefaultIsNotMissing) {
  registry.method("add", [](int a, int b, std::optional<int> c) { return a + b + c.value_or(0); },
                  {"a", Param{"b"}.default_value(2), "c"});
  EXPECT_EQ(call("add", R"({"a":"x"})"), failure(R"(["a"])", "integer", R"(\"x\")"));
}

// Few and short ones are read together with the envelope; all others, and whatever does not fit, from the params' text.
TEST_F(Params, OfIntegersAreTheSameReadTogetherWithTheEnvelopeOrAfterIt) {
  registry.method("subtract", [](std::int64_t a, std::int64_t b) { return a - b; }, {"a", "b"});
  EXPECT_EQ(call("subtract", "[999999999,0]"), result_reply("999999999"));
  EXPECT_EQ(call("subtract", "[1000000000,0]"), result_reply("1000000000"));
  EXPECT_EQ(call("subtract", "[0,999999999]"), result_reply("-999999999"));
  EXPECT_EQ(call("subtract", "[-1,1]"), result_reply("-2"));
  EXPECT_EQ(call("subtract", "[1,1e2]"), result_reply("-99"));
  EXPECT_EQ(call("subtract", "[1 ,2]"), result_reply("-1"));
  EXPECT_EQ(call("subtract", "[1,  2]"), result_reply("-1"));
  EXPECT_EQ(call("subtract", R"({"b":1,"a":1000000000})"), result_reply("999999999"));
  EXPECT_EQ(call("subtract", R"({"\u0061":3,"b":1})"), result_reply("2"));
  EXPECT_EQ(call("subtract", "[01,2]"), kParseError);
  EXPECT_EQ(call("subtract", "[1,2,]"), kParseError);
  EXPECT_EQ(call("subtract", R"({"a":1,"b":02})"), kParseError);
  EXPECT_EQ(call("subtract", "[1]"), failure(R"(["b"])", "integer", "nothing"));
  EXPECT_EQ(call("subtract", "[1,2,3]"), failure("[2]", "nothing", "3"));
  EXPECT_EQ(call("subtract", R"({"a":1,"a":2})"), failures(R"({"loc":["a"],"expected":"one value","got":"2")", kNoB));
  EXPECT_EQ(call("subtract", R"({"a":1,"c":2})"), failures(R"({"loc":["c"],"expected":"nothing","got":"2")", kNoB));
}

TEST_F(Params, OfOtherNumberTypesTakeIntegersThatAreReadTogetherWithTheEnvelope) {
  registry.method("real", [](double a) { return a / 2; });
  registry.method("small_real", [](float a) { return a; });
  registry.method("unsigned", [](std::uint32_t a, std::uint64_t b) { return a + b; });
  registry.method("byte", [](std::int8_t a) { return a; });
  registry.method("all", [](int first, const Rest<double>& rest) { return std::pair{first, rest.size()}; }, {"first"});
  EXPECT_EQ(call("real", "[3]"), result_reply("1.5"));
  EXPECT_EQ(call("small_real", "[16777217]"), result_reply("16777216"));  // the nearest float
  EXPECT_EQ(call("unsigned", "[999999999,1]"), result_reply("1000000000"));
  EXPECT_EQ(call("byte", "[128]"), failure(R"(["arg0"])", "integer from -128 to 127", "128"));
  EXPECT_EQ(call("all", "[1,2,3,4,5,6,7,8]"), result_reply("[1,7]"));
  EXPECT_EQ(call("all", "[1,2,3,4,5,6,7,8,9]"), result_reply("[1,8]"));
  EXPECT_EQ(call("all", "[1]"), result_reply("[1,0]"));
  EXPECT_EQ(call("all", R"({"first":1})"), result_reply("[1,0]"));
}

TEST_F(Params, WithoutNamesAreCalledArg0AndSoOn) {
  registry.method("subtract", subtract);
  registry.method("half_named", subtract, {"a"});
  EXPECT_EQ(call("subtract", R"({"arg1":23,"arg0":42})"), result_reply("19"));
  EXPECT_EQ(call("half_named", R"({"arg1":23,"a":42})"), result_reply("19"));
}

TEST_F(Params, MissingNullEmptyArrayAndEmptyObjectAreNone) {
  registry.method("none", [] { return 1; });
  registry.method("optional", [](std::optional<int> a) { return a.has_value(); });
  registry.method("one", [](int) {}, {"a"});
  for (const char* params : {"", "null", "[]", "{}", "[ ]", "{ }"}) {
    EXPECT_EQ(call("none", params), result_reply("1")) << params;
    EXPECT_EQ(call("optional", params), result_reply("false")) << params;
    EXPECT_EQ(call("one", params), failure(R"(["a"])", "integer", "nothing")) << params;
  }
}

TEST_F(Params, MissingOneIsToldByItsName) {
  registry.method("subtract", subtract, {"a", "b"});
  EXPECT_EQ(call("subtract", "[42]"), failure(R"(["b"])", "integer", "nothing"));
  EXPECT_EQ(call("subtract", R"({"b":42})"), failure(R"(["a"])", "integer", "nothing"));
}

TEST_F(Params, OneOfAWrongTypeIsToldWithWhatWasThere) {
  registry.method("subtract", subtract, {"a", "b"});
  // The contract's own example.
  EXPECT_EQ(call("subtract", R"([1,"x"])"), failure(R"(["b"])", "integer", R"(\"x\")"));
  EXPECT_EQ(call("subtract", R"({"a":1,"b":"x"})"), failure(R"(["b"])", "integer", R"(\"x\")"));
  EXPECT_EQ(call("subtract", "[1,null]"), failure(R"(["b"])", "integer", "null"));
  EXPECT_EQ(call("subtract", "[true,1]"), failure(R"(["a"])", "integer", "true"));
  EXPECT_EQ(call("subtract", "[[1],1]"), failure(R"(["a"])", "integer", "[1]"));
  EXPECT_EQ(call("subtract", "[1.5,1]"), failure(R"(["a"])", "integer", "1.5"));
}

TEST_F(Params, WrongTypesInsideAreToldByTheirWay) {
  registry.method("f", [](const std::map<std::string, std::vector<int>>&) {}, {"m"});
  EXPECT_EQ(call("f", R"([{"k":[1,2,"x"]}])"), failure(R"(["m","k",2])", "integer", R"(\"x\")"));
  EXPECT_EQ(call("f", R"({"m":{"a\"b":[false]}})"), failure(R"(["m","a\"b",0])", "integer", "false"));
}

TEST_F(Params, LongWrongValueIsShortenedToValidText) {
  registry.method("f", [](int) {}, {"a"});
  std::string long_text;
  for (int i = 0; i < 100; ++i) long_text += "\xE2\x82\xAC";
  const std::string reply = call("f", "[\"" + long_text + "\"]");
  EXPECT_LT(reply.size(), 300U);
  EXPECT_TRUE(Value::parse(reply).has_value()) << reply;
}

TEST_F(Params, TooManyPositionsAreRefused) {
  registry.method("subtract", subtract, {"a", "b"});
  registry.method("none", [] {});
  EXPECT_EQ(call("subtract", "[1,2,3]"), failure("[2]", "nothing", "3"));
  EXPECT_EQ(call("none", "[null]"), failure("[0]", "nothing", "null"));
}

TEST_F(Params, UnknownNamesAreRefused) {
  registry.method("subtract", subtract, {"a", "b"});
  registry.method("none", [] {});
  EXPECT_EQ(call("subtract", R"({"a":1,"b":2,"c":3})"), failure(R"(["c"])", "nothing", "3"));
  EXPECT_EQ(call("subtract", R"({"a\u0000":1,"b":2})"),
            failures(R"({"loc":["a\u0000"],"expected":"nothing","got":"1")",
                     R"({"loc":["a"],"expected":"integer","got":"nothing"})"));
  EXPECT_EQ(call("none", R"({"":null})"), failure(R"([""])", "nothing", "null"));
}

TEST_F(Params, NameGivenTwiceIsRefused) {
  registry.method("subtract", subtract, {"a", "b"});
  EXPECT_EQ(call("subtract", R"({"a":1,"b":2,"a":3})"), failure(R"(["a"])", "one value", "3"));
  EXPECT_EQ(call("subtract", R"({"a":1,"\u0061":2})"),
            failures(R"({"loc":["a"],"expected":"one value","got":"2")", kNoB));
}

// ---- optional ones and defaults ----

TEST_F(Params, OptionalOnesMayBeMissingOrNull) {
  registry.method("f", [](int a, std::optional<int> b) { return a + b.value_or(100); }, {"a", "b"});
  for (const char* params : {"[1]", "[1,null]", R"({"a":1})", R"({"b":null,"a":1})"})
    EXPECT_EQ(call("f", params), result_reply("101")) << params;
  EXPECT_EQ(call("f", "[1,2]"), result_reply("3"));
  EXPECT_EQ(call("f", R"([1,"x"])"), failure(R"(["b"])", "integer", R"(\"x\")"));
}

TEST_F(Params, DefaultsStandInForMissingOnes) {
  registry.method("f", [](int a, int b, const std::string& c) { return std::to_string(a) + std::to_string(b) + c; },
                  {"a", Param("b").default_value(7), Param("c").default_value("\"quoted\"\n"s)});
  EXPECT_EQ(call("f", "[1]"), result_reply(R"("17\"quoted\"\n")"));
  EXPECT_EQ(call("f", "[1,2]"), result_reply(R"("12\"quoted\"\n")"));
  EXPECT_EQ(call("f", R"({"c":"x","a":1})"), result_reply(R"("17x")"));
  EXPECT_EQ(call("f", R"({"c":"x","a":1,"b":null})"), failure(R"(["b"])", "integer", "null"));
  EXPECT_EQ(call("f", R"({"b":1})"), failure(R"(["a"])", "integer", "nothing"));
}

TEST_F(Params, DefaultMayStandBeforeOnesThatAreRequired) {
  registry.method("f", [](int a, int b) { return 10 * a + b; }, {Param("a").default_value(4), "b"});
  EXPECT_EQ(call("f", R"({"b":2})"), result_reply("42"));
  EXPECT_EQ(call("f", "[1]"), failure(R"(["b"])", "integer", "nothing"));
}

TEST_F(Params, DefaultOfAStringViewLastsThroughTheCall) {
  registry.method("f", [](std::string_view a, std::string_view b) { return std::string{a} + std::string{b}; },
                  {Param("a").default_value("tab\t"s), Param("b").default_value("quote\""s)});
  EXPECT_EQ(call("f"), result_reply(R"("tab\tquote\"")"));
  EXPECT_EQ(call("f", R"(["\u0061"])"), result_reply(R"("aquote\"")"));
}

// ---- Rest ----

TEST_F(Params, RestTakesAllFurtherPositions) {
  registry.method("join",
                  [](const std::string& separator, const Rest<std::string>& words) {
                    std::string joined;
                    for (const std::string& word : words) joined += separator + word;
                    return joined;
                  },
                  {"separator"});
  EXPECT_EQ(call("join", R"(["-"])"), result_reply(R"("")"));
  EXPECT_EQ(call("join", R"(["-","a","b","c"])"), result_reply(R"("-a-b-c")"));
  EXPECT_EQ(call("join", R"({"separator":"-"})"), result_reply(R"("")"));
  EXPECT_EQ(call("join", R"(["-","a",2])"), failure("[2]", "string", "2"));
  EXPECT_EQ(call("join"), failure(R"(["separator"])", "string", "nothing"));
}

TEST_F(Params, RestOfAnythingTakesThousands) {
  registry.method("size", [](const Rest<Value>& values) { return values.size(); });
  std::string many = "[0";
  for (int i = 1; i < 10000; ++i) many += ",[]";
  EXPECT_EQ(call("size", many + "]"), result_reply("10000"));
  EXPECT_EQ(call("size"), result_reply("0"));
}

// ---- types ----

TEST_F(Params, IntegersKeepAll64Bits) {
  registry.method("i", [](std::int64_t n) { return n; }, {"n"});
  registry.method("u", [](std::uint64_t n) { return n; }, {"n"});
  for (const char* n : {"0", "9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993",
                        "9223372036854775807", "-9223372036854775808"})
    EXPECT_EQ(call("i", '[' + std::string{n} + ']'), result_reply(n));
  for (const char* n : {"9223372036854775808", "18446744073709551615", "0"})
    EXPECT_EQ(call("u", '[' + std::string{n} + ']'), result_reply(n));
  EXPECT_EQ(call("i", "[-0]"), result_reply("0"));
  EXPECT_EQ(call("u", "[-0]"), result_reply("0"));
  const std::string range = "integer from -9223372036854775808 to 9223372036854775807";
  EXPECT_EQ(call("i", "[9223372036854775808]"), failure(R"(["n"])", range, "9223372036854775808"));
  EXPECT_EQ(call("i", "[-9223372036854775809]"), failure(R"(["n"])", range, "-9223372036854775809"));
  EXPECT_EQ(call("u", "[18446744073709551616]"),
            failure(R"(["n"])", "integer from 0 to 18446744073709551615", "18446744073709551616"));
  EXPECT_EQ(call("u", "[-1]"), failure(R"(["n"])", "integer from 0 to 18446744073709551615", "-1"));
}

TEST_F(Params, SmallIntegersAreCheckedAgainstTheirRange) {
  registry.method("i8", [](std::int8_t n) { return n; }, {"n"});
  registry.method("i16", [](std::int16_t n) { return n; }, {"n"});
  registry.method("i32", [](std::int32_t n) { return n; }, {"n"});
  registry.method("u8", [](std::uint8_t n) { return n; }, {"n"});
  registry.method("u16", [](std::uint16_t n) { return n; }, {"n"});
  registry.method("u32", [](std::uint32_t n) { return n; }, {"n"});
  const struct {
    const char* method;
    std::int64_t least, most;
  } types[] = {{"i8", -128, 127}, {"i16", -32768, 32767}, {"i32", -2147483648LL, 2147483647},
               {"u8", 0, 255},    {"u16", 0, 65535},      {"u32", 0, 4294967295LL}};
  for (const auto& type : types) {
    const std::string range = "integer from " + std::to_string(type.least) + " to " + std::to_string(type.most);
    for (const std::int64_t inside : {type.least, type.most}) {
      EXPECT_EQ(call(type.method, '[' + std::to_string(inside) + ']'), result_reply(std::to_string(inside)));
    }
    for (const std::int64_t outside : {type.least - 1, type.most + 1}) {
      EXPECT_EQ(call(type.method, '[' + std::to_string(outside) + ']'),
                failure(R"(["n"])", range, std::to_string(outside)));
    }
  }
}

TEST_F(Params, IntegerTakesFractionsAndExponentsThatAreExactlyIntegral) {
  registry.method("i", [](int n) { return n; }, {"n"});
  for (const auto& [text, value] : {std::pair{"1.0", "1"},
                                    {"1e3", "1000"},
                                    {"-1.50e1", "-15"},
                                    {"0.0", "0"},
                                    {"10e-1", "1"},
                                    {"-0.0", "0"},
                                    {"2147483647.000", "2147483647"},
                                    {"0e999999", "0"}})
    EXPECT_EQ(call("i", '[' + std::string{text} + ']'), result_reply(value)) << text;
  for (const char* text : {"1.5", "1e-1", "0.1", "-0.5"})
    EXPECT_EQ(call("i", '[' + std::string{text} + ']'), failure(R"(["n"])", "integer", text));
}

TEST_F(Params, NothingIsCoercedBetweenBooleansNumbersAndStrings) {
  registry.method("b", [](bool b) { return b; }, {"x"});
  registry.method("n", [](double n) { return n; }, {"x"});
  registry.method("s", [](const std::string& s) { return s; }, {"x"});
  EXPECT_EQ(call("b", "[1]"), failure(R"(["x"])", "boolean", "1"));
  EXPECT_EQ(call("b", R"(["true"])"), failure(R"(["x"])", "boolean", R"(\"true\")"));
  EXPECT_EQ(call("n", R"(["1"])"), failure(R"(["x"])", "number", R"(\"1\")"));
  EXPECT_EQ(call("n", "[true]"), failure(R"(["x"])", "number", "true"));
  EXPECT_EQ(call("s", "[1]"), failure(R"(["x"])", "string", "1"));
  EXPECT_EQ(call("s", "[null]"), failure(R"(["x"])", "string", "null"));
  EXPECT_EQ(call("n", "[1]"), result_reply("1"));
}

// ---- callables ----

int doubled(int n) noexcept { return 2 * n; }
double chosen(double x) { return x / 2; }
[[maybe_unused]] int chosen(int x) { return x * 2; }

struct Account {
  int balance = 10;
  int add(int n) { return balance += n; }
  [[nodiscard]] int look() const { return balance; }
  int add_safely(int n) noexcept { return balance += n; }
  [[nodiscard]] int look_safely() const noexcept { return balance; }
  void with_context(const Context& context, int n) { balance = n + static_cast<int>(context.method().size()); }
};
struct Savings : Account {};

TEST_F(Params, FreeFunctionsAndPointersToThemAreMethods) {
  registry.method("doubled", doubled);
  registry.method("pointer", &doubled);
  registry.method("chosen", overload<double(double)>(chosen));
  registry.method("abs", overload<double(double)>(std::abs));
  EXPECT_EQ(call("doubled", "[4]"), result_reply("8"));
  EXPECT_EQ(call("pointer", "[4]"), result_reply("8"));
  EXPECT_EQ(call("chosen", "[5]"), result_reply("2.5"));
  EXPECT_EQ(call("abs", "[-1.5]"), result_reply("1.5"));
}

TEST_F(Params, MemberFunctionsAreMethods) {
  Savings account;
  const Account constant;
  registry.method("add", &Account::add, account, {"n"});
  registry.method("look", &Account::look, account);
  registry.method("add_safely", &Account::add_safely, account);
  registry.method("look_safely", &Account::look_safely, constant);
  EXPECT_EQ(call("add", R"({"n":5})"), result_reply("15"));
  EXPECT_EQ(call("add_safely", "[1]"), result_reply("16"));
  EXPECT_EQ(call("look"), result_reply("16"));
  EXPECT_EQ(call("look_safely"), result_reply("10"));
}

TEST_F(Params, FunctorsKeepTheirState) {
  registry.method("count", [n = 0]() mutable { return ++n; });
  registry.method("move_only", [p = std::make_unique<int>(7)](int n) { return *p + n; });
  registry.method("function", std::function<int(int)>{doubled});
  registry.method("noexcept", [](int n) noexcept { return n; });
  EXPECT_EQ(call("count"), result_reply("1"));
  EXPECT_EQ(call("count"), result_reply("2"));
  EXPECT_EQ(call("move_only", "[1]"), result_reply("8"));
  EXPECT_EQ(call("function", "[2]"), result_reply("4"));
  EXPECT_EQ(call("noexcept", "[3]"), result_reply("3"));
}

TEST_F(Params, ArgumentsAreTakenByValueReferenceOrMove) {
  registry.method("f",
                  [](std::string a, const std::string& b, std::string&& c) { return std::move(a) + b + std::move(c); });
  registry.method("pointer", [](std::unique_ptr<int> p) { return p ? *p : -1; });
  EXPECT_EQ(call("f", R"(["a","b","c"])"), result_reply(R"("abc")"));
  EXPECT_EQ(call("pointer", "[5]"), result_reply("5"));
}

TEST_F(Params, ContextComesFirstAndIsNoParameter) {
  registry.method(
      "who",
      [](const Context& context, int n) { return context.method() + '/' + context.id() + '/' + std::to_string(n); },
      {"n"});
  registry.method("by_value", [](Context context) { return context.scheduler() == nullptr; });
  EXPECT_EQ(call("who", R"({"n":5})"), result_reply(R"("who/1/5")"));
  EXPECT_EQ(registry.handle(R"({"jsonrpc":"2.0","method":"who","params":[5],"id":"\u0061"})"),
            result_reply(R"("who/\"\\u0061\"/5")", R"("\u0061")"));
  EXPECT_EQ(call("by_value"), result_reply("true"));
}

TEST_F(Params, ContextOfANotificationHasNoId) {
  std::string id = "unset";
  registry.method("who", [&id](const Context& context) { id = context.id(); });
  EXPECT_EQ(registry.handle(test::notification("who")), "");
  EXPECT_EQ(id, "");
}

TEST_F(Params, OfAFailedCallAreNotSeenByTheNext) {
  registry.method(
      "f", [](std::optional<int> a, const std::vector<int>& b) { return a.value_or(0) + static_cast<int>(b.size()); },
      {"a", "b"});
  EXPECT_EQ(call("f", R"([5,[1,2,"x"]])"), failure(R"(["b",2])", "integer", R"(\"x\")"));
  EXPECT_EQ(call("f", R"({"b":[]})"), result_reply("0"));
}

}  // namespace
}  // namespace wirecall
