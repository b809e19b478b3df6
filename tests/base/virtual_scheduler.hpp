// A Scheduler whose clock moves only when a test moves it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <utility>

#include "wirecall/context.hpp"

namespace wirecall::test {

class VirtualScheduler final : public Scheduler {
 public:
  void start(Timer& timer, std::chrono::nanoseconds delay) override {
    stop(timer);
    index(timer) = ++started_;
    dues_.emplace(started_, now_ + delay);
    timers_.emplace(Key{now_ + delay, started_}, &timer);
  }
  void stop(Timer& timer) noexcept override {
    const auto due = dues_.find(index(timer));
    if (due == dues_.end()) return;
    timers_.erase({due->second, due->first});
    dues_.erase(due);
  }

  /// Moves the clock, expiring due timers on the way, in order.
  void advance(std::chrono::nanoseconds by) {
    const std::chrono::nanoseconds end = now_ + by;
    while (!timers_.empty() && timers_.begin()->first.first <= end) {
      now_ = timers_.begin()->first.first;
      Timer& timer = *timers_.begin()->second;
      stop(timer);
      timer.expired();
    }
    now_ = std::max(now_, end);  // a timer may have moved it itself
  }

  /// Expires one timer that is due now. False without one.
  bool expire_one() {
    if (timers_.empty() || timers_.begin()->first.first > now_) return false;
    Timer& timer = *timers_.begin()->second;
    stop(timer);
    timer.expired();
    return true;
  }

  [[nodiscard]] std::chrono::nanoseconds now() const noexcept override { return now_; }
  [[nodiscard]] std::size_t running() const noexcept { return timers_.size(); }
  /// Timers that were ever started.
  [[nodiscard]] std::uint64_t started() const noexcept { return started_; }

 private:
  using Key = std::pair<std::chrono::nanoseconds, std::uint64_t>;  // when it is due, and its index

  std::map<Key, Timer*> timers_;
  std::map<std::uint64_t, std::chrono::nanoseconds> dues_;  // by index
  std::chrono::nanoseconds now_{0};
  std::uint64_t started_ = 0;
};

}  // namespace wirecall::test
