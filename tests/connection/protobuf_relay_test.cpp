// Calls that a broker relays, over real sockets, between peers that speak Protocol Buffers, and between these and
// others.
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>

#include "message/protobuf_transcoder.hpp"
#include "tests/codec/msgpack.hpp"
#include "tests/connection/peer.hpp"
#include "tests/http/served.hpp"
#include "tests/message/encoded.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/value.hpp"

namespace wirecall::net {
namespace {

using packing::framed;
using packing::from_hex;
using packing::to_hex;

// A list of 1, as no one writes it who has read it as 1: as an unsigned integer, of two bytes; and the same as a
// result.
const std::string kOddList = from_hex("07 42 05 0a 03 20 81 00");
const std::string kOddParams = '\x42' + kOddList;
const std::string kOddResult = '\x1a' + kOddList;

class ProtobufRelay : public testing::Test {
 protected:
  static std::string protobuf_of(std::string_view json) { return message::encoded<message::ProtobufTranscoder>(json); }

  static std::string decoded(std::string_view bytes) {
    message::ProtobufTranscoder transcoder;
    Buffer text{bytes};
    Buffer out;
    EXPECT_EQ(transcoder.to_json(text.padded(), Limits{}, out), message::Transcoder::Status::done) << to_hex(bytes);
    return std::string{out.view()};
  }

  struct ProtobufPeer {
    explicit ProtobufPeer(const Endpoint& endpoint) : peer(endpoint) {}
    void send(std::string_view message) { peer.send(framed(message)); }
    void say(std::string_view json) { send(protobuf_of(json)); }
    std::string bytes() {
      std::size_t size = 0;
      for (const char c : peer.take(4)) size = size << 8 | static_cast<unsigned char>(c);
      return peer.take(size);
    }
    std::string json() { return decoded(bytes()); }

    RawPeer peer;
  };

  static std::string request_of(std::string_view method, std::string_view params, std::string_view id_json) {
    std::string text{'\x12', static_cast<char>(method.size())};
    text.append(method);
    const std::string with_id = protobuf_of(R"({"jsonrpc":"2.0","result":1,"id":)" + std::string{id_json} + "}");
    return text + with_id.substr(4) + std::string{params};  // behind the result, of four bytes
  }
  static std::string response_of(std::string_view result, std::string_view id_json) {
    return std::string{result} +
           protobuf_of(R"({"jsonrpc":"2.0","result":1,"id":)" + std::string{id_json} + "}").substr(4);
  }
  static std::string id_of(const std::string& json) { return Value::parse(json)->at("id").dump(); }

  explicit ProtobufRelay(const Options& options = {})
      : broker_(options), endpoint_(broker_.listen("tcp://127.0.0.1:0")), running_(broker_) {}

  static std::string line_of(std::string_view method, std::string_view params, std::string_view id) {
    return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} +
           R"(,"id":)" + std::string{id} + "}";
  }
  static void provide(ProtobufPeer& provider, std::string_view terms = R"({"method":"echo"})") {
    provider.say(line_of("rpc.register", terms, "1"));
    EXPECT_EQ(provider.json(), result("1", 1));
  }

