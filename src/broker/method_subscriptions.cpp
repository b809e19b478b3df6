// See method_subscriptions.hpp.
#include "broker/method_subscriptions.hpp"

namespace wirecall::broker {

void SubscriptionSource::begin_unsubscribing(std::string_view provider_id) {
  if (unsubscribes_sent_.size() == kUnsubscribingMax) end_unsubscribing();
  unsubscribes_sent_.emplace_back(provider_id);
  ++unsubscribing_[unsubscribes_sent_.back()];
}

void SubscriptionSource::end_unsubscribing() noexcept {
  if (unsubscribes_sent_.empty()) return;
  const auto found = unsubscribing_.find(unsubscribes_sent_.front());
  if (found != unsubscribing_.end() && --found->second == 0) unsubscribing_.erase(found);
  unsubscribes_sent_.pop_front();
}

bool SubscriptionSource::is_unsubscribing(std::string_view provider_id) const noexcept {
  return unsubscribing_.contains(provider_id);
}

void SubscriptionSource::lose_early(std::string_view notification, std::string_view provider_id) {
  EarlySubscription lost{notification, provider_id};
  const auto known = early_losses_.find(lost);
  if (known != early_losses_.end()) {
    ++known->second;
    return;
  }
  const std::size_t bytes = bytes_of(lost);
  if (early_losses_bytes_ + bytes > kEarlyBytesMax) return;
  early_losses_.emplace(std::move(lost), 1);
  early_losses_bytes_ += bytes;
}

std::uint64_t SubscriptionSource::take_early_losses(const std::string& notification, const std::string& provider_id) {
  if (early_losses_.empty()) return 0;
  const auto node = early_losses_.extract({notification, provider_id});
  if (node.empty()) return 0;
  early_losses_bytes_ -= bytes_of(node.key());
  return node.mapped();
}

std::size_t SubscriptionSource::drop_unwanted() noexcept {
  if (asked != 0) return 0;
  const std::size_t count = early.size();
  early.clear();
  early_bytes = 0;
  early_losses_.clear();
  early_losses_bytes_ = 0;
  return count;
}

MethodSubscription* MethodSubscriptions::add(MethodSubscription subscription) {
  auto owned = std::make_unique<MethodSubscription>(std::move(subscription));
  MethodSubscription* const added = owned.get();
  const auto inserted = by_provider_.emplace(Key{added->method->provider.get(), added->provider_id}, added);
  if (!inserted.second) return nullptr;
  auto of_method = by_method_.end();
  try {
    of_method = by_method_.emplace(added->method.get(), added).first;
    by_caller_.emplace(Key{added->caller.get(), added->id}, std::move(owned));
  } catch (...) {
    by_provider_.erase(inserted.first);
    if (of_method != by_method_.end()) by_method_.erase(of_method);
    throw;
  }
  return added;
}

MethodSubscription MethodSubscriptions::remove(MethodSubscription& subscription) {
  by_provider_.erase(Key{subscription.method->provider.get(), subscription.provider_id});
  by_method_.erase({subscription.method.get(), &subscription});
  const auto node = by_caller_.extract(Key{subscription.caller.get(), subscription.id});
  return std::move(*node.mapped());
}

MethodSubscription* MethodSubscriptions::find_of_caller(const SubscriptionPeer& caller, std::string_view id) noexcept {
  const auto found = by_caller_.find(Key{&caller, id});
  return found == by_caller_.end() ? nullptr : found->second.get();
}

MethodSubscription* MethodSubscriptions::find_of_provider(const SubscriptionPeer& provider,
                                                          std::string_view provider_id) noexcept {
  const auto found = by_provider_.find(Key{&provider, provider_id});
  return found == by_provider_.end() ? nullptr : found->second;
}

MethodSubscription* MethodSubscriptions::any_of(const EndedSubscriptions& ended) noexcept {
  if (ended.method != nullptr) {
    const auto found = by_method_.lower_bound({ended.method.get(), nullptr});
    return found == by_method_.end() || found->first != ended.method.get() ? nullptr : found->second;
  }
  const auto found = by_caller_.lower_bound(Key{ended.caller.get(), {}});
  return found == by_caller_.end() || found->first.first != ended.caller.get() ? nullptr : found->second.get();
}

}  // namespace wirecall::broker
