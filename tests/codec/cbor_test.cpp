// The CBOR codec: RFC 8949's own examples (appendix A, from the folder that $WIRECALL_VECTORS names), preferred
// serialization, what tags mean, what is not well-formed (appendix F), and every way for bytes to be too few.
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "codec/binary_reader.hpp"
#include "codec/cbor_format.hpp"
#include "codec/transcode.hpp"
#include "msgpack.hpp"
#include "support.hpp"
#include "wirecall/value.hpp"

namespace wirecall {
namespace {

using packing::from_hex;
using packing::hex;
using packing::to_hex;
using testing::Exact;

Scan scan_cbor(std::string_view bytes, std::uint32_t depth_max = 256) {
  const Exact exact{bytes};
  return cbor_codec().scan(exact.view(), depth_max);
}

/// What the value is in JSON, or why it has no form there.
std::string json_of(std::string_view hex_bytes) {
  const Exact exact{from_hex(hex_bytes)};
  EXPECT_EQ(cbor_codec().scan(exact.view(), 256).offset, exact.view().size()) << hex_bytes;
  codec::CborToJson to_json;
  Buffer out;
  const codec::Transcoded result = to_json(exact.view(), out);
  return result.done() ? std::string{out.view()} : std::string{result.why};
}

std::string cbor_of(std::string_view json) {
  codec::JsonToCbor from_json;
  Buffer text{json};
  Buffer out;
  const codec::Transcoded result = from_json(text.padded(), out);
  return result.done() ? to_hex(out.view()) : std::string{result.why};
}

// ---- RFC 8949, appendix A ----

class CborAppendixA : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* vectors = std::getenv("WIRECALL_VECTORS");
    const auto path = std::filesystem::path{vectors == nullptr ? "" : vectors} / "cbor-appendix-a.json";
    if (vectors == nullptr || !std::filesystem::is_regular_file(path))
      GTEST_SKIP() << "no CBOR test vectors: set WIRECALL_VECTORS to a folder with cbor-appendix-a.json";
    std::ifstream file{path};
    cases_ = nlohmann::json::parse(file);
  }

  nlohmann::json cases_;
};

TEST_F(CborAppendixA, EveryExampleIsReadAndThosePreferredAreWritten) {
  // What 64 bits do not hold is refused, and what has no form in JSON or means nothing here.
  const std::map<std::string, std::string> by_hand = {
      {"c249010000000000000000", "an integer is beyond 64 bits, which CBOR does not carry here"},
      {"c349010000000000000000", "an integer is beyond 64 bits, which CBOR does not carry here"},
      {"3bffffffffffffffff", "an integer is beyond 64 bits, which CBOR does not carry here"},
      {"f7", "null"},
      {"c074323031332d30332d32315432303a30343a30305a", "\"2013-03-21T20:04:00Z\""},
      {"c11a514b67b0", "\"2013-03-21T20:04:00Z\""},
      {"c1fb41d452d9ec200000", "\"2013-03-21T20:04:00.500Z\""},
      {"d74401020304", R"({"$bytes":"AQIDBA=="})"},
      {"d818456449455446", R"({"$bytes":"ZElFVEY="})"},
      {"d82076687474703a2f2f7777772e6578616d706c652e636f6d", "\"http://www.example.com\""},
      {"40", R"({"$bytes":""})"},
      {"4401020304", R"({"$bytes":"AQIDBA=="})"},
      {"5f42010243030405ff", R"({"$bytes":"AQIDBAU="})"},
      {"a201020304", "a map has a key that is no string, which JSON cannot express"}};
  std::size_t decoded = 0;
  std::size_t written = 0;
  for (const nlohmann::json& one : cases_) {
    const auto digits = one["hex"].get<std::string>();
    const std::string bytes = from_hex(digits);
    if (digits == "f818") {  // of RFC 7049; RFC 8949 has it not well-formed (section 3.3)
      EXPECT_EQ(scan_cbor(bytes).status, ScanStatus::malformed);
      continue;
    }
    EXPECT_EQ(scan_cbor(bytes).status, ScanStatus::complete) << digits;
    EXPECT_EQ(scan_cbor(bytes).offset, bytes.size()) << digits;
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_EQ(scan_cbor(std::string_view{bytes}.substr(0, size)).status, ScanStatus::incomplete) << digits << size;
    const std::string json = json_of(digits);
    if (const auto found = by_hand.find(digits); found != by_hand.end()) {
      EXPECT_EQ(json, found->second);
      continue;
    }
    const Exact exact{bytes};
    const auto value = from_cbor<Value>(std::as_bytes(std::span{exact.view()}));
    if (one.contains("decoded")) {
      ++decoded;
      EXPECT_EQ(nlohmann::json::parse(json), one["decoded"]) << digits;
      ASSERT_TRUE(value.has_value()) << digits;
    } else if (one["diagnostic"].get<std::string>().starts_with("simple")) {
      EXPECT_FALSE(value.has_value()) << digits;
      continue;
    } else {
      EXPECT_EQ(json, "a number is NaN or infinite, which JSON cannot express") << digits;
    }
    if (!one["roundtrip"].get<bool>()) continue;
    ++written;
    EXPECT_EQ(to_hex(to_cbor(*value)), to_hex(bytes));
    if (one.contains("decoded")) {
      EXPECT_EQ(cbor_of(json), to_hex(bytes));
    }
  }
  EXPECT_EQ(cases_.size(), 82U);
  EXPECT_EQ(decoded, 56U);
  EXPECT_EQ(written, 49U);
}

