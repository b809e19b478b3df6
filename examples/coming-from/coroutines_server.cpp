// Serves the EchoService of ../protobuf/echo.proto: Echo is a function, RelayEcho a coroutine that asks the Echo of a
// second server and waits for it without holding a thread.
//     coroutines_server [ENDPOINT [SECOND_ENDPOINT]]
// ENDPOINT is tcp://127.0.0.1:6688 unless it is given, and is printed.
#include <iostream>
#include <optional>

#include "echo.pb.h"
#include "wirecall/protobuf.hpp"
#include "wirecall/wirecall.hpp"

using echo::EchoRequest;
using echo::EchoResponse;
using wirecall::Task;
using wirecall::protobuf::Channel;

int main(int argc, char** argv) {
  std::optional<wirecall::Client> client;
  if (argc > 2) client.emplace(argv[2]);

  wirecall::Server server;
  wirecall::protobuf::Service service{server, "echo.EchoService"};
  service.method("Echo", [](const EchoRequest& request) {
    EchoResponse response;
    response.set_response("echo of " + request.message());
    return response;
  });
  service.method("RelayEcho", [&client](wirecall::Context context, EchoRequest request) -> Task<EchoResponse> {
    if (!client) throw wirecall::Error{"this server has no second one"};
    request.set_message("relayed " + request.message());
    // Within the time that is left of the outer call, and cancelled with it. An error of the second server is thrown
    // here, and is the answer of this one unless it is caught.
    Channel second{*client};
    co_return co_await second.call<&echo::EchoService_Stub::Echo>(request).within(context);
  });
  std::cout << server.listen(argc > 1 ? argv[1] : "tcp://127.0.0.1:6688").uri() << std::endl;
  server.run();
}
