// Calls a server of echo.proto: by the stub that protoc has made, and by co_await.
//     client ENDPOINT METHOD MESSAGE [TIMEOUT_MS]
// METHOD is Echo or RelayEcho, by the stub; Await, which is RelayEcho by co_await; or Cancel, which is RelayEcho
// cancelled after TIMEOUT_MS. Prints the response, or the error with its code; exits with 1 for an error.
#include "wirecall/client.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <string>
#include <string_view>

#include "echo.pb.h"
#include "wirecall/protobuf.hpp"

namespace {

wirecall::Task<std::string> awaited(wirecall::protobuf::Channel& channel, echo::EchoRequest request,
                                    std::chrono::milliseconds timeout) {
  const echo::EchoResponse response =
      co_await channel.call<&echo::EchoService_Stub::RelayEcho>(request).timeout(timeout);
  co_return response.response();
}

}  // namespace

int main(int count, char** words) try {
  if (count < 4) return std::fputs("usage: client ENDPOINT METHOD MESSAGE [TIMEOUT_MS]\n", stderr), 2;
  const std::string_view method = words[2];
  const std::chrono::milliseconds timeout{count > 4 ? std::atoi(words[4]) : 10'000};
  wirecall::Client client{words[1], R"({"connect_attempts": 1})"};
  wirecall::protobuf::Channel channel{client};
  echo::EchoRequest request;
  request.set_message(words[3]);
  if (method == "Await") {
    std::printf("%s\n", client.run(awaited(channel, request, timeout)).c_str());
    return 0;
  }
  echo::EchoService_Stub stub{&channel};
  echo::EchoResponse response;
  wirecall::protobuf::Controller controller;
  if (method == "Cancel") {
    std::promise<void> done;
    stub.RelayEcho(&controller, &request, &response, wirecall::protobuf::new_closure([&] { done.set_value(); }));
    const std::future<void> answered = done.get_future();
    if (answered.wait_for(timeout) != std::future_status::ready) controller.StartCancel();
    answered.wait();
  }
  controller.set_timeout(timeout);
  if (method == "Echo") stub.Echo(&controller, &request, &response, nullptr);
  if (method == "RelayEcho") stub.RelayEcho(&controller, &request, &response, nullptr);
  if (!controller.Failed()) return std::printf("%s\n", response.response().c_str()), 0;
  std::printf("error %d: %s\n", controller.error()->code(), controller.ErrorText().c_str());
  return 1;
} catch (const wirecall::Error& error) {
  std::printf("error %d: %s\n", error.code(), error.what());
  return 1;
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
