// LogPause: of what happens as often as somebody else wants, the log is told once a minute, and how often it happened
// since. A value; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace wirecall {

class LogPause {
 public:
  static constexpr std::chrono::nanoseconds kPause = std::chrono::minutes{1};

  /// It has happened, at a time of a monotonic clock: whether the log is to be told now.
  [[nodiscard]] bool admits(std::chrono::nanoseconds now) noexcept {
    ++untold_;
    if (told_at_ && now - *told_at_ < kPause) return false;
    told_at_ = now;
    return true;
  }
  /// How often it has happened since the log was told of that.
  [[nodiscard]] std::int64_t take_count() noexcept { return std::exchange(untold_, 0); }

 private:
  std::int64_t untold_ = 0;
  std::optional<std::chrono::nanoseconds> told_at_;
};

}  // namespace wirecall
