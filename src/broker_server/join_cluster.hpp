// What makes a broker one of several: its router joins the cluster that the options name.
#pragma once

#include "broker/router.hpp"
#include "rpc/broker.hpp"
#include "wirecall/options.hpp"

namespace wirecall::net {

/// Throws std::invalid_argument for options that cannot be.
void require_valid_cluster(const ClusterOptions& options);
/// The router joins. `host` has a loop, and outlives it. Throws as make_nats_bus does.
void join_cluster(broker::Router& router, const rpc::BrokerHost& host, const ClusterOptions& options);

}  // namespace wirecall::net
