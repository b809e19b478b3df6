// Which thread drives: a Driver over work that only notes who does it.
#include "client/driver.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>

#include "runtime/backend.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// Each step is one turn of the loop; `in_step` runs with the mutex held, and says what the step has brought.
struct NotedWork final : DriverWork {
  void step(Lock& lock, nanoseconds wait_max, bool may_block) override {
    ++steps;
    blocking += may_block;
    if (in_step) in_step(lock);
    const Unlocked unlocked{lock};
    loop.turn(wait_max < 0ns ? 1ms : std::min<nanoseconds>(wait_max, 1ms));
  }
  bool catch_up(Lock&) override { return false; }
  void write() noexcept override { ++writes; }
  [[nodiscard]] bool controls_wait() const noexcept override { return controls; }
  [[nodiscard]] BackgroundNeed background_need() const noexcept override { return need; }
  void deliver_ended(Lock&) override { ++deliveries; }
  void end_all(Lock&) noexcept override { ++ends; }
  [[nodiscard]] std::shared_ptr<void> keep_alive() override { return {}; }

  Loop loop{runtime::make_epoll_backend()};
  std::function<void(Lock&)> in_step;
  bool controls = false;
  BackgroundNeed need = BackgroundNeed::none;
  std::atomic<int> steps{0};
  int blocking = 0;
  int writes = 0;
  int deliveries = 0;
  int ends = 0;
};

struct Driven {
  explicit Driven(bool one_thread = false) : driver(work, work.loop, one_thread) {}

  NotedWork work;
  Driver driver;
};

TEST(Driver, a_thread_that_blocks_drives_until_it_is_told) {
  Driven driven;
  Waiting waiting{.ready = {}, .unfinished = 1};
  driven.work.in_step = [&](Lock&) {
    EXPECT_TRUE(driven.driver.on_driver());
    if (driven.work.steps == 3) driven.driver.tell(waiting);
  };
  Lock lock = driven.driver.lock();
  EXPECT_FALSE(driven.driver.on_driver());
  EXPECT_TRUE(driven.driver.wait(lock, waiting, driven.work.loop.now(), driven.work.loop.now() + 1h));
  EXPECT_EQ(driven.work.steps, 3);
  EXPECT_EQ(driven.work.blocking, 3);
  EXPECT_FALSE(driven.driver.on_driver());
}

TEST(Driver, a_thread_that_blocks_stops_at_its_deadline_and_when_it_is_interrupted) {
  Driven driven;
  Waiting waiting{.ready = {}, .unfinished = 1};
  int asked = 0;
  driven.driver.on_wait([&] { return ++asked == 2; });
  Lock lock = driven.driver.lock();
  const nanoseconds now = driven.work.loop.now();
  EXPECT_TRUE(driven.driver.wait(lock, waiting, now, now));
  EXPECT_EQ(driven.work.steps, 0);
  EXPECT_FALSE(driven.driver.wait(lock, waiting, now, now + 1h));
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(waiting.unfinished, 1U);
}

TEST(Driver, what_is_asynchronous_makes_the_background_thread_drive_until_it_is_delivered) {
  Driven driven;
  const std::thread::id here = std::this_thread::get_id();
  std::atomic<bool> elsewhere{false};
  driven.work.in_step = [&](Lock&) {
    elsewhere = std::this_thread::get_id() != here;
    driven.driver.delivered();
    driven.driver.settle();
  };
  {
    Lock lock = driven.driver.lock();
    driven.driver.want_background();
    EXPECT_FALSE(driven.driver.background_needed());
    driven.driver.asynchronous(2);
    EXPECT_TRUE(driven.driver.others_drive());
    driven.driver.asynchronous_begun(lock);
  }
  while (driven.work.steps < 2) std::this_thread::yield();
  driven.driver.close();
  EXPECT_TRUE(elsewhere);
  EXPECT_EQ(driven.work.steps, 2);
  EXPECT_EQ(driven.work.blocking, 0);
  EXPECT_GE(driven.work.ends, 1);
}

TEST(Driver, what_needs_it_always_has_the_background_thread_after_run_and_what_needs_it_once_started_has_not) {
  for (const BackgroundNeed need : {BackgroundNeed::once_started, BackgroundNeed::always}) {
    Driven driven;
    driven.work.need = need;
    driven.driver.exclusively([] {});
    {
      const Lock lock = driven.driver.lock();
      EXPECT_EQ(driven.driver.background_needed(), need == BackgroundNeed::always);
    }
    driven.driver.close();
  }
}

