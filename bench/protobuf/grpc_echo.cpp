// The echo by gRPC's asynchronous C++ API: a completion queue and a thread at each end.
#include <cstdlib>
#include <grpcpp/grpcpp.h>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "echo.grpc.pb.h"
#include "protobuf/measured.hpp"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

// One call at the server: asked for, served, finished, asked for again.
class Served {
 public:
  Served(EchoService::AsyncService& service, grpc::ServerCompletionQueue& queue) : service_(service), queue_(queue) {
    next();
  }
  void proceed() {
    if (finishing_) return next();
    finishing_ = true;
    EchoResponse response;
    response.set_response(request_.message());
    writer_->Finish(response, grpc::Status::OK, this);
  }

 private:
  void next() {
    finishing_ = false;
    context_ = std::make_unique<grpc::ServerContext>();
    writer_ = std::make_unique<grpc::ServerAsyncResponseWriter<EchoResponse>>(context_.get());
    service_.RequestEcho(context_.get(), &request_, writer_.get(), &queue_, &queue_, this);
  }

  EchoService::AsyncService& service_;
  grpc::ServerCompletionQueue& queue_;
  EchoRequest request_;
  std::unique_ptr<grpc::ServerContext> context_;
  std::unique_ptr<grpc::ServerAsyncResponseWriter<EchoResponse>> writer_;
  bool finishing_ = false;
};

struct Called {
  grpc::Status status;
  EchoResponse response;
  std::unique_ptr<grpc::ClientContext> context;
  std::unique_ptr<grpc::ClientAsyncResponseReader<EchoResponse>> reader;
};

}  // namespace

Measured measure_grpc(double seconds) {
  EchoService::AsyncService service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  std::thread serving{[&] {
    std::vector<std::unique_ptr<Served>> calls;
    for (int i = 0; i < kInFlight; ++i) calls.push_back(std::make_unique<Served>(service, *queue));
    void* tag = nullptr;
    for (bool ok = false; queue->Next(&tag, &ok);) {
      if (ok) static_cast<Served*>(tag)->proceed();
    }
  }};

  const auto channel = grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials());
  const auto stub = EchoService::NewStub(channel);
  EchoRequest request;
  request.set_message("hello, world");
  grpc::CompletionQueue answers;
  std::vector<Called> calls(kInFlight);
  const auto call = [&](Called& one) {
    one.context = std::make_unique<grpc::ClientContext>();
    one.reader = stub->AsyncEcho(one.context.get(), request, &answers);
    one.reader->Finish(&one.response, &one.status, &one);
  };
  for (Called& one : calls) call(one);
  std::uint64_t done = 0;
  int running = kInFlight;
  const Clock::time_point begin = Clock::now();
  const double cpu = process_seconds();
  bool over = false;
  void* tag = nullptr;
  for (bool ok = false; running != 0 && answers.Next(&tag, &ok);) {
    Called& one = *static_cast<Called*>(tag);
    if (!one.status.ok() || one.response.response() != request.message()) std::abort();
    over = over || (++done % 64 == 0 && seconds_since(begin) >= seconds);
    over ? static_cast<void>(--running) : call(one);
  }
  const Measured measured{static_cast<double>(done) / seconds_since(begin),
                          (process_seconds() - cpu) * 1e9 / static_cast<double>(done)};
  server->Shutdown();
  queue->Shutdown();
  serving.join();
  return measured;
}

}  // namespace bench
