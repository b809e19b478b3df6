#include "codec/json_reader.hpp"

#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "support.hpp"

namespace wirecall::json {
namespace {

using testing::Text;

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST(JsonReader, WalksNestedValuesWithAnyWhiteSpace) {
  for (const char* json : {R"({"a":[1,[],{}],"b":null,"c":true})",
                           " \t{ \"a\" : [ 1 , [ ] , { } ] ,\r\n \"b\" : null , \"c\" : true } \n"}) {
    Text text{json};
    std::string_view name;
    std::int64_t number = 0;
    bool flag = false;
    EXPECT_EQ(text->kind(), ValueKind::object);
    ASSERT_TRUE(text->begin_object());
    ASSERT_TRUE(text->next_member(name));
    EXPECT_EQ(name, "a");
    EXPECT_EQ(text->kind(), ValueKind::array);
    ASSERT_TRUE(text->begin_array());
    ASSERT_TRUE(text->next_element());
    EXPECT_EQ(text->kind(), ValueKind::number);
    EXPECT_TRUE(text->read_int(0, 9, number));
    EXPECT_EQ(number, 1);
    ASSERT_TRUE(text->next_element());
    ASSERT_TRUE(text->begin_array());
    EXPECT_FALSE(text->next_element());
    ASSERT_TRUE(text->next_element());
    ASSERT_TRUE(text->begin_object());
    EXPECT_FALSE(text->next_member(name));
    EXPECT_FALSE(text->next_element());
    ASSERT_TRUE(text->next_member(name));
    EXPECT_EQ(name, "b");
    EXPECT_EQ(text->kind(), ValueKind::null);
    EXPECT_TRUE(text->read_null());
    ASSERT_TRUE(text->next_member(name));
    EXPECT_EQ(text->kind(), ValueKind::boolean);
    EXPECT_FALSE(text->read_null());
    EXPECT_TRUE(text->read_bool(flag));
    EXPECT_TRUE(flag);
    EXPECT_FALSE(text->next_member(name));
    EXPECT_FALSE(text->failed());
  }
}

TEST(JsonReader, ReadsIntegersExactlyAndNamesTheRange) {
  struct Case {
    std::string_view json;
    std::int64_t min, max;
    std::string_view expected;  // empty: reads as `value`
    std::int64_t value;
  };
  const Case cases[] = {
      {"0", kMin, kMax, "", 0},
      {"-0", kMin, kMax, "", 0},
      {"1.0", kMin, kMax, "", 1},
      {"10.00e2", kMin, kMax, "", 1000},
      {"999999999999999999", kMin, kMax, "", 999999999999999999},
      {"1000000000000000000", kMin, kMax, "", 1000000000000000000},
      {"9223372036854775807", kMin, kMax, "", kMax},
      {"-9223372036854775808", kMin, kMax, "", kMin},
      {"9223372036854775808", kMin, kMax, "integer from -9223372036854775808 to 9223372036854775807", 0},
      {"-9223372036854775809", kMin, kMax, "integer from -9223372036854775808 to 9223372036854775807", 0},
      {"128", -128, 127, "integer from -128 to 127", 0},
      {"-129", -128, 127, "integer from -128 to 127", 0},
      {"1E400", -128, 127, "integer from -128 to 127", 0},
      {"1.5", -128, 127, "integer", 0},
      {"true", -128, 127, "integer", 0},
      {"null", -128, 127, "integer", 0},
      {"\"1\"", -128, 127, "integer", 0},
      {"[1]", -128, 127, "integer", 0},
      {"{}", -128, 127, "integer", 0},
  };
  for (const Case& one : cases) {
    Text text{one.json};
    std::int64_t value = 77;
    EXPECT_EQ(text->read_int(one.min, one.max, value), one.expected.empty()) << one.json;
    if (one.expected.empty()) {
      EXPECT_EQ(value, one.value) << one.json;
    } else {
      EXPECT_EQ(text->failure().expected, one.expected) << one.json;
      EXPECT_EQ(text->failure().got, one.json);
      EXPECT_EQ(value, 77) << one.json;
      EXPECT_EQ(text->skip(), one.json) << "a failed read consumes nothing";
    }
  }
}

TEST(JsonReader, ReadsUnsignedIntegersTo2To64) {
  std::uint64_t value = 0;
  EXPECT_TRUE(Text{"18446744073709551615"} -> read_uint(std::numeric_limits<std::uint64_t>::max(), value));
  EXPECT_EQ(value, std::numeric_limits<std::uint64_t>::max());
  EXPECT_TRUE(Text{"-0"} -> read_uint(9, value));
  EXPECT_EQ(value, 0U);
  EXPECT_TRUE(Text{"9"} -> read_uint(9, value));
  EXPECT_EQ(value, 9U);
  for (const char* json : {"10", "-1", "18446744073709551616", "1e30"}) {
    Text text{json};
    EXPECT_FALSE(text->read_uint(9, value));
    EXPECT_EQ(text->failure().expected, "integer from 0 to 9") << json;
  }
  Text fraction{"0.5"};
  EXPECT_FALSE(fraction->read_uint(9, value));
  EXPECT_EQ(fraction->failure().expected, "integer");
}

TEST(JsonReader, ThereIsNoCoercion) {
  double number = 0;
  bool flag = false;
  std::string_view string;
  for (const char* json : {"true", "\"1\"", "null", "[]", "{}"})
    EXPECT_FALSE(Text { json } -> read_double(number)) << json;
  for (const char* json : {"0", "1", "\"true\"", "null"}) EXPECT_FALSE(Text { json } -> read_bool(flag)) << json;
  for (const char* json : {"0", "true", "null", "[]"}) EXPECT_FALSE(Text { json } -> read_string(string)) << json;
}

TEST(JsonReader, DoublesOutOfRangeFailAndTinyOnesAreZero) {
  double number = 1;
  Text large{"-1e400"};
  EXPECT_FALSE(large->read_double(number));
  EXPECT_EQ(large->failure().expected, "number from -1.7976931348623157e308 to 1.7976931348623157e308");
  EXPECT_TRUE(Text{"1e-400"} -> read_double(number));
  EXPECT_EQ(number, 0);
  std::string_view text;
  Text relayed{"1e400 "};
  EXPECT_TRUE(relayed->read_number_text(text));
  EXPECT_EQ(text, "1e400");
}

TEST(JsonReader, UnescapesEveryEscape) {
  Text text{R"("\"\\\/\b\f\n\r\t\u0000\u0041\u00e9\u20AC\uD83D\uDE00.")"};
  std::string_view out;
  ASSERT_TRUE(text->read_string(out));
  EXPECT_EQ(out, std::string_view("\"\\/\b\f\n\r\t\0A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80.", 20));
}

TEST(JsonReader, UnescapesLikeNlohmannForEveryCodePoint) {
  for (unsigned code = 0; code < 0x110000; code += code < 0x3000 ? 1 : 257) {
    if (code >= 0xD800 && code < 0xE000) continue;
    char json[16];
    if (code < 0x10000) {
      std::snprintf(json, sizeof json, "\"\\u%04x\"", code);
    } else {
      std::snprintf(json, sizeof json, "\"\\u%04X\\u%04X\"", 0xD800 + ((code - 0x10000) >> 10),
                    0xDC00 + ((code - 0x10000) & 0x3FF));
    }
    Text text{json};
    std::string_view out;
    ASSERT_TRUE(text->read_string(out));
    ASSERT_EQ(out, nlohmann::json::parse(json).get<std::string>()) << json;
  }
}

TEST(JsonReader, StringsOfEveryLengthEndWhereTheyEnd) {
  for (std::size_t size = 0; size < 200; ++size) {
    const std::string plain(size, 'x');
    Text text{"[\"" + plain + "\",\"" + plain + "\\n\",7]"};
    std::string_view out;
    std::int64_t number = 0;
    ASSERT_TRUE(text->begin_array());
    ASSERT_TRUE(text->next_element());
    ASSERT_TRUE(text->read_string(out));
    EXPECT_EQ(out, plain);
    EXPECT_GE(out.data(), text.view().data()) << "a string without escapes is a view of the text";
    EXPECT_LT(out.data(), text.view().data() + text.view().size());
    ASSERT_TRUE(text->next_element());
    ASSERT_TRUE(text->read_string(out));
    EXPECT_EQ(out, plain + '\n');
    ASSERT_TRUE(text->next_element());
    EXPECT_TRUE(text->read_int(0, 9, number));
  }
}

TEST(JsonReader, UnescapedStringsStayWhereTheyAreUntilTheNextReset) {
  std::string json = "[";
  for (int i = 0; i < 500; ++i)
    json += (i == 0 ? "\"\\u0041" : ",\"\\u0041") + std::string(50, 'b') + std::to_string(i) + '"';
  Text text{json + "]"};
  for (int round = 0; round < 3; ++round) {
    std::vector<std::string_view> strings;
    ASSERT_TRUE(text->begin_array());
    while (text->next_element()) ASSERT_TRUE(text->read_string(strings.emplace_back()));
    ASSERT_EQ(strings.size(), 500U);
    for (std::size_t i = 0; i < 500; ++i) EXPECT_EQ(strings[i], 'A' + std::string(50, 'b') + std::to_string(i));
    text->reset(text.view());
  }
}

TEST(JsonReader, MemberNamesAreUnescaped) {
  Text text{R"({"\u0061\u0000":1})"};
  std::string_view name;
  ASSERT_TRUE(text->begin_object());
  ASSERT_TRUE(text->next_member(name));
  EXPECT_EQ(name, std::string_view("a\0", 2));
}

TEST(JsonReader, SkipsEveryKindOfValueWhole) {
  for (const char* json : {"0", "-1.5e-7", "true", "false", "null", R"("")", R"("a\"]}\\")", "[]", "{}",
                           R"([1,"]",[[{"a":"}"}]],{"\"":[]}])", R"({"a":{"b":[{}]},"c":"{"})"}) {
    Text text{"[" + std::string{json} + " , 5]"};
    std::int64_t number = 0;
    ASSERT_TRUE(text->begin_array());
    ASSERT_TRUE(text->next_element());
    EXPECT_EQ((*text).json(), json);
    EXPECT_EQ(text->skip(), json);
    ASSERT_TRUE(text->next_element());
    EXPECT_TRUE(text->read_int(0, 9, number));
    EXPECT_FALSE(text->next_element());
  }
}

