// The MessagePack codec: the published vectors (kawanet's msgpack-test-suite, from the folder that $WIRECALL_VECTORS
// names), the specification's own formats, typed values there and back, and every way for bytes to be too few.
#include "msgpack.hpp"

#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "codec/binary_reader.hpp"
#include "codec/binary_writer.hpp"
#include "codec/msgpack_scan.hpp"
#include "support.hpp"
#include "wirecall/value.hpp"

namespace wirecall {
namespace {

using packing::from_hex;
using packing::hex;
using packing::to_hex;
using testing::Exact;

Scan scan(std::string_view bytes, std::uint32_t depth_max = 256) {
  const Exact exact{bytes};
  return msgpack_codec().scan(exact.view(), depth_max);
}

// ---- the published vectors ----

class MsgpackSuite : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* vectors = std::getenv("WIRECALL_VECTORS");
    const auto path = std::filesystem::path{vectors == nullptr ? "" : vectors} / "msgpack-test-suite.json";
    if (vectors == nullptr || !std::filesystem::is_regular_file(path))
      GTEST_SKIP() << "no MessagePack test suite: set WIRECALL_VECTORS to a folder with msgpack-test-suite.json";
    std::ifstream file{path};
    const nlohmann::json groups = nlohmann::json::parse(file);
    for (const nlohmann::json& cases : groups) cases_.insert(cases_.end(), cases.begin(), cases.end());
  }

  static Value expected(const nlohmann::json& one) {
    if (one.contains("bignum")) return Value::number(one["bignum"].get<std::string>());
    if (one.contains("binary")) return Value{hex(one["binary"].get<std::string>())};
    if (one.contains("ext"))
      return Value{
          Extension{static_cast<std::int8_t>(one["ext"][0].get<int>()), hex(one["ext"][1].get<std::string>())}};
    for (const char* name : {"nil", "bool", "number", "string", "array", "map"}) {
      if (one.contains(name)) return *Value::parse(one[name].dump());
    }
    return {};
  }

  std::vector<nlohmann::json> cases_;
};

TEST_F(MsgpackSuite, EveryFormOfEveryValueIsReadAndTheShortestWritten) {
  std::size_t forms = 0;
  for (const nlohmann::json& one : cases_) {
    const Value value = expected(one);
    std::size_t shortest = std::numeric_limits<std::size_t>::max();
    for (const auto& form : one["msgpack"]) {
      const std::string bytes = from_hex(form.get<std::string>());
      const bool is_float = bytes[0] == '\xCA' || bytes[0] == '\xCB';
      if (!is_float) shortest = std::min(shortest, bytes.size());
      ++forms;
      EXPECT_EQ(scan(bytes).status, ScanStatus::complete) << form;
      EXPECT_EQ(scan(bytes).offset, bytes.size()) << form;
      const Exact exact{bytes};
      const auto read = from_msgpack<Value>(std::as_bytes(std::span{exact.view()}));
      ASSERT_TRUE(read.has_value()) << form;
      if (!one.contains("timestamp")) {
        EXPECT_EQ(*read, value) << one;
      }
      const auto again = from_msgpack<Value>(to_msgpack(*read));
      ASSERT_TRUE(again.has_value()) << form;
      EXPECT_EQ(*again, *read) << form;
    }
    // Integers are never written as floats, and fractions of a Value always as float64.
    if (!one.contains("timestamp") && value.number_kind() != Value::NumberKind::real) {
      EXPECT_EQ(to_msgpack(value).size(), shortest) << one;
    }
  }
  EXPECT_EQ(cases_.size(), 85U);
  EXPECT_EQ(forms, 233U);
}

