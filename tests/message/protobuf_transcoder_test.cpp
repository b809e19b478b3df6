// Messages in Protocol Buffers, in bytes: every member and value both ways, forms that are not what we write, and what
// is no message. tests/protobuf/envelope_test.cpp has the same from protoc's classes.
#include "message/protobuf_transcoder.hpp"

#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "message/message_codec.hpp"
#include "message/protobuf_usual.hpp"
#include "tests/codec/msgpack.hpp"
#include "tests/codec/support.hpp"
#include "tests/message/encoded.hpp"
#include "wirecall/message.hpp"

namespace wirecall::message {
namespace {

using packing::from_hex;
using packing::to_hex;
using Status = Transcoder::Status;

// A request's method, of one letter, and its id.
const std::string kMethod = from_hex("12 01 6d");
const std::string kId = from_hex("3a 02 18 02");
constexpr std::string_view kHead = R"({"jsonrpc":"2.0","method":"m")";
constexpr std::string_view kTail = R"(,"id":1})";

std::string protobuf_of(std::string_view json) { return encoded<ProtobufTranscoder>(json); }

/// Each list, map or member in a length of its own.
std::string within(char tag, std::string_view content) {
  std::string out{tag};
  for (std::size_t size = content.size();
       out.push_back(static_cast<char>(size < 0x80 ? size : size | 0x80)), size >= 0x80;)
    size >>= 7;
  return out.append(content);
}

struct Read {
  Status status;
  std::string json;
  std::vector<Unrepresentable> unrepresentable = {};
  std::vector<std::string> cancels = {};
};
Read read(std::string_view bytes, const Limits& limits = {}) {
  ProtobufTranscoder transcoder;
  Buffer out;
  const testing::Exact exact{bytes};
  const Status status = transcoder.to_json(exact.view(), limits, out);
  return {status, std::string{out.view()}, transcoder.take_unrepresentable(), transcoder.take_cancels()};
}
std::string json_of(std::string_view bytes) {
  const Read message = read(bytes);
  EXPECT_EQ(message.status, Status::done) << to_hex(bytes);
  return message.json;
}
std::string json_of_hex(std::string_view hex) { return json_of(from_hex(hex)); }
Status status_of_hex(std::string_view hex) { return read(from_hex(hex)).status; }

Fault fault_of(std::string_view bytes) {
  Buffer text{json_of(bytes)};
  Received received;
  EXPECT_EQ(read_message(text.padded(), Limits{}, true, received).status, ScanStatus::complete) << text.view();
  return received.kind == MessageKind::invalid ? received.fault : Fault::none;
}

/// A value, given as a Value, as params hold it in a list of one.
std::string value_of_hex(std::string_view hex) {
  const std::string params = within(0x42, within(0x42, within(0x0A, from_hex(hex))));
  const std::string json = json_of(kMethod + params);
  constexpr std::string_view kParams = R"(,"params":[)";
  EXPECT_TRUE(json.starts_with(std::string{kHead} + std::string{kParams}));
  const std::size_t begin = kHead.size() + kParams.size();
  return json.substr(begin, json.size() - begin - 2);
}
std::string hex_of_value(std::string_view json) {
  const std::string bytes = protobuf_of(R"({"jsonrpc":"2.0","result":)" + std::string{json} + "}");
  EXPECT_EQ(bytes.front(), '\x1A');
  return to_hex(bytes.substr(bytes[1] < 0 ? 3 : 2));
}

TEST(ProtobufTranscoder, TheExampleOfTheDocumentation) {
  const std::string request = from_hex("12 08 7375627472616374 3a 02 18 02 42 0a 42 08 0a 02 18 54 0a 02 18 2e");
  EXPECT_EQ(json_of(request), R"({"jsonrpc":"2.0","method":"subtract","id":1,"params":[42,23]})");
  EXPECT_EQ(protobuf_of(R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1})"), request);
  EXPECT_EQ(to_hex(protobuf_of(R"({"jsonrpc":"2.0","result":19,"id":1})")), "1a 02 18 26 3a 02 18 02");
}

TEST(ProtobufTranscoder, EveryMemberGoesBothWays) {
  const std::string_view request =
      R"({"jsonrpc":"2.0","method":"m","id":"x","params":{"a":1},"timeout_ms":1500,"stream":64,"input":true,"hops":3,)"
      R"("to":"worker","from":"ann","traceparent":"00-1","tracestate":"a=b"})";
  const std::string bytes = protobuf_of(request);
  EXPECT_EQ(json_of(bytes), request);
  EXPECT_EQ(to_hex(bytes),
            "12 01 6d 3a 03 32 01 78 42 0b 4a 09 0a 07 0a 01 61 12 02 18 02 50 dc 0b 58 40 60 01 68 03 "
            "72 06 77 6f 72 6b 65 72 7a 03 61 6e 6e 22 04 30 30 2d 31 32 03 61 3d 62");
  for (const std::string_view json :
       {R"({"jsonrpc":"2.0","result":null,"id":null})", R"({"jsonrpc":"2.0","result":{"a":[]},"id":1.5})",
        R"({"jsonrpc":"2.0","error":{"code":-32000,"message":"é\n"},"id":18446744073709551616})",
        R"({"jsonrpc":"2.0","error":{"code":7,"message":"","data":[{"x":null}]},"id":-0.0})",
        R"({"jsonrpc":"2.0","method":""})", R"({"jsonrpc":"2.0","method":"m","params":null})"})
    EXPECT_EQ(json_of(protobuf_of(json)), json);
}

TEST(ProtobufTranscoder, AllMembersOfAnEnvelopeButItsVersionHaveAField) {
  for (const std::string_view name : {"method", "params", "id", "result", "error", "timeout_ms", "to", "from", "stream",
                                      "input", "hops", "traceparent", "tracestate"}) {
    EXPECT_TRUE(is_envelope_name(name));
    EXPECT_NE(std::ranges::find(kProtobufMembers, name, &ProtobufMember::name), kProtobufMembers.end()) << name;
  }
  EXPECT_EQ(kProtobufMembers.size() + 1, kMemberCount);
}

TEST(ProtobufTranscoder, BatchesGoBothWays) {
  const std::string_view batch =
      R"([{"jsonrpc":"2.0","method":"m","id":1},{"jsonrpc":"2.0","result":[],"id":2},{"jsonrpc":"2.0","method":"n"}])";
  const std::string bytes = protobuf_of(batch);
  EXPECT_EQ(json_of(bytes), batch);
  EXPECT_EQ(to_hex(bytes).substr(0, 29), "4a 18 0a 07 12 01 6d 3a 02 18");
  EXPECT_EQ(json_of(protobuf_of(" [ ]")), "[]");
  EXPECT_EQ(json_of_hex("4a 00"), "[]");
  // One within another, and an element without members.
  EXPECT_EQ(json_of_hex("4a 08 0a 00 0a 04 4a 02 0a 00"), R"([{"jsonrpc":"2.0"},[]])");
}

TEST(ProtobufTranscoder, ABatchBesideAnythingElseIsInvalid) {
  const std::string batch = from_hex("4a 02 0a 00");
  EXPECT_EQ(fault_of(kMethod + batch), Fault::invalid_request);
  EXPECT_EQ(fault_of(batch + kMethod + kId), Fault::invalid_request);
  EXPECT_EQ(fault_of(batch + batch), Fault::invalid_request);
  EXPECT_EQ(json_of(batch + from_hex("a0 06 01")), R"([{"jsonrpc":"2.0"}])");  // unknown fields are none
}

TEST(ProtobufTranscoder, AMemberThatComesTwiceIsInvalid) {
  const std::string fields[] = {kMethod,
                                kId,
                                from_hex("1a 00"),
                                from_hex("22 00"),
                                from_hex("2a 00"),
                                from_hex("32 00"),
                                from_hex("42 02 42 00"),
                                from_hex("50 01"),
                                from_hex("58 01"),
                                from_hex("60 01"),
                                from_hex("68 01"),
                                from_hex("72 01 61"),
                                from_hex("7a 01 61")};
  for (const std::string& field : fields) {
    const std::string rest = field == kMethod ? kId : kMethod;
    EXPECT_EQ(fault_of(rest + field + field), Fault::invalid_request) << to_hex(field);
  }
}

TEST(ProtobufTranscoder, FieldsComeInAnyOrderAndUnknownOnesArePassedOver) {
  const std::string params = from_hex("42 06 42 04 0a 02 18 02");
  EXPECT_EQ(json_of(params + kId + kMethod), R"({"jsonrpc":"2.0","params":[1],"id":1,"method":"m"})");
  // A field of each type, groups in groups, a known number of another type, all of them in values, too.
  const std::string unknown = from_hex("a0 06 01 a1 06 0102030405060708 a2 06 02 ffff a5 06 01020304 10 05 ") +
                              from_hex("a3 06 ab 06 08 01 ac 06 a4 06");
  EXPECT_EQ(json_of(kMethod + unknown + kId), std::string{kHead} + std::string{kTail});
  EXPECT_EQ(value_of_hex("18 02 a0 06 01 a3 06 12 00 a4 06 32 00 a0 06 01"), R"("")");
  // Tags, lengths and numbers that are longer than they need to be.
  EXPECT_EQ(json_of_hex("92 80 00 81 00 6d ba 00 85 00 98 00 82 80 00"), R"({"jsonrpc":"2.0","method":"m","id":1})");
}

TEST(ProtobufTranscoder, ValuesAreWhatTheTableSays) {
  constexpr std::string_view kBoth[][2] = {
      {"08 00", "null"},
      {"10 00", "false"},
      {"10 01", "true"},
      {"18 00", "0"},
      {"18 01", "-1"},
      {"18 fe ff ff ff ff ff ff ff ff 01", "9223372036854775807"},
      {"18 ff ff ff ff ff ff ff ff ff 01", "-9223372036854775808"},
      {"20 80 80 80 80 80 80 80 80 80 01", "9223372036854775808"},
      {"20 ff ff ff ff ff ff ff ff ff 01", "18446744073709551615"},
      {"29 00 00 00 00 00 00 08 40", "3.0"},
      {"29 00 00 00 00 00 00 00 80", "-0.0"},
      {"32 00", R"("")"},
      {"32 03 22 c3 a9", R"("\"é")"},
      {"3a 00", R"({"$bytes":""})"},
      {"3a 03 00 ff 80", R"({"$bytes":"AP+A"})"},
      {"5a 01 01", R"({"$npy":"AQ=="})"},
      {"62 01 01", R"({"$image":"AQ=="})"},
      {"42 00", "[]"},
      {"42 0a 0a 02 08 00 0a 04 42 02 0a 00", "[null,[null]]"},
      {"4a 00", "{}"},
      {"4a 12 0a 07 0a 01 62 12 02 18 02 0a 07 0a 01 61 12 02 18 04", R"({"b":1,"a":2})"},
      {"4a 0a 0a 08 0a 02 24 61 12 02 18 02", R"({"$":{"$a":1}})"},
      {"52 14 31 38 34 34 36 37 34 34 30 37 33 37 30 39 35 35 31 36 31 36", "18446744073709551616"},
      {"52 05 31 65 34 30 30", "1e400"}};
  for (const auto& [hex, json] : kBoth) {
    EXPECT_EQ(value_of_hex(hex), json) << hex;
    EXPECT_EQ(hex_of_value(json), json == "[null,[null]]" ? "42 0c 0a 02 08 00 0a 06 42 04 0a 02 08 00" : hex);
  }
  EXPECT_EQ(hex_of_value("1e3"), "29 00 00 00 00 00 40 8f 40");
  EXPECT_EQ(hex_of_value("-0"), "29 00 00 00 00 00 00 00 80");
  EXPECT_EQ(hex_of_value(R"({"$":{"$":1}})"), "4a 09 0a 07 0a 01 24 12 02 18 02");
  EXPECT_EQ(hex_of_value(R"({"$bytes":"A"})"), "4a 0f 0a 0d 0a 06 24 62 79 74 65 73 12 03 32 01 41");
}

TEST(ProtobufTranscoder, OddFormsOfValues) {
  EXPECT_EQ(value_of_hex(""), "null");
  EXPECT_EQ(value_of_hex("08 07"), "null");
  EXPECT_EQ(value_of_hex("10 ff 7f"), "true");
  EXPECT_EQ(value_of_hex("20 05"), "5");
  EXPECT_EQ(value_of_hex("52 04 2d 30 65 31"), "-0e1");
  // The last of a oneof counts, and lists or maps that follow each other are one.
  EXPECT_EQ(value_of_hex("18 02 32 01 61"), R"("a")");
  EXPECT_EQ(value_of_hex("42 04 0a 02 18 02 32 01 61 42 04 0a 02 18 04 a0 06 01 42 04 0a 02 18 06"), "[2,3]");
  EXPECT_EQ(value_of_hex("4a 05 0a 03 0a 01 61 4a 05 0a 03 0a 01 62"), R"({"a":null,"b":null})");
  // A member without a name, or with two; with two values, which are one.
  EXPECT_EQ(value_of_hex("4a 02 0a 00"), R"({"":null})");
  EXPECT_EQ(value_of_hex("4a 08 0a 06 0a 01 61 0a 01 62"), R"({"b":null})");
  EXPECT_EQ(value_of_hex("4a 14 0a 12 12 06 42 04 0a 02 18 02 0a 00 12 06 42 04 0a 02 18 04"), R"({"":[1,2]})");
  EXPECT_EQ(value_of_hex("4a 11 0a 0f 12 06 42 04 0a 02 18 02 0a 01 61 12 02 18 04"), R"({"a":2})");
  // A user's name with a $ that comes in the second of two maps.
  EXPECT_EQ(value_of_hex("4a 00 4a 06 0a 04 0a 02 24 61"), R"({"$":{"$a":null}})");
}

TEST(ProtobufTranscoder, ParamsByNameAreNotData) {
  EXPECT_EQ(json_of(kMethod + from_hex("42 0c 4a 0a 0a 08 0a 02 24 61 12 02 18 02")),
            std::string{kHead} + R"(,"params":{"$a":1}})");
  const std::string_view json = R"({"jsonrpc":"2.0","method":"m","params":{"$bytes":"AQ=="}})";
  EXPECT_EQ(json_of(protobuf_of(json)), json);
}

TEST(ProtobufTranscoder, BytesAreNeitherParamsNorIds) {
  for (const std::string_view kind : {"3a 01 61", "5a 01 61", "62 01 61"}) {
    EXPECT_EQ(fault_of(kMethod + within(0x42, from_hex(kind))), Fault::invalid_request);
    EXPECT_EQ(fault_of(kMethod + within(0x3A, from_hex(kind))), Fault::invalid_request);
  }
}

TEST(ProtobufTranscoder, WhatIsNoRequestIsInvalid) {
  EXPECT_EQ(fault_of(kId), Fault::invalid_request);
  EXPECT_EQ(fault_of(kMethod + kId), Fault::none);
  EXPECT_EQ(fault_of(kMethod + from_hex("42 02 18 02")), Fault::invalid_request);  // a number as params
  EXPECT_EQ(fault_of(kMethod + from_hex("3a 02 10 01")), Fault::invalid_request);  // ids that are true, or a list
  EXPECT_EQ(fault_of(kMethod + from_hex("3a 02 42 00")), Fault::invalid_request);
  EXPECT_EQ(fault_of(kMethod + kId + from_hex("1a 00")), Fault::invalid_request);  // a result, too
  EXPECT_EQ(fault_of(kMethod + kId + from_hex("2a 00")), Fault::invalid_request);
  EXPECT_EQ(fault_of(from_hex("10 01")), Fault::invalid_request);
}

TEST(ProtobufTranscoder, WhatIsNoMessageIsMalformed) {
  for (const std::string_view hex :
       {"12", "12 05 6d", "12 ff ff ff ff ff ff ff ff ff 01", "12 80", "10", "50 80",
        "50 ff ff ff ff ff ff ff ff ff 02", "50 80 80 80 80 80 80 80 80 80 80 01", "a5 06 01 02 03", "a1 06 01",
        "16 00", "17", "02 00", "04", "14", "13", "13 1c", "13 13 14", "80 80 80 80 80 02 00", "12 01 ff",
        "12 02 c0 80", "72 03 ed a0 80", "3a 01 18", "3a 02 32 05", "3a 03 32 01 ff", "42 03 42 02 0a",
        "42 04 42 02 0a 05", "42 07 4a 05 0a 03 0a 01 80", "42 04 4a 02 0a 01", "2a 01 08", "2a 03 12 01 ff",
        "2a 03 1a 01 18", "4a 01 0a", "4a 03 0a 01 12",
        // Digits that are no number of JSON.
        "3a 02 52 00", "3a 03 52 01 2d", "3a 04 52 02 30 31", "3a 04 52 02 31 2e", "3a 04 52 02 31 65",
        "3a 05 52 03 6e 61 6e", "3a 04 52 02 31 20", "3a 04 52 02 2e 31"})
    EXPECT_EQ(status_of_hex(hex), Status::malformed) << hex;
}

TEST(ProtobufTranscoder, MessagesThatAreCutAreNoneUnlessAFieldEndsThere) {
  const std::string whole = protobuf_of(
      R"({"jsonrpc":"2.0","method":"m","id":-70000,"params":[{"a":[1.5,"é"]},{"$bytes":"AP8="}],"to":"x"})");
  // Behind the method, the id and the params.
  const std::size_t id = kMethod.size();
  const std::size_t params = id + 2 + static_cast<std::size_t>(whole[id + 1]);
  const std::size_t to = params + 2 + static_cast<std::size_t>(whole[params + 1]);
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const bool ends = size == 0 || size == id || size == params || size == to || size == whole.size();
    EXPECT_EQ(read(whole.substr(0, size)).status, ends ? Status::done : Status::malformed) << size;
  }
}

TEST(ProtobufTranscoder, WhateverIsDoneToAMessageItIsJsonOrRefused) {
  const std::string whole = protobuf_of(
      R"([{"jsonrpc":"2.0","method":"m","id":"x","params":[{"a":[1.5,"é",{"$":{"$a":1}}]},{"$bytes":"AP8="}],)"
      R"("stream":3},{"jsonrpc":"2.0","error":{"code":1,"message":"no","data":{"b":[[],{}]}},"id":1e400}])");
  std::minstd_rand random{1};
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = whole;
    for (unsigned changes = 1 + random() % 3; changes != 0; --changes) {
      const std::size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0: bytes[at] = static_cast<char>(random()); break;
        case 1: bytes.erase(at, 1 + random() % 4); break;
        default: bytes.insert(at, 1, static_cast<char>(random())); break;
      }
    }
    const Read message = read(bytes);
    if (message.status != Status::done) continue;
    Buffer text{message.json};
    Received received;
    ASSERT_EQ(read_message(text.padded(), Limits{}, true, received).status, ScanStatus::complete)
        << message.json << '\n'
        << to_hex(bytes);
    if (received.kind == MessageKind::invalid || received.kind == MessageKind::batch) continue;
    // What it is comes back.
    EXPECT_EQ(json_of(protobuf_of(json_of(protobuf_of(message.json)))), json_of(protobuf_of(message.json)));
  }
}

