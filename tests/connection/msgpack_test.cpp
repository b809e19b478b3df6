// Peers that speak MessagePack: over a simulated system cut at every byte, behind a length and by HTTP; and over real
// sockets, beside peers of a broker that speak JSON.
#include "tests/codec/msgpack.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "tests/connection/peer.hpp"
#include "tests/http/served.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/server.hpp"
#include "wirecall/value.hpp"

namespace wirecall::session {
namespace {

using packing::framed;
using packing::from_hex;
using packing::msgpack_of;
using packing::unpacked;
using packing::with;

// A value that JSON has no form for, and an array of it.
constexpr std::string_view kNaN = "cb7ff8000000000000";
constexpr std::string_view kWhyNaN = "a number is NaN or infinite, which JSON cannot express";
constexpr std::string_view kWhyInteger = "an integer is beyond 64 bits, which MessagePack cannot express";

std::string head_of(std::string_view method, int id) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","id":)" + std::to_string(id) + "}";
}
std::string error(int code, std::string_view message, std::string_view why, std::string_view id) {
  std::string text = R"({"jsonrpc":"2.0","error":{"code":)" + std::to_string(code) + R"(,"message":")";
  text.append(message).append("\"");
  if (!why.empty()) text.append(R"(,"data":{"reason":")").append(why).append("\"}");
  return text.append(R"(},"id":)").append(id).append("}");
}
std::string bad_params(std::string_view why, int id) {
  return error(-32602, "Invalid params", why, std::to_string(id));
}
// What a method of the process's own says of params that its types do not take.
std::string refused(std::string_view loc, std::string_view expected, std::string_view got, int id,
                    std::string_view also = {}) {
  std::string text = R"({"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params","data":{"loc":[")";
  text.append(loc).append(R"("],"expected":")").append(expected).append(R"(","got":")").append(got);
  text.append("\"");
  if (!also.empty()) text.append(R"(,"also":[)").append(also).append("]");
  return text.append(R"(}},"id":)").append(std::to_string(id)).append("}");
}
std::string no_integer(std::string_view got, int id) { return refused("numbers", "array of integer", got, id); }

// ---- behind a length ----

TEST(MsgpackFrames, CallsAreAnsweredInKind) {
  expect_answer(framed(msgpack_of(request(1))), framed(msgpack_of(result("19", 1))));
  expect_answer(framed(msgpack_of(request(1))) + framed(request(2)) + framed(msgpack_of(request(3))),
                framed(msgpack_of(result("19", 1))) + framed(result("19", 2)) + framed(msgpack_of(result("19", 3))));
  expect_answer(framed(msgpack_of(call("greet", 7, R"({"name":"Ada"})"))),
                framed(msgpack_of(result(R"("hello Ada")", 7))));
}

TEST(MsgpackFrames, IdsOfEveryKindComeBack) {
  for (const char* id : {"1", "-1", "1.5", "null", R"("x\n")", "18446744073709551615", "-0.0"}) {
    const std::string call = R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":)" + std::string{id} + "}";
    EXPECT_EQ(answer({framed(msgpack_of(call))}),
              framed(msgpack_of(R"({"jsonrpc":"2.0","result":19,"id":)" + std::string{id} + "}")));
  }
}

TEST(MsgpackFrames, BatchesAreAnsweredAsOne) {
  const std::string note = R"({"jsonrpc":"2.0","method":"subtract","params":[1,2]})";
  expect_answer(framed(msgpack_of("[" + request(1) + "," + note + "," + request(2) + "]")),
                framed(msgpack_of("[" + result("19", 1) + "," + result("19", 2) + "]")));
  expect_answer(
      framed(msgpack_of("[" + note + "," + note + "]")) + framed(msgpack_of(note)) + framed(msgpack_of(request(3))),
      framed(msgpack_of(result("19", 3))));
  expect_answer(framed("\x90"), framed(msgpack_of(kInvalid)));
  expect_answer(framed(msgpack_of("[1,[],{}]")),
                framed(msgpack_of("[" + kInvalid + "," + kInvalid + "," + kInvalid + "]")));
}

TEST(MsgpackFrames, WhatIsNoMessagePackCostsItselfAlone) {
  const std::string good = msgpack_of(request(1));
  for (const std::string& bad : {good.substr(0, good.size() - 1), good + '\0', from_hex("81 c1"), from_hex("91 a1 ff"),
                                 from_hex("dd ffffffff"), from_hex("df")}) {
    expect_answer(framed(bad) + framed(good), framed(msgpack_of(kParseError)) + framed(msgpack_of(result("19", 1))));
  }
  const std::string deep = std::string(300, '\x91') + '\xC0';
  const std::string too_deep =
      R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error","data":{"limit":"depth"}},"id":null})";
  EXPECT_EQ(answer({framed(deep) + framed(good)}), framed(msgpack_of(too_deep)) + framed(msgpack_of(result("19", 1))));
  // Neither a map nor an array: taken for JSON, as any other byte.
  for (const char* bad : {"c0", "a161", "ff", "ca00000000", "d9d9f7a0"})
    EXPECT_EQ(answer({framed(from_hex(bad))}), framed(kParseError)) << bad;
}

TEST(MsgpackFrames, WhatIsNoRequestIsInvalid) {
  for (const char* bad : {R"({"jsonrpc":"2.0","method":1,"id":1})", R"({"method":"subtract","id":1})",
                          R"({"jsonrpc":"2.0","method":"subtract","params":5,"id":1})"}) {
    EXPECT_EQ(answer({framed(msgpack_of(bad))}), framed(msgpack_of(error(-32600, "Invalid Request", {}, "1")))) << bad;
  }
  EXPECT_EQ(answer({framed(msgpack_of("{}"))}), framed(msgpack_of(kInvalid)));
  // Keys that are no strings are no members, bytes are no params, and ids no bytes.
  EXPECT_EQ(answer({framed("\x84" + msgpack_of(request(1)).substr(1))}), framed(msgpack_of(result("19", 1))));
  EXPECT_EQ(answer({framed(with(head_of("greet", 1), "params", "c40161"))}),
            framed(msgpack_of(error(-32600, "Invalid Request", {}, "1"))));
  EXPECT_EQ(answer({framed(with(R"({"jsonrpc":"2.0","method":"greet"})", "id", "c40161"))}),
            framed(msgpack_of(kInvalid)));
  EXPECT_EQ(answer({framed(with(R"({"jsonrpc":"2.0","method":"greet"})", "id", kNaN))}), framed(msgpack_of(kInvalid)));
  EXPECT_EQ(answer({framed(with(head_of("greet", 1), "timeout_ms", kNaN))}),
            framed(msgpack_of(error(-32600, "Invalid Request", {}, "1"))));
}

TEST(MsgpackFrames, ParamsThatJsonCannotHoldAreTakenByTheirTypes) {
  const std::string nan = "91" + std::string{kNaN};
  const std::string bad = with(head_of("sum", 5), "params", nan);
  expect_answer(framed(bad) + framed(msgpack_of(request(6))),
                framed(msgpack_of(no_integer("nan", 5))) + framed(msgpack_of(result("19", 6))));
  expect_answer(framed("\x93" + msgpack_of(request(1)) + bad + msgpack_of(request(2))),
                framed(msgpack_of("[" + result("19", 1) + "," + no_integer("nan", 5) + "," + result("19", 2) + "]")));
  EXPECT_EQ(answer({framed(with(head_of("sum", 5), "params", "81 01 02"))}),
            framed(msgpack_of(refused("1", "nothing", "2", 5,
                                      R"({"loc":["numbers"],"expected":"array of integer","got":"nothing"})"))));
  EXPECT_EQ(answer({framed(with(head_of("sum", 5), "params", "91 d4 05 00"))}),
            framed(msgpack_of(no_integer(R"({\"$extension 5\":{\"$bytes\":\"AA==\"}})", 5))));
  // A notification is dropped, alone and in a batch, and a request that is invalid as well is that first.
  const std::string note = with(R"({"jsonrpc":"2.0","method":"sum"})", "params", nan);
  EXPECT_EQ(answer({framed(note) + framed("\x91" + note) + framed(msgpack_of(request(1)))}),
            framed(msgpack_of(result("19", 1))));
  EXPECT_EQ(answer({framed(with(R"({"method":"sum","id":5})", "params", nan))}),
            framed(msgpack_of(error(-32600, "Invalid Request", {}, "5"))));
  // A response is never answered.
  EXPECT_EQ(answer({framed(with(R"({"jsonrpc":"2.0","id":5})", "result", kNaN)) + framed(msgpack_of(request(1)))}),
            framed(msgpack_of(result("19", 1))));
}

