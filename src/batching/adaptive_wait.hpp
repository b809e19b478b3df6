// AdaptiveWait: for how long the first call of a batch waits for others where nobody has said so. It learns what a run
// takes, as a fixed part and one for each call, and how often calls come. To wait pays as long as the fixed part is
// then shared by more: until a batch is so large that nine tenths of the rate are reached which larger ones could
// reach, and never for longer than the fixed part itself, which is all that can be won. Where less than one call is
// expected in that time, nobody waits. It learns nothing of the first run, in which models are loaded; a later one that
// takes longer than ever counts as four times what was expected, and one that is four times as quick makes it forget
// those before. Pure; one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>

namespace wirecall::batching {

class AdaptiveWait {
 public:
  using nanoseconds = std::chrono::nanoseconds;

  /// `size`: the most calls in a batch.
  explicit AdaptiveWait(std::size_t size) noexcept : size_(static_cast<double>(size)) {}

  /// A call has come.
  void came(nanoseconds now) noexcept;
  /// A batch of so many calls has taken so long.
  void ran(std::size_t calls, nanoseconds time) noexcept;
  /// For how long a call waits that has come now, while the function is free.
  [[nodiscard]] nanoseconds wait() const noexcept;

  /// Of what a run takes: the part that is the same for each, and that of each call.
  [[nodiscard]] nanoseconds fixed_time() const noexcept { return to_time(line().fixed); }
  [[nodiscard]] nanoseconds time_of_each() const noexcept { return to_time(line().each); }

 private:
  struct Line {
    double fixed = 0;  // ns
    double each = 0;
  };
  static nanoseconds to_time(double ns) noexcept { return nanoseconds{static_cast<nanoseconds::rep>(ns)}; }
  [[nodiscard]] Line line() const noexcept;

  double size_;
  bool began_ = false;    // a first run has ended
  nanoseconds last_{-1};  // when a call came; none has
  double gap_ = -1;       // between calls, ns; below 0 while there is none
  // Sums over runs, of which older ones count less: of 1, of calls, their squares, times, and their products.
  double runs_ = 0;
  double calls_ = 0;
  double squares_ = 0;
  double times_ = 0;
  double products_ = 0;
};

}  // namespace wirecall::batching
