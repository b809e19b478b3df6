// See registrar.hpp.
#include "broker/registrar.hpp"

#include "base/reserve_extra.hpp"
#include "broker/linked_broker.hpp"

namespace wirecall::broker {

constexpr std::size_t kDescribedBytesMax = std::size_t{1} << 20;

// Who provides a method to subscribe by provides the one that ends it, which the broker answers.
static void add_unsubscribing(std::vector<Registration>& registrations) {
  const bool any =
      std::ranges::any_of(registrations, [](const auto& one) { return one.description.subscription.has_value(); });
  if (!any) [[likely]]
    return;
  const std::size_t count = registrations.size();
  std::unordered_map<std::string, std::size_t, SeededHash> index_of;
  for (std::size_t i = 0; i < count; ++i) index_of.emplace(registrations[i].name, i);
  for (std::size_t i = 0; i < count; ++i) {
    if (!registrations[i].description.subscription) continue;
    const std::string& name = registrations[i].description.subscription->unsubscribe;
    const auto [found, added] = index_of.emplace(name, registrations.size());
    if (added) {
      Registration one;
      one.name = name;
      registrations.push_back(std::move(one));
    }
    registrations[found->second].description.unsubscribes = true;
  }
}

// The names of notifications are kept as long as the connection.
static void require_notifications(const Peer& peer, const std::vector<Registration>& registrations, std::size_t most) {
  std::set<std::string_view> added;
  for (const Registration& one : registrations) {
    if (!one.description.subscription) continue;
    const std::string& name = one.description.subscription->notification;
    if (!peer.source || !peer.source->notifications.contains(name)) added.insert(name);
  }
  if (added.size() + (peer.source ? peer.source->notifications.size() : 0) <= most) return;
  throw limit_exceeded("this connection has declared too many notifications of subscriptions", "methods");
}

// Throws where not all of them may be.
void Registrar::require_admissible(const Peer& peer, const std::vector<Registration>& registrations) const {
  if (peer.has_ended()) throw has_ended();
  // A node brings those of many connections, each of which it has admitted.
  const bool admitted = peer.of_node;
  if (!admitted && peer.provides.size() + registrations.size() > context_->limits.methods) throw too_many_methods();
  // All are told of all of them together (rpc.methods, rpc.discover): nobody's may fill that alone.
  std::size_t described = peer.described_bytes;
  for (const Registration& one : registrations) {
    if (!admitted && !rpc::may_provide(peer.principal, one.name)) throw forbidden();
    // Callers are sent it as if it were published, under a name that may be another's topic or method.
    if (!admitted && one.description.subscription &&
        !rpc::may_publish(peer.principal, one.description.subscription->notification)) {
      throw forbidden();
    }
    if (context_->own.find(one.name) != nullptr) throw conflict("the server has a method of that name itself");
    const Route* const route = context_->methods.find_registered(one.name);
    // Whoever else is there, though it may have ended, has it under the same kind of route.
    if (route != nullptr && !route->description.is_of_kind(one.description)) {
      throw conflict(route->is_provided() ? "the method is provided otherwise: as one to subscribe by, or not"
                                          : "calls are at work of the method as it was provided before");
    }
    if (!admitted && route != nullptr && route->policy() == Policy::exclusive && !route->is_provided_here() &&
        route->is_provided_at_node())
      throw conflict("the method is provided at another node, by one which wants to be the only one");
    if (route == nullptr || !route->is_held()) {
      described += one.description.bytes();
      continue;
    }
    const bool same_policy =
        !one.policy_given || (one.policy == route->policy() && one.hash_param == route->hash_param());
    if (!same_policy) throw conflict("the method is provided under another policy");
    if (route->policy() == Policy::exclusive && route->find(peer) == nullptr)
      throw conflict("the method is provided by another connection, which wants to be the only one");
  }
  if (!admitted) require_notifications(peer, registrations, context_->limits.methods);
  if (!admitted && described > kDescribedBytesMax) {
    throw limit_exceeded("what is said of this connection's methods is more than 1 MiB together", "descriptions");
  }
}

void Registrar::register_methods(Peer& peer, std::vector<Registration> registrations) {
  add_unsubscribing(registrations);
  require_admissible(peer, registrations);
  for (Registration& one : registrations) register_one(peer, std::move(one));
}

void Registrar::register_one(Peer& peer, Registration one) {
  Route* route = context_->methods.find_registered(one.name);
  // A client that has come over takes the place of the one that it was; what another node has is no such thing.
  const bool replaces = route != nullptr && !one.options.linked && !peer.of_node;
  Provider* const linked = replaces ? route->linked() : nullptr;
  if (route != nullptr && !route->is_held()) {
    // What its last providers still have to answer ends with them; what they had agreed on does not hold.
    route->renew(one.policy, std::move(one.hash_param), std::move(one.description));
  } else if (route == nullptr) {
    route = &context_->methods.add(std::make_unique<Route>(handlers_, std::move(one.name), one.policy,
                                                           std::move(one.hash_param), std::move(one.description)));
  }
  reserve_extra(peer.provides, 1);
  const Provider* const known = route->find(peer);
  const auto& names = route->description.subscription;
  if (names && (known == nullptr || known->ended)) {
    if (!peer.source) peer.source = std::make_unique<SubscriptionSource>();
    peer.source->notifications.insert(names->notification);
    ++peer.source->unsubscribes[names->unsubscribe];
  }
  Provider& provider = route->add(peer, one.options);
  if (known == nullptr) {
    provider.index = static_cast<std::uint32_t>(peer.provides.size());
    peer.provides.push_back(&provider);
  }
  peer.took_part = true;
  announcer_->announce(peer, "rpc.method.registered", route->name());
  handlers_.relay.free_again(provider);
  if (linked == nullptr) return;
  Peer& link = *linked->peer;
  static_cast<void>(unregister(link, route->name()));
  if (link.linked != nullptr) link.linked->close_if_done();
}

void Registrar::register_linked(Peer& link, std::vector<Registration> registrations) {
  for (Registration& one : registrations) {
    const Route* const route = context_->methods.find_registered(one.name);
    const bool differs = route != nullptr && !route->description.is_of_kind(one.description);
    if (context_->own.find(one.name) != nullptr || differs || (route != nullptr && route->is_provided())) continue;
    one.options.linked = true;
    register_one(link, std::move(one));
  }
}

bool Registrar::unregister(Peer& peer, std::string_view name) {
  Route* const route = context_->methods.find_registered(name);
  Provider* const provider = route == nullptr ? nullptr : route->find(peer);
  if (provider == nullptr || provider->ended) return false;
  provider->ended = true;
  announcer_->announce(peer, "rpc.method.unregistered", name);
  if (const std::optional<SubscriptionNames> names = route->description.subscription) {
    handlers_.subscriptions.end_method(*provider);
    const auto left = peer.source->unsubscribes.find(names->unsubscribe);
    if (--left->second == 0) {
      peer.source->unsubscribes.erase(left);
      static_cast<void>(unregister(peer, names->unsubscribe));
    }
  }
  departures_->end_waiting(*provider);
  return true;
}

}  // namespace wirecall::broker
