// Inventory: what there is at a broker, as rpc.methods, rpc.clients, rpc.stats, rpc.discover and /metrics tell of it.
// Owned by the Router. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "broker/context.hpp"
#include "broker/method_table.hpp"
#include "broker/peer_table.hpp"
#include "broker/report.hpp"
#include "rpc/method_counts.hpp"
#include "rpc/openrpc.hpp"

namespace wirecall::broker {

class Inventory {
 public:
  /// All referred to outlive it.
  Inventory(const BrokerContext& context, const MethodTable& methods, const PeerTable& peers)
      : context_(&context), methods_(&methods), peers_(&peers), began_(context.now()) {}

  /// All numbers but those of methods.
  [[nodiscard]] Report report() const {
    return {.uptime = uptime(), .counters = counters_ ? counters_() : context_->loop.stats};
  }
  /// Fills in the first method by name that is behind `after`, of the process's own or provided by a connection; false
  /// for none.
  [[nodiscard]] bool next_report(std::string_view after, const Principal* asker, MethodReport& method) const;
  /// The same of those that connections provide.
  [[nodiscard]] bool next_method(std::string_view after, const Principal* asker, rpc::DescribedMethod& method) const;
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept { return context_->now(); }
  [[nodiscard]] std::chrono::nanoseconds uptime() const noexcept { return now() - began_; }
  [[nodiscard]] const BrokerContext& context() const noexcept { return *context_; }
  [[nodiscard]] const MethodTable& methods() const noexcept { return *methods_; }
  [[nodiscard]] const PeerTable& peers() const noexcept { return *peers_; }

  /// Where the numbers of the whole process come from; without it, they are this loop's.
  void count_by(std::function<Stats()> counters) { counters_ = std::move(counters); }
  /// How often methods of the process's own have been called: counted by dispatchers.
  [[nodiscard]] rpc::OwnCounts& own_counts() noexcept { return own_counts_; }

 private:
  const BrokerContext* context_;
  const MethodTable* methods_;
  const PeerTable* peers_;
  const std::chrono::nanoseconds began_;
  rpc::OwnCounts own_counts_;
  std::function<Stats()> counters_;
};

}  // namespace wirecall::broker
