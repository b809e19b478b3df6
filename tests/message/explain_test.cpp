#include "message/explain.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "tests/message/read.hpp"

namespace wirecall::message {
namespace {

std::string why(std::string_view text) {
  const test::Message message{text};
  EXPECT_EQ(message.kind, MessageKind::invalid) << text;
  return why_invalid(message, false);
}

TEST(WhyInvalid, names_the_member_and_what_it_is) {
  constexpr std::string_view kVersion = R"("jsonrpc" must be "2.0")";
  EXPECT_EQ(why(R"({"method":"a"})"), kVersion);
  EXPECT_EQ(why(R"({"jsonrpc":"1.0","method":"a"})"), kVersion);
  EXPECT_EQ(why(R"({"jsonrpc":2.0,"method":"a"})"), kVersion);
  EXPECT_EQ(why("{}"), kVersion);
  EXPECT_EQ(why(R"({"jsonrpc":"2.0","id":1})"), "method is missing");
  EXPECT_EQ(why(R"({"jsonrpc":"2.0","method":5})"), "method is a number");
  EXPECT_EQ(why(R"({"jsonrpc":"2.0","method":null})"), "method is null");
  EXPECT_EQ(why(R"({"jsonrpc":"2.0","method":"a","params":5,"id":1})"), "params is a number");
  EXPECT_EQ(why(R"({"jsonrpc":"2.0","method":"a","params":"x"})"), "params is a string");
  EXPECT_EQ(why(R"({"jsonrpc":"2.0","method":"a","params":false})"), "params is a boolean");
  EXPECT_EQ(why(R"({"jsonrpc":"2.0","method":"a","id":{}})"), "id is an object");
  EXPECT_EQ(why(R"({"jsonrpc":"2.0","method":"a","id":[1]})"), "id is an array");
  EXPECT_EQ(why(R"({"jsonrpc":"2.0","method":"a","id":true})"), "id is a boolean");
  EXPECT_EQ(why(R"({"jsonrpc":"2.0","method":"a","timeout_ms":-1})"), "timeout_ms must be a number from 0");
  EXPECT_EQ(why(R"({"jsonrpc":"2.0","method":"a","result":1})"), "a request with a result");
  EXPECT_EQ(why(R"({"jsonrpc":"2.0","method":"a","error":1,"id":1})"), "a request with an error");
}

TEST(WhyInvalid, names_what_is_there_twice_escaped_or_not) {
  EXPECT_EQ(why(R"({"jsonrpc":"2.0","method":"a","id":1,"id":1})"), "id is there twice");
  EXPECT_EQ(why(R"({"jsonrpc":"2.0","method":"a","m\u0065thod":"a"})"), "method is there twice");
  EXPECT_EQ(why(R"({"jsonrpc":"2.0","method":"a","tracestate":1,"tracestate":1})"), "tracestate is there twice");
}

TEST(WhyInvalid, names_what_is_no_object) {
  EXPECT_EQ(why("1"), "a number is no request");
  EXPECT_EQ(why("\"a\""), "a string is no request");
  EXPECT_EQ(why("null"), "null is no request");
  EXPECT_EQ(why(" [ ] "), "the batch is empty");
  const test::Message nested{"[]"};
  EXPECT_EQ(why_invalid(nested, true), "an array within a batch is no request");
  EXPECT_EQ(why(R"({"jsonrpc":"2.0","method":"a","id":")" + std::string(70'000, 'i') + "\"}"),
            "the id has more than 65536 bytes");
}

TEST(WhyUnreadable, names_the_byte_and_what_is_there) {
  EXPECT_EQ(why_unreadable(ScanStatus::malformed, unreadable_at("[1,]", 3)), "byte 3 is ']'");
  EXPECT_EQ(why_unreadable(ScanStatus::malformed, unreadable_at("x", 0, 100)), "byte 100 is 'x'");
  EXPECT_EQ(why_unreadable(ScanStatus::malformed, unreadable_at("\"\xFF\"", 1)), "byte 1 is 0xFF");
  EXPECT_EQ(why_unreadable(ScanStatus::malformed, unreadable_at("\n", 0)), "byte 0 is 0x0A");
  EXPECT_EQ(why_unreadable(ScanStatus::malformed, unreadable_at("[1", 2)), "the text ends at byte 2");
  EXPECT_EQ(why_unreadable(ScanStatus::too_deep, unreadable_at("[[", 1)), "byte 1 nests deeper than allowed");
  EXPECT_EQ(why_unreadable(ScanStatus::malformed, {.cause = "a cause"}), "a cause");
}

TEST(RefusalData, has_what_there_is) {
  EXPECT_EQ(refusal_data("", ""), "");
  EXPECT_EQ(refusal_data("", "id"), R"({"limit":"id"})");
  EXPECT_EQ(refusal_data(R"("jsonrpc" must be "2.0")", ""), R"({"reason":"\"jsonrpc\" must be \"2.0\""})");
  EXPECT_EQ(refusal_data("a", "depth"), R"({"reason":"a","limit":"depth"})");
}

}  // namespace
}  // namespace wirecall::message
