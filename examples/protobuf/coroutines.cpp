// echo.proto's service by functions and coroutines, without the class that protoc makes: served from its descriptor,
// called by co_await, provided at a broker, and sent as messages' own bytes.
#include <cstdio>
#include <exception>
#include <memory>
#include <thread>

#include "echo.pb.h"
#include "wirecall/protobuf.hpp"
#include "wirecall/wirecall.hpp"

using echo::EchoRequest;
using echo::EchoResponse;
using wirecall::protobuf::Channel;

namespace {

EchoRequest request_of(const char* message) {
  EchoRequest request;
  request.set_message(message);
  return request;
}

EchoResponse respond(const EchoRequest& request) {
  EchoResponse response;
  response.set_response(request.message());
  return response;
}

wirecall::Task<bool> ask(Channel& channel) {
  const EchoResponse one = co_await channel.call<EchoResponse>("echo.EchoService.Echo", request_of("one"));
  const EchoResponse other = co_await channel.call<EchoResponse>("echo.EchoService.RelayEcho", request_of("other"));
  std::printf("%s, %s\n", one.response().c_str(), other.response().c_str());
  co_return one.response() == "one" && other.response() == "other";
}

}  // namespace

int main() try {
  wirecall::Broker broker;
  const wirecall::Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  std::jthread serving{[&broker] { broker.run(wirecall::OnSignals::leave); }};
  // However it ends: the thread that serves ends with this.
  const std::shared_ptr<void> stopping{nullptr, [&broker](void*) { broker.stop(); }};
  bool right = false;
  {
    wirecall::Client provider{endpoint.uri()};
    wirecall::protobuf::ProvidedService service{provider, "echo.EchoService"};
    service.method("Echo", respond);
    service.method("RelayEcho",
                   [](EchoRequest request) -> wirecall::Task<EchoResponse> { co_return respond(request); });
    provider.connect();

    wirecall::Client client{endpoint.uri(), R"({"encoding": "protobuf"})"};
    Channel channel{client, {.as_bytes = true}};
    right = client.run(ask(channel));
    // Anybody calls it by its fields.
    wirecall::Client json{endpoint.uri()};
    right = right && json.call_raw("echo.EchoService.Echo", R"({"message":"hello"})") == R"({"response":"hello"})";
  }
  return right ? 0 : 1;
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
