// Peers whose messages are made by protoc's classes of docs/wirecall.proto: what these write, a server reads, and the
// other way round, byte for byte; and any bytes that they take for a value are the same value here.
#include <future>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>

#include "message/protobuf_transcoder.hpp"
#include "tests/connection/peer.hpp"
#include "tests/message/encoded.hpp"
#include "wirecall.pb.h"
#include "wirecall/broker.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"
#include "wirecall/value.hpp"

namespace wirecall::net {
namespace {

using Json = nlohmann::ordered_json;
using Status = message::Transcoder::Status;
using Random = std::minstd_rand;

std::string protobuf_of(std::string_view json) { return message::encoded<message::ProtobufTranscoder>(json); }

/// What it is as JSON; else why it is none.
std::string json_of(std::string_view bytes) {
  message::ProtobufTranscoder transcoder;
  Buffer out;
  switch (transcoder.to_json(bytes, Limits{}, out)) {
    case Status::done: return std::string{out.view()};
    case Status::malformed: return "malformed";
    case Status::too_deep: return "too deep";
    case Status::too_large: return "too large";
  }
  return "";
}

// A value of JSON as their classes have it.
void fill(const Json& json, wire::Value& out) {
  switch (json.type()) {
    case Json::value_t::boolean: return out.set_boolean(json.get<bool>());
    case Json::value_t::number_integer: return out.set_integer(json.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      if (const auto number = json.get<std::uint64_t>(); number > INT64_MAX) return out.set_unsigned_integer(number);
      return out.set_integer(json.get<std::int64_t>());
    case Json::value_t::number_float: return out.set_number(json.get<double>());
    case Json::value_t::string: return out.set_text(json.get<std::string>());
    case Json::value_t::array:
      out.mutable_list();
      for (const Json& element : json) fill(element, *out.mutable_list()->add_values());
      return;
    case Json::value_t::object:
      out.mutable_map();
      for (const auto& [name, value] : json.items()) {
        wire::Member& member = *out.mutable_map()->add_members();
        member.set_name(name);
        fill(value, *member.mutable_value());
      }
      return;
    default: return out.set_null(wire::NULL_VALUE);
  }
}

Json any_json(Random& random, unsigned depth) {
  switch (random() % (depth == 0 ? 7 : 9)) {
    case 0: return nullptr;
    case 1: return random() % 2 == 0;
    case 2: return static_cast<std::int64_t>(random()) - INT32_MAX / 2;
    case 3: return UINT64_MAX - random() % 3;
    case 4: return INT64_MIN + static_cast<std::int64_t>(random() % 3);
    case 5: return static_cast<double>(random()) / 1000 - 1'000'000;
    case 6: return std::string(random() % 200, 'x') + "\"\xC3\xA9\n";
    case 7: {
      Json list = Json::array();
      for (unsigned left = random() % 5; left != 0; --left) list.push_back(any_json(random, depth - 1));
      return list;
    }
    default: {
      Json map = Json::object();
      for (unsigned left = random() % 5; left != 0; --left)
        map["n" + std::to_string(left)] = any_json(random, depth - 1);
      return map;
    }
  }
}

TEST(ProtobufEnvelope, ValuesAreTheirsByteForByte) {
  Random random{1};
  for (int round = 0; round < 2000; ++round) {
    const Json value = any_json(random, 4);
    wire::Envelope envelope;
    fill(value, *envelope.mutable_result());
    envelope.mutable_id()->set_integer(7);
    const Json message = {{"jsonrpc", "2.0"}, {"result", value}, {"id", 7}};
    const std::string theirs = envelope.SerializeAsString();
    ASSERT_EQ(Json::parse(json_of(theirs)), message);
    ASSERT_EQ(protobuf_of(message.dump()), theirs);
  }
}

TEST(ProtobufEnvelope, EveryMemberIsTheirs) {
  wire::Envelope request;
  request.set_method("m");
  request.mutable_params()->mutable_map();
  request.mutable_id()->set_null(wire::NULL_VALUE);
  request.set_timeout_ms(1500);
  request.set_stream(64);
  request.set_input(true);
  request.set_hops(3);
  request.set_to("worker");
  request.set_from("ann");
  const std::string_view json =
      R"({"jsonrpc":"2.0","method":"m","id":null,"params":{},"timeout_ms":1500,"stream":64,"input":true,"hops":3,)"
      R"("to":"worker","from":"ann"})";
  EXPECT_EQ(json_of(request.SerializeAsString()), json);
  EXPECT_EQ(protobuf_of(json), request.SerializeAsString());
  request.set_traceparent("00-1");
  request.set_tracestate("a=b");
  wire::Envelope read;
  ASSERT_TRUE(read.ParseFromString(
      protobuf_of(std::string{json.substr(0, json.size() - 1)} + R"(,"traceparent":"00-1","tracestate":"a=b"})")));
  EXPECT_EQ(read.SerializeAsString(), request.SerializeAsString());

  wire::Envelope failed;
  failed.mutable_error()->set_code(-32601);
  failed.mutable_error()->set_message("Method not found");
  failed.mutable_error()->mutable_data()->set_text("x");
  failed.mutable_id()->set_number(1.5);
  const std::string_view error =
      R"({"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found","data":"x"},"id":1.5})";
  EXPECT_EQ(json_of(failed.SerializeAsString()), error);
  EXPECT_EQ(protobuf_of(error), failed.SerializeAsString());
}

TEST(ProtobufEnvelope, BatchesAreTheirs) {
  wire::Envelope batch;
  batch.mutable_batch();
  EXPECT_EQ(json_of(batch.SerializeAsString()), "[]");
  EXPECT_EQ(protobuf_of("[]"), batch.SerializeAsString());
  batch.mutable_batch()->add_messages()->set_method("a");
  batch.mutable_batch()->add_messages()->mutable_result()->set_binary(std::string{"\0\xFF", 2});
  const std::string_view json = R"([{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","result":{"$bytes":"AP8="}}])";
  EXPECT_EQ(json_of(batch.SerializeAsString()), json);
  EXPECT_EQ(protobuf_of(json), batch.SerializeAsString());
}

