// BrokerStats: what rpc.stats answers, read. Counters are by name, and those within others by both: errors.timeout. A
// value.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wirecall::cli {

struct MethodStats {
  std::string name;
  double calls = 0;
  double errors = 0;
  double providers = 0;
  double in_flight = 0;
  double waiting = 0;
  double p50_us = 0;
  double p90_us = 0;
  double p99_us = 0;
  double max_us = 0;
  double batches = 0;
  double calls_in_batch = 0;  ///< on average
};

struct BrokerStats {
  std::chrono::milliseconds uptime{0};
  std::vector<std::pair<std::string, double>> counters;
  std::vector<MethodStats> methods;

  /// What is not in the JSON text is none.
  [[nodiscard]] static BrokerStats parse(std::string_view json);
  /// 0 for one that is not there.
  [[nodiscard]] double counter(std::string_view name) const noexcept;
  /// Of all kinds.
  [[nodiscard]] double errors() const noexcept;
};

/// A time of the method in microseconds, as text; "-" where no call of it has ended.
[[nodiscard]] std::string latency_text(double us, const MethodStats& method);
/// Whether any of them is called once for many calls.
[[nodiscard]] bool any_is_batched(const std::vector<MethodStats>& methods) noexcept;
/// How many calls a batch of the method has on average, as text; "-" where it has had none.
[[nodiscard]] std::string calls_in_batch_text(const MethodStats& method);
/// Whether the counter is of one kind of errors.
[[nodiscard]] bool is_error_counter(std::string_view name) noexcept;

}  // namespace wirecall::cli
