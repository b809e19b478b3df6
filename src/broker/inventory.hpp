// Inventory: what there is at a broker, as rpc.methods, rpc.clients, rpc.stats, rpc.discover and /metrics tell of it
// (docs/broker.md "Introspection"). Owned by the Router. One thread.
#pragma once

#include <functional>

#include "broker/context.hpp"
#include "rpc/method_counts.hpp"
#include "rpc/openrpc.hpp"
#include "rpc/rendering.hpp"

namespace wirecall::broker {

class Inventory {
 public:
  /// `context` outlives it.
  explicit Inventory(const BrokerContext& context) : context_(&context), began_(context.now()) {}

  // Each is written as who asks may see it, and outlived by the inventory.

  /// What rpc.methods answers: as rpc::MethodList, with those that connections provide.
  [[nodiscard]] std::unique_ptr<rpc::Rendering> list_methods(rpc::Asker asker) const;
  [[nodiscard]] std::unique_ptr<rpc::Rendering> list_clients(rpc::Asker asker) const;
  /// {"uptime_ms", "counters": {…}, "methods": [{"name", "calls", "errors", "providers", "in_flight", "waiting",
  /// "p50_us", "p90_us", "p99_us", "max_us"}]}
  [[nodiscard]] std::unique_ptr<rpc::Rendering> tell_stats(rpc::Asker asker) const;
  /// The text format 0.0.4: one family of numbers after the other, each with all methods.
  [[nodiscard]] std::unique_ptr<rpc::Rendering> tell_metrics(rpc::Asker asker) const;
  /// Fills in the first method by name that is behind `after` and provided by a connection; false for none.
  [[nodiscard]] bool next_method(std::string_view after, const Principal* asker, rpc::DescribedMethod& method) const;
  [[nodiscard]] std::chrono::nanoseconds uptime() const noexcept { return context_->now() - began_; }

  /// Where the numbers of the whole process come from; without it, they are this loop's.
  void count_by(std::function<Stats()> counters) { counters_ = std::move(counters); }
  /// How often methods of the process's own have been called: counted by dispatchers.
  [[nodiscard]] rpc::OwnCounts& own_counts() noexcept { return own_counts_; }

 private:
  class Listing;
  class MethodList;
  class ClientList;
  class StatsText;
  class MetricsText;

  const BrokerContext* context_;
  const std::chrono::nanoseconds began_;
  rpc::OwnCounts own_counts_;
  std::function<Stats()> counters_;
};

}  // namespace wirecall::broker
