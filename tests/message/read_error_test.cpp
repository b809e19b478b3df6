// Error objects as peers send them, and what is made of those that are none.
#include "message/read_error.hpp"

#include <gtest/gtest.h>
#include <string>

#include "wirecall/bytes.hpp"

namespace wirecall::message {
namespace {

Error read(std::string_view text) {
  Buffer padded{text};
  return read_error(*json_codec().reader(), padded.padded());
}

TEST(ReadError, code_message_and_data_are_taken_in_any_order) {
  const Error error = read(R"({"data":{"a":[1, 2]},"other":null,"message":"n\u006f","code":-7})");
  EXPECT_EQ(error.code(), -7);
  EXPECT_EQ(error.message(), "no");
  EXPECT_EQ(error.data(), R"({"a":[1, 2]})");
}

TEST(ReadError, what_is_not_there_is_empty) {
  const Error error = read(R"({"code":3})");
  EXPECT_EQ(error.code(), 3);
  EXPECT_EQ(error.message(), "");
  EXPECT_EQ(error.data(), "");
}

TEST(ReadError, what_has_not_the_shape_of_one_is_a_malformed_response) {
  for (const std::string_view text :
       {"1", "null", "[]", "{}", R"({"message":"no"})", R"({"code":"3"})", R"({"code":1.5})", R"({"code":2147483648})",
        R"({"code":3,"message":7})", R"({"message":{},"code":3})"}) {
    const Error error = read(text);
    EXPECT_EQ(error.code(), -32600) << text;
    EXPECT_EQ(error.data(), R"({"reason":"the response is malformed","origin":"local","delivered":"maybe"})") << text;
  }
}

}  // namespace
}  // namespace wirecall::message
