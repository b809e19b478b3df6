// An encoding that is no more than a row of the list goes by its name through clients, servers and brokers, behind a
// length and by HTTP, beside JSON, MessagePack, CBOR and Protocol Buffers.
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "message/protobuf_transcoder.hpp"
#include "tests/connection/peer.hpp"
#include "tests/message/encoded.hpp"
#include "tests/message/toy_codec.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"
#include "wirecall/value.hpp"

namespace wirecall::net {
namespace {

using message::json_of_toy;
using message::toy_of;

ClientOptions speaking(std::string_view name) {
  return ClientOptions::from_json(R"({"encoding":")" + std::string{name} + "\"}");
}

std::string subtraction(int id, std::string_view params = "[42,23]") {
  return R"({"jsonrpc":"2.0","method":"subtract","params":)" + std::string{params} + R"(,"id":)" + std::to_string(id) +
         "}";
}
std::string difference(int id) { return R"({"jsonrpc":"2.0","result":19,"id":)" + std::to_string(id) + "}"; }

std::string behind_length(std::string_view message) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(message.size() >> shift));
  return out.append(message);
}
std::string from_behind_length(RawPeer& peer) {
  std::size_t size = 0;
  for (const char c : peer.take(4)) size = size << 8 | static_cast<unsigned char>(c);
  return peer.take(size);
}

void add_methods(Server& server) {
  server.method("subtract", [](int a, int b) { return a - b; }, {"minuend", "subtrahend"});
  server.method("echo", [](Value value) { return value; });
  server.method("count", [](int n) -> Stream<int> {
    for (int i = 0; i < n; ++i) co_yield i;
  });
}

template <class From>
std::vector<int> counted(From& from) {
  std::vector<int> items;
  for (const int item : from.template stream<int>("count", 5)) items.push_back(item);
  return items;
}

/// A server at an address of that scheme, and clients that speak that.
class AnyServer : public testing::TestWithParam<std::tuple<std::string_view, std::string_view>> {
 protected:
  AnyServer() {
    add_methods(server_);
    server_.method("note", [this] { ++notes_; });
    server_.method("notes", [this] { return notes_; });
    uri_ = std::string{std::get<0>(GetParam())} + server_.listen("tcp://127.0.0.1:0").uri().substr(3);
    running_.emplace(server_);
  }

  int notes_ = 0;
  Server server_;
  std::string uri_;
  std::optional<RunningServer> running_;
};
INSTANTIATE_TEST_SUITE_P(
    Ways, AnyServer, testing::Combine(testing::Values("tcp", "http", "ws"), testing::Values("toy", "cbor", "protobuf")),
    [](const auto& way) { return std::string{std::get<0>(way.param)} + "_" + std::string{std::get<1>(way.param)}; });

