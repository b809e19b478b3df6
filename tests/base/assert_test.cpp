#include "base/assert.hpp"

#include <gtest/gtest.h>

namespace wirecall {
namespace {

TEST(Assert, AConditionThatHoldsDoesNothing) {
  WIRECALL_ASSERT(1 + 1 == 2);
  WIRECALL_DEBUG_ASSERT(1 + 1 == 2);
}

TEST(AssertDeathTest, AConditionThatDoesNotHoldAbortsAndSaysWhere) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const int slots = 0;
  EXPECT_DEATH(WIRECALL_ASSERT(slots != 0), "assert_test.cpp:[0-9]+: assertion failed: slots != 0");
}

TEST(AssertDeathTest, ADebugAssertionIsOnWhereSanitizersAre) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
#ifdef WIRECALL_DEBUG_ASSERTIONS
  EXPECT_DEATH(WIRECALL_DEBUG_ASSERT(false), "assertion failed: false");
#else
  bool evaluated = false;
  WIRECALL_DEBUG_ASSERT((evaluated = true));
  EXPECT_FALSE(evaluated);
#endif
}

}  // namespace
}  // namespace wirecall
