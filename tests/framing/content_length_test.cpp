// The base protocol of LSP: headers in any order and case, malformed ones, limits, and what is sent.
#include "framing/content_length.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "tests/framing/read_frames.hpp"

namespace wirecall::framing {
namespace {

using namespace std::string_literals;

constexpr std::string_view kEnd = "\r\n\r\n";

void expect_read(std::string_view input, const Log& expected, const Limits& limits = {}) {
  expect_frames<ContentLength>(input, expected, limits);
}
std::string framed(std::string_view message) {
  return "Content-Length: " + std::to_string(message.size()) + std::string{kEnd} + std::string{message};
}

TEST(ContentLength, messages_follow_each_other) {
  expect_read(framed("{\"a\":1}") + framed("[2]") + framed("not even JSON"), {"{\"a\":1}", "[2]", "not even JSON"});
}

TEST(ContentLength, a_length_of_zero_is_an_empty_message) { expect_read(framed("") + framed("[]"), {"", "[]"}); }

TEST(ContentLength, fields_come_in_any_order_and_case) {
  const std::string type = "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n";
  expect_read(type + framed("[1]"), {"[1]"});
  expect_read("content-length: 3\r\n" + type + "\r\n[1]", {"[1]"});
  expect_read("CONTENT-TYPE:x; charset=utf8\r\ncOnTeNt-LeNgTh:3\r\n\r\n[1]", {"[1]"});
  expect_read("Content-: x\r\nContent-Length-: 9\r\nX:\r\nContent-Length: 3\r\n\r\n[1]", {"[1]"});
}

TEST(ContentLength, white_space_around_the_length_is_nothing) {
  expect_read("Content-Length:3\r\n\r\n[1]", {"[1]"});
  expect_read("Content-Length: \t 3 \t\r\n\r\n[1]", {"[1]"});
}

TEST(ContentLength, a_length_given_twice_has_to_be_the_same) {
  expect_read("Content-Length: 3\r\ncontent-length: 03\r\n\r\n[1]", {"[1]"});
  expect_read("Content-Length: 3\r\nContent-Length: 4\r\n\r\n[1] ", {"!", "closed"});
}

TEST(ContentLength, a_header_without_a_length_closes) {
  expect_read("Content-Type: x\r\n\r\n[1]", {"!", "closed"});
  expect_read(framed("[1]") + "\r\n[1]", {"[1]", "!", "closed"});
}

TEST(ContentLength, a_length_that_is_no_number_closes) {
  for (const std::string_view value : {"", " ", "-1", "+5", "0x10", "1 2", "1,1", "1.5", "\"3\"", "3;", "three"}) {
    expect_read("Content-Length: " + std::string{value} + "\r\n\r\n[1]", {"!", "closed"});
  }
}

TEST(ContentLength, a_malformed_header_closes) {
  for (const std::string_view header :
       {"Content-Length: 3\n\n", "Content-Length: 3\r\n\n", "Content-Length: 3\r\r\n", "Content-Length: 3\rX\n\r\n",
        "Content-Length : 3\r\n\r\n", " Content-Length: 3\r\n\r\n", "Content-Length: 3\r\n X: y\r\n\r\n",
        "Content-Length 3\r\n\r\n", ": 3\r\nContent-Length: 3\r\n\r\n", "X\r\nContent-Length: 3\r\n\r\n"}) {
    expect_read(std::string{header} + "[1]", {"!", "closed"});
  }
  expect_read("X: a\0b\r\nContent-Length: 3\r\n\r\n[1]"s, {"!", "closed"});
}

TEST(ContentLength, a_message_over_the_limit_is_refused_by_its_length_alone) {
  Limits limits;
  limits.max_message_size = 3;
  expect_read("Content-Length: 3\r\n\r\n[1]Content-Length: 4\r\n\r\n", {"[1]", "too large"}, limits);
  expect_read("Content-Length: 99999999999999999999999999999999\r\n\r\n", {"too large"});
}

TEST(ContentLength, a_header_over_the_limit_closes) {
  Limits limits;
  limits.header_bytes = 300;
  const std::string header = "\r\nContent-Length: 3\r\n\r\n";
  expect_read("X: " + std::string(300 - 3 - header.size(), 'x') + header + "[1]", {"[1]"}, limits);
  expect_read("X: " + std::string(301 - 3 - header.size(), 'x') + header + "[1]", {"!", "closed"}, limits);
}

TEST(ContentLength, what_is_unfinished_at_the_end_is_an_error) {
  expect_read("Content-Length: 3\r\n\r\n[1", {"!"});
  expect_read("Content-Length: 3\r\n\r\n", {"!"});
  expect_read("Content-Len", {"!"});
  expect_read("", {});
}

TEST(ContentLength, what_is_sent_has_its_length_without_padding) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{7}, std::size_t{12'345}}) {
    const Limits limits;
    ContentLength framing{limits};
    const std::string message(bytes, 'x');
    Buffer out{"before"};
    static_cast<void>(out.reserve(framing.head_bytes()));
    out.grow(framing.head_bytes());
    out.append(message);
    framing.seal(out, 6, true);
    EXPECT_EQ(out.view(), "before" + framed(message));
  }
}

}  // namespace
}  // namespace wirecall::framing
