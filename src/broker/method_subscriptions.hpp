// MethodSubscriptions: the subscriptions of callers to methods that providers have declared so (rpc.register with
// `subscription`): for each by which id its caller knows it, and by which its provider does. The two are never the same
// text, so that ids of two providers do not collide, and each is found by its own side alone.
// Owned by the exchange. One thread. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "rpc/peer_calls.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::broker {

class Peer;

struct MethodSubscription {
  std::string id;           ///< the caller's
  std::string provider_id;  ///< the provider's, as JSON text: a number as sent, a string as to_json writes it
  Peer* caller;
  Peer* provider;
  SubscriptionNames names;
  std::shared_ptr<rpc::CallerLink> link;  ///< of the call that has subscribed
};

class MethodSubscriptions {
 public:
  /// Null, and nothing has changed, where the provider has one of that id already.
  MethodSubscription* add(MethodSubscription subscription);
  /// Takes it out.
  MethodSubscription remove(MethodSubscription& subscription);
  [[nodiscard]] MethodSubscription* find_of_caller(const Peer& caller, std::string_view id) noexcept;
  [[nodiscard]] MethodSubscription* find_of_provider(const Peer& provider, std::string_view provider_id) noexcept;
  /// Any one of that side's; null for none.
  [[nodiscard]] MethodSubscription* any_of_caller(const Peer& caller) noexcept;
  [[nodiscard]] MethodSubscription* any_of_provider(const Peer& provider) noexcept;
  /// One of the provider's by that method; null for none.
  [[nodiscard]] MethodSubscription* any_by(const Peer& provider, std::string_view subscribe) noexcept;

 private:
  using Key = std::pair<const Peer*, std::string_view>;

  std::map<Key, std::unique_ptr<MethodSubscription>> by_caller_;  // the views are into the values
  std::map<Key, MethodSubscription*> by_provider_;
};

}  // namespace wirecall::broker
