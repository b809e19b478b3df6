// Whether calls wait for others where that is to be found out: a function and its callers, on a clock that the test
// moves.
#include "batching/adaptive_wait.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <queue>
#include <random>
#include <utility>
#include <vector>

namespace wirecall::batching {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// A function that runs once at a time, and its callers.
class Load {
 public:
  struct Function {
    nanoseconds fixed;
    nanoseconds each;
    int idle_each = 0;  // of so many runs one has nothing to do
  };
  struct Callers {
    int count = 0;  // each calls, waits for its answer, thinks for such a time, and calls again
    nanoseconds think_min{0};
    nanoseconds think_max{0};
    nanoseconds gap{0};  // or on average a call comes in such a time, whoever waits
  };
  struct Seen {
    double rate;  // calls a second
    nanoseconds latency;
    double size;  // of a batch
  };

  Load(Function function, Callers callers, bool is_adaptive = true)
      : function_(function), callers_(callers), is_adaptive_(is_adaptive) {
    begin();
  }

  /// What is seen in so much time from now on.
  Seen run(nanoseconds time) {
    calls_ = runs_ = 0;
    latencies_ = 0ns;
    const nanoseconds until = now_ + time;
    while (true) {
      const nanoseconds next = std::min({calls_due_.empty() ? until : calls_due_.top(), run_ends_, timer_, until});
      now_ = next;
      if (next == until) break;
      if (next == run_ends_) {
        end_run();
      } else if (next == timer_) {
        timer_ = kNever;
        start();
      } else {
        calls_due_.pop();
        come();
      }
    }
    return {.rate = static_cast<double>(calls_) / std::chrono::duration<double>(time).count(),
            .latency = calls_ != 0 ? latencies_ / calls_ : 0ns,
            .size = runs_ != 0 ? static_cast<double>(calls_) / static_cast<double>(runs_) : 0};
  }
  /// From now on there are these instead, once the others have been answered.
  void change(Function function, Callers callers) {
    callers_ = {};
    calls_due_ = {};
    while (run_ends_ != kNever || timer_ != kNever) static_cast<void>(run(1ms));
    function_ = function;
    callers_ = callers;
    begin();
  }
  [[nodiscard]] bool waits() const noexcept { return wait_.pays(); }

 private:
  static constexpr nanoseconds kNever = nanoseconds::max();

  void begin() {
    for (int i = 0; i != callers_.count; ++i) calls_due_.push(now_ + think());
    if (callers_.gap != 0ns) calls_due_.push(now_);
  }
  double random() { return static_cast<double>(numbers_() >> 11) / 9007199254740992.0; }
  nanoseconds think() {
    const nanoseconds span = callers_.think_max - callers_.think_min;
    return callers_.think_min + nanoseconds{static_cast<std::int64_t>(static_cast<double>(span.count()) * random())};
  }
  void come() {
    wait_.came(now_);
    waiting_.push_back(now_);
    if (callers_.gap != 0ns) {
      const double gap = static_cast<double>(callers_.gap.count()) * -std::log(1 - random());
      calls_due_.push(now_ + nanoseconds{static_cast<std::int64_t>(gap) + 1});
    }
    start();
  }
  void start() {
    if (run_ends_ != kNever || waiting_.empty()) return;
    timer_ = kNever;
    if (wait_.gathers()) {
      const nanoseconds wait = wait_.wait(waiting_.size(), now_);
      if (wait > 0ns) timer_ = now_ + wait;
    }
    if (timer_ != kNever) return;
    running_ = std::exchange(waiting_, {});
    const bool does_nothing = function_.idle_each != 0 && ++begun_ % function_.idle_each == 0;
    // No run takes as long as another.
    const double exact = static_cast<double>(time_of(running_.size()).count()) * (0.97 + 0.06 * random());
    run_time_ = does_nothing ? 20us : nanoseconds{static_cast<std::int64_t>(exact)};
    run_ends_ = now_ + run_time_;
  }
  [[nodiscard]] nanoseconds time_of(std::size_t calls) const {
    return function_.fixed + function_.each * static_cast<std::int64_t>(calls);
  }
  void end_run() {
    run_ends_ = kNever;
    ++runs_;
    calls_ += static_cast<std::int64_t>(running_.size());
    for (const nanoseconds came : running_) {
      latencies_ += now_ - came;
      if (callers_.count != 0) calls_due_.push(now_ + think());
    }
    if (is_adaptive_) wait_.ran(running_.size(), waiting_.size(), run_time_, now_);
    start();
  }

