#include "wirecall/value.hpp"

#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "support.hpp"

namespace wirecall {
namespace {

using testing::Exact;
using testing::Text;
using NumberKind = Value::NumberKind;

Value parsed(std::string_view json) {
  const Exact exact{json};
  auto value = Value::parse(exact.view());
  EXPECT_TRUE(value) << json;
  return value ? *std::move(value) : Value{};
}

TEST(Value, IsBuiltFromWhatItHolds) {
  const Value value{{"null", nullptr},
                    {"yes", true},
                    {"int", -1},
                    {"big", std::numeric_limits<std::uint64_t>::max()},
                    {"real", 0.5},
                    {"text", "abc"},
                    {"list", Value::array({1, "two", Value{{"three", 3}}})},
                    {"none", Value::array({})}};
  EXPECT_EQ(value.dump(), R"({"null":null,"yes":true,"int":-1,"big":18446744073709551615,"real":0.5,"text":"abc",)"
                          R"("list":[1,"two",{"three":3}],"none":[]})");
  EXPECT_EQ(Value{}.dump(), "null");
  EXPECT_EQ(Value{std::size_t{5}}.number_kind(), NumberKind::integer);
  EXPECT_EQ(Value{'\x05' + 0}.as_int(), 5);
  EXPECT_EQ(Value{Value::Bytes{std::byte{1}}}.dump(), R"({"$bytes":"AQ=="})");
}

TEST(Value, IsAddressedByNameAndPosition) {
  Value value = parsed(R"({"a":{"b":[10,20]},"c":1,"c":2})");
  EXPECT_EQ(value.at("a").at("b").at(1).as_int(), 20);
  EXPECT_EQ(value["c"].as_int(), 2) << "the last of a repeated name counts";
  EXPECT_EQ(value.find("d"), nullptr);
  EXPECT_TRUE(std::as_const(value)["d"]["e"].is_null());
  EXPECT_EQ(value.size(), 3U);
  value["new"]["list"].push_back(1);
  EXPECT_EQ(value.dump(), R"({"a":{"b":[10,20]},"c":1,"c":2,"new":{"list":[1]}})");
}

TEST(Value, WrongUseIsInvalidParams) {
  const Value value = parsed(R"({"a":"x"})");
  const auto data = [](auto use) -> std::string {
    try {
      use();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), -32602);
      return error.data();
    }
    return "nothing thrown";
  };
  EXPECT_EQ(data([&] { static_cast<void>(value.at("a").as_int()); }),
            R"({"loc":[],"expected":"integer from -9223372036854775808 to 9223372036854775807","got":"\"x\""})");
  EXPECT_EQ(data([&] { static_cast<void>(value.at("b")); }),
            R"({"loc":[],"expected":"object with the member b","got":"{\"a\":\"x\"}"})");
  EXPECT_EQ(data([&] { static_cast<void>(value.at(0)); }),
            R"({"loc":[],"expected":"array of at least 1 elements","got":"{\"a\":\"x\"}"})");
  EXPECT_EQ(data([&] { static_cast<void>(value.as_array()); }),
            R"({"loc":[],"expected":"array","got":"{\"a\":\"x\"}"})");
}

TEST(Value, NumbersKeepWhatTheyAre) {
  struct Case {
    std::string_view text;
    NumberKind kind;
    std::string_view dump;
  };
  const Case cases[] = {
      {"0", NumberKind::integer, "0"},
      {"-0", NumberKind::real, "-0"},
      {"1.0", NumberKind::real, "1"},
      {"1e3", NumberKind::real, "1000"},
      {"0.1", NumberKind::real, "0.1"},
      {"-9223372036854775808", NumberKind::integer, "-9223372036854775808"},
      {"9223372036854775807", NumberKind::integer, "9223372036854775807"},
      {"9223372036854775808", NumberKind::unsigned_integer, "9223372036854775808"},
      {"18446744073709551615", NumberKind::unsigned_integer, "18446744073709551615"},
      {"18446744073709551616", NumberKind::text, "18446744073709551616"},
      {"-9223372036854775809", NumberKind::text, "-9223372036854775809"},
      {"123456789012345678901234567890", NumberKind::text, "123456789012345678901234567890"},
      {"1e400", NumberKind::text, "1e400"},
      {"-1E-400", NumberKind::text, "-1E-400"},
      {"9007199254740993.0", NumberKind::text, "9007199254740993.0"},
      {"3.141592653589793", NumberKind::real, "3.141592653589793"},
      {"3.14159265358979323846", NumberKind::text, "3.14159265358979323846"},
      {"0.00000000000000000001", NumberKind::real, "1e-20"},
  };
  for (const Case& one : cases) {
    const Value value = parsed(one.text);
    EXPECT_EQ(value.number_kind(), one.kind) << one.text;
    EXPECT_EQ(value.dump(), one.dump);
    EXPECT_EQ(value, parsed(value.dump())) << one.text;
  }
}