TEST_F(MsgpackSuite, TimestampsArePointsInTime) {
  using Nanoseconds = std::chrono::sys_time<std::chrono::nanoseconds>;
  std::size_t seen = 0;
  for (const nlohmann::json& one : cases_) {
    if (!one.contains("timestamp")) continue;
    const auto seconds = one["timestamp"][0].get<std::int64_t>();
    const auto part = one["timestamp"][1].get<std::int64_t>();
    for (const auto& form : one["msgpack"]) {
      const auto bytes = hex(form.get<std::string>());
      ++seen;
      const auto whole = from_msgpack<std::chrono::sys_seconds>(bytes);
      ASSERT_TRUE(whole.has_value()) << form;
      EXPECT_EQ(whole->time_since_epoch().count(), seconds) << form;
      // A count of nanoseconds in 64 bits ends in the year 2262.
      if (seconds > 9'223'372'036 || seconds < -9'223'372'036) continue;
      const auto exact = from_msgpack<Nanoseconds>(bytes);
      ASSERT_TRUE(exact.has_value()) << form;
      EXPECT_EQ(exact->time_since_epoch().count(), seconds * 1'000'000'000 + part) << form;
    }
  }
  EXPECT_EQ(seen, 19U);
}

TEST_F(MsgpackSuite, NoBeginningOfAValueIsAValueAndNothingIsReadBehindIt) {
  for (const nlohmann::json& one : cases_) {
    for (const auto& form : one["msgpack"]) {
      const std::string bytes = from_hex(form.get<std::string>());
      for (std::size_t size = 0; size < bytes.size(); ++size) {
        EXPECT_EQ(scan(std::string_view{bytes}.substr(0, size)).status, ScanStatus::incomplete) << form << size;
      }
    }
  }
}

// ---- the formats ----

TEST(Msgpack, OnlyTheByteThatIsNeverUsedBeginsNothing) {
  for (int first = 0; first < 256; ++first) {
    const std::string bytes{static_cast<char>(first)};
    const Scan result = scan(bytes);
    EXPECT_EQ(result.status == ScanStatus::malformed, first == 0xC1) << first;
  }
  EXPECT_EQ(scan(from_hex("92 01 c1")).offset, 2U);
}

TEST(Msgpack, SizesThatLieCostNothing) {
  for (const char* bytes : {"dd ff ff ff ff 01 02 03 04 05", "df ff ff ff ff 01 02", "db ff ff ff ff 61",
                            "c6 ff ff ff ff", "c9 ff ff ff ff 01", "dd 7f ff ff ff dd 7f ff ff ff dd 7f ff ff ff"}) {
    const std::string text = from_hex(bytes);
    EXPECT_EQ(scan(text).status, ScanStatus::incomplete) << bytes;
    const auto value = from_msgpack<Value>(packing::bytes_of(text));
    ASSERT_FALSE(value.has_value());
    EXPECT_EQ(value.error().code(), -32700);
  }
}

TEST(Msgpack, StringsHaveToBeUtf8) {
  EXPECT_EQ(scan(from_hex("a2 c3 a9")).status, ScanStatus::complete);
  for (const char* bytes : {"a1 ff", "a2 c0 80", "a3 ed a0 80", "a4 f4 90 80 80", "a2 61 c3"}) {
    EXPECT_EQ(scan(from_hex(bytes)).status, ScanStatus::malformed) << bytes;
  }
  const std::string text =
      "01234567"
      "0123\xFF"
      "567";
  EXPECT_EQ(scan('\xB0' + text).offset, 13U);
  EXPECT_EQ(scan(from_hex("81 a1 ff 01")).status, ScanStatus::malformed);
}

TEST(Msgpack, DepthIsCountedAsInJson) {
  for (std::uint32_t levels : {1U, 5U, 256U}) {
    const std::string nest = std::string(levels - 1, '\x91') + '\x90';
    EXPECT_EQ(scan(nest, levels).status, ScanStatus::complete);
    const Scan deep = scan(nest, levels - 1);
    EXPECT_EQ(deep.status, ScanStatus::too_deep);
    EXPECT_EQ(deep.offset, levels - 1);
  }
  EXPECT_EQ(scan(std::string(kDepthMax, '\x91') + '\xC0', kDepthMax + 5).status, ScanStatus::complete);
  EXPECT_EQ(scan(std::string(kDepthMax + 1, '\x91') + '\xC0', kDepthMax + 5).status, ScanStatus::too_deep);
  const auto value = from_msgpack<Value>(packing::bytes_of(std::string(257, '\x91') + '\xC0'));
  EXPECT_EQ(value.error().data(), R"({"limit":"depth"})");
}

TEST(Msgpack, EmptyArraysAndMapsAreLevelsToo) {
  for (const char* empty : {"80", "90"}) {
    const std::string three = from_hex("93" + (empty + std::string{"01"}) + empty);
    EXPECT_EQ(scan(three, 2).status, ScanStatus::complete);
    EXPECT_EQ(scan(three, 1).status, ScanStatus::too_deep);
    EXPECT_EQ(scan(three, 1).offset, 1U);
    EXPECT_EQ(scan(from_hex("93 01 01" + std::string{empty}), 1).offset, 3U);
  }
}

TEST(Msgpack, RunsOfOneByteValuesEndWhereTheyDo) {
  const char* const other[] = {"a1 61", "91 01", "cc ff", "81 a1 61 01", "c4 01 00"};
  for (const char* filler : {"01", "c0", "e0", "80"}) {
    for (int count = 0; count < 20; ++count) {
      for (const char* one : other) {
        std::string bytes = from_hex("dc 00");
        bytes += static_cast<char>(count + 2);
        for (int i = 0; i < count; ++i) bytes += from_hex(filler);
        bytes += from_hex(one) + from_hex(filler);
        EXPECT_EQ(scan(bytes + "\x01").offset, bytes.size());
        EXPECT_EQ(scan(std::string_view{bytes}.substr(0, bytes.size() - 1)).status, ScanStatus::incomplete);
      }
    }
  }
}

TEST(Msgpack, WhatFollowsAValueIsNotPartOfIt) {
  EXPECT_EQ(scan(from_hex("01 02")).offset, 1U);
  EXPECT_EQ(scan(from_hex("92 01 02 c1")).offset, 3U);
  EXPECT_EQ(from_msgpack<int>(hex("01 02")).error().code(), -32700);
}

TEST(Msgpack, IntegersAreWrittenInTheirShortestForm) {
  const std::pair<std::int64_t, const char*> cases[] = {
      {0, "00"},
      {127, "7f"},
      {128, "cc 80"},
      {255, "cc ff"},
      {256, "cd 01 00"},
      {65535, "cd ff ff"},
      {65536, "ce 00 01 00 00"},
      {4294967295, "ce ff ff ff ff"},
      {4294967296, "cf 00 00 00 01 00 00 00 00"},
      {std::numeric_limits<std::int64_t>::max(), "cf 7f ff ff ff ff ff ff ff"},
      {-1, "ff"},
      {-32, "e0"},
      {-33, "d0 df"},
      {-128, "d0 80"},
      {-129, "d1 ff 7f"},
      {-32768, "d1 80 00"},
      {-32769, "d2 ff ff 7f ff"},
      {-2147483648LL, "d2 80 00 00 00"},
      {-2147483649LL, "d3 ff ff ff ff 7f ff ff ff"},
      {std::numeric_limits<std::int64_t>::min(), "d3 80 00 00 00 00 00 00 00"},
  };
  for (const auto& [value, bytes] : cases) {
    EXPECT_EQ(to_hex(to_msgpack(value)), bytes);
    EXPECT_EQ(from_msgpack<std::int64_t>(hex(bytes)), value);
    EXPECT_EQ(to_hex(to_msgpack(*Value::parse(std::to_string(value)))), bytes);
  }
  EXPECT_EQ(to_hex(to_msgpack(std::numeric_limits<std::uint64_t>::max())), "cf ff ff ff ff ff ff ff ff");
  EXPECT_EQ(from_msgpack<std::uint64_t>(hex("cf ffffffffffffffff")), std::numeric_limits<std::uint64_t>::max());
}

TEST(Msgpack, SizesAreWrittenInTheirShortestForm) {
  const auto head = [](const auto& value, std::size_t bytes) {
    const auto all = to_msgpack(value);
    return to_hex(std::vector<std::byte>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(bytes)));
  };
  EXPECT_EQ(head(std::string(31, 'x'), 1), "bf");
  EXPECT_EQ(head(std::string(32, 'x'), 2), "d9 20");
  EXPECT_EQ(head(std::string(255, 'x'), 2), "d9 ff");
  EXPECT_EQ(head(std::string(256, 'x'), 3), "da 01 00");
  EXPECT_EQ(head(std::string(65535, 'x'), 3), "da ff ff");
  EXPECT_EQ(head(std::string(65536, 'x'), 5), "db 00 01 00 00");
  EXPECT_EQ(head(std::vector<std::byte>(0), 2), "c4 00");
  EXPECT_EQ(head(std::vector<std::byte>(255), 2), "c4 ff");
  EXPECT_EQ(head(std::vector<std::byte>(256), 3), "c5 01 00");
  EXPECT_EQ(head(std::vector<std::byte>(65536), 5), "c6 00 01 00 00");
  EXPECT_EQ(head(std::vector<int>(15), 1), "9f");
  EXPECT_EQ(head(std::vector<int>(16), 3), "dc 00 10");
  EXPECT_EQ(head(std::vector<int>(65535), 3), "dc ff ff");
  EXPECT_EQ(head(std::vector<int>(65536), 5), "dd 00 01 00 00");
  std::map<int, int> map;
  for (int i = 0; i < 15; ++i) map[i] = i;
  EXPECT_EQ(head(map, 1), "8f");
  map[15] = 15;
  EXPECT_EQ(head(map, 3), "de 00 10");
  for (int i = 0; i < 65536; ++i) map[i] = i;
  EXPECT_EQ(head(map, 5), "df 00 01 00 00");
  for (const auto& [size, bytes] : std::map<std::size_t, const char*>{{0, "c7 00 4e"},
                                                                      {1, "d4 4e"},
                                                                      {2, "d5 4e"},
                                                                      {3, "c7 03 4e"},
                                                                      {4, "d6 4e"},
                                                                      {8, "d7 4e"},
                                                                      {16, "d8 4e"},
                                                                      {17, "c7 11 4e"},
                                                                      {32, "c7 20 4e"},
                                                                      {256, "c8 01 00 4e"},
                                                                      {65536, "c9 00 01 00 00 4e"}}) {
    const std::size_t head_bytes = (std::string_view{bytes}.size() + 1) / 3;
    EXPECT_EQ(head(Extension{kNpyExtension, std::vector<std::byte>(size)}, head_bytes), bytes);
  }
}

