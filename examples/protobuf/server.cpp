// Serves echo.proto's service, whose class protoc has made. RelayEcho asks a second server, if there is one, within its
// own call: with what is left of its time, and cancelled with it. Run by run.sh:
//     server ENDPOINT [SECOND_ENDPOINT]
#include "wirecall/server.hpp"

#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "echo.pb.h"
#include "wirecall/client.hpp"
#include "wirecall/protobuf.hpp"

using google::protobuf::Closure;
using google::protobuf::RpcController;
using wirecall::protobuf::Controller;

namespace {

void say(const char* line) {
  std::puts(line);
  std::fflush(stdout);
}

class EchoService final : public echo::EchoService {
 public:
  explicit EchoService(const char* second) {
    if (second == nullptr) return;
    client_.emplace(second, R"({"connect_attempts": 1})");
    channel_.emplace(*client_);
    second_.emplace(&*channel_);
  }

  void Echo(RpcController* controller, const echo::EchoRequest* request, echo::EchoResponse* response,
            Closure* done) override {
    if (request->message().empty()) {
      controller->SetFailed("there is nothing to echo");
    } else if (request->message() == "wait") {
      say("waiting");
      return controller->NotifyOnCancel(wirecall::protobuf::new_closure([done] {
        say("nobody waits any more");
        done->Run();
      }));
    } else {
      response->set_response(request->message());
    }
    done->Run();
  }

  void RelayEcho(RpcController* controller, const echo::EchoRequest* request, echo::EchoResponse* response,
                 Closure* done) override {
    if (!second_) {
      controller->SetFailed("this server has no second one");
      return done->Run();
    }
    auto inner = std::make_shared<Controller>(Controller::of(controller).context());
    Controller* const used = inner.get();
    second_->Echo(used, request, response, wirecall::protobuf::new_closure([controller, inner, done] {
                    if (inner->Failed()) Controller::of(controller).fail(*inner->error());
                    done->Run();
                  }));
  }

 private:
  std::optional<wirecall::Client> client_;
  std::optional<wirecall::protobuf::Channel> channel_;
  std::optional<echo::EchoService_Stub> second_;
};

}  // namespace

int main(int count, char** words) try {
  if (count < 2) return std::fputs("usage: server ENDPOINT [SECOND_ENDPOINT]\n", stderr), 2;
  EchoService service{count > 2 ? words[2] : nullptr};
  wirecall::Server server;
  wirecall::protobuf::add_service(server, service);
  say(server.listen(words[1]).uri().c_str());
  server.run();
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