TEST(ProtobufTranscoder, DepthIsLimited) {
  std::string list = from_hex("42 00");
  for (int i = 2; i < 10; ++i) list = within(0x42, within(0x0A, list));
  const std::string message = kMethod + within(0x42, list);  // nine lists, in an envelope
  EXPECT_EQ(read(message, {.depth = 10}).status, Status::done);
  EXPECT_EQ(read(message, {.depth = 9}).status, Status::too_deep);
  const std::string batch = within(0x4A, within(0x0A, message));
  EXPECT_EQ(read(batch, {.depth = 11}).status, Status::done);
  EXPECT_EQ(read(batch, {.depth = 10}).status, Status::too_deep);
  const std::string error = within(0x2A, within(0x1A, list));
  EXPECT_EQ(read(error, {.depth = 11}).status, Status::done);
  EXPECT_EQ(read(error, {.depth = 10}).status, Status::too_deep);
}

TEST(ProtobufTranscoder, NothingNestsSoDeepThatItCosts) {
  std::string map = from_hex("4a 00");
  for (int i = 0; i < 5000; ++i) map = within(0x4A, within(0x0A, within(0x12, map)));
  EXPECT_EQ(read(kMethod + within(0x42, map)).status, Status::too_deep);
  std::string groups;
  for (int i = 0; i < 100'000; ++i) groups += '\x13';
  EXPECT_EQ(read(groups).status, Status::malformed);
  const std::string hundred = std::string(100, '\x13') + std::string(100, '\x14');
  EXPECT_EQ(read(kMethod + hundred).status, Status::done);
  EXPECT_EQ(read(kMethod + '\x13' + hundred + '\x14').status, Status::malformed);
}

TEST(ProtobufTranscoder, JsonThatWouldBeTooLargeIsNotMade) {
  const std::string bytes = kMethod + within(0x42, within(0x42, within(0x0A, within(0x3A, std::string(3000, 'x')))));
  EXPECT_EQ(read(bytes, {.max_message_size = 3000}).status, Status::done);
  EXPECT_EQ(read(bytes, {.max_message_size = 1000}).status, Status::too_large);
  // Parts of one list, at every level two, would be joined at each.
  std::string list = within(0x42, within(0x0A, within(0x32, std::string(1000, 'x'))));
  for (int i = 0; i < 50; ++i) list = "\x42" + std::string(1, '\0') + within(0x42, within(0x0A, list));
  EXPECT_EQ(read(kMethod + within(0x42, list), {.max_message_size = 2000}).status, Status::too_large);
  EXPECT_EQ(read(kMethod + within(0x42, list), {.max_message_size = 100'000}).status, Status::done);
}

// ---- values without a form ----

constexpr std::string_view kNan = "29 00 00 00 00 00 00 f8 7f";
constexpr std::string_view kInfinity = "29 00 00 00 00 00 00 f0 ff";

TEST(ProtobufTranscoder, ParamsWithoutAFormAreSaidToBeThat) {
  for (const std::string_view kind : {kNan, kInfinity}) {
    const Read message = read(kMethod + kId + within(0x42, within(0x42, within(0x0A, from_hex(kind)))));
    EXPECT_EQ(message.json, R"({"jsonrpc":"2.0","method":"m","id":1,"params":null})");
    ASSERT_EQ(message.unrepresentable.size(), 1U);
    EXPECT_EQ(message.unrepresentable[0].offset, 0U);
    EXPECT_EQ(message.unrepresentable[0].why, "a number is NaN or infinite, which JSON cannot express");
  }
  // What is malformed behind it is so all the same.
  EXPECT_EQ(read(kMethod + within(0x42, within(0x42, within(0x0A, from_hex(kNan)) + from_hex("0a 01 18")))).status,
            Status::malformed);
  const std::string element = kMethod + within(0x42, within(0x42, within(0x0A, from_hex(kNan))));
  const Read batch = read(within(0x4A, within(0x0A, kMethod) + within(0x0A, element)));
  ASSERT_EQ(batch.unrepresentable.size(), 1U);
  EXPECT_EQ(batch.unrepresentable[0].offset, batch.json.rfind('{'));
}

TEST(ProtobufTranscoder, ResultsAndDataWithoutAFormBecomeErrors) {
  constexpr std::string_view kReason = R"({"reason":"a number is NaN or infinite, which JSON cannot express"})";
  EXPECT_EQ(json_of(within(0x1A, from_hex(kNan)) + kId),
            R"({"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error","data":)" + std::string{kReason} +
                R"(},"id":1})");
  EXPECT_EQ(json_of(within(0x2A, from_hex("08 0e 12 01 61") + within(0x1A, from_hex(kNan))) + kId),
            R"({"jsonrpc":"2.0","error":{"code":7,"message":"a","data":)" + std::string{kReason} + R"(},"id":1})");
  EXPECT_EQ(json_of(kMethod + within(0x3A, from_hex(kNan))), std::string{kHead} + R"(,"id":false})");
}

TEST(ProtobufTranscoder, AnItemWithoutAFormEndsItsStream) {
  const std::string method = within(0x12, "rpc.item");
  const std::string id = within(0x0A, within(0x0A, "id") + within(0x12, from_hex("18 0e")));
  const std::string value = within(0x0A, within(0x0A, "value") + within(0x12, from_hex(kNan)));
  const Read message = read(method + within(0x42, within(0x4A, id + value)));
  EXPECT_EQ(message.json, R"({"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error","data":{"reason":)"
                          R"("a number is NaN or infinite, which JSON cannot express"}},"id":7})");
  EXPECT_EQ(message.cancels,
            std::vector<std::string>{R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":7}})"});
  EXPECT_TRUE(message.unrepresentable.empty());
}

TEST(ProtobufTranscoder, AnItemWithoutAFormOfNoStreamIsDropped) {
  const std::string method = within(0x12, "rpc.item");
  const std::string value = within(0x0A, within(0x0A, "value") + within(0x12, from_hex(kNan)));
  // An image, a list, null, and true.
  for (const std::string_view hex : {"62 00", "42 00", "08 00", "10 01"}) {
    const std::string id = within(0x0A, within(0x0A, "id") + within(0x12, from_hex(hex)));
    const Read message = read(method + within(0x42, within(0x4A, id + value)));
    EXPECT_EQ(message.json, R"({"jsonrpc":"2.0","method":"rpc.item","params":null})") << hex;
    EXPECT_TRUE(message.cancels.empty()) << hex;
    EXPECT_EQ(message.unrepresentable.size(), 1U) << hex;
  }
}

TEST(ProtobufTranscoder, MembersOfOtherTypesInJsonTakeTheNearestForm) {
  const auto again = [](std::string_view members) {
    return json_of(protobuf_of(R"({"jsonrpc":"2.0","method":"m",)" + std::string{members} + "}"));
  };
  const std::string head{kHead};
  EXPECT_EQ(again(R"("timeout_ms":1.5)"), head + R"(,"timeout_ms":2})");
  EXPECT_EQ(again(R"("timeout_ms":1e3)"), head + R"(,"timeout_ms":1000})");
  EXPECT_EQ(again(R"("timeout_ms":1e400)"), head + R"(,"timeout_ms":18446744073709551615})");
  EXPECT_EQ(again(R"("timeout_ms":-1)"), head + R"(,"timeout_ms":0})");
  EXPECT_EQ(again(R"("timeout_ms":"1","to":1,"input":1,"other":2)"), head + "}");
  for (const std::string_view error :
       {"1", "{}", R"({"code":1.5,"message":"x"})", R"({"code":1})", R"({"code":"1","message":"x"})"}) {
    const std::string json = json_of(protobuf_of(R"({"jsonrpc":"2.0","error":)" + std::string{error} + R"(,"id":1})"));
    EXPECT_TRUE(
        json.starts_with(R"({"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error","data":{"reason")"))
        << json;
  }
}

// ---- messages as nearly all are, which become JSON in one pass ----

/// No member of an envelope: with it behind them, messages are read member by member.
const std::string kUnknownField = from_hex("a0 06 00");

TEST(ProtobufTranscoder, WhatIsReadInOnePassIsTheSameInSeveral) {
  const std::vector<std::string> texts{
      R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1})",
      R"({"jsonrpc":"2.0","method":"subtract","params":{"minuend":-64,"subtrahend":4611686018427387903},"id":"a"})",
      R"({"jsonrpc":"2.0","method":"m","params":[true,false,null,"","text",0,-1,63,64,-65,999999999999999999]})",
      R"({"jsonrpc":"2.0","method":"m","params":[[1],{"a":1},1.5],"id":-4611686018427387904})",
      R"({"jsonrpc":"2.0","method":"m","params":{"$":{"$a":1},"":null}})",
      R"({"jsonrpc":"2.0","method":"a \"name\"","params":["\n","é","\u0000"],"id":"\\"})",
      R"({"jsonrpc":"2.0","method":")" + std::string(127, 'm') + R"(","params":[")" + std::string(100, 'x') + "\"]}",
      R"({"jsonrpc":"2.0","method":"m","params":[],"id":null})",
      R"({"jsonrpc":"2.0","result":["a",1],"id":7})",
      R"({"jsonrpc":"2.0","result":{"$a":1},"id":7})",
  };
  constexpr std::size_t kUsual = 3;  // of these
  for (const std::string& text : texts) {
    const std::string bytes = protobuf_of(text);
    const std::string json = json_of(bytes);
    Buffer usual;
    if (&text < &texts[kUsual]) {
      EXPECT_TRUE(append_usual_json(bytes, usual)) << text;
      EXPECT_EQ(usual.view(), json);
    }
    EXPECT_EQ(json, json_of(bytes + kUnknownField));
    // Each byte changed, and each cut: what is still read is read alike.
    for (std::size_t at = 0; at != bytes.size(); ++at) {
      for (const char change : {'\x01', '\x02', '\x08', '\x10', '\x20', '\x40', '\x7F', '\x80', '\xFF'}) {
        std::string changed = bytes;
        changed[at] = static_cast<char>(changed[at] ^ change);
        const Read once = read(changed);
        if (once.status != Status::done) continue;
        const Read again = read(changed + kUnknownField);
        EXPECT_EQ(again.status, Status::done) << to_hex(changed);
        EXPECT_EQ(again.json, once.json) << to_hex(changed);
      }
      const Read cut = read(std::string_view{bytes}.substr(0, at));
      if (cut.status == Status::done) {
        EXPECT_EQ(cut.json, json_of(bytes.substr(0, at) + kUnknownField)) << at;
      }
    }
  }
  Limits shallow;
  shallow.depth = 1;
  EXPECT_EQ(read(protobuf_of(texts[0]), shallow).status, Status::too_deep);
}

