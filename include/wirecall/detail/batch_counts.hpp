// BatchCounts: what is told of the batches of a function.
#pragma once

#include <cstdint>

namespace wirecall::detail {

/// How a number was spread, to an eighth.
struct Spread {
  std::uint64_t count = 0;
  std::uint64_t sum = 0;
  std::uint64_t p50 = 0;
  std::uint64_t p90 = 0;
  std::uint64_t p99 = 0;
  std::uint64_t max = 0;
};
/// Of a Histogram.
template <class Numbers>
[[nodiscard]] Spread spread_of(const Numbers& numbers) noexcept {
  return {.count = numbers.count(),
          .sum = numbers.sum(),
          .p50 = numbers.at(0.5),
          .p90 = numbers.at(0.9),
          .p99 = numbers.at(0.99),
          .max = numbers.max()};
}

/// Of the batches that have run.
struct BatchSpreads {
  Spread calls;  ///< in a batch
  Spread waits;  ///< for how long the first of a batch waited, ns
};

class BatchCounts {
 public:
  BatchCounts() = default;
  BatchCounts(BatchCounts&&) = delete;
  virtual ~BatchCounts() = default;

  /// Any thread.
  [[nodiscard]] virtual BatchSpreads spreads() const = 0;
};

}  // namespace wirecall::detail
