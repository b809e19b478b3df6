// See exclusive_claims.hpp.
#include "cluster/exclusive_claims.hpp"

namespace wirecall::cluster {

bool admit_exclusive(NodeContext& context, const ExclusiveClaim& claim, const broker::Registration& registration) {
  const broker::Route* const route = context.router.methods().find_registered(registration.name);
  if (route == nullptr || route->policy() != broker::Policy::exclusive ||
      registration.policy != broker::Policy::exclusive)
    return true;
  std::vector<broker::Peer*> held;
  for (const auto& provider : route->providers()) {
    if (provider->ended || provider->peer == claim.claimant) continue;
    const auto* const node = static_cast<const Node*>(provider->at_node ? provider->peer->node : nullptr);
    const auto holder = node != nullptr ? std::pair{node->last_heartbeat().epoch, node->name()}
                                        : std::pair{context.epoch, std::string_view{context.own}};
    if (holder > std::pair{claim.epoch, claim.node}) return false;
    held.push_back(provider->peer);
  }
  for (broker::Peer* const peer : held) {
    context.log(LogLevel::warning, "cluster: " + registration.name + ", which wants one provider, is that of node " +
                                       std::string{claim.node} + "; the other one's registration ends");
    static_cast<void>(context.router.registrar().unregister(*peer, registration.name));
  }
  return true;
}

}  // namespace wirecall::cluster
