#include "codec/json_writer.hpp"

#include <bit>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "support.hpp"

namespace wirecall::json {
namespace {

std::string written(const std::function<void(Writer&)>& write) {
  Buffer out;
  JsonWriter writer;
  writer.reset(out);
  write(writer);
  return writer.failed() ? "failed: " + writer.failure() : std::string{out.view()};
}

std::string string_text(std::string_view utf8) {
  const testing::Exact exact{utf8};
  return written([&](Writer& writer) { writer.string(exact.view()); });
}

TEST(JsonWriter, PutsCommasBetweenValuesAndNowhereElse) {
  EXPECT_EQ(written([](Writer& w) {
              w.begin_object(4);
              w.key("a");
              w.begin_array(4);
              w.integer(1);
              w.begin_array(0);
              w.end_array();
              w.begin_object(0);
              w.end_object();
              w.null();
              w.end_array();
              w.key("b");
              w.boolean(true);
              w.key("c");
              w.string("x");
              w.key("d");
              w.json("[1,2]");
              w.key("e");
              w.number(0.5);
              w.key("f");
              w.number_text("1e400");
              w.key("g");
              w.bytes({});
              w.end_object();
            }),
            R"({"a":[1,[],{},null],"b":true,"c":"x","d":[1,2],"e":0.5,"f":1e400,"g":{"$bytes":""}})");
}

TEST(JsonWriter, ReadyTextIsWrittenWithoutWhiteSpaceBetweenItsTokens) {
  const std::string_view spaced = " { \"a b\" :\t[ 1 ,\r\n\"c\\\" d\\\\\" , { } ] ,\n\"e\" : -1.5E+7 } ";
  EXPECT_EQ(written([&](Writer& w) { w.json(spaced); }), R"({"a b":[1,"c\" d\\",{}],"e":-1.5E+7})");
}

TEST(JsonWriter, AppendsToWhatIsInTheBuffer) {
  Buffer out{"[1"};
  JsonWriter writer;
  writer.reset(out);
  writer.integer(2);
  EXPECT_EQ(out.view(), "[12");
}

TEST(JsonWriter, IntegersAreExact) {
  std::vector<std::uint64_t> values{0};
  for (std::uint64_t power = 1;; power *= 10) {
    values.insert(values.end(), {power - 1, power, power + 1});
    if (power > std::numeric_limits<std::uint64_t>::max() / 10) break;
  }
  for (int bit = 0; bit < 64; ++bit)
    values.insert(values.end(), {std::uint64_t{1} << bit, (std::uint64_t{1} << bit) - 1});
  values.push_back(std::numeric_limits<std::uint64_t>::max());
  for (const std::uint64_t value : values) {
    EXPECT_EQ(written([&](Writer& w) { w.unsigned_integer(value); }), std::to_string(value));
    const auto as_signed = static_cast<std::int64_t>(value);
    EXPECT_EQ(written([&](Writer& w) { w.integer(as_signed); }), std::to_string(as_signed));
    const auto negative = static_cast<std::int64_t>(0 - value);
    EXPECT_EQ(written([&](Writer& w) { w.integer(negative); }), std::to_string(negative));
  }
}

TEST(JsonWriter, DoublesAreShortAndReadBackTheSame) {
  const std::pair<double, std::string_view> known[] = {
      {0.0, "0"},   {-0.0, "-0"},       {1.0, "1"},        {-3.0, "-3"},       {0.1, "0.1"},
      {1.5, "1.5"}, {100000, "100000"}, {1e300, "1e+300"}, {5e-324, "5e-324"}, {9007199254740991.0, "9007199254740991"},
  };
  for (const auto& [value, text] : known) EXPECT_EQ(written([&](Writer& w) { w.number(value); }), text);
  std::mt19937_64 random{7};
  for (int i = 0; i < 20'000; ++i) {
    const auto value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    const std::string text = written([&](Writer& w) { w.number(value); });
    ASSERT_EQ(std::bit_cast<std::uint64_t>(std::strtod(text.c_str(), nullptr)), std::bit_cast<std::uint64_t>(value))
        << text;
    ASSERT_TRUE(nlohmann::json::accept(text)) << text;
    const auto single = static_cast<float>(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    if (!std::isfinite(single)) continue;
    const std::string single_text = written([&](Writer& w) { w.number(single); });
    ASSERT_EQ(std::strtof(single_text.c_str(), nullptr), single) << single_text;
    ASSERT_LE(single_text.size(), 16U);
  }
}

TEST(JsonWriter, NanAndInfinityFail) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double value : {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_TRUE(written([&](Writer& w) { w.number(value); }).starts_with("failed: ")) << value;
    EXPECT_TRUE(written([&](Writer& w) { w.number(static_cast<float>(value)); }).starts_with("failed: ")) << value;
  }
}

