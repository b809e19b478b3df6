// Why messages are refused, as the option explain_errors has it told to their senders, and the log at level debug.
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "tests/codec/msgpack.hpp"
#include "tests/http/served.hpp"

namespace wirecall::net {
namespace {

using namespace std::string_literals;
using packing::framed;
using packing::msgpack_of;

// A connection whose log is kept.
struct Explained : Http {
  explicit Explained(bool to_sender = true, LogLevel level = LogLevel::info) {
    sink = LogSink{[this](const LogRecord& record) {
             std::string line{record.message};
             for (const LogField& field : record.fields) {
               line += " " + std::string{field.name} + "=";
               if (const auto* number = std::get_if<std::int64_t>(&field.value)) line += std::to_string(*number);
               if (const auto* text = std::get_if<std::string_view>(&field.value)) line += *text;
             }
             log.push_back(line);
           }}.at_least(level);
    loop_context.refusals = rpc::Refusals{&sink, &loop};
    loop_context.refusals.explain(to_sender);
  }
  std::vector<std::string> log;
  LogSink sink;
};

std::string explained(std::string_view bytes) { return Explained{}.ask(bytes); }

std::string unreadable(std::string_view data) {
  return R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error","data":)" + std::string{data} +
         R"(},"id":null})";
}
std::string invalid(std::string_view data, std::string_view id = "null") {
  return R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request","data":)" + std::string{data} +
         R"(},"id":)" + std::string{id} + "}";
}

TEST(ExplainErrors, says_where_json_text_ends_to_be_one) {
  EXPECT_EQ(explained("{\"a\":1,}\n"), unreadable(R"({"reason":"byte 7 is '}'"})") + "\n");
  EXPECT_EQ(explained("  [1,,2]\n"), unreadable(R"({"reason":"byte 3 is ','"})") + "\n");
  EXPECT_EQ(explained("x\n"), unreadable(R"({"reason":"the first bytes begin nothing that is spoken here"})") + "\n");
  const std::string deep(300, '[');
  EXPECT_EQ(explained(deep + "\n"),
            unreadable(R"({"reason":"byte 256 nests deeper than allowed","limit":"depth"})") + "\n");
  // Where the message comes in pieces the byte is the same.
  Explained server;
  EXPECT_EQ(server.ask("{\"a\":"), "");
  EXPECT_EQ(server.ask("[1,2"), "");
  EXPECT_EQ(server.ask(",]\n"), unreadable(R"({"reason":"byte 10 is ']'"})") + "\n");
}

TEST(ExplainErrors, says_what_is_wrong_with_a_request) {
  EXPECT_EQ(explained("{\"method\":\"a\",\"id\":1}\n"),
            invalid(R"({"reason":"\"jsonrpc\" must be \"2.0\""})", "1") + "\n");
  EXPECT_EQ(explained("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":5,\"id\":1}\n"),
            invalid(R"({"reason":"params is a number"})", "1") + "\n");
  EXPECT_EQ(explained("[]\n"), invalid(R"({"reason":"the batch is empty"})") + "\n");
  EXPECT_EQ(explained("[[],1]\n"), "[" + invalid(R"({"reason":"an array within a batch is no request"})") + "," +
                                       invalid(R"({"reason":"a number is no request"})") + "]\n");
  EXPECT_EQ(explained("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"stream\":0,\"id\":1}\n"),
            invalid(R"({"reason":"stream must be a whole number from 1"})", "1") + "\n");
  EXPECT_EQ(explained("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"hops\":\"x\",\"id\":1}\n"),
            invalid(R"({"reason":"hops must be a whole number from 0"})", "1") + "\n");
}

TEST(ExplainErrors, says_what_is_wrong_with_a_header) {
  const auto answered = [](std::string_view reason) {
    const std::string body = unreadable(R"({"reason":")" + std::string{reason} + "\"}");
    return "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  };
  EXPECT_EQ(explained("Content-Length: 2\n\n{}"), answered("the header ends in LF without CR"));
  EXPECT_EQ(explained("Content-Length: 2\r\n\n{}"), answered("the header ends in LF without CR"));
  EXPECT_EQ(explained("Content-Length: 2\rX"), answered("the header has a CR without LF"));
  EXPECT_EQ(explained("Content-Type: x\r\n\r\n"), answered("the header has no Content-Length"));
  EXPECT_EQ(explained("Content-Length: 2x\r\n\r\n"), answered("a Content-Length that is not decimal digits"));
  EXPECT_EQ(explained("Content-Length: 2\r\nContent-Length: 3\r\n"), answered("two Content-Lengths that differ"));
  EXPECT_EQ(explained("Content-Length: 2\r\nX\r\n"), answered("a line of the header has no name and colon"));
  EXPECT_EQ(explained("Content-Length: 2\r\n\r\n{]"), answered("byte 1 is ']'"));
}

TEST(ExplainErrors, says_it_by_http_and_in_messagepack) {
  EXPECT_EQ(explained(post("{\"a\"}")), ok(unreadable(R"({"reason":"byte 4 is '}'"})")));
  EXPECT_EQ(explained(post("")), ok(unreadable(R"({"reason":"the text ends at byte 0"})")));
  EXPECT_EQ(explained(post("\xEF\xBB\xBF[1,]")), ok(unreadable(R"({"reason":"byte 3 is ']'"})")));
  EXPECT_EQ(explained(post("7")), ok(invalid(R"({"reason":"a number is no request"})")));
  EXPECT_EQ(explained(framed(msgpack_of(R"({"jsonrpc":"2.0","method":"a","params":5,"id":1})"))),
            framed(msgpack_of(invalid(R"({"reason":"params is neither an array nor a map"})", "1"))));
  EXPECT_EQ(explained(framed(msgpack_of(R"({"jsonrpc":"2.0","method":"a","id":true})"))),
            framed(msgpack_of(invalid(R"({"reason":"id is neither a string nor a number"})"))));
  EXPECT_EQ(explained(framed(msgpack_of(R"([{"jsonrpc":"2.0","id":1}])"))),
            framed(msgpack_of("[" + invalid(R"({"reason":"method is missing"})", "1") + "]")));
  EXPECT_EQ(explained(framed("\x91\xC1"s)),
            framed(msgpack_of(unreadable(R"({"reason":"no MessagePack, or something follows it"})"))));
}

TEST(ExplainErrors, off_leaves_errors_as_they_were_and_the_log_tells_at_debug) {
  Explained server{false, LogLevel::debug};
  EXPECT_EQ(
      server.ask("{\"a\":1,}\n{\"jsonrpc\":\"2.0\",\"id\":3}\n"),
      kParseError + "\n" + R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":3})" + "\n");
  EXPECT_EQ(server.log, (std::vector<std::string>{"a message was refused code=-32700 reason=byte 7 is '}'",
                                                  "a message was refused code=-32600 reason=method is missing"}));
  Explained by_http{false, LogLevel::debug};
  by_http.ask("GET / HTTP/1.1\nHost: a\r\n\r\n");
  EXPECT_EQ(by_http.log,
            (std::vector<std::string>{"a request of HTTP was refused status=400 reason=an LF without CR"}));
  Explained quiet{false, LogLevel::info};
  quiet.ask("{\"a\":1,}\n");
  EXPECT_TRUE(quiet.log.empty());
}

TEST(ExplainErrors, writes_a_few_records_a_second_and_counts_the_rest) {
  Explained server{true, LogLevel::debug};
  for (int i = 0; i < 15; ++i) {
    EXPECT_EQ(server.ask("{}\n"), invalid(R"({"reason":"\"jsonrpc\" must be \"2.0\""})") + "\n");
  }
  EXPECT_EQ(server.log.size(), 10U);
  server.pass(std::chrono::milliseconds{1000});
  server.ask("{}\n");
  ASSERT_EQ(server.log.size(), 12U);
  EXPECT_EQ(server.log[10], "refused messages are left out records=5");
}

}  // namespace
}  // namespace wirecall::net