TEST(Msgpack, FloatsKeepTheirWidthAndNaNAndInfinityAreNumbers) {
  EXPECT_EQ(to_hex(to_msgpack(1.5)), "cb 3f f8 00 00 00 00 00 00");
  EXPECT_EQ(to_hex(to_msgpack(1.5F)), "ca 3f c0 00 00");
  EXPECT_EQ(to_hex(to_msgpack(3.0)), "cb 40 08 00 00 00 00 00 00");
  EXPECT_TRUE(std::isnan(*from_msgpack<double>(to_msgpack(std::nan("")))));
  EXPECT_TRUE(std::isinf(*from_msgpack<float>(to_msgpack(std::numeric_limits<double>::infinity()))));
  EXPECT_TRUE(std::isnan(from_msgpack<Value>(to_msgpack(std::nan("")))->as_double()));
  EXPECT_EQ(from_msgpack<float>(hex("cb 47 f0 00 00 00 00 00 00")).error().data(),
            R"({"loc":[],"expected":"number from -3.4028235e38 to 3.4028235e38","got":"3.402823669209385e+38"})");
  EXPECT_EQ(from_msgpack<float>(to_msgpack(0.1F)), 0.1F);
  EXPECT_EQ(from_msgpack<double>(hex("2a")), 42.0);
  EXPECT_EQ(from_msgpack<double>(hex("d0 80")), -128.0);
}

