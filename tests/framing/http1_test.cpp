// Heads of HTTP/1.1 requests and chunked bodies, whole and cut at every byte, from heap blocks of their exact size.
// What is refused, and with which status, is RFC 9112's and RFC 9110's.
#include "framing/http1.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/framing/head_in.hpp"
#include "tests/framing/read_frames.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::framing {
namespace {

using namespace std::string_literals;

using HeadOf = HeadIn<HttpHead, &read_http_head>;

// Every beginning is incomplete, unless it already is refused as the whole is.
void expect_beginnings(std::string_view text, std::uint16_t status) {
  for (std::size_t size = 0; size < text.size(); ++size) {
    const HeadOf part{text.substr(0, size)};
    EXPECT_EQ(part.result.size, 0U) << text.substr(0, size);
    EXPECT_TRUE(part.result.status == 0 || part.result.status == status) << text.substr(0, size);
  }
}

void expect_refused(std::string_view text, std::uint16_t status = 400) {
  const HeadOf whole{text};
  EXPECT_EQ(whole.result.status, status) << text << "\n" << whole.result.cause;
  EXPECT_EQ(whole.result.size, 0U);
  EXPECT_FALSE(whole.result.cause.empty()) << text;
  expect_beginnings(text, status);
}

// What the block's head says; a body may follow.
HeadOf expect_read(std::string_view text, std::string_view body = {}) {
  HeadOf whole{std::string{text} + std::string{body}};
  EXPECT_EQ(whole.result.status, 0) << text << "\n" << whole.result.cause;
  EXPECT_EQ(whole.result.size, text.size()) << text;
  expect_beginnings(text, 0);
  return whole;
}

// A request whose only trouble may be `fields`.
std::string with(std::string_view fields) { return "POST /rpc HTTP/1.1\r\nHost: a\r\n" + std::string{fields} + "\r\n"; }

TEST(HttpHead, of_a_usual_post_is_read) {
  const HeadOf read = expect_read(
      "POST /rpc?x=1 HTTP/1.1\r\nHost: 127.0.0.1:8545\r\nUser-Agent: curl/8.0\r\nAccept: */*\r\n"
      "Content-Type: application/json\r\nContent-Length: 61\r\n\r\n",
      "{}");
  EXPECT_EQ(read.head.method, HttpMethod::post);
  EXPECT_EQ(read.head.target, "/rpc?x=1");
  EXPECT_EQ(read.head[HttpField::host], "127.0.0.1:8545");
  EXPECT_EQ(read.head.content_length, 61U);
  EXPECT_FALSE(read.head.chunked);
  EXPECT_FALSE(read.head.closes);
  EXPECT_FALSE(read.head.version_1_0);
  EXPECT_FALSE(read.head.has(HttpField::origin));
  EXPECT_EQ(read.head[HttpField::origin], "");
}

TEST(HttpHead, finds_any_field_by_its_name) {
  const HeadOf read = expect_read(
      "POST / HTTP/1.1\r\nHost: a\r\nMcp-Session-Id:  12 3\t\r\nX-Empty:\r\nx-twice: 1\r\nX-Twice: 2\r\nHos: b\r\n\r\n",
      "Body: none\r\n\r\n");
  EXPECT_EQ(read.head.find("mcp-session-id"), "12 3");
  EXPECT_EQ(read.head.find("Host"), "a");
  EXPECT_EQ(read.head.find("X-Empty"), "");
  EXPECT_EQ(read.head.find("X-Twice"), "1");
  EXPECT_EQ(read.head.find("Hos"), "b");
  for (const auto* none : {"Body", "Mcp-Session", "", "POST / HTTP/1.1", "3"}) {
    EXPECT_EQ(read.head.find(none), std::nullopt) << none;
  }
  EXPECT_EQ(expect_read("GET / HTTP/1.1\r\n\r\n").head.find("Host"), std::nullopt);
}

TEST(HttpHead, names_fields_in_any_case_and_trims_their_values) {
  const HeadOf read = expect_read(
      "GET / HTTP/1.1\r\nHOST:\t a \t\r\noRIGIN:http://b\r\nSec-fetch-SITE:  \r\nexpect: 100-continue\r\n"
      "upgrade: h2c\r\nsec-fetch-mode: cors\r\n"
      "content-encoding: gzip\r\nwirecall-timeout-ms: 5\r\nX-Other: caf\xC3\xA9\r\n\r\n");
  EXPECT_EQ(read.head[HttpField::host], "a");
  EXPECT_EQ(read.head[HttpField::origin], "http://b");
  EXPECT_TRUE(read.head.has(HttpField::sec_fetch_site));
  EXPECT_EQ(read.head[HttpField::sec_fetch_site], "");
  EXPECT_EQ(read.head[HttpField::expect], "100-continue");
  EXPECT_EQ(read.head[HttpField::upgrade], "h2c");
  EXPECT_EQ(read.head[HttpField::sec_fetch_mode], "cors");
  EXPECT_EQ(read.head[HttpField::content_encoding], "gzip");
  EXPECT_EQ(read.head[HttpField::wirecall_timeout_ms], "5");
}

TEST(HttpHead, tells_methods_that_http_has_from_others) {
  const auto method = [](std::string_view name) {
    return HeadOf{std::string{name} + " / HTTP/1.1\r\nHost: a\r\n\r\n"}.head.method;
  };
  EXPECT_EQ(method("GET"), HttpMethod::get);
  EXPECT_EQ(method("HEAD"), HttpMethod::head);
  EXPECT_EQ(method("OPTIONS"), HttpMethod::options);
  EXPECT_EQ(method("PUT"), HttpMethod::put);
  EXPECT_EQ(method("PATCH"), HttpMethod::patch);
  EXPECT_EQ(method("DELETE"), HttpMethod::delete_);
  EXPECT_EQ(method("TRACE"), HttpMethod::other);
  for (const auto* name : {"get", "PROXY", "PRI", "M-SEARCH", "POSTS", "!"}) {
    EXPECT_EQ(method(name), HttpMethod::unknown) << name;
  }
}

TEST(HttpHead, takes_a_path_a_uri_or_a_star_as_target) {
  EXPECT_EQ(expect_read("GET http://a/x?y HTTP/1.1\r\nHost: a\r\n\r\n").head.target, "/x?y");
  EXPECT_EQ(expect_read("GET HTTP://a HTTP/1.1\r\nHost: a\r\n\r\n").head.target, "/");
  EXPECT_EQ(expect_read("GET http://LOCALHOST:1/x HTTP/1.1\r\nHost: localhost:1\r\n\r\n").head.target, "/x");
  EXPECT_EQ(expect_read("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").head.target, "*");
  EXPECT_EQ(expect_read("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n").head.method, HttpMethod::other);
  expect_refused("GET * HTTP/1.1\r\nHost: a\r\n\r\n");
  expect_refused("GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n");
  expect_refused("GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n");
  expect_refused("GET http://a?x HTTP/1.1\r\nHost: a\r\n\r\n");
  expect_refused("GET x HTTP/1.1\r\nHost: a\r\n\r\n");
  expect_refused("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n");
  expect_refused("GET /\xC3\xA9 HTTP/1.1\r\nHost: a\r\n\r\n");
}

TEST(HttpHead, of_another_version_is_refused_with_505) {
  for (const auto* version : {"HTTP/2.0", "HTTP/1.2", "HTTP/0.9", "HTTP/3.0", "HTTP/9.9"}) {
    expect_refused("GET / "s + version + "\r\nHost: a\r\n\r\n", 505);
  }
  expect_refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505);
}

