// Messages as their own bytes: what a Channel with `as_bytes` sends is answered so, in every encoding, at a server and
// through a broker, with the fields that nobody knows; and bytes that are no such message.
#include <chrono>
#include <cstdint>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <string_view>

#include "codec/base64.hpp"
#include "echo.pb.h"
#include "kinds.pb.h"
#include "tests/connection/peer.hpp"
#include "wirecall/protobuf.hpp"
#include "wirecall/wirecall.hpp"

namespace {

using echo::EchoRequest;
using echo::EchoResponse;
using echo::EchoService_Stub;
using wirecall::Client;
using wirecall::ClientOptions;
using wirecall::Endpoint;
using wirecall::Registry;
using wirecall::Server;
using wirecall::Task;
using wirecall::net::RunningServer;
using wirecall::protobuf::Channel;
using wirecall::protobuf::Service;

constexpr int kUnknownField = 1000;

kinds::Scalars with_unknown(std::int64_t big) {
  kinds::Scalars message;
  message.set_big_int(big);
  message.GetReflection()->MutableUnknownFields(&message)->AddVarint(kUnknownField, 7);
  return message;
}
std::uint64_t unknown_of(const kinds::Scalars& message) {
  const google::protobuf::UnknownFieldSet& fields = message.GetReflection()->GetUnknownFields(message);
  return fields.field_count() == 1 && fields.field(0).number() == kUnknownField ? fields.field(0).varint() : 0;
}

std::string base64_of(const std::string& bytes) {
  std::string text(wirecall::codec::base64_size(bytes.size()), '\0');
  wirecall::codec::base64_encode(std::as_bytes(std::span{bytes}), text.data());
  return text;
}

class PlainEcho : public echo::EchoService {
 public:
  void Echo(google::protobuf::RpcController*, const EchoRequest* request, EchoResponse* response,
            google::protobuf::Closure* done) override {
    response->set_response(request->message());
    done->Run();
  }
};

class OwnBytes : public testing::TestWithParam<std::string_view> {
 protected:
  [[nodiscard]] static ClientOptions options() {
    return ClientOptions::from_json(R"({"encoding":")" + std::string{GetParam()} + "\"}");
  }
};
INSTANTIATE_TEST_SUITE_P(Encodings, OwnBytes, testing::Values("json", "msgpack", "cbor", "protobuf"),
                         [](const auto& encoding) { return std::string{encoding.param}; });

