// Transcoding: the table of docs/wire.md, "Values beyond JSON", one line after the other, and what has no form.
#include "codec/transcode.hpp"

#include <gtest/gtest.h>
#include <string>

#include "codec/msgpack_scan.hpp"
#include "fuzz/json_maker.hpp"
#include "msgpack.hpp"
#include "support.hpp"
#include "wirecall/value.hpp"

namespace wirecall::codec {
namespace {

using packing::from_hex;
using packing::to_hex;
using testing::Exact;

/// The JSON text, or why there is none.
std::string json_of(std::string_view hex, std::size_t bytes_max = kNoSizeMax) {
  const Exact bytes{from_hex(hex)};
  EXPECT_EQ(msgpack::scan(bytes.view(), 256).offset, bytes.view().size()) << hex;
  Buffer out{"before"};
  MsgpackToJson to_json;
  const Transcoded result = to_json(bytes.view(), out, bytes_max);
  if (result.status == TranscodeStatus::too_large) return "too large";
  if (!result.done()) return std::string{result.why};
  return std::string{out.view().substr(6)};
}

/// The MessagePack, or why there is none.
std::string msgpack_of(std::string_view json) {
  Buffer text{json};
  Buffer out{"before"};
  JsonToMsgpack to_msgpack;
  const Transcoded result = to_msgpack(text.padded(), out);
  if (!result.done()) return std::string{result.why};
  EXPECT_EQ(msgpack::scan(out.view().substr(6), kDepthMax).offset, out.size() - 6);
  return to_hex(out.view().substr(6));
}

struct Pair {
  const char* hex;
  const char* json;
};

TEST(Transcode, WhatBothHaveGoesThereAndBack) {
  const Pair pairs[] = {
      {"c0", "null"},
      {"c2", "false"},
      {"c3", "true"},
      {"00", "0"},
      {"ff", "-1"},
      {"cf ff ff ff ff ff ff ff ff", "18446744073709551615"},
      {"d3 80 00 00 00 00 00 00 00", "-9223372036854775808"},
      {"cb 3f f8 00 00 00 00 00 00", "1.5"},
      {"cb 40 08 00 00 00 00 00 00", "3.0"},
      {"cb 80 00 00 00 00 00 00 00", "-0.0"},
      {"cb 54 b2 49 ad 25 94 c3 7d", "1e+100"},
      {"cb 7f ef ff ff ff ff ff ff", "1.7976931348623157e+308"},
      {"cb 00 00 00 00 00 00 00 01", "5e-324"},
      {"a0", R"("")"},
      {"a4 22 0a c3 a9", R"("\"\né")"},
      {"90", "[]"},
      {"80", "{}"},
      {"93 01 90 91 80", "[1,[],[{}]]"},
      {"82 a1 61 01 a1 62 92 02 03", R"({"a":1,"b":[2,3]})"},
      {"82 a1 61 01 a1 61 02", R"({"a":1,"a":2})"},
      {"dc 00 10 01 01 01 01 01 01 01 01 01 01 01 01 01 01 01 01", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"},
  };
  for (const Pair& pair : pairs) {
    EXPECT_EQ(json_of(pair.hex), pair.json);
    EXPECT_EQ(msgpack_of(pair.json), pair.hex);
  }
}

TEST(Transcode, BytesArraysAndImagesAreObjectsInJson) {
  const Pair pairs[] = {
      {"c4 00", R"({"$bytes":""})"},
      {"c4 01 ff", R"({"$bytes":"/w=="})"},
      {"c4 02 00 ff", R"({"$bytes":"AP8="})"},
      {"c4 03 01 02 03", R"({"$bytes":"AQID"})"},
      {"d5 4e 00 ff", R"({"$npy":"AP8="})"},
      {"c7 03 49 01 02 03", R"({"$image":"AQID"})"},
      {"c7 00 49", R"({"$image":""})"},
      {"92 81 a1 61 c4 01 ff 02", R"([{"a":{"$bytes":"/w=="}},2])"},
      {"82 a6 24 62 79 74 65 73 a0 a1 61 01", R"({"$bytes":"","a":1})"},  // two members: no bytes
  };
  for (const Pair& pair : pairs) {
    EXPECT_EQ(json_of(pair.hex), pair.json);
    EXPECT_EQ(msgpack_of(pair.json), pair.hex);
  }
  EXPECT_EQ(msgpack_of(" { \"$bytes\" : \"\\u002fw==\" } "), "c4 01 ff");
}

TEST(Transcode, UserDataThatLooksLikeThatIsWrapped) {
  const Pair pairs[] = {
      {"81 a6 24 62 79 74 65 73 a4 2f 77 3d 3d", R"({"$":{"$bytes":"/w=="}})"},
      {"81 a2 24 78 01", R"({"$":{"$x":1}})"},
      {"81 a1 24 01", R"({"$":{"$":1}})"},
      {"81 a1 24 81 a1 24 01", R"({"$":{"$":{"$":{"$":1}}}})"},
      {"81 a1 24 81 a1 61 01", R"({"$":{"$":{"a":1}}})"},
      {"81 a2 24 78 92 81 a2 24 79 c4 01 ff c0", R"({"$":{"$x":[{"$":{"$y":{"$bytes":"/w=="}}},null]}})"},
      {"82 a2 24 78 01 a2 24 79 02", R"({"$x":1,"$y":2})"},
      {"82 a2 24 78 81 a2 24 7a 03 a2 24 79 02", R"({"$x":{"$":{"$z":3}},"$y":2})"},
  };
  for (const Pair& pair : pairs) {
    EXPECT_EQ(json_of(pair.hex), pair.json);
    EXPECT_EQ(msgpack_of(pair.json), pair.hex);
  }
}

TEST(Transcode, ObjectsThatAreNearlyOfOursAreUserData) {
  // Without the wrapping they have no other form to come back in.
  EXPECT_EQ(msgpack_of(R"({"$x":1})"), "81 a2 24 78 01");
  EXPECT_EQ(msgpack_of(R"({"$bytes":1})"), "81 a6 24 62 79 74 65 73 01");
  EXPECT_EQ(msgpack_of(R"({"$bytes":"AP8"})"), "81 a6 24 62 79 74 65 73 a3 41 50 38");
  EXPECT_EQ(msgpack_of(R"({"$bytes":"="})"), "81 a6 24 62 79 74 65 73 a1 3d");
  EXPECT_EQ(msgpack_of(R"({"$bytes":"=="})"), "81 a6 24 62 79 74 65 73 a2 3d 3d");
  EXPECT_EQ(msgpack_of(R"({"$":5})"), "81 a1 24 05");
  EXPECT_EQ(msgpack_of(R"({"$":{}})"), "81 a1 24 80");
  EXPECT_EQ(msgpack_of(R"({"$":{"a":1}})"), "81 a1 24 81 a1 61 01");
  EXPECT_EQ(msgpack_of(R"({"$":{"$a":1,"$b":2}})"), "81 a1 24 82 a2 24 61 01 a2 24 62 02");
  EXPECT_EQ(msgpack_of(R"({"$":[{"a":1}]})"), "81 a1 24 91 81 a1 61 01");
}

TEST(Transcode, OtherNumbersAreRoundedOrHaveNoForm) {
  EXPECT_EQ(json_of("ca 3f 00 00 00"), "0.5");
  EXPECT_EQ(json_of("ca 3d cc cc cd"), "0.10000000149011612");
  EXPECT_EQ(json_of("d3 00 00 00 00 00 00 00 01"), "1");
  EXPECT_EQ(msgpack_of("1e3"), "cb 40 8f 40 00 00 00 00 00");
  EXPECT_EQ(msgpack_of("-0"), "cb 80 00 00 00 00 00 00 00");
  EXPECT_EQ(msgpack_of("1e-400"), "cb 00 00 00 00 00 00 00 00");
  EXPECT_EQ(msgpack_of("0.1000000000000000055511151231257827"), "cb 3f b9 99 99 99 99 99 9a");
  for (const char* json : {"18446744073709551616", "-9223372036854775809", "[1,{\"a\":1234567890123456789012}]"}) {
    EXPECT_EQ(msgpack_of(json), "an integer is beyond 64 bits, which MessagePack cannot express") << json;
  }
  EXPECT_EQ(msgpack_of("1e400"), "a number is beyond the range of a double, which MessagePack cannot express");
}

TEST(Transcode, WhatJsonCannotHoldSaysSo) {
  for (const char* hex : {"cb 7f f8 00 00 00 00 00 00", "ca 7f 80 00 00", "91 81 a1 61 ca ff c0 00 00"}) {
    EXPECT_EQ(json_of(hex), "a number is NaN or infinite, which JSON cannot express");
  }
  for (const char* hex : {"81 01 02", "81 c0 02", "82 a1 61 01 c4 01 61 02", "81 90 02"}) {
    EXPECT_EQ(json_of(hex), "a map has a key that is no string, which JSON cannot express");
  }
  for (const char* hex : {"d4 05 10", "91 d4 80 10", "c7 00 48"}) {
    EXPECT_EQ(json_of(hex),
              "a value has an extension type other than -1, 73, 77, 78 and 80, which JSON cannot express");
  }
}

TEST(Transcode, TimestampsAreTexts) {
  EXPECT_EQ(json_of("d6 ff 00 00 00 00"), R"("1970-01-01T00:00:00Z")");
  EXPECT_EQ(json_of("d7 ff a1 dc d7 c8 5a 4a f6 a5"), R"("2018-01-02T03:04:05.678901234Z")");
  EXPECT_EQ(json_of("c7 0c ff 1d cd 65 00 ff ff ff ff ff ff ff ff"), R"("1969-12-31T23:59:59.500Z")");
  constexpr std::string_view kNone =
      "a timestamp is malformed, or outside the years 0 to 9999, which RFC 3339 cannot express";
  for (const char* hex :
       {"d4 ff 00", "d7 ff ff ff ff ff 00 00 00 00", "c7 0c ff 00 00 00 00 7f ff ff ff ff ff ff ff"}) {
    EXPECT_EQ(json_of(hex), kNone) << hex;
  }
}

TEST(Transcode, AResultThatGrowsTooLargeIsGivenUp) {
  EXPECT_EQ(json_of("93 01 02 03", 7), "[1,2,3]");
  EXPECT_EQ(json_of("93 01 02 03", 6), "too large");
  EXPECT_EQ(json_of("a3 01 01 01", 20), R"("\u0001\u0001\u0001")");
  EXPECT_EQ(json_of("a3 01 01 01", 19), "too large");
}

TEST(Transcode, LongArraysOfSmallValuesAreWrittenValueByValue) {
  for (const std::size_t count : {1U, 2U, 7U, 8U, 9U, 4095U, 4096U, 4097U, 9000U}) {
    std::string bytes{"\xdd"};
    bytes += {'\0', '\0', static_cast<char>(count >> 8), static_cast<char>(count)};
    std::string json = "[";
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_other = i % 1000 == 999;
      bytes += is_other ? '\xFF' : static_cast<char>(i % 128);
      json += (i == 0 ? "" : ",") + (is_other ? "-1" : std::to_string(i % 128));
    }
    EXPECT_EQ(json_of(to_hex(bytes)), json + "]");
    EXPECT_EQ(json_of("92" + to_hex(bytes) + "c3"), "[" + json + "],true]");
  }
  EXPECT_EQ(json_of("dc 20 00" + to_hex(std::string(0x2000, '\x01')), 100), "too large");
}

TEST(Transcode, DeepNestsAndTheirWrappingCostNoStack) {
  std::string hex;
  std::string json;
  for (int i = 0; i < 4000; ++i) {
    hex += "81a12491";
    json += R"({"$":{"$":[)";
  }
  hex += "c0";
  json += "null";
  for (int i = 0; i < 4000; ++i) json += "]}}";
  Buffer out;
  MsgpackToJson to_json;
  ASSERT_TRUE(to_json(from_hex(hex), out).done());
  EXPECT_EQ(out.view(), json);
  Buffer back;
  JsonToMsgpack to_msgpack;
  ASSERT_TRUE(to_msgpack(out.padded(), back).done());
  EXPECT_EQ(back.view(), from_hex(hex));
}

TEST(Transcode, AnyJsonComesBackTheSameTheSecondTime) {
  fuzz::JsonMaker maker{20240506};
  MsgpackToJson to_json;
  JsonToMsgpack to_msgpack;
  int held = 0;
  for (int i = 0; i < 3000; ++i) {
    Buffer json{maker.value()};
    Buffer msgpack;
    if (!to_msgpack(json.padded(), msgpack).done()) continue;
    ++held;
    ASSERT_EQ(msgpack::scan(msgpack.view(), kDepthMax).offset, msgpack.size()) << json.view();
    Buffer again;
    ASSERT_TRUE(to_json(msgpack.view(), again).done()) << json.view();
    Buffer second;
    ASSERT_TRUE(to_msgpack(again.padded(), second).done());
    EXPECT_EQ(second.view(), msgpack.view()) << json.view();
    // A reader of MessagePack and one of JSON see the same.
    const auto from_binary = from_msgpack<Value>(std::as_bytes(std::span{msgpack.view()}), kDepthMax);
    ASSERT_TRUE(from_binary.has_value());
    if (again.view().find('$') != std::string_view::npos) continue;
    EXPECT_EQ(*from_binary, *Value::parse(again.view(), kDepthMax)) << json.view();
  }
  EXPECT_GT(held, 1000);
}

}  // namespace
}  // namespace wirecall::codec
