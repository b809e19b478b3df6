// The fifteen example texts of the JSON-RPC 2.0 specification (section 7) with the replies it gives, compact. Shared
// by the engine bench and the tests of dispatch.
#pragma once

#include <array>
#include <string_view>

namespace bench {

struct Example {
  std::string_view request;
  std::string_view reply;
  int entries;  ///< requests and invalid elements in it
};

inline constexpr std::array<Example, 15> kSpecExamples{{
    {R"({"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1})",
     R"({"jsonrpc":"2.0","result":19,"id":1})", 1},
    {R"({"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2})",
     R"({"jsonrpc":"2.0","result":-19,"id":2})", 1},
    {R"({"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3})",
     R"({"jsonrpc":"2.0","result":19,"id":3})", 1},
    {R"({"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42, "subtrahend": 23}, "id": 4})",
     R"({"jsonrpc":"2.0","result":19,"id":4})", 1},
    {R"({"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]})", "", 1},
    {R"({"jsonrpc": "2.0", "method": "foobar"})", "", 1},
    {R"({"jsonrpc": "2.0", "method": "foobar", "id": "1"})",
     R"({"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":"1"})", 1},
    {R"({"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz])",
     R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null})", 1},
    {R"({"jsonrpc": "2.0", "method": 1, "params": "bar"})",
     R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null})", 1},
    {R"([{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},{"jsonrpc": "2.0", "method"])",
     R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null})", 1},
    {R"([])", R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null})", 1},
    {R"([1])", R"([{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null}])", 1},
    {R"([1,2,3])",
     R"([{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null},)"
     R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null},)"
     R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null}])",
     3},
    {R"([{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},)"
     R"({"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},)"
     R"({"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},)"
     R"({"foo": "boo"},)"
     R"({"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},)"
     R"({"jsonrpc": "2.0", "method": "get_data", "id": "9"}])",
     R"([{"jsonrpc":"2.0","result":7,"id":"1"},)"
     R"({"jsonrpc":"2.0","result":19,"id":"2"},)"
     R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null},)"
     R"({"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":"5"},)"
     R"({"jsonrpc":"2.0","result":["hello",5],"id":"9"}])",
     6},
    {R"([{"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},)"
     R"({"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}])",
     "", 2},
}};

}  // namespace bench