TEST(Msgpack, IntegersTakeFloatsThatAreExactlyIntegral) {
  EXPECT_EQ(from_msgpack<int>(to_msgpack(-7.0)), -7);
  EXPECT_EQ(from_msgpack<std::uint8_t>(to_msgpack(255.0F)), 255);
  EXPECT_EQ(from_msgpack<std::uint64_t>(to_msgpack(0x1p63)), std::uint64_t{1} << 63);
  const auto expected = []<class T>(const char* bytes, T) {
    const auto error = from_msgpack<T>(hex(bytes)).error();
    return nlohmann::json::parse(error.data())["expected"].template get<std::string>();
  };
  EXPECT_EQ(expected("cb 3ff8000000000000", 0), "integer");
  EXPECT_EQ(expected("cb 7ff8000000000000", 0), "integer");
  EXPECT_EQ(expected("cb 7ff8000000000000", 0U), "integer");
  EXPECT_EQ(expected("cb 43e0000000000000", std::int64_t{0}),
            "integer from -9223372036854775808 to 9223372036854775807");
  EXPECT_EQ(expected("cb 43f0000000000000", std::uint64_t{0}), "integer from 0 to 18446744073709551615");
  EXPECT_EQ(expected("cf ffffffffffffffff", std::int64_t{0}),
            "integer from -9223372036854775808 to 9223372036854775807");
  EXPECT_EQ(expected("ff", std::uint8_t{0}), "integer from 0 to 255");
  EXPECT_EQ(expected("cd 01 00", std::uint8_t{0}), "integer from 0 to 255");
  EXPECT_EQ(expected("cd 01 00", std::int8_t{0}), "integer from -128 to 127");
  EXPECT_EQ(expected("a1 31", 0), "integer");
}

