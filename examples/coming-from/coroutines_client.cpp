// Calls Echo and RelayEcho by a coroutine, at the endpoint that is the argument, else tcp://127.0.0.1:6688.
#include <chrono>
#include <iostream>

#include "echo.pb.h"
#include "wirecall/protobuf.hpp"
#include "wirecall/wirecall.hpp"

using namespace std::chrono_literals;
using echo::EchoService_Stub;

namespace {

wirecall::Task<bool> call_both(wirecall::protobuf::Channel& channel) {
  echo::EchoRequest request;
  request.set_message("hello");
  const echo::EchoResponse direct = co_await channel.call<&EchoService_Stub::Echo>(request);
  const echo::EchoResponse relayed = co_await channel.call<&EchoService_Stub::RelayEcho>(request).timeout(10s);
  std::cout << direct.response() << "\n" << relayed.response() << "\n";
  co_return direct.response() == "echo of hello" && relayed.response() == "echo of relayed hello";
}

}  // namespace

int main(int argc, char** argv) try {
  wirecall::Client client{argc > 1 ? argv[1] : "tcp://127.0.0.1:6688"};
  wirecall::protobuf::Channel channel{client};
  return client.run(call_both(channel)) ? 0 : 1;
} catch (const wirecall::Error& error) {
  std::cerr << error.code() << ": " << error.what() << "\n";
  return 1;
}