// ---- requests that are read as they are ----

/// What says from whom a request is, and for whom.
std::string names_of(const Received& request) {
  std::string names;
  for (const auto& [member, name] : {std::pair{Member::to, "to"}, {Member::from, "from"}}) {
    if (request.has(member)) names.append(",\"").append(name).append("\":").append(request[member]);
  }
  return names;
}

/// A request as `read_request` has it, in JSON; empty where it leaves it to others.
std::string read_as_it_is(std::string_view bytes, const Limits& limits = {}) {
  const testing::Exact exact{bytes};
  ProtobufTranscoder transcoder;
  Received request;
  IdText id;
  if (!transcoder.read_request(exact.view(), limits, id, request)) return {};
  EXPECT_EQ(request.kind, MessageKind::request);
  EXPECT_EQ(request.encoding, Encoding::protobuf);
  std::string json = R"({"jsonrpc":"2.0","method":")" + std::string{request.method()} + '"';
  if (request.has(Member::params)) {
    const std::unique_ptr<Reader> reader = protobuf_codec().reader();
    reader->reset(request.params());
    std::string_view params;
    EXPECT_TRUE(reader->read_json(params));
    json.append(R"(,"params":)").append(params);
    if (request.integer_count != 0) {
      std::string list{"["};
      for (std::size_t i = 0; i < request.integer_count; ++i)
        list.append(i == 0 ? "" : ",").append(std::to_string(request.integers[i]));
      EXPECT_EQ(list + "]", params);
    }
  }
  return json.append(R"(,"id":)").append(request.id()).append(names_of(request)).append("}");
}

