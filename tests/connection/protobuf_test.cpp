// Peers that speak Protocol Buffers: behind a length and by HTTP, over a simulated system cut at every byte.
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "message/protobuf_transcoder.hpp"
#include "tests/codec/msgpack.hpp"
#include "tests/connection/msgpack_texts.hpp"
#include "tests/http/served.hpp"
#include "tests/message/encoded.hpp"

namespace wirecall::net {
namespace {

using packing::framed;
using packing::from_hex;

std::string protobuf_of(std::string_view json) { return message::encoded<message::ProtobufTranscoder>(json); }

std::string reply_to(std::string_view message) { return answer({framed(message)}); }
std::string with_id(std::string_view error, std::string_view id) {
  return framed(protobuf_of(R"({"jsonrpc":"2.0","error":)" + std::string{error} + R"(,"id":)" + std::string{id} + "}"));
}

TEST(ProtobufFrames, CallsAreAnsweredInKind) {
  expect_answer(framed(protobuf_of(request(1))), framed(protobuf_of(result("19", 1))));
  expect_answer(framed(protobuf_of(request(1))) + framed(request(2)) + framed(packing::msgpack_of(request(3))) +
                    framed(protobuf_of(request(4))),
                framed(protobuf_of(result("19", 1))) + framed(result("19", 2)) +
                    framed(packing::msgpack_of(result("19", 3))) + framed(protobuf_of(result("19", 4))));
  expect_answer(framed(protobuf_of(call("greet", 7, R"({"name":"Ada"})"))),
                framed(protobuf_of(result(R"("hello Ada")", 7))));
}

TEST(ProtobufFrames, IdsOfEveryKindComeBack) {
  for (const char* id : {"1", "-1", "1.5", "null", R"("x\n")", "18446744073709551615", "18446744073709551616", "-0.0",
                         "-9223372036854775808", "1e400"}) {
    const std::string call = R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":)" + std::string{id} + "}";
    EXPECT_EQ(reply_to(protobuf_of(call)),
              framed(protobuf_of(R"({"jsonrpc":"2.0","result":19,"id":)" + std::string{id} + "}")));
  }
}

TEST(ProtobufFrames, BatchesAreAnsweredAsOne) {
  const std::string note = R"({"jsonrpc":"2.0","method":"subtract","params":[1,2]})";
  expect_answer(framed(protobuf_of("[" + request(1) + "," + note + "," + request(2) + "]")),
                framed(protobuf_of("[" + result("19", 1) + "," + result("19", 2) + "]")));
  expect_answer(framed(protobuf_of("[" + note + "]")) + framed(protobuf_of(request(3))),
                framed(protobuf_of(result("19", 3))));
  EXPECT_EQ(reply_to(from_hex("4a 00")), framed(protobuf_of(kInvalid)));
  EXPECT_EQ(reply_to(from_hex("4a 06 0a 00 0a 02 4a 00")), framed(protobuf_of("[" + kInvalid + "," + kInvalid + "]")));
}

TEST(ProtobufFrames, WhatIsNoMessageCostsItselfAlone) {
  const std::string good = protobuf_of(request(1));
  for (const std::string& bad :
       {good.substr(0, good.size() - 1), good + '\0', from_hex("12 05 61"), from_hex("12 01 ff"), from_hex("58"),
        from_hex("12 01 61 42 03 42 02 0a"), from_hex("12 ff ff ff ff 0f")}) {
    expect_answer(framed(bad) + framed(good), framed(protobuf_of(kParseError)) + framed(protobuf_of(result("19", 1))));
  }
  std::string deep = from_hex("42 00");
  const auto wrap = [&](char tag) {
    std::string length;
    std::size_t size = deep.size();
    for (; size >= 0x80; size >>= 7) length.push_back(static_cast<char>(size | 0x80));
    deep = std::string{tag} + length + static_cast<char>(size) + deep;
  };
  for (int i = 0; i < 300; ++i) {
    wrap('\x0A');
    wrap('\x42');
  }
  wrap('\x42');
  const std::string too_deep = R"({"code":-32700,"message":"Parse error","data":{"limit":"depth"}})";
  EXPECT_EQ(answer({framed(deep) + framed(good)}), with_id(too_deep, "null") + framed(protobuf_of(result("19", 1))));
}

TEST(ProtobufFrames, WhatIsNoRequestIsInvalid) {
  const std::string good = protobuf_of(request(1));
  const std::string invalid = R"({"code":-32600,"message":"Invalid Request"})";
  EXPECT_EQ(reply_to(from_hex("3a 02 18 02")), with_id(invalid, "1"));
  EXPECT_EQ(reply_to(good + from_hex("12 01 61")), with_id(invalid, "1"));        // a method twice
  EXPECT_EQ(reply_to(good + from_hex("3a 02 18 02")), with_id(invalid, "null"));  // an id
  EXPECT_EQ(reply_to(good + from_hex("4a 00")), with_id(invalid, "1"));           // a batch beside it
  EXPECT_EQ(reply_to(good + from_hex("1a 00")), with_id(invalid, "1"));           // a result
  EXPECT_EQ(reply_to(good + from_hex("a0 06 01")), framed(protobuf_of(result("19", 1))));
}

TEST(ProtobufFrames, ParamsWithoutAFormAreRefusedAndNotificationsDropped) {
  const std::string nan = from_hex("42 0d 42 0b 0a 09 29 00 00 00 00 00 00 f8 7f");
  const std::string method = protobuf_of(R"({"jsonrpc":"2.0","method":"subtract"})");
  const std::string refused =
      R"({"code":-32602,"message":"Invalid params","data":{"reason":"a number is NaN or infinite, which JSON cannot express"}})";
  EXPECT_EQ(reply_to(method + from_hex("3a 02 18 02") + nan), with_id(refused, "1"));
  EXPECT_EQ(answer({framed(method + nan) + framed(protobuf_of(request(2)))}), framed(protobuf_of(result("19", 2))));
}

TEST(ProtobufHttp, TheBodyOrAcceptChooses) {
  const auto post = [](std::string_view body, std::string_view fields) {
    return "POST /rpc HTTP/1.1\r\nHost: localhost\r\n" + std::string{fields} +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string{body};
  };
  const auto ok = [](std::string_view body, std::string_view type) {
    return "HTTP/1.1 200 OK\r\nContent-Type: " + std::string{type} +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string{body};
  };
  const std::string protobuf = protobuf_of(request(1));
  const std::string reply = ok(protobuf_of(result("19", 1)), "application/protobuf");
  expect_answer(post(protobuf, "Content-Type: application/x-protobuf\r\n"), reply);
  expect_answer(post(protobuf, ""), reply);
  expect_answer(post(request(1), "Accept: application/x-protobuf\r\n"), reply);
  expect_answer(post(protobuf, "Accept: application/json\r\n"), ok(result("19", 1), "application/json"));
  // Text that begins as a message may is one only to who says so.
  expect_answer(post("hello", "Content-Type: text/plain\r\n"), ok(kParseError, "application/json"));
  expect_answer(post("hello", "Content-Type: application/protobuf\r\n"),
                ok(protobuf_of(kParseError), "application/protobuf"));
}

}  // namespace
}  // namespace wirecall::net
