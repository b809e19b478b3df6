// HttpMaker: connections of HTTP requests that a server parses closely: bodies that are messages, with lengths and in
// chunks, valid and nearly valid, and heads with significant fields. The same seed makes the same connections. A value
// with one owner, one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "fuzz/json_maker.hpp"

namespace fuzz {

class HttpMaker : public JsonMaker {
 public:
  using JsonMaker::JsonMaker;

  std::string requests() {
    std::string text;
    do {
      text += request();
    } while (!random().one_in(3));
    return text;
  }

 private:
  static constexpr std::array<std::string_view, 8> kMethods{"POST", "GET", "HEAD", "OPTIONS",
                                                            "POST", "PUT", "POST", "X"};
  static constexpr std::array<std::string_view, 13> kTargets{"/rpc",
                                                             "/",
                                                             "/healthz",
                                                             "/readyz",
                                                             "/metrics",
                                                             "/rpc/subtract?a=42&b=23",
                                                             "/rpc/echo?value=%7B%22a%22%3A+1%7D",
                                                             "/rpc/e%63ho?value=%FF",
                                                             "/rpc/subtract?a",
                                                             "/rpc?x",
                                                             "*",
                                                             "http://localhost/rpc",
                                                             "/nothing"};
  static constexpr std::array<std::string_view, 22> kFields{"Connection: close",
                                                            "Connection: keep-alive",
                                                            "Connection: upgrade",
                                                            "Upgrade: websocket",
                                                            "Expect: 100-continue",
                                                            "expect: more",
                                                            "Origin: http://localhost",
                                                            "Origin: http://other",
                                                            "Sec-Fetch-Site: cross-site",
                                                            "Sec-Fetch-Mode: navigate",
                                                            "Content-Encoding: gzip",
                                                            "Wirecall-Timeout-Ms: 0",
                                                            "Wirecall-Timeout-Ms: 5",
                                                            "Wirecall-Timeout-Ms: x",
                                                            "Content-Type: application/json",
                                                            "Host: other",
                                                            "Content-Length: 3",
                                                            "Transfer-Encoding: chunked",
                                                            "Transfer-Encoding: gzip, chunked",
                                                            "X: y",
                                                            "X : y",
                                                            " folded"};
  static constexpr std::array<std::string_view, 6> kCalls{
      R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1})",
      R"({"jsonrpc":"2.0","method":"later","params":[3],"id":2})",
      R"({"jsonrpc":"2.0","method":"later","params":[1]})",
      R"([{"jsonrpc":"2.0","method":"later","params":[2],"id":3},{"jsonrpc":"2.0","method":"echo","params":[1],"id":4}])",
      R"({"jsonrpc":"2.0","method":"count","params":[4],"id":5})",
      R"({"jsonrpc":"2.0","method":"fail","params":[7,"\u0000"],"id":"x"})"};

  std::string request() {
    const std::string_view method = random().one_in(2) ? "POST" : random().of(kMethods);
    const std::string_view target = method == "POST" && !random().one_in(4) ? "/rpc" : random().of(kTargets);
    std::string text{method};
    text.append(" ").append(target).append(random().one_in(12) ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
    if (!random().one_in(20)) text += "Host: localhost\r\n";
    while (random().one_in(4)) text.append(random().of(kFields)).append("\r\n");
    if (method != "POST" && !random().one_in(6)) return text + "\r\n";
    const std::string body = random().one_in(3) ? message() : std::string{random().of(kCalls)};
    if (random().one_in(3)) return text + "Transfer-Encoding: chunked\r\n\r\n" + chunks(body);
    const std::size_t length = random().one_in(10) ? random().below(2 * body.size() + 1) : body.size();
    return text + "Content-Length: " + std::to_string(length) + "\r\n\r\n" + body;
  }

  std::string chunks(std::string_view body) {
    std::string text;
    while (!body.empty()) {
      const std::size_t bytes = 1 + random().below(body.size());
      char size[24];
      std::snprintf(size, sizeof size, random().one_in(5) ? "%03zX" : "%zx", bytes);
      text += size;
      if (random().one_in(8)) text += ";name=\"value\"";
      text.append("\r\n").append(body.substr(0, bytes)).append("\r\n");
      body.remove_prefix(bytes);
    }
    text += "0\r\n";
    if (random().one_in(8)) text += "Trailer: value\r\n";
    return text + "\r\n";
  }
};

}  // namespace fuzz
