// HTTP/1.1 as a peer sees it: every request whole, cut at every byte and in seeded pieces; statuses, order, bodies,
// browser checks, slow and hostile peers. The responses that are expected are written out by hand.
#include "session/http_session.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/session/accepting.hpp"
#include "wirecall/stream.hpp"
#include "wirecall/task.hpp"

namespace wirecall::session {
namespace {

using std::chrono::milliseconds;

const std::string kParseError = R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null})";
const std::string kInvalid = R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null})";

std::string request(int id) {
  return R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":)" + std::to_string(id) + "}";
}
std::string call(std::string_view method, int id, std::string_view params = "[]") {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} + R"(,"id":)" +
         std::to_string(id) + "}";
}
std::string result(std::string_view value, int id) {
  return R"({"jsonrpc":"2.0","result":)" + std::string{value} + R"(,"id":)" + std::to_string(id) + "}";
}
std::string post(std::string_view body, std::string_view fields = {}, std::string_view path = "/rpc") {
  return "POST " + std::string{path} + " HTTP/1.1\r\nHost: localhost\r\n" + std::string{fields} +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string{body};
}
std::string get(std::string_view path, std::string_view fields = {}, std::string_view method = "GET") {
  return std::string{method} + " " + std::string{path} + " HTTP/1.1\r\nHost: localhost\r\n" + std::string{fields} +
         "\r\n";
}
std::string ok(std::string_view body) {
  return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string{body};
}
std::string text(std::string_view status, std::string_view body, std::string_view fields = {}) {
  return "HTTP/1.1 " + std::string{status} + "\r\n" + std::string{fields} +
         "Content-Type: text/plain; charset=utf-8\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string{body};
}
const std::string kClose = "Connection: close\r\n";

// Calls of `wait` wait here until the test answers them.
struct Waiting {
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
    registry.method("wait", &Waiting::wait, waiting);
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
  // What has come since the last time, once all of `bytes` has been looked at.
  std::string ask(std::string_view bytes) {
    peer->send(bytes);
    turns();
    return peer->take();
  }
  Waiting waiting;
};

// What a peer gets that sends these and goes on listening.
std::string answer(const std::vector<std::string_view>& pieces, const HttpSettings& settings = {}, Limits limits = {}) {
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

void expect_answer(std::string_view input, std::string_view expected, const HttpSettings& settings = {},
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

// ---- calls ----

TEST(HttpPost, answers_a_call) {
  expect_answer(post(request(1)), ok(result("19", 1)));
  expect_answer(post(request(1), "Content-Type: text/anything\r\n", "/"), ok(result("19", 1)));
  expect_answer(post(request(1), {}, "/rpc?token=x"), ok(result("19", 1)));
}

TEST(HttpPost, takes_the_time_of_its_calls_from_the_head) {
  const auto late = [](int id) {
    return R"({"jsonrpc":"2.0","error":{"code":-32002,"message":"Timeout","data":{"reason":"the time was up before the )"
           R"(call began","origin":"local","delivered":"no"}},"id":)" +
           std::to_string(id) + "}";
  };
  // It is said for one request, and not for the next one.
  expect_answer(post("[" + request(1) + "," + request(2) + "]", "Wirecall-Timeout-Ms: 0\r\n") + post(request(3)),
                ok("[" + late(1) + "," + late(2) + "]") + ok(result("19", 3)));
  expect_answer(get("/rpc/sum?numbers=[1,2]", "wirecall-timeout-ms: 0\r\n"), ok(late(1)));
  for (const std::string_view long_enough : {"60000", "4294967295", "99999999999999999999"}) {
    expect_answer(post(request(1), "Wirecall-Timeout-Ms: " + std::string{long_enough} + "\r\n"), ok(result("19", 1)));
  }
  for (const std::string_view bad : {"-1", "1.5", "1s", "", "0x1", "1 1"}) {
    const std::string got = answer({post(request(1), "Wirecall-Timeout-Ms: " + std::string{bad} + "\r\n")});
    EXPECT_TRUE(got.starts_with("HTTP/1.1 400 ")) << bad << got;
  }
}

