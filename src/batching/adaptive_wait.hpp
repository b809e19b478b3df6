// AdaptiveWait: whether calls wait for others where nobody has said for how long. Who has been answered may call again
// at once. So when a batch has run, those that have come meanwhile may wait until as many are there as have been
// answered and wait: nobody else is known of, and they leave together. They wait for as long as a run takes at most,
// since no more can be won. Whether that pays is tried out: now and then some runs are without a wait and some with
// one, and calls wait from then on only where they got through faster that way. A call that is alone never waits. Pure;
// one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>

namespace wirecall::batching {

class AdaptiveWait {
 public:
  using nanoseconds = std::chrono::nanoseconds;

  /// `size`: the most calls in a batch.
  explicit AdaptiveWait(std::size_t size) noexcept;

  /// A call has come.
  void came(nanoseconds now) noexcept;
  /// A batch of so many calls has taken so long and ends now, while so many wait.
  void ran(std::size_t calls, std::size_t waiting, nanoseconds time, nanoseconds now) noexcept;

  /// Whether those that wait, or come next, are to wait for others.
  [[nodiscard]] bool gathers() const noexcept { return expected_ != 0; }
  /// For how long, where there are so many. With 0 they leave now, and nobody waits until a batch has run again.
  [[nodiscard]] nanoseconds wait(std::size_t waiting, nanoseconds now) noexcept;
  /// They leave now.
  void leave() noexcept { expected_ = 0; }
  /// Whether waiting has been found to pay.
  [[nodiscard]] bool pays() const noexcept { return pays_; }

 private:
  /// Waiting is tried out in epochs, of which each has some runs: some as it has been, then some the other way.
  [[nodiscard]] bool waits_in_epoch() const noexcept;
  [[nodiscard]] bool waits() const noexcept;
  void begin_epoch() noexcept;
  void begin_trial() noexcept;
  void cut_epoch() noexcept;
  void end_epoch(double rate) noexcept;
  void end_trial(bool pays) noexcept;

  std::size_t size_;
  nanoseconds usual_{-1};     // what a run takes lately; below 0 until one has ended that counts
  nanoseconds unwaited_{-1};  // the same when nobody last waited
  bool began_ = false;        // a first run has ended
  std::size_t expected_ = 0;  // calls for which others wait; 0 where nobody waits
  nanoseconds until_{0};      // so long at most
  nanoseconds ended_{0};      // when a run ended last
  bool came_ = true;          // a call has come since, or was there

  bool pays_ = false;
  std::size_t rest_ = 0;  // runs until the next trial
  std::size_t rest_next_;
  int epoch_ = 0;         // of the trial
  int cut_ = 0;           // epochs in a row that a pause has ended
  double rates_[2] = {};  // calls each ns, of its epochs: sums without a wait, and with one
  std::size_t runs_ = 0;  // of the epoch
  std::size_t calls_ = 0;
  std::size_t pauses_ = 0;  // of these, after which nobody waited
  nanoseconds epoch_began_{0};
};

}  // namespace wirecall::batching