/// The same by way of JSON, in the order in which that has the members.
std::string read_as_json(std::string_view bytes, const Limits& limits) {
  const Read message = read(bytes, limits);
  if (message.status != Status::done || !message.unrepresentable.empty()) return "refused";
  Buffer text{message.json};
  Received request;
  EXPECT_EQ(read_message(text.padded(), limits, true, request).status, ScanStatus::complete);
  if (request.kind != MessageKind::request) return "no request";
  std::string json = R"({"jsonrpc":"2.0","method":")" + std::string{request.method()} + '"';
  if (request.has(Member::params)) json.append(R"(,"params":)").append(request.params());
  return json.append(R"(,"id":)").append(request.id()).append(names_of(request)).append("}");
}

TEST(ProtobufTranscoder, UsualRequestsAreReadAsTheyAre) {
  for (const std::string_view json :
       {R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1})",
        R"({"jsonrpc":"2.0","method":"m","id":"a"})",
        R"({"jsonrpc":"2.0","method":"m","params":{"a":[1.5,"é",{"b":{"$bytes":"AP8="}}]},"id":-70000})",
        R"({"jsonrpc":"2.0","method":"m","params":[0,1,63,64,8191,8192,999999999],"id":0})",
        R"({"jsonrpc":"2.0","method":"m","params":[1000000000],"id":4611686018427387903})",
        R"({"jsonrpc":"2.0","method":"m","params":[1,2,3,4,5,6,7,8,9],"id":-4611686018427387904})",
        R"({"jsonrpc":"2.0","method":"m","params":[],"id":""})", R"({"jsonrpc":"2.0","method":"m","params":{},"id":1})",
        R"({"jsonrpc":"2.0","method":"m","params":[1],"id":1,"to":"worker"})",
        R"({"jsonrpc":"2.0","method":"m","id":"x","to":"","from":"ada"})"})
    EXPECT_EQ(read_as_it_is(protobuf_of(json)), json);
  const std::string large =
      R"({"jsonrpc":"2.0","method":"m","params":[")" + std::string(100'000, 'x') + R"("],"id":1})";
  EXPECT_EQ(read_as_it_is(protobuf_of(large)), large);
}

