// The functions by gRPC's synchronous API, with its defaults.
#include <algorithm>
#include <cstdlib>
#include <grpcpp/grpcpp.h>

#include "typed.grpc.pb.h"
#include "typed/system.hpp"

namespace typed {
namespace {

using typed_grpc::Functions;

class Served final : public Functions::Service {
  grpc::Status Fibonacci(grpc::ServerContext*, const typed_grpc::Number* n, typed_grpc::Number* result) override {
    result->set_value(fibonacci(n->value()));
    return grpc::Status::OK;
  }
  grpc::Status HashComplex(grpc::ServerContext*, const typed_grpc::ComplexObject* sent,
                           typed_grpc::Text* result) override {
    ComplexObject object{.id = sent->id(), .name = sent->name(), .flag1 = sent->flag1(), .flag2 = sent->flag2()};
    if (sent->vals().size() != object.vals.size()) return {grpc::StatusCode::INVALID_ARGUMENT, "vals has 12 bytes"};
    std::ranges::copy(sent->vals(), object.vals.begin());
    result->set_value(hash_complex(object));
    return grpc::Status::OK;
  }
  grpc::Status StdDev(grpc::ServerContext*, const typed_grpc::TenReals* n, typed_grpc::Real* result) override {
    result->set_value(
        std_dev(n->n1(), n->n2(), n->n3(), n->n4(), n->n5(), n->n6(), n->n7(), n->n8(), n->n9(), n->n10()));
    return grpc::Status::OK;
  }
  grpc::Status AverageContainer(grpc::ServerContext*, const typed_grpc::Reals* sent,
                                typed_grpc::Real* result) override {
    result->set_value(average_container({sent->values().begin(), sent->values().end()}));
    return grpc::Status::OK;
  }
  grpc::Status GenRandInts(grpc::ServerContext*, const typed_grpc::Range* range, typed_grpc::Numbers* result) override {
    for (const std::uint64_t number : gen_rand_ints(range->min(), range->max(), range->count()))
      result->add_values(number);
    return grpc::Status::OK;
  }
};

class Grpc final : public System {
 public:
  explicit Grpc(const std::string& endpoint)
      : stub_(Functions::NewStub(grpc::CreateChannel(endpoint, grpc::InsecureChannelCredentials()))) {}

  std::uint64_t fibonacci(std::uint64_t n) override {
    typed_grpc::Number sent;
    sent.set_value(n);
    return call(&Functions::Stub::Fibonacci, sent).value();
  }
  std::string hash_complex(const ComplexObject& object) override {
    typed_grpc::ComplexObject sent;
    sent.set_id(object.id);
    sent.set_name(object.name);
    sent.set_flag1(object.flag1);
    sent.set_flag2(object.flag2);
    sent.mutable_vals()->assign(object.vals.begin(), object.vals.end());
    return call(&Functions::Stub::HashComplex, sent).value();
  }
  double std_dev(const std::array<double, 10>& n) override {
    typed_grpc::TenReals sent;
    sent.set_n1(n[0]);
    sent.set_n2(n[1]);
    sent.set_n3(n[2]);
    sent.set_n4(n[3]);
    sent.set_n5(n[4]);
    sent.set_n6(n[5]);
    sent.set_n7(n[6]);
    sent.set_n8(n[7]);
    sent.set_n9(n[8]);
    sent.set_n10(n[9]);
    return call(&Functions::Stub::StdDev, sent).value();
  }
  double average_container(const std::vector<double>& values) override {
    typed_grpc::Reals sent;
    sent.mutable_values()->Assign(values.begin(), values.end());
    return call(&Functions::Stub::AverageContainer, sent).value();
  }
  std::vector<std::uint64_t> gen_rand_ints(std::uint64_t min, std::uint64_t max, std::uint64_t count) override {
    typed_grpc::Range sent;
    sent.set_min(min);
    sent.set_max(max);
    sent.set_count(count);
    const typed_grpc::Numbers result = call(&Functions::Stub::GenRandInts, sent);
    return {result.values().begin(), result.values().end()};
  }

 private:
  template <class Sent, class Result>
  Result call(grpc::Status (Functions::Stub::*method)(grpc::ClientContext*, const Sent&, Result*), const Sent& sent) {
    grpc::ClientContext context;
    Result result;
    if (!((*stub_).*method)(&context, sent, &result).ok()) std::abort();
    return result;
  }

  std::unique_ptr<Functions::Stub> stub_;
};

}  // namespace

void serve_grpc(const Listening& listening) {
  Served service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  listening("127.0.0.1:" + std::to_string(port));
  server->Wait();
}

std::unique_ptr<System> call_grpc(const std::string& endpoint) { return std::make_unique<Grpc>(endpoint); }

}  // namespace typed