TEST(JsonReader, ReadsBytesStrictly) {
  Text text{R"([{"$bytes":"AAEC"},{ "$bytes" : "" },{"\u0024bytes":"\u0041A=="}])"};
  std::span<const std::byte> first, second, third;
  ASSERT_TRUE(text->begin_array());
  ASSERT_TRUE(text->next_element());
  ASSERT_TRUE(text->read_bytes(first));
  ASSERT_TRUE(text->next_element());
  ASSERT_TRUE(text->read_bytes(second));
  ASSERT_TRUE(text->next_element());
  ASSERT_TRUE(text->read_bytes(third));
  EXPECT_FALSE(text->next_element());
  ASSERT_EQ(first.size(), 3U);
  EXPECT_EQ(first[2], std::byte{2});
  EXPECT_TRUE(second.empty());
  ASSERT_EQ(third.size(), 1U);
  EXPECT_EQ(third[0], std::byte{0});
  for (const char* json : {"\"AAEC\"", "{}", R"({"$bytes":1})", R"({"$bytes":"A"})", R"({"$bytes":"AAEC","x":1})",
                           R"({"bytes":"AAEC"})", R"({"$bytes":"AB=="})", "[]", "null"}) {
    Text wrong{json};
    EXPECT_FALSE(wrong->read_bytes(first)) << json;
    EXPECT_EQ(wrong->failure().got, json);
    EXPECT_EQ(wrong->skip(), json);
  }
}