TEST(MsgpackFrames, ACallComesToTheSameWhateverStandsBesideIt) {
  const std::string nan = "91" + std::string{kNaN};
  const std::string bad = with(head_of("sum", 5), "params", nan);
  const std::string unknown = with(head_of("nowhere", 6), "params", nan);
  const std::string ping = msgpack_of(R"({"jsonrpc":"2.0","method":"rpc.ping","id":7})");
  const std::string strange = with(head_of("rpc.ping", 8), "params", nan);
  const std::string not_found = error(-32601, "Method not found", {}, "6");
  EXPECT_EQ(answer({framed(unknown)}), framed(msgpack_of(not_found)));
  EXPECT_EQ(answer({framed(ping)}), framed(msgpack_of(result(R"("pong")", 7))));
  EXPECT_EQ(answer({framed("\x94" + unknown + bad + ping + strange)}),
            framed(msgpack_of("[" + not_found + "," + no_integer("nan", 5) + "," + result(R"("pong")", 7) + "," +
                              bad_params(kWhyNaN, 8) + "]")));
}

TEST(MsgpackFrames, ParamsThatAreAScalarAreInvalidWhateverItIs) {
  for (const char* scalar : {"05", "ca3fc00000", kNaN.data(), "a161", "c3", "c40161", "d40500"}) {
    EXPECT_EQ(answer({framed(with(head_of("subtract", 1), "params", scalar))}),
              framed(msgpack_of(error(-32600, "Invalid Request", {}, "1"))))
        << scalar;
  }
  EXPECT_EQ(answer({framed(with(head_of("sum", 1), "params", "c0"))}),
            framed(msgpack_of(refused("numbers", "array of integer", "nothing", 1))));
}

TEST(MsgpackFrames, WhatNobodyLooksAtMayBeAsDeepAsAllowed) {
  Limits limits;
  limits.depth = kDepthMax;
  std::string deep;
  for (int i = 0; i < 4000; ++i) deep += "81a22478";
  for (const std::string_view name : {"foo", "error", "to"}) {
    const std::string got =
        answer({framed(with(request(1), name, deep + "c0")) + framed(msgpack_of(request(2)))}, {}, limits);
    EXPECT_TRUE(got.ends_with(framed(msgpack_of(result("19", 2))))) << name;
  }
}

TEST(MsgpackFrames, AMessageIsTooLargeByItsBytes) {
  const Limits limits{.max_message_size = 300};
  const std::string too_large =
      R"({"jsonrpc":"2.0","error":{"code":-32006,"message":"Too large","data":{"reason":"the message is larger than )"
      R"(allowed","origin":"local","delivered":"no","limit":"max_message_size"}},"id":null})";
  const auto greet = [](const std::string& name_hex) { return with(head_of("greet", 1), "params", "91" + name_hex); };
  std::string controls = "d964";
  std::string controls_json;
  for (int i = 0; i < 100; ++i) {
    controls += "01";
    controls_json += "\\u0001";
  }
  EXPECT_EQ(
      answer({framed(msgpack_of(request(1))) + framed(greet(controls)) + framed(msgpack_of(request(2)))}, {}, limits),
      framed(msgpack_of(result("19", 1))) + framed(msgpack_of(result("\"hello " + controls_json + "\"", 1))) +
          framed(msgpack_of(result("19", 2))));
  // What is said to wirecall itself becomes JSON, at most twice as large.
  EXPECT_EQ(answer({framed(with(head_of("rpc.ping", 1), "params", "91" + controls))}, {}, limits),
            framed(msgpack_of(bad_params("as JSON it is larger than a message may be", 1))));
  std::string bytes = "c4c8";
  for (int i = 0; i < 200; ++i) bytes += "ff";
  const std::string got = answer({framed(greet(bytes)) + framed(msgpack_of(request(2)))}, {}, limits);
  EXPECT_TRUE(got.ends_with(framed(msgpack_of(result("19", 2))))) << got;
  EXPECT_EQ(answer({framed(msgpack_of(request(1))) + framed(std::string(301, '\x90'))}, {}, limits),
            framed(msgpack_of(result("19", 1))) + framed(msgpack_of(too_large)));
}

TEST(MsgpackFrames, BytesExtensionsAndTimesReachTypedHandlers) {
  Http server;
  server.registry.method(
      "reversed", [](std::vector<std::byte> data) { return std::vector<std::byte>(data.rbegin(), data.rend()); });
  server.registry.method("array", [](Extension data) {
    data.data.push_back(std::byte{7});
    return data;
  });
  server.registry.method("next", [](std::chrono::sys_seconds time) { return time + std::chrono::seconds{1}; });
  server.registry.method("echo", [](Value value) { return value; });
  const auto ask = [&](std::string_view method, std::string_view params_hex) {
    const std::string got = server.ask(framed(with(head_of(method, 1), "params", params_hex)));
    const std::string tail = msgpack_of(R"({"id":1})").substr(1);
    const std::string result_head = '\x83' + msgpack_of(R"({"jsonrpc":"2.0"})").substr(1) + msgpack_of(R"("result")");
    EXPECT_TRUE(got.substr(4).starts_with(result_head) && got.ends_with(tail)) << unpacked(got.substr(4));
    return packing::to_hex(got.substr(4 + result_head.size(), got.size() - 4 - result_head.size() - tail.size()));
  };
  EXPECT_EQ(ask("reversed", "91 c4 03 01 02 ff"), "c4 03 ff 02 01");
  EXPECT_EQ(ask("array", "91 c7 03 4e 01 02 03"), "d6 4e 01 02 03 07");
  EXPECT_EQ(ask("array", "91 d4 49 01"), "d5 49 01 07");
  EXPECT_EQ(ask("next", "91 d6 ff 00 00 00 00"), packing::to_hex(msgpack_of(R"("1970-01-01T00:00:01Z")")));
  EXPECT_EQ(ask("echo", "91 c4 01 ff"), "c4 01 ff");
  EXPECT_EQ(ask("echo", "91 81 a2 24 78 01"), "81 a2 24 78 01");
  EXPECT_EQ(ask("echo", "91 cb 40 08 00 00 00 00 00 00"), "cb 40 08 00 00 00 00 00 00");
  EXPECT_EQ(ask("echo", "91 d6 4e 01 02 03 04"), "d6 4e 01 02 03 04");
}

TEST(MsgpackFrames, ResultsThatItCannotHoldAreInternalErrors) {
  Http server;
  server.registry.method("huge", [] { return Value::array({Value::number("18446744073709551616")}); });
  EXPECT_EQ(server.ask(framed(msgpack_of(call("huge", 1)))),
            framed(msgpack_of(error(-32603, "Internal error", {}, "1"))));
  EXPECT_EQ(server.ask(framed(call("huge", 2))), framed(result("[18446744073709551616]", 2)));
  EXPECT_EQ(server.ask(framed(msgpack_of("[" + call("huge", 1) + "," + request(2) + "]"))),
            framed(msgpack_of("[" + error(-32603, "Internal error", {}, "1") + "," + result("19", 2) + "]")));
}