// ---- typed values ----

enum class Colour { red, green };
struct Point {
  int x = 0;
  double y = 0;
  bool operator==(const Point&) const = default;
};
struct Everything {
  bool flag = false;
  std::int8_t small = 0;
  std::uint64_t large = 0;
  float real = 0;
  std::string text;
  Colour colour = Colour::red;
  std::optional<Point> maybe;
  std::optional<int> absent;
  std::variant<int, std::string, Point> either;
  std::vector<Point> points;
  std::map<std::string, int> named;
  std::map<int, std::vector<bool>> numbered;
  std::tuple<int, bool> pair;
  std::vector<std::byte> data;
  std::array<std::byte, 2> two{};
  std::chrono::sys_time<std::chrono::milliseconds> when;
  Value any;
  Extension image;
  bool operator==(const Everything&) const = default;
};

Everything everything() {
  return {.flag = true,
          .small = -128,
          .large = std::uint64_t(-1),
          .real = 0.1F,
          .text = std::string("a\0b", 3),
          .colour = Colour::green,
          .maybe = Point{1, -2.5},
          .absent = {},
          .either = Point{5, 6},
          .points = {{3, 4}, {}},
          .named = {{"one", 1}, {"two", 2}},
          .numbered = {{-1, {true}}, {7, {}}},
          .pair = {7, true},
          .data = {std::byte{0}, std::byte{255}},
          .two = {std::byte{1}, std::byte{2}},
          .when = std::chrono::sys_time<std::chrono::milliseconds>{std::chrono::milliseconds{1'714'979'289'123}},
          .any = Value{{"a", Value::array({1, 2.5, nullptr, "x", Value{Value::Bytes{std::byte{9}}}})}},
          .image = {kImageExtension, {std::byte{0x89}}}};
}

TEST(Msgpack, EveryReflectedTypeGoesThereAndBack) {
  const Everything sent = everything();
  const auto bytes = to_msgpack(sent);
  const auto got = from_msgpack<Everything>(bytes);
  ASSERT_TRUE(got.has_value()) << got.error().data();
  EXPECT_EQ(*got, sent);
  EXPECT_EQ(to_msgpack(*got), bytes);
  const auto value = from_msgpack<Value>(bytes);
  ASSERT_TRUE(value.has_value());
  EXPECT_EQ(value->at("data").as_bytes(), sent.data);
  EXPECT_EQ(value->at("image").as_extension(), sent.image);
  EXPECT_EQ(from_msgpack<Value>(to_msgpack(*value)), *value);
}

TEST(Msgpack, EveryTruncationOfALargeValueIsAnError) {
  const auto bytes = to_msgpack(everything());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    const auto value = from_msgpack<Everything>(cut);
    ASSERT_FALSE(value.has_value());
    EXPECT_EQ(value.error().code(), -32700);
  }
}

