// The three ways in which a handler fails, and what the caller is told of each.
#include <cmath>
#include <expected>
#include <iostream>
#include <stdexcept>
#include <string>

#include "wirecall/registry.hpp"

// An error thrown: code, message and data go to the caller as they are. Without a code it is -32000.
double divide(double dividend, double divisor) {
  if (divisor == 0) throw wirecall::Error{-10, "division by zero", R"({"dividend":)" + std::to_string(dividend) + "}"};
  return dividend / divisor;
}

// An error returned: the same, without an exception.
std::expected<double, wirecall::Error> root(double number) {
  if (number < 0) return std::unexpected{wirecall::Error{"no real root"}};
  return std::sqrt(number);
}

// Anything else is a failure of the program. Its text may hold what is nobody's business, so it goes to the log.
int broken() { throw std::runtime_error{"password of the database: 1234"}; }

int main() {
  std::string log;
  wirecall::Registry registry;
  registry.set_log([&](const wirecall::LogRecord& record) { log += record.message; });
  registry.method("divide", divide, {"dividend", "divisor"});
  registry.method("root", root, {"number"});
  registry.method("broken", broken);

  bool as_promised = true;
  const auto ask = [&](const std::string& method_and_params, const std::string& expected) {
    const std::string reply = registry.handle(R"({"jsonrpc":"2.0","id":1,"method":)" + method_and_params + "}");
    std::cout << method_and_params << "\n  " << reply << "\n";
    as_promised = as_promised && reply == R"({"jsonrpc":"2.0",)" + expected + R"(,"id":1})";
  };
  ask(R"("divide","params":[1,8])", R"("result":0.125)");
  ask(R"("divide","params":[1,0])",
      R"("error":{"code":-10,"message":"division by zero","data":{"dividend":1.000000}})");
  ask(R"("root","params":[-1])", R"("error":{"code":-32000,"message":"no real root"})");
  ask(R"("broken")", R"("error":{"code":-32603,"message":"Internal error"})");
  return as_promised && log.find("1234") != std::string::npos ? 0 : 1;
}
