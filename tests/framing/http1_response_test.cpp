// Heads of HTTP/1.1 responses, whole and cut at every byte, from heap blocks of their exact size. What is refused is
// RFC 9112's; fields are read as those of requests are (http1_test.cpp).
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>

#include "framing/http1.hpp"
#include "tests/framing/head_in.hpp"

namespace wirecall::framing {
namespace {

using namespace std::string_literals;

using HeadOf = HeadIn<HttpResponseHead, &read_http_response_head>;

// Every beginning is incomplete, unless it already is refused as the whole is.
void expect_beginnings(std::string_view text, bool refused) {
  for (std::size_t size = 0; size < text.size(); ++size) {
    const HeadOf part{text.substr(0, size)};
    EXPECT_EQ(part.result.size, 0U) << text.substr(0, size);
    EXPECT_TRUE(part.result.status == 0 || refused) << text.substr(0, size);
  }
}

HeadOf expect_read(std::string_view text, std::string_view body = {}) {
  HeadOf whole{std::string{text} + std::string{body}};
  EXPECT_EQ(whole.result.status, 0) << text << "\n" << whole.result.cause;
  EXPECT_EQ(whole.result.size, text.size()) << text;
  expect_beginnings(text, false);
  return whole;
}

TEST(HttpResponseHead, of_a_usual_response_is_read) {
  const HeadOf read =
      expect_read("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 36\r\n\r\n", "{}");
  EXPECT_EQ(read.head.status, 200);
  EXPECT_EQ(read.head.content_length, 36U);
  EXPECT_FALSE(read.head.chunked);
  EXPECT_FALSE(read.head.closes);
  EXPECT_FALSE(read.head.endless());
}

TEST(HttpResponseHead, says_where_else_to_go) {
  const HeadOf read =
      expect_read("HTTP/1.1 301 Moved Permanently\r\nlocation: http://b/rpc \r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(read.head.status, 301);
  EXPECT_EQ(read.head[HttpField::location], "http://b/rpc");
}

TEST(HttpResponseHead, may_give_no_reason_or_any) {
  EXPECT_EQ(expect_read("HTTP/1.1 204 \r\n\r\n").head.status, 204);
  EXPECT_EQ(expect_read("HTTP/1.1 599 l\xE9 \t so\r\n\r\n").head.status, 599);
  EXPECT_EQ(expect_read("HTTP/1.1 100 Continue\r\n\r\n").head.status, 100);
}

TEST(HttpResponseHead, without_a_length_has_a_body_that_ends_with_the_connection) {
  EXPECT_TRUE(expect_read("HTTP/1.1 200 OK\r\n\r\n").head.endless());
  EXPECT_FALSE(expect_read("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").head.endless());
  const HeadOf chunked = expect_read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_TRUE(chunked.head.chunked);
  EXPECT_FALSE(chunked.head.endless());
}

TEST(HttpResponseHead, says_whether_the_connection_ends) {
  EXPECT_TRUE(expect_read("HTTP/1.1 200 OK\r\nConnection: x, Close\r\n\r\n").head.closes);
  EXPECT_TRUE(expect_read("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n").head.closes);
}

TEST(HttpResponseHead, of_another_shape_is_refused) {
  for (const std::string& text : {
           "{\"jsonrpc\":\"2.0\",\"result\":19,\"id\":1}\r\n\r\n"s,
           "\r\nHTTP/1.1 200 OK\r\n\r\n"s,
           " HTTP/1.1 200 OK\r\n\r\n"s,
           "http/1.1 200 OK\r\n\r\n"s,
           "HTTP/2.0 200 OK\r\n\r\n"s,
           "HTTP/1.1200 OK\r\n\r\n"s,
           "HTTP/1.1\t200 OK\r\n\r\n"s,
           "HTTP/1.1  200 OK\r\n\r\n"s,
           "HTTP/1.1 20 OK\r\n\r\n"s,
           "HTTP/1.1 2000 OK\r\n\r\n"s,
           "HTTP/1.1 +20 OK\r\n\r\n"s,
           "HTTP/1.1 099 OK\r\n\r\n"s,
           "HTTP/1.1 600 OK\r\n\r\n"s,
           "HTTP/1.1 200\r\n\r\n"s,
           "HTTP/1.1 200 OK\n\n"s,
           "HTTP/1.1 200 O\0K\r\n\r\n"s,
           "HTTP/1.1 200 O\x7FK\r\n\r\n"s,
           "HTTP/1.1 200 OK\rX\r\n\r\n"s,
           "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\n"s,
           "HTTP/1.1 200 OK\r\n Content-Length: 2\r\n\r\n"s,
           "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n and more\r\n\r\n"s,
           "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n"s,
           "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n"s,
           "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"s,
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"s,
           "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"s,
           "HTTP/1.1 200 OK\r\nno colon\r\n\r\n"s,
       }) {
    const HeadOf whole{text};
    EXPECT_NE(whole.result.status, 0) << text;
    EXPECT_EQ(whole.result.size, 0U) << text;
    EXPECT_FALSE(whole.result.cause.empty()) << text;
    expect_beginnings(text, true);
  }
}

TEST(HttpResponseHead, is_refused_as_soon_as_it_has_more_bytes_than_allowed) {
  const std::string text = "HTTP/1.1 200 OK\r\nX: " + std::string(100, 'x') + "\r\n\r\n";
  EXPECT_EQ((HeadOf{text, text.size()}.result.size), text.size());
  EXPECT_NE((HeadOf{text, text.size() - 1}.result.status), 0);
  EXPECT_EQ((HeadOf{text.substr(0, 50), 50}.result.status), 0);
  EXPECT_NE((HeadOf{text.substr(0, 51), 50}.result.status), 0);
}

}  // namespace
}  // namespace wirecall::framing
