// The timers of one process that a test may stop, as SIGSTOP does, on the clock of a VirtualScheduler.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <utility>

#include "wirecall/context.hpp"

namespace wirecall::test {

class StoppableScheduler final : public Scheduler {
 public:
  /// `clock` outlives it.
  explicit StoppableScheduler(Scheduler& clock) : clock_(&clock) {}
  StoppableScheduler(StoppableScheduler&&) = delete;
  ~StoppableScheduler() override { clock_->stop(wake_); }

  void start(Timer& timer, std::chrono::nanoseconds delay) override {
    stop(timer);
    index(timer) = ++started_;
    dues_.emplace(started_, now() + delay);
    timers_.emplace(Key{now() + delay, started_}, &timer);
    wake_later();
  }
  void stop(Timer& timer) noexcept override {
    const auto due = dues_.find(index(timer));
    if (due == dues_.end()) return;
    timers_.erase({due->second, due->first});
    dues_.erase(due);
  }
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept override { return clock_->now(); }

  /// No timer expires until `go_on`, with which those do that are due by then.
  void stop_process() { stopped_ = true; }
  void go_on() {
    stopped_ = false;
    for (const std::uint64_t last = started_; expire_one(last);) {
    }
    wake_later();
  }
  [[nodiscard]] bool is_stopped() const noexcept { return stopped_; }

 private:
  using Key = std::pair<std::chrono::nanoseconds, std::uint64_t>;  // when it is due, and its index

  class Wake final : public Timer {
   public:
    explicit Wake(StoppableScheduler& owner) : owner_(&owner) {}
    void expired() override { owner_->expire(); }

   private:
    StoppableScheduler* owner_;
  };

  void wake_later() {
    if (timers_.empty() || stopped_) return;
    clock_->start(wake_, std::max(timers_.begin()->first.first - now(), std::chrono::nanoseconds{0}));
  }
  // One that is due and was not started behind `last`. False without one.
  bool expire_one(std::uint64_t last) {
    if (stopped_ || timers_.empty()) return false;
    const auto& [key, timer] = *timers_.begin();
    if (key.first > now() || key.second > last) return false;
    Timer& due = *timer;
    stop(due);
    due.expired();
    return true;
  }
  // Those of others that are due at the same time have their turn between.
  void expire() {
    static_cast<void>(expire_one(started_));
    wake_later();
  }

  Scheduler* clock_;
  Wake wake_{*this};
  std::map<Key, Timer*> timers_;
  std::map<std::uint64_t, std::chrono::nanoseconds> dues_;  // by index
  std::uint64_t started_ = 0;
  bool stopped_ = false;
};

}  // namespace wirecall::test
