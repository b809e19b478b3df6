// For how long the first call of a batch waits where that is to be found out.
#include "batching/adaptive_wait.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>

namespace wirecall::batching {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

class Adaptive : public testing::Test {
 protected:
  // Runs of all sizes from 1 to `largest`.
  void run_all(std::size_t largest, nanoseconds fixed, nanoseconds each) {
    for (int round = 0; round != 10; ++round) {
      for (std::size_t calls = 1; calls <= largest; ++calls)
        wait_.ran(calls, fixed + each * static_cast<std::int64_t>(calls));
    }
  }
  void come_each(nanoseconds gap, int count = 200) {
    for (int i = 0; i != count; ++i) wait_.came(now_ += gap);
  }

  AdaptiveWait wait_{64};
  nanoseconds now_{0};
};

TEST_F(Adaptive, nobody_waits_before_anything_is_known) {
  EXPECT_EQ(wait_.wait(), 0ns);
  wait_.came(1s);
  EXPECT_EQ(wait_.wait(), 0ns);
  come_each(10us);
  EXPECT_EQ(wait_.wait(), 0ns) << "no run has ended";
}

TEST_F(Adaptive, the_parts_of_a_run_are_told_apart) {
  run_all(32, 1ms, 10us);
  EXPECT_NEAR(static_cast<double>(wait_.fixed_time().count()), 1e6, 1e3);
  EXPECT_NEAR(static_cast<double>(wait_.time_of_each().count()), 1e4, 10);
}

TEST_F(Adaptive, nobody_waits_where_no_other_is_expected) {
  run_all(8, 1ms, 10us);
  come_each(2ms);
  EXPECT_EQ(wait_.wait(), 0ns);
}

TEST_F(Adaptive, nobody_waits_for_what_costs_as_much_alone) {
  run_all(8, 0ns, 1ms);
  come_each(10us);
  EXPECT_LT(wait_.wait(), 10us);
}

TEST_F(Adaptive, one_waits_until_a_batch_is_large_enough) {
  run_all(32, 1ms, 1ms);
  come_each(10us);
  EXPECT_NEAR(static_cast<double>(wait_.wait().count()), 90e3, 5e3) << "nine calls reach nine tenths of the rate";
}

TEST_F(Adaptive, and_never_longer_than_can_be_won) {
  run_all(32, 1ms, 1us);
  come_each(100us);
  EXPECT_NEAR(static_cast<double>(wait_.wait().count()), 1e6, 1e3);
}

TEST_F(Adaptive, runs_of_one_size_are_taken_as_fixed) {
  for (int i = 0; i != 10; ++i) wait_.ran(1, 500us);
  come_each(50us);
  EXPECT_EQ(wait_.wait(), 500us);
}

TEST_F(Adaptive, the_first_run_in_which_a_model_is_loaded_is_not_learnt_from) {
  wait_.ran(1, 10s);
  come_each(20ms);
  EXPECT_EQ(wait_.wait(), 0ns);
  run_all(8, 5ms, 10us);
  EXPECT_EQ(wait_.wait(), 0ns);
}

TEST_F(Adaptive, an_accident_is_soon_forgotten) {
  run_all(8, 5ms, 10us);
  come_each(1ms);
  const nanoseconds usual = wait_.wait();
  wait_.ran(4, 10s);
  EXPECT_LT(wait_.wait(), 10 * usual);
  run_all(8, 5ms, 10us);
  EXPECT_LT(wait_.wait(), 2 * usual);
}

TEST_F(Adaptive, a_function_that_has_become_quick_is_believed_at_once) {
  wait_.ran(1, 1s);
  wait_.ran(1, 1s);
  come_each(20ms);
  EXPECT_GT(wait_.wait(), 500ms);
  wait_.ran(1, 5ms);
  EXPECT_EQ(wait_.wait(), 0ns);
}

TEST_F(Adaptive, it_follows_what_changes) {
  run_all(32, 10ms, 1us);
  run_all(32, 100us, 1us);
  EXPECT_NEAR(static_cast<double>(wait_.fixed_time().count()), 1e5, 5e3);
  come_each(10us);
  EXPECT_GT(wait_.wait(), 50us);
  come_each(1s, 1);
  EXPECT_EQ(wait_.wait(), 0ns) << "after a pause";
}

}  // namespace
}  // namespace wirecall::batching