TEST_P(OwnBytes, ReachServicesAndMethodsAndAreAnsweredSo) {
  Server server;
  PlainEcho service;
  wirecall::protobuf::add_service(server, service);
  server.method("same", [](kinds::Scalars message) { return message; });
  server.method("later", [](wirecall::Context context, kinds::Scalars message) -> Task<kinds::Scalars> {
    co_await sleep_for(*context.scheduler(), std::chrono::nanoseconds{0});
    co_return message;
  });
  server.method("blocking", wirecall::blocking([](kinds::Scalars message) { return message; }));
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  Client client{endpoint.uri(), options()};
  Channel channel{client, {.as_bytes = true}};
  EchoRequest request;
  request.set_message("é");
  EXPECT_EQ(channel.call<&EchoService_Stub::Echo>(request).call().response(), "é");
  EchoService_Stub stub{&channel};
  EchoResponse response;
  stub.Echo(nullptr, &request, &response, nullptr);
  EXPECT_EQ(response.response(), "é");
  for (const std::string_view method : {"same", "later", "blocking"}) {
    const auto answer = channel.call<kinds::Scalars>(method, with_unknown(9'007'199'254'740'993)).call();
    EXPECT_EQ(answer.big_int(), 9'007'199'254'740'993) << method;
    EXPECT_EQ(unknown_of(answer), 7U) << method;
  }
  // Those who send proto3 JSON are answered in it.
  EXPECT_EQ(client.call<kinds::Scalars>("same", with_unknown(3)).big_int(), 3);
  EXPECT_EQ(Channel{client}.call<&EchoService_Stub::Echo>(request).call().response(), "é");
  EXPECT_EQ(client.call_raw("same", R"([{"bigInt":"5"}])").value(), R"({"bigInt":"5"})");
  // As many that the loop goes on without their handler.
  kinds::Scalars large = with_unknown(1);
  large.set_text(std::string(1'000'000, 'x'));
  EXPECT_EQ(unknown_of(channel.call<kinds::Scalars>("same", large).call()), 7U);
}

TEST_P(OwnBytes, PassABrokerThatDoesNotKnowThem) {
  wirecall::Broker broker;
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  const RunningServer running{broker};
  for (const std::string_view of_provider : {"json", "msgpack", "cbor", "protobuf"}) {
    Client provider{endpoint.uri(), ClientOptions::from_json(R"({"encoding":")" + std::string{of_provider} + "\"}")};
    provider.provide("same", [](kinds::Scalars message) { return message; });
    provider.connect();
    Client client{endpoint.uri(), options()};
    Channel channel{client, {.as_bytes = true}};
    EXPECT_EQ(unknown_of(channel.call<kinds::Scalars>("same", with_unknown(1)).call()), 7U) << of_provider;
    EXPECT_EQ(client.call_raw("same", R"([{"bigInt":"5"}])").value(), R"({"bigInt":"5"})");
  }
}

TEST(OwnBytesOf, WhatIsNoSuchMessageIsRefused) {
  Registry registry;
  registry.method("same", [](kinds::Scalars message) { return message; }, {"message"});
  registry.method("number", [](int number) { return number; }, {"number"});
  const auto ask = [&](std::string_view method, const std::string& bytes) {
    return registry.handle(R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":[{"$message":")" +
                           base64_of(bytes) + R"("}],"id":1})");
  };
  EXPECT_EQ(ask("same", ""), R"({"jsonrpc":"2.0","result":{"$message":""},"id":1})");
  EXPECT_NE(ask("same", "\xFF").find("the bytes of a kinds.Scalars"), std::string::npos);
  EXPECT_NE(ask("same", std::string{"\x52\x01\xFF", 3}).find("-32602"), std::string::npos);  // no UTF-8
  EXPECT_NE(ask("number", "").find("-32602"), std::string::npos);
  // The call after it is not answered so.
  EXPECT_EQ(registry.handle(R"({"jsonrpc":"2.0","method":"same","params":[{"smallInt":1}],"id":1})"),
            R"({"jsonrpc":"2.0","result":{"smallInt":1},"id":1})");
  registry.method("tree", [](const kinds::Tree& tree) { return tree.value(); });
  std::string deep = "\x08\x01";
  for (int i = 0; i < 150; ++i) {
    std::string outer{"\x1A"};
    for (std::size_t size = deep.size();
         outer.push_back(static_cast<char>(size < 0x80 ? size : size | 0x80)), size >= 0x80;)
      size >>= 7;
    deep = outer + deep;
  }
  EXPECT_NE(ask("tree", deep).find("the bytes of a kinds.Tree"), std::string::npos);
}

TEST(OwnBytesOf, ArgumentsOfKeptResultsDifferByTheirUnknownFields) {
  Registry registry;
  registry.method("unknown", &unknown_of, wirecall::MethodOptions{.params = {"message"}, .cache = {.entries = 10}});
  const auto ask = [&](std::string_view message) {
    return registry.handle(R"({"jsonrpc":"2.0","method":"unknown","params":[)" + std::string{message} + R"(],"id":1})");
  };
  const std::string known = R"({"bigInt":"5"})";
  const std::string bytes = R"({"$message":")" + base64_of(with_unknown(5).SerializeAsString()) + R"("})";
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ask(bytes), R"({"jsonrpc":"2.0","result":7,"id":1})");
    EXPECT_EQ(ask(known), R"({"jsonrpc":"2.0","result":0,"id":1})");
  }
}

TEST(OwnBytesOf, ResultsThatAreKeptAreProto3Json) {
  Registry registry;
  registry.method(
      "same", [](kinds::Scalars message) { return message; },
      wirecall::MethodOptions{.params = {"message"}, .cache = {.entries = 10}});
  const std::string bytes = with_unknown(5).SerializeAsString();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(registry.handle(R"({"jsonrpc":"2.0","method":"same","params":[{"$message":")" + base64_of(bytes) +
                              R"("}],"id":1})"),
              R"({"jsonrpc":"2.0","result":{"bigInt":"5"},"id":1})");
  }
}

}  // namespace
