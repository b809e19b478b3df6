#include "cli/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <numeric>

namespace wirecall::cli {

double Histogram::mean() const noexcept {
  return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
}

std::uint64_t Histogram::at(double quantile) const noexcept {
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

std::uint64_t Histogram::up_to(std::uint64_t ns) const noexcept {
  const auto end = counts_.begin() + static_cast<std::ptrdiff_t>(bucket_of(ns) + 1);
  return std::accumulate(counts_.begin(), end, std::uint64_t{0});
}

std::string Histogram::hdr() const {
  constexpr int kPointsAHalving = 5;
  constexpr double kMicrosecond = 1000;
  std::string text =
      fmt::format("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
  const auto line = [&](std::uint64_t ns, double quantile, std::uint64_t count) {
    text += fmt::format("{:12.3f} {:2.12f} {:10}", static_cast<double>(ns) / kMicrosecond, quantile, count);
    text += quantile < 1 ? fmt::format(" {:14.2f}\n", 1 / (1 - quantile)) : "\n";
  };
  // Each halving of what is left to 100 % has as many points as the one before.
  for (double quantile = 0; (1 - quantile) * static_cast<double>(count_) >= 1;) {
    const std::uint64_t value = at(quantile);
    line(value, quantile, up_to(value));
    const double halvings = std::floor(std::log2(1 / (1 - quantile)));
    quantile += 1 / (kPointsAHalving * std::exp2(halvings + 1));
  }
  if (count_ != 0) line(max_, 1, count_);
  double squares = 0;
  for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
    const double off = static_cast<double>(std::min(largest_in(bucket), max_)) - mean();
    squares += off * off * static_cast<double>(counts_[bucket]);
  }
  const double deviation = count_ == 0 ? 0 : std::sqrt(squares / static_cast<double>(count_));
  text += fmt::format("#[Mean    = {:12.3f}, StdDeviation   = {:12.3f}]\n", mean() / kMicrosecond,
                      deviation / kMicrosecond);
  text +=
      fmt::format("#[Max     = {:12.3f}, Total count    = {:12}]\n", static_cast<double>(max_) / kMicrosecond, count_);
  text += fmt::format("#[Buckets = {:12}, SubBuckets     = {:12}]\n", 64 - kBits + 1, kSteps);
  return text;
}

}  // namespace wirecall::cli
