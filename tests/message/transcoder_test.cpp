// What the edge does with messages in MessagePack: the whole message both ways, and what happens to a value that the
// other encoding has no form for, member by member.
#include <gtest/gtest.h>
#include <string>

#include "message/binary_transcoder.hpp"
#include "message/message_codec.hpp"
#include "tests/codec/msgpack.hpp"
#include "wirecall/message.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/value.hpp"

namespace wirecall::message {
namespace {

using packing::from_hex;
using packing::msgpack_of;
using packing::to_hex;
using packing::with;
using Status = Transcoder::Status;

constexpr Limits kLimits{.max_message_size = 400};

/// A value that JSON has no form for.
constexpr std::string_view kNaN = "cb 7f f8 00 00 00 00 00 00";

struct ToJson {
  std::string text;
  std::vector<Unrepresentable> unrepresentable;
};
ToJson to_json_of(std::string_view message, Status status = Status::done, const Limits& limits = kLimits) {
  MsgpackTranscoder transcoder;
  Buffer out{"kept"};
  EXPECT_EQ(transcoder.to_json(message, limits, out), status);
  return {std::string{out.view().substr(4)}, transcoder.take_unrepresentable()};
}

struct ToMsgpack {
  std::string text;  ///< what the bytes are as JSON, or "nothing"
  std::vector<std::string> refusals;
};
ToMsgpack to_msgpack_of(std::string_view json, const Limits& limits = kLimits) {
  MsgpackTranscoder transcoder;
  Buffer text{json};
  Buffer out{"kept"};
  ToMsgpack result;
  if (transcoder.from_json(text.padded(), limits, out)) {
    const auto value = from_msgpack<Value>(packing::bytes_of(out.view().substr(4)));
    EXPECT_TRUE(value.has_value()) << to_hex(out.view());
    if (value) result.text = value->dump();
  } else {
    EXPECT_EQ(out.view(), "kept");
    result.text = "nothing";
  }
  result.refusals = transcoder.take_refusals();
  return result;
}

TEST(Transcoder, KnowsAMessageByItsFirstByte) {
  int known = 0;
  for (int first = 0; first < 256; ++first) known += encoding_of(static_cast<char>(first)) == Encoding::msgpack ? 1 : 0;
  EXPECT_EQ(known, 36);
  for (const int first : {0x80, 0x8F, 0x90, 0x9F, 0xDC, 0xDD, 0xDE, 0xDF})
    EXPECT_EQ(encoding_of(static_cast<char>(first)), Encoding::msgpack);
  for (const int first : {0xA0, 0xBF, 0xD9}) EXPECT_EQ(encoding_of(static_cast<char>(first)), Encoding::cbor);
  for (const int first : {0x7B, 0x5B, 0x7F, 0xC0, 0xDB, 0xE0, 0xFF, 0x00})
    EXPECT_EQ(encoding_of(static_cast<char>(first)), Encoding::json);
}

TEST(Transcoder, MessagesGoThereAndBack) {
  for (
      const char* json : {
          R"({"jsonrpc":"2.0","method":"sum","params":[1,2.5,"x",null,true],"id":1})",
          R"({"jsonrpc":"2.0","method":"sum","params":{"a":1,"b":{"$":{"$x":2}}},"id":"a"})",
          R"({"jsonrpc":"2.0","method":"note"})",
          R"({"jsonrpc":"2.0","result":{"$bytes":"AP8="},"id":1.5})",
          R"({"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":null})",
          R"([{"jsonrpc":"2.0","result":1,"id":1},{"jsonrpc":"2.0","result":2,"id":2}])",
          R"({"jsonrpc":"2.0","method":"m","id":1,"timeout_ms":5,"stream":2,"hops":1,"to":"x","from":"y","other":[1]})",
          R"({})",
      }) {
    const ToJson there = to_json_of(msgpack_of(json));
    EXPECT_EQ(there.text, json);
    EXPECT_TRUE(there.unrepresentable.empty());
    MsgpackTranscoder transcoder;
    Buffer text{json};
    Buffer out;
    ASSERT_TRUE(transcoder.from_json(text.padded(), kLimits, out));
    EXPECT_EQ(to_hex(out.view()), to_hex(msgpack_of(json)));
  }
  EXPECT_EQ(to_json_of("\x90").text, "[]");
}

TEST(Transcoder, ParamsByNameAreMembersAndNoUserData) {
  // A method may have a parameter of that name.
  const std::string request = with(R"({"jsonrpc":"2.0","method":"m","id":1})", "params", "81 a2 24 78 81 a2 24 79 01");
  const std::string json = R"({"jsonrpc":"2.0","method":"m","id":1,"params":{"$x":{"$":{"$y":1}}}})";
  EXPECT_EQ(to_json_of(request).text, json);
  MsgpackTranscoder transcoder;
  Buffer text{json};
  Buffer out;
  ASSERT_TRUE(transcoder.from_json(text.padded(), kLimits, out));
  EXPECT_EQ(to_hex(out.view()), to_hex(request));
}

TEST(Transcoder, BytesAreNeitherParamsNorIds) {
  EXPECT_EQ(to_json_of(with(R"({"id":1})", "params", "c4 01 ff")).text, R"({"id":1,"params":false})");
  EXPECT_EQ(to_json_of(with("{}", "id", "d6 ff 00 00 00 01")).text, R"({"id":false})");
}

TEST(Transcoder, WhatIsNoMessagePackSaysSo) {
  const std::string message = msgpack_of(R"({"jsonrpc":"2.0","method":"m","params":[[[1]]],"id":1})");
  for (std::size_t size = 1; size < message.size(); ++size) {
    to_json_of(std::string_view{message}.substr(0, size), Status::malformed);
  }
  to_json_of(message + '\x01', Status::malformed);
  to_json_of(from_hex("91 c1"), Status::malformed);
  to_json_of(from_hex("91 a1 ff"), Status::malformed);
  to_json_of(message, Status::done, {.depth = 4});
  to_json_of(message, Status::too_deep, {.depth = 3});
}

TEST(Transcoder, AsJsonAMessageHasTwiceTheSizeAtMost) {
  const Limits limits{.max_message_size = 50};
  EXPECT_EQ(
      to_json_of(msgpack_of('{' + (R"("a":")" + std::string(92, 'x') + R"("})")), Status::done, limits).text.size(),
      100U);
  to_json_of(msgpack_of(R"({"a":")" + std::string(93, 'x') + R"("})"), Status::too_large, limits);
  to_json_of(msgpack_of(R"({"params":")" + std::string(100, 'x') + R"("})"), Status::too_large, limits);
  // A control character is six bytes of JSON.
  to_json_of(with("{}", "a", "b0 01010101010101010101010101010101"), Status::too_large, limits);
  to_json_of(from_hex("91 b0 01010101010101010101010101010101"), Status::done, limits);
  to_json_of(from_hex("92 b0 01010101010101010101010101010101 01"), Status::too_large, limits);
  to_json_of(from_hex("9f c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2"), Status::done, limits);
  to_json_of(from_hex("dc0011 c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2"), Status::too_large, limits);
}

TEST(Transcoder, ParamsThatJsonCannotHoldAreTold) {
  const std::string request = with(R"({"jsonrpc":"2.0","method":"m","id":7})", "params", "91" + std::string{kNaN});
  const ToJson one = to_json_of(request);
  EXPECT_EQ(one.text, R"({"jsonrpc":"2.0","method":"m","id":7,"params":null})");
  ASSERT_EQ(one.unrepresentable.size(), 1U);
  EXPECT_EQ(one.unrepresentable[0].offset, 0U);
  EXPECT_EQ(one.unrepresentable[0].why, "a number is NaN or infinite, which JSON cannot express");

  const std::string good = msgpack_of(R"({"id":1})");
  const ToJson batch = to_json_of('\x93' + good + request + request);
  ASSERT_EQ(batch.unrepresentable.size(), 2U);
  EXPECT_EQ(batch.unrepresentable[0].offset, batch.text.find(R"({"jsonrpc")"));
  EXPECT_EQ(batch.unrepresentable[1].offset, batch.text.rfind(R"({"jsonrpc")"));
  EXPECT_EQ(to_json_of(with("{}", "params", "81 01 02")).unrepresentable.size(), 1U);
  EXPECT_EQ(to_json_of(with("{}", "params", "91 d4 05 00")).unrepresentable.size(), 1U);
}

TEST(Transcoder, ResultsThatJsonCannotHoldAreErrors) {
  const char* const error =
      R"({"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Internal error","data":{"reason":"a number is NaN or infinite, which JSON cannot express"}}})";
  EXPECT_EQ(to_json_of(with(R"({"jsonrpc":"2.0","id":7})", "result", kNaN)).text, error);
  EXPECT_EQ(to_json_of(with(R"({"jsonrpc":"2.0","id":7})", "error", "81 a1 61" + std::string{kNaN})).text, error);
  // {"code": -5, "message": "own", "data": NaN} stays the provider's own error, but for its data.
  EXPECT_EQ(
      to_json_of(with(R"({"jsonrpc":"2.0","id":7})", "error",
                      "83 a4 63 6f 64 65 fb a7 6d 65 73 73 61 67 65 a3 6f 77 6e a4 64 61 74 61" + std::string{kNaN}))
          .text,
      R"({"jsonrpc":"2.0","id":7,"error":{"code":-5,"message":"own","data":{"reason":"a number is NaN or infinite, which JSON cannot express"}}})");
  EXPECT_EQ(to_json_of("\x92\x80" + with(R"({"jsonrpc":"2.0","id":7})", "result", kNaN)).text,
            "[{}," + std::string{error} + "]");
}

TEST(Transcoder, OtherMembersAreRefusedOrLeftOut) {
  for (const char* name : {"id", "jsonrpc", "method", "timeout_ms", "to", "from", "stream", "hops"}) {
    EXPECT_EQ(to_json_of(with(R"({"a":1})", name, kNaN)).text, R"({"a":1,")" + std::string{name} + R"(":false})");
  }
  EXPECT_EQ(to_json_of(with(R"({"a":1})", "other", kNaN)).text, R"({"a":1})");
  EXPECT_EQ(to_json_of(with("{}", "other", kNaN)).text, "{}");
  EXPECT_EQ(to_json_of(from_hex("82 01 02 a1 61 01")).text, R"({"a":1})");
  EXPECT_EQ(to_json_of("\x91" + from_hex(kNaN)).text, "[false]");
  EXPECT_EQ(to_json_of("\x92" + from_hex("01 91 02")).text, "[1,[2]]");
}

TEST(Transcoder, ResultsThatMessagePackCannotHoldAreErrors) {
  const char* const error =
      R"({"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error","data":{"reason":"an integer is beyond 64 bits, which MessagePack cannot express"}},"id":7})";
  EXPECT_EQ(to_msgpack_of(R"({"jsonrpc":"2.0","result":[18446744073709551616],"id":7})").text, error);
  EXPECT_EQ(to_msgpack_of(R"({"jsonrpc":"2.0","error":{"code":1,"data":18446744073709551616},"id":7})").text, error);
  EXPECT_EQ(to_msgpack_of(R"([{"jsonrpc":"2.0","result":18446744073709551616,"id":7},{"result":1,"id":8}])").text,
            "[" + std::string{error} + R"(,{"result":1,"id":8}])");
}

TEST(Transcoder, RequestsThatMessagePackCannotHoldAreRefusedToWhoMadeThem) {
  const std::string refusal =
      R"({"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params","data":{"reason":"an integer is beyond 64 bits, which MessagePack cannot express"}},"id":7})";
  const std::string bad = R"({"jsonrpc":"2.0","method":"m","params":[18446744073709551616],"id":7})";
  const ToMsgpack one = to_msgpack_of(bad);
  EXPECT_EQ(one.text, "nothing");
  EXPECT_EQ(one.refusals, std::vector<std::string>{refusal});
  const ToMsgpack batch = to_msgpack_of("[" + bad + R"(,{"method":"n","id":8}])");
  EXPECT_EQ(batch.text, R"([{"method":"n","id":8}])");
  EXPECT_EQ(batch.refusals, std::vector<std::string>{refusal});
  const ToMsgpack none = to_msgpack_of("[" + bad + "]");
  EXPECT_EQ(none.text, "nothing");
  EXPECT_EQ(none.refusals.size(), 1U);
  const ToMsgpack event = to_msgpack_of(R"({"jsonrpc":"2.0","method":"m","params":[1e400]})");
  EXPECT_EQ(event.text, "nothing");
  EXPECT_TRUE(event.refusals.empty());
  EXPECT_EQ(to_msgpack_of(R"({"method":"m","other":1e400,"id":1})").text, R"({"method":"m","id":1})");
}

TEST(Transcoder, AnItemThatJsonCannotHoldEndsItsStream) {
  MsgpackTranscoder transcoder;
  Buffer out;
  const std::string item = with(R"({"jsonrpc":"2.0","method":"rpc.item"})", "params",
                                "83 a2 69 64 07 a3 73 65 71 00 a5 76 61 6c 75 65" + std::string{kNaN});
  ASSERT_EQ(transcoder.to_json(item, kLimits, out), Status::done);
  EXPECT_EQ(
      out.view(),
      R"({"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error","data":{"reason":"a number is NaN or infinite, which JSON cannot express"}},"id":7})");
  EXPECT_TRUE(transcoder.take_unrepresentable().empty());
  EXPECT_EQ(transcoder.take_cancels(),
            std::vector<std::string>{R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":7}})"});
  // Without an id it is a notification that is dropped.
  const ToJson other = to_json_of(with(R"({"jsonrpc":"2.0","method":"rpc.item"})", "params", "91" + std::string{kNaN}));
  EXPECT_EQ(other.unrepresentable.size(), 1U);
}

TEST(Transcoder, AnItemThatMessagePackCannotHoldEndsItsStream) {
  MsgpackTranscoder transcoder;
  std::vector<Broken> broken;
  const auto send = [&](std::string_view json) {
    Buffer text{json};
    Buffer out;
    if (!transcoder.from_json(text.padded(), kLimits, out, &broken)) return std::string{"nothing"};
    return packing::unpacked(out.view());
  };
  const auto item = [](std::string_view id, std::string_view value) {
    return R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":)" + std::string{id} + R"(,"seq":0,"value":)" +
           std::string{value} + "}}";
  };
  EXPECT_EQ(send(item("7", "1")), item("7", "1"));
  EXPECT_EQ(send(item("7", "1e400")), "nothing");
  EXPECT_EQ(transcoder.take_refusals(),
            std::vector<std::string>{R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":7}})"});
  // What comes behind it is not sent, nor told again; other streams go on.
  EXPECT_EQ(send(item("7", "1e400")), "nothing");
  EXPECT_EQ(send(item("7", "2")), "nothing");
  EXPECT_TRUE(transcoder.take_refusals().empty());
  EXPECT_EQ(send(item("8", "2")), item("8", "2"));
  EXPECT_EQ(send(R"({"jsonrpc":"2.0","result":1,"id":8})"), R"({"jsonrpc":"2.0","result":1,"id":8})");
  EXPECT_EQ(
      send(R"({"jsonrpc":"2.0","error":{"code":-32800,"message":"Cancelled"},"id":7})"),
      R"({"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error","data":{"reason":"a number is beyond the range of a double, which MessagePack cannot express"}},"id":7})");
  EXPECT_TRUE(broken.empty());
  EXPECT_EQ(send(item("7", "1")), item("7", "1"));
}

TEST(Transcoder, NothingIsSentThatIsTooLarge) {
  // Three bytes of JSON become nine.
  std::string numbers = "0.5";
  for (int i = 0; i < 60; ++i) numbers += ",0.5";
  const std::string reply = R"({"jsonrpc":"2.0","result":[)" + numbers + R"(],"id":3})";
  EXPECT_LT(reply.size(), kLimits.max_message_size);
  const std::string error =
      R"({"jsonrpc":"2.0","error":{"code":-32006,"message":"Too large","data":{"reason":"the reply is larger than a message may be","origin":"local","delivered":"maybe","limit":"max_message_size"}},"id":3})";
  EXPECT_EQ(to_msgpack_of(reply).text, error);
  const ToMsgpack request = to_msgpack_of(R"({"jsonrpc":"2.0","method":"m","params":[)" + numbers + R"(],"id":3})");
  EXPECT_EQ(request.text, "nothing");
  ASSERT_EQ(request.refusals.size(), 1U);
  EXPECT_NE(request.refusals[0].find("-32006"), std::string::npos);
  const std::string half = R"({"jsonrpc":"2.0","result":[)" + numbers.substr(0, 27 * 4 - 1) + R"(],"id":4})";
  EXPECT_EQ(to_msgpack_of(half).text.find("error"), std::string::npos);
  const std::string batch = to_msgpack_of("[" + half + "," + half + "]").text;
  EXPECT_NE(batch.find("0.5"), std::string::npos);
  EXPECT_NE(batch.find("-32006"), std::string::npos);
}

TEST(Transcoder, ManyMembersAndElementsHaveLargerHeads) {
  std::string members;
  for (int i = 0; i < 20; ++i) members += (i == 0 ? "\"m" : ",\"m") + std::to_string(i) + "\":" + std::to_string(i);
  EXPECT_EQ(to_msgpack_of("{" + members + "}").text, "{" + members + "}");
  std::string elements;
  for (int i = 0; i < 20; ++i) elements += std::string(i == 0 ? "" : ",") + R"({"id":1})";
  EXPECT_EQ(to_msgpack_of("[" + elements + "]").text, "[" + elements + "]");
}

// What is not run is not written as JSON either, however much of it there is.
std::size_t batch_size(std::string_view message) {
  MsgpackTranscoder transcoder;
  EnvelopeMembers members;
  EXPECT_EQ(transcoder.check(message, {}, members), Status::done);
  return members.batch_size();
}

TEST(Transcoder, ALongBatchIsReadAsWhatItsRefusalNeeds) {
  const auto read = [](const std::string& batch, bool responses) {
    MsgpackTranscoder transcoder;
    Buffer text;
    Received received;
    EXPECT_GT(batch_size(batch), 2U);
    EXPECT_EQ(transcoder.read_long_batch(batch, {.batch = 2, .soft_output = 1000}, responses, text, received),
              Status::done);
    EXPECT_EQ(received.fault, Fault::batch_limit);
    EXPECT_EQ(received.text, text.view());
    return std::string{text.view()};
  };
  const std::string head = from_hex("dd 00 01 00 00");
  for (const std::string one : {"01", "c0", "80", "90", "91 01", "81 a1 61 01", "c4 01 ff", "a3 61 62 63"}) {
    std::string batch = head;
    for (int i = 0; i < 65536; ++i) batch += from_hex(one);
    EXPECT_EQ(read(batch, true), "[0]") << one;
  }
  const std::string request = msgpack_of(R"({"jsonrpc":"2.0","method":"m","params":[1,2,3],"id":1})");
  const std::string response = msgpack_of(R"({"jsonrpc":"2.0","result":5,"id":1})");
  EXPECT_EQ(read("\x93" + response + response + response, false), "[]");
  EXPECT_EQ(read("\x93" + response + request + '\x01', true),
            R"([{"jsonrpc":"2.0","result":5,"id":1},{"jsonrpc":"2.0","method":"","id":1},0])");
  std::string requests = head;
  for (int i = 0; i < 65536; ++i) requests += request;
  EXPECT_LT(read(requests, false).size(), 1100U);
  EXPECT_EQ(batch_size("\x92" + request + request), 2U);
  EXPECT_EQ(batch_size(request), 0U);
}

TEST(Transcoder, APackedResultIsWrittenAsAWholeOne) {
  MsgpackTranscoder transcoder;
  for (const std::string_view id : {"1", "4294967295", R"("a")", "null"}) {
    for (const auto& [bytes, base64] : {std::pair<std::string_view, std::string_view>{"abcdefghi", "YWJjZGVmZ2hp"},
                                        {"abcdefghijkl", "YWJjZGVmZ2hpamts"},
                                        {"abcdefghijklmnop", "YWJjZGVmZ2hpamtsbW5vcA=="}}) {
      Buffer out;
      transcoder.append_packed_result(out, bytes, id, NativeTranscoder::Place::message);
      EXPECT_EQ(to_hex(out.view()), to_hex(msgpack_of(R"({"jsonrpc":"2.0","result":{"$packed":")" +
                                                      std::string{base64} + R"("},"id":)" + std::string{id} + "}")));
    }
  }
}

TEST(Transcoder, IsUsedAgainAndAgain) {
  MsgpackTranscoder transcoder;
  Buffer out;
  const std::string bad = with(R"({"id":7})", "params", kNaN);
  EXPECT_EQ(transcoder.to_json(bad, kLimits, out), Status::done);
  out.clear();
  EXPECT_EQ(transcoder.to_json(msgpack_of(R"({"id":8})"), kLimits, out), Status::done);
  EXPECT_EQ(out.view(), R"({"id":8})");
  EXPECT_TRUE(transcoder.take_unrepresentable().empty());
  Buffer text{R"(head{"id":9})"};
  EXPECT_TRUE(transcoder.from_json_behind(4, kLimits, text));
  EXPECT_EQ(text.view(), "head" + msgpack_of(R"({"id":9})"));
}

}  // namespace
}  // namespace wirecall::message
