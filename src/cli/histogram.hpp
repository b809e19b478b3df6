// Histogram: how often a call took how long. Log-linear: a value is kept to 1/64 of itself, from 1 ns to beyond
// centuries, in 58 KiB; recording is an increment. A value; one thread.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace wirecall::cli {

class Histogram {
 public:
  void record(std::uint64_t ns) noexcept {
    ++counts_[bucket_of(ns)];
    ++count_;
    sum_ += ns;
    if (ns > max_) max_ = ns;
  }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
  [[nodiscard]] double mean() const noexcept;
  /// The largest value that a share of `quantile` (0 to 1) of all is not above, to 1/64; 0 when there is none.
  [[nodiscard]] std::uint64_t at(double quantile) const noexcept;

  /// How many were not above `ns`, to 1/64 of it.
  [[nodiscard]] std::uint64_t up_to(std::uint64_t ns) const noexcept;
  /// The percentile distribution in microseconds, in the text format of HdrHistogram, for its plotters.
  [[nodiscard]] std::string hdr() const;

 private:
  static constexpr unsigned kBits = 7;  // of a value that are kept
  static constexpr std::uint64_t kSteps = 1U << kBits;
  static constexpr std::size_t kBuckets = (64 - kBits + 1) * kSteps;

  // Values below kSteps have a bucket each; above, each power of two has kSteps / 2 of its own.
  [[nodiscard]] static std::size_t bucket_of(std::uint64_t ns) noexcept {
    const unsigned width = static_cast<unsigned>(std::bit_width(ns));
    const unsigned shift = width > kBits ? width - kBits : 0;
    return shift * kSteps + (ns >> shift);
  }
  [[nodiscard]] static std::uint64_t largest_in(std::size_t bucket) noexcept {
    const std::size_t shift = bucket / kSteps;
    return (((bucket % kSteps) + 1) << shift) - 1;
  }

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace wirecall::cli
