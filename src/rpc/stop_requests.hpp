// StopRequests: handlers that are asked to stop. Each may unwind a coroutine, and one connection may have thousands of
// them: so a turn asks a share, and later ones the others, in order. One thread.
#pragma once

#include <chrono>
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

  /// Without a scheduler there are no later turns.
  explicit StopRequests(Scheduler* scheduler) noexcept : scheduler_(scheduler) {}
  StopRequests(StopRequests&&) = delete;
  ~StopRequests() {
    if (scheduler_ != nullptr) scheduler_->stop(*this);
  }

  /// In this turn, unless it has asked its share, and nobody waits. Without memory in this one too.
  void ask(std::stop_source stop) noexcept {
    if (!stop.stop_possible()) return;
    try {
      if (scheduler_ != nullptr && (left_ == 0 || !waiting_.empty())) {
        waiting_.push_back(stop);
        return;
      }
      // Few are not worth a timer: they are counted together with those of later turns.
      if (scheduler_ != nullptr && left_-- == kATurn / 2) scheduler_->start(*this, std::chrono::nanoseconds{0});
    } catch (const std::bad_alloc&) {
    }
    stop.request_stop();
  }

 private:
  void expired() override {
    left_ = kATurn;
    if (waiting_.empty()) return;
    scheduler_->start(*this, std::chrono::nanoseconds{0});
    for (; !waiting_.empty() && left_ != 0; --left_) {
      std::stop_source stop = std::move(waiting_.front());
      waiting_.pop_front();
      stop.request_stop();
    }
  }

  Scheduler* scheduler_;
  std::size_t left_ = kATurn;  // that may be asked before the next turn
  std::list<std::stop_source> waiting_;
};

}  // namespace wirecall::rpc
