// What a load tells of each interval.
#include "cli/load/intervals.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace wirecall::cli {
namespace {

using namespace std::chrono_literals;

class IntervalsTest : public testing::Test {
 protected:
  std::vector<LoadInterval> told;
  Intervals intervals{100ms, 10ms, [this](const LoadInterval& one) { told.push_back(one); }};
};

TEST_F(IntervalsTest, each_is_told_once_it_is_over) {
  ++intervals.at(100ms).answered;
  ++intervals.at(109ms).answered;
  EXPECT_TRUE(told.empty());
  EXPECT_EQ(intervals.next(), 110ms);
  intervals.at(110ms).answered = 7;
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].answered, 2U);
  EXPECT_EQ(told[0].end, 10ms);
  intervals.end(120ms);
  ASSERT_EQ(told.size(), 2U) << "nothing is left";
  EXPECT_EQ(told[1].answered, 7U);
  EXPECT_EQ(told[1].end, 20ms);
}

TEST_F(IntervalsTest, empty_ones_are_told_too) {
  static_cast<void>(intervals.at(135ms));
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[2].end, 30ms);
  EXPECT_EQ(told[2].length, 10ms);
  EXPECT_EQ(told[2].mean_ns(), 0);
}

TEST_F(IntervalsTest, the_last_is_as_long_as_it_was) {
  LoadInterval& first = intervals.at(100ms);
  first.timed = 2;
  first.sum = 3us;
  intervals.end(114ms);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].mean_ns(), 1500);
  EXPECT_EQ(told[1].length, 4ms);
  EXPECT_EQ(told[1].end, 14ms);
}

}  // namespace
}  // namespace wirecall::cli
