// See adaptive_wait.hpp.
#include "batching/adaptive_wait.hpp"

#include <algorithm>
#include <utility>

namespace wirecall::batching {

constexpr double kKept = 0.95;  // of the weight of older runs, with each new one
constexpr double kGapShare = 1.0 / 16;
constexpr double kFactor = 4;       // what differs by more than that is no longer the same function, or was an accident
constexpr double kShareOfRate = 9;  // nine tenths of it, by this many to one

void AdaptiveWait::came(nanoseconds now) noexcept {
  if (last_ >= nanoseconds{0}) {
    const auto gap = static_cast<double>(std::max(now - last_, nanoseconds{0}).count());  // loops come in any order
    gap_ = gap_ < 0 ? gap : gap_ + (gap - gap_) * kGapShare;
  }
  last_ = std::max(last_, now);
}

void AdaptiveWait::ran(std::size_t calls, nanoseconds time) noexcept {
  if (!std::exchange(began_, true)) return;
  const auto n = static_cast<double>(calls);
  auto t = static_cast<double>(time.count());
  // Whatever the two parts are, a run takes between these.
  const double share = runs_ > 0 ? n * runs_ / calls_ : 1;
  const double mean = runs_ > 0 ? times_ / runs_ : t;
  t = std::min(t, kFactor * mean * std::max(1.0, share));
  if (t < mean * std::min(1.0, share) / kFactor) runs_ = calls_ = squares_ = times_ = products_ = 0;
  runs_ = runs_ * kKept + 1;
  calls_ = calls_ * kKept + n;
  squares_ = squares_ * kKept + n * n;
  times_ = times_ * kKept + t;
  products_ = products_ * kKept + n * t;
}

// By least squares. While all batches have had one size nobody can tell the two parts: then all is fixed, and those
// that wait for that reason make batches of other sizes.
AdaptiveWait::Line AdaptiveWait::line() const noexcept {
  if (runs_ == 0) return {};
  const double mean = times_ / runs_;
  const double spread = runs_ * squares_ - calls_ * calls_;
  if (spread < runs_ * runs_ * 0.01) return {.fixed = mean, .each = 0};
  const double each = std::clamp((runs_ * products_ - calls_ * times_) / spread, 0.0, times_ / calls_);
  return {.fixed = std::max(0.0, mean - each * calls_ / runs_), .each = each};
}

AdaptiveWait::nanoseconds AdaptiveWait::wait() const noexcept {
  const Line run = line();
  if (gap_ < 0 || run.fixed <= gap_) return nanoseconds{0};  // not one is expected in that time
  const double enough = run.each > 0 ? std::min(size_, kShareOfRate * run.fixed / run.each) : size_;
  return to_time(std::min(run.fixed, enough * gap_));
}

}  // namespace wirecall::batching