TEST_P(AnyServer, CallsNotifiesBatchesAndStreams) {
  Client client{uri_, speaking(std::get<1>(GetParam()))};
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
  EXPECT_EQ(client.call_raw("subtract", R"({"subtrahend":23,"minuend":42})"), "19");
  client.notify("note");
  EXPECT_EQ(client.call<int>("notes"), 1);
  const auto [a, b] = client.batch().call<int>("subtract", 42, 23).notify("note").call<std::string>("echo", "x").send();
  EXPECT_EQ(a, 19);
  EXPECT_EQ(b, "x");
  EXPECT_EQ(client.call<int>("notes"), 2);
  EXPECT_EQ(counted(client), (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(client.try_call<int>("nowhere").error().code(), -32601);
  EXPECT_EQ(client.try_call<int>("subtract", "x").error().code(), -32602);
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(client.call<std::string>("echo", large), large);
}

// Requests in Protocol Buffers are read and answered as they are, where they are usual; the answers are those that JSON
// becomes.
TEST(ProtobufFrames, AreAnsweredAsJsonIs) {
  Server server;
  add_methods(server);
  server.method("fail", [](int code) -> int { throw Error{code, "é", R"({"why":[1]})"}; });
  server.method("later", [](Context context, std::string text) -> Task<std::string> {
    co_await sleep_for(*context.scheduler(), std::chrono::nanoseconds{0});
    co_return text;
  });
  server.method("not_a_number", [] { return std::numeric_limits<double>::quiet_NaN(); });
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  RawPeer peer{endpoint};
  struct Exchange {
    std::string_view request;
    int frames = 1;
  };
  for (const Exchange& one :
       {Exchange{R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1})"},
        Exchange{R"({"jsonrpc":"2.0","method":"subtract","params":{"subtrahend":23,"minuend":-42},"id":"a"})"},
        Exchange{R"({"jsonrpc":"2.0","method":"subtract","params":["x",[1.5]],"id":"a"})"},
        Exchange{R"({"jsonrpc":"2.0","method":"subtract","params":[1],"id":18446744073709551616})"},
        Exchange{R"({"jsonrpc":"2.0","method":"nowhere","params":[],"id":1})"},
        Exchange{
            R"({"jsonrpc":"2.0","method":"echo","params":[{"a":[1,-1.5,{"b":null}],"c":{"$bytes":"AA=="}}],"id":1})"},
        Exchange{R"({"jsonrpc":"2.0","method":"echo","params":[123456789012345678901234567890],"id":1})"},
        Exchange{R"({"jsonrpc":"2.0","method":"echo","params":[{"$npy":"AA=="}],"id":1})"},
        Exchange{R"({"jsonrpc":"2.0","method":"fail","params":[-32000],"id":1})"},
        Exchange{R"({"jsonrpc":"2.0","method":"later","params":["later"],"id":1})"},
        Exchange{R"({"jsonrpc":"2.0","method":"not_a_number","id":1})"},
        Exchange{R"({"jsonrpc":"2.0","method":"count","params":[3],"id":1})"},
        Exchange{R"({"jsonrpc":"2.0","method":"count","params":{"arg0":3,"partialResultToken":"t"},"id":1})", 4},
        Exchange{R"([{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1}])"}}) {
    peer.send(behind_length(one.request));
    std::vector<std::string> in_json;
    for (int i = 0; i < one.frames; ++i) in_json.push_back(from_behind_length(peer));
    peer.send(behind_length(message::encoded<message::ProtobufTranscoder>(one.request)));
    for (const std::string& json : in_json)
      EXPECT_EQ(from_behind_length(peer), message::encoded<message::ProtobufTranscoder>(json)) << json;
  }
}

TEST(ToyFrames, EachMessageIsAnsweredInItsOwnEncoding) {
  Server server;
  add_methods(server);
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  RawPeer peer{endpoint};
  peer.send(behind_length(toy_of(subtraction(1))) + behind_length(subtraction(2)) +
            behind_length(toy_of("[" + subtraction(3) + "]")));
  EXPECT_EQ(json_of_toy(from_behind_length(peer)), difference(1));
  EXPECT_EQ(from_behind_length(peer), difference(2));
  EXPECT_EQ(json_of_toy(from_behind_length(peer)), "[" + difference(3) + "]");
  peer.send(behind_length(toy_of("no JSON")) + behind_length({&message::kToyTag, 1}) +
            behind_length(toy_of(subtraction(4))));
  for (int i = 0; i < 2; ++i)
    EXPECT_NE(json_of_toy(from_behind_length(peer)).find(R"("code":-32700)"), std::string::npos);
  EXPECT_EQ(json_of_toy(from_behind_length(peer)), difference(4));
}

TEST(ToyHttp, TheBodyOrAcceptChooses) {
  Server server;
  add_methods(server);
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  const std::string toy = "application/x-toy";
  const std::string json = "application/json";
  struct Case {
    std::string body, fields, type;
  };
  for (const Case& one :
       {Case{toy_of(subtraction(1)), "", toy}, Case{toy_of(subtraction(1)), "Content-Type: text/plain\r\n", toy},
        Case{toy_of(subtraction(1)), "Accept: application/json\r\n", json},
        Case{subtraction(1), "Accept: text/html, application/toy;q=1\r\n", toy},
        Case{subtraction(1), "Content-Type: application/x-toy\r\n", toy}, Case{subtraction(1), "", json}}) {
    RawPeer peer{endpoint};
    peer.send("POST /rpc HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + one.fields +
              "Content-Length: " + std::to_string(one.body.size()) + "\r\n\r\n" + one.body);
    const std::string answer = one.type == toy ? toy_of(difference(1)) : difference(1);
    EXPECT_EQ(peer.all(), "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: " + one.type +
                              "\r\nContent-Length: " + std::to_string(answer.size()) + "\r\n\r\n" + answer);
  }
}

// Caller and provider, each in one of all.
class AnyTwo : public testing::TestWithParam<std::tuple<std::string_view, std::string_view>> {};
constexpr std::array kAll{std::string_view{"json"}, std::string_view{"msgpack"}, std::string_view{"cbor"},
                          std::string_view{"protobuf"}, std::string_view{"toy"}};
INSTANTIATE_TEST_SUITE_P(Encodings, AnyTwo, testing::Combine(testing::ValuesIn(kAll), testing::ValuesIn(kAll)),
                         [](const auto& two) {
                           return std::string{std::get<0>(two.param)} + "_" + std::string{std::get<1>(two.param)};
                         });

TEST_P(AnyTwo, MeetAtABroker) {
  Broker broker;
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  const RunningServer running{broker};
  Client provider{endpoint.uri(), speaking(std::get<1>(GetParam()))};
  provider.provide("subtract", [](int a, int b) { return a - b; });
  provider.provide("count", [](int n) -> Stream<int> {
    for (int i = 0; i < n; ++i) co_yield i;
  });
  provider.provide("fail", [] -> int { throw Error{7, "as it is", R"({"why":1})"}; });
  std::atomic<int> told = 0;
  provider.provide("note", [&told](int by) { told += by; });
  provider.connect();
  Client caller{endpoint.uri(), speaking(std::get<0>(GetParam()))};
  EXPECT_EQ(caller.call<int>("subtract", 42, 23), 19);
  EXPECT_EQ(counted(caller), (std::vector<int>{0, 1, 2, 3, 4}));
  const auto failed = caller.try_call<int>("fail");
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code(), 7);
  EXPECT_EQ(failed.error().data(), R"({"why":1})");
  caller.notify("note", 5);
  EXPECT_TRUE(comes_true([&] { return told == 5; }));
  const auto [a, b] = caller.batch().call<int>("subtract", 3, 1).call<int>("subtract", 4, 1).send();
  EXPECT_EQ(a, 2);
  EXPECT_EQ(b, 3);
  std::atomic<int> seen = 0;
  const auto subscription = provider.subscribe("news.*", [&](const Event& event) { seen = event.as<int>(); });
  EXPECT_TRUE(comes_true([&] { return caller.publish("news.a", 7) == 1; }));
  EXPECT_TRUE(comes_true([&] { return seen == 7; }));
}

TEST(AllEncodings, AnEventComesToEachInItsOwn) {
  Broker broker;
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  const RunningServer running{broker};
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<Subscription> subscriptions;
  std::atomic<int> seen = 0;
  for (const std::string_view name : kAll) {
    clients.push_back(std::make_unique<Client>(endpoint.uri(), speaking(name)));
    subscriptions.push_back(clients.back()->subscribe("news", [&](const Event& event) { seen += event.as<int>(); }));
    clients.back()->connect();
  }
  Client publisher{endpoint.uri(), speaking("msgpack")};
  EXPECT_EQ(publisher.publish("news", 1), kAll.size());
  EXPECT_TRUE(comes_true([&] { return seen == static_cast<int>(kAll.size()); }));
}

}  // namespace
}  // namespace wirecall::net
