// Services that a client provides at a broker: generated ones and others, called by stubs, coroutines and by their
// fields, in every encoding.
#include <chrono>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <string_view>

#include "echo.pb.h"
#include "services.pb.h"
#include "tests/connection/peer.hpp"
#include "wirecall/protobuf.hpp"
#include "wirecall/value.hpp"
#include "wirecall/wirecall.hpp"

namespace {

using services::Number;
using wirecall::Client;
using wirecall::ClientOptions;
using wirecall::protobuf::Channel;
using wirecall::protobuf::Controller;
using wirecall::protobuf::ProvidedService;

class ProvidedServices : public testing::TestWithParam<std::string_view> {
 protected:
  class Echoing : public echo::EchoService {
   public:
    void Echo(google::protobuf::RpcController* controller, const echo::EchoRequest* request,
              echo::EchoResponse* response, google::protobuf::Closure* done) override {
      if (request->message() == "fail") Controller::of(controller).fail(wirecall::Error{7, "it was to fail"});
      response->set_response("echo: " + request->message());
      done->Run();
    }
  };

  [[nodiscard]] static Number number_of(int value) {
    Number number;
    number.set_value(value);
    return number;
  }
  [[nodiscard]] ClientOptions options() const {
    return ClientOptions::from_json(R"({"encoding":")" + std::string{GetParam()} + "\"}");
  }

  wirecall::Broker broker_;
  wirecall::Endpoint endpoint_ = broker_.listen("tcp://127.0.0.1:0");
  wirecall::net::RunningServer running_{broker_};
  Client provider_{endpoint_.uri(), options()};
};
INSTANTIATE_TEST_SUITE_P(Encodings, ProvidedServices, testing::Values("json", "msgpack", "cbor", "protobuf"),
                         [](const auto& encoding) { return std::string{encoding.param}; });

TEST_P(ProvidedServices, GeneratedOnesAreCalledByStubsThroughTheBroker) {
  Echoing service;
  wirecall::protobuf::add_service(provider_, service, {.summary = "Echoes"});
  provider_.connect();
  for (const std::string_view encoding : {"json", "protobuf"}) {
    Client client{endpoint_.uri(), ClientOptions::from_json(R"({"encoding":")" + std::string{encoding} + "\"}")};
    for (const bool as_bytes : {false, true}) {
      Channel channel{client, {.as_bytes = as_bytes}};
      echo::EchoService_Stub stub{&channel};
      echo::EchoRequest request;
      request.set_message("é");
      Controller controller;
      echo::EchoResponse response;
      stub.Echo(&controller, &request, &response, nullptr);
      EXPECT_FALSE(controller.Failed()) << controller.ErrorText();
      EXPECT_EQ(response.response(), "echo: é");
      EXPECT_EQ(channel.call<&echo::EchoService_Stub::Echo>(request).call().response(), "echo: é");
      request.set_message("fail");
      Controller failing;
      stub.Echo(&failing, &request, &response, nullptr);
      EXPECT_EQ(failing.ErrorText(), "it was to fail");
      ASSERT_NE(failing.error(), nullptr);
      EXPECT_EQ(failing.error()->code(), 7);
    }
    EXPECT_EQ(client.call_raw("echo.EchoService.Echo", R"({"message":"by its field"})").value(),
              R"({"response":"echo: by its field"})");
    EXPECT_NE(client.call_raw("echo.EchoService.Echo", R"({"massage":"x"})").error().data().find("massage"),
              std::string_view::npos);
  }
}

TEST_P(ProvidedServices, FunctionsAndCoroutinesAreCheckedAgainstTheDescriptor) {
  ProvidedService service{provider_, "services.Calculator"};
  service.method("Double", [](Number number) { return number_of(2 * number.value()); }, {.concurrency = 4});
  service.method("Sum", [](wirecall::InputStream<Number> numbers) -> wirecall::Task<Number> {
    int sum = 0;
    while (const std::optional<Number> number = co_await numbers.next()) sum += number->value();
    co_return number_of(sum);
  });
  service.method("Count", [](Number most) -> wirecall::Stream<Number> {
    for (int i = 1; i <= most.value(); ++i) co_yield number_of(i);
  });
  EXPECT_THROW(service.method("Halve", [](Number number) { return number; }), std::invalid_argument);
  EXPECT_THROW(service.method("Running", [](Number number) { return number; }), std::invalid_argument);
  EXPECT_THROW((ProvidedService{provider_, "services.Nobody"}), std::invalid_argument);
  provider_.connect();

  Client client{endpoint_.uri(), options()};
  EXPECT_EQ((Channel{client}.call<Number>("services.Calculator.Double", number_of(21)).call().value()), 42);
  EXPECT_EQ(client.call_raw("services.Calculator.Double", R"({"value":4})").value(), R"({"value":8})");
  std::vector<Number> numbers;
  for (const int value : {1, 2, 3}) numbers.push_back(number_of(value));
  EXPECT_EQ(client.request<Number>("services.Calculator.Sum").input(numbers).call().value(), 6);
  int counted = 0;
  for (const Number& number : client.stream<Number>("services.Calculator.Count", number_of(3)))
    EXPECT_EQ(number.value(), ++counted);
  EXPECT_EQ(counted, 3);
  // The broker describes its fields as parameters.
  const std::string described = client.call<wirecall::Value>("rpc.discover").dump();
  EXPECT_NE(described.find(R"("name":"services.Calculator.Double","params":[{"name":"value")"), std::string::npos)
      << described;
}

}  // namespace