TEST(Msgpack, FailuresTellThePathAndWhatWasThereAsJson) {
  const auto data = []<class T>(const char* bytes, T) { return from_msgpack<T>(hex(bytes)).error().data(); };
  EXPECT_EQ(data("82 a1 78 a1 31 a1 79 02", Point{}), R"({"loc":["x"],"expected":"integer","got":"\"1\""})");
  EXPECT_EQ(data("81 a1 79 02", Point{}), R"({"loc":["x"],"expected":"integer","got":"nothing"})");
  EXPECT_EQ(data("84 a1 78 01 a1 78 02 a1 79 01 01 01", Point{}),
            R"({"loc":["x"],"expected":"member given once","got":"2"})");
  EXPECT_EQ(data("92 01 c4 02 00 ff", std::vector<int>{}),
            R"({"loc":[1],"expected":"integer","got":"{\"$bytes\":\"AP8=\"}"})");
  EXPECT_EQ(data("91 d4 05 10", std::vector<int>{}),
            R"({"loc":[0],"expected":"integer","got":"{\"$extension 5\":{\"$bytes\":\"EA==\"}}"})");
  EXPECT_EQ(data("cb 7ff8000000000000", true), R"({"loc":[],"expected":"boolean","got":"nan"})");
  EXPECT_EQ(data("a1 61", std::vector<std::byte>{}), R"({"loc":[],"expected":"bytes","got":"\"a\""})");
  EXPECT_EQ(data("a1 61", Extension{}), R"({"loc":[],"expected":"extension","got":"\"a\""})");
  EXPECT_EQ(data("81 02 c0", 0), R"({"loc":[],"expected":"integer","got":"{\"2\":null}"})");
}

TEST(Msgpack, OfALongValueOnlyTheBeginningIsShown) {
  const auto long_text = to_msgpack(std::vector<std::string>{std::string(1 << 20, 'x') + "\xC3\xA9"});
  const auto error = from_msgpack<std::vector<int>>(long_text).error();
  EXPECT_EQ(error.data(), R"({"loc":[0],"expected":"integer","got":"\")" + std::string(76, 'x') + R"(..."})");
  const auto nest = packing::bytes_of(std::string(4000, '\x91') + '\xC0');
  EXPECT_EQ(from_msgpack<int>(nest, kDepthMax).error().data(),
            R"({"loc":[],"expected":"integer","got":")" + std::string(77, '[') + R"(..."})");
}

TEST(Msgpack, KeysThatAreNoStringsAreNamesAsJsonWritesThem) {
  EXPECT_EQ((from_msgpack<std::map<int, int>>(hex("82 01 0a ff 0b"))), (std::map<int, int>{{1, 10}, {-1, 11}}));
  EXPECT_EQ((from_msgpack<std::map<std::string, int>>(hex("83 c3 01 91 02 02 c4 01 ff 03"))),
            (std::map<std::string, int>{{"true", 1}, {"[2]", 2}, {R"({"$bytes":"/w=="})", 3}}));
  EXPECT_EQ(from_msgpack<Point>(hex("83 01 02 a1 78 05 a1 79 06")), (Point{5, 6}));
}

TEST(Msgpack, TimesAreTextsOrTimestamps) {
  const std::chrono::sys_seconds time{std::chrono::seconds{1}};
  EXPECT_EQ(to_hex(to_msgpack(time)), to_hex(to_msgpack(std::string{"1970-01-01T00:00:01Z"})));
  EXPECT_EQ(from_msgpack<std::chrono::sys_seconds>(hex("d6 ff 00000001")), time);
  EXPECT_EQ((from_msgpack<std::variant<int, std::chrono::sys_seconds>>(hex("d6 ff 00000001"))),
            (std::variant<int, std::chrono::sys_seconds>{time}));
  for (const char* bytes : {"d5 ff 0001", "d6 05 00000001", "c7 00 ff", "d7 ff ffffffff 00000001", "c0"}) {
    const auto failed = from_msgpack<std::chrono::sys_seconds>(hex(bytes));
    ASSERT_FALSE(failed.has_value()) << bytes;
    EXPECT_NE(failed.error().data().find("date-time as 2024"), std::string::npos);
  }
}

TEST(Msgpack, ExtensionsOfAnyTypeAreValues) {
  for (int type = -128; type < 128; ++type) {
    const Extension sent{static_cast<std::int8_t>(type), {std::byte{1}, std::byte{2}}};
    const auto got = from_msgpack<Extension>(to_msgpack(sent));
    EXPECT_EQ(got, sent);
  }
  const Value npy = *Value::parse(R"({"$npy":"AQI="})");
  EXPECT_EQ(npy.as_extension(), (Extension{kNpyExtension, {std::byte{1}, std::byte{2}}}));
  EXPECT_EQ(Value(npy.as_extension()).dump(), R"({"$npy":"AQI="})");
  EXPECT_EQ(from_json<Extension>(R"({"$image":"AQI="})"), (Extension{kImageExtension, {std::byte{1}, std::byte{2}}}));
  EXPECT_EQ(to_json(Extension{kTimestampExtension, hex("00000001")}), R"("1970-01-01T00:00:01Z")");
  EXPECT_THROW(static_cast<void>(to_json(Extension{5, {}})), LocalError);
  EXPECT_THROW(static_cast<void>(npy.as_bytes()), LocalError);
  EXPECT_FALSE(from_json<Extension>(R"({"$bytes":"AQI="})").has_value());
  EXPECT_FALSE(from_json<Extension>(R"({"$npy":"AQI=","x":1})").has_value());
  EXPECT_FALSE(from_json<Extension>(R"({"$npy":"AQI"})").has_value());
}

