// Who a request by HTTP is from, where that has to be said.
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rpc/access.hpp"
#include "tests/http/served.hpp"

namespace wirecall::net {
namespace {

constexpr std::string_view kSum = R"({"jsonrpc":"2.0","method":"sum","params":[[1,2]],"id":1})";
constexpr std::string_view kGreet = R"({"jsonrpc":"2.0","method":"greet","params":["x"],"id":1})";
const std::string kUnknown = R"({"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":1})";

std::string bearer(std::string_view token, std::string_view scheme = "Bearer") {
  return "Authorization: " + std::string{scheme} + " " + std::string{token} + "\r\n";
}

// What a server that knows two principals answers.
std::string authorized(std::string_view requests, bool draining = false) {
  Http server;
  server.http.metrics = [](const rpc::Asker& asker) {
    return std::make_unique<rpc::PlainText>("for " + asker.principal->name);
  };
  server.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::vector<Principal>{
      {.name = "a",
       .tokens = {"secret"},
       .call = {"sum"},
       .provide = {},
       .publish = {},
       .subscribe = {},
       .admin = false},
      {.name = "b", .tokens = {"other"}, .call = {">"}, .provide = {}, .publish = {}, .subscribe = {}, .admin = true}});
  if (draining) server.connection->drain();
  return server.ask(requests);
}

bool is_unauthorized(const std::string& answer) {
  return answer.starts_with("HTTP/1.1 401 Unauthorized\r\n") &&
         answer.find("WWW-Authenticate: Bearer\r\n") != std::string::npos &&
         answer.find("Connection: close\r\n") != std::string::npos;
}

TEST(HttpAuthorization, is_asked_for_and_the_connection_closed) {
  for (const std::string& request :
       {post(kSum), post(kSum, bearer("wrong")), post(kSum, bearer("secret", "Basic")), post(kSum, bearer("")),
        post(kSum, "Authorization: secret\r\n"), post(kSum, "Authorization: Bearersecret\r\n"), get("/metrics"),
        get("/openrpc.json"), get("/rpc/sum?numbers=[1]"), get("/"), get("/healthz", bearer("wrong")),
        post(call("rpc.ping", 1)), post(call("rpc.hello", 1, R"({"token":"secret"})"))})
    EXPECT_TRUE(is_unauthorized(authorized(request))) << request;
}

TEST(HttpAuthorization, that_is_missing_or_unknown_is_told_in_the_log_without_the_token) {
  std::vector<std::string> lines;
  const LogSink sink{[&](const LogRecord& record) {
    const std::string line = format_log(LogFormat::human, record);
    lines.push_back(line.substr(line.find(' ') + 1));
  }};
  const auto told = [&](const std::string& request) {
    Http server;
    server.loop_context.refusals = rpc::Refusals{&sink, &server.loop};
    server.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::vector<Principal>{
        {.name = "a", .tokens = {"secret"}, .call = {}, .provide = {}, .publish = {}, .subscribe = {}}});
    EXPECT_TRUE(is_unauthorized(server.ask(request)));
    return lines.empty() ? std::string{} : std::exchange(lines, {}).front();
  };
  EXPECT_EQ(told(post(kSum)),
            R"(warning a caller is not let in method="POST /rpc" about="" source="" reason="no token" code=-32004)");
  EXPECT_EQ(
      told(get("/metrics?x=1", bearer("hunter2"))),
      R"(warning a caller is not let in method="GET /metrics" about="" source="" reason="a token that is not known")"
      " code=-32004");
}

class HeadsBeforeAuthorization : public testing::Test {
 protected:
  static void guard(Http& server) {
    server.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::vector<Principal>{
        {.name = "a", .tokens = {"secret"}, .call = {"sum"}, .provide = {}, .publish = {}, .subscribe = {}}});
  }
  static inline const std::string kBegun = "POST /rpc HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(200, 'x');
};