TEST(ProtobufEnvelope, WhateverBytesTheyTakeForAValueAreTheSameValueHere) {
  google::protobuf::SetLogHandler(nullptr);
  Random random{1};
  wire::Value value;
  fill(Json::parse(R"({"a":[1,-70000,2.5,"é",null,true,{"$b":[]}],"c":{"d":{"e":"f"}}})"), value);
  std::string whole = value.SerializeAsString();
  int taken = 0;
  for (int round = 0; round < 30'000; ++round) {
    std::string bytes = whole;
    if (random() % 4 == 0) bytes += whole.substr(random() % whole.size());
    for (unsigned changes = random() % 4; changes != 0; --changes) {
      const std::size_t at = random() % bytes.size();
      bytes[at] = static_cast<char>(random() % 2 == 0 ? random() % 128 : random());
    }
    wire::Envelope theirs;
    const bool parsed = theirs.mutable_result()->ParseFromString(bytes);
    std::string around{'\x1A'};
    for (std::size_t size = bytes.size();; size >>= 7) {
      around.push_back(static_cast<char>(size < 0x80 ? size : size | 0x80));
      if (size < 0x80) break;
    }
    const std::string json = json_of(around + bytes);
    if (json == "malformed") {
      // Beyond theirs, digits have to be a number's.
      EXPECT_TRUE(!parsed || bytes.contains('\x52')) << testing::PrintToString(bytes);
      continue;
    }
    if (!parsed) continue;  // they look into what a later kind of the oneof replaces, too
    theirs.DiscardUnknownFields();
    EXPECT_EQ(json, json_of(theirs.SerializeAsString())) << testing::PrintToString(bytes);
    ++taken;
  }
  EXPECT_GT(taken, 5000);
}

// ---- a peer of theirs at a server and at a broker ----

