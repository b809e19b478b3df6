// See exclusive_claims.hpp.
#include "cluster/exclusive_claims.hpp"

namespace wirecall::cluster {

bool admit_exclusive(NodeContext& context, const ExclusiveClaim& claim, const broker::Registration& registration) {
  const broker::Route* const route = context.router.methods().find_registered(registration.name);
  if (route == nullptr || route->policy() != broker::Policy::exclusive ||
      registration.policy != broker::Policy::exclusive)
    return true;
  std::vector<broker::Peer*> held;
  std::vector<std::pair<Node*, broker::Registration>> withheld;
  for (const auto& provider : route->providers()) {
    if (provider->ended || provider->peer == claim.claimant) continue;
    auto* const node = static_cast<Node*>(provider->at_node ? provider->peer->node : nullptr);
    const auto holder = node != nullptr ? std::pair{node->last_heartbeat().epoch, node->name()}
                                        : std::pair{context.epoch, std::string_view{context.own}};
    if (holder > std::pair{claim.epoch, claim.node}) return false;
    if (node == nullptr) {
      held.push_back(provider->peer);
      continue;
    }
    broker::Registration other;
    other.name = registration.name;
    other.policy = broker::Policy::exclusive;
    other.options = provider->options;
    other.description = route->description;
    withheld.emplace_back(node, std::move(other));
  }
  // That of a node ends there by itself, unless it does not know of the other one; here it waits for that one's end.
  for (auto& [node, other] : withheld) node->withhold(std::move(other));
  for (broker::Peer* const peer : held) {
    context.log(LogLevel::warning, "cluster: " + registration.name + ", which wants one provider, is that of node " +
                                       std::string{claim.node} + "; the other one's registration ends");
    static_cast<void>(context.router.registrar().unregister(*peer, registration.name));
  }
  return true;
}

}  // namespace wirecall::cluster