TEST_F(HeadsBeforeAuthorization, count_to_what_those_hold_who_have_not_said_who_they_are) {
  Http server{1, Limits{.unidentified_bytes = 65536}};
  guard(server);
  EXPECT_EQ(server.ask(kBegun), "");
  EXPECT_EQ(server.loop_context.budgets.unidentified.bytes(), kBegun.size());
  const std::string rest = "\r\n" + bearer("secret") + "Content-Length: " + std::to_string(kSum.size()) + "\r\n\r\n";
  EXPECT_TRUE(server.ask(rest + std::string{kSum}).starts_with("HTTP/1.1 200"));
  EXPECT_EQ(server.loop_context.budgets.unidentified.bytes(), 0U);
  EXPECT_EQ(server.ask(kBegun), "");
  EXPECT_EQ(server.loop_context.budgets.unidentified.bytes(), 0U) << "of one who has";
}

TEST_F(HeadsBeforeAuthorization, close_the_connection_that_holds_most_where_all_hold_too_much) {
  Http server{1, Limits{.unidentified_bytes = 100}};
  guard(server);
  EXPECT_EQ(server.ask(kBegun), "");
  server.peer->finish();
  server.turns();
  EXPECT_EQ(server.end, CloseReason::refused) << "without waiting for the rest";
  EXPECT_EQ(server.loop_context.budgets.unidentified.bytes(), 0U);
}

TEST(HttpAuthorization, is_not_for_health_and_preflight) {
  EXPECT_EQ(authorized(get("/healthz")), text("200 OK", "ok\n"));
  EXPECT_EQ(authorized(get("/readyz")), text("200 OK", "ready\n"));
  EXPECT_TRUE(authorized(get("/rpc", {}, "OPTIONS")).starts_with("HTTP/1.1 204"));
}

TEST(HttpAuthorization, is_of_each_request_for_itself) {
  EXPECT_EQ(authorized(post(kSum, bearer("secret")) + post(kGreet, bearer("other", "bearer"))),
            ok(result("3", 1)) + ok(result("\"hello x\"", 1)));
  EXPECT_EQ(authorized(post(kGreet, bearer("other")) + post(kGreet, bearer("secret"))),
            ok(result("\"hello x\"", 1)) + ok(kUnknown));
  const std::string both = authorized(post(kSum, bearer("secret")) + post(kSum));
  EXPECT_TRUE(both.starts_with(ok(result("3", 1)))) << both;
  EXPECT_TRUE(is_unauthorized(both.substr(ok(result("3", 1)).size()))) << both;
  EXPECT_TRUE(authorized(post(kSum, bearer("secret") + bearer("secret"))).starts_with("HTTP/1.1 400"));
}

TEST(HttpAuthorization, ends_where_there_are_no_principals_any_more) {
  Http server;
  server.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::vector<Principal>{
      {.name = "a", .tokens = {"secret"}, .call = {"sum"}, .provide = {}, .publish = {}, .subscribe = {}}});
  const std::string ask = get("/rpc/greet?name=%22x%22", bearer("secret"));
  EXPECT_TRUE(server.ask(ask).starts_with("HTTP/1.1 404"));
  EXPECT_EQ(server.ask(post(kGreet, bearer("secret"))), ok(kUnknown));
  server.loop_context.services.authority = nullptr;
  server.connection->authority_changed(false);
  EXPECT_EQ(server.ask(ask), ok(result("\"hello x\"", 1)));
  EXPECT_EQ(server.ask(post(kGreet)), ok(result("\"hello x\"", 1)));
}

TEST(HttpAuthorization, that_is_known_is_told_when_the_server_drains) {
  const std::string refused = authorized(post(kSum, bearer("secret")), true);
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 503")) << refused;
  EXPECT_NE(refused.find("\"code\":-32009"), std::string::npos) << refused;
  EXPECT_TRUE(is_unauthorized(authorized(post(kSum), true)));
}

TEST(HttpAuthorization, decides_what_may_be_called_by_get_and_what_is_told) {
  EXPECT_EQ(authorized(get("/rpc/sum?numbers=[1,2]", bearer("secret"))), ok(result("3", 1)));
  EXPECT_EQ(authorized(get("/rpc/greet?name=%22x%22", bearer("secret"))),
            authorized(get("/rpc/nothing", bearer("secret"))));
  EXPECT_NE(authorized(get("/metrics", bearer("secret"))).find("\r\n\r\nfor a"), std::string::npos);
  EXPECT_NE(authorized(get("/metrics", bearer("other"))).find("\r\n\r\nfor b"), std::string::npos);
}

}  // namespace
}  // namespace wirecall::net
