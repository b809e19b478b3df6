// Histogram: how often something took how long. Log-linear: a value is kept to 1 of 2^(kBits - 1) of itself; recording
// is an increment. A value; one thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace wirecall {

/// Values of up to `kWidth` bits; larger ones are kept as the largest of these.
template <unsigned kBits, unsigned kWidth = 64>
class Histogram {
 public:
  static constexpr std::uint64_t kSteps = 1U << kBits;
  /// Powers of two, each with kSteps / 2 buckets, but for the first, which has kSteps.
  static constexpr unsigned kRanges = kWidth - kBits + 1;

  void record(std::uint64_t value) noexcept {
    if constexpr (kWidth < 64) value = std::min(value, (std::uint64_t{1} << kWidth) - 1);
    ++counts_[bucket_of(value)];
    ++count_;
    sum_ += value;
    if (value > max_) max_ = value;
  }
  Histogram& operator+=(const Histogram& other) noexcept {
    for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) counts_[bucket] += other.counts_[bucket];
    count_ += other.count_;
    sum_ += other.sum_;
    max_ = std::max(max_, other.max_);
    return *this;
  }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t sum() const noexcept { return sum_; }
  [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
  [[nodiscard]] double mean() const noexcept {
    return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
  }
  [[nodiscard]] double deviation() const noexcept {
    if (count_ == 0) return 0;
    double squares = 0;
    for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
      const double off = static_cast<double>(std::min(largest_in(bucket), max_)) - mean();
      squares += off * off * static_cast<double>(counts_[bucket]);
    }
    return std::sqrt(squares / static_cast<double>(count_));
  }
  /// The largest value that a share of `quantile` (0 to 1) of all is not above; 0 when there is none.
  [[nodiscard]] std::uint64_t at(double quantile) const noexcept {
    if (count_ == 0) return 0;
    const auto wanted = std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(std::ceil(quantile * static_cast<double>(count_) * (1 - 1e-12))));
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
      seen += counts_[bucket];
      if (seen >= wanted) return std::min(largest_in(bucket), max_);
    }
    return max_;
  }
  /// How many were not above `value`, to the precision of one.
  [[nodiscard]] std::uint64_t up_to(std::uint64_t value) const noexcept {
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket <= bucket_of(value); ++bucket) seen += counts_[bucket];
    return seen;
  }

 private:
  // Values below kSteps have a bucket each; above, each power of two has kSteps / 2 of its own.
  [[nodiscard]] static std::size_t bucket_of(std::uint64_t value) noexcept {
    const unsigned width = static_cast<unsigned>(std::bit_width(value));
    const unsigned shift = width > kBits ? width - kBits : 0;
    return shift * kSteps + (value >> shift);
  }
  [[nodiscard]] static std::uint64_t largest_in(std::size_t bucket) noexcept {
    const std::size_t shift = bucket / kSteps;
    return (((bucket % kSteps) + 1) << shift) - 1;
  }

  std::array<std::uint64_t, kRanges * kSteps> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace wirecall
