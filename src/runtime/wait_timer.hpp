// WaitTimer: ends waits that are long. A timeout of the wait itself is set up and taken down in each turn, which costs
// a turn with one request 7 %; this timer stays set from turn to turn, and ends one wait for nothing where the time
// that is waited for has moved away. Owned by a backend, which waits for its descriptor to become readable and reads
// eight bytes from it.
#pragma once

#include <algorithm>
#include <sys/timerfd.h>

#include "runtime/backend.hpp"
#include "runtime/descriptor.hpp"
#include "runtime/system.hpp"

namespace wirecall::runtime {

class WaitTimer {
 public:
  /// Throws std::system_error when the kernel refuses the descriptor. `flags` are those of timerfd_create.
  explicit WaitTimer(int flags) : timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | flags), "timerfd_create") {}

  [[nodiscard]] int descriptor() const noexcept { return timer_.get(); }

  /// For how long a wait until `until` is to last unless the timer ends it; negative for ever.
  [[nodiscard]] std::chrono::nanoseconds limit(std::chrono::nanoseconds until) noexcept {
    waits_ = set_for_ <= until;
    if (waits_) [[likely]]
      return kNoLimit;
    if (until <= kAtOnce) return std::chrono::nanoseconds{0};
    const std::chrono::nanoseconds left = until - monotonic_now();
    if (left < kLong) return std::max(left, std::chrono::nanoseconds{0});
    const auto seconds = std::chrono::floor<std::chrono::seconds>(until);
    const itimerspec when{.it_interval = {},
                          .it_value = {.tv_sec = seconds.count(), .tv_nsec = (until - seconds).count()}};
    if (::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr) != 0) return left;
    set_for_ = until;
    waits_ = true;
    return kNoLimit;
  }
  /// It has expired, or may have.
  void expired() noexcept {
    set_for_ = kForever;
    waits_ = false;
  }
  /// Whether the `until` of the last wait may have come.
  [[nodiscard]] bool time_may_be_up() const noexcept { return !waits_; }

 private:
  static constexpr std::chrono::nanoseconds kLong = std::chrono::milliseconds{50};
  static constexpr std::chrono::nanoseconds kNoLimit{-1};

  Descriptor timer_;
  std::chrono::nanoseconds set_for_ = kForever;  // kForever: it is not set
  bool waits_ = false;                           // the last wait was left to it, and it has not expired
};

}  // namespace wirecall::runtime
