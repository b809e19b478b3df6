#include "batching/quick_runs.hpp"

#include <gtest/gtest.h>

namespace wirecall::batching {
namespace {

using namespace std::chrono_literals;

class Quick : public testing::Test {
 protected:
  /// After how many such runs the function counts as quick.
  int runs_until_quick(std::size_t calls, std::chrono::nanoseconds time) {
    for (int count = 1; count <= 100'000; ++count) {
      runs.ran(calls, time);
      if (runs.are_quick()) return count;
    }
    return -1;
  }
  QuickRuns runs;
};

TEST_F(Quick, nothing_is_quick_before_it_has_been_for_a_while) {
  EXPECT_FALSE(runs.are_quick());
  EXPECT_EQ(runs_until_quick(1, 51us), 16);
  runs.ran(1, 1us);
  EXPECT_TRUE(runs.are_quick());
}

TEST_F(Quick, a_run_of_many_calls_may_take_longer) {
  EXPECT_EQ(runs_until_quick(100, 150us), 16);
  runs.ran(99, 150us);
  EXPECT_FALSE(runs.are_quick());
}

TEST_F(Quick, each_50_us_too_many_are_made_up_for_by_a_quick_run) {
  EXPECT_EQ(runs_until_quick(1, 1us), 16);
  runs.ran(1, 52us);
  EXPECT_EQ(runs_until_quick(1, 1us), 1);
  runs.ran(1, 4051us);
  EXPECT_EQ(runs_until_quick(1, 1us), 81);
  runs.ran(1, 551us);
  runs.ran(1, 551us);
  EXPECT_EQ(runs_until_quick(1, 1us), 22);
}

TEST_F(Quick, one_that_takes_hours_is_not_held_against_it_for_ever) {
  runs.ran(1, 100h);
  EXPECT_EQ(runs_until_quick(1, 1us), 1 << 16);
}

}  // namespace
}  // namespace wirecall::batching
