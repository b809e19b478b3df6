// The table of paths: what a program adds to it is served as what was there before, and a request may turn the
// connection over to another protocol.
#include "http/routes.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "connection/message_connection.hpp"
#include "framing/json_text.hpp"
#include "http/http_connection.hpp"
#include "rpc/access.hpp"
#include "tests/http/served.hpp"

namespace wirecall::net {
namespace {

using framing::HttpMethod;

const std::string kAllowGet = "Allow: GET, HEAD, OPTIONS\r\n";

TEST(HttpRoutes, find_a_path_a_prefix_and_their_methods) {
  HttpRoutes routes;
  const auto nothing = [](HttpConnection&, const RoutedRequest&) {};
  routes.add({.path = "/a", .methods = {HttpMethod::get}, .handle = nothing});
  routes.add({.path = "/a", .methods = {HttpMethod::post, HttpMethod::delete_}, .handle = nothing});
  routes.add({.path = "/a/*", .methods = {HttpMethod::put}, .handle = nothing});
  EXPECT_EQ(routes.find("/a", HttpMethod::get)->path, "/a");
  EXPECT_EQ(routes.find("/a", HttpMethod::head), routes.find("/a", HttpMethod::get));
  EXPECT_EQ(routes.find("/a/b/c", HttpMethod::put)->path, "/a/*");
  EXPECT_EQ(routes.find("/a/", HttpMethod::put)->path, "/a/*");
  EXPECT_EQ(routes.find("/a", HttpMethod::put), nullptr);
  EXPECT_EQ(routes.find("/ab", HttpMethod::get), nullptr);
  EXPECT_EQ(routes.find("/a", HttpMethod::other), nullptr);
  EXPECT_EQ(routes.methods_at("/a").text(), "GET, HEAD, POST, DELETE, OPTIONS");
  EXPECT_EQ(routes.methods_at("/a/x").text(), "PUT, OPTIONS");
  EXPECT_TRUE(routes.methods_at("/ab").empty());
}

TEST(HttpRoutes, refuse_what_is_served_already_or_cannot_be) {
  HttpRoutes routes;
  const auto add = [&](std::string path, HttpMethods methods) {
    routes.add({.path = std::move(path), .methods = methods, .handle = [](HttpConnection&, const RoutedRequest&) {}});
  };
  add("/metrics", {HttpMethod::post});
  EXPECT_THROW(add("/metrics", {HttpMethod::get}), std::invalid_argument);
  EXPECT_THROW(add("/rpc/mine", {HttpMethod::get}), std::invalid_argument);
  EXPECT_THROW(add("/rpc", {HttpMethod::put, HttpMethod::post}), std::invalid_argument);
  EXPECT_THROW(add("mine", {HttpMethod::get}), std::invalid_argument);
  EXPECT_THROW(add("/mine", {}), std::invalid_argument);
  const LogSink log;
  EXPECT_THROW(static_cast<void>(program_route("OPTIONS", "/mine", nullptr, log)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(program_route("get", "/mine", nullptr, log)), std::invalid_argument);
}

// What a server answers that has these.
HttpSettings with_routes() {
  static const LogSink log;
  HttpSettings settings;
  const auto add = [&](std::string_view method, std::string path, HttpHandler handler) {
    settings.routes.add(program_route(method, std::move(path), std::move(handler), log));
  };
  const auto say = [](const HttpRequest& request) {
    return HttpResponse{
        .body = std::string{request.method}.append(" ").append(request.path).append("?").append(request.query) + "|" +
                std::string{request.header("x-mine").value_or("none")} + "|" + std::string{request.body}};
  };
  add("GET", "/mine", say);
  add("POST", "/mine", say);
  add("DELETE", "/files/*", [](const HttpRequest& request) {
    return HttpResponse{.status = 204, .headers = {{"X-Gone", std::string{request.path}}}};
  });
  for (const int status : {205, 304}) {
    add("GET", "/bodiless/" + std::to_string(status), [status](const HttpRequest&) {
      return HttpResponse{.status = static_cast<std::uint16_t>(status), .body = "not sent"};
    });
  }
  add("GET", "/throws", [](const HttpRequest&) -> HttpResponse { throw std::runtime_error{"secret"}; });
  add("GET", "/splits", [](const HttpRequest&) { return HttpResponse{.headers = {{"X-Bad", "a\r\nX-Worse: b"}}}; });
  return settings;
}

TEST(ProgramRoute, serves_a_request_as_a_value) {
  const HttpSettings settings = with_routes();
  expect_answer(get("/mine?a=1", "X-Mine: yes\r\n") + get("/mine", {}, "HEAD") + post(request(1)),
                text("200 OK", "GET /mine?a=1|yes|") +
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 17\r\n\r\n" +
                    ok(result("19", 1)),
                settings);
  expect_answer(post("{\"a\"", "X-Mine: 2\r\n", "/mine?b") + post("", {}, "/mine") + post(request(1)),
                text("200 OK", "POST /mine?b|2|{\"a\"") + text("200 OK", "POST /mine?|none|") + ok(result("19", 1)),
                settings);
  expect_answer(
      "POST /mine HTTP/1.1\r\nHost: localhost\r\nX-Mine: c\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n"
      "0\r\n\r\n" +
          post(request(1)),
      text("200 OK", "POST /mine?|c|abcde") + ok(result("19", 1)), settings);
  expect_answer(get("/files/a/b", {}, "DELETE") + get("/mine", {}, "PUT"),
                "HTTP/1.1 204 No Content\r\nX-Gone: /files/a/b\r\n\r\n" +
                    text("405 Method Not Allowed", "Method Not Allowed: this method is not one of this place\n",
                         "Allow: GET, HEAD, POST, OPTIONS\r\n"),
                settings);
}

// RFC 9110, 15.3.6 and 15.4.5.
TEST(ProgramRoute, sends_no_body_with_a_status_that_has_none) {
  expect_answer(
      get("/bodiless/205") + get("/bodiless/304") + post(request(1)),
      "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\nHTTP/1.1 304 Not Modified\r\n\r\n" + ok(result("19", 1)),
      with_routes());
}

TEST(ProgramRoute, that_fails_is_500) {
  const std::string failed =
      text("500 Internal Server Error", "Internal Server Error: the handler of this path has failed\n");
  expect_answer(get("/throws") + get("/splits") + post(request(1)), failed + failed + ok(result("19", 1)),
                with_routes());
}

TEST(ProgramRoute, has_the_limits_and_checks_of_others) {
  const HttpSettings settings = with_routes();
  Limits limits;
  limits.max_message_size = 100;
  expect_answer(post(std::string(101, 'x'), {}, "/mine"),
                text("413 Content Too Large",
                     "Content Too Large: the body has more bytes than limits.max_message_size\n", kClose),
                settings, limits);
  expect_answer("GET /mine HTTP/1.1\r\nHost: elsewhere\r\n\r\n",
                text("403 Forbidden", "Forbidden: this Host is not one of ours; name it in allow_hosts if it is\n"),
                settings);
  expect_answer(get("/mine", "Sec-Fetch-Site: cross-site\r\n"),
                text("403 Forbidden",
                     "Forbidden: pages of other sites may ask for this only with an Origin that allow_origins names\n"),
                settings);
  Http server;
  server.http = settings;
  server.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::vector<Principal>{
      {.name = "a", .tokens = {"t"}, .call = {}, .provide = {}, .publish = {}, .subscribe = {}}});
  EXPECT_EQ(server.ask(get("/mine", "Authorization: Bearer t\r\n")), text("200 OK", "GET /mine?|none|"));
  EXPECT_TRUE(server.ask(get("/mine")).starts_with("HTTP/1.1 401 "));
}

TEST(ProgramRoute, waits_for_the_calls_before_it) {
  Http server;
  server.http = with_routes();
  EXPECT_EQ(server.ask(post(call("wait", 1)) + post("b", {}, "/mine")), "");
  server.waiting.answer(0, "a");
  server.turns();
  EXPECT_EQ(server.peer->take(), ok(result("\"a\"", 1)) + text("200 OK", "POST /mine?|none|b"));
}

// ---- upgrades ----

// From here on lines of JSON are spoken: what a WebSocket does, without its frames.
HttpSettings with_upgrade(const framing::JsonTextSettings& lines) {
  HttpSettings settings;
  settings.routes.add({.path = "/lines",
                       .methods = {},
                       .handle =
                           [&lines](HttpConnection& session, const RoutedRequest& request) {
                             session.current()
                                 .fields.append("X-Key: ")
                                 .append(request.head.find("x-key").value_or("none"))
                                 .append("\r\n");
                             session.upgrade("lines",
                                             [&lines](Host& host, std::unique_ptr<transport::ByteStream> stream) {
                                               return std::make_unique<MessageConnection>(
                                                   host, std::move(stream), std::make_unique<framing::JsonText>(lines));
                                             });
                           },
                       .upgrade = "lines"});
  return settings;
}

const std::string kUpgrade = "Connection: Upgrade\r\nUpgrade: Lines\r\nX-Key: 7\r\n";
const std::string kUpgraded =
    "HTTP/1.1 101 Switching Protocols\r\nX-Key: 7\r\nConnection: Upgrade\r\nUpgrade: lines\r\n\r\n";

TEST(HttpUpgrade, turns_the_connection_over_wherever_its_bytes_are_cut) {
  const std::string input = post(request(1)) + get("/lines", kUpgrade) + request(2) + "\n" + request(3) + "\n";
  const std::string expected = ok(result("19", 1)) + kUpgraded + result("19", 2) + "\n" + result("19", 3) + "\n";
  for (std::size_t cut = 0; cut <= input.size(); ++cut) {
    SCOPED_TRACE("cut at " + std::to_string(cut));
    Http server{static_cast<unsigned>(cut)};
    server.http = with_upgrade(server.text);
    std::string got = server.ask(std::string_view{input}.substr(0, cut));
    got += server.ask(std::string_view{input}.substr(cut));
    ASSERT_EQ(got, expected);
    EXPECT_FALSE(server.end.has_value());
    server.peer->finish();
    server.turns();
    EXPECT_EQ(server.end, CloseReason::finished);
  }
}

TEST(HttpUpgrade, that_is_not_asked_for_at_its_path_is_none) {
  Http server;
  server.http = with_upgrade(server.text);
  EXPECT_TRUE(server.ask(get("/lines")).starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(server.ask(get("/lines", "Upgrade: lines\r\n")).starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(server.ask(get("/lines", "Connection: Upgrade\r\nUpgrade: h2c\r\n")).starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(server.ask(get("/metrics", kUpgrade)).starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(server.ask(get("/lines", kUpgrade)), kUpgraded);
}

TEST(HttpUpgrade, behind_calls_that_wait_is_refused) {
  Http server;
  server.http = with_upgrade(server.text);
  EXPECT_EQ(server.ask(post(call("wait", 1)) + get("/lines", kUpgrade) + request(2)), "");
  server.waiting.answer(0, "a");
  server.turns();
  EXPECT_TRUE(server.peer->take().starts_with(ok(result("\"a\"", 1)) + "HTTP/1.1 400 Bad Request\r\n"));
}

TEST(HttpUpgrade, that_the_peer_ends_at_once_ends) {
  Http server;
  server.http = with_upgrade(server.text);
  server.peer->send(get("/lines", kUpgrade) + request(1) + "\n");
  server.peer->finish();
  server.turns();
  EXPECT_EQ(server.peer->take(), kUpgraded + result("19", 1) + "\n");
  EXPECT_EQ(server.end, CloseReason::finished);
}

}  // namespace
}  // namespace wirecall::net