TEST(HttpPost, ends_calls_at_the_shorter_of_two_times) {
  for (const auto& [head, member] : {std::pair{"50", "5000"}, {"5000", "50"}}) {
    Http server;
    const std::string call = R"({"jsonrpc":"2.0","method":"wait","timeout_ms":)" + std::string{member} + R"(,"id":1})";
    const auto begun = server.loop.now();
    server.peer->send(post(call, "Wirecall-Timeout-Ms: " + std::string{head} + "\r\n"));
    std::string got;
    while (got.empty() && server.loop.now() < begun + milliseconds{4000}) {
      server.turns(1);
      got = server.peer->take();
    }
    EXPECT_NE(got.find("-32002"), std::string::npos) << got;
  }
}

TEST(HttpPost, that_waits_behind_others_has_what_is_left_of_its_time) {
  Http server;
  // As many as may wait: what is behind them is not looked at until they are answered.
  constexpr int kWaiting = 256;
  std::string requests;
  for (int id = 0; id < kWaiting; ++id) requests += post(call("wait", id));
  const auto timed = [](int id, int timeout_ms) {
    return R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"timeout_ms":)" + std::to_string(timeout_ms) +
           R"(,"id":)" + std::to_string(id) + "}";
  };
  EXPECT_EQ(server.ask(requests + post(timed(1000, 50)) + post(timed(1001, 5000))), "");
  server.pass(milliseconds{500});
  for (std::size_t i = 0; i < kWaiting; ++i) server.waiting.answer(i, "a");
  server.turns();
  const std::string got = server.peer->take();
  const std::string late =
      R"({"jsonrpc":"2.0","error":{"code":-32002,"message":"Timeout","data":{"reason":"the time was up before the )"
      R"(call began","origin":"local","delivered":"no"}},"id":1000})";
  EXPECT_TRUE(got.ends_with(ok(late) + ok(result("19", 1001)))) << got.substr(got.size() - 500);
}

TEST(HttpPost, answers_pipelined_calls_in_order) {
  expect_answer(post(request(1)) + post(request(2)) + post(call("big", 3, "[200]")) + post(request(4)),
                ok(result("19", 1)) + ok(result("19", 2)) + ok(result("\"" + std::string(200, 'x') + "\"", 3)) +
                    ok(result("19", 4)));
}

TEST(HttpPost, answers_any_json_rpc_answer_with_200) {
  expect_answer(post("{\"oops"), ok(kParseError));
  expect_answer(post(""), ok(kParseError));
  expect_answer(post(request(1) + request(2)), ok(kParseError));
  expect_answer(post(" \r\n" + request(1) + "\n"), ok(result("19", 1)));
  expect_answer(post("1"), ok(kInvalid));
  expect_answer(post("[" + request(1) + "," + request(2) + "]"),
                ok("[" + result("19", 1) + "," + result("19", 2) + "]"));
}

TEST(HttpPost, answers_a_notification_without_content) {
  const std::string notification = R"({"jsonrpc":"2.0","method":"subtract","params":[1,2]})";
  const std::string response = R"({"jsonrpc":"2.0","result":1,"id":1})";
  for (const std::string& body : {notification, "[" + notification + "]", response}) {
    expect_answer(post(body), "HTTP/1.1 204 No Content\r\n\r\n");
  }
  HttpSettings settings;
  settings.notification_status = 202;
  expect_answer(post(notification) + post(request(1)),
                "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n" + ok(result("19", 1)), settings);
  settings.notification_status = 200;
  expect_answer(post(notification), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", settings);
}

TEST(HttpPost, takes_a_chunked_body) {
  const std::string body = request(1);
  const std::string head = "POST /rpc HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  expect_answer(head + "5\r\n" + body.substr(0, 5) + "\r\n38;x=y\r\n" + body.substr(5) + "\r\n0\r\nX: y\r\n\r\n" +
                    post(request(2)),
                ok(result("19", 1)) + ok(result("19", 2)));
  expect_answer(head + "0\r\n\r\n", ok(kParseError));
  expect_answer(head + "5\r\nabcdefg", text("400 Bad Request", "Bad Request: a chunk that is malformed\n", kClose));
}