TEST(ProtobufTranscoder, IntegersOfUsualRequestsNeedNoSecondPass) {
  ProtobufTranscoder transcoder;
  Received request;
  IdText id;
  const std::string bytes = protobuf_of(R"({"jsonrpc":"2.0","method":"m","params":[0,64,999999999],"id":1})");
  ASSERT_TRUE(transcoder.read_request(bytes, {}, id, request));
  ASSERT_EQ(request.integer_count, 3U);
  EXPECT_EQ(request.integers[0], 0U);
  EXPECT_EQ(request.integers[1], 64U);
  EXPECT_EQ(request.integers[2], 999'999'999U);
  EXPECT_FALSE(request.integers_named);
}

TEST(ProtobufTranscoder, WhatIsNoUsualRequestIsLeftToOthers) {
  for (const std::string_view json :
       {R"({"jsonrpc":"2.0","method":"m","params":[1]})", R"({"jsonrpc":"2.0","result":1,"id":1})",
        R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})", R"({"jsonrpc":"2.0","method":"$/m","id":1})",
        R"({"jsonrpc":"2.0","method":"é","id":1})", R"({"jsonrpc":"2.0","method":"m","id":null})",
        R"({"jsonrpc":"2.0","method":"m","id":1.5})", R"({"jsonrpc":"2.0","method":"m","id":1,"stream":5})",
        R"({"jsonrpc":"2.0","method":"m","id":1,"timeout_ms":5})", R"({"jsonrpc":"2.0","method":"m","id":"a\"b"})",
        R"({"jsonrpc":"2.0","method":"m","params":[12345678901234567890123],"id":1})",
        R"({"jsonrpc":"2.0","method":"m","id":1,"to":"é"})", R"({"jsonrpc":"2.0","method":"m","id":1,"to":"a\"b"})",
        R"([{"jsonrpc":"2.0","method":"m","id":1}])"})
    EXPECT_EQ(read_as_it_is(protobuf_of(json)), "") << json;
  const std::string usual = protobuf_of(R"({"jsonrpc":"2.0","method":"m","params":[1],"id":1})");
  EXPECT_NE(read_as_it_is(usual), "");
  EXPECT_EQ(read_as_it_is(usual + kUnknownField), "");
  EXPECT_EQ(read_as_it_is(usual + kId), "");
  const std::string to = from_hex("72 01 61");
  EXPECT_NE(read_as_it_is(usual + to), "");
  EXPECT_EQ(read_as_it_is(usual + to + to), "");
  // All that is JSON of one has 64 bytes.
  const auto named = [&](std::size_t bytes) {
    return read_as_it_is(usual + from_hex("7a") + static_cast<char>(bytes) + std::string(bytes, 'x'));
  };
  EXPECT_NE(named(61), "");
  EXPECT_EQ(named(62), "");
  EXPECT_EQ(named(127), "");
  EXPECT_EQ(read_as_it_is(usual, {.depth = 1}), "");
  EXPECT_NE(read_as_it_is(usual, {.depth = 2}), "");
  EXPECT_EQ(read_as_it_is(kMethod + from_hex("3a 02 18 02 42 02 18 02")), "");  // a number as params
}

