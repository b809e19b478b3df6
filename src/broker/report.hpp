// Report: what a broker tells of itself, all of it in one place: `rpc.stats` and `/metrics` are two ways to write it
// (docs/broker.md "What there is"), method by method.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "rpc/rendering.hpp"
#include "wirecall/stats.hpp"

namespace wirecall::broker {

class Inventory;

struct MethodReport {
  std::string name;
  std::uint64_t calls = 0;
  std::uint64_t errors = 0;
  std::size_t providers = 0;       ///< connections; 1 for a method of the process's own
  std::size_t in_flight = 0;       ///< at a provider; of the process's own, that are being waited for
  std::size_t waiting = 0;         ///< for a provider
  std::uint64_t timed = 0;         ///< of how many calls the times are
  std::chrono::nanoseconds sum{};  ///< of all latencies
  std::chrono::nanoseconds p50{};
  std::chrono::nanoseconds p90{};
  std::chrono::nanoseconds p99{};
  std::chrono::nanoseconds max{};
  bool hidden = false;  ///< from who asks: only the name is filled in
};

struct Report {
  std::chrono::nanoseconds uptime{};
  Stats counters;
};

/// {"uptime_ms", "counters": {…}, "methods": [{"name", "calls", "errors", "providers", "in_flight", "waiting",
/// "p50_us", "p90_us", "p99_us", "max_us"}]}
class StatsText final : public rpc::Rendering {
 public:
  StatsText(const Inventory& inventory, rpc::Asker asker);

 private:
  bool write_piece() override;

  const Inventory* inventory_;
  const rpc::Asker asker_;
  std::string after_;
  bool any_ = false;
};

/// The text format 0.0.4: one family of numbers after the other, each with all methods.
class MetricsText final : public rpc::Rendering {
 public:
  MetricsText(const Inventory& inventory, rpc::Asker asker);

 private:
  bool write_piece() override;
  void write_family();
  void write_samples(const MethodReport& method);

  const Inventory* inventory_;
  const rpc::Asker asker_;
  std::size_t family_ = 0;
  std::string after_;   // of the family
  bool begun_ = false;  // the family, by its first method
};

}  // namespace wirecall::broker
