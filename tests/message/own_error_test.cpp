// Errors of wirecall's own codes: what their data says.
#include "message/own_error.hpp"

#include <gtest/gtest.h>

namespace wirecall::message {
namespace {

TEST(OwnError, SaysWhyWhereAndWhetherItWasDelivered) {
  const Error error = make({.code = ErrorCode::draining, .reason = "the server is shutting down", .delivered = "no"});
  EXPECT_EQ(error.code(), -32009);
  EXPECT_EQ(error.message(), "Draining");
  EXPECT_EQ(error.data(), R"({"reason":"the server is shutting down","origin":"local","delivered":"no"})");
}

TEST(OwnError, NamesTheLimit) {
  const Error error =
      make({.code = ErrorCode::too_large, .reason = "too large", .delivered = "maybe", .limit = "max_message_size"});
  EXPECT_EQ(error.code(), -32006);
  EXPECT_EQ(error.data(), R"({"reason":"too large","origin":"local","delivered":"maybe","limit":"max_message_size"})");
}

}  // namespace
}  // namespace wirecall::message
