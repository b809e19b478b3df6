// TurnBudget: what one turn spends on work that is shared out over several turns, in the work's own steps, and the
// timer that goes on with the work in the next turn. Without a scheduler there are no later turns, and all is done at
// once. Owned by who has the work. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "wirecall/context.hpp"

namespace wirecall::broker {

class TurnBudget final : private Timer {
 public:
  /// Steps without end.
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

  /// `resume` goes on with the work in a later turn, whose steps are there. It does not throw.
  TurnBudget(Scheduler* scheduler, std::size_t steps_a_turn, std::function<void()> resume)
      : scheduler_(scheduler), steps_a_turn_(scheduler != nullptr ? steps_a_turn : kAll), resume_(std::move(resume)) {}
  TurnBudget(TurnBudget&&) = delete;
  ~TurnBudget() {
    if (pending_) scheduler_->stop(*this);
  }

  [[nodiscard]] bool has_turns() const noexcept { return scheduler_ != nullptr; }
  [[nodiscard]] bool is_spent() const noexcept { return left_ == 0; }
  /// What this turn has left; who works takes it off.
  [[nodiscard]] std::size_t& steps() noexcept { return left_; }
  /// The same for one of several who take turns.
  [[nodiscard]] std::size_t share(std::size_t at_once) const noexcept {
    return has_turns() ? std::min(left_, at_once) : left_;
  }
  /// Beyond what is left, nothing more is taken.
  void spend(std::size_t steps) noexcept { left_ -= std::min(left_, steps); }
  /// Beyond what is left, it is taken off later turns.
  void spend_ahead(std::size_t steps) noexcept {
    owed_ += steps - std::min(left_, steps);
    spend(steps);
  }
  /// The present turn has steps without end, and owes none.
  void lift() noexcept {
    left_ = kAll;
    owed_ = 0;
  }
  /// The present turn has all its steps again.
  void refill() noexcept {
    const std::size_t paid = std::min(owed_, steps_a_turn_);
    owed_ -= paid;
    left_ = steps_a_turn_ - paid;
  }
  /// There is a next turn where there is `work` left, or where this one has spent anything. False without memory for
  /// that: then the work goes on with whatever is begun next.
  bool resume_later(bool work) noexcept try {
    if (pending_ || !has_turns() || (!work && left_ == steps_a_turn_)) return true;
    scheduler_->start(*this, std::chrono::nanoseconds{0});
    return pending_ = true;
  } catch (const std::bad_alloc&) {
    return false;
  }

 private:
  void expired() override {
    WIRECALL_ASSERT(pending_);
    pending_ = false;
    refill();
    resume_();
  }

  Scheduler* scheduler_;
  const std::size_t steps_a_turn_;
  const std::function<void()> resume_;
  std::size_t left_ = steps_a_turn_;
  std::size_t owed_ = 0;  // by turns to come
  bool pending_ = false;  // the timer runs
};

}  // namespace wirecall::broker
