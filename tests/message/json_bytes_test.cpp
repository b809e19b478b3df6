// What is measured against what is written.
#include "message/json_bytes.hpp"

#include <gtest/gtest.h>
#include <string>

#include "message/binary_transcoder.hpp"
#include "tests/codec/msgpack.hpp"

namespace wirecall::message {
namespace {

using packing::from_hex;
using packing::msgpack_of;
using packing::with;

constexpr std::uint32_t kDepth = 64;

std::uint64_t written(std::string_view envelope) {
  MsgpackTranscoder transcoder;
  Buffer out;
  EXPECT_EQ(transcoder.to_json(envelope, Limits{}, out), Transcoder::Status::done);
  EXPECT_TRUE(transcoder.take_unrepresentable().empty());
  return out.size();
}

void expect_exact(std::string_view envelope) {
  SCOPED_TRACE(packing::to_hex(envelope));
  const std::optional<JsonBytes> bytes = json_bytes_of(envelope, kDepth);
  ASSERT_TRUE(bytes.has_value());
  EXPECT_EQ(bytes->min, written(envelope));
  EXPECT_EQ(bytes->max, bytes->min);
}

void expect_between(std::string_view envelope) {
  SCOPED_TRACE(packing::to_hex(envelope));
  const std::optional<JsonBytes> bytes = json_bytes_of(envelope, kDepth);
  ASSERT_TRUE(bytes.has_value());
  EXPECT_LE(bytes->min, written(envelope));
  EXPECT_GE(bytes->max, written(envelope));
}

TEST(JsonBytes, AreThoseThatAreWritten) {
  for (const char* json : {
           R"({})",
           R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})",
           R"({"params":[],"other":{},"more":[[]],"and":[{}]})",
           R"({"params":[null,true,false,0,9,10,99,100,127,128,255,256,999,1000,9999,10000,65535,65536,99999,100000]})",
           R"({"params":[4294967295,4294967296,9999999999,10000000000,18446744073709551615,9223372036854775807]})",
           R"({"params":[-1,-9,-10,-32,-33,-99,-100,-128,-129,-32768,-32769,-2147483648,-9223372036854775808]})",
           R"({"params":["","a","abcdefgh","abcdefghi","\"","\\","\n\t\r\b\f","\u0000\u001f"]})",
           R"({"params":["ä€😀","abcdefg\"\u0001\u007f"]})",
           R"({"params":{"a":1,"b":[1,2,3],"c":{"d":{"e":null}},"\"":"x"}})",
           R"({"params":{"$a":1}})",
           R"({"params":{"a":{"$a":1}},"x":{"$a":[{"$":{"$b":2}}]},"y":{"$a":1,"$b":2}})",
           R"({"params":[{"$bytes":""},{"$bytes":"AA=="},{"$bytes":"AAA="},{"$bytes":"AAAA"}]})",
           R"({"params":[{"$npy":"AAAA"},{"$image":"AA=="}]})",
       }) {
    expect_exact(msgpack_of(json));
  }
  // In forms that are longer than need be.
  constexpr std::string_view kLong = "dd 00 00 00 03 d9 01 61 cf 00 00 00 00 00 00 00 05 d3 ff ff ff ff ff ff ff ff";
  expect_exact(with(R"({"a":1})", "params", kLong));
  expect_exact(with(R"({"a":1})", "params", "df 00 00 00 01 d9 01 24 de 00 01 a1 24 c4 00"));
}

TEST(JsonBytes, OfFloatsAndTimestampsAreBetweenTwoBounds) {
  for (const char* json :
       {R"({"params":[0.0,-0.0,1.5,1e300,-2.2250738585072014e-308,123456789.125,1e22,-1.7976931348623157e308]})",
        R"({"params":[0.1,100000.0,1e16,-1e-7,4.9e-324]})"}) {
    expect_between(msgpack_of(json));
  }
  for (const char* value :
       {"ca 3f 80 00 00", "ca 00 00 00 01", "ca ff 7f ff ff", "d6 ff 00 00 00 00", "d6 ff ff ff ff ff"})
    expect_between(with(R"({"a":1})", "params", std::string{"91 "} + value));
}

TEST(JsonBytes, AreNotSaidWhereAValueMayHaveNoForm) {
  for (const char* value : {"cb 7f f8 00 00 00 00 00 00", "ca 7f 80 00 00", "d4 01 02", "81 01 02", "81 c0 02",
                            "d7 ff 00 00 00 00 00 00 00 01", "c7 0c ff 00 00 00 00 00 00 00 00 00 00 00 00"}) {
    EXPECT_FALSE(json_bytes_of(with(R"({"a":1})", "params", std::string{"91 "} + value), kDepth).has_value()) << value;
  }
  // Where an envelope must not have them, bytes are refused without being written.
  for (const std::string name : {"traceparent", "from", "to", "id", "params"})
    EXPECT_FALSE(json_bytes_of(with(R"({"a":1})", name, "c4 02 01 02"), kDepth).has_value()) << name;
  EXPECT_FALSE(json_bytes_of(from_hex("81 01 02"), kDepth).has_value());
  EXPECT_FALSE(json_bytes_of(from_hex("90"), kDepth).has_value());
}

TEST(JsonBytes, AreNotSaidWhereItMayNestTooDeep) {
  const auto nested = [](std::size_t levels) { return "\x81\xA6params" + std::string(levels, '\x91') + "\x01"; };
  EXPECT_TRUE(json_bytes_of(nested(2), 6).has_value());
  EXPECT_FALSE(json_bytes_of(nested(3), 6).has_value());
  EXPECT_FALSE(json_bytes_of(nested(0), 1).has_value());
  // All that may be said to be less deep is: each level wrapped, and bytes within.
  const std::string deepest = from_hex("81 a1 78 81 a2 24 61 81 a2 24 62 c4 00");
  ASSERT_TRUE(json_bytes_of(deepest, 6).has_value());
  MsgpackTranscoder transcoder;
  Buffer out;
  ASSERT_EQ(transcoder.to_json(deepest, Limits{}, out), Transcoder::Status::done);
  Received message;
  EXPECT_EQ(read_message(out.padded(), Limits{.depth = 6}, true, message).status, ScanStatus::complete);
  EXPECT_EQ(read_message(out.padded(), Limits{.depth = 5}, true, message).status, ScanStatus::too_deep);
}

}  // namespace
}  // namespace wirecall::message