TEST(ProtobufTranscoder, WhatIsReadAsItIsIsTheSameByWayOfJson) {
  std::minstd_rand random{5};
  std::size_t seen = 0;
  for (
      const std::string_view json :
      {R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1})",
       R"({"jsonrpc":"2.0","method":"mean","params":{"a":[1.5,"é",{"b":{"$bytes":"AP8="}}],"c":[[],{},null]},"id":"x"})",
       R"({"jsonrpc":"2.0","method":"m","params":[0,1,8192,999999999],"id":-70000})",
       R"({"jsonrpc":"2.0","method":"m","params":[1],"id":"x","to":"worker","from":"ada"})"}) {
    const std::string whole = protobuf_of(json);
    for (int round = 0; round < 6000; ++round) {
      std::string bytes = whole;
      for (unsigned changes = 1 + random() % 3; changes != 0; --changes) {
        const std::size_t at = random() % bytes.size();
        switch (random() % 4) {
          case 0: bytes.erase(at, 1 + random() % 4); break;
          case 1: bytes.insert(at, 1, static_cast<char>(random())); break;
          default: bytes[at] = static_cast<char>(random() % 2 == 0 ? random() : bytes[at] ^ 1 << random() % 8); break;
        }
        if (bytes.empty()) bytes = whole;
      }
      for (const std::uint32_t depth : {64U, 3U}) {
        const std::string as_it_is = read_as_it_is(bytes, {.depth = depth});
        if (as_it_is.empty()) continue;
        ++seen;
        EXPECT_EQ(as_it_is, read_as_json(bytes, {.depth = depth})) << to_hex(bytes);
      }
    }
  }
  EXPECT_GT(seen, 1000U);
}