TEST(HttpPost, with_http_1_0_or_connection_close_is_the_last_on_its_connection) {
  const std::string closing =
      "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 36\r\n\r\n" +
      result("19", 1);
  expect_answer("POST / HTTP/1.0\r\nHost: localhost\r\nContent-Length: 61\r\n\r\n" + request(1) + post(request(2)),
                closing);
  expect_answer(post(request(1), kClose) + post(request(2)), closing);
  Http server;
  server.ask(post(request(1), kClose));
  EXPECT_TRUE(server.peer->shut_down);
  server.peer->finish();
  server.turns();
  EXPECT_TRUE(server.peer->closed);
}

TEST(HttpPost, that_waits_for_100_continue_gets_it) {
  Http server;
  EXPECT_EQ(server.ask("POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-Continue\r\nContent-Length: 61\r\n\r\n"),
            "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(server.ask(request(1)), ok(result("19", 1)));
  // Behind a response that is not there yet it has to wait.
  EXPECT_EQ(server.ask(post(call("wait", 2)) +
                       "POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 61\r\n\r\n"),
            "");
  server.waiting.answer(0, "a");
  server.turns();
  EXPECT_EQ(server.peer->take(), ok(result("\"a\"", 2)) + "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(server.ask(request(3)), ok(result("19", 3)));
}

TEST(HttpPost, that_expects_something_else_is_refused) {
  expect_answer(post(request(1), "Expect: miracles\r\n"),
                text("417 Expectation Failed", "Expectation Failed: only 100-continue can be expected\n", kClose));
}

TEST(HttpPost, is_answered_in_order_however_late_its_calls_are_done) {
  for (unsigned seed = 1; seed < 20; ++seed) {
    Http server{seed};
    EXPECT_EQ(server.ask(post(call("wait", 1)) + post(request(2)) + post(call("wait", 3)) + post(call("wait", 4)) +
                         get("/healthz") + post("{\"oops")),
              "");
    ASSERT_EQ(server.waiting.calls.size(), 3U);
    server.waiting.answer(2, "last");
    server.turns();
    EXPECT_EQ(server.peer->take(), "");
    server.waiting.answer(0, "first");
    server.turns();
    EXPECT_EQ(server.peer->take(), ok(result("\"first\"", 1)) + ok(result("19", 2)));
    server.waiting.answer(1, "second");
    server.turns();
    EXPECT_EQ(server.peer->take(),
              ok(result("\"second\"", 3)) + ok(result("\"last\"", 4)) + text("200 OK", "ok\n") + ok(kParseError));
    EXPECT_EQ(server.ask(post(request(5))), ok(result("19", 5)));
  }
}

TEST(HttpPost, of_a_batch_that_waits_is_answered_as_a_whole) {
  Http server;
  EXPECT_EQ(server.ask(post("[" + call("wait", 1) + "," + request(2) + "]")), "");
  server.waiting.answer(0, "a");
  server.turns();
  EXPECT_EQ(server.peer->take(), ok("[" + result("\"a\"", 1) + "," + result("19", 2) + "]"));
}

TEST(HttpPost, of_a_notification_that_waits_is_answered_at_once) {
  Http server;
  const std::string notification = R"({"jsonrpc":"2.0","method":"wait"})";
  EXPECT_EQ(server.ask(post(notification) + post("[" + notification + "]") + post(request(1))),
            "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n" + ok(result("19", 1)));
  EXPECT_TRUE(server.connection->busy());
  server.waiting.answer(0, "a");
  server.waiting.answer(1, "a");
  server.turns();
  EXPECT_FALSE(server.connection->busy());
  EXPECT_EQ(server.peer->take(), "");
}

TEST(HttpPost, while_draining_is_503_with_the_error) {
  Http server;
  server.ask(post(request(1)));
  server.connection->drain();
  const std::string error =
      R"({"jsonrpc":"2.0","error":{"code":-32009,"message":"Draining","data":{"reason":"the server is shutting down",)"
      R"("origin":"local","delivered":"no"}},"id":2})";
  EXPECT_EQ(
      server.ask(post(request(2))),
      "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Type: application/json\r\n"
      "Content-Length: " +
          std::to_string(error.size()) + "\r\n\r\n" + error);
}

TEST(HttpPost, while_draining_is_200_with_what_can_still_be_answered) {
  const auto drained = [](const std::string& body) {
    Http server;
    server.ask(post(request(1)));
    server.connection->drain();
    return server.ask(post(body));
  };
  const auto closing = [](std::string body) {
    return "HTTP/1.1 200 OK\r\n" + kClose +
           "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  };
  const std::string pong = result("\"pong\"", 1);
  EXPECT_EQ(drained(call("rpc.ping", 1)), closing(pong));
  EXPECT_EQ(drained("[" + call("rpc.ping", 1) + "]"), closing("[" + pong + "]"));
  EXPECT_EQ(drained("{\"oops"), closing(kParseError));
  const std::string both = drained("[" + call("rpc.ping", 1) + "," + request(2) + "]");
  EXPECT_TRUE(both.starts_with("HTTP/1.1 200 ")) << both;
  EXPECT_NE(both.find("[" + pong + R"(,{"jsonrpc":"2.0","error":{"code":-32009,)"), std::string::npos) << both;
  // Nothing is left but refusals, or what was refused in silence.
  EXPECT_TRUE(drained("[" + request(1) + "," + request(2) + "]").starts_with("HTTP/1.1 503 "));
  EXPECT_EQ(drained(R"({"jsonrpc":"2.0","method":"subtract","params":[1,2]})"),
            "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
}

TEST(HttpPost, while_draining_keeps_its_place_behind_what_waits) {
  Http server;
  EXPECT_EQ(server.ask(post(call("wait", 1))), "");
  server.connection->drain();
  EXPECT_EQ(server.ask(post(call("rpc.ping", 2))), "");
  server.waiting.answer(0, "a");
  server.turns();
  EXPECT_TRUE(server.peer->take().starts_with(ok(result("\"a\"", 1)) + "HTTP/1.1 200 OK\r\n"));
}

TEST(HttpPost, over_the_size_limit_is_413_before_its_body_comes) {
  Limits limits;
  limits.max_message_size = 100;
  const std::string error =
      R"({"jsonrpc":"2.0","error":{"code":-32006,"message":"Too large","data":{"reason":"the message is larger than )"
      R"(allowed","origin":"local","delivered":"no","limit":"max_message_size"}},"id":null})";
  const std::string refused =
      "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: " +
      std::to_string(error.size()) + "\r\n\r\n" + error;
  expect_answer("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 101\r\n\r\n", refused, {}, limits);
  expect_answer("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n", refused, {},
                limits);
  expect_answer("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n" +
                    std::string(80, ' ') + "\r\n15\r\n" + std::string(21, ' '),
                refused, {}, limits);
  expect_answer(post(std::string(100, ' ')), ok(kParseError), {}, limits);
}

