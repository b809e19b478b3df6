// The error catalogue: the specification's codes with its own words, and ours.
#include <gtest/gtest.h>
#include <string_view>
#include <utility>

#include "wirecall/error.hpp"

namespace wirecall {
namespace {

TEST(Catalogue, SpecificationsCodesHaveItsMessages) {
  // JSON-RPC 2.0, section 5.1.
  const std::pair<int, std::string_view> codes[] = {{-32700, "Parse error"},
                                                    {-32600, "Invalid Request"},
                                                    {-32601, "Method not found"},
                                                    {-32602, "Invalid params"},
                                                    {-32603, "Internal error"}};
  for (const auto& [code, message] : codes) EXPECT_EQ(message_of(static_cast<ErrorCode>(code)), message);
}

TEST(Catalogue, OwnCodesAreThoseOfTheContractAndHaveMessages) {
  const std::pair<ErrorCode, int> codes[] = {
      {ErrorCode::server_error, -32000}, {ErrorCode::provider_lost, -32001},   {ErrorCode::timeout, -32002},
      {ErrorCode::forbidden, -32003},    {ErrorCode::unauthenticated, -32004}, {ErrorCode::limit_exceeded, -32005},
      {ErrorCode::too_large, -32006},    {ErrorCode::conflict, -32007},        {ErrorCode::no_subscription, -32008},
      {ErrorCode::draining, -32009},     {ErrorCode::cancelled, -32800}};
  for (const auto& [code, number] : codes) {
    EXPECT_EQ(static_cast<int>(code), number);
    EXPECT_FALSE(message_of(code).empty()) << number;
  }
}

TEST(Catalogue, OtherCodesHaveNoMessage) {
  EXPECT_TRUE(message_of(static_cast<ErrorCode>(0)).empty());
  EXPECT_TRUE(message_of(static_cast<ErrorCode>(-32010)).empty());
}

TEST(Catalogue, ErrorWithoutACodeIsServerError) {
  const Error error{"no such file"};
  EXPECT_EQ(error.code(), -32000);
  EXPECT_EQ(error.message(), "no such file");
  EXPECT_STREQ(error.what(), "no such file");
  EXPECT_TRUE(error.data().empty());
}

TEST(Catalogue, ErrorOfACodeHasItsMessage) {
  EXPECT_EQ(Error{ErrorCode::method_not_found}.message(), "Method not found");
  EXPECT_EQ((Error{42, "mine", "[1]"}.code()), 42);
  EXPECT_EQ((Error{42, "mine", "[1]"}.data()), "[1]");
}

}  // namespace
}  // namespace wirecall
