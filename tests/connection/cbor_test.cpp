// Peers that speak CBOR: behind a length and by HTTP, over a simulated system cut at every byte; by WebSocket; and at a
// broker, where values stay what they were between two of them.
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "tests/connection/msgpack_broker.hpp"
#include "tests/connection/peer.hpp"
#include "tests/http/served.hpp"
#include "tests/message/encoded.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {
namespace {

using packing::framed;
using packing::from_hex;
using packing::to_hex;

std::string cbor_of(std::string_view json) { return message::encoded(json); }

std::string json_of(std::string_view message) {
  message::CborTranscoder transcoder;
  Buffer out;
  const auto status = transcoder.to_json(message, Limits{}, out);
  return status == message::Transcoder::Status::done ? std::string{out.view()} : "no CBOR: " + to_hex(message);
}

TEST(CborFrames, CallsAreAnsweredInKind) {
  expect_answer(framed(cbor_of(request(1))), framed(cbor_of(result("19", 1))));
  expect_answer(framed(cbor_of(request(1))) + framed(request(2)) + framed(packing::msgpack_of(request(3))) +
                    framed(cbor_of(request(4))),
                framed(cbor_of(result("19", 1))) + framed(result("19", 2)) +
                    framed(packing::msgpack_of(result("19", 3))) + framed(cbor_of(result("19", 4))));
  expect_answer(framed(cbor_of(call("greet", 7, R"({"name":"Ada"})"))), framed(cbor_of(result(R"("hello Ada")", 7))));
  // A map needs no tag.
  expect_answer(framed(cbor_of(request(1)).substr(3)), framed(cbor_of(result("19", 1))));
}

TEST(CborFrames, IdsOfEveryKindComeBack) {
  for (const char* id : {"1", "-1", "1.5", "null", R"("x\n")", "18446744073709551615", "-0.0"}) {
    const std::string call = R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":)" + std::string{id} + "}";
    EXPECT_EQ(answer({framed(cbor_of(call))}),
              framed(cbor_of(R"({"jsonrpc":"2.0","result":19,"id":)" + std::string{id} + "}")));
  }
}

TEST(CborFrames, BatchesAreAnsweredAsOneWithOneTag) {
  const std::string note = R"({"jsonrpc":"2.0","method":"subtract","params":[1,2]})";
  expect_answer(framed(cbor_of("[" + request(1) + "," + note + "," + request(2) + "]")),
                framed(cbor_of("[" + result("19", 1) + "," + result("19", 2) + "]")));
  expect_answer(framed(cbor_of("[" + note + "]")) + framed(cbor_of(request(3))), framed(cbor_of(result("19", 3))));
  expect_answer(framed(from_hex("d9d9f7 80")), framed(cbor_of(kInvalid)));
  expect_answer(framed(from_hex("d9d9f7 83 01 80 a0")),
                framed(cbor_of("[" + kInvalid + "," + kInvalid + "," + kInvalid + "]")));
}

TEST(CborFrames, WhatIsNoCborCostsItselfAlone) {
  const std::string good = cbor_of(request(1));
  for (const std::string& bad :
       {good.substr(0, good.size() - 1), good + '\0', from_hex("a1 ff"), from_hex("d9 d9 f7 82 61 ff"),
        from_hex("d9 d9 f7 9b ffffffffffffffff"), from_hex("bf"), from_hex("d9"), "\xD9\xD9\xF7" + from_hex("1c")}) {
    expect_answer(framed(bad) + framed(good), framed(cbor_of(kParseError)) + framed(cbor_of(result("19", 1))));
  }
  const std::string deep = "\xD9\xD9\xF7" + std::string(300, '\x81') + '\xF6';
  const std::string too_deep =
      R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error","data":{"limit":"depth"}},"id":null})";
  EXPECT_EQ(answer({framed(deep) + framed(good)}), framed(cbor_of(too_deep)) + framed(cbor_of(result("19", 1))));
}

TEST(CborFrames, WhatIsNoRequestIsInvalid) {
  EXPECT_EQ(answer({framed(cbor_of("{}"))}), framed(cbor_of(kInvalid)));
  // Names that are no text, and names given twice; bytes are no params.
  const std::string invalid =
      framed(cbor_of(R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":1})"));
  const std::string map = cbor_of(request(1)).substr(4);
  for (const char* more : {"01 02", "41 61 02", "f6 f6", "66 6d6574686f64 61 61"})
    EXPECT_EQ(answer({framed("\xA5" + map + from_hex(more))}), invalid) << more;
  EXPECT_EQ(answer({framed("\xA5" + map + from_hex("61 61 02"))}), framed(cbor_of(result("19", 1))));
  EXPECT_EQ(answer({framed(from_hex("a4 676a736f6e727063 63322e30 666d6574686f64 656772656574 626964 01 "
                                    "66706172616d73 41 61"))}),
            invalid);
}

TEST(CborFrames, ParamsReachTheirMethodAsTheyAre) {
  const auto say = [](const char* params) {
    const std::string message = from_hex(
        "bf 676a736f6e727063 63322e30 666d6574686f64 68 7375627472616374 626964 01 "
        "66706172616d73 " +
        std::string{params} + "ff");
    const std::string got = answer({framed(message)});
    return json_of(std::string_view{got}.substr(4));
  };
  EXPECT_EQ(say("9f 18 2a c2 41 17 ff"), result("19", 1));
  EXPECT_EQ(say("bf 7f 63 6d696e 64 75656e64 ff f9 5140 6a 73756274726168656e64 17 ff"), result("19", 1));
  EXPECT_NE(say("82 18 2a c2 49 010000000000000000").find("-32602"), std::string::npos);
}

TEST(CborHttp, TheBodyItsTypeOrAcceptChooses) {
  const auto post = [](std::string_view body, std::string_view fields) {
    return "POST /rpc HTTP/1.1\r\nHost: localhost\r\n" + std::string{fields} +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string{body};
  };
  const auto ok = [](std::string_view body, std::string_view type) {
    return "HTTP/1.1 200 OK\r\nContent-Type: " + std::string{type} +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string{body};
  };
  const std::string type = "Content-Type: application/cbor\r\n";
  const std::string cbor = cbor_of(request(1));
  const std::string reply = ok(cbor_of(result("19", 1)), "application/cbor");
  expect_answer(post(cbor, type), reply);
  expect_answer(post(cbor, ""), reply);
  expect_answer(post(cbor.substr(3), type), reply);
  expect_answer(post(request(1), "Accept: application/cbor\r\n"), reply);
  expect_answer(post(cbor, "Accept: application/json\r\n"), ok(result("19", 1), "application/json"));
  // An array without the tag is MessagePack, unless its type says what it is.
  const std::string batch = cbor_of("[" + request(1) + "]");
  expect_answer(post(batch, ""), ok(cbor_of("[" + result("19", 1) + "]"), "application/cbor"));
  expect_answer(post(batch.substr(3), type), ok(cbor_of("[" + result("19", 1) + "]"), "application/cbor"));
}

// ---- at a broker ----

struct CborPeer {
  explicit CborPeer(const Endpoint& endpoint) : peer(endpoint) {}
  void send(std::string_view message) { peer.send(framed(message)); }
  void say(std::string_view json) { send(cbor_of(json)); }
  std::string bytes() {
    std::size_t size = 0;
    for (const char c : peer.take(4)) size = size << 8 | static_cast<unsigned char>(c);
    return peer.take(size);
  }
  std::string json() { return json_of(bytes()); }

