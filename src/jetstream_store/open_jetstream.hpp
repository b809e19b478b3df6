// Opens the store that the brokers of a cluster share, as the options say.
#pragma once

#include <memory>

#include "durable/store.hpp"
#include "rpc/broker.hpp"
#include "wirecall/options.hpp"

namespace wirecall::jetstream_store {

/// What `durable.path` is for it.
inline constexpr std::string_view kPath = "jetstream";

/// Throws std::invalid_argument where there is no cluster.
void require_valid(const ClusterOptions& cluster);
/// `host` has a loop, and outlives it. Throws as make_nats_bus does.
[[nodiscard]] std::unique_ptr<durable::Store> open_jetstream(const DurableOptions& durable,
                                                             const ClusterOptions& cluster,
                                                             const rpc::BrokerHost& host);

}  // namespace wirecall::jetstream_store