// A response as it is, in JSON; empty for one that is left to others.
std::string response_as_it_is(std::string_view bytes, const Limits& limits = {}) {
  ProtobufTranscoder transcoder;
  Received response;
  IdText id;
  const testing::Exact exact{bytes};
  if (!transcoder.read_response(exact.view(), limits, id, response)) return {};
  EXPECT_EQ(response.kind, MessageKind::response);
  EXPECT_EQ(response.fault, Fault::none);
  const std::unique_ptr<Reader> reader = protobuf_codec().reader();
  reader->reset(response[Member::result]);
  std::string_view result;
  EXPECT_TRUE(reader->read_json(result));
  return R"({"jsonrpc":"2.0","result":)" + std::string{result} + R"(,"id":)" + std::string{response.id()} + "}";
}

TEST(ProtobufTranscoder, UsualResponsesAreReadAsTheyAre) {
  for (const std::string_view json :
       {R"({"jsonrpc":"2.0","result":19,"id":1})", R"({"jsonrpc":"2.0","result":null,"id":"a"})",
        R"({"jsonrpc":"2.0","result":{"a":[1.5,"é",{"b":{"$bytes":"AP8="}}]},"id":-70000})"})
    EXPECT_EQ(response_as_it_is(protobuf_of(json)), json);
  for (const std::string_view json :
       {R"({"jsonrpc":"2.0","error":{"code":1,"message":"m"},"id":1})", R"({"jsonrpc":"2.0","result":1,"id":null})",
        R"({"jsonrpc":"2.0","result":1,"id":1.5})", R"({"jsonrpc":"2.0","method":"m","id":1})",
        R"({"jsonrpc":"2.0","result":1,"hops":1,"id":1})", R"([{"jsonrpc":"2.0","result":1,"id":1}])"})
    EXPECT_EQ(response_as_it_is(protobuf_of(json)), "") << json;
  const std::string usual = protobuf_of(R"({"jsonrpc":"2.0","result":[[1]],"id":1})");
  for (const std::string& more : {kUnknownField, kId, from_hex("1a 02 18 02"), std::string{"\0", 1}})
    EXPECT_EQ(response_as_it_is(usual + more), "");
  EXPECT_EQ(response_as_it_is(usual, {.depth = 2}), "");
  EXPECT_NE(response_as_it_is(usual, {.depth = 3}), "");
}

TEST(ProtobufTranscoder, AResponseThatIsReadAsItIsIsTheSameByWayOfJson) {
  std::minstd_rand random{7};
  std::size_t seen = 0;
  for (const std::string_view json : {R"({"jsonrpc":"2.0","result":{"a":[1.5,"é",{"b":{"$bytes":"AP8="}}]},"id":1})",
                                      R"({"jsonrpc":"2.0","result":[-1,18446744073709551615],"id":"x"})"}) {
    const std::string whole = protobuf_of(json);
    for (int round = 0; round < 6000; ++round) {
      std::string bytes = whole;
      for (unsigned changes = 1 + random() % 3; changes != 0; --changes) {
        const std::size_t at = random() % bytes.size();
        switch (random() % 4) {
          case 0: bytes.erase(at, 1 + random() % 4); break;
          case 1: bytes.insert(at, 1, static_cast<char>(random())); break;
          default: bytes[at] = static_cast<char>(random()); break;
        }
        if (bytes.empty()) bytes = whole;
      }
      for (const std::uint32_t depth : {64U, 3U}) {
        const std::string as_it_is = response_as_it_is(bytes, {.depth = depth});
        if (as_it_is.empty()) continue;
        ++seen;
        const Read message = read(bytes, {.depth = depth});
        ASSERT_EQ(message.status, Status::done) << to_hex(bytes);
        Buffer text{message.json};
        Received plain;
        ASSERT_EQ(read_message(text.padded(), {.depth = depth}, true, plain).status, ScanStatus::complete);
        EXPECT_EQ(plain.kind, MessageKind::response);
        EXPECT_EQ(as_it_is, R"({"jsonrpc":"2.0","result":)" + std::string{plain[Member::result]} + R"(,"id":)" +
                                std::string{plain.id()} + "}")
            << to_hex(bytes);
      }
    }
  }
  EXPECT_GT(seen, 500U);
}