// ---- what is well-formed ----

TEST(Cbor, WhatIsNotWellFormedIsRefused) {
  // RFC 8949, appendix F.1: reserved additional information, simple values in two bytes, chunks of other kinds, breaks
  // where none may be, indefinite lengths of what has none.
  for (const char* bytes : {"1c",
                            "1d",
                            "1e",
                            "3c",
                            "3d",
                            "3e",
                            "5c",
                            "5d",
                            "5e",
                            "7c",
                            "7d",
                            "7e",
                            "9c",
                            "9d",
                            "9e",
                            "bc",
                            "bd",
                            "be",
                            "dc",
                            "dd",
                            "de",
                            "fc",
                            "fd",
                            "fe",
                            "f8 00",
                            "f8 01",
                            "f8 18 00",
                            "f8 1f",
                            "5f 00 ff",
                            "5f 21 ff",
                            "5f 61 00",
                            "5f 80 ff",
                            "5f a0 ff",
                            "5f c0 00",
                            "5f e0 ff",
                            "7f 41 00 ff",
                            "5f 5f 41 00 ff ff",
                            "7f 7f 61 00 ff ff",
                            "ff",
                            "81 ff",
                            "82 00 ff",
                            "a1 ff",
                            "a1 ff 00",
                            "a1 00 ff",
                            "a2 00 00 ff",
                            "9f 81 ff",
                            "9f 82 9f 81 9f 9f ff ff ff ff",
                            "bf 00 ff",
                            "bf 00 00 00 ff",
                            "1f",
                            "3f",
                            "df",
                            "df 00",
                            "c1 ff",
                            "9f c1 ff"}) {
    const ScanStatus status = scan_cbor(from_hex(bytes)).status;
    const bool is_longer = std::string_view{bytes} == "f8 18 00" || std::string_view{bytes} == "5f c0 00";
    if (is_longer) continue;  // of which the beginning is well-formed, or is refused behind it
    EXPECT_EQ(status, ScanStatus::malformed) << bytes;
  }
}

