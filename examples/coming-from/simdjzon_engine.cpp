// The engine without a socket: the text of a request goes in, and that of the response comes out. The fourteen cases
// are those of the specification's examples, each with the response that it gives. Needs wirecall::core alone.
#include <iostream>
#include <string>
#include <tuple>

#include "wirecall/registry.hpp"

struct Case {
  std::string name;
  std::string request;
  std::string response;  ///< empty where none is due
};

int main() {
  wirecall::Registry engine;
  engine.method("sum", [](const wirecall::Rest<int>& numbers) {
    int sum = 0;
    for (const int number : numbers) sum += number;
    return sum;
  });
  engine.method("subtract", [](int minuend, int subtrahend) { return minuend - subtrahend; },
                {"minuend", "subtrahend"});
  engine.method("get_data", [] { return std::tuple{"hello", 5}; });

  const std::string unreadable = R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null})";
  const std::string invalid = R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null})";
  const std::string unknown = R"({"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":)";
  const Case cases[]{
      {"parameters by position", R"({"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1})",
       R"({"jsonrpc":"2.0","result":19,"id":1})"},
      {"parameters by name",
       R"({"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 2})",
       R"({"jsonrpc":"2.0","result":19,"id":2})"},
      {"a notification", R"({"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]})", ""},
      {"a notification without params", R"({"jsonrpc": "2.0", "method": "foobar"})", ""},
      {"a method that does not exist", R"({"jsonrpc": "2.0", "method": "foobar", "id": "1"})", unknown + R"("1"})"},
      {"invalid JSON", R"({"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz])", unreadable},
      {"an invalid request", R"({"jsonrpc": "2.0", "method": 1, "params": "bar"})", invalid},
      {"a batch of two calls",
       R"([{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": 1},
           {"jsonrpc": "2.0", "method": "sum", "params": [1,2,10], "id": "two"}])",
       R"([{"jsonrpc":"2.0","result":7,"id":1},{"jsonrpc":"2.0","result":13,"id":"two"}])"},
      {"a batch of invalid JSON",
       R"([{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"}, {"jsonrpc": "2.0", "method"])",
       unreadable},
      {"an empty batch", "[]", invalid},
      {"a batch of what is no request", "[1]", "[" + invalid + "]"},
      {"a batch of three of these", "[1,2,3]", "[" + invalid + "," + invalid + "," + invalid + "]"},
      {"a batch of everything",
       R"([{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
           {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},
           {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},
           {"foo": "boo"},
           {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
           {"jsonrpc": "2.0", "method": "get_data", "id": "9"}])",
       R"([{"jsonrpc":"2.0","result":7,"id":"1"},{"jsonrpc":"2.0","result":19,"id":"2"},)" + invalid + "," + unknown +
           R"("5"},{"jsonrpc":"2.0","result":["hello",5],"id":"9"}])"},
      {"a batch of notifications",
       R"([{"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},
           {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}])",
       ""},
  };
  int wrong = 0;
  std::string response;  // kept, so that its memory is used again
  for (const auto& [name, request, expected] : cases) {
    engine.handle(request, response);
    const bool right = response == expected;
    std::cout << (right ? "right: " : "WRONG: ") << name << "\n  " << (response.empty() ? "no response" : response)
              << "\n";
    if (!right) ++wrong;
  }
  return wrong == 0 ? 0 : 1;
}