  Function function_;
  Callers callers_;
  bool is_adaptive_;
  AdaptiveWait wait_{1024};
  std::mt19937_64 numbers_{1};
  nanoseconds now_{0};
  std::priority_queue<nanoseconds, std::vector<nanoseconds>, std::greater<>> calls_due_;
  std::vector<nanoseconds> waiting_;
  std::vector<nanoseconds> running_;
  nanoseconds run_time_{0};
  nanoseconds run_ends_ = kNever;
  nanoseconds timer_ = kNever;
  std::int64_t calls_ = 0;
  std::int64_t runs_ = 0;
  int begun_ = 0;
  nanoseconds latencies_{0};
};

class Adaptive : public testing::Test {
 protected:
  using Callers = Load::Callers;
  static constexpr Load::Function kModel{.fixed = 2ms, .each = 10us};
  static constexpr Callers kThinking{.count = 64, .think_min = 100us, .think_max = 500us};

  struct Both {
    Load::Seen without;
    Load::Seen with;
    bool waits;
  };
  // Once it knows them.
  static Both see(Load::Function function, Callers callers) {
    Load without{function, callers, false};
    Load with{function, callers};
    static_cast<void>(without.run(6s));
    static_cast<void>(with.run(6s));
    const Load::Seen seen = with.run(3s);
    return {.without = without.run(3s), .with = seen, .waits = with.waits()};
  }
  static double ratio(nanoseconds a, nanoseconds b) {
    return static_cast<double>(a.count()) / static_cast<double>(b.count());
  }
};

TEST_F(Adaptive, callers_that_call_again_once_they_are_answered_leave_together) {
  const Both seen = see(kModel, kThinking);
  EXPECT_GT(seen.with.rate, 1.4 * seen.without.rate);
  EXPECT_LT(seen.with.latency, seen.without.latency);
  EXPECT_GT(seen.with.size, 60) << "of 64";
  EXPECT_NEAR(seen.without.size, 32, 1) << "a half comes while the other one is answered";
}

TEST_F(Adaptive, so_do_two) {
  const Both seen = see({.fixed = 2ms, .each = 0ns}, {.count = 2, .think_min = 300us, .think_max = 500us});
  EXPECT_GT(seen.with.rate, 1.3 * seen.without.rate);
}

TEST_F(Adaptive, more_than_a_batch_holds_do_not_wait_for_each_other) {
  const Both seen = see({.fixed = 2ms, .each = 1us}, {.count = 4096, .think_min = 100us, .think_max = 500us});
  EXPECT_GT(seen.with.rate, 0.99 * seen.without.rate);
}

TEST_F(Adaptive, nobody_waits_for_callers_that_think_for_longer_than_a_run_takes) {
  for (const nanoseconds most : {3ms, 20ms, 500ms}) {
    const Both seen = see(kModel, {.count = 64, .think_min = most / 2, .think_max = most});
    EXPECT_FALSE(seen.waits) << most.count();
    EXPECT_GT(seen.with.rate, 0.98 * seen.without.rate) << most.count();
    EXPECT_LT(ratio(seen.with.latency, seen.without.latency), 1.08) << most.count();
  }
}

TEST_F(Adaptive, nobody_waits_where_a_call_costs_as_much_alone) {
  const Both seen = see({.fixed = 0ns, .each = 100us}, kThinking);
  EXPECT_FALSE(seen.waits);
  EXPECT_GT(seen.with.rate, 0.99 * seen.without.rate);
}

TEST_F(Adaptive, nobody_waits_where_calls_come_at_a_rate) {
  for (const nanoseconds gap : {nanoseconds{50ms}, nanoseconds{10ms}, nanoseconds{1ms}, nanoseconds{200us},
                                nanoseconds{50us}, nanoseconds{25us}}) {
    const Both seen = see(kModel, {.gap = gap});
    EXPECT_FALSE(seen.waits) << gap.count();
    EXPECT_LT(ratio(seen.with.latency, seen.without.latency), 1.2) << gap.count();
  }
}

TEST_F(Adaptive, it_follows_callers_and_functions_that_change) {
  Load load{kModel, {.gap = 200us}};
  static_cast<void>(load.run(20s));
  EXPECT_FALSE(load.waits());
  load.change(kModel, kThinking);
  static_cast<void>(load.run(20s));
  EXPECT_TRUE(load.waits());
  load.change({.fixed = 0ns, .each = 50us}, kThinking);
  static_cast<void>(load.run(20s));
  EXPECT_FALSE(load.waits());
  load.change({.fixed = 20ms, .each = 10us}, kThinking);
  static_cast<void>(load.run(300s));
  EXPECT_TRUE(load.waits());
  load.change({.fixed = 20ms, .each = 10us}, {.gap = 1ms});
  static_cast<void>(load.run(300s));
  EXPECT_FALSE(load.waits());
}

TEST_F(Adaptive, pauses_say_nothing) {
  Load load{kModel, kThinking};
  static_cast<void>(load.run(2s));
  ASSERT_TRUE(load.waits());
  // Bursts of callers with pauses between them, until whatever is tried out has been tried out.
  for (int i = 0; i != 30; ++i) {
    load.change(kModel, {});
    static_cast<void>(load.run(1s));
    load.change(kModel, kThinking);
    static_cast<void>(load.run(200ms));
    EXPECT_TRUE(load.waits()) << i;
  }
}

TEST_F(Adaptive, pauses_that_let_nothing_be_tried_out_leave_nobody_waiting) {
  for (const Callers& callers : {Callers{.gap = 250us}, Callers{.count = 16, .think_min = 1ms, .think_max = 3ms}}) {
    Load load{kModel, callers};
    Load without{kModel, callers, false};
    for (const nanoseconds burst : {180ms, 30ms}) {
      for (Load* const each : {&load, &without}) {
        each->change(kModel, {});
        static_cast<void>(each->run(30ms));
        each->change(kModel, callers);
        static_cast<void>(each->run(burst));
      }
    }
    std::int64_t latency = 0;
    std::int64_t latency_without = 0;
    for (int i = 0; i != 1000; ++i) {
      for (auto [each, sum] : {std::pair{&load, &latency}, std::pair{&without, &latency_without}}) {
        each->change(kModel, {});
        static_cast<void>(each->run(30ms));
        each->change(kModel, callers);
        const nanoseconds seen = each->run(30ms).latency;
        if (i >= 100) *sum += seen.count();
      }
    }
    EXPECT_LT(static_cast<double>(latency), 1.05 * static_cast<double>(latency_without)) << callers.count;
  }
}

TEST_F(Adaptive, runs_that_have_nothing_to_do_say_nothing) {
  for (const int idle_each : {100, 500, 2000}) {
    const Both seen = see({.fixed = 2ms, .each = 10us, .idle_each = idle_each}, kThinking);
    EXPECT_GT(seen.with.rate, 1.35 * seen.without.rate) << idle_each;
  }
}

// ---- one run after another ----

class Waiting : public testing::Test {
 protected:
  // One for which nobody waits any more.
  void run(std::size_t calls, std::size_t waiting, nanoseconds time) {
    wait_.leave();
    wait_.ran(calls, waiting, time, now_ += time);
  }
  // Runs of that many calls, all of which come again at once.
  void run_many(std::size_t calls) {
    for (int i = 0; i != 5000 && !(wait_.pays() && wait_.gathers()); ++i) {
      // With the wait all leave together, without one they leave in halves.
      const std::size_t leaving = wait_.gathers() ? calls : calls / 2;
      run(leaving, calls - leaving, 2ms);
    }
    ASSERT_TRUE(wait_.pays());
  }