  Broker broker_;
  Endpoint endpoint_;
  RunningServer running_;
};

TEST_F(ProtobufRelay, BetweenTwoThatSpeakItAllStaysAsItWas) {
  ProtobufPeer provider{endpoint_};
  provide(provider, R"({"method":"echo","concurrency":1})");
  ProtobufPeer caller{endpoint_};
  // The second one waits for the first, and is kept meanwhile.
  for (const std::string_view id : {R"("a")", "70000"}) caller.send(request_of("echo", kOddParams, id));
  for (const std::string_view id : {R"("a")", "70000"}) {
    const std::string asked = provider.bytes();
    const std::string own = id_of(decoded(asked));
    EXPECT_EQ(to_hex(asked), to_hex(request_of("echo", kOddParams, own)));
    provider.send(response_of(kOddResult, own));
    EXPECT_EQ(to_hex(caller.bytes()), to_hex(response_of(kOddResult, id)));
  }
  // An error, and a result beside something else, arrive as well.
  caller.send(request_of("echo", kOddParams, "3"));
  const std::string failed = id_of(provider.json());
  provider.say(R"({"jsonrpc":"2.0","error":{"code":7,"message":"no","data":[1]},"id":)" + failed + "}");
  EXPECT_EQ(caller.json(), R"({"jsonrpc":"2.0","error":{"code":7,"message":"no","data":[1]},"id":3})");
  caller.send(request_of("echo", kOddParams, "4"));
  provider.send(response_of(kOddResult, id_of(provider.json())) + from_hex("a0 06 01"));
  EXPECT_EQ(caller.json(), R"({"jsonrpc":"2.0","result":[1],"id":4})");
}

// protobuf's own parsers refuse a message with one of more than five bytes, and could not even say to which call.
TEST_F(ProtobufRelay, LengthsThatAreLongerThanTheyNeedBeDoNotGoOn) {
  ProtobufPeer provider{endpoint_};
  provide(provider);
  ProtobufPeer caller{endpoint_};
  const std::string list = from_hex("87 80 80 80 80 00 42 05 0a 03 20 81 00");
  caller.send(request_of("echo", '\x42' + list, "5"));
  const std::string asked = provider.bytes();
  const std::string own = id_of(decoded(asked));
  EXPECT_EQ(to_hex(asked), to_hex(protobuf_of(line_of("echo", "[1]", own))));
  provider.send(response_of('\x1a' + list, own));
  EXPECT_EQ(to_hex(caller.bytes()), to_hex(protobuf_of(R"({"jsonrpc":"2.0","result":[1],"id":5})")));
}

TEST_F(ProtobufRelay, CallersAndProvidersNeedNotSpeakTheSame) {
  ProtobufPeer provider{endpoint_};
  provide(provider);
  RawPeer lines{endpoint_};
  lines.send(line_of("echo", R"([{"$bytes":"AP8="}])", "7") + "\n");
  const std::string asked = provider.json();
  EXPECT_NE(asked.find(R"("params":[{"$bytes":"AP8="}])"), std::string::npos) << asked;
  provider.send(response_of(kOddResult, id_of(asked)));
  EXPECT_EQ(lines.line(), R"({"jsonrpc":"2.0","result":[1],"id":7})");

  lines.send(line_of("rpc.register", R"({"method":"thrice"})", "1") + "\n");
  EXPECT_EQ(lines.line(), result("1", 1));
  provider.send(request_of("thrice", kOddParams, "8"));
  const std::string request = lines.line();
  EXPECT_NE(request.find(R"("params":[1])"), std::string::npos) << request;
  lines.send(R"({"jsonrpc":"2.0","result":{"$image":"AQ=="},"id":)" + id_of(request) + "}\n");
  EXPECT_EQ(provider.json(), R"({"jsonrpc":"2.0","result":{"$image":"AQ=="},"id":8})");

  ProtobufPeer packing{endpoint_};
  packing.peer.send(framed(packing::msgpack_of(line_of("echo", "[1.5]", "9"))));
  provider.send(response_of(kOddResult, id_of(provider.json())));
  EXPECT_EQ(packing::unpacked(packing.bytes()), R"({"jsonrpc":"2.0","result":[1],"id":9})");
}

TEST_F(ProtobufRelay, ACallThatWaitsGoesAsJsonToAProviderThatGoesOverToIt) {
  ProtobufPeer provider{endpoint_};
  provide(provider, R"({"method":"echo","concurrency":1})");
  ProtobufPeer caller{endpoint_};
  for (const std::string_view id : {"2", "3"}) caller.send(request_of("echo", kOddParams, id));
  provider.send(R"({"jsonrpc":"2.0","result":9,"id":)" + id_of(provider.json()) + "}");
  EXPECT_EQ(caller.json(), result("9", 2));
  const std::string next = provider.bytes();
  EXPECT_NE(next.find(R"("params":[1])"), std::string::npos) << next;
  provider.send(R"({"jsonrpc":"2.0","result":8,"id":)" + id_of(next) + "}");
  EXPECT_EQ(caller.json(), result("8", 3));
}

TEST_F(ProtobufRelay, AnIdempotentCallGoesToAnotherAsItWas) {
  for (const std::string_view policy : {"hash:x", "round_robin"}) {
    const std::string terms = R"({"method":"echo","idempotent":true,"policy":")" + std::string{policy} + R"("})";
    auto first = std::make_unique<ProtobufPeer>(endpoint_);
    provide(*first, terms);
    ProtobufPeer caller{endpoint_};
    caller.send(request_of("echo", kOddParams, "5"));
    const std::string before = first->bytes();
    EXPECT_EQ(to_hex(before), to_hex(request_of("echo", kOddParams, id_of(decoded(before)))));
    ProtobufPeer second{endpoint_};
    provide(second, terms);
    first.reset();
    const std::string asked = second.bytes();
    EXPECT_EQ(to_hex(asked), to_hex(request_of("echo", kOddParams, id_of(decoded(asked)))));
    second.send(response_of(kOddResult, id_of(decoded(asked))));
    EXPECT_EQ(to_hex(caller.bytes()), to_hex(response_of(kOddResult, "5")));
    second.say(line_of("rpc.unregister", R"({"method":"echo"})", "2"));
    EXPECT_EQ(second.json().find("error"), std::string::npos);
  }
}

TEST_F(ProtobufRelay, CallsByHttpStayAsTheyAre) {
  ProtobufPeer provider{endpoint_};
  provide(provider);
  RawPeer caller{endpoint_};
  const std::string body = request_of("echo", kOddParams, "1");
  caller.send("POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/protobuf\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
  const std::string asked = provider.bytes();
  const std::string own = id_of(decoded(asked));
  EXPECT_EQ(to_hex(asked), to_hex(request_of("echo", kOddParams, own)));
  provider.send(response_of(kOddResult, own));
  const std::string answer = response_of(kOddResult, "1");
  const std::string head =
      "HTTP/1.1 200 OK\r\nContent-Type: application/protobuf\r\nContent-Length: " + std::to_string(answer.size()) +
      "\r\n\r\n";
  EXPECT_EQ(to_hex(caller.take(head.size() + answer.size())), to_hex(head + answer));
}

TEST_F(ProtobufRelay, ResponsesForNobodyAreDropped) {
  ProtobufPeer provider{endpoint_};
  provide(provider);
  ProtobufPeer caller{endpoint_};
  caller.send(request_of("echo", kOddParams, "2"));
  const std::string own = id_of(provider.json());
  for (const std::string_view id : {"-1", R"("0")", "4611686018427387903"}) provider.send(response_of(kOddResult, id));
  caller.send(response_of(kOddResult, own));  // which is another's
  caller.say(line_of("rpc.ping", "[]", "3"));
  EXPECT_EQ(caller.json(), result(R"("pong")", 3));
  provider.send(response_of(kOddResult, own));
  EXPECT_EQ(to_hex(caller.bytes()), to_hex(response_of(kOddResult, "2")));
  provider.send(response_of(kOddResult, own));
  provider.say(line_of("rpc.ping", "[]", "4"));
  EXPECT_EQ(provider.json(), result(R"("pong")", 4));
}

TEST_F(ProtobufRelay, ProgressIsAskedForByWayOfJson) {
  ProtobufPeer provider{endpoint_};
  provide(provider);
  ProtobufPeer caller{endpoint_};
  caller.say(line_of("echo", R"({"partialResultToken":"mine"})", "7"));
  const std::string asked = provider.json();
  const std::string token = Value::parse(asked)->at("params").at("partialResultToken").dump();
  EXPECT_NE(token, R"("mine")");
  provider.say(R"({"jsonrpc":"2.0","method":"$/progress","params":{"token":)" + token + R"(,"value":5}})");
  EXPECT_EQ(caller.json(), R"({"jsonrpc":"2.0","method":"$/progress","params":{"token":"mine","value":5}})");
  provider.send(response_of(kOddResult, id_of(asked)));
  EXPECT_EQ(Value::parse(caller.json())->at("id").as_int(), 7);
}

TEST_F(ProtobufRelay, ASubscriptionIsFoundByTheIdThatItsProviderHasReturned) {
  ProtobufPeer provider{endpoint_};
  provide(provider, R"({"method":"watch","subscription":{"unsubscribe":"unwatch","notification":"seen"}})");
  for (const std::string_view own : {R"("s1")", "17", "18446744073709551615"}) {
    ProtobufPeer caller{endpoint_};
    caller.say(line_of("watch", "[]", "7"));
    provider.say(R"({"jsonrpc":"2.0","result":)" + std::string{own} + R"(,"id":)" + id_of(provider.json()) + "}");
    const Value answer = *Value::parse(caller.json());
    EXPECT_EQ(answer.at("id").as_int(), 7);
    const std::string id = answer.at("result").dump();
    const auto event = [](std::string_view of) {
      return R"({"jsonrpc":"2.0","method":"seen","params":{"subscription":)" + std::string{of} + R"(,"result":5}})";
    };
    provider.say(event(own));
    EXPECT_EQ(caller.json(), event(id));
    caller.say(line_of("unwatch", "[" + id + "]", "8"));
    EXPECT_EQ(caller.json(), result("true", 8));
    const Value unsubscribed = *Value::parse(provider.json());
    EXPECT_EQ(unsubscribed.at("method").as_string(), "unwatch");
    EXPECT_EQ(unsubscribed.at("params").dump(), "[" + std::string{own} + "]");
  }
}

class DisclosedProtobufRelay : public ProtobufRelay {
 protected:
  static Options disclosing() {
    Options options;
    options.disclose_callers = true;
    return options;
  }
  DisclosedProtobufRelay() : ProtobufRelay(disclosing()) {}
};

TEST_F(DisclosedProtobufRelay, ACallersNameIsAdded) {
  ProtobufPeer provider{endpoint_};
  provide(provider);
  ProtobufPeer caller{endpoint_};
  caller.say(line_of("rpc.hello", R"({"name":"Ada \"the first\""})", "1"));
  EXPECT_EQ(caller.json().find("error"), std::string::npos);
  caller.send(request_of("echo", kOddParams, "2"));
  const std::string asked = provider.bytes();
  const std::string own = id_of(decoded(asked));
  EXPECT_EQ(to_hex(asked), to_hex(request_of("echo", kOddParams, own) + "\x7a\x0f" + R"(Ada "the first")"));
}

}  // namespace
}  // namespace wirecall::net
