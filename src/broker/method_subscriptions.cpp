// See method_subscriptions.hpp.
#include "broker/method_subscriptions.hpp"

namespace wirecall::broker {

MethodSubscription* MethodSubscriptions::add(MethodSubscription subscription) {
  auto owned = std::make_unique<MethodSubscription>(std::move(subscription));
  MethodSubscription* const added = owned.get();
  const auto place = by_provider_.emplace(Key{added->provider, added->provider_id}, added);
  if (!place.second) return nullptr;
  try {
    by_caller_.emplace(Key{added->caller, added->id}, std::move(owned));
  } catch (...) {
    by_provider_.erase(place.first);
    throw;
  }
  return added;
}

MethodSubscription MethodSubscriptions::remove(MethodSubscription& subscription) {
  by_provider_.erase(Key{subscription.provider, subscription.provider_id});
  const auto node = by_caller_.extract(Key{subscription.caller, subscription.id});
  return std::move(*node.mapped());
}

MethodSubscription* MethodSubscriptions::find_of_caller(const Peer& caller, std::string_view id) noexcept {
  const auto found = by_caller_.find(Key{&caller, id});
  return found == by_caller_.end() ? nullptr : found->second.get();
}

MethodSubscription* MethodSubscriptions::find_of_provider(const Peer& provider, std::string_view provider_id) noexcept {
  const auto found = by_provider_.find(Key{&provider, provider_id});
  return found == by_provider_.end() ? nullptr : found->second;
}

MethodSubscription* MethodSubscriptions::any_of_caller(const Peer& caller) noexcept {
  const auto found = by_caller_.lower_bound(Key{&caller, {}});
  return found == by_caller_.end() || found->first.first != &caller ? nullptr : found->second.get();
}

MethodSubscription* MethodSubscriptions::any_of_provider(const Peer& provider) noexcept {
  const auto found = by_provider_.lower_bound(Key{&provider, {}});
  return found == by_provider_.end() || found->first.first != &provider ? nullptr : found->second;
}

MethodSubscription* MethodSubscriptions::any_by(const Peer& provider, std::string_view subscribe) noexcept {
  for (auto at = by_provider_.lower_bound(Key{&provider, {}}); at != by_provider_.end(); ++at) {
    if (at->first.first != &provider) return nullptr;
    if (at->second->names.subscribe == subscribe) return at->second;
  }
  return nullptr;
}

}  // namespace wirecall::broker