// ---- writing ----

TEST(Msgpack, WhatHasNoFormFailsTheWriter) {
  EXPECT_THROW(static_cast<void>(to_msgpack(std::string{"\xFF"})), LocalError);
  EXPECT_THROW(static_cast<void>(to_msgpack(std::map<std::string, int>{{"\xC0\x80", 1}})), LocalError);
  EXPECT_THROW(static_cast<void>(to_msgpack(*Value::parse("18446744073709551616"))), LocalError);
  EXPECT_THROW(static_cast<void>(to_msgpack(*Value::parse("1e400"))), LocalError);
  EXPECT_EQ(to_hex(to_msgpack(*Value::parse("0.1000000000000000055511151231257827"))), to_hex(to_msgpack(0.1)));
}

TEST(Msgpack, SizesThatComeLastAreWrittenFirst) {
  for (const std::size_t size : {0U, 1U, 15U, 16U, 65535U, 65536U}) {
    for (const bool map : {false, true}) {
      Buffer known;
      Buffer unknown;
      for (Buffer* out : {&known, &unknown}) {
        const auto writer = msgpack_codec().writer();
        writer->reset(*out);
        const std::size_t said = out == &known ? size : Writer::kUnknownSize;
        writer->begin_array(2);
        map ? writer->begin_object(said) : writer->begin_array(said);
        for (std::size_t i = 0; i < size; ++i) {
          if (map) writer->key("k");
          writer->begin_array(out == &known ? 1 : Writer::kUnknownSize);
          writer->unsigned_integer(i);
          writer->end_array();
        }
        map ? writer->end_object() : writer->end_array();
        writer->json(R"( {"a" : [1, 2]} )");
        writer->end_array();
        EXPECT_FALSE(writer->failed()) << writer->failure();
      }
      EXPECT_EQ(known.view(), unknown.view());
      EXPECT_EQ(scan(known.view()).offset, known.size());
    }
  }
}

TEST(Msgpack, ASizeThatIsNotKeptFailsTheWriter) {
  Buffer out;
  const auto writer = msgpack_codec().writer();
  writer->reset(out);
  writer->begin_array(2);
  writer->null();
  writer->end_array();
  EXPECT_TRUE(writer->failed());
  writer->reset(out);
  EXPECT_FALSE(writer->failed());
}

// ---- reading ----

