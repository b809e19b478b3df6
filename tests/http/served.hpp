// A connection that speaks HTTP, served on a simulated system, and the texts that go over it, written out by hand.
#pragma once

#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "http/http_connection.hpp"
#include "tests/server/accepting.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {

inline const std::string kParseError = R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null})";
inline const std::string kInvalid =
    R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null})";

inline std::string request(int id) {
  return R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":)" + std::to_string(id) + "}";
}
inline std::string call(std::string_view method, int id, std::string_view params = "[]") {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} + R"(,"id":)" +
         std::to_string(id) + "}";
}
inline std::string result(std::string_view value, int id) {
  return R"({"jsonrpc":"2.0","result":)" + std::string{value} + R"(,"id":)" + std::to_string(id) + "}";
}
inline std::string post(std::string_view body, std::string_view fields = {}, std::string_view path = "/rpc") {
  return "POST " + std::string{path} + " HTTP/1.1\r\nHost: localhost\r\n" + std::string{fields} +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string{body};
}
inline std::string get(std::string_view path, std::string_view fields = {}, std::string_view method = "GET") {
  return std::string{method} + " " + std::string{path} + " HTTP/1.1\r\nHost: localhost\r\n" + std::string{fields} +
         "\r\n";
}
inline std::string ok(std::string_view body) {
  return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string{body};
}
inline std::string text(std::string_view status, std::string_view body, std::string_view fields = {}) {
  return "HTTP/1.1 " + std::string{status} + "\r\n" + std::string{fields} +
         "Content-Type: text/plain; charset=utf-8\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string{body};
}
inline const std::string kClose = "Connection: close\r\n";

// Calls of `wait` wait here until the test answers them.
struct WaitingCalls {
  Task<std::string> wait() {
    Completion<std::string> answer;
    calls.push_back(answer);
    co_return co_await answer;
  }
  void answer(std::size_t index, const std::string& text) { calls.at(index).set(text); }
  std::vector<Completion<std::string>> calls;
};

class Http : public Accepting {
 public:
  explicit Http(unsigned seed = 1, Limits given = {}) : Accepting(seed, given) {
    registry.method("big", [](std::size_t bytes) { return std::string(bytes, 'x'); }, {"bytes"});
    registry.method("wait", &WaitingCalls::wait, waiting);
    registry
        .method("sum",
                [](std::vector<int> numbers) {
                  int sum = 0;
                  for (const int number : numbers) sum += number;
                  return sum;
                },
                {"numbers"})
        .safe();
    registry.method("greet", [](std::string name) { return "hello " + name; }, {"name"}).safe();
  }
  // The output since the last call, once all of `bytes` has been processed.
  std::string ask(std::string_view bytes) {
    peer->send(bytes);
    turns();
    return peer->take();
  }
  WaitingCalls waiting;
};

// The output for a peer that sends these and still reads.
inline std::string answer(const std::vector<std::string_view>& pieces, const HttpSettings& settings = {},
                          Limits limits = {}) {
  Http server{static_cast<unsigned>(pieces.size()) * 7 + 1, limits};
  server.http = settings;
  std::string all;
  for (const std::string_view piece : pieces) {
    server.peer->send(piece);
    server.turns(8);
  }
  server.turns();
  return server.peer->take();
}

inline void expect_answer(std::string_view input, std::string_view expected, const HttpSettings& settings = {},
                          Limits limits = {}) {
  ASSERT_EQ(answer({input}, settings, limits), expected) << input;
  const std::size_t step = 1 + input.size() / 400;
  for (std::size_t cut = 1; cut < input.size(); cut += step) {
    ASSERT_EQ(answer({input.substr(0, cut), input.substr(cut)}, settings, limits), expected)
        << input << "\ncut at " << cut;
  }
  if (input.size() > 2000) return;
  std::vector<std::string_view> bytes;
  for (std::size_t at = 0; at < input.size(); ++at) bytes.push_back(input.substr(at, 1));
  ASSERT_EQ(answer(bytes, settings, limits), expected) << input << "\nbyte by byte";
}

}  // namespace wirecall::net
