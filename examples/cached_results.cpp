// A method whose result depends on its arguments alone: what it has come to once is the answer to the next equal call.
#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>

#include "wirecall/registry.hpp"

using namespace std::chrono_literals;

int main() {
  wirecall::Registry registry;
  int runs = 0;
  registry.method("fib",
                  [&runs](int n) {
                    ++runs;
                    std::int64_t a = 0;
                    std::int64_t b = 1;
                    for (; n > 0; --n) {
                      b += a;
                      a = b - a;
                    }
                    return a;
                  },
                  {.params = {"n"}, .cache = {.entries = 10'000, .ttl = 1min}});

  bool as_promised = true;
  const auto ask = [&](const std::string& params, int runs_then) {
    const std::string reply = registry.handle(R"({"jsonrpc":"2.0","method":"fib","params":)" + params + R"(,"id":1})");
    std::cout << params << "  " << reply << "  the function has run " << runs << " times\n";
    as_promised = as_promised && reply == R"({"jsonrpc":"2.0","result":12586269025,"id":1})" && runs == runs_then;
  };
  ask("[50]", 1);
  ask(R"({"n": 50})", 1);  // the same argument by name
  ask("[50.0]", 1);        // and spelled in another way
  const std::string refused = registry.handle(R"({"jsonrpc":"2.0","method":"fib","params":["x"],"id":1})");
  std::cout << refused << "\n";  // errors are not kept
  return as_promised && refused.contains("-32602") ? 0 : 1;
}