TEST(Msgpack, AReaderGoesBackToAnyValueItHasSeen) {
  const std::string bytes = from_hex("93 01 82 a1 61 92 02 03 a1 62 91 04 05");
  msgpack::MsgpackReader reader;
  reader.reset(bytes);
  std::string_view name;
  std::int64_t number = 0;
  const auto read = [&] { return reader.read_int(0, 9, number) ? number : -1; };
  ASSERT_TRUE(reader.begin_array());
  ASSERT_TRUE(reader.next_element());
  const char* const one = reader.mark();
  EXPECT_EQ(read(), 1);
  ASSERT_TRUE(reader.next_element());
  const char* const map = reader.mark();
  ASSERT_TRUE(reader.begin_object());
  ASSERT_TRUE(reader.next_member(name));
  const char* const a = reader.mark();
  ASSERT_TRUE(reader.begin_array());
  ASSERT_TRUE(reader.next_element());
  const char* const two = reader.mark();
  EXPECT_EQ(read(), 2);
  reader.rewind(two);
  EXPECT_EQ(read(), 2);
  ASSERT_TRUE(reader.next_element());
  EXPECT_EQ(read(), 3);
  EXPECT_FALSE(reader.next_element());
  ASSERT_TRUE(reader.next_member(name));
  EXPECT_EQ(name, "b");
  reader.rewind(two);  // in an array that has ended
  EXPECT_EQ(read(), 2);
  ASSERT_TRUE(reader.next_element());
  EXPECT_EQ(read(), 3);
  EXPECT_FALSE(reader.next_element());
  ASSERT_TRUE(reader.next_member(name));
  EXPECT_EQ(name, "b");
  reader.rewind(a);
  EXPECT_EQ(reader.skip(), from_hex("92 02 03"));
  ASSERT_TRUE(reader.next_member(name));
  EXPECT_EQ(reader.skip(), from_hex("91 04"));
  EXPECT_FALSE(reader.next_member(name));
  ASSERT_TRUE(reader.next_element());
  EXPECT_EQ(read(), 5);
  EXPECT_FALSE(reader.next_element());
  reader.rewind(map);
  EXPECT_EQ(reader.json(100), R"({"a":[2,3],"b":[4]})");
  reader.rewind(one);
  EXPECT_EQ(read(), 1);
  reader.rewind(bytes.data());
  std::string_view json;
  ASSERT_TRUE(reader.read_json(json));
  EXPECT_EQ(json, R"([1,{"a":[2,3],"b":[4]},5])");
  EXPECT_FALSE(reader.fail("something"));
  EXPECT_EQ(reader.failure().got, "nothing");
}

TEST(Msgpack, WhatIsHandedOnUnreadIsTranscoded) {
  const std::string bytes = from_hex("82 a1 61 c4 01 ff a1 62 91 03");
  msgpack::MsgpackReader reader;
  reader.reset(bytes);
  Raw raw;
  ASSERT_TRUE(decode(reader, raw));
  EXPECT_EQ(raw.text, R"({"a":{"$bytes":"/w=="},"b":[3]})");
  EXPECT_EQ(to_hex(to_msgpack(raw)), to_hex(from_hex("82 a1 61 c4 01 ff a1 62 91 03")));
  reader.reset("\xD4\x05\x10");
  EXPECT_FALSE(decode(reader, raw));
  EXPECT_EQ(reader.failure().expected, "value that JSON can express");
}

TEST(Msgpack, TheCodecHasANameAndMakesBothHalves) {
  EXPECT_EQ(msgpack_codec().name(), "msgpack");
  EXPECT_EQ(msgpack_codec().reader()->is_json(), false);
}

TEST(Msgpack, AnArrayTellsHowManyElementsItStillHas) {
  const auto left = [](const Codec& codec, std::string_view bytes) {
    const Exact exact{bytes};
    const std::unique_ptr<Reader> reader = codec.reader();
    reader->reset(exact.view());
    EXPECT_TRUE(reader->begin_array());
    std::string out = std::to_string(reader->elements_left());
    while (reader->next_element()) {
      out += ' ' + std::to_string(reader->elements_left());
      static_cast<void>(reader->skip());
    }
    return out;
  };
  EXPECT_EQ(left(msgpack_codec(), from_hex("93 01 92 01 02 03")), "3 2 1 0");
  EXPECT_EQ(left(msgpack_codec(), from_hex("dc 0001 01")), "1 0");
  EXPECT_EQ(left(cbor_codec(), from_hex("83 01 82 01 02 03")), "3 2 1 0");
  EXPECT_EQ(left(cbor_codec(), from_hex("9f 01 ff")), "0 0");
  std::string json = "[1,2]";
  json.reserve(json.size() + kPaddingBytes);
  const std::unique_ptr<Reader> reader = json_codec().reader();
  reader->reset(json);
  EXPECT_TRUE(reader->begin_array());
  EXPECT_EQ(reader->elements_left(), 0U);
}

TEST(Msgpack, LongSequencesAndThoseOfLargeElementsComeWhole) {
  std::vector<int> numbers(10'000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(i) - 5'000;
  EXPECT_EQ(from_msgpack<std::vector<int>>(to_msgpack(numbers)), numbers);
  const std::vector<std::array<double, 1'000>> large(3);
  EXPECT_EQ((from_msgpack<std::vector<std::array<double, 1'000>>>(to_msgpack(large))), large);
}

}  // namespace
}  // namespace wirecall
