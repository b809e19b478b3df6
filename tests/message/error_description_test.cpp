#include "message/error_description.hpp"

#include <gtest/gtest.h>

namespace wirecall::message {
namespace {

TEST(ErrorWords, wrong_params_are_told_as_place_expectation_and_value) {
  EXPECT_EQ(error_description("Invalid params", R"({"loc":["b"],"expected":"integer","got":"\"three\""})"),
            R"(at b, expected integer, got "three")");
  EXPECT_EQ(error_description("Invalid params", R"({"loc":["a",0,"b"],"expected":"string","got":"1"})"),
            "at a.0.b, expected string, got 1");
}

TEST(ErrorWords, further_wrong_params_stand_behind_semicolons) {
  EXPECT_EQ(error_description("Invalid params", R"({"loc":["subtrahnd"],"expected":"nothing","got":"3",)"
                                                R"("did_you_mean":"subtrahend","also":[{"loc":["subtrahend"],)"
                                                R"("expected":"integer","got":"nothing"}]})"),
            "at subtrahnd, expected nothing, got 3, did you mean 'subtrahend'?; "
            "at subtrahend, expected integer, got nothing");
}

TEST(ErrorWords, a_reason_that_the_message_has_is_not_told_twice) {
  EXPECT_EQ(error_description("the place is taken", R"({"reason":"taken","origin":"local","delivered":"no"})"), "");
  EXPECT_EQ(error_description("Limit exceeded", R"({"reason":"too many messages","origin":"local","delivered":"no",)"
                                                R"("limit":"rate","retry_after_ms":20})"),
            "too many messages, limit rate, try again after 20 ms");
}

TEST(ErrorWords, data_of_others_is_told_as_it_is) {
  EXPECT_EQ(error_description("no", R"({"account":7})"), R"({"account":7})");
  EXPECT_EQ(error_description("no", R"("why")"), R"("why")");
  EXPECT_EQ(error_description("no", "null"), "");
  EXPECT_EQ(error_description("no", ""), "");
}

TEST(ErrorWords, a_suggestion_alone_is_enough) {
  EXPECT_EQ(error_description("Method not found", R"({"did_you_mean":"greet"})"), "did you mean 'greet'?");
}

}  // namespace
}  // namespace wirecall::message
