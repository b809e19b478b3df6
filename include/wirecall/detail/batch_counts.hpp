// BatchCounts: the batches of a function, for who knows nothing else of it.
#pragma once

#include <cstdint>
#include <optional>

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

  /// Nothing where they are not counted. Any thread.
  [[nodiscard]] virtual std::optional<BatchSpreads> spreads() const = 0;
  /// Calls that wait for others leave now, as when their wait is over: no others are to be expected. Any thread.
  virtual void leave_now() noexcept = 0;
};

}  // namespace wirecall::detail
