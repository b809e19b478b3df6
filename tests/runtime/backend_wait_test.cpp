// What ends the wait of a backend's turn: wakes, time; and turns that come from another thread.
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/backend_fixture.hpp"

namespace wirecall::runtime {
namespace {

using std::chrono::nanoseconds;

class WaitingTest : public BackendTest {};

TEST_P(WaitingTest, waking_ends_the_wait) {
  std::thread waker{[this] { world_->backend().wake(); }};
  turn(std::chrono::hours{1});
  waker.join();
  EXPECT_TRUE(seen_.empty());
}

Backend* awake_by_signal = nullptr;

TEST_P(WaitingTest, a_signal_handler_ends_the_wait) {
  awake_by_signal = &world_->backend();
  struct sigaction action{};
  struct sigaction previous{};
  action.sa_handler = [](int) { awake_by_signal->wake(); };
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR1, &action, &previous);
  const pthread_t us = ::pthread_self();
  std::thread sender{[us] { ::pthread_kill(us, SIGUSR1); }};
  turn(std::chrono::hours{1});
  sender.join();
  ::sigaction(SIGUSR1, &previous, nullptr);
  EXPECT_TRUE(seen_.empty());
}

TEST_P(WaitingTest, waking_many_times_from_many_threads_ends_each_wait) {
  constexpr int kWakes = 200;
  std::atomic<int> asked{0};
  std::vector<std::thread> wakers;
  for (int i = 0; i < 4; ++i) {
    wakers.emplace_back([&] {
      for (int wakes = 0; wakes < kWakes; ++wakes) {
        asked.fetch_add(1);
        world_->backend().wake();
      }
    });
  }
  // Whoever asks is heard after asking: a last turn comes after the last asking.
  int heard = 0;
  while (heard < 4 * kWakes) {
    turn(std::chrono::hours{1});
    heard = asked.load();
  }
  for (std::thread& waker : wakers) waker.join();
}

TEST_P(WaitingTest, what_stands_goes_on_when_another_thread_takes_the_turns) {
  open(handle_);
  submit(OperationKind::receive, handle_);
  peer_->narrow();
  std::string large;
  for (int i = 0; i < 100'000; ++i) large += std::to_string(i);
  send(handle_, large, false);
  peer_->send("first");
  std::thread{[this] { run_until([&] { return received_ == "first"; }); }}.join();
  peer_->send("second");
  std::string got;
  run_until([&] {
    got += peer_->take();
    return got.size() == large.size() && received_ == "firstsecond" && !seen_.empty();
  });
  EXPECT_EQ(got, large);
  std::thread waker{[this] { world_->backend().wake(); }};
  turn(std::chrono::hours{1});
  waker.join();
}

TEST_P(WaitingTest, time_only_goes_forward) {
  const nanoseconds before = world_->backend().now();
  turn(std::chrono::milliseconds{2});
  EXPECT_GE(world_->backend().now(), before);
}

// Long ones are ended by a timer that stays set (wait_timer.hpp), which must not outlast a change of mind or of the
// thread.
TEST_P(WaitingTest, each_wait_ends_at_its_time) {
  Backend& backend = world_->backend();
  const auto wait_until = [&](nanoseconds until) {
    int turns = 0;
    while (backend.now() < until) {
      turn_until(until);
      ++turns;
    }
    // One may have been ended by a timer that was set before, one by a wake that nobody has seen yet, and some by the
    // kernel, which takes down the rings of other tests when it likes and interrupts this thread for each (ring.hpp). A
    // wait that does not last makes thousands.
    EXPECT_LE(turns, 40);
  };
  const auto from_now = [&](int milliseconds) { return backend.now() + std::chrono::milliseconds{milliseconds}; };
  backend.wake();
  turn_until(from_now(70));
  wait_until(from_now(120));
  backend.wake();
  turn_until(from_now(3'600'000));
  wait_until(from_now(60));
  wait_until(from_now(3));
  backend.wake();
  const nanoseconds soon = from_now(60);
  turn_until(soon);
  std::thread{[&] { wait_until(soon); }}.join();
  wait_until(from_now(60));
}

INSTANTIATE_TEST_SUITE_P(Backends, WaitingTest, testing::ValuesIn(all_worlds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wirecall::runtime
