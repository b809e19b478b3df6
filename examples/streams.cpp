// A handler that yields its results one by one. They are made when they are asked for, and gathered into the one array
// with which the call is answered.
#include <iostream>
#include <string>

#include "wirecall/registry.hpp"

struct Prime {
  int number = 0;
  int gap = 0;  // to the one before it
};

wirecall::Stream<int> count(int n) {
  for (int i = 0; i < n; ++i) co_yield i;
}

// A stream may throw at any point: the call is then answered with the error, and what was gathered is dropped.
wirecall::Stream<Prime> primes(int below) {
  if (below > 1'000'000) throw wirecall::Error{-30, "too far: at most 1000000"};
  int last = 2;
  for (int number = 2; number < below; ++number) {
    bool prime = true;
    for (int divisor = 2; divisor * divisor <= number; ++divisor) prime = prime && number % divisor != 0;
    if (!prime) continue;
    co_yield Prime{number, number - last};
    last = number;
  }
}

int main() {
  wirecall::Registry registry;
  registry.method("count", count, {"n"});
  registry.method("primes", primes, {"below"});

  bool as_promised = true;
  const auto ask = [&](const std::string& method_and_params, const std::string& expected) {
    const std::string reply = registry.handle(R"({"jsonrpc":"2.0","id":1,"method":)" + method_and_params + "}");
    std::cout << method_and_params << "\n  " << reply << "\n";
    as_promised = as_promised && reply == R"({"jsonrpc":"2.0",)" + expected + R"(,"id":1})";
  };
  ask(R"("count","params":[5])", R"("result":[0,1,2,3,4])");
  ask(R"("count","params":[0])", R"("result":[])");
  ask(R"("primes","params":[8])",
      R"("result":[{"number":2,"gap":0},{"number":3,"gap":1},{"number":5,"gap":2},{"number":7,"gap":2}])");
  ask(R"("primes","params":[2000000])", R"("error":{"code":-30,"message":"too far: at most 1000000"})");
  return as_promised ? 0 : 1;
}