  RawPeer peer;
};

class CborBroker : public testing::Test {
 protected:
  CborBroker() : endpoint_(broker_.listen("tcp://127.0.0.1:0")), running_(broker_) {}

  /// {"jsonrpc": "2.0", "method": method, "params": …, and an id}
  static std::string calling(std::string_view method, std::string_view params_hex, int id) {
    std::string text = from_hex("a4 676a736f6e727063 63322e30 666d6574686f64");
    text += static_cast<char>(0x60 + method.size());
    text.append(method).append(from_hex("66706172616d73")).append(from_hex(params_hex)).append(from_hex("626964"));
    return text += static_cast<char>(id);
  }
  /// The number of a request under which it is to be answered, in its bytes.
  static std::string id_of(std::string_view request) {
    EnvelopeMembersOf members{request};
    return members.id;
  }
  struct EnvelopeMembersOf {
    explicit EnvelopeMembersOf(std::string_view message) {
      message::CborTranscoder transcoder;
      message::EnvelopeMembers members;
      EXPECT_EQ(transcoder.check(message, Limits{}, members), message::Transcoder::Status::done);
      if (const auto* const one = members.find(Member::id)) id = one->value;
    }
    std::string id;
  };

  Broker broker_;
  Endpoint endpoint_;
  RunningServer running_;
};

// NaN, an indefinite array, a map with keys that are no text, a big integer, an unknown tag, a simple value.
constexpr std::string_view kOnlyCbor = "86 f97e00 9f 01 ff a1 01 02 c2 49 010000000000000000 c6 18 01 e5";

TEST_F(CborBroker, BetweenTwoThatSpeakItValuesAreWhatTheyWere) {
  CborPeer provider{endpoint_};
  provider.say(R"({"jsonrpc":"2.0","method":"rpc.register","params":{"method":"echo"},"id":1})");
  EXPECT_EQ(provider.json(), result("1", 1));
  CborPeer caller{endpoint_};
  for (const bool batch : {false, true}) {
    const std::string request = calling("echo", kOnlyCbor, 7);
    caller.send(batch ? "\xD9\xD9\xF7\x81" + request : request);
    const std::string asked = provider.bytes();
    EXPECT_TRUE(asked.starts_with("\xD9\xD9\xF7")) << to_hex(asked);
    EXPECT_NE(asked.find(from_hex("66706172616d73") + from_hex(kOnlyCbor)), std::string::npos) << to_hex(asked);
    provider.send(from_hex("a3 676a736f6e727063 63322e30 66726573756c74") + from_hex(kOnlyCbor) + from_hex("626964") +
                  id_of(asked));
    const std::string answer = caller.bytes();
    EXPECT_NE(answer.find(from_hex("66726573756c74") + from_hex(kOnlyCbor)), std::string::npos) << to_hex(answer);
    EXPECT_TRUE(answer.ends_with(from_hex("626964 07"))) << to_hex(answer);
    EXPECT_EQ(answer.starts_with("\xD9\xD9\xF7\x81"), batch) << to_hex(answer);
  }
}

TEST_F(CborBroker, AnotherEncodingGetsWhatItCanHold) {
  CborPeer provider{endpoint_};
  provider.say(R"({"jsonrpc":"2.0","method":"rpc.register","params":{"method":"echo"},"id":1})");
  EXPECT_EQ(provider.json(), result("1", 1));
  net::msgpack_texts::MsgpackPeer caller{endpoint_};
  caller.send(packing::with(R"({"jsonrpc":"2.0","method":"echo","id":7})", "params",
                            "93 c4 01 ff d4 4e 02 cb 3ff8000000000000"));
  const std::string asked = provider.bytes();
  EXPECT_NE(asked.find(from_hex("83 41 ff da 7763004e 41 02 f9 3e00")), std::string::npos) << to_hex(asked);
  provider.send(
      from_hex("a3 676a736f6e727063 63322e30 66726573756c74 83 5f 41 01 ff c1 1a 514b67b0 da 77630049 41 03 626964") +
      id_of(asked));
  EXPECT_EQ(caller.json(),
            R"({"jsonrpc":"2.0","result":[{"$bytes":"AQ=="},"2013-03-21T20:04:00Z",{"$image":"Aw=="}],"id":7})");
  caller.send(packing::with(R"({"jsonrpc":"2.0","method":"echo","id":8})", "params", "90"));
  provider.send(from_hex("a3 676a736f6e727063 63322e30 66726573756c74 c2 49 010000000000000000 626964") +
                id_of(provider.bytes()));
  const std::string refused = caller.json();
  EXPECT_NE(refused.find("-32603"), std::string::npos) << refused;
  EXPECT_NE(refused.find("an integer is beyond 64 bits"), std::string::npos) << refused;
}

TEST_F(CborBroker, EventsAreToldInEachEncoding) {
  CborPeer subscriber{endpoint_};
  subscriber.say(R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"news"},"id":1})");
  EXPECT_EQ(subscriber.json(), result("true", 1));
  RawPeer lines{endpoint_};
  lines.send(R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"news"},"id":1})"
             "\n");
  EXPECT_EQ(lines.line(), result("true", 1));
  CborPeer publisher{endpoint_};
  // As a notification, alone and in a batch, and as one that JSON cannot hold.
  const std::string note = from_hex("a3 676a736f6e727063 63322e30 666d6574686f64 646e657773 66706172616d73 ");
  publisher.send(note + from_hex("81 41 ff"));
  publisher.send("\xD9\xD9\xF7\x81" + note + from_hex("81 02"));
  publisher.send(note + from_hex(kOnlyCbor));
  publisher.send(note + from_hex("81 03"));
  EXPECT_EQ(subscriber.json(), R"({"jsonrpc":"2.0","method":"news","params":[{"$bytes":"/w=="}]})");
  EXPECT_EQ(subscriber.json(), R"({"jsonrpc":"2.0","method":"news","params":[2]})");
  EXPECT_TRUE(subscriber.bytes().ends_with(from_hex(kOnlyCbor)));
  EXPECT_EQ(subscriber.json(), R"({"jsonrpc":"2.0","method":"news","params":[3]})");
  EXPECT_EQ(lines.line(), R"({"jsonrpc":"2.0","method":"news","params":[{"$bytes":"/w=="}]})");
  EXPECT_EQ(lines.line(), R"({"jsonrpc":"2.0","method":"news","params":[2]})");
  EXPECT_EQ(lines.line(), R"({"jsonrpc":"2.0","method":"news","params":[3]})");
}

}  // namespace
}  // namespace wirecall::net
