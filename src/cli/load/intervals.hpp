// Intervals: what has been answered in each second, or other interval, of a load, and how long that took.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>

namespace wirecall::cli {

struct LoadInterval {
  std::chrono::nanoseconds end{};     ///< since the measurement began
  std::chrono::nanoseconds length{};  ///< shorter than asked for where the load ended within it
  std::uint64_t answered = 0;         ///< errors too
  std::uint64_t failed = 0;           ///< answered with an error, or by UDP not at all
  std::uint64_t timed = 0;            ///< answered with a result: the latencies below are theirs
  std::chrono::nanoseconds sum{};
  std::chrono::nanoseconds min = std::chrono::nanoseconds::max();
  std::chrono::nanoseconds max{};

  [[nodiscard]] double mean_ns() const noexcept {
    return timed == 0 ? 0 : static_cast<double>(sum.count()) / static_cast<double>(timed);
  }
};

/// Tells of each interval once it is over, of empty ones too.
class Intervals {
 public:
  using Tell = std::function<void(const LoadInterval&)>;

  /// `length` is more than nothing.
  Intervals(std::chrono::nanoseconds begin, std::chrono::nanoseconds length, Tell tell)
      : begin_(begin), length_(length), tell_(std::move(tell)) {}

  /// The one that `now` is in; `now` never goes back.
  LoadInterval& at(std::chrono::nanoseconds now) {
    while (now - begin_ >= length_) end_at(begin_ + length_);
    return current_;
  }
  /// The load is over: what is left of it is an interval as well.
  void end(std::chrono::nanoseconds now) {
    static_cast<void>(at(now));
    if (now > begin_) end_at(now);
  }
  [[nodiscard]] std::chrono::nanoseconds next() const noexcept { return begin_ + length_; }

 private:
  void end_at(std::chrono::nanoseconds now) {
    current_.length = now - begin_;
    told_ += current_.length;
    current_.end = told_;
    tell_(current_);
    current_ = {};
    begin_ = now;
  }

  std::chrono::nanoseconds begin_;
  std::chrono::nanoseconds length_;
  std::chrono::nanoseconds told_{};
  Tell tell_;
  LoadInterval current_;
};

}  // namespace wirecall::cli