TEST(HttpHead, without_a_proper_request_line_is_refused) {
  for (const auto* line : {"GET /", "GET / ", "GET  / HTTP/1.1", "GET /  HTTP/1.1", "GET / HTTP/1.1 ", "GET / http/1.1",
                           "GET / HTTP/11", "GET / HTTP/1.x", "GET / HTTP/1.10", "GET\t/ HTTP/1.1", " GET / HTTP/1.1",
                           "/ HTTP/1.1", "G(T / HTTP/1.1", "GET /\x01 HTTP/1.1", "GET /\tx HTTP/1.1"}) {
    expect_refused(line + "\r\nHost: a\r\n\r\n"s);
  }
}

TEST(HttpHead, of_another_protocol_is_one_of_an_unknown_method) {
  expect_refused("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 501);
  expect_refused("PROXY UNKNOWN\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 501);
  expect_refused("EHLO a\r\n", 501);
  // Its fields are of HTTP when the line was.
  expect_refused("BREW / HTTP/1.1\r\nX\r\n\r\n");
}

TEST(HttpHead, may_come_behind_empty_lines) {
  EXPECT_EQ(expect_read("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n").head.method, HttpMethod::get);
  expect_refused("\n\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
  expect_refused("\r\rGET / HTTP/1.1\r\nHost: a\r\n\r\n");
}

TEST(HttpHead, has_one_host_at_most) {
  EXPECT_FALSE(expect_read("GET / HTTP/1.1\r\n\r\n").head.has(HttpField::host)) << "who needs one is told later";
  expect_refused("GET http://a/ HTTP/1.1\r\n\r\n");
  expect_refused("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n");
  expect_refused("GET / HTTP/1.1\r\nHost: a\r\nhOST: b\r\n\r\n");
  expect_refused("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(expect_read("GET / HTTP/1.0\r\nHost: a\r\n\r\n").head.version_1_0);
}

TEST(HttpHead, in_1_0_or_with_connection_close_is_the_last) {
  EXPECT_TRUE(expect_read("GET / HTTP/1.0\r\nHost: a\r\n\r\n").head.closes);
  EXPECT_TRUE(expect_read("GET / HTTP/1.0\r\nHost: a\r\nConnection: x\r\n\r\n").head.closes);
  EXPECT_TRUE(expect_read(with("Connection: CLOSE\r\n")).head.closes);
  EXPECT_TRUE(expect_read(with("Connection: keep-alive, Close\r\n")).head.closes);
  EXPECT_TRUE(expect_read(with("Connection: close\r\nConnection: x\r\n")).head.closes);
  EXPECT_FALSE(expect_read(with("Connection: keep-alive, closes\r\n")).head.closes);
  EXPECT_TRUE(expect_read(with("Connection: , upgrade\r\n")).head.upgrades);
}

TEST(HttpHead, in_1_0_may_ask_for_the_connection_to_go_on) {
  const auto asks = [](std::string_view version, std::string_view fields) {
    const auto read = expect_read("GET / HTTP/" + std::string{version} + "\r\n" + std::string{fields} + "\r\n");
    EXPECT_NE(read.head.keeps_alive, read.head.closes && version == "1.0");
    return read.head.keeps_alive;
  };
  EXPECT_TRUE(asks("1.0", "Connection: Keep-Alive\r\n"));
  EXPECT_TRUE(asks("1.0", "Connection: x, keep-alive\r\nConnection: y\r\n"));
  EXPECT_FALSE(asks("1.0", "Connection: keep-alive, close\r\n"));
  EXPECT_FALSE(asks("1.0", "Connection: close\r\nConnection: keep-alive\r\n"));
  EXPECT_FALSE(expect_read(with("Connection: keep-alive\r\n")).head.keeps_alive) << "in 1.1 it says nothing";
}

TEST(HttpHead, with_a_malformed_field_is_refused) {
  for (const auto& field : {"X\r\n"s,
                            "X y\r\n"s,
                            "X : y\r\n"s,
                            "X\t: y\r\n"s,
                            ": y\r\n"s,
                            " X: y\r\n"s,
                            "X: y\r\n z\r\n"s,
                            "X: y\r\n\tz\r\n"s,
                            "X: y\n"s,
                            "X: y\rz\r\n"s,
                            "X: y\r\r\n"s,
                            "X: \0\r\n"s,
                            "X: \x01\r\n"s,
                            "X: \x7F\r\n"s,
                            "X\0: y\r\n"s,
                            "X(: y\r\n"s,
                            "\n"s,
                            "X: y\r\n\r"s,
                            "X: 1234567\x0B\r\n"s,
                            "X: 12345678901\x1F"
                            "56\r\n"s,
                            "\xC3\xA9: y\r\n"s}) {
    expect_refused(with(field));
  }
  expect_refused("GET / HTTP/1.1\r\nHost: a\r\n\rX");
}

TEST(HttpHead, with_a_content_length_that_is_no_number_is_refused) {
  for (const auto* value : {"", "-1", "+5", "0x10", "5,5", "5, 5", "5 5", "1e3", "5;", "five"}) {
    expect_refused(with("Content-Length: "s + value + "\r\n"));
  }
  expect_refused(with("Content-Length: 5\r\nContent-Length: 6\r\n"));
  expect_refused(with("Content-Length: 5\r\nContent-Length: 5\r\n"));
  // Twenty digits, and more than 64 bits hold: larger than any limit.
  EXPECT_EQ(expect_read(with("Content-Length: 18446744073709551617\r\n")).head.content_length, std::size_t{1} << 60);
  EXPECT_EQ(expect_read(with("Content-Length: 99999999999999999999\r\n")).head.content_length, std::size_t{1} << 60);
}

TEST(HttpHead, with_any_other_transfer_encoding_than_chunked_is_refused) {
  EXPECT_TRUE(expect_read(with("Transfer-Encoding: Chunked\r\n")).head.chunked);
  for (const auto* value : {"\tchunked", "chunked\t", "", "chunked, chunked", "chunked,", "gzip", "chunked, gzip",
                            "xchunked", "chunked;q=1", "identity", "\"chunked\"", ",chunked"}) {
    expect_refused(with("Transfer-Encoding:"s + value + "\r\n"));
  }
  expect_refused(with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"));
  expect_refused(with("Transfer-Encoding: gzip, chunked\r\n"), 501);
}

TEST(HttpHead, with_two_lengths_of_the_body_is_refused) {
  expect_refused(with("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"));
  expect_refused(with("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"));
  expect_refused("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
}

TEST(HttpHead, with_a_field_twice_that_decides_something_is_refused) {
  for (const auto* name :
       {"Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Expect", "Authorization", "Wirecall-Timeout-Ms"}) {
    expect_refused(with(name + ": x\r\n"s + name + ": x\r\n"));
  }
  // What nobody looks at decides nothing.
  for (const auto* name : {"Traceparent", "X-Other"}) expect_read(with(name + ": x\r\n"s + name + ": y\r\n"));
}

TEST(HttpHead, over_the_limit_is_refused_with_431) {
  const std::string start = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
  const std::string largest = start + std::string(kBytesMax - start.size() - 4, 'x') + "\r\n\r\n";
  EXPECT_EQ(HeadOf{largest}.result.size, kBytesMax);
  EXPECT_EQ(HeadOf{largest + "body"}.result.size, kBytesMax);
  EXPECT_EQ(HeadOf{start + std::string(kBytesMax - start.size() - 3, 'x') + "\r\n\r\n"}.result.status, 431);
  EXPECT_EQ(HeadOf{start + std::string(kBytesMax - start.size(), 'x')}.result.status, 0);
  EXPECT_EQ(HeadOf{start + std::string(kBytesMax - start.size() + 1, 'x')}.result.status, 431);
  std::string many = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 10'000; ++i) many += "a:b\r\n";
  EXPECT_EQ(HeadOf{many}.result.status, 431);
}

// ---- chunked bodies ----

// Through the reader of frames: a body is one message, and another begins behind it.
class ChunkedBodies final : public Framing {
 public:
  Found next(std::span<char> input) override {
    const Found found = body_.next({input.data(), input.size()});
    between_ = found.find == Find::message;
    if (between_) body_ = {};
    return found;
  }
  Found unfinished(std::string_view) override { return {}; }
  Recovery recover(std::string_view) override { return Recovery::close; }
  Found end_of_stream() override { return {between_ ? Find::nothing : Find::malformed, 0, 0}; }

 private:
  ChunkedBody body_;
  bool between_ = true;
};

void expect_bodies(std::string_view input, const Log& expected) { expect_frames<ChunkedBodies>(input, expected); }

TEST(ChunkedBody, is_the_data_of_its_chunks) {
  expect_bodies("0\r\n\r\n", {""});
  expect_bodies("3\r\nabc\r\n0\r\n\r\n", {"abc"});
  expect_bodies("3\r\nabc\r\nA\r\n0123456789\r\n1\r\n\r\r\n000\r\n\r\n2\r\nde\r\n0\r\n\r\n", {"abc0123456789\r", "de"});
  expect_bodies("0000000000000003\r\nabc\r\n0\r\n\r\n", {"abc"});
}

TEST(ChunkedBody, passes_extensions_and_trailers_over) {
  expect_bodies("3;a=b; c=\"d\"\r\nabc\r\n0;x\r\nTrailer: y\r\nZ:\r\n\r\n", {"abc"});
}

TEST(ChunkedBody, that_is_malformed_is_refused) {
  for (const auto& body : {"\r\n"s,
                           "x\r\n"s,
                           "-1\r\n"s,
                           "+1\r\na\r\n"s,
                           "0x1\r\na\r\n"s,
                           " 1\r\na\r\n"s,
                           "1 \r\na\r\n"s,
                           "1\na\r\n"s,
                           "1\r\r\na"s,
                           "1\ra\r\n"s,
                           "1\r\nab"s,
                           "1\r\na\n"s,
                           "1\r\na\rb"s,
                           "1;\x01\r\na"s,
                           "1;a\nb\r\n"s,
                           "0\r\n\n"s,
                           "0\r\n\rx"s,
                           "0\r\nX\r\n\r\n"s,
                           "0\r\n: y\r\n\r\n"s,
                           "0\r\nX : y\r\n\r\n"s,
                           "0\r\n X: y\r\n\r\n"s,
                           "0\r\nX: y\n\r\n"s,
                           "0\r\nX: \0\r\n\r\n"s}) {
    const std::string_view pieces[] = {body};
    EXPECT_TRUE(read_frames<ChunkedBodies>(pieces).size() >= 2) << body;
    EXPECT_EQ(read_frames<ChunkedBodies>(pieces).back(), "closed") << body;
  }
}

TEST(ChunkedBody, with_a_size_that_overflows_is_refused) {
  expect_bodies("FFFFFFFFFFFFFFFF\r\n", {"!", "closed"});
  expect_bodies("10000000000000000\r\n", {"!", "closed"});
  expect_bodies("00000000000000003\r\nabc", {"!", "closed"});
}

TEST(ChunkedBody, has_no_endless_extensions_or_trailers) {
  const std::string many(4096, 'x');
  expect_bodies("0;" + many.substr(1) + "\r\n\r\n", {""});
  expect_bodies("0;" + many + "\r\n\r\n", {"!", "closed"});
  expect_bodies("0\r\nX:" + many + "\r\n\r\n", {"!", "closed"});
  std::string chunks;
  for (int i = 0; i < 2000; ++i) chunks += "1;xx\r\na\r\n";
  const std::string_view pieces[] = {chunks};
  EXPECT_EQ(read_frames<ChunkedBodies>(pieces).back(), "closed");
}

}  // namespace
}  // namespace wirecall::framing