TEST(JsonWriter, EscapesOnlyWhatItMust) {
  EXPECT_EQ(string_text("\"\\/\b\f\n\r\t"), R"("\"\\/\b\f\n\r\t")");
  EXPECT_EQ(string_text(std::string_view("\0\x01\x1f\x7f", 4)), "\"\\u0000\\u0001\\u001f\x7f\"");
  EXPECT_EQ(string_text("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"), "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"");
}

TEST(JsonWriter, EveryByteAtEveryPlaceOfAStringIsReadBackByNlohmann) {
  for (std::size_t size = 1; size <= 20; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      for (int byte = 0; byte < 128; ++byte) {
        std::string utf8(size, 'x');
        utf8[at] = static_cast<char>(byte);
        const std::string text = string_text(utf8);
        ASSERT_EQ(nlohmann::json::parse(text).get<std::string>(), utf8) << text;
      }
    }
  }
}

TEST(JsonWriter, EveryCharacterIsWrittenAsItIs) {
  for (unsigned code = 0x80; code < 0x110000; code += code < 0x11000 ? 1 : 97) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string utf8;
    if (code < 0x800) {
      utf8 = {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
    } else if (code < 0x10000) {
      utf8 = {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 63)),
              static_cast<char>(0x80 | (code & 63))};
    } else {
      utf8 = {static_cast<char>(0xF0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 63)),
              static_cast<char>(0x80 | (code >> 6 & 63)), static_cast<char>(0x80 | (code & 63))};
    }
    ASSERT_EQ(string_text(utf8), '"' + utf8 + '"') << code;
  }
}

TEST(JsonWriter, NeverEmitsInvalidUtf8) {
  const std::string_view wrong[] = {
      "\x80",
      "\xBF",
      "\xC0\x80",
      "\xC1\xBF",
      "\xC2",
      "\xC2x",
      "\xE0\x80\x80",
      "\xE0\x9F\xBF",
      "\xE2\x82",
      "\xE2\x82x",
      "\xED\xA0\x80",
      "\xED\xBF\xBF",
      "\xEF\xBF",
      "\xF0\x80\x80\x80",
      "\xF0\x8F\xBF\xBF",
      "\xF0\x9F\x98",
      "\xF4\x90\x80\x80",
      "\xF5\x80\x80\x80",
      "\xF8\x88\x80\x80\x80",
      "\xFE",
      "\xFF",
  };
  for (const std::string_view bad : wrong) {
    for (const std::string_view before : {"", "x", "1234567", "12345678", "\xC3\xA9", "\n"}) {
      for (const std::string_view after : {"", "x", "12345678"}) {
        const std::string utf8 = std::string{before}.append(bad).append(after);
        EXPECT_EQ(string_text(utf8), "failed: a string is not UTF-8");
        EXPECT_EQ(written([&](Writer& w) {
                    w.begin_object(1);
                    w.key(utf8);
                    w.null();
                    w.end_object();
                  }),
                  "failed: a string is not UTF-8");
      }
    }
  }
}

TEST(JsonWriter, AFailureLastsUntilTheNextReset) {
  Buffer out;
  JsonWriter writer;
  writer.reset(out);
  writer.number(std::numeric_limits<double>::infinity());
  writer.string("\xFF");
  EXPECT_EQ(writer.failure(), "a number is NaN or infinite, which JSON cannot express");
  writer.reset(out);
  EXPECT_FALSE(writer.failed());
}

TEST(JsonWriter, LongStringsOfEscapesGrowTheBuffer) {
  const std::string utf8(100'000, '\x01');
  const std::string text = string_text(utf8);
  EXPECT_EQ(text.size(), 2 + 6 * utf8.size());
  EXPECT_EQ(nlohmann::json::parse(text).get<std::string>(), utf8);
}

}  // namespace
}  // namespace wirecall::json