TEST(MsgpackFrames, ALateAnswerIsInTheCodecOfItsRequest) {
  Http server;
  EXPECT_EQ(server.ask(framed(msgpack_of(call("wait", 1))) + framed(msgpack_of(call("wait", 2)))), "");
  server.waiting.answer(0, "a");
  server.turns();
  EXPECT_EQ(server.peer->take(), framed(msgpack_of(result(R"("a")", 1))));
  EXPECT_EQ(server.ask(framed(request(3))), framed(result("19", 3)));
  server.waiting.answer(1, "b");
  server.turns();
  EXPECT_EQ(server.peer->take(), framed(msgpack_of(result(R"("b")", 2))));
  EXPECT_EQ(server.ask(framed(call("wait", 4)) + framed(msgpack_of(request(5)))), framed(msgpack_of(result("19", 5))));
  server.waiting.answer(2, "c");
  server.turns();
  EXPECT_EQ(server.peer->take(), framed(result(R"("c")", 4)));
}

TEST(MsgpackFrames, StreamsSendTheirItemsInIt) {
  Http server;
  server.registry.method("count", [](int n) -> Stream<int> {
    for (int i = 0; i < n; ++i) co_yield i;
  });
  const std::string got =
      server.ask(framed(msgpack_of(R"({"jsonrpc":"2.0","method":"count","params":[2],"stream":9,"id":1})")));
  const auto item = [](int seq) {
    return framed(msgpack_of(R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":1,"seq":)" + std::to_string(seq) +
                             R"(,"value":)" + std::to_string(seq) + "}}"));
  };
  EXPECT_EQ(got, item(0) + item(1) + framed(msgpack_of(result("null", 1))));
}

TEST(MsgpackFrames, AStreamEndsAtAnItemThatItCannotHold) {
  Http server;
  server.registry.method("numbers", []() -> Stream<Value> {
    co_yield Value{1};
    co_yield Value::number("18446744073709551616");
    co_yield Value{3};
  });
  for (const int credit : {1, 9}) {
    const std::string stream = R"({"jsonrpc":"2.0","method":"numbers","stream":)" + std::to_string(credit);
    std::string got = server.ask(framed(msgpack_of(stream + R"(,"id":1})")));
    got += server.ask(framed(msgpack_of(R"({"jsonrpc":"2.0","method":"rpc.credit","params":{"id":1,"n":5}})")));
    EXPECT_EQ(got, framed(msgpack_of(R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":1,"seq":0,"value":1}})")) +
                       framed(msgpack_of(error(-32603, "Internal error", {}, "1"))));
    EXPECT_FALSE(server.connection->busy());
  }
}

