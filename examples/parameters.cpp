// Parameters: by position or by name, optional ones, defaults, and "all the rest".
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>

#include "wirecall/registry.hpp"

// A std::optional parameter may be left out, or null.
std::string greet(const std::string& name, const std::optional<std::string>& title) {
  return "Hello, " + (title ? *title + " " : "") + name;
}

// A default belongs to the method, not to the function: see `otherwise` below.
std::int64_t power(std::int64_t base, int exponent) {
  std::int64_t result = 1;
  for (int i = 0; i < exponent; ++i) result *= base;
  return result;
}

// Rest takes all positions from its own on.
double sum(const wirecall::Rest<double>& numbers) {
  double result = 0;
  for (const double number : numbers) result += number;
  return result;
}

int main() {
  wirecall::Registry registry;
  registry.method("greet", greet, {"name", "title"});
  registry.method("power", power, {"base", wirecall::Param{"exponent"}.default_value(2).description("not negative")});
  registry.method("sum", sum);

  bool as_promised = true;
  const auto ask = [&](const std::string& method_and_params, const std::string& expected) {
    const std::string reply = registry.handle(R"({"jsonrpc":"2.0","id":1,"method":)" + method_and_params + "}");
    std::cout << method_and_params << "\n  " << reply << "\n";
    as_promised = as_promised && reply == R"({"jsonrpc":"2.0",)" + expected + R"(,"id":1})";
  };
  ask(R"("greet","params":["Ada"])", R"("result":"Hello, Ada")");
  ask(R"("greet","params":{"title":"Countess","name":"Ada"})", R"("result":"Hello, Countess Ada")");
  ask(R"("power","params":[3])", R"("result":9)");
  ask(R"("power","params":{"base":2,"exponent":62})", R"("result":4611686018427387904)");
  ask(R"("sum","params":[1,2,0.5])", R"("result":3.5)");
  ask(R"("sum")", R"("result":0)");
  // What does not fit is answered with where, what was expected and what was there.
  ask(R"("power","params":{"base":"2"})", R"("error":{"code":-32602,"message":"Invalid params",)"
                                          R"("data":{"loc":["base"],"expected":"integer","got":"\"2\""}})");
  return as_promised ? 0 : 1;
}
