// A Scheduler whose clock moves only when a test says so.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <utility>

#include "wirecall/context.hpp"

namespace wirecall::test {

class VirtualScheduler final : public Scheduler {
 public:
  void start(Timer& timer, std::chrono::nanoseconds delay) override {
    due(timer) = static_cast<std::uint64_t>((now_ + delay).count());
    sequence(timer) = ++started_;
    timers_.emplace(key(timer), &timer);
  }
  void stop(Timer& timer) noexcept override { timers_.erase(key(timer)); }

  /// Moves the clock on, expiring what is due on the way, in order.
  void advance(std::chrono::nanoseconds by) {
    const std::chrono::nanoseconds end = now_ + by;
    while (!timers_.empty() && timers_.begin()->first.first <= static_cast<std::uint64_t>(end.count())) {
      const auto first = timers_.begin();
      now_ = std::chrono::nanoseconds{first->first.first};
      Timer& timer = *first->second;
      timers_.erase(first);
      timer.expired();
    }
    now_ = end;
  }

  [[nodiscard]] std::chrono::nanoseconds now() const noexcept override { return now_; }
  [[nodiscard]] std::size_t running() const noexcept { return timers_.size(); }
  /// Timers that were ever started.
  [[nodiscard]] std::uint64_t started() const noexcept { return started_; }

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;
  static Key key(Timer& timer) noexcept { return {due(timer), sequence(timer)}; }

  std::map<Key, Timer*> timers_;
  std::chrono::nanoseconds now_{0};
  std::uint64_t started_ = 0;
};

}  // namespace wirecall::test