TEST(JsonReader, FailuresShowTheValueShortened) {
  bool flag = false;
  Text text{"[\"" + std::string(1000, 'x') + "\"]"};
  EXPECT_FALSE(text->read_bool(flag));
  EXPECT_EQ(text->failure().got, "[\"" + std::string(75, 'x') + "...");

  Text exact{"\"" + std::string(78, 'x') + "\""};
  EXPECT_FALSE(exact->read_bool(flag));
  EXPECT_EQ(exact->failure().got, "\"" + std::string(78, 'x') + "\"");

  // Three bytes a character: 77 would cut one in two.
  std::string euros;
  for (int i = 0; i < 100; ++i) euros += "\xE2\x82\xAC";
  Text wide{"\"" + euros + "\""};
  EXPECT_FALSE(wide->read_bool(flag));
  EXPECT_EQ(wide->failure().got, "\"" + euros.substr(0, 75) + "...");

  Text nested{R"({"a\"":["}\\",{"b":[1,2]}],"c":"]"})"};
  EXPECT_FALSE(nested->read_bool(flag));
  EXPECT_EQ(nested->failure().got, R"({"a\"":["}\\",{"b":[1,2]}],"c":"]"})");
}

TEST(JsonReader, AFailureLastsUntilTheNextReset) {
  Text text{"1"};
  bool flag = false;
  EXPECT_FALSE(text->read_bool(flag));
  EXPECT_TRUE(text->failed());
  text->reset(text.view());
  EXPECT_FALSE(text->failed());
}

TEST(JsonReader, ReadsTheSameAgainAfterRewind) {
  Text text{R"([{"a":["\u0041"]},2])"};
  std::string_view name;
  std::int64_t number = 0;
  ASSERT_TRUE(text->begin_array());
  ASSERT_TRUE(text->next_element());
  const char* const start = text->mark();
  for (int i = 0; i < 3; ++i) {
    text->rewind(start);
    ASSERT_TRUE(text->begin_object());
    ASSERT_TRUE(text->next_member(name));
    EXPECT_EQ(name, "a");
  }
  text->rewind(start);
  EXPECT_EQ(text->skip(), R"({"a":["\u0041"]})");
  ASSERT_TRUE(text->next_element());
  EXPECT_TRUE(text->read_int(0, 9, number));
}

}  // namespace
}  // namespace wirecall::json
