// QuickRuns: whether a function has been so quick of late that to hand its calls to a thread costs more than it does.
// For each 50 us that a run takes too long, one has to be quick. So a thread that was interrupted is soon forgotten,
// and a function that takes seconds now and then does not count as quick. Pure; one thread at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace wirecall::batching {

class QuickRuns {
 public:
  /// A run of so many calls has taken so long.
  void ran(std::size_t calls, std::chrono::nanoseconds time) noexcept {
    const std::chrono::nanoseconds over = time - kOfRun - kOfCall * static_cast<std::int64_t>(calls);
    if (over > std::chrono::nanoseconds{0}) {
      owed_ = std::min(owed_ + 1 + over / kOfRun, kOwedMax);
    } else if (owed_ != 0) {
      --owed_;
    }
  }
  [[nodiscard]] bool are_quick() const noexcept { return owed_ == 0; }

 private:
  static constexpr std::chrono::microseconds kOfRun{50};
  static constexpr std::chrono::microseconds kOfCall{1};
  static constexpr std::int64_t kOwedMax = 1 << 16;

  std::int64_t owed_ = 16;  // quick runs
};

}  // namespace wirecall::batching
