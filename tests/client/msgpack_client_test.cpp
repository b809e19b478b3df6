// Our client speaking MessagePack, behind a length and by HTTP, to a server and at a broker.
#include <atomic>
#include <cstddef>
#include <gtest/gtest.h>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tests/connection/peer.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"
#include "wirecall/value.hpp"

namespace wirecall::net {
namespace {

constexpr std::string_view kWhyInteger = "an integer is beyond 64 bits, which MessagePack cannot express";

class MsgpackClient : public testing::TestWithParam<std::string_view> {
 protected:
  MsgpackClient() {
    server_.method("subtract", [](int a, int b) { return a - b; }, {"minuend", "subtrahend"});
    server_.method("echo", [](Value value) { return value; });
    server_.method("huge", [] { return Value::number("18446744073709551616"); });
    server_.method("reversed",
                   [](std::vector<std::byte> data) { return std::vector<std::byte>(data.rbegin(), data.rend()); });
    server_.method("note", [this] { ++notes_; });
    server_.method("notes", [this] { return notes_; });
    server_.method("count", [](int n) -> Stream<int> {
      for (int i = 0; i < n; ++i) co_yield i;
    });
    const Endpoint tcp = server_.listen("tcp://127.0.0.1:0");
    uri_ = std::string{GetParam()} + tcp.uri().substr(3);
    running_.emplace(server_);
  }
  static ClientOptions options() {
    ClientOptions options;
    options.encoding = Encoding::msgpack;
    return options;
  }

  int notes_ = 0;
  Server server_;
  std::string uri_;
  std::optional<RunningServer> running_;
};
INSTANTIATE_TEST_SUITE_P(Ways, MsgpackClient, testing::Values("tcp", "http"),
                         [](const auto& way) { return std::string{way.param}; });

TEST_P(MsgpackClient, CallsNotifiesBatchesAndStreamsInIt) {
  Client client{uri_, options()};
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
  const std::vector<std::byte> data{std::byte{1}, std::byte{255}};
  EXPECT_EQ(client.call<std::vector<std::byte>>("reversed", data), (std::vector<std::byte>{data[1], data[0]}));
  EXPECT_EQ(client.call<std::string>("echo", std::string(100'000, 'x')), std::string(100'000, 'x'));
  client.notify("note");
  EXPECT_EQ(client.call<int>("notes"), 1);
  const auto [a, b] = client.batch().call<int>("subtract", 42, 23).notify("note").call<std::string>("echo", "x").send();
  EXPECT_EQ(a, 19);
  EXPECT_EQ(b, "x");
  EXPECT_EQ(client.call<int>("notes"), 2);
  std::vector<int> items;
  for (const int item : client.stream<int>("count", 5)) items.push_back(item);
  EXPECT_EQ(items, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(client.request<int>("subtract", 3, 1).future().get(), 2);
  EXPECT_EQ(client.try_call<int>("nowhere").error().code(), -32601);
  EXPECT_EQ(client.try_call<int>("huge").error().code(), -32603);
}

TEST_P(MsgpackClient, WhatItCannotHoldIsInvalidParamsAndNotSent) {
  Client client{uri_, options()};
  const Value huge = Value::number("18446744073709551616");
  const auto refused = client.try_call<Value>("echo", huge);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), -32602);
  EXPECT_EQ(refused.error().message(), kWhyInteger);
  EXPECT_THROW(client.notify("note", huge), LocalError);
  EXPECT_EQ(client.call_raw("echo", "[18446744073709551616]").error().message(), kWhyInteger);
  const auto both = client.batch().call<Value>("echo", huge).call<int>("subtract", 42, 23).send();
  ASSERT_FALSE(std::get<0>(both).has_value());
  EXPECT_EQ(std::get<0>(both).error().code(), -32602);
  EXPECT_EQ(std::get<1>(both), 19);
  const auto none = client.batch().call<Value>("echo", huge).call<Value>("echo", huge).send();
  EXPECT_EQ(std::get<0>(none).error().code(), -32602);
  EXPECT_EQ(std::get<1>(none).error().code(), -32602);
  EXPECT_EQ(client.call<int>("notes"), 0);
}

TEST(MsgpackClientAtABroker, ItemsOfAStreamAreWhatTheyWere) {
  Broker broker;
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  const RunningServer running{broker};
  ClientOptions options;
  options.encoding = Encoding::msgpack;
  Client worker{endpoint.uri(), options};
  worker.provide("numbers", []() -> Stream<double> {
    co_yield 1.5;
    co_yield std::numeric_limits<double>::quiet_NaN();
    co_yield std::numeric_limits<double>::infinity();
  });
  worker.provide("nan", [] { return std::numeric_limits<double>::quiet_NaN(); });
  worker.connect();
  Client caller{endpoint.uri(), options};
  for (const char* const method : {"numbers", "nan"}) {
    std::vector<std::string> items;
    for (const double item : caller.stream<double>(method)) items.push_back(std::to_string(item));
    EXPECT_EQ(items, method == std::string_view{"nan"} ? (std::vector<std::string>{"nan"})
                                                       : (std::vector<std::string>{"1.500000", "nan", "inf"}));
  }
  // A caller that speaks JSON is told where it cannot be.
  Client reader{endpoint.uri()};
  auto stream = reader.stream<double>("numbers");
  int count = 0;
  EXPECT_THROW(
      {
        for (const double item : stream) count += item == 1.5 ? 1 : 100;
      },
      Error);
  EXPECT_EQ(count, 1);
}

TEST(MsgpackClientAtABroker, ProvidesSubscribesAndCalls) {
  Broker broker;
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  const RunningServer running{broker};
  ClientOptions options;
  options.encoding = Encoding::msgpack;
  options.client_id = "worker";
  Client worker{endpoint.uri(), options};
  worker.provide("add", [](int a, int b) { return a + b; });
  worker.connect();
  Client caller{endpoint.uri()};
  EXPECT_EQ(caller.call<int>("add", 1, 2), 3);
  std::atomic<int> seen = 0;
  const auto subscription = worker.subscribe("news.*", [&](const Event& event) { seen = event.as<int>(); });
  EXPECT_TRUE(comes_true([&] { return caller.publish("news.a", 7) == 1; }));
  EXPECT_TRUE(comes_true([&] { return seen == 7; }));
  const auto refused = caller.try_call<int>("add", Value::number("18446744073709551616"), 2);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), -32602);
  EXPECT_EQ(caller.call<int>("add", 3, 4), 7);
}

}  // namespace
}  // namespace wirecall::net