TEST(Cbor, SizesThatLieCostNothing) {
  for (const char* bytes :
       {"9b ff ff ff ff ff ff ff ff 01 02", "bb ff ff ff ff ff ff ff ff 01 02", "bb 80 00 00 00 00 00 00 01 01",
        "7b ff ff ff ff ff ff ff ff 61", "5b 00 00 00 01 00 00 00 00", "5f 5b ff ff ff ff ff ff ff ff 00",
        "9b 7f ff ff ff ff ff ff ff 9b 7f ff ff ff ff ff ff ff", "ba ff ff ff ff"}) {
    const std::string text = from_hex(bytes);
    EXPECT_EQ(scan_cbor(text).status, ScanStatus::incomplete) << bytes;
    const auto value = from_cbor<Value>(packing::bytes_of(text));
    ASSERT_FALSE(value.has_value());
    EXPECT_EQ(value.error().code(), -32700);
  }
}

TEST(Cbor, StringsHaveToBeUtf8EachChunkByItself) {
  EXPECT_EQ(scan_cbor(from_hex("62 c3 a9")).status, ScanStatus::complete);
  for (const char* bytes : {"61 ff", "62 c0 80", "63 ed a0 80", "7f 61 c3 61 a9 ff", "a1 61 ff 01"})
    EXPECT_EQ(scan_cbor(from_hex(bytes)).status, ScanStatus::malformed) << bytes;
  EXPECT_EQ(scan_cbor("\x68"
                      "0123\xFF"
                      "567")
                .offset,
            5U);
}

TEST(Cbor, DepthIsCountedAsInJsonAndTagsAreBounded) {
  for (const char* begin : {"\x81", "\x9F"}) {
    for (std::uint32_t levels : {1U, 5U, 256U}) {
      std::string nest;
      for (std::uint32_t i = 1; i < levels; ++i) nest += begin;
      nest += '\x80';
      if (*begin == '\x9F') nest += std::string(levels - 1, '\xFF');
      EXPECT_EQ(scan_cbor(nest, levels).status, ScanStatus::complete);
      EXPECT_EQ(scan_cbor(nest, levels - 1).status, ScanStatus::too_deep);
      EXPECT_EQ(scan_cbor(nest, levels - 1).offset, levels - 1);
    }
  }
  EXPECT_EQ(scan_cbor(std::string(16, '\xC6') + '\x01').status, ScanStatus::complete);
  EXPECT_EQ(scan_cbor(std::string(17, '\xC6') + '\x01').status, ScanStatus::too_deep);
  const auto value = from_cbor<Value>(packing::bytes_of(std::string(5'000'000, '\x81')));
  EXPECT_EQ(value.error().data(), R"({"limit":"depth"})");
}

// ---- what is written ----

TEST(Cbor, NumbersAreWrittenInTheirShortestForm) {
  const std::pair<std::int64_t, const char*> integers[] = {
      {0, "00"},
      {23, "17"},
      {24, "18 18"},
      {255, "18 ff"},
      {256, "19 01 00"},
      {65535, "19 ff ff"},
      {65536, "1a 00 01 00 00"},
      {4294967296, "1b 00 00 00 01 00 00 00 00"},
      {-1, "20"},
      {-24, "37"},
      {-25, "38 18"},
      {-256, "38 ff"},
      {-257, "39 01 00"},
      {std::numeric_limits<std::int64_t>::min(), "3b 7f ff ff ff ff ff ff ff"},
  };
  for (const auto& [value, bytes] : integers) {
    EXPECT_EQ(to_hex(to_cbor(value)), bytes);
    EXPECT_EQ(from_cbor<std::int64_t>(hex(bytes)), value);
  }
  const std::pair<double, const char*> reals[] = {
      {0.0, "f9 00 00"},
      {-0.0, "f9 80 00"},
      {3.0, "f9 42 00"},
      {65504, "f9 7b ff"},
      {65505, "fa 47 7f e1 00"},
      {0x1p-24, "f9 00 01"},
      {0x1.8p-24, "fa 33 c0 00 00"},
      {0x1p-25, "fa 33 00 00 00"},
      {0x1.ffcp-15, "fa 38 7f e0 00"},
      {0x1.ffp-15, "f9 03 fe"},
      {0x1p-14, "f9 04 00"},
      {0.1, "fb 3f b9 99 99 99 99 99 9a"},
      {0.1F, "fa 3d cc cc cd"},
      {0x1p-149, "fa 00 00 00 01"},
      {0x1p-150, "fb 36 90 00 00 00 00 00 00"},
      {1e300, "fb 7e 37 e4 3c 88 00 75 9c"},
      {std::numeric_limits<double>::infinity(), "f9 7c 00"},
      {-std::numeric_limits<double>::infinity(), "f9 fc 00"},
      {std::nan(""), "f9 7e 00"},
  };
  for (const auto& [value, bytes] : reals) {
    EXPECT_EQ(to_hex(to_cbor(value)), bytes);
    const auto read = from_cbor<double>(hex(bytes));
    ASSERT_TRUE(read.has_value()) << bytes;
    EXPECT_TRUE(*read == value || (std::isnan(*read) && std::isnan(value))) << bytes;
    EXPECT_EQ(std::signbit(*read), std::signbit(value)) << bytes;
  }
}

