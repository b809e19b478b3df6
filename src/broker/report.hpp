// Report: what a broker tells of itself, all of it in one place: `rpc.stats` and `/metrics` are two ways to write it
// (docs/broker.md "What there is"). A value.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "wirecall/stats.hpp"

namespace wirecall::broker {

struct MethodReport {
  std::string name;
  std::uint64_t calls = 0;
  std::uint64_t errors = 0;
  std::size_t providers = 0;       ///< connections; 0 for a method of the process's own
  std::size_t in_flight = 0;       ///< at a provider; of the process's own, that are being waited for
  std::size_t waiting = 0;         ///< for a provider
  std::uint64_t timed = 0;         ///< of how many calls the times are
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