TEST(Driver, run_drives_until_it_is_finished_and_nobody_else_runs_meanwhile) {
  Driven driven{true};
  bool finished = false;
  int turns = 0;
  driven.driver.run(
      [&] {
        EXPECT_TRUE(driven.driver.on_driver());
        EXPECT_THROW(driven.driver.run([] {}, finished, [] {}), std::logic_error);
        int changes = 0;
        driven.driver.exclusively([&] { ++changes; });
        EXPECT_EQ(changes, 1);
        std::thread other{[&] {
          EXPECT_THROW(driven.driver.run([] {}, finished, [] {}), std::logic_error);
          EXPECT_THROW(driven.driver.exclusively([] {}), std::logic_error);
        }};
        other.join();
      },
      finished, [&] { finished = ++turns == 4; });
  EXPECT_EQ(driven.work.steps, 4);
  EXPECT_EQ(driven.work.blocking, 0);
}

TEST(Driver, without_memory_for_a_step_run_makes_the_next_one) {
  Driven driven{true};
  bool finished = false;
  driven.work.in_step = [&](Lock&) {
    if (driven.work.steps == 1) throw std::bad_alloc{};
  };
  driven.driver.run([] {}, finished, [&] { finished = driven.work.steps == 2; });
  EXPECT_EQ(driven.work.steps, 2);
}

TEST(Driver, what_nobody_waits_for_is_sent_by_a_step_of_whoever_says_it) {
  Driven driven{true};
  Lock lock = driven.driver.lock();
  driven.driver.write_or_send(lock);
  EXPECT_EQ(driven.work.steps, 0);
  driven.work.controls = true;
  driven.work.in_step = [&](Lock& held) {
    driven.driver.write_or_send(held);  // on the thread that drives it is written at once
    driven.work.controls = false;
  };
  driven.driver.write_or_send(lock);
  EXPECT_EQ(driven.work.steps, 1);
  EXPECT_EQ(driven.work.writes, 1);
}

TEST(Driver, after_its_end_what_begins_is_delivered_at_once) {
  Driven driven{true};
  driven.driver.close();
  driven.driver.close();
  EXPECT_EQ(driven.work.ends, 2);
  Lock lock = driven.driver.lock();
  EXPECT_TRUE(driven.driver.closing());
  driven.driver.asynchronous_begun(lock);
  EXPECT_EQ(driven.work.deliveries, 1);
}

TEST(Driver, what_is_asked_for_during_a_change_is_done_after_it_also_where_that_fails) {
  Driven driven;
  const auto ask = [&] {
    Lock lock = driven.driver.lock();
    driven.driver.send_controls(lock);
  };
  driven.driver.exclusively([] {});
  EXPECT_EQ(driven.work.steps, 0) << "nothing was";
  const auto failing = [&] {
    driven.work.controls = true;
    std::thread{ask}.join();
    throw std::runtime_error("no");
  };
  EXPECT_THROW(driven.driver.exclusively(failing), std::runtime_error);
  EXPECT_EQ(driven.work.steps, 1);
  driven.work.controls = false;
  driven.driver.exclusively([&] { std::thread{[&] { driven.driver.run_posted(); }}.join(); });
  EXPECT_EQ(driven.work.steps, 2);
  driven.driver.exclusively([&] {
    Lock lock = driven.driver.lock();
    driven.driver.write_or_send(lock);
  });
  EXPECT_EQ(driven.work.writes, 1);
  EXPECT_EQ(driven.work.steps, 3) << "what was written is sent";
}

TEST(Driver, a_change_after_the_end_ends_what_was_begun_meanwhile) {
  Driven driven;
  driven.driver.close();
  const int ends = driven.work.ends;
  driven.driver.exclusively([] {});
  EXPECT_GT(driven.work.ends, ends);
  EXPECT_EQ(driven.work.steps, 0);
}

TEST(Driver, the_end_wakes_who_waits_to_change_something) {
  Driven driven;
  std::atomic<bool> goes_on{false};
  driven.work.in_step = [&](Lock& lock) {
    const Unlocked unlocked{lock};
    while (!goes_on) std::this_thread::yield();
  };
  {
    Lock lock = driven.driver.lock();
    driven.driver.want_background();
    driven.driver.asynchronous(1);
    driven.driver.asynchronous_begun(lock);
  }
  while (driven.work.steps == 0) std::this_thread::yield();
  bool changed = false;
  std::thread changing{[&] { driven.driver.exclusively([&] { changed = true; }); }};
  const auto becomes = [&](bool (Driver::*what)() const noexcept) {
    for (;;) {
      const Lock lock = driven.driver.lock();
      if ((driven.driver.*what)()) return;
    }
  };
  becomes(&Driver::in_run);
  std::thread closing{[&] { driven.driver.close(); }};
  becomes(&Driver::closing);
  goes_on = true;
  closing.join();
  changing.join();
  EXPECT_TRUE(changed);
}

}  // namespace
}  // namespace wirecall::net
