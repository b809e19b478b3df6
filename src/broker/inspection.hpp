// What a broker tells people and tools of itself: the methods rpc.methods, rpc.clients, rpc.stats and rpc.health, and
// what those may do who look after it: rpc.kick; each as rpc::ReservedMethod::serve or ::render. Implements
// docs/broker.md "What there is".
#pragma once

#include <memory>
#include <string>

#include "broker/peer.hpp"
#include "rpc/reserved.hpp"

namespace wirecall::broker {

/// The caller, as the broker knows it.
[[nodiscard]] inline Peer& peer_of(const rpc::ReservedCall& call) { return static_cast<Peer&>(*call.broker); }

[[nodiscard]] std::shared_ptr<rpc::Rendering> list_methods(const rpc::ReservedCall& call);
[[nodiscard]] std::shared_ptr<rpc::Rendering> list_clients(const rpc::ReservedCall& call);
[[nodiscard]] std::shared_ptr<rpc::Rendering> tell_stats(const rpc::ReservedCall& call);
[[nodiscard]] std::string tell_health(const rpc::ReservedCall& call);
/// rpc.kick, for those who are admins.
[[nodiscard]] std::string kick(const rpc::ReservedCall& call);

}  // namespace wirecall::broker