TEST(HttpPost, with_a_content_encoding_is_415) {
  expect_answer(post(request(1), "Content-Encoding: gzip\r\n") + post(request(2)),
                text("415 Unsupported Media Type",
                     "Unsupported Media Type: a Content-Encoding is not understood: send the body as it is\n") +
                    ok(result("19", 2)));
}

// ---- other places ----

TEST(HttpGet, tells_what_this_is) {
  const std::string page = answer({get("/")});
  EXPECT_TRUE(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain")) << page;
  EXPECT_NE(page.find("curl http://localhost/rpc -d '{\"jsonrpc\":\"2.0\""), std::string::npos) << page;
}

TEST(HttpGet, tells_health_and_readiness) {
  expect_answer(get("/healthz"), text("200 OK", "ok\n"));
  expect_answer(get("/readyz?x"), text("200 OK", "ready\n"));
  Http server;
  server.ask(get("/healthz"));
  server.connection->drain();
  EXPECT_EQ(server.ask(get("/readyz")), text("503 Service Unavailable", "draining\n", kClose));
}

TEST(HttpGet, gives_the_numbers_that_it_is_given) {
  HttpSettings settings;
  settings.metrics = [] { return std::string{"wirecall_calls 3\n"}; };
  expect_answer(
      get("/metrics"),
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: 17\r\n\r\n"
      "wirecall_calls 3\n",
      settings);
}

TEST(HttpGet, calls_methods_that_are_safe_and_no_others) {
  expect_answer(get("/rpc/sum?numbers=[1,2,4]"), ok(result("7", 1)));
  expect_answer(get("/rpc/greet?name=a+b%20%22c%22"), ok(result(R"("hello a b \"c\"")", 1)));
  expect_answer(get("/rpc/gr%65et?name=%2242%22"), ok(result(R"("hello 42")", 1)));
  const std::string no =
      text("404 Not Found", "Not Found: no method of this name may be called by GET; any can be by POST /rpc\n");
  expect_answer(get("/rpc/subtract?minuend=42&subtrahend=23"), no);
  expect_answer(get("/rpc/nothing"), no);
  expect_answer(get("/rpc/gr%6"), text("400 Bad Request", "Bad Request: a % without two hexadecimal digits\n"));
  expect_answer(get("/rpc/greet?name=%FF"),
                text("400 Bad Request", "Bad Request: a name or value that is not UTF-8\n"));
  EXPECT_NE(answer({get("/rpc/greet?name=a&name=b")}).find("-32602"), std::string::npos);
}

TEST(HttpHeadRequest, is_a_get_without_the_body) {
  expect_answer(get("/healthz", {}, "HEAD") + get("/healthz"),
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\n\r\n" +
                    text("200 OK", "ok\n"));
  expect_answer(get("/rpc/sum?numbers=[1,2,4]", {}, "HEAD"),
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 35\r\n\r\n");
}

TEST(HttpOptions, tells_what_a_place_takes) {
  const auto allows = [](std::string_view methods) {
    return "HTTP/1.1 204 No Content\r\nAllow: " + std::string{methods} + "\r\n\r\n";
  };
  expect_answer(get("/", {}, "OPTIONS"), allows("GET, HEAD, POST, OPTIONS"));
  expect_answer(get("*", {}, "OPTIONS"), allows("GET, HEAD, POST, OPTIONS"));
  expect_answer(get("/rpc", {}, "OPTIONS"), allows("POST, OPTIONS"));
  expect_answer(get("/rpc/sum", {}, "OPTIONS"), allows("GET, HEAD, OPTIONS"));
}

TEST(HttpStatus, of_a_method_that_a_place_does_not_have_is_405) {
  const auto refused = [](std::string_view allow) {
    return text("405 Method Not Allowed", "Method Not Allowed: this method is not one of this place\n",
                "Allow: " + std::string{allow} + "\r\n");
  };
  expect_answer(get("/rpc"), refused("POST, OPTIONS"));
  expect_answer(get("/", {}, "DELETE"), refused("GET, HEAD, POST, OPTIONS"));
  expect_answer(post("x", {}, "/healthz") + get("/healthz"), refused("GET, HEAD, OPTIONS") + text("200 OK", "ok\n"));
  expect_answer("CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", refused("GET, HEAD, POST, OPTIONS"));
}

TEST(HttpStatus, of_a_place_that_is_not_there_is_404) {
  expect_answer(get("/favicon.ico") + post("{}", {}, "/nowhere") + post(request(1)),
                text("404 Not Found", "Not Found: there is nothing here\n") +
                    text("404 Not Found", "Not Found: there is nothing here\n") + ok(result("19", 1)));
}

TEST(HttpStatus, of_an_unknown_method_is_501) {
  expect_answer(
      get("/", {}, "BREW") + get("/healthz"),
      text("501 Not Implemented", "Not Implemented: this method is not one of HTTP\n") + text("200 OK", "ok\n"));
  expect_answer("PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n" + get("/healthz"),
                text("501 Not Implemented", "Not Implemented: this method is not one of HTTP\n", kClose));
}

TEST(HttpStatus, of_a_websocket_is_426) {
  const std::string fields = "Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n";
  for (const std::string_view path : {"/", "/rpc", "/ws", "/ws?x"}) {
    expect_answer(get(path, fields), text("426 Upgrade Required", "Upgrade Required: a WebSocket is not offered here\n",
                                          "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"));
  }
  expect_answer(get("/nowhere", fields), text("404 Not Found", "Not Found: there is nothing here\n"));
  // Other upgrades are no business of ours.
  expect_answer(get("/healthz", "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n"), text("200 OK", "ok\n"));
}

TEST(HttpStatus, of_what_is_malformed_is_400_and_the_end) {
  expect_answer(get("/healthz") + "GET / HTTP/1.1\r\n\r\n" + get("/healthz"),
                text("200 OK", "ok\n") + text("400 Bad Request", "Bad Request: no Host\n", kClose));
  expect_answer("POST / HTTP/1.0\r\nContent-Length: 61\r\n\r\n" + request(1),
                text("400 Bad Request", "Bad Request: no Host\n", kClose));
  // What follows a body that is shorter than was said is the next request, and no call.
  EXPECT_TRUE(answer({"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n" + request(1)})
                  .ends_with(text("400 Bad Request",
                                  "Bad Request: the request line does not begin with a method and a space\n", kClose)));
  expect_answer("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                text("505 HTTP Version Not Supported",
                     "HTTP Version Not Supported: this is HTTP/1.1 and HTTP/1.0 only\n", kClose));
}

TEST(HttpStatus, of_a_head_over_the_limit_is_431) {
  Limits limits;
  limits.header_bytes = 300;
  expect_answer("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(300, 'x') + "\r\n\r\n",
                text("431 Request Header Fields Too Large",
                     "Request Header Fields Too Large: the head has more bytes than allowed\n", kClose),
                {}, limits);
}

// ---- browsers ----

TEST(HttpBrowser, that_names_another_host_is_refused_everywhere) {
  const std::string refused =
      text("403 Forbidden", "Forbidden: this Host is not one of ours; name it in allow_hosts if it is\n");
  for (const std::string_view path : {"/", "/rpc", "/healthz", "/metrics", "/nowhere"}) {
    expect_answer("OPTIONS " + std::string{path} + " HTTP/1.1\r\nHost: evil.example\r\n\r\n", refused);
  }
  expect_answer(
      "POST /rpc HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 61\r\n\r\n" + request(1) + post(request(2)),
      refused + ok(result("19", 2)));
}

TEST(HttpBrowser, of_another_origin_is_refused_before_its_call_is_made) {
  Http server;
  EXPECT_EQ(
      server.ask(post(R"({"jsonrpc":"2.0","method":"wait"})", "Origin: http://evil.example\r\n")),
      text("403 Forbidden", "Forbidden: pages of this Origin may not call; name it in allow_origins if they may\n"));
  EXPECT_TRUE(server.waiting.calls.empty());
  EXPECT_EQ(server.ask(post(request(1), "Sec-Fetch-Site: cross-site\r\n")),
            text("403 Forbidden", "Forbidden: pages of other sites may not ask for this\n"));
}

TEST(HttpBrowser, of_an_allowed_origin_may_read_the_answer_and_asks_first) {
  HttpSettings settings;
  settings.allow_origins = {"https://app.example"};
  const std::string cors = "Access-Control-Allow-Origin: https://app.example\r\nVary: Origin\r\n";
  expect_answer(get("/rpc", "Origin: https://app.example\r\nAccess-Control-Request-Method: POST\r\n", "OPTIONS"),
                "HTTP/1.1 204 No Content\r\n" + cors +
                    "Allow: POST, OPTIONS\r\nAccess-Control-Allow-Methods: GET, HEAD, POST, OPTIONS\r\n"
                    "Access-Control-Allow-Headers: Accept, Authorization, Content-Type, Traceparent, Tracestate, "
                    "Wirecall-Timeout-Ms\r\nAccess-Control-Max-Age: 600\r\n\r\n",
                settings);
  expect_answer(post(request(1), "Origin: https://app.example\r\n") + post(request(1)),
                "HTTP/1.1 200 OK\r\n" + cors + "Content-Type: application/json\r\nContent-Length: 36\r\n\r\n" +
                    result("19", 1) + ok(result("19", 1)),
                settings);
}

// ---- slow and hostile peers ----

TEST(HttpSlow, heads_end_at_the_header_timeout_whatever_they_bring) {
  Http server;
  server.ask("GET / HTTP/1.1\r\n");
  for (int i = 0; i < 9; ++i) {
    server.pass(milliseconds{1000});
    server.peer->send("X: y\r\n");
  }
  EXPECT_EQ(server.peer->take(), "");
  server.pass(milliseconds{1001});
  EXPECT_EQ(server.peer->take(),
            text("408 Request Timeout", "Request Timeout: the request did not come in time\n", kClose));
  server.pass(milliseconds{1100});
  EXPECT_TRUE(server.peer->closed);
}

TEST(HttpSlow, bodies_go_on_as_long_as_they_bring_something) {
  Http server;
  server.ask("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n");
  for (int i = 0; i < 5; ++i) {
    server.peer->send(std::string(4096, ' '));
    server.pass(milliseconds{9990});
  }
  EXPECT_EQ(server.peer->take(), "");
  server.pass(milliseconds{20'000});
  EXPECT_TRUE(server.peer->take().starts_with("HTTP/1.1 408 "));
}

TEST(HttpSlow, connections_that_are_between_requests_have_no_such_timeout) {
  Http server;
  server.ask(post(request(1)));
  server.pass(milliseconds{60'000});
  EXPECT_EQ(server.ask(post(request(2))), ok(result("19", 2)));
}

TEST(HttpSlow, readers_are_no_longer_read_from_and_lose_nothing) {
  Limits limits;
  limits.soft_output = 4096;
  Http server{3, limits};
  server.peer->window = 0;
  std::string requests;
  std::string expected;
  for (int i = 0; i < 50; ++i) {
    requests += post(call("big", i, "[1000]"));
    expected += ok(result("\"" + std::string(1000, 'x') + "\"", i));
  }
  EXPECT_EQ(server.ask(requests), "");
  EXPECT_LT(server.connection->output_bytes(), 4096U + 2000U);
  server.peer->window = std::size_t{1} << 40;
  server.turns(500);
  EXPECT_EQ(server.peer->take(), expected);
}

TEST(HttpHostile, pipelining_behind_a_call_that_waits_is_bounded_and_complete) {
  Http server{5};
  std::string requests = post(call("wait", 0));
  std::string expected = ok(result("\"a\"", 0));
  for (int i = 1; i <= 2000; ++i) {
    requests += post(request(i));
    expected += ok(result("19", i));
  }
  EXPECT_EQ(server.ask(requests), "");
  server.waiting.answer(0, "a");
  server.turns(500);
  EXPECT_EQ(server.peer->take(), expected);
}

TEST(HttpHostile, half_close_gets_its_answers_and_then_the_end) {
  for (unsigned seed = 1; seed < 20; ++seed) {
    Http server{seed};
    server.peer->send(post(call("wait", 1)) + post(request(2)));
    server.peer->finish();
    server.turns();
    EXPECT_FALSE(server.end.has_value());
    server.waiting.answer(0, "a");
    server.turns();
    EXPECT_EQ(server.peer->take(), ok(result("\"a\"", 1)) + ok(result("19", 2)));
    EXPECT_EQ(server.end, End::finished);
  }
}

TEST(HttpHostile, an_end_within_a_request_is_answered_and_makes_no_call) {
  for (const std::string& part : {post(request(1)).substr(0, 30), post(request(1)).substr(0, 100)}) {
    Http server;
    server.peer->send(part);
    server.peer->finish();
    server.turns();
    EXPECT_EQ(server.peer->take(),
              text("400 Bad Request", "Bad Request: the connection ended within the request\n", kClose));
    EXPECT_TRUE(server.peer->closed);
  }
}

TEST(HttpHostile, a_reset_while_a_call_waits_ends_the_session) {
  Http server;
  server.ask(post(call("wait", 1)) + post(request(2)));
  server.peer->reset();
  server.turns();
  EXPECT_EQ(server.end, End::lost);
  server.waiting.answer(0, "late");
  server.turns();
}

// A connection may have so many calls in flight, however many requests of HTTP bring them.
class HttpInFlight : public testing::Test {
 protected:
  static Limits ten_calls() {
    Limits limits;
    limits.in_flight = 10;
    limits.hard_output = 64 * 1024;
    return limits;
  }
  static std::string refused(int id) {
    return R"({"jsonrpc":"2.0","error":{"code":-32005,"message":"Limit exceeded","data":{"reason":"too many calls of )"
           R"(this connection are in flight","origin":"local","delivered":"no","limit":"in_flight"}},"id":)" +
           std::to_string(id) + "}";
  }

  Http server{1, ten_calls()};
};

TEST_F(HttpInFlight, counts_the_calls_of_all_requests_together) {
  const std::string four =
      "[" + call("wait", 1) + "," + call("wait", 2) + "," + call("wait", 3) + "," + call("wait", 4) + "]";
  EXPECT_EQ(server.ask(post(four) + post(four) + post(four)), "");
  EXPECT_EQ(server.waiting.calls.size(), 10U);
  EXPECT_EQ(server.ask(post(request(5))), "") << "it has its place behind them";
  for (std::size_t i = 0; i < 10; ++i) server.waiting.answer(i, "a");
  server.turns();
  const std::string a = "\"a\"";
  const std::string all = "[" + result(a, 1) + "," + result(a, 2) + "," + result(a, 3) + "," + result(a, 4) + "]";
  EXPECT_EQ(server.peer->take(),
            ok(all) + ok(all) +
                ok("[" + result(a, 1) + "," + result(a, 2) + "," + refused(3) + "," + refused(4) + "]") +
                ok(refused(5)));
  EXPECT_EQ(server.ask(post(request(6))), ok(result("19", 6))) << "there is room again";
}

TEST_F(HttpInFlight, counts_notifications_too_and_forgets_those_that_are_done) {
  const std::string notification = R"({"jsonrpc":"2.0","method":"wait"})";
  for (std::size_t round = 0; round < 3; ++round) {
    std::string requests;
    std::string empty;
    for (int i = 0; i < 11; ++i) {
      requests += post(notification);
      empty += "HTTP/1.1 204 No Content\r\n\r\n";
    }
    EXPECT_EQ(server.ask(requests + post(request(1))), empty + ok(refused(1)));
    EXPECT_EQ(server.waiting.calls.size(), 10 * (round + 1));
    for (std::size_t i = 0; i < 10; ++i) server.waiting.answer(10 * round + i, "a");
    server.turns();
    EXPECT_FALSE(server.connection->busy());
  }
}

TEST_F(HttpInFlight, bounds_what_is_gathered_for_all_requests_together) {
  const std::string item(40'000, 'x');
  server.registry.method("gather", [&]() -> Stream<std::string> {
    co_yield item;
    static_cast<void>(co_await server.waiting.wait());
  });
  EXPECT_EQ(server.ask(post(call("gather", 1)) + post(call("gather", 2))), "");
  ASSERT_EQ(server.waiting.calls.size(), 1U);
  server.waiting.answer(0, "");
  server.turns(500);
  const std::string too_much =
      R"({"jsonrpc":"2.0","error":{"code":-32005,"message":"Limit exceeded","data":{"reason":"too many items are being )"
      R"(gathered for this connection","origin":"local","delivered":"maybe","limit":"hard_output"}},"id":2})";
  EXPECT_EQ(server.peer->take(), ok(result("[\"" + item + "\"]", 1)) + ok(too_much));
}

TEST(HttpSession, that_nothing_is_happening_on_is_small) {
  EXPECT_LE(sizeof(HttpSession) + sizeof(transport::SocketStream), 600U);
}

}  // namespace
}  // namespace wirecall::session
