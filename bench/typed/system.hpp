// One way to call the functions of functions.hpp in another process. Each call blocks.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "typed/functions.hpp"

namespace typed {

class System {
 public:
  virtual ~System() = default;
  virtual std::uint64_t fibonacci(std::uint64_t n) = 0;
  virtual std::string hash_complex(const ComplexObject& object) = 0;
  virtual double std_dev(const std::array<double, 10>& n) = 0;
  virtual double average_container(const std::vector<double>& values) = 0;
  virtual std::vector<std::uint64_t> gen_rand_ints(std::uint64_t min, std::uint64_t max, std::uint64_t count) = 0;

 protected:
  System() = default;
  System(const System&) = default;
  System& operator=(const System&) = default;
};

/// Serves until the process is killed; `listening` is called once with where that is.
using Listening = std::function<void(const std::string& endpoint)>;

void serve_wirecall(const std::string& uri, const Listening& listening);
/// `encoding`: "json", "msgpack", "cbor", or "packed" for packed values in MessagePack.
std::unique_ptr<System> call_wirecall(const std::string& uri, const std::string& encoding);

/// gRPC's synchronous API.
void serve_grpc(const Listening& listening);
std::unique_ptr<System> call_grpc(const std::string& endpoint);

}  // namespace typed
