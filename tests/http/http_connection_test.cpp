// The calls of HTTP as a peer sees them: every request whole, cut at every byte and in seeded pieces; order, bodies,
// and when the connection ends.
#include "http/http_connection.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>

#include "tests/http/served.hpp"

namespace wirecall::net {
namespace {

using std::chrono::milliseconds;

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
  expect_answer("POST / HTTP/1.0\r\nHost: localhost\r\nConnection: close, keep-alive\r\nContent-Length: 61\r\n\r\n" +
                    request(1) + post(request(2)),
                closing);
  expect_answer(post(request(1), kClose) + post(request(2)), closing);
  Http server;
  server.ask(post(request(1), kClose));
  EXPECT_TRUE(server.peer->shut_down);
  server.peer->finish();
  server.turns();
  EXPECT_TRUE(server.peer->closed);
}

TEST(HttpPost, with_http_1_0_that_asks_for_it_is_followed_by_others) {
  const auto old = [](int id) {
    return "POST / HTTP/1.0\r\nHost: localhost\r\nConnection: Keep-Alive\r\nContent-Length: 61\r\n\r\n" + request(id);
  };
  const auto kept = [](int id) {
    return "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Type: application/json\r\nContent-Length: 36\r\n\r\n" +
           result("19", id);
  };
  expect_answer(old(1) + old(2) + post(request(3)), kept(1) + kept(2) + ok(result("19", 3)));
  const std::string note = R"({"jsonrpc":"2.0","method":"subtract","params":[42,23]    })";
  const std::string get_old = "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
  expect_answer("POST / HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\nContent-Length: " +
                    std::to_string(note.size()) + "\r\n\r\n" + note + get_old,
                "HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n" +
                    text("200 OK", "ok\n", "Connection: keep-alive\r\n"));
  // What closes, says so and nothing else.
  expect_answer("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + get_old,
                text("400 Bad Request", "Bad Request: no Host\n", kClose));
}

TEST(HttpPost, may_begin_with_one_byte_order_mark) {
  const std::string mark = "\xEF\xBB\xBF";
  expect_answer(post(mark + request(1)) + post(request(2)), ok(result("19", 1)) + ok(result("19", 2)));
  const std::string in_chunks =
      "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n\xEF\xBB\r\n1\r\n\xBF\r\n3D\r\n";
  expect_answer(in_chunks + request(1) + "\r\n0\r\n\r\n", ok(result("19", 1)));
  expect_answer(post(mark + mark + request(1)), ok(kParseError));
  expect_answer(post(mark), ok(kParseError));
  expect_answer(post(request(1) + mark), ok(kParseError));
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

TEST(Http, refuses_what_expects_something_else_whatever_it_asks) {
  for (const std::string line : {"GET /healthz", "GET /rpc/sum", "OPTIONS /rpc", "POST /nowhere", "PUT /rpc"}) {
    expect_answer(line + " HTTP/1.1\r\nHost: localhost\r\nExpect: tea\r\n\r\n",
                  text("417 Expectation Failed", "Expectation Failed: only 100-continue can be expected\n", kClose));
  }
  expect_answer("GET /healthz HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\r\n", text("200 OK", "ok\n"));
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

TEST(HttpConnection, that_nothing_is_happening_on_is_small) {
  EXPECT_LE(sizeof(HttpConnection) + sizeof(transport::SocketStream), 600U);
}

}  // namespace
}  // namespace wirecall::net