TEST(MsgpackFrames, OnTextStreamsItIsNoJson) {
  EXPECT_EQ(answer({msgpack_of(request(1))}), kParseError + "\n");
  EXPECT_EQ(answer({request(1) + "\n" + msgpack_of(request(2)) + "\n" + request(3) + "\n"}),
            result("19", 1) + "\n" + kParseError + "\n" + result("19", 3) + "\n");
  const std::string body = msgpack_of(request(1));
  const std::string got = answer({"Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body});
  EXPECT_TRUE(got.ends_with(kParseError)) << got;
}

// ---- by HTTP ----

const std::string kType = "Content-Type: application/msgpack\r\n";

std::string ok_msgpack(std::string_view json, std::string_view status = "200 OK", std::string_view fields = {}) {
  const std::string body = msgpack_of(json);
  return "HTTP/1.1 " + std::string{status} + "\r\n" + std::string{fields} +
         "Content-Type: application/msgpack\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(MsgpackHttp, BodiesAreAnsweredInKind) {
  for (const std::string_view type : {"application/msgpack", "application/x-msgpack", "application/vnd.msgpack",
                                      "Application/MsgPack; version=1", "application/json", "text/plain"}) {
    const std::string field = "Content-Type: " + std::string{type} + "\r\n";
    expect_answer(post(msgpack_of(request(1)), field), ok_msgpack(result("19", 1)));
  }
  expect_answer(post(msgpack_of(request(1))) + post(request(2)) + post(msgpack_of(request(3))),
                ok_msgpack(result("19", 1)) + ok(result("19", 2)) + ok_msgpack(result("19", 3)));
}

TEST(MsgpackHttp, AcceptChoosesTheFirstThatItNames) {
  const auto accept = [](std::string_view value) { return "Accept: " + std::string{value} + "\r\n"; };
  for (const std::string_view json : {"application/json", "application/json, application/msgpack",
                                      "text/html, Application/JSON;q=0.9 , application/msgpack"}) {
    EXPECT_EQ(answer({post(msgpack_of(request(1)), kType + accept(json))}), ok(result("19", 1))) << json;
  }
  for (const std::string_view msgpack : {"application/msgpack", "application/x-msgpack", "*/*, application/vnd.msgpack",
                                         "application/msgpack;q=1, application/json"}) {
    EXPECT_EQ(answer({post(request(1), accept(msgpack))}), ok_msgpack(result("19", 1))) << msgpack;
  }
  for (const std::string_view neither : {"*/*", "text/html", ""}) {
    EXPECT_EQ(answer({post(request(1), accept(neither))}), ok(result("19", 1))) << neither;
    EXPECT_EQ(answer({post(msgpack_of(request(1)), accept(neither))}), ok_msgpack(result("19", 1))) << neither;
  }
  EXPECT_EQ(answer({get("/rpc/sum?numbers=[1,2]", accept("application/msgpack"))}), ok_msgpack(result("3", 1)));
  // It is said for one request, and not for the next one.
  EXPECT_EQ(answer({post(request(1), accept("application/msgpack")) + post(request(2))}),
            ok_msgpack(result("19", 1)) + ok(result("19", 2)));
}

TEST(MsgpackHttp, ARequestDoesNotSayHowTheNextIsAnswered) {
  const std::string json = "Accept: application/json\r\n";
  const std::string good = msgpack_of(request(1));
  EXPECT_EQ(answer({post(good, kType) + post(good.substr(1), kType + json)}),
            ok_msgpack(result("19", 1)) + ok(kParseError));
  EXPECT_EQ(answer({post(good, kType) + post("{", "")}), ok_msgpack(result("19", 1)) + ok(kParseError));
}

TEST(MsgpackHttp, NotificationsHaveNoBody) {
  const std::string note = msgpack_of(R"({"jsonrpc":"2.0","method":"subtract","params":[1,2]})");
  expect_answer(post(note, kType) + post(msgpack_of(request(1)), kType),
                "HTTP/1.1 204 No Content\r\n\r\n" + ok_msgpack(result("19", 1)));
  const std::string nan = with(R"({"jsonrpc":"2.0","method":"sum"})", "params", "91" + std::string{kNaN});
  EXPECT_EQ(answer({post(nan, kType)}), "HTTP/1.1 204 No Content\r\n\r\n");
}

TEST(MsgpackHttp, ErrorsAreSaidInIt) {
  const std::string good = msgpack_of(request(1));
  expect_answer(post(good.substr(1), kType) + post(good, kType), ok_msgpack(kParseError) + ok_msgpack(result("19", 1)));
  expect_answer(post(good.substr(0, 9)) + post(good), ok_msgpack(kParseError) + ok_msgpack(result("19", 1)));
  expect_answer(post("", kType), ok_msgpack(kParseError));
  const std::string bad = with(head_of("sum", 5), "params", "91" + std::string{kNaN});
  expect_answer(post(bad, kType), ok_msgpack(no_integer("nan", 5)));
  expect_answer(post(bad, "Accept: application/json\r\n"), ok(bad_params(kWhyNaN, 5)));
  expect_answer(post("\x92" + msgpack_of(request(1)) + bad, kType),
                ok_msgpack("[" + result("19", 1) + "," + no_integer("nan", 5) + "]"));
}

TEST(MsgpackHttp, AMessageThatIsTooLargeAsJsonIs413) {
  std::string controls = "91da0100";
  for (int i = 0; i < 256; ++i) controls += "01";
  const std::string got =
      answer({post(with(head_of("nowhere", 1), "params", controls), kType + "Accept: application/json\r\n")}, {},
             {.max_message_size = 400});
  EXPECT_TRUE(got.starts_with("HTTP/1.1 413 ")) << got;
  EXPECT_NE(got.find("Content-Type: application/json\r\n"), std::string::npos);
  EXPECT_TRUE(got.substr(got.find("\r\n\r\n") + 4).starts_with(R"({"jsonrpc":"2.0","error":{"code":-32006)"));
}

TEST(MsgpackHttp, BodiesInChunksAndAnswersInOrderAreTheSame) {
  const std::string body = msgpack_of(request(1));
  char size[8];
  std::snprintf(size, sizeof size, "%zx", body.size());
  expect_answer("POST / HTTP/1.1\r\nHost: localhost\r\n" + kType + "Transfer-Encoding: chunked\r\n\r\n" + size +
                    "\r\n" + body + "\r\n0\r\n\r\n",
                ok_msgpack(result("19", 1)));
  Http server;
  EXPECT_EQ(server.ask(post(msgpack_of(call("wait", 1))) + post(request(2)) + post(msgpack_of(request(3)))), "");
  server.waiting.answer(0, "a");
  server.turns();
  EXPECT_EQ(server.peer->take(), ok_msgpack(result(R"("a")", 1)) + ok(result("19", 2)) + ok_msgpack(result("19", 3)));
}

TEST(MsgpackHttp, ADrainingServerSaysSoInIt) {
  Http server;
  EXPECT_EQ(server.ask(post(msgpack_of(request(1)))), ok_msgpack(result("19", 1)));
  server.connection->drain();
  const std::string got = server.ask(post(msgpack_of(request(2))));
  EXPECT_TRUE(got.starts_with("HTTP/1.1 503 ")) << got;
  EXPECT_NE(got.find("Content-Type: application/msgpack\r\n"), std::string::npos);
  EXPECT_NE(unpacked(got.substr(got.find("\r\n\r\n") + 4)).find("-32009"), std::string::npos);
}

// ---- at a broker ----

/// A raw peer of a broker that speaks MessagePack behind a length.
struct MsgpackPeer {
  explicit MsgpackPeer(const Endpoint& endpoint) : peer(endpoint) {}
  void send(std::string_view message) { peer.send(framed(message)); }
  void say(std::string_view json) { send(msgpack_of(json)); }
  std::string bytes() {
    const std::string head = peer.take(4);
    std::size_t size = 0;
    for (const char c : head) size = size << 8 | static_cast<unsigned char>(c);
    return peer.take(size);
  }
  std::string json() { return unpacked(bytes()); }

  RawPeer peer;
};

// What JSON has no form for, and what it would write in another one.
constexpr std::string_view kOnlyHere =
    "97 cb7ff8000000000000 ca3fc00000 81 01 02 d4 05 ff d7ff0000000000000001 cd 0001 c4 01 ff";

class MsgpackBroker : public testing::Test {
 protected:
  MsgpackBroker() : endpoint_(broker_.listen("tcp://127.0.0.1:0")), running_(broker_) {}

  static std::string line_of(std::string_view method, std::string_view params, std::string_view id = {}) {
    std::string text = R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params};
    if (!id.empty()) text.append(R"(,"id":)").append(id);
    return text + "}";
  }
  static void subscribe(MsgpackPeer& peer) {
    peer.say(line_of("rpc.subscribe", R"({"topic":"news.*"})", "1"));
    EXPECT_EQ(peer.json(), result("true", 1));
  }
  // The request as the first of its members that JSON can hold, for its id.
  static std::string without_params(const std::string& request) {
    const std::string name = msgpack_of(R"("params")");
    const std::size_t at = request.find(name);
    const std::size_t bytes = name.size() + from_hex(kOnlyHere).size();
    std::string rest = request.substr(0, at) + request.substr(at + bytes);
    rest[0] = static_cast<char>(rest[0] - 1);
    return rest;
  }
  static std::string item_of(std::string_view id, int seq, std::string_view value_hex) {
    const std::string head = R"({"id":)" + std::string{id} + R"(,"seq":)" + std::to_string(seq) + "}";
    return with(R"({"jsonrpc":"2.0","method":"rpc.item"})", "params", packing::to_hex(with(head, "value", value_hex)));
  }
  // The response whose result is kOnlyHere, with its members in the order in which a broker writes them.
  static std::string only_here_of(std::string_view id) {
    std::string text = msgpack_of(R"({"jsonrpc":"2.0"})");
    text[0] = '\x83';
    return text + msgpack_of(R"("result")") + from_hex(kOnlyHere) + msgpack_of(R"("id")") + msgpack_of(id);
  }
  static std::string id_of(const std::string& request) { return Value::parse(request)->at("id").dump(); }

  Broker broker_;
  Endpoint endpoint_;
  RunningServer running_;
};

TEST_F(MsgpackBroker, CallersAndProvidersNeedNotSpeakTheSame) {
  MsgpackPeer provider{endpoint_};
  provider.say(line_of("rpc.register", R"({"method":"twice"})", "1"));
  EXPECT_EQ(provider.json(), result("1", 1));
  RawPeer lines{endpoint_};
  lines.send(line_of("rpc.register", R"({"method":"thrice"})", "1") + "\n");
  EXPECT_EQ(lines.line(), result("1", 1));

  lines.send(line_of("twice", R"([{"$bytes":"AP8="},{"$":{"$x":1}},1.0])", "7") + "\n");
  const std::string asked = provider.bytes();
  EXPECT_NE(asked.find(from_hex("93 c4 02 00 ff 81 a2 24 78 01 cb 3f f0 00 00 00 00 00 00")), std::string::npos)
      << packing::to_hex(asked);
  provider.send(with(R"({"jsonrpc":"2.0","id":)" + id_of(unpacked(asked)) + "}", "result", "92 c4 01 01 d4 4e 02"));
  EXPECT_EQ(lines.line(), R"({"jsonrpc":"2.0","id":7,"result":[{"$bytes":"AQ=="},{"$npy":"Ag=="}]})");

  provider.send(with(head_of("thrice", 8), "params", "91 c4 01 ff"));
  const std::string request = lines.line();
  EXPECT_NE(request.find(R"("params":[{"$bytes":"/w=="}])"), std::string::npos) << request;
  lines.send(R"({"jsonrpc":"2.0","result":{"$image":"AQ=="},"id":)" + id_of(request) + "}\n");
  EXPECT_NE(provider.bytes().find(from_hex("d4 49 01")), std::string::npos);
}

TEST_F(MsgpackBroker, BetweenTwoThatSpeakItValuesAreWhatTheyWere) {
  MsgpackPeer provider{endpoint_};
  provider.say(R"({"jsonrpc":"2.0","method":"rpc.register","params":{"method":"echo","concurrency":1},"id":1})");
  EXPECT_EQ(provider.json(), result("1", 1));
  MsgpackPeer caller{endpoint_};
  const std::string params = from_hex(kOnlyHere);
  // The second one waits for the first, and is kept meanwhile; `to` goes, other members stay.
  const std::string traced =
      R"({"jsonrpc":"2.0","method":"echo","id":"a","timeout_ms":9000,"traceparent":"00-1","from":"x"})";
  caller.send(with(traced, "params", kOnlyHere));
  caller.send(with(head_of("echo", 3), "params", kOnlyHere));
  for (const std::string_view id : {R"("a")", "3"}) {
    const std::string asked = provider.bytes();
    EXPECT_NE(asked.find(msgpack_of(R"("params")") + params), std::string::npos) << packing::to_hex(asked);
    EXPECT_EQ(asked.find("from"), std::string::npos);
    EXPECT_EQ(asked.find("traceparent") != std::string::npos, id != "3");
    const std::string own = id_of(unpacked(without_params(asked)));
    provider.send(with(R"({"jsonrpc":"2.0","id":)" + own + "}", "result", kOnlyHere));
    const std::string answer = caller.bytes();
    EXPECT_NE(answer.find(msgpack_of(R"("result")") + params), std::string::npos) << packing::to_hex(answer);
    EXPECT_TRUE(answer.ends_with(msgpack_of(R"("id")") + msgpack_of(id))) << packing::to_hex(answer);
  }
  // An error of the provider's is one of JSON's, and arrives.
  caller.send(with(head_of("echo", 4), "params", kOnlyHere));
  const std::string own = id_of(unpacked(without_params(provider.bytes())));
  provider.say(R"({"jsonrpc":"2.0","error":{"code":7,"message":"no","data":[1]},"id":)" + own + "}");
  EXPECT_EQ(caller.json(), R"({"jsonrpc":"2.0","error":{"code":7,"message":"no","data":[1]},"id":4})");
}

TEST_F(MsgpackBroker, ACallThatWaitsForAProviderOfTheOtherEncodingIsRefusedForItsValues) {
  MsgpackPeer busy{endpoint_};
  busy.say(R"({"jsonrpc":"2.0","method":"rpc.register","params":{"method":"echo","concurrency":1},"id":1})");
  EXPECT_EQ(busy.json(), result("1", 1));
  MsgpackPeer caller{endpoint_};
  caller.send(with(head_of("echo", 2), "params", "91 01"));
  const std::string first = id_of(busy.json());
  caller.send(with(head_of("echo", 3), "params", "91" + std::string{kNaN}));
  caller.send(with(head_of("echo", 4), "params", "91 02"));
  // It goes over to JSON with its answer.
  busy.send(R"({"jsonrpc":"2.0","result":9,"id":)" + first + "}");
  EXPECT_EQ(caller.json(), result("9", 2));
  EXPECT_EQ(caller.json(), bad_params(kWhyNaN, 3));
  const std::string next = busy.bytes();
  EXPECT_NE(next.find(R"("params":[2])"), std::string::npos) << next;
  busy.send(R"({"jsonrpc":"2.0","result":8,"id":)" + id_of(next) + "}");
  EXPECT_EQ(caller.json(), result("8", 4));
}

TEST_F(MsgpackBroker, WhatTheOtherCannotHoldIsAnErrorForTheCallAlone) {
  MsgpackPeer provider{endpoint_};
  provider.say(line_of("rpc.register", R"({"method":"echo"})", "1"));
  EXPECT_EQ(provider.json(), result("1", 1));
  RawPeer caller{endpoint_};
  caller.send(line_of("echo", "[18446744073709551616]", "2") + "\n");
  EXPECT_EQ(caller.line(), bad_params(kWhyInteger, 2));
  caller.send(line_of("echo", "[1]", "3") + "\n");
  const std::string id = id_of(provider.json());
  provider.send(with(R"({"jsonrpc":"2.0","id":)" + id + "}", "result", kNaN));
  const Value answer = *Value::parse(caller.line());
  EXPECT_EQ(answer.at("id").as_int(), 3);
  EXPECT_EQ(answer.at("error").at("code").as_int(), -32603);
  EXPECT_EQ(answer.at("error").at("data").at("reason").as_string(), kWhyNaN);
  // And the provider goes on.
  caller.send(line_of("echo", "[1]", "4") + "\n");
  provider.say(R"({"jsonrpc":"2.0","result":9,"id":)" + id_of(provider.json()) + "}");
  EXPECT_EQ(caller.line(), result("9", 4));
}

TEST_F(MsgpackBroker, WhatNestsTooDeepAsJsonIsAnErrorForTheCallAlone) {
  RawPeer provider{endpoint_};
  provider.send(line_of("rpc.register", R"({"method":"echo"})", "1") + "\n");
  EXPECT_EQ(provider.line(), result("1", 1));
  MsgpackPeer caller{endpoint_};
  std::string deep = "91";
  for (int i = 0; i < 200; ++i) deep += "81a22478";
  caller.send(with(head_of("echo", 2), "params", deep + "c0"));
  EXPECT_EQ(caller.json(), bad_params("as JSON they nest deeper than a message may", 2));
  caller.say(line_of("echo", "[1]", "3"));
  provider.send(R"({"jsonrpc":"2.0","result":9,"id":)" + id_of(provider.line()) + "}\n");
  EXPECT_EQ(caller.json(), result("9", 3));
}

TEST_F(MsgpackBroker, AStreamWhoseItemTheCallerCannotHoldEndsAndItsProviderIsTold) {
  MsgpackPeer provider{endpoint_};
  provider.say(line_of("rpc.register", R"({"method":"items"})", "1"));
  EXPECT_EQ(provider.json(), result("1", 1));
  RawPeer caller{endpoint_};
  caller.send(R"({"jsonrpc":"2.0","method":"items","stream":5,"id":2})" + std::string{"\n"});
  const std::string id = id_of(provider.json());
  provider.send(
      with(R"({"jsonrpc":"2.0","method":"rpc.item"})", "params",
           "83 a2 69 64 " + packing::to_hex(msgpack_of(id)) + " a3 73 65 71 00 a5 76 61 6c 75 65" + std::string{kNaN}));
  EXPECT_EQ(Value::parse(caller.line())->at("error").at("code").as_int(), -32603);
  EXPECT_EQ(provider.json(), R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":)" + id + "}}");
}

TEST_F(MsgpackBroker, ItemsStayAsTheyAreForACallerThatSpeaksTheSame) {
  MsgpackPeer provider{endpoint_};
  provider.say(line_of("rpc.register", R"({"method":"items","concurrency":1})", "1"));
  EXPECT_EQ(provider.json(), result("1", 1));
  MsgpackPeer caller{endpoint_};
  const std::string params = msgpack_of(R"("params")") + from_hex(kOnlyHere);
  // The second one waits for the first, and is kept meanwhile.
  for (const std::string_view id : {R"("a")", "3"}) {
    const std::string request = R"({"jsonrpc":"2.0","method":"items","stream":3,"id":)" + std::string{id} + "}";
    caller.send(with(request, "params", kOnlyHere));
  }
  for (const std::string_view id : {R"("a")", "3"}) {
    const std::string asked = provider.bytes();
    EXPECT_NE(asked.find(params), std::string::npos) << packing::to_hex(asked);
    const Value read = *Value::parse(unpacked(without_params(asked)));
    EXPECT_EQ(read.at("stream").as_int(), 3);
    const std::string own = read.at("id").dump();
    provider.send(item_of(own, 0, kOnlyHere));
    EXPECT_EQ(caller.bytes(), item_of(id, 0, kOnlyHere));
    provider.send(item_of(own, 1, "c4 01 ff"));
    EXPECT_EQ(caller.bytes(), item_of(id, 1, "c4 01 ff"));
    const std::string whole = item_of(own, 2, kOnlyHere);
    for (const std::size_t size : {whole.size() / 2, whole.size() - 1}) {
      provider.send(whole.substr(0, size));
      EXPECT_EQ(provider.json(), kParseError);
    }
    provider.send(whole);
    EXPECT_EQ(caller.bytes(), item_of(id, 2, kOnlyHere));
    provider.send(with(R"({"jsonrpc":"2.0","id":)" + own + "}", "result", kOnlyHere));
    const std::string answer = caller.bytes();
    EXPECT_NE(answer.find(msgpack_of(R"("result")") + from_hex(kOnlyHere)), std::string::npos)
        << packing::to_hex(answer);
  }
}

TEST_F(MsgpackBroker, AnItemEndsTheStreamOfWhoCannotHoldItAndNoOther) {
  MsgpackPeer provider{endpoint_};
  provider.say(line_of("rpc.register", R"({"method":"items"})", "1"));
  EXPECT_EQ(provider.json(), result("1", 1));
  const std::string request = R"({"jsonrpc":"2.0","method":"items","stream":9,"id":7})";
  RawPeer reader{endpoint_};
  reader.send(request + "\n");
  const std::string of_reader = id_of(provider.json());
  MsgpackPeer caller{endpoint_};
  caller.say(request);
  const std::string of_caller = id_of(provider.json());
  for (const std::string& own : {of_reader, of_caller}) provider.send(item_of(own, 0, "c4 01 ff"));
  EXPECT_EQ(reader.line(),
            R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":7,"seq":0,"value":{"$bytes":"/w=="}}})");
  EXPECT_EQ(caller.bytes(), item_of("7", 0, "c4 01 ff"));
  for (const std::string& own : {of_reader, of_caller}) provider.send(item_of(own, 1, kNaN));
  EXPECT_EQ(reader.line(), error(-32603, "Internal error", kWhyNaN, "7"));
  EXPECT_EQ(provider.json(), R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":)" + of_reader + "}}");
  EXPECT_EQ(caller.bytes(), item_of("7", 1, kNaN));
  provider.say(R"({"jsonrpc":"2.0","result":null,"id":)" + of_caller + "}");
  EXPECT_EQ(caller.json(), result("null", 7));
  reader.send(call("rpc.ping", 8) + "\n");
  EXPECT_EQ(reader.line(), result(R"("pong")", 8));
}

TEST_F(MsgpackBroker, ItemsInJsonBecomeMessagePackForACallerThatSpeaksIt) {
  RawPeer provider{endpoint_};
  provider.send(line_of("rpc.register", R"({"method":"items"})", "1") + "\n");
  EXPECT_EQ(provider.line(), result("1", 1));
  const auto item = [](std::string_view id, std::string_view value) {
    return R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":)" + std::string{id} + R"(,"seq":0,"value":)" +
           std::string{value} + "}}\n";
  };
  MsgpackPeer caller{endpoint_};
  for (const int id : {7, 8}) {
    caller.say(R"({"jsonrpc":"2.0","method":"items","stream":9,"id":)" + std::to_string(id) + "}");
    const std::string own = id_of(provider.line());
    provider.send(item(own, R"({"$bytes":"/w=="})"));
    EXPECT_EQ(caller.bytes(), item_of(std::to_string(id), 0, "c4 01 ff"));
    provider.send(item(own, "18446744073709551616"));
    EXPECT_EQ(caller.json(), error(-32603, "Internal error", kWhyInteger, std::to_string(id)));
    EXPECT_EQ(provider.line(), R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":)" + own + "}}");
  }
}

TEST_F(MsgpackBroker, AStreamWhoseProviderGoesOverToTheOtherEncodingGoesOn) {
  MsgpackPeer provider{endpoint_};
  provider.say(line_of("rpc.register", R"({"method":"items"})", "1"));
  EXPECT_EQ(provider.json(), result("1", 1));
  MsgpackPeer caller{endpoint_};
  caller.say(R"({"jsonrpc":"2.0","method":"items","stream":9,"id":7})");
  const std::string own = id_of(provider.json());
  provider.send(item_of(own, 0, kNaN));
  EXPECT_EQ(caller.bytes(), item_of("7", 0, kNaN));
  provider.send(R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":)" + own + R"(,"seq":1,"value":5}})");
  EXPECT_EQ(caller.bytes(), item_of("7", 1, "05"));
  provider.send(item_of(own, 2, "06"));
  EXPECT_EQ(caller.bytes(), item_of("7", 2, "06"));
  provider.send(R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":)" + own +
                R"(,"seq":3,"value":18446744073709551616}})");
  EXPECT_EQ(caller.json(), error(-32603, "Internal error", kWhyInteger, "7"));
}

TEST_F(MsgpackBroker, ProgressCarriesItemsAsTheyAre) {
  MsgpackPeer provider{endpoint_};
  provider.say(line_of("rpc.register", R"({"method":"items"})", "1"));
  EXPECT_EQ(provider.json(), result("1", 1));
  const auto progress = [](std::string_view token, std::string_view value_hex) {
    const std::string params = with(R"({"token":)" + std::string{token} + "}", "value", value_hex);
    return with(R"({"jsonrpc":"2.0","method":"$/progress"})", "params", packing::to_hex(params));
  };
  MsgpackPeer caller{endpoint_};
  caller.say(line_of("items", R"({"partialResultToken":"mine"})", "7"));
  const std::string asked = provider.json();
  const std::string own = id_of(asked);
  const std::string token = Value::parse(asked)->at("params").at("partialResultToken").dump();
  provider.send(item_of(own, 0, kOnlyHere));
  EXPECT_EQ(caller.bytes(), progress(R"("mine")", kOnlyHere));
  provider.send(progress(token, kNaN));
  EXPECT_EQ(caller.bytes(), progress(R"("mine")", kNaN));
  provider.send(with(R"({"jsonrpc":"2.0","id":)" + own + "}", "result", kOnlyHere));
  EXPECT_TRUE(
      caller.bytes().ends_with(msgpack_of(R"("result")") + from_hex(kOnlyHere) + msgpack_of(R"("id")") + "\x07"));
}

TEST_F(MsgpackBroker, ItemsForNobodyAreDropped) {
  MsgpackPeer provider{endpoint_};
  provider.say(line_of("rpc.register", R"({"method":"items"})", "1"));
  EXPECT_EQ(provider.json(), result("1", 1));
  MsgpackPeer caller{endpoint_};
  caller.say(R"({"jsonrpc":"2.0","method":"items","stream":9,"id":7})");
  const std::string own = id_of(provider.json());
  for (const std::string_view other : {"-1", "1.0", R"("0")", "null", "true", "[1]", "{}", "18446744073709551615"})
    provider.send(item_of(other, 0, kNaN));
  for (const std::string_view params : {"90", "80", "91 c0", "81 01 02", "c0"})
    provider.send(with(R"({"jsonrpc":"2.0","method":"rpc.item"})", "params", params));
  provider.send(item_of(own, 0, kNaN));
  EXPECT_EQ(caller.bytes(), item_of("7", 0, kNaN));
}

TEST_F(MsgpackBroker, ElementsOfABatchStayAsTheyAre) {
  MsgpackPeer provider{endpoint_};
  provider.say(line_of("rpc.register", R"({"method":"echo"})", "1"));
  EXPECT_EQ(provider.json(), result("1", 1));
  MsgpackPeer subscriber{endpoint_};
  subscribe(subscriber);
  MsgpackPeer caller{endpoint_};
  const std::string event = with(R"({"jsonrpc":"2.0","method":"news.a"})", "params", kOnlyHere);
  const std::string terms = with(R"({"topic":"news.a"})", "params", kOnlyHere);
  const std::string params = msgpack_of(R"("params")") + from_hex(kOnlyHere);
  caller.send("\x95" + with(head_of("echo", 1), "params", kOnlyHere) + event + msgpack_of("5") +
              with(head_of("echo", 2), "params", kOnlyHere) +
              with(head_of("rpc.publish", 3), "params", packing::to_hex(terms)));
  for (int times = 0; times < 2; ++times) EXPECT_EQ(subscriber.bytes(), event);
  for (int times = 0; times < 2; ++times) {
    const std::string asked = provider.bytes();
    EXPECT_NE(asked.find(params), std::string::npos) << packing::to_hex(asked);
    provider.send(only_here_of(id_of(unpacked(without_params(asked)))));
  }
  EXPECT_EQ(caller.bytes(),
            "\x94" + only_here_of("1") + msgpack_of(kInvalid) + only_here_of("2") + msgpack_of(result("1", 3)));
}

TEST_F(MsgpackBroker, AnElementThatItsProviderCannotHoldIsRefusedAlone) {
  RawPeer provider{endpoint_};
  provider.send(line_of("rpc.register", R"({"method":"echo"})", "1") + "\n");
  EXPECT_EQ(provider.line(), result("1", 1));
  MsgpackPeer caller{endpoint_};
  caller.send("\x92" + with(head_of("echo", 1), "params", "91" + std::string{kNaN}) +
              with(head_of("echo", 2), "params", "91 c4 01 ff"));
  const std::string asked = provider.line();
  EXPECT_NE(asked.find(R"("params":[{"$bytes":"/w=="}])"), std::string::npos) << asked;
  provider.send(R"({"jsonrpc":"2.0","id":)" + id_of(asked) + R"(,"result":{"$bytes":"AA=="}})" + "\n");
  EXPECT_EQ(caller.bytes(),
            "\x92" + msgpack_of(bad_params(kWhyNaN, 1)) + with(R"({"jsonrpc":"2.0","id":2})", "result", "c4 01 00"));
}

TEST_F(MsgpackBroker, ResponsesInABatchStayAsTheyAre) {
  MsgpackPeer provider{endpoint_};
  provider.say(line_of("rpc.register", R"({"method":"echo"})", "1"));
  EXPECT_EQ(provider.json(), result("1", 1));
  MsgpackPeer caller{endpoint_};
  RawPeer reader{endpoint_};
  caller.say(call("echo", 1));
  const std::string first = id_of(provider.json());
  reader.send(call("echo", 2) + "\n");
  const std::string second = id_of(provider.json());
  caller.say(call("echo", 3));
  const std::string third = id_of(provider.json());
  provider.send("\x94" + only_here_of(first) + only_here_of(second) + msgpack_of(head_of("rpc.ping", 9)) +
                msgpack_of(R"({"jsonrpc":"2.0","error":{"code":7,"message":"no"},"id":)" + third + "}"));
  EXPECT_EQ(caller.bytes(), only_here_of("1"));
  EXPECT_EQ(caller.json(), R"({"jsonrpc":"2.0","error":{"code":7,"message":"no"},"id":3})");
  const Value refusal = *Value::parse(reader.line());
  EXPECT_EQ(refusal.at("error").at("code").as_int(), -32603);
  EXPECT_EQ(refusal.at("id").as_int(), 2);
  EXPECT_EQ(provider.json(), "[" + result(R"("pong")", 9) + "]");
}

TEST_F(MsgpackBroker, ABatchOfSeveralTurnsStaysAsItIs) {
  constexpr int kCalls = 900;
  MsgpackPeer provider{endpoint_};
  provider.say(line_of("rpc.register", R"({"method":"echo"})", "1"));
  EXPECT_EQ(provider.json(), result("1", 1));
  MsgpackPeer caller{endpoint_};
  // Of a KiB each, so that no turn has steps for all of them.
  const auto params_of = [](int number) {
    const std::string bytes = packing::to_hex(std::string(1024, static_cast<char>(number)));
    return "92 " + packing::to_hex(msgpack_of(std::to_string(number))) + " c5 0400 " + bytes;
  };
  std::string batch = from_hex("dc 0384");
  for (int number = 0; number < kCalls; ++number) batch += with(head_of("echo", number), "params", params_of(number));
  caller.send(batch);
  std::string expected = from_hex("dc 0384");
  for (int number = 0; number < kCalls; ++number) {
    const std::string asked = provider.bytes();
    EXPECT_NE(asked.find(msgpack_of(R"("params")") + from_hex(params_of(number))), std::string::npos) << number;
    provider.send(only_here_of(Value::parse(unpacked(asked))->at("id").dump()));
    expected += only_here_of(std::to_string(number));
  }
  EXPECT_EQ(caller.bytes(), expected);
}

TEST_F(MsgpackBroker, CallsByHttpStayAsTheyAre) {
  MsgpackPeer provider{endpoint_};
  provider.say(line_of("rpc.register", R"({"method":"echo"})", "1"));
  EXPECT_EQ(provider.json(), result("1", 1));
  RawPeer caller{endpoint_};
  const std::string request = with(head_of("echo", 1), "params", kOnlyHere);
  const auto answered_by = [](const std::string& body) {
    return "HTTP/1.1 200 OK\r\nContent-Type: application/msgpack\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  };
  for (const bool in_batch : {false, true}) {
    caller.send(post(in_batch ? "\x91" + request : request, kType));
    const std::string asked = provider.bytes();
    EXPECT_NE(asked.find(msgpack_of(R"("params")") + from_hex(kOnlyHere)), std::string::npos) << packing::to_hex(asked);
    provider.send(only_here_of(id_of(unpacked(without_params(asked)))));
    const std::string answer = answered_by(in_batch ? "\x91" + only_here_of("1") : only_here_of("1"));
    EXPECT_EQ(caller.take(answer.size()), answer);
  }
}

TEST_F(MsgpackBroker, EventsAreInTheCodecOfTheLastMessage) {
  MsgpackPeer subscriber{endpoint_};
  subscribe(subscriber);
  RawPeer publisher{endpoint_};
  const auto publish = [&](std::string_view params) {
    publisher.send(line_of("rpc.publish", R"({"topic":"news.a","params":)" + std::string{params} + "}", "1") + "\n");
    return publisher.line();
  };
  publish(R"([{"$bytes":"/w=="}])");
  EXPECT_NE(subscriber.bytes().find(from_hex("91 c4 01 ff")), std::string::npos);
  // One that it cannot hold is not sent.
  publish("[18446744073709551616]");
  publish("[1]");
  EXPECT_EQ(subscriber.json(), R"({"jsonrpc":"2.0","method":"news.a","params":[1]})");
  subscriber.send(line_of("rpc.ping", "[]", "2"));
  EXPECT_EQ(subscriber.bytes(), result(R"("pong")", 2));
  publish("[18446744073709551616]");
  EXPECT_EQ(subscriber.bytes(), R"({"jsonrpc":"2.0","method":"news.a","params":[18446744073709551616]})");
}

TEST_F(MsgpackBroker, EventsStayAsTheyAreForWhoSpeaksTheSame) {
  MsgpackPeer subscriber{endpoint_};
  subscribe(subscriber);
  RawPeer reader{endpoint_};
  reader.send(line_of("rpc.subscribe", R"({"topic":"news.*"})", "1") + "\n");
  EXPECT_EQ(reader.line(), result("true", 1));
  MsgpackPeer publisher{endpoint_};
  const std::string head = R"({"jsonrpc":"2.0","method":"news.a"})";
  const std::string only_here = with(head, "params", kOnlyHere);
  publisher.send(only_here);
  EXPECT_EQ(subscriber.bytes(), only_here);
  const std::string held_by_both = with(head, "params", "91 c4 01 ff");
  publisher.send(held_by_both);
  EXPECT_EQ(subscriber.bytes(), held_by_both);
  // What its publisher says of whose it is goes, and nothing else.
  publisher.send(with(R"({"jsonrpc":"2.0","method":"news.a","from":"liar"})", "params", "91 05"));
  EXPECT_EQ(subscriber.bytes(), with(head, "params", "91 05"));
  // The first has no form in JSON.
  EXPECT_EQ(reader.line(), R"({"jsonrpc":"2.0","method":"news.a","params":[{"$bytes":"/w=="}]})");
  EXPECT_EQ(reader.line(), R"({"jsonrpc":"2.0","method":"news.a","params":[5]})");
}

TEST_F(MsgpackBroker, WhatIsPublishedIsRetainedAsItCame) {
  MsgpackPeer publisher{endpoint_};
  const auto publish = [&](std::string_view topic, std::string_view params_hex) {
    const std::string terms = R"({"topic":")" + std::string{topic} + R"(","retain":true})";
    publisher.send(with(head_of("rpc.publish", 1), "params", packing::to_hex(with(terms, "params", params_hex))));
    return publisher.json();
  };
  EXPECT_EQ(publish("news.a", kOnlyHere), result("0", 1));
  EXPECT_EQ(publish("news.b", "91 ca3fc00000"), result("0", 1));
  MsgpackPeer late{endpoint_};
  late.say(line_of("rpc.subscribe", R"({"topic":"news.*","last":true})", "1"));
  EXPECT_EQ(late.json(), result("true", 1));
  EXPECT_EQ(late.bytes(), with(R"({"jsonrpc":"2.0","method":"news.a"})", "params", kOnlyHere));
  EXPECT_EQ(late.bytes(), with(R"({"jsonrpc":"2.0","method":"news.b"})", "params", "91 ca3fc00000"));
  RawPeer reader{endpoint_};
  reader.send(line_of("rpc.subscribe", R"({"topic":"news.*","last":true})", "1") + "\n");
  EXPECT_EQ(reader.line(), result("true", 1));
  EXPECT_EQ(reader.line(), R"({"jsonrpc":"2.0","method":"news.b","params":[1.5]})");
  EXPECT_EQ(publish("news.a", kOnlyHere), result("1", 1));  // to those that can have it
  const std::string refused = publish("news.*", "90");
  EXPECT_NE(refused.find("-32602"), std::string::npos) << refused;
}

TEST_F(MsgpackBroker, ANotificationStaysAsItIsForAProviderThatSpeaksTheSame) {
  MsgpackPeer provider{endpoint_};
  provider.say(line_of("rpc.register", R"({"method":"take"})", "1"));
  EXPECT_EQ(provider.json(), result("1", 1));
  MsgpackPeer caller{endpoint_};
  const std::string note = with(R"({"jsonrpc":"2.0","method":"take"})", "params", kOnlyHere);
  caller.send(note);
  EXPECT_EQ(provider.bytes(), note);
}

TEST_F(MsgpackBroker, AnEventThatIsCutShortReachesNobody) {
  MsgpackPeer subscriber{endpoint_};
  subscribe(subscriber);
  MsgpackPeer publisher{endpoint_};
  const std::string whole = with(R"({"jsonrpc":"2.0","method":"news.a"})", "params", kOnlyHere);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    publisher.send(whole.substr(0, size));
    EXPECT_EQ(publisher.json(), kParseError) << size;
  }
  publisher.send(whole + '\xC0');
  EXPECT_EQ(publisher.json(), kParseError);
  publisher.send(whole);
  EXPECT_EQ(subscriber.bytes(), whole);
}

TEST_F(MsgpackBroker, WhatIsPublishedByHttpStaysAsItCame) {
  MsgpackPeer subscriber{endpoint_};
  subscribe(subscriber);
  RawPeer publisher{endpoint_};
  const std::string terms = with(R"({"topic":"news.a"})", "params", kOnlyHere);
  publisher.send(post(with(head_of("rpc.publish", 1), "params", packing::to_hex(terms)), kType));
  EXPECT_EQ(subscriber.bytes(), with(R"({"jsonrpc":"2.0","method":"news.a"})", "params", kOnlyHere));
  const std::string answer = ok_msgpack(result("1", 1));
  EXPECT_EQ(publisher.take(answer.size()), answer);
}

TEST_F(MsgpackBroker, WhoLooksOnIsShownJson) {
  RawPeer watcher{endpoint_};
  watcher.send(line_of("rpc.tap", R"(["news.*"])", "1") + "\n");
  EXPECT_EQ(watcher.line(), result("true", 1));
  const std::string note = with(R"({"jsonrpc":"2.0","method":"news.a"})", "params", "91 c4 01 ff");
  const std::string terms = with(R"({"topic":"news.a"})", "params", "91 c4 01 ff");
  const std::string publish = with(head_of("rpc.publish", 1), "params", packing::to_hex(terms));
  const auto shown = [&] {
    const Value event = *Value::parse(watcher.line());
    return event.at("params").at("params").dump();
  };
  MsgpackPeer publisher{endpoint_};
  publisher.send(note);
  EXPECT_EQ(shown(), R"([{"$bytes":"/w=="}])");
  publisher.send(publish);
  EXPECT_EQ(shown(), R"([{"$bytes":"/w=="}])");
  RawPeer by_http{endpoint_};
  by_http.send(post(publish, kType));
  EXPECT_EQ(shown(), R"([{"$bytes":"/w=="}])");
}

TEST_F(MsgpackBroker, WhoBeginsToLookOnWithinABatchIsShownJson) {
  MsgpackPeer watcher{endpoint_};
  const std::string tap = msgpack_of(line_of("rpc.tap", R"(["news.*"])", "1"));
  const std::string note = with(R"({"jsonrpc":"2.0","method":"news.a"})", "params", "91 c4 01 ff");
  watcher.send("\x92" + tap + note);
  const std::string one = watcher.json();
  const std::string two = watcher.json();
  const std::string& shown = one.find("rpc.tap") != std::string::npos ? one : two;
  EXPECT_NE(shown.find(R"("params":[{"$bytes":"/w=="}])"), std::string::npos) << one << two;
  // What has no form in JSON is shown by its size.
  watcher.send(with(R"({"jsonrpc":"2.0","method":"news.b"})", "params", "91" + std::string{kNaN}));
  const std::string size = watcher.json();
  EXPECT_NE(size.find(R"("method":"news.b")"), std::string::npos) << size;
  EXPECT_NE(size.find(R"("bytes":10)"), std::string::npos) << size;
}

TEST_F(MsgpackBroker, LookingOnChangesNothing) {
  RawPeer watcher{endpoint_};
  watcher.send(line_of("rpc.tap", "[]", "1") + "\n");
  EXPECT_EQ(watcher.line(), result("true", 1));
  MsgpackPeer subscriber{endpoint_};
  subscribe(subscriber);
  MsgpackPeer publisher{endpoint_};
  const std::string note = with(R"({"jsonrpc":"2.0","method":"news.a"})", "params", kOnlyHere);
  publisher.send(note);
  EXPECT_EQ(subscriber.bytes(), note);
  MsgpackPeer provider{endpoint_};
  provider.say(line_of("rpc.register", R"(["echo"])", "1"));
  EXPECT_EQ(provider.json(), result("1", 1));
  MsgpackPeer caller{endpoint_};
  caller.send(with(head_of("echo", 3), "params", "91 c4 01 ff"));
  const std::string id = id_of(provider.json());
  provider.send(with(R"({"jsonrpc":"2.0","id":)" + id + "}", "result", kNaN));
  EXPECT_NE(caller.bytes().find("result" + from_hex(kNaN)), std::string::npos);
}

TEST_F(MsgpackBroker, EventsOfASubscriptionToAMethodStayAsTheyAre) {
  MsgpackPeer provider{endpoint_};
  provider.say(line_of("rpc.register",
                       R"({"method":"watch","subscription":{"unsubscribe":"unwatch","notification":"seen"}})", "1"));
  EXPECT_EQ(provider.json(), result("1", 1));
  MsgpackPeer caller{endpoint_};
  RawPeer reader{endpoint_};
  std::vector<std::string> ids;
  for (const bool msgpack : {true, false}) {
    if (msgpack) caller.say(call("watch", 2));
    if (!msgpack) reader.send(call("watch", 2) + "\n");
    const std::string own = msgpack ? R"("a")" : "7";
    provider.say(R"({"jsonrpc":"2.0","result":)" + own + R"(,"id":)" + id_of(provider.json()) + "}");
    ids.push_back(Value::parse(msgpack ? caller.json() : reader.line())->at("result").dump());
  }
  const auto event = [](const std::string& id, std::string_view result_hex) {
    const std::string params = with(R"({"subscription":)" + id + "}", "result", result_hex);
    return with(R"({"jsonrpc":"2.0","method":"seen"})", "params", packing::to_hex(params));
  };
  provider.send(event(R"("a")", kOnlyHere));
  EXPECT_EQ(caller.bytes(), event(ids[0], kOnlyHere));
  // One that has no form in JSON is not sent to who speaks that.
  provider.send(event("7", kNaN));
  provider.send(event("7", "c4 01 ff"));
  EXPECT_EQ(reader.line(), R"({"jsonrpc":"2.0","method":"seen","params":{"subscription":)" + ids[1] +
                               R"(,"result":{"$bytes":"/w=="}}})");
}

TEST(MsgpackBrokerLimits, WhatIsTooLargeForOthersAsJsonIsNotRelayed) {
  Options options;
  options.limits.max_message_size = 2000;
  Broker broker{options};
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  const RunningServer running{broker};
  RawPeer provider{endpoint};
  provider.send(R"({"jsonrpc":"2.0","method":"rpc.register","params":{"method":"take"},"id":1})"
                "\n");
  EXPECT_EQ(provider.line(), result("1", 1));
  MsgpackPeer caller{endpoint};
  std::string bytes = "91 c5 0708";  // 1800, and 2400 as base64
  for (int i = 0; i < 1800; ++i) bytes += "ff";
  caller.send(with(head_of("take", 2), "params", bytes));
  const std::string refused = caller.json();
  EXPECT_NE(refused.find("-32006"), std::string::npos) << refused;
  EXPECT_NE(refused.find(R"("id":2)"), std::string::npos) << refused;
  caller.say(call("take", 3));
  const std::string request = provider.line();
  EXPECT_NE(request.find(R"("method":"take")"), std::string::npos) << request;
}

}  // namespace
}  // namespace wirecall::session
