#include "cli/load/histogram.hpp"

#include <fmt/core.h>

namespace wirecall::cli {

std::string hdr(const Histogram& histogram) {
  constexpr int kPointsAHalving = 5;
  constexpr double kMicrosecond = 1000;
  std::string text =
      fmt::format("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
  const auto line = [&](std::uint64_t ns, double quantile, std::uint64_t count) {
    text += fmt::format("{:12.3f} {:2.12f} {:10}", static_cast<double>(ns) / kMicrosecond, quantile, count);
    text += quantile < 1 ? fmt::format(" {:14.2f}\n", 1 / (1 - quantile)) : "\n";
  };
  // Each halving of what is left to 100 % has as many points as the one before.
  for (double quantile = 0; (1 - quantile) * static_cast<double>(histogram.count()) >= 1;) {
    const std::uint64_t value = histogram.at(quantile);
    line(value, quantile, histogram.up_to(value));
    const double halvings = std::floor(std::log2(1 / (1 - quantile)));
    quantile += 1 / (kPointsAHalving * std::exp2(halvings + 1));
  }
  if (histogram.count() != 0) line(histogram.max(), 1, histogram.count());
  text += fmt::format("#[Mean    = {:12.3f}, StdDeviation   = {:12.3f}]\n", histogram.mean() / kMicrosecond,
                      histogram.deviation() / kMicrosecond);
  text += fmt::format("#[Max     = {:12.3f}, Total count    = {:12}]\n",
                      static_cast<double>(histogram.max()) / kMicrosecond, histogram.count());
  text += fmt::format("#[Buckets = {:12}, SubBuckets     = {:12}]\n", Histogram::kRanges, Histogram::kSteps);
  return text;
}

}  // namespace wirecall::cli