TEST(ProtobufTranscoder, ARequestGoesOnAsItCameButForItsId) {
  ProtobufTranscoder transcoder;
  const std::string params = from_hex("42 07 42 05 0a 03 20 81 00");  // not as we write it
  for (const auto& [before, behind] : {std::pair{kMethod, params}, std::pair{kMethod + params, std::string{}},
                                       std::pair{std::string{}, params + kMethod}}) {
    const auto handed_on = [&](const RequestEdits& edits) {
      Buffer out;
      transcoder.append_request(out, before + kId + behind, edits);
      return to_hex(out.view());
    };
    EXPECT_EQ(handed_on({.id = 2}), to_hex(before + from_hex("3a 02 18 04") + behind));
    EXPECT_EQ(handed_on({.id = 70, .id_is_string = true}), to_hex(before + from_hex("3a 04 32 02 37 30") + behind));
    EXPECT_EQ(handed_on({.id = 18'446'744'073'709'551'615U}),
              to_hex(before + from_hex("3a 0b 20 ff ff ff ff ff ff ff ff ff 01") + behind));
    EXPECT_EQ(handed_on({.id = 2, .from_json = R"("a\"b")"}),
              to_hex(before + from_hex("3a 02 18 04") + behind + from_hex("7a 03 61 22 62")));
  }
}

TEST(ProtobufTranscoder, ARequestGoesOnWithoutTheNamesThatItCameWith) {
  ProtobufTranscoder transcoder;
  const std::string to = from_hex("72 01 61");
  const std::string from = from_hex("7a 01 62");
  const std::string id = from_hex("3a 02 18 04");
  for (const std::string& request : {kMethod + kId + to + from, to + kMethod + from + kId, from + to + kMethod + kId}) {
    const auto handed_on = [&](const RequestEdits& edits) {
      Buffer out;
      transcoder.append_request(out, request, edits);
      return to_hex(out.view());
    };
    EXPECT_EQ(handed_on({.id = 2}), to_hex(kMethod + id));
    EXPECT_EQ(handed_on({.id = 2, .from_json = R"("c")"}), to_hex(kMethod + id + from_hex("7a 01 63")));
    const std::string kept = handed_on({.id = 2, .keeps_to = true});
    EXPECT_EQ(kept, to_hex(request.starts_with(kMethod) ? kMethod + id + to : to + kMethod + id));
  }
}

TEST(ProtobufTranscoder, RepliesAreWrittenAsTheyWouldBeFromJson) {
  using Place = MessageWriter::Place;
  ProtobufTranscoder transcoder;
  const auto written = [](const auto& write) {
    Buffer out;
    write(out);
    return to_hex(out.view());
  };
  for (const std::string& id : {std::string{"0"},
                                std::string{"-0"},
                                std::string{"1"},
                                std::string{"-5"},
                                std::string{"63"},
                                std::string{"-64"},
                                std::string{"-65"},
                                std::string{"999999999999999999"},
                                std::string{"-999999999999999999"},
                                std::string{"9223372036854775807"},
                                std::string{"18446744073709551616"},
                                std::string{"1.5"},
                                std::string{"null"},
                                std::string{R"("")"},
                                std::string{R"("a")"},
                                std::string{R"("a\"b")"},
                                std::string{R"("\u0041")"},
                                std::string{R"("é")"},
                                '"' + std::string(125, 'x') + '"',
                                '"' + std::string(126, 'x') + '"'}) {
    for (const std::int64_t value :
         {std::int64_t{0}, std::int64_t{-1}, std::int64_t{64}, std::numeric_limits<std::int64_t>::min(),
          std::numeric_limits<std::int64_t>::max()})
      EXPECT_EQ(written([&](Buffer& out) { transcoder.append_integer_result(out, value, id, Place::message); }),
                to_hex(protobuf_of(R"({"jsonrpc":"2.0","result":)" + std::to_string(value) + R"(,"id":)" + id + "}")));
    EXPECT_EQ(
        written([&](Buffer& out) { transcoder.append_packed_result(out, "abcdefghijklmnop", id, Place::message); }),
        to_hex(protobuf_of(R"({"jsonrpc":"2.0","result":{"$packed":"YWJjZGVmZ2hpamtsbW5vcA=="},"id":)" + id + "}")));
    EXPECT_EQ(written([&](Buffer& out) {
                transcoder.begin_result(out, Place::message);
                const std::unique_ptr<Writer> writer = protobuf_codec().writer();
                writer->reset(out);
                writer->json(R"({"a":[1,{}]})");
                transcoder.end_reply(out, id);
              }),
              to_hex(protobuf_of(R"({"jsonrpc":"2.0","result":{"a":[1,{}]},"id":)" + id + "}")));
    EXPECT_EQ(written([&](Buffer& out) {
                transcoder.append_error(out, Error{-32000, "é\n", R"({"a":[1]})"}, id, Place::message);
              }),
              to_hex(protobuf_of(R"({"jsonrpc":"2.0","error":{"code":-32000,"message":"é\n","data":{"a":[1]}},"id":)" +
                                 id + "}")));
    EXPECT_EQ(written([&](Buffer& out) { transcoder.append_error(out, Error{5, "m"}, id, Place::message); }),
              to_hex(protobuf_of(R"({"jsonrpc":"2.0","error":{"code":5,"message":"m"},"id":)" + id + "}")));
  }
}

// ---- the list of encodings ----

TEST(ProtobufCodec, IsFoundByFirstBytesThatNothingElseHas) {
  EXPECT_EQ(codec_of(Encoding::protobuf).name, "protobuf");
  EXPECT_EQ(encoding_of_type("application/protobuf"), Encoding::protobuf);
  EXPECT_EQ(encoding_of_type("application/x-protobuf; charset=x"), Encoding::protobuf);
  std::string claimed;
  for (unsigned byte = 0; byte < 256; ++byte)
    if (encoding_of(static_cast<char>(byte)) == Encoding::protobuf) claimed += static_cast<char>(byte);
  EXPECT_EQ(to_hex(claimed), "12 1a 2a 3a 42 4a 50 58 60 68 72 7a");
}

TEST(ProtobufCodec, WhatIsWrittenBeginsWithSuchAByte) {
  for (const std::string_view json :
       {R"({"tracestate":"a","traceparent":"b","jsonrpc":"2.0","method":"m"})", R"([])",
        R"({"jsonrpc":"2.0","traceparent":"b","id":1,"result":1})", R"({"jsonrpc":"2.0","traceparent":"b","id":1})"})
    EXPECT_EQ(encoding_of(protobuf_of(json).front()), Encoding::protobuf) << json;
}

}  // namespace
}  // namespace wirecall::message