class WirePeer {
 public:
  explicit WirePeer(const Endpoint& endpoint) : peer_(endpoint) {}
  void send(const wire::Envelope& message) {
    const std::string bytes = message.SerializeAsString();
    std::string frame;
    for (int shift = 24; shift >= 0; shift -= 8) frame.push_back(static_cast<char>(bytes.size() >> shift));
    peer_.send(frame + bytes);
  }
  wire::Envelope receive() {
    std::size_t size = 0;
    for (const char c : peer_.take(4)) size = size << 8 | static_cast<unsigned char>(c);
    wire::Envelope message;
    EXPECT_TRUE(message.ParseFromString(peer_.take(size)));
    return message;
  }

 private:
  RawPeer peer_;
};

wire::Envelope call(std::string_view method, std::int64_t id, const Json& params) {
  wire::Envelope out;
  out.set_method(std::string{method});
  out.mutable_id()->set_integer(id);
  fill(params, *out.mutable_params());
  return out;
}

TEST(ProtobufEnvelope, APeerOfTheirsCallsAServer) {
  Server server;
  server.method("subtract", [](int a, int b) { return a - b; }, {"minuend", "subtrahend"});
  server.method("echo", [](Value value) { return value; });
  server.method("count", [](int n) -> Stream<int> {
    for (int i = 0; i < n; ++i) co_yield i;
  });
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  WirePeer peer{endpoint};
  peer.send(call("subtract", 1, {{"minuend", 42}, {"subtrahend", 23}}));
  const wire::Envelope difference = peer.receive();
  EXPECT_EQ(difference.result().integer(), 19);
  EXPECT_EQ(difference.id().integer(), 1);

  wire::Envelope bytes = call("echo", 2, Json::array());
  bytes.mutable_params()->mutable_list()->add_values()->set_binary(std::string{"\0\xFF", 2});
  peer.send(bytes);
  EXPECT_EQ(peer.receive().result().binary(), (std::string{"\0\xFF", 2}));

  peer.send(call("nowhere", 3, Json::array()));
  EXPECT_EQ(peer.receive().error().code(), -32601);
  wire::Envelope infinite = call("echo", 4, Json::array());
  infinite.mutable_params()->mutable_list()->add_values()->set_number(std::numeric_limits<double>::infinity());
  peer.send(infinite);
  const wire::Envelope refused = peer.receive();
  EXPECT_EQ(refused.error().code(), -32602);
  EXPECT_EQ(refused.id().integer(), 4);

  wire::Envelope stream = call("count", 5, Json::array({2}));
  stream.set_stream(8);
  peer.send(stream);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(peer.receive().method(), "rpc.item");
  EXPECT_EQ(peer.receive().id().integer(), 5);

  wire::Envelope batch;
  *batch.mutable_batch()->add_messages() = call("subtract", 6, Json::array({5, 3}));
  *batch.mutable_batch()->add_messages() = call("subtract", 7, Json::array({"x", 3}));
  peer.send(batch);
  const wire::Envelope answers = peer.receive();
  ASSERT_EQ(answers.batch().messages_size(), 2);
  EXPECT_EQ(answers.batch().messages(0).result().integer(), 2);
  EXPECT_EQ(answers.batch().messages(1).error().code(), -32602);
}

TEST(ProtobufEnvelope, APeerOfTheirsProvidesAMethodAtABroker) {
  Broker broker;
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  const RunningServer running{broker};
  WirePeer provider{endpoint};
  provider.send(call("rpc.register", 1, {{"method", "largest"}}));
  EXPECT_FALSE(provider.receive().has_error());
  Client caller{endpoint.uri()};
  std::future<std::uint64_t> pending = caller.request<std::uint64_t>("largest").future();
  const wire::Envelope request = provider.receive();
  EXPECT_EQ(request.method(), "largest");
  wire::Envelope response;
  *response.mutable_id() = request.id();
  response.mutable_result()->set_unsigned_integer(UINT64_MAX);
  provider.send(response);
  EXPECT_EQ(pending.get(), UINT64_MAX);
}

}  // namespace
}  // namespace wirecall::net
