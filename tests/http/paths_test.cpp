// What is at the other paths of HTTP than that of calls, which status is for what, and what browsers are allowed.
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "tests/connection/peer.hpp"
#include "tests/http/served.hpp"
#include "tests/server/folder.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {
namespace {

// ---- other paths ----

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

TEST(HttpGet, tells_health_and_readiness_whatever_the_host) {
  for (const std::string version : {"1.1", "1.0"}) {
    const std::string fields = version == "1.0" ? kClose : "";
    expect_answer("GET /healthz HTTP/" + version + "\r\n\r\n", text("200 OK", "ok\n", fields));
    expect_answer("GET /readyz HTTP/" + version + "\r\n\r\n", text("200 OK", "ready\n", fields));
  }
  for (const std::string version : {"1.1", "1.0"}) {
    const std::string fields = version == "1.0" ? kClose : "";
    for (const std::string host : {"Host:", "Host: ", "Host: 0.0.0.0", "Host: lb.example."}) {
      SCOPED_TRACE(version + " " + host);
      expect_answer("GET /healthz HTTP/" + version + "\r\n" + host + "\r\n\r\n", text("200 OK", "ok\n", fields));
      expect_answer("GET /readyz HTTP/" + version + "\r\n" + host + "\r\n\r\n", text("200 OK", "ready\n", fields));
    }
  }
  const std::string none = text("400 Bad Request", "Bad Request: no Host\n", kClose);
  for (const std::string path : {"/", "/metrics", "/openrpc.json", "/healthz/", "/rpc/sum"}) {
    expect_answer("GET " + path + " HTTP/1.1\r\n\r\n" + get("/healthz"), none);
  }
  expect_answer("OPTIONS /healthz HTTP/1.1\r\n\r\n" + get("/healthz"), none);
  expect_answer("GET /healthz HTTP/1.1\r\nHost: lb.example\r\n\r\n", text("200 OK", "ok\n"));
  expect_answer("GET /readyz HTTP/1.1\r\nHost: lb.example:80\r\n\r\n", text("200 OK", "ready\n"));
  EXPECT_TRUE(answer({"GET /metrics HTTP/1.1\r\nHost: lb.example\r\n\r\n"}).starts_with("HTTP/1.1 403"));
  EXPECT_TRUE(answer({"POST /healthz HTTP/1.1\r\nHost: lb.example\r\n\r\n"}).starts_with("HTTP/1.1 403"));
}

TEST(Http, needs_no_host_on_a_unix_socket) {
  const Folder folder;
  Server server;
  server.method("add", [](int a, int b) { return a + b; });
  const Endpoint by_path = server.listen(folder.socket());
  const Endpoint by_port = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  const std::string body = R"({"jsonrpc":"2.0","method":"add","params":[1,2],"id":1})";
  const std::string length = "Content-Length: " + std::to_string(body.size()) + "\r\n";
  for (const std::string host :
       {"", "Host: evil.example\r\n", "Host: /run/calls.sock\r\n", "Host: %2Frun%2Fcalls\r\n"}) {
    const std::string request = "POST / HTTP/1.1\r\n" + host + length + "Connection: close\r\n\r\n" + body;
    RawPeer local{by_path};
    local.send(request);
    EXPECT_TRUE(local.all().ends_with(R"({"jsonrpc":"2.0","result":3,"id":1})")) << host;
    RawPeer remote{by_port};
    remote.send(request);
    EXPECT_TRUE(remote.all().starts_with("HTTP/1.1 40")) << host;
  }
  RawPeer page{by_path};
  page.send("POST / HTTP/1.1\r\nOrigin: http://evil.example\r\nConnection: close\r\n" + length + "\r\n" + body);
  EXPECT_TRUE(page.all().starts_with("HTTP/1.1 403")) << "something in front of the socket may let pages in";
}

TEST(Http, tells_those_on_a_unix_socket_how_curl_gets_there) {
  const Folder folder;
  Server server;
  const Endpoint by_path = server.listen(folder.socket());
  const RunningServer running{server};
  for (const std::string host : {"", "Host: localhost\r\n"}) {
    RawPeer local{by_path};
    local.send("GET / HTTP/1.1\r\n" + host + "Connection: close\r\n\r\n");
    const std::string page = local.all();
    EXPECT_TRUE(page.contains("curl --unix-socket '" + by_path.path() + "' http://localhost/rpc -d '{")) << page;
  }
}

TEST(HttpGet, gives_the_numbers_that_it_is_given) {
  HttpSettings settings;
  settings.metrics = [](const rpc::Asker&) { return std::make_unique<rpc::PlainText>("wirecall_calls 3\n"); };
  expect_answer(
      get("/metrics"),
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: 17\r\n\r\n"
      "wirecall_calls 3\n",
      settings);
}

TEST(HttpGet, gives_the_description_that_it_is_given) {
  HttpSettings settings;
  settings.openrpc = [](rpc::LoopContext&, const rpc::Asker&, std::span<const std::string>) {
    return std::make_unique<rpc::PlainText>("{}");
  };
  expect_answer(get("/openrpc.json"),
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", settings);
}

TEST(HttpGet, describes_the_server_by_the_host_that_was_asked) {
  HttpSettings settings;
  settings.allow_hosts = {"api.example"};
  settings.urls = {"http://127.0.0.1:8545/rpc"};
  settings.openrpc = [](rpc::LoopContext&, const rpc::Asker&, std::span<const std::string> urls) {
    std::string all;
    for (const std::string& url : urls) all += url + " ";
    return std::make_unique<rpc::PlainText>(all);
  };
  const auto described = [&](std::string_view host) {
    const std::string got = answer({"GET /openrpc.json HTTP/1.1\r\nHost: " + std::string{host} + "\r\n\r\n"}, settings);
    return got.substr(got.find("\r\n\r\n") + 4);
  };
  EXPECT_EQ(described("localhost:1234"), "http://localhost:1234/rpc ");
  EXPECT_EQ(described("[::1]:80"), "http://[::1]:80/rpc ");
  EXPECT_EQ(described("api.example"), "http://api.example/rpc ");
}

TEST(Http, describes_its_ports_to_those_who_name_none_and_its_name_to_all) {
  const Folder folder;
  Options named;
  named.name = "calc";
  Server server{named};
  const Endpoint by_path = server.listen(folder.socket());
  const Endpoint by_port = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  const std::string url =
      R"("servers":[{"name":"calc","url":"http://127.0.0.1:)" + std::to_string(by_port.port()) + R"(/rpc"}])";
  RawPeer local{by_path};
  local.send("GET /openrpc.json HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
  EXPECT_NE(local.all().find(url), std::string::npos) << "a name that is not known is not passed on";
  RawPeer peer{by_port};
  peer.send(R"({"jsonrpc":"2.0","method":"rpc.discover","id":1})"
            "\n");
  const std::string document = peer.line();
  EXPECT_NE(document.find(url), std::string::npos) << document;
  EXPECT_NE(document.find(R"("title":"calc")"), std::string::npos) << document;
}

TEST(Http, discover_names_the_host_that_was_asked) {
  const Folder folder;
  Options options;
  options.allow_hosts = {"api.example"};
  Server server{options};
  const Endpoint by_path = server.listen(folder.socket());
  const Endpoint by_port = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  const auto discovered = [](const Endpoint& endpoint, std::string_view host) {
    const std::string body = R"({"jsonrpc":"2.0","method":"rpc.discover","id":1})";
    RawPeer peer{endpoint};
    peer.send("POST /rpc HTTP/1.1\r\nHost: " + std::string{host} +
              "\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    const std::string all = peer.all();
    const std::size_t at = all.find(R"("url":")");
    return at == all.npos ? all : all.substr(at, all.find('}', at) - at);
  };
  const std::string own = "127.0.0.1:" + std::to_string(by_port.port());
  EXPECT_EQ(discovered(by_port, "api.example"), R"("url":"http://api.example/rpc")");
  EXPECT_EQ(discovered(by_port, "localhost:80"), R"("url":"http://localhost:80/rpc")");
  EXPECT_EQ(discovered(by_path, "evil.example"), R"("url":"http://)" + own + R"(/rpc")");
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

TEST(HttpOptions, tells_what_a_path_takes) {
  const auto allows = [](std::string_view methods) {
    return "HTTP/1.1 204 No Content\r\nAllow: " + std::string{methods} + "\r\n\r\n";
  };
  expect_answer(get("/", {}, "OPTIONS"), allows("GET, HEAD, POST, OPTIONS"));
  expect_answer(get("*", {}, "OPTIONS"), allows("GET, HEAD, POST, OPTIONS"));
  expect_answer(get("/rpc", {}, "OPTIONS"), allows("POST, OPTIONS"));
  expect_answer(get("/rpc/sum", {}, "OPTIONS"), allows("GET, HEAD, OPTIONS"));
}

TEST(HttpStatus, of_a_method_that_a_path_does_not_have_is_405) {
  const auto refused = [](std::string_view allow) {
    return text("405 Method Not Allowed", "Method Not Allowed: this method is not one of this place\n",
                "Allow: " + std::string{allow} + "\r\n");
  };
  expect_answer(get("/rpc"), refused("POST, OPTIONS"));
  expect_answer(get("/", {}, "DELETE"), refused("GET, HEAD, POST, OPTIONS"));
  expect_answer(post("x", {}, "/healthz") + get("/healthz"), refused("GET, HEAD, OPTIONS") + text("200 OK", "ok\n"));
  expect_answer("CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", refused("GET, HEAD, POST, OPTIONS"));
}

TEST(HttpStatus, of_a_path_that_is_not_there_is_404) {
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

TEST(HttpStatus, of_a_place_for_websockets_alone_is_426) {
  const std::string fields = "Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n";
  expect_answer(get("/ws?x"), text("426 Upgrade Required", "Upgrade Required: this is a WebSocket of version 13\n",
                                   "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"));
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
            text("403 Forbidden",
                 "Forbidden: pages of other sites may ask for this only with an Origin that allow_origins names\n"));
}

TEST(HttpBrowser, of_an_allowed_origin_may_read_the_answer_and_asks_first) {
  HttpSettings settings;
  settings.allow_origins = {"https://app.example"};
  const std::string cors = "Access-Control-Allow-Origin: https://app.example\r\nVary: Origin\r\n";
  expect_answer(
      get("/rpc", "Origin: https://app.example\r\nAccess-Control-Request-Method: POST\r\n", "OPTIONS"),
      "HTTP/1.1 204 No Content\r\n" + cors +
          "Allow: POST, OPTIONS\r\nAccess-Control-Allow-Methods: GET, HEAD, POST, OPTIONS\r\n"
          "Access-Control-Allow-Headers: Accept, Authorization, Content-Type, Last-Event-ID, Traceparent, Tracestate, "
          "Wirecall-Timeout-Ms\r\nAccess-Control-Max-Age: 600\r\n\r\n",
      settings);
  expect_answer(post(request(1), "Origin: https://app.example\r\n") + post(request(1)),
                "HTTP/1.1 200 OK\r\n" + cors + "Content-Type: application/json\r\nContent-Length: 36\r\n\r\n" +
                    result("19", 1) + ok(result("19", 1)),
                settings);
}

}  // namespace
}  // namespace wirecall::net
