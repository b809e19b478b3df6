// MethodSubscriptions: the subscriptions of callers to methods that providers have declared so (rpc.register with
// `subscription`): for each by which id its caller knows it, and by which its provider does. The two are never the same
// text, so that ids of two providers do not collide, and each is found by its own side alone.
// A side that has gone is known until each of its subscriptions has been ended, which may take several turns.
// Owned by the router. One thread. Pure.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>

#include "rpc/peer_calls.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::broker {

class Peer;

/// A connection as its subscriptions know it.
struct SubscriptionPeer {
  Peer* peer;  ///< null once it has ended its side
};

/// A method that subscribes, at one provider, from its registration until it is unregistered or the provider goes.
struct SubscriptionMethod {
  std::shared_ptr<const SubscriptionPeer> provider;
  SubscriptionNames names;
  bool ended = false;
};

struct MethodSubscription {
  std::string id;           ///< the caller's
  std::string provider_id;  ///< the provider's, as JSON text: a number as sent, a string as to_json writes it
  std::string principal;  ///< the caller's, where the provider is another node; empty where nobody has to authenticate
  std::shared_ptr<const SubscriptionPeer> caller;
  std::shared_ptr<const SubscriptionMethod> method;
  std::shared_ptr<rpc::CallerLink> link;  ///< of the call that has subscribed
};

/// Subscriptions that are to be ended: all of a caller, or all of a method. One of the two is null.
struct EndedSubscriptions {
  std::shared_ptr<const SubscriptionPeer> caller;
  std::shared_ptr<const SubscriptionMethod> method;
};

/// An event that came before the answer which begins its subscription.
struct EarlyEvent {
  std::string notification;  ///< its method
  std::string provider_id;   ///< in the form of MethodSubscription
  std::string params;        ///< as they came
  Encoding encoding;         ///< of these
  std::size_t id_at;         ///< where among them the id stands
  std::size_t id_bytes;

  [[nodiscard]] std::size_t bytes() const noexcept {
    return sizeof(EarlyEvent) + notification.size() + provider_id.size() + params.size();
  }
};

/// What is kept of a connection that has declared methods to subscribe by.
struct SubscriptionSource {
  /// Bytes of early events, and bytes of the counts of those that are lost beyond.
  static constexpr std::size_t kEarlyBytesMax = 64 * 1024;

  std::shared_ptr<SubscriptionPeer> side;
  /// Names of notifications, as long as the connection is there: they are no topics of its own.
  std::set<std::string, std::less<>> notifications;
  /// How many of the methods that it provides are ended by each name.
  std::map<std::string, std::uint32_t, std::less<>> unsubscribes;
  std::uint32_t asked = 0;  ///< calls that subscribe and that it has not answered
  std::deque<EarlyEvent> early;
  std::size_t early_bytes = 0;

  /// Counts an early event that is dropped, for the subscription whose it is; where there is memory for the count.
  void lose_early(std::string_view notification, std::string_view provider_id);
  /// How many that subscription, which begins, has lost. They are counted no longer.
  [[nodiscard]] std::uint64_t take_early_losses(const std::string& notification, const std::string& provider_id);
  /// Forgets early events, and the counts of those that are lost, where no further subscription begins for now: those
  /// that were meant have been refused, or given up. Returns how many events there were.
  std::size_t drop_unwanted() noexcept;

  /// Between an unsubscribe and its answer the id is that of a subscription that has ended.
  void begin_unsubscribing(std::string_view provider_id);
  void end_unsubscribing() noexcept;
  [[nodiscard]] bool is_unsubscribing(std::string_view provider_id) const noexcept;

 private:
  /// Unsubscribes that wait for their answer; of more the first ones are taken as answered.
  static constexpr std::size_t kUnsubscribingMax = 4096;

  using EarlySubscription = std::pair<std::string, std::string>;  // its notification and the provider's id
  [[nodiscard]] static std::size_t bytes_of(const EarlySubscription& subscription) noexcept {
    return sizeof(EarlySubscription) + subscription.first.size() + subscription.second.size();
  }

  std::map<EarlySubscription, std::uint64_t> early_losses_;
  std::size_t early_losses_bytes_ = 0;
  std::map<std::string, std::uint32_t, std::less<>> unsubscribing_;  // how often
  std::deque<std::string> unsubscribes_sent_;                        // in the order of their answers
};

class MethodSubscriptions {
 public:
  /// Null, and nothing has changed, where the provider has one of that id already.
  MethodSubscription* add(MethodSubscription subscription);
  /// Takes it out.
  MethodSubscription remove(MethodSubscription& subscription);
  [[nodiscard]] MethodSubscription* find_of_caller(const SubscriptionPeer& caller, std::string_view id) noexcept;
  [[nodiscard]] MethodSubscription* find_of_provider(const SubscriptionPeer& provider,
                                                     std::string_view provider_id) noexcept;
  /// Any one of them; null for none.
  [[nodiscard]] MethodSubscription* any_of(const EndedSubscriptions& ended) noexcept;

 private:
  using Key = std::pair<const SubscriptionPeer*, std::string_view>;

  std::map<Key, std::unique_ptr<MethodSubscription>> by_caller_;  // the views are into the values
  std::map<Key, MethodSubscription*> by_provider_;
  std::set<std::pair<const SubscriptionMethod*, MethodSubscription*>> by_method_;
};

}  // namespace wirecall::broker
