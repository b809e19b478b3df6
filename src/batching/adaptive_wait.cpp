// See adaptive_wait.hpp.
#include "batching/adaptive_wait.hpp"

#include <algorithm>
#include <utility>

namespace wirecall::batching {

constexpr double kFaster = 1.08;          // so many times as fast, at least, for calls to wait
constexpr double kStillFaster = 1.05;     // and for those that wait to go on so
constexpr double kHopeless = 1.02;        // a trial ends early where it is less
constexpr std::size_t kRunsToSettle = 2;  // of an epoch, which do not count: they began before it
constexpr std::size_t kRuns = 16;         // of an epoch, which count
constexpr int kEpochs = 4;                // of a trial, each way
constexpr std::size_t kRestMin = 512;     // runs between trials: so many after a change, and twice as many each time
constexpr std::size_t kRestMax = 4096;
constexpr int kIdle = 4;  // nobody has called for so many runs: that says nothing of how fast calls get through

AdaptiveWait::AdaptiveWait(std::size_t size) noexcept : size_(size), rest_next_(kRestMin) {}

void AdaptiveWait::came(nanoseconds now) noexcept {
  if (!std::exchange(came_, true) && now - ended_ > kIdle * usual_ && rest_ == 0) cut_epoch();
  if (now >= until_) leave();
}

void AdaptiveWait::ran(std::size_t calls, std::size_t waiting, nanoseconds time, nanoseconds now) noexcept {
  // Who waits already, beside another place that was free, does not wait for longer.
  const nanoseconds until_max = gathers() ? until_ : nanoseconds::max();
  ended_ = now;
  came_ = waiting != 0;
  expected_ = 0;
  if (!std::exchange(began_, true)) return;
  // Batches that are larger since calls wait must not make them wait for longer.
  usual_ = usual_ < nanoseconds{0} ? time : usual_ + std::min(time - usual_, usual_) / 8;
  if (waits() && unwaited_ >= nanoseconds{0}) {
    usual_ = std::min(usual_, unwaited_);
  } else {
    unwaited_ = usual_;
  }
  if (rest_ != 0) {
    if (--rest_ == 0) begin_trial();
  } else if (++runs_ <= kRunsToSettle) {
    epoch_began_ = now;
    calls_ = pauses_ = 0;
  } else {
    calls_ += calls;
    pauses_ += std::size_t{waiting == 0};
    if (runs_ >= kRunsToSettle + kRuns && now > epoch_began_)
      end_epoch(static_cast<double>(calls_) / static_cast<double>((now - epoch_began_).count()));
  }
  const std::size_t expected = std::min(calls + waiting, size_);
  if (!waits() || expected <= std::max<std::size_t>(waiting, 1)) return;
  expected_ = expected;
  until_ = std::min(now + usual_, until_max);
}

AdaptiveWait::nanoseconds AdaptiveWait::wait(std::size_t waiting, nanoseconds now) noexcept {
  if (waiting >= expected_ || now >= until_) {
    leave();
    return nanoseconds{0};
  }
  return until_ - now;
}

// First as it has been, then the other way: callers that have left together may go on to do so for a while, so that
// epochs by turns would say nothing.
bool AdaptiveWait::waits_in_epoch() const noexcept { return (epoch_ < kEpochs) == pays_; }

bool AdaptiveWait::waits() const noexcept { return rest_ == 0 ? waits_in_epoch() : pays_; }

void AdaptiveWait::begin_epoch() noexcept { runs_ = 0; }

// Where pauses let no epoch end, it cannot be found out whether waiting pays: then nobody waits.
void AdaptiveWait::cut_epoch() noexcept {
  begin_epoch();
  if (++cut_ != kEpochs) return;
  pays_ = false;
  begin_trial();
}

void AdaptiveWait::begin_trial() noexcept {
  cut_ = 0;
  epoch_ = 0;
  rates_[0] = rates_[1] = 0;
  begin_epoch();
}

void AdaptiveWait::end_epoch(double rate) noexcept {
  // A function that is not always at work without a wait gets no more calls done with one.
  if (!pays_ && !waits_in_epoch() && pauses_ > kRuns / 2) return end_trial(false);
  rates_[std::size_t{waits_in_epoch()}] += rate;
  cut_ = 0;
  begin_epoch();
  const int tried = ++epoch_ - kEpochs;
  if (tried <= 0) return;
  const double gain =
      rates_[1] / rates_[0] * (pays_ ? static_cast<double>(tried) / kEpochs : static_cast<double>(kEpochs) / tried);
  if (tried == kEpochs || (!pays_ && tried >= kEpochs / 2 && gain < kHopeless))
    end_trial(gain >= (pays_ ? kStillFaster : kFaster));
}

void AdaptiveWait::end_trial(bool pays) noexcept {
  rest_ = std::exchange(pays_, pays) != pays ? kRestMin : rest_next_;
  rest_next_ = std::min(2 * rest_, kRestMax);
}

}  // namespace wirecall::batching