TEST(Cbor, EveryHalfFloatComesBackAsItIs) {
  for (unsigned half = 0; half < 0x10000; ++half) {
    const std::string bytes{'\xF9', static_cast<char>(half >> 8), static_cast<char>(half)};
    const auto read = from_cbor<double>(packing::bytes_of(bytes));
    ASSERT_TRUE(read.has_value());
    if (std::isnan(*read)) continue;
    ASSERT_EQ(to_hex(to_cbor(*read)), to_hex(bytes));
  }
}

TEST(Cbor, SizesAreWrittenInTheirShortestForm) {
  const auto head = [](const auto& value, std::size_t bytes) {
    const auto all = to_cbor(value);
    return to_hex(std::vector<std::byte>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(bytes)));
  };
  EXPECT_EQ(head(std::string(23, 'x'), 1), "77");
  EXPECT_EQ(head(std::string(24, 'x'), 2), "78 18");
  EXPECT_EQ(head(std::string(256, 'x'), 3), "79 01 00");
  EXPECT_EQ(head(std::string(65536, 'x'), 5), "7a 00 01 00 00");
  EXPECT_EQ(head(std::vector<std::byte>(0), 1), "40");
  EXPECT_EQ(head(std::vector<std::byte>(256), 3), "59 01 00");
  EXPECT_EQ(head(std::vector<int>(24), 2), "98 18");
  EXPECT_EQ(head(std::map<int, int>{}, 1), "a0");
  EXPECT_EQ(head(Extension{kNpyExtension, {std::byte{1}}}, 7), "da 77 63 00 4e 41 01");
  EXPECT_EQ(head(Extension{-2, {std::byte{1}}}, 7), "da 77 63 00 fe 41 01");
}

TEST(Cbor, WhatMessagePackHasAsATimestampIsATimeOfRfc3339) {
  const auto time = from_msgpack<Value>(hex("d7 ff 77359400 514b67b0"));
  ASSERT_TRUE(time.has_value());
  EXPECT_EQ(json_of(to_hex(to_cbor(*time))), "\"2013-03-21T20:04:00.500Z\"");
  EXPECT_EQ(to_hex(to_cbor(*time)).substr(0, 8), "c0 78 18");
}

// ---- what tags and lengths mean ----

