// StopRequests: handlers that are asked to stop. Each may unwind a coroutine, and one connection may have thousands of
// them: so a turn asks a share, and later ones the others, in order. Some are given time first: those of notifications
// whose sender has gone, since nobody waits for their answer. One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <map>
#include <new>
#include <stop_token>
#include <utility>

#include "wirecall/context.hpp"

namespace wirecall::rpc {

class StopRequests final : private Timer {
 public:
  static constexpr std::size_t kATurn = 256;
  /// When so many wait, others are asked at once.
  static constexpr std::size_t kWaitingMax = std::size_t{1} << 16;

  /// Without a scheduler there are no later turns.
  explicit StopRequests(Scheduler* scheduler) noexcept : scheduler_(scheduler), at_once_(scheduler == nullptr) {}
  StopRequests(StopRequests&&) = delete;
  ~StopRequests() {
    if (scheduler_ == nullptr) return;
    scheduler_->stop(*this);
    scheduler_->stop(later_timer_);
  }

  /// In this turn, unless it has asked its share. Without memory in this one too. Returns whether it waits.
  bool ask(std::stop_source stop) noexcept {
    if (!stop.stop_possible()) return false;
    if (!at_once_ && waiting_.size() < kWaitingMax) {
      try {
        if (left_ == 0 || !waiting_.empty()) {
          waiting_.push_back(stop);
          schedule_rest();
          return true;
        }
        // Few are not worth a timer: they are counted together with those of later turns.
        if (left_ <= kATurn / 2) schedule_rest();
        --left_;
      } catch (const std::bad_alloc&) {
        if (!waiting_.empty() && !runs_) ask_waiting();
      }
    }
    stop.request_stop();
    return false;
  }
  /// At that time, by the scheduler's clock, or when there are no more turns. False, and nothing is asked, without
  /// memory for it, or where there are no more turns.
  [[nodiscard]] bool ask_at(std::chrono::nanoseconds time, const std::stop_source& stop) noexcept {
    if (at_once_ || !stop.stop_possible()) return false;
    auto made = later_.end();
    try {
      made = later_.emplace(time, stop);
      if (made == later_.begin()) await_first();
      return true;
    } catch (const std::bad_alloc&) {
      if (made != later_.end()) later_.erase(made);
      return false;
    }
  }
  /// How many have time left.
  [[nodiscard]] std::size_t later() const noexcept { return later_.size(); }
  /// Asks all that wait or have time left, and from now on each at once: there are no more turns.
  void finish() noexcept {
    at_once_ = true;
    ask_waiting();
    while (!later_.empty()) take_first_of_later().request_stop();
  }

 private:
  using Later = std::multimap<std::chrono::nanoseconds, std::stop_source>;

  struct LaterTimer final : Timer {
    explicit LaterTimer(StopRequests& of) noexcept : requests(of) {}
    void expired() override { requests.later_expired(); }
    StopRequests& requests;
  };

  void later_expired() noexcept {
    for (const std::chrono::nanoseconds now = scheduler_->now(); !later_.empty() && later_.begin()->first <= now;)
      ask(take_first_of_later());
    try {
      if (!later_.empty()) await_first();
    } catch (const std::bad_alloc&) {
      while (!later_.empty()) ask(take_first_of_later());
    }
  }
  /// Throws std::bad_alloc.
  void await_first() {
    scheduler_->stop(later_timer_);
    scheduler_->start(later_timer_, later_.begin()->first - scheduler_->now());
  }
  [[nodiscard]] std::stop_source take_first_of_later() noexcept {
    std::stop_source stop = std::move(later_.begin()->second);
    later_.erase(later_.begin());
    return stop;
  }
  void expired() override {
    runs_ = false;
    left_ = kATurn;
    if (waiting_.empty()) return;
    try {
      schedule_rest();
    } catch (const std::bad_alloc&) {
      return ask_waiting();
    }
    for (std::size_t count = kATurn; count != 0 && !waiting_.empty(); --count) ask_first();
    left_ = 0;
  }
  /// Throws std::bad_alloc.
  void schedule_rest() {
    if (runs_) return;
    scheduler_->start(*this, std::chrono::nanoseconds{0});
    runs_ = true;
  }
  void ask_first() noexcept {
    std::stop_source stop = std::move(waiting_.front());
    waiting_.pop_front();
    stop.request_stop();
  }
  void ask_waiting() noexcept {
    while (!waiting_.empty()) ask_first();
  }

  Scheduler* scheduler_;
  std::size_t left_ = kATurn;  // that may be asked before the next turn
  bool at_once_;
  bool runs_ = false;
  std::list<std::stop_source> waiting_;
  Later later_;  // by time
  LaterTimer later_timer_{*this};
};

}  // namespace wirecall::rpc
