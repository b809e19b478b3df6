// What the log is told of what happens again and again.
#include "base/log_pause.hpp"

#include <gtest/gtest.h>

namespace wirecall {
namespace {

using namespace std::chrono_literals;

TEST(LogPause, admits_one_a_minute_and_counts_the_others) {
  LogPause pause;
  EXPECT_TRUE(pause.admits(0s)) << "the first at once";
  EXPECT_EQ(pause.take_count(), 1);
  EXPECT_FALSE(pause.admits(0s));
  EXPECT_FALSE(pause.admits(60s - 1ns));
  EXPECT_TRUE(pause.admits(60s));
  EXPECT_EQ(pause.take_count(), 3);
  EXPECT_EQ(pause.take_count(), 0);
  EXPECT_FALSE(pause.admits(119s)) << "from the last that was told";
  EXPECT_TRUE(pause.admits(500s));
  EXPECT_EQ(pause.take_count(), 2);
}

}  // namespace
}  // namespace wirecall
