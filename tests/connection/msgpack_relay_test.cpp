// Calls and streams that a broker relays, over real sockets, between peers that speak MessagePack and peers that speak
// JSON.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "tests/connection/msgpack_broker.hpp"
#include "tests/connection/peer.hpp"
#include "tests/http/served.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/server.hpp"
#include "wirecall/value.hpp"

namespace wirecall::net {
namespace {

using namespace msgpack_texts;

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

TEST_F(MsgpackBroker, AMemberOfAResponseThatTheCallerCannotHoldIsLeftOut) {
  RawPeer provider{endpoint_};
  provider.send(line_of("rpc.register", R"({"method":"echo"})", "1") + "\n");
  EXPECT_EQ(provider.line(), result("1", 1));
  MsgpackPeer caller{endpoint_};
  const auto answer = [&] {
    provider.send(R"({"jsonrpc":"2.0","result":9,"hops":1e400,"id":)" + id_of(provider.line()) + "}\n");
  };
  caller.say(line_of("echo", "[1]", "2"));
  answer();
  EXPECT_EQ(caller.json(), result("9", 2));
  caller.say("[" + line_of("echo", "[1]", "3") + "," + line_of("echo", "[2]", "4") + "]");
  answer();
  answer();
  EXPECT_EQ(caller.json(), "[" + result("9", 3) + "," + result("9", 4) + "]");
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
}  // namespace wirecall::net