  AdaptiveWait wait_{64};
  nanoseconds now_{1s};
};

TEST_F(Waiting, nobody_waits_before_anything_is_known) {
  EXPECT_FALSE(wait_.gathers());
  EXPECT_EQ(wait_.wait(1, now_), 0ns);
}

TEST_F(Waiting, it_is_for_as_many_as_have_been_answered_and_wait_but_no_longer_than_a_run_takes) {
  run_many(10);
  ASSERT_TRUE(wait_.gathers());
  EXPECT_EQ(wait_.wait(1, now_), 2ms);
  EXPECT_EQ(wait_.wait(9, now_ + 200us), 1800us);
  EXPECT_EQ(wait_.wait(9, now_ + 2ms), 0ns);
  EXPECT_FALSE(wait_.gathers()) << "until there is another one";
  now_ += 1ms;
  run(7, 3, 2ms);
  EXPECT_EQ(wait_.wait(9, now_), 2ms);
  EXPECT_EQ(wait_.wait(10, now_), 0ns) << "all are there";
  EXPECT_FALSE(wait_.gathers());
}

TEST_F(Waiting, it_is_for_no_more_than_a_batch_holds) {
  run_many(40);
  run(40, 30, 2ms);
  EXPECT_GT(wait_.wait(63, now_), 0ns);
  EXPECT_EQ(wait_.wait(64, now_), 0ns);
}

TEST_F(Waiting, a_call_that_is_alone_never_waits) {
  run_many(10);
  run(1, 0, 2ms);
  EXPECT_FALSE(wait_.gathers());
}

TEST_F(Waiting, a_run_that_took_very_long_by_accident_makes_nobody_wait_for_long) {
  run_many(10);
  run(10, 0, 10s);
  EXPECT_LE(wait_.wait(1, now_), 2250us);
}

TEST_F(Waiting, a_run_that_had_nothing_to_do_is_soon_forgotten) {
  run_many(10);
  run(10, 0, 20us);
  EXPECT_GE(wait_.wait(1, now_), 1700us);
  for (int i = 0; i != 2; ++i) run(10, 0, 2ms);
  EXPECT_GE(wait_.wait(1, now_), 1800us);
}

TEST_F(Waiting, runs_beside_them_let_nobody_wait_for_longer) {
  run_many(10);
  const nanoseconds until = now_ + wait_.wait(1, now_);
  for (int i = 0; i != 5; ++i) {
    now_ += 300us;
    wait_.ran(10, 1, 2ms, now_);
    EXPECT_EQ(now_ + wait_.wait(1, now_), until);
  }
  wait_.ran(10, 1, 2ms, now_ += 500us);
  EXPECT_EQ(wait_.wait(1, now_), 0ns);
}

TEST_F(Waiting, the_first_run_in_which_a_model_is_loaded_does_not_count) {
  run(10, 10, 10s);
  EXPECT_FALSE(wait_.gathers());
  run_many(10);
  EXPECT_EQ(wait_.wait(1, now_), 2ms);
}

TEST_F(Waiting, who_comes_later_does_not_wait) {
  run_many(10);
  wait_.came(now_ + 1999us);
  EXPECT_TRUE(wait_.gathers());
  wait_.came(now_ + 2ms);
  EXPECT_FALSE(wait_.gathers());
}

TEST_F(Waiting, nobody_waits_once_it_is_told_to_leave) {
  run_many(10);
  wait_.leave();
  EXPECT_FALSE(wait_.gathers());
}

}  // namespace
}  // namespace wirecall::batching
