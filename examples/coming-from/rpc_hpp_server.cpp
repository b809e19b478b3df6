// Serves the functions of rpc_hpp.hpp, which know nothing of it. The endpoint is the argument, else
// tcp://127.0.0.1:5000; it is printed. There is no adapter to choose: the port takes each encoding.
#include <atomic>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "rpc_hpp.hpp"
#include "wirecall/adapt/nlohmann.hpp"
#include "wirecall/wirecall.hpp"

namespace {

std::atomic<int> fibonacci_runs = 0;

// A template: each instance that is served has a name of its own.
template <class T>
T larger(T a, T b) {
  return a < b ? b : a;
}

}  // namespace

int sum(int a, int b) { return a + b; }

std::uint64_t fibonacci(std::uint64_t n) {
  ++fibonacci_runs;
  std::uint64_t a = 0;
  std::uint64_t b = 1;
  for (; n > 0; --n) {
    b += a;
    a = b - a;
  }
  return a;
}

std::string label(const Badge& badge) {
  char color[8];
  std::snprintf(color, sizeof color, "#%02x%02x%02x", badge.color[0], badge.color[1], badge.color[2]);
  return (badge.is_guest ? "guest " : "") + badge.name + " " + color;
}

void scale(std::vector<double>& values, double factor) {
  if (factor == 0) throw wirecall::Error{"nothing would be left of them"};
  for (double& value : values) value *= factor;
}

int main(int argc, char** argv) {
  wirecall::Server server;
  server.method<sum>({"a", "b"});
  server.method<label>({"badge"});
  server.method<scale>({"values", "factor"});
  // Results that are kept: the function runs once for each n.
  server.method<fibonacci>({.params = {"n"}, .cache = {.entries = 1000}});
  server.method("fibonacci_runs", [] { return fibonacci_runs.load(); });
  server.method("larger_int", larger<int>, {"a", "b"});
  server.method("larger_string", larger<std::string>, {"a", "b"});
  // A value of a JSON library, as it is.
  server.method("keys", [](const nlohmann::json& object) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : object.items()) keys.push_back(key);
    return keys;
  });
  std::cout << server.listen(argc > 1 ? argv[1] : "tcp://127.0.0.1:5000").uri() << std::endl;
  server.run();
}
