// Report: what a broker tells of itself, all of it in one place: `rpc.stats` and `/metrics` are two ways to write it
// (docs/broker.md "What there is"). A value.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/histogram.hpp"
#include "wirecall/stats.hpp"

namespace wirecall::broker {

/// Calls of one registered name, since it has been registered.
struct MethodCounts {
  /// In nanoseconds, to an eighth, up to 18 minutes; in 4.6 KiB.
  using Latency = Histogram<4, 40>;

  std::uint64_t calls = 0;   ///< that were taken for a provider
  std::uint64_t errors = 0;  ///< of these, answered with an error, or given up
  Latency latency;           ///< of those a provider has answered: from the request to the response
};

struct MethodReport {
  std::string name;
  std::uint64_t calls = 0;
  std::uint64_t errors = 0;
  std::size_t providers = 0;
  std::size_t in_flight = 0;
  std::size_t waiting = 0;
  std::uint64_t answered = 0;
  std::chrono::nanoseconds sum{};  ///< of all latencies
  std::chrono::nanoseconds p50{};
  std::chrono::nanoseconds p90{};
  std::chrono::nanoseconds p99{};
  std::chrono::nanoseconds max{};
};

struct Report {
  std::chrono::nanoseconds uptime{};
  Stats counters;
  std::vector<MethodReport> methods;  ///< by name
};

/// {"uptime_ms", "counters": {…}, "methods": [{"name", "calls", "errors", "providers", "in_flight", "waiting",
/// "p50_us", "p90_us", "p99_us", "max_us"}]}
[[nodiscard]] std::string report_json(const Report& report);
/// The text format 0.0.4.
[[nodiscard]] std::string report_metrics(const Report& report);

}  // namespace wirecall::broker
