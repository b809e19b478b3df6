// What a client makes of each HTTP response, whole and in pieces, on a simulated system. What is well formed is RFC
// 9112's.
#include <cstddef>
#include <expected>
#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "http/client.hpp"
#include "tests/http/world.hpp"
#include "wirecall/client.hpp"

namespace wirecall::net {
namespace {

using runtime::SimulatedPeer;
using Result = std::expected<int, Error>;

// What the first call comes to when `response` is its response, cut at `cut`; then a call that is answered properly.
struct Outcome {
  Result first;
  std::size_t dialed;
};
Outcome call_with_response(const std::string& response, std::size_t cut, bool ends = false, Limits limits = {}) {
  ClientOptions options;
  options.limits = limits;
  HttpWorld world{static_cast<unsigned>(cut), options};
  std::optional<Pieces> pieces;
  world.respond = [&](SimulatedPeer& peer, const Post& post) {
    if (world.posts.size() > 1) return peer.send(with_length("200 OK", result(id_of(post.body))));
    pieces.emplace(peer, response, cut, [ends, &peer] {
      if (ends) peer.finish();
    });
  };
  world.serve = [&] {
    if (pieces) pieces->resume();
  };
  const Result first = world.client->try_call<int>("a");
  const std::size_t dialed = world.dialed.size();
  EXPECT_EQ(world.client->try_call<int>("b"), 19) << response << " cut at " << cut;
  EXPECT_EQ(world.posts.size(), 2U);
  return {.first = first, .dialed = world.dialed.size() - dialed};
}
TEST(ClientHttp, a_result_in_each_form_of_a_body_is_the_result_and_the_connection_is_kept) {
  for (const std::string& response : {
           with_length("200 OK", result("1")),
           with_length("200 OK", result("1") + "\n"),
           with_length("201 ", "\r\n [" + result("1") + "] "),
           "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" +
               with_length("200 OK", result("1")),
           in_chunks(result("1")),
       }) {
    at_every_byte(response, [&](std::size_t cut) {
      const Outcome outcome = call_with_response(response, cut);
      EXPECT_EQ(outcome.first, 19);
      EXPECT_EQ(outcome.dialed, 0U);
    });
  }
}

TEST(ClientHttp, a_response_behind_which_nothing_follows_is_taken_and_the_next_call_has_a_connection_of_its_own) {
  for (const std::string& response : {
           with_length("200 OK", result("1"), "Connection: close\r\n"),
           "HTTP/1.0 200 OK\r\nContent-Length: 36\r\n\r\n" + result("1"),
           "HTTP/1.1 200 OK\r\n\r\n" + result("1"),
           "HTTP/1.0 200 OK\r\n\r\n" + result("1") + "\n",
       }) {
    at_every_byte(response, [&](std::size_t cut) {
      const Outcome outcome = call_with_response(response, cut, true);
      EXPECT_EQ(outcome.first, 19);
      EXPECT_EQ(outcome.dialed, 1U);
    });
  }
}

TEST(ClientHttp, an_error_of_json_rpc_is_the_call_s_whatever_the_status) {
  for (const std::string_view status : {"200 OK", "400 Bad Request", "404 Not Found", "500 Internal Server Error"}) {
    for (const std::string& body : {refusal("1"), refusal("null"), "[" + refusal("1") + "]"}) {
      const std::string response = with_length(status, body);
      at_every_byte(response, [&](std::size_t cut) {
        const Outcome outcome = call_with_response(response, cut);
        ASSERT_FALSE(outcome.first.has_value());
        EXPECT_EQ(outcome.first.error().code(), -5);
        EXPECT_EQ(outcome.first.error().message(), "no");
        EXPECT_EQ(outcome.dialed, 0U);
      });
    }
  }
}

TEST(ClientHttp, a_status_that_comes_without_such_an_error_is_named_and_costs_no_connection) {
  struct Case {
    std::string_view status;
    int code;
    std::string_view message;
    std::string_view delivered;
  };
  for (const Case& status : {
           Case{"400 Bad Request", -32001, "the server answered with HTTP status 400 (Bad Request)", "no"},
           Case{"401 Unauthorized", -32004, "the server answered with HTTP status 401 (Unauthorized)", "no"},
           Case{"403 Forbidden", -32003, "the server answered with HTTP status 403 (Forbidden)", "no"},
           Case{"404 Gone Fishing", -32001, "the server answered with HTTP status 404 (Not Found)", "no"},
           Case{"413 x", -32006, "the server answered with HTTP status 413 (Content Too Large)", "no"},
           Case{"418 I'm a teapot", -32001, "the server answered with HTTP status 418", "no"},
           Case{"429 Too Many Requests", -32005, "the server answered with HTTP status 429 (Too Many Requests)", "no"},
           Case{"500 x", -32001, "the server answered with HTTP status 500 (Internal Server Error)", "maybe"},
           Case{"502 x", -32001, "the server answered with HTTP status 502 (Bad Gateway)", "maybe"},
           Case{"503 x", -32005, "the server answered with HTTP status 503 (Service Unavailable)", "maybe"},
           Case{"504 x", -32002, "the server answered with HTTP status 504 (Gateway Timeout)", "maybe"},
           Case{"505 x", -32001, "the server answered with HTTP status 505 (HTTP Version Not Supported)", "no"},
       }) {
    for (const std::string& body :
         {std::string{}, std::string{"<html>"}, result("1"), std::string{"{}"},
          std::string{R"({"error":"Unauthorized"})"}, std::string{R"({"jsonrpc":"2.0","error":"no","id":1})"}}) {
      const Outcome outcome = call_with_response(with_length(status.status, body), 3);
      ASSERT_FALSE(outcome.first.has_value()) << status.status;
      EXPECT_EQ(outcome.first.error().code(), status.code) << status.status;
      EXPECT_EQ(outcome.first.error().message(), status.message);
      EXPECT_EQ(outcome.first.error().data(), R"({"reason":"HTTP status )" + std::string{status.status.substr(0, 3)} +
                                                  R"(","origin":"local","delivered":")" +
                                                  std::string{status.delivered} + "\"}");
      EXPECT_EQ(outcome.dialed, 0U);
    }
  }
}

TEST(ClientHttp, a_redirect_is_refused_by_name_and_not_followed) {
  const Outcome named =
      call_with_response(with_length("308 Permanent Redirect", "<html>", "Location: http://other/\xFFrpc\r\n"), 0);
  ASSERT_FALSE(named.first.has_value());
  EXPECT_EQ(named.first.error().code(), -32001);
  EXPECT_EQ(named.first.error().message(),
            "the server redirects to http://other/\\xffrpc (HTTP status 308), where calls do not follow: name that "
            "endpoint if it is the right one");
  EXPECT_EQ(named.dialed, 0U);
  EXPECT_NE(call_with_response("HTTP/1.1 304 Not Modified\r\n\r\n", 0).first.error().message().find("HTTP status 304"),
            std::string::npos);
}

TEST(ClientHttp, a_malformed_response_fails_the_call_and_closes_the_connection_and_nothing_else_is_harmed) {
  struct Case {
    std::string response;
    std::string_view cause;
  };
  const std::string body = result("1");
  for (const Case& bad : {
           Case{body + "\n", "no HTTP response: it does not begin with a version of HTTP"},
           Case{"HTTP/2.0 200 OK\r\n\r\n", "no HTTP response: this is HTTP/1.1 and HTTP/1.0 only"},
           Case{"HTTP/1.1 200 OK\r\nContent-Length: 36\r\nContent-Length: 36\r\n\r\n" + body, "twice"},
           Case{"HTTP/1.1 200 OK\r\nContent-Length: 36\r\nTransfer-Encoding: chunked\r\n\r\n" + body, "both"},
           Case{"HTTP/1.1 200 OK\r\nContent-Length: 3x\r\n\r\n" + body, "not decimal digits"},
           Case{"HTTP/1.1 200 OK\r\n folded\r\n\r\n" + body, "a folded line"},
           Case{"HTTP/1.1 200 OK\nContent-Length: 36\n\n" + body, "LF without CR"},
           Case{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n24\r\n" + body + "0\r\n\r\n", "a chunk"},
           Case{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "a chunk"},
           Case{"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "speaks something else from here on"},
           Case{with_length("200 OK", "<html>"), "is no JSON-RPC; check the path"},
           Case{with_length("200 OK", body.substr(1)), "is no JSON-RPC; check the path"},
           Case{with_length("200 OK", result("7")), "does not answer what it was asked"},
           Case{with_length("200 OK", "[]"), "does not answer what it was asked"},
           Case{with_length("200 OK", R"({"jsonrpc":"2.0","method":"x","id":1})"), "does not answer what it was asked"},
           Case{with_length("200 OK", R"({"error":"no"})"), "does not answer what it was asked"},
           Case{with_length("200 OK", "19"), "does not answer what it was asked"},
           Case{with_length("200 OK", ""), "is empty, as for a notification"},
           Case{"HTTP/1.1 204 No Content\r\n\r\n", "is empty, as for a notification"},
           Case{with_length("202 Accepted", ""), "is empty, as for a notification"},
           Case{with_length("200 OK", body, "Content-Encoding: gzip\r\n"), "a Content-Encoding"},
       }) {
    at_every_byte(bad.response, [&](std::size_t cut) {
      const Outcome outcome = call_with_response(bad.response, cut);
      ASSERT_FALSE(outcome.first.has_value());
      EXPECT_EQ(outcome.first.error().code(), -32001);
      EXPECT_EQ(
          outcome.first.error().message().substr(0, 60).find("the connection to http://place:8545/v1?k=1 is gone: "),
          0U);
      EXPECT_NE(outcome.first.error().message().find(bad.cause), std::string::npos) << outcome.first.error().message();
      EXPECT_NE(outcome.first.error().data().find(R"("delivered":"maybe")"), std::string::npos);
      EXPECT_EQ(outcome.dialed, 1U);
    });
  }
}

TEST(ClientHttp, a_response_over_a_limit_is_refused_with_its_name) {
  Limits limits;
  limits.max_message_size = 1024;
  limits.header_bytes = 512;
  limits.depth = 8;
  const std::string large = R"({"jsonrpc":"2.0","result":")" + std::string(1024, 'x') + R"(","id":1})";
  const auto message = [&](const std::string& response, bool ends = false) {
    const Outcome outcome = call_with_response(response, response.size(), ends, limits);
    return outcome.first.has_value() ? std::string{"a result"} : outcome.first.error().message();
  };
  EXPECT_NE(message(with_length("200 OK", large)).find("max_message_size"), std::string::npos);
  EXPECT_NE(message("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n").find("max_message_size"),
            std::string::npos);
  EXPECT_NE(message("HTTP/1.1 200 OK\r\n\r\n" + large, true).find("max_message_size"), std::string::npos);
  EXPECT_NE(message(in_chunks(large)).find("max_message_size"), std::string::npos);
  EXPECT_NE(message("HTTP/1.1 200 OK\r\nX: " + std::string(512, 'x') + "\r\n\r\n").find("more bytes than allowed"),
            std::string::npos);
  const std::string deep = R"({"jsonrpc":"2.0","result":[[[[[[[[1]]]]]]]],"id":1})";
  EXPECT_NE(message(with_length("200 OK", deep)).find("limits.depth"), std::string::npos);
}

}  // namespace
}  // namespace wirecall::net