TEST(Cbor, TagsZeroAndOneAreTimes) {
  using Milliseconds = std::chrono::sys_time<std::chrono::milliseconds>;
  const auto ms = [](const char* bytes) {
    const auto time = from_cbor<Milliseconds>(hex(bytes));
    return time ? time->time_since_epoch().count() : -1;
  };
  EXPECT_EQ(ms("c0 74 323031332d30332d32315432303a30343a30305a"), 1'363'896'240'000);
  EXPECT_EQ(ms("c1 1a 514b67b0"), 1'363'896'240'000);
  EXPECT_EQ(ms("c1 fb 41d452d9ec200000"), 1'363'896'240'500);
  EXPECT_EQ(ms("c1 20"), -1'000);
  EXPECT_EQ(ms("d9 d9f7 c1 f9 3c00"), 1'000);
  EXPECT_EQ(json_of("c1 fb 41d452d9ec07df3b"), "\"2013-03-21T20:04:00.123Z\"");
  EXPECT_EQ(json_of("c1 39 0001"), "\"1969-12-31T23:59:58Z\"");
  EXPECT_EQ(json_of("c1 1b 0000003afff4417f"), "\"9999-12-31T23:59:59Z\"");
  EXPECT_EQ(json_of("c1 3b 0000000e79747bff"), "\"0000-01-01T00:00:00Z\"");
  for (const char* none : {"c1 f97e00", "c1 fb7ff0000000000000", "c1 61 61", "c1 80", "c0 01", "c0 c6 61 61",
                           "c1 c6 01", "c1 1b ffffffffffffffff", "c1 1b 0000003afff44180", "c1 3b 0000000e79747c00"}) {
    EXPECT_EQ(json_of(none), "the tag 0 or 1 stands in front of no time, or of one outside the years 0 to 9999")
        << none;
    EXPECT_EQ(from_cbor<Milliseconds>(hex(none)).error().code(), -32602) << none;
    EXPECT_EQ(from_cbor<Value>(hex(none)).error().code(), -32602) << none;
  }
}

TEST(Cbor, TagsTwoAndThreeAreIntegersWhere64BitsHoldThem) {
  EXPECT_EQ(from_cbor<std::uint64_t>(hex("c2 48 ffffffffffffffff")), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(from_cbor<std::int64_t>(hex("c3 48 7fffffffffffffff")), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(from_cbor<int>(hex("c2 40")), 0);
  EXPECT_EQ(from_cbor<int>(hex("c3 40")), -1);
  EXPECT_EQ(from_cbor<int>(hex("c2 4b 0000000000000000000001")), 1);
  EXPECT_EQ(from_cbor<int>(hex("c2 5f 4101 40 4100 ff")), 256);
  EXPECT_EQ(json_of("82 c2 5f 4101 40 4100 ff 01"), "[256,1]");
  EXPECT_EQ(from_cbor<std::vector<double>>(hex("82 c3 41 00 c2 41 07")), (std::vector<double>{-1, 7}));
  for (const char* beyond : {"c2 49 010000000000000000", "c3 48 8000000000000000", "3b 8000000000000000"}) {
    EXPECT_EQ(json_of(beyond), "an integer is beyond 64 bits, which CBOR does not carry here") << beyond;
    EXPECT_EQ(from_cbor<std::int64_t>(hex(beyond)).error().code(), -32602) << beyond;
    EXPECT_EQ(from_cbor<double>(hex(beyond)).error().code(), -32602) << beyond;
  }
  EXPECT_EQ(json_of("c2 01"), "the tag 2 or 3 stands in front of no bytes");
}

TEST(Cbor, OtherTagsArePassedOver) {
  EXPECT_EQ(json_of("d9 d9f7 a1 c6 61 61 db 0000000100000000 82 d8 20 01 d8 20 02"), R"({"a":[1,2]})");
  EXPECT_EQ(from_cbor<std::vector<int>>(hex("c6 82 c6 01 c6 02")), (std::vector<int>{1, 2}));
  EXPECT_EQ(from_cbor<bool>(hex("c6 f5")), true);
  EXPECT_FALSE(from_cbor<std::optional<int>>(hex("c6 f7"))->has_value());
  EXPECT_EQ(from_cbor<std::string>(hex("c6 c6 61 61")), "a");
  EXPECT_EQ((from_cbor<std::map<int, int>>(hex("a1 c6 01 c6 02"))), (std::map<int, int>{{1, 2}}));
}

TEST(Cbor, IndefiniteLengthsAreReadAsDefiniteOnes) {
  EXPECT_EQ(from_cbor<std::string>(hex("7f 61 61 60 62 6263 ff")), "abc");
  EXPECT_EQ(from_cbor<std::vector<std::byte>>(hex("5f 41 01 40 42 0203 ff")), hex("01 02 03"));
  EXPECT_EQ(from_cbor<Extension>(hex("da 7763004e 5f 41 01 41 02 ff")), (Extension{kNpyExtension, hex("01 02")}));
  EXPECT_EQ(from_cbor<std::vector<std::string>>(hex("9f 61 61 7f ff 61 62 ff")),
            (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(
      (from_cbor<std::map<std::string, std::vector<int>>>(hex("bf 7f 61 61 61 62 ff 9f ff 61 63 9f 01 02 ff ff"))),
      (std::map<std::string, std::vector<int>>{{"ab", {}}, {"c", {1, 2}}}));
  EXPECT_EQ(json_of("9f 01 9f 82 9f 02 ff 03 ff bf ff 05 ff"), "[1,[[[2],3]],{},5]");
  EXPECT_EQ(json_of("bf 7f 61 61 61 62 ff 5f 41 01 ff ff"), R"({"ab":{"$bytes":"AQ=="}})");
}

TEST(Cbor, ObjectsOfOneNameWithADollarAreWrappedWhereverTheirEndIsKnown) {
  EXPECT_EQ(json_of("a1 62 2478 01"), R"({"$":{"$x":1}})");
  EXPECT_EQ(json_of("bf 62 2478 01 ff"), R"({"$":{"$x":1}})");
  EXPECT_EQ(json_of("82 bf 62 2478 bf 62 2479 01 ff ff 02"), R"([{"$":{"$x":{"$":{"$y":1}}}},2])");
  EXPECT_EQ(json_of("bf 62 2478 01 61 79 02 ff"), R"({"$x":1,"y":2})");
  EXPECT_EQ(cbor_of(R"({"$":{"$x":1}})"), "a1 62 24 78 01");
  EXPECT_EQ(cbor_of(R"({"$bytes":"AQ=="})"), "41 01");
  EXPECT_EQ(cbor_of(R"({"$npy":"AQ=="})"), "da 77 63 00 4e 41 01");
  EXPECT_EQ(json_of("da 77630049 41 01"), R"({"$image":"AQ=="})");
  EXPECT_EQ(json_of("da 776300ff 41 01"), R"({"$bytes":"AQ=="})");
  EXPECT_EQ(json_of("da 77630049 01"), "the tag of an extension stands in front of no bytes");
  EXPECT_EQ(cbor_of("[18446744073709551616]"), "an integer is beyond 64 bits, which CBOR does not carry here");
  EXPECT_EQ(cbor_of("1e999"), "a number is beyond the range of a double, which CBOR cannot express");
  EXPECT_EQ(cbor_of("[3.0,1.5,-0]"), "83 f9 42 00 f9 3e 00 f9 80 00");
}

TEST(Cbor, VariantsAreTriedAgainFromTheirBeginning) {
  struct A {
    std::vector<int> a;
  };
  struct B {
    std::vector<std::string> a;
    std::map<int, int> b;
  };
  using Either = std::vector<std::variant<A, B>>;
  for (const char* bytes : {"82 a2 61 61 81 61 78 61 62 a1 01 02 a1 61 61 82 01 02",
                            "9f bf 61 61 9f 61 78 ff 61 62 bf 01 02 ff ff bf 61 61 82 01 02 ff ff",
                            "c6 82 c6 bf 7f 61 61 ff c6 9f c6 61 78 ff 61 62 bf 01 02 ff ff a1 61 61 9f 01 02 ff"}) {
    const auto read = from_cbor<Either>(hex(bytes));
    ASSERT_TRUE(read.has_value()) << bytes << read.error().data();
    EXPECT_EQ(std::get<B>(read->at(0)).a, std::vector<std::string>{"x"});
    EXPECT_EQ(std::get<B>(read->at(0)).b, (std::map<int, int>{{1, 2}}));
    EXPECT_EQ(std::get<A>(read->at(1)).a, (std::vector<int>{1, 2}));
  }
}

TEST(Cbor, FailuresTellThePathAndWhatWasThereAsJson) {
  const auto data = []<class T>(const char* bytes, T) { return from_cbor<T>(hex(bytes)).error().data(); };
  EXPECT_EQ(data("82 01 42 00 ff", std::vector<int>{}),
            R"({"loc":[1],"expected":"integer","got":"{\"$bytes\":\"AP8=\"}"})");
  EXPECT_EQ(data("f9 7e00", true), R"({"loc":[],"expected":"boolean","got":"nan"})");
  EXPECT_EQ(data("9f 7f 61 61 61 62 ff ff", std::vector<int>{}), R"({"loc":[0],"expected":"integer","got":"\"ab\""})");
  EXPECT_EQ(data("a1 02 f6", 0), R"({"loc":[],"expected":"integer","got":"{\"2\":null}"})");
  EXPECT_EQ(data("e0", 0),
            R"({"loc":[],"expected":"integer","got":"\"a simple value other than false, true, null and undefined\""})");
}

// ---- whatever comes ----

TEST(Cbor, BytesAtRandomAreReadByAllThatReadThem) {
  std::mt19937_64 random{8949};
  const std::string seeds[] = {
      from_hex("d9d9f7 a3 61 61 9f 01 7f 61 62 ff ff 61 62 c2 41 01 61 63 c1 fb 41d452d9ec200000"),
      from_hex("bf 62 2478 bf 62 2479 5f 41 01 ff ff 01 83 f9 3c00 f7 20 ff"),
      from_hex("84 da 7763004e 42 0102 c0 61 61 3b ffffffffffffffff f8 ff")};
  std::size_t read = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string bytes = seeds[random() % std::size(seeds)];
    for (std::uint64_t changes = random() % 4; changes-- != 0;) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
      if (random() % 3 == 0) bytes.erase(random() % bytes.size(), 1 + random() % 2);
      if (random() % 3 == 0) bytes.insert(random() % (bytes.size() + 1), 1, static_cast<char>(random()));
    }
    const Scan scan = scan_cbor(bytes);
    ASSERT_LE(scan.offset, bytes.size());
    if (scan.status != ScanStatus::complete) continue;
    ++read;
    const Exact exact{std::string_view{bytes}.substr(0, scan.offset)};
    ASSERT_EQ(cbor::skip_value(exact.view().data()), exact.view().data() + exact.view().size()) << to_hex(bytes);
    codec::CborToJson to_json;
    Buffer json;
    const bool has_form = to_json(exact.view(), json).done();
    const auto value = from_cbor<Value>(std::as_bytes(std::span{exact.view()}));
    if (has_form) {
      ASSERT_TRUE(value.has_value()) << to_hex(bytes);
      codec::JsonToCbor from_json;
      Buffer again;
      ASSERT_TRUE(from_json(json.padded(), again).done());
      Buffer json_again;
      ASSERT_TRUE(to_json(again.view(), json_again).done());
      ASSERT_EQ(json_again.view(), json.view()) << to_hex(bytes);
    }
    if (value) {
      // A time comes back as the text that it is then.
      const auto written = to_cbor(*from_cbor<Value>(to_cbor(*value)));
      ASSERT_EQ(to_cbor(*from_cbor<Value>(written)), written) << to_hex(bytes);
    }
  }
  EXPECT_GT(read, 30'000U);
}

}  // namespace
}  // namespace wirecall
