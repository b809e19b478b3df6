// The functions by wirecall, from a header that both sides share.
#include <string>

#include "typed/system.hpp"
#include "wirecall/client.hpp"
#include "wirecall/packed_call.hpp"
#include "wirecall/server.hpp"

namespace typed {
namespace {

class Wirecall : public System {
 public:
  Wirecall(const std::string& uri, wirecall::ClientOptions options) : client_(uri, std::move(options)) {}
  std::uint64_t fibonacci(std::uint64_t n) override { return client_.call<typed::fibonacci>(n); }
  std::string hash_complex(const ComplexObject& object) override { return client_.call<typed::hash_complex>(object); }
  double std_dev(const std::array<double, 10>& n) override {
    return client_.call<typed::std_dev>(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9]);
  }
  double average_container(const std::vector<double>& values) override {
    return client_.call<typed::average_container>(values);
  }
  std::vector<std::uint64_t> gen_rand_ints(std::uint64_t min, std::uint64_t max, std::uint64_t count) override {
    return client_.call<typed::gen_rand_ints>(min, max, count);
  }

 protected:
  wirecall::Client client_;
};

class Packed final : public Wirecall {
 public:
  using Wirecall::Wirecall;
  std::uint64_t fibonacci(std::uint64_t n) override { return wirecall::call_packed<typed::fibonacci>(client_, n); }
  std::string hash_complex(const ComplexObject& object) override {
    return wirecall::call_packed<typed::hash_complex>(client_, object);
  }
  double std_dev(const std::array<double, 10>& n) override {
    return wirecall::call_packed<typed::std_dev>(client_, n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9]);
  }
  double average_container(const std::vector<double>& values) override {
    return wirecall::call_packed<typed::average_container>(client_, values);
  }
  std::vector<std::uint64_t> gen_rand_ints(std::uint64_t min, std::uint64_t max, std::uint64_t count) override {
    return wirecall::call_packed<typed::gen_rand_ints>(client_, min, max, count);
  }
};

}  // namespace

void serve_wirecall(const std::string& uri, const Listening& listening) {
  wirecall::Server server;
  using wirecall::packing;
  server.method<fibonacci>({"n"}).packed(packing<fibonacci>());
  server.method<hash_complex>({"object"}).packed(packing<hash_complex>());
  server.method<std_dev>({"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "n10"}).packed(packing<std_dev>());
  server.method<average_container>({"values"}).packed(packing<average_container>());
  server.method<gen_rand_ints>({"min", "max", "count"}).packed(packing<gen_rand_ints>());
  listening(server.listen(uri).uri());
  server.run();
}

std::unique_ptr<System> call_wirecall(const std::string& uri, const std::string& encoding) {
  wirecall::ClientOptions options;
  if (encoding == "msgpack") options.encoding = wirecall::Encoding::msgpack;
  if (encoding == "cbor") options.encoding = wirecall::Encoding::cbor;
  if (encoding == "protobuf") options.encoding = wirecall::Encoding::protobuf;
  if (encoding == "packed") {
    options.encoding = wirecall::Encoding::msgpack;
    return std::make_unique<Packed>(uri, std::move(options));
  }
  return std::make_unique<Wirecall>(uri, std::move(options));
}

}  // namespace typed
