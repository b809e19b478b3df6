// StopRequests: handlers that are asked to stop. Each may unwind a coroutine, and one connection may have thousands of
// them: so a turn asks a share, and later ones the others, in order. One thread.
#pragma once

#include <cstddef>
#include <list>
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
    if (scheduler_ != nullptr) scheduler_->stop(*this);
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
  /// Asks all that wait, and from now on each at once: there are no more turns.
  void finish() noexcept {
    at_once_ = true;
    ask_waiting();
  }

 private:
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
};

}  // namespace wirecall::rpc
