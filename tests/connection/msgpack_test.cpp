// Peers that speak MessagePack, over a simulated system cut at every byte: behind a length and by HTTP.
#include "tests/codec/msgpack.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "tests/connection/msgpack_texts.hpp"
#include "tests/connection/peer.hpp"
#include "tests/http/served.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/server.hpp"
#include "wirecall/value.hpp"

namespace wirecall::net {
namespace {

using namespace msgpack_texts;

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
  for (const char* bad : {"c0", "ff", "ca00000000"})
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

}  // namespace
}  // namespace wirecall::net