TEST(Value, NumbersAreConvertedOnlyWhenExact) {
  EXPECT_EQ(parsed("1.0").as_int(), 1);
  EXPECT_EQ(parsed("9007199254740993.0").as_int(), 9007199254740993);
  EXPECT_EQ(parsed("1e3").as_uint(), 1000U);
  EXPECT_EQ(parsed("18446744073709551615").as_uint(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parsed("7").as_double(), 7.0);
  EXPECT_THROW(static_cast<void>(parsed("1.5").as_int()), Error);
  EXPECT_THROW(static_cast<void>(parsed("-1").as_uint()), Error);
  EXPECT_THROW(static_cast<void>(parsed("9223372036854775808").as_int()), Error);
  EXPECT_THROW(static_cast<void>(parsed("1e19").as_int()), Error);
  EXPECT_THROW(static_cast<void>(parsed("1e400").as_double()), Error);
  EXPECT_THROW(static_cast<void>(parsed("\"1\"").as_int()), Error);
}

TEST(Value, EqualityIsByContent) {
  EXPECT_EQ(parsed(R"({"a":1,"b":[true,null]})"), parsed(R"({"b":[true,null],"a":1.0})"));
  EXPECT_EQ(parsed(R"({"a":1,"a":2})"), parsed(R"({"a":2})"));
  EXPECT_EQ(parsed("1e400"), parsed("10e399"));
  EXPECT_NE(parsed("1e400"), parsed("1e401"));
  EXPECT_NE(parsed("[1,2]"), parsed("[2,1]"));
  EXPECT_NE(parsed("0"), parsed("false"));
  EXPECT_NE(parsed("null"), parsed("{}"));
  EXPECT_NE(Value{std::numeric_limits<double>::infinity()}, Value{1});
  EXPECT_EQ(Value{-0.0}, Value{0});
}

TEST(Value, BytesAreReadFromTheirJsonForm) {
  const Value value = parsed(R"({"$bytes":"AQI="})");
  EXPECT_TRUE(value.is_object());
  EXPECT_EQ(value.as_bytes(), (Value::Bytes{std::byte{1}, std::byte{2}}));
  EXPECT_EQ(value.dump(), R"({"$bytes":"AQI="})");
  EXPECT_THROW(static_cast<void>(parsed(R"({"$bytes":"?"})").as_bytes()), Error);
}

TEST(Value, RelaysEveryTextAsNlohmannReadsIt) {
  for (const char* json : {R"({"a":[1,2.5,"\u00e9\n",null,true,{"":[]}]})", "[]", "{}", "[[[[1]]]]",
                           R"("\ud83d\ude00")", "-12345678901", "1e-7"}) {
    EXPECT_EQ(nlohmann::json::parse(parsed(json).dump()), nlohmann::json::parse(json)) << json;
  }
}

TEST(Value, NestsAsDeepAsTheScannerAllows) {
  const std::string text = std::string(kDepthMax, '[') + std::string(kDepthMax, ']');
  const auto value = Value::parse(text, kDepthMax);
  ASSERT_TRUE(value);
  const Value copy = *value;
  EXPECT_EQ(copy, *value);
  EXPECT_EQ(copy.dump(), text);
  EXPECT_FALSE(Value::parse('[' + text + ']', kDepthMax));
}

TEST(Value, ManyMembersCostNoMoreThanTheirNumber) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += (i == 0 ? "\"same\":" : ",\"same\":") + std::to_string(i);
  const Value value = parsed(text + "}");
  EXPECT_EQ(value.size(), 200'000U);
  EXPECT_EQ(value.find("same")->as_int(), 199'999);
  EXPECT_EQ(value, value);
}

TEST(Raw, RefersToTheTextAndIsWrittenAsSentButCompact) {
  Text text{R"([ {"a" : 1e400} , "\u0041" ])"};
  std::pair<Raw, Raw> out;
  ASSERT_TRUE(decode(*text, out));
  EXPECT_EQ(out.first.text, R"({"a" : 1e400})");
  EXPECT_EQ(out.second.text, R"("\u0041")");
  EXPECT_EQ(out.first.text.data(), text.view().data() + 2);
  EXPECT_EQ(to_json(out), R"([{"a":1e400},"\u0041"])");
}

TEST(Rest, IsAVectorOnTheWire) {
  EXPECT_EQ(to_json(from_json<Rest<int>>("[1,2]").value()), "[1,2]");
  EXPECT_EQ(type_name<Rest<int>>(), "array of integer");
}

}  // namespace
}  // namespace wirecall
