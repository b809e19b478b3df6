// SubscriptionRelay: subscriptions to methods which providers have declared so: ids are mapped between caller and
// provider, events go to that caller alone, and whoever goes ends what the other side has. One thread. Implements
// docs/broker.md "Subscriptions to a method".
#pragma once

#include <deque>

#include "broker/call_ledger.hpp"
#include "broker/context.hpp"
#include "broker/event_delivery.hpp"
#include "broker/method_subscriptions.hpp"
#include "broker/request_writer.hpp"
#include "broker/tap_feed.hpp"
#include "broker/turn_budget.hpp"
#include "rpc/reserved_params.hpp"
#include "wirecall/message.hpp"

namespace wirecall::broker {

class SubscriptionRelay {
 public:
  /// All referred to outlive it.
  SubscriptionRelay(BrokerContext& context, CallLedger& calls, RequestWriter& writer, TapFeed& tap_feed)
      : context_(&context),
        calls_(calls),
        writer_(&writer),
        tap_feed_(&tap_feed),
        budget_(context.loop.scheduler, kEndedATurn, [this] { end_more(); }) {}

  /// Whether a call that subscribes may be relayed; one that may not has been answered.
  [[nodiscard]] bool has_room(const Route& route, Call& call);
  /// The provider has answered such a call with a result.
  void begin(SlotNumber slot, const Received& message, Provider& provider);
  /// Such a call was given up before the provider answered: what that has begun for it ends.
  void end_unwanted(const Provider& provider, const Received& message) noexcept;
  /// A call that unsubscribes, which the broker answers.
  void unsubscribe(const Route& route, Call& call);
  /// Whether the response, which answers no call, is to what a provider was told when a subscription had ended.
  [[nodiscard]] static bool unsubscribed(Peer& provider, const Received& message) noexcept;
  /// A notification of a peer that has declared such methods. False where it is none of their events, of whichever
  /// subscription.
  [[nodiscard]] bool event(Peer& provider, std::string_view name, const Received& message);
  /// The provider provides the method no more.
  void end_method(Provider& provider) noexcept;
  /// As a caller; and the peer is told no more as a provider, whose methods end by themselves.
  void end_all_of(Peer& peer) noexcept;

 private:
  static constexpr std::size_t kEndedATurn = 128;

  void send_unsubscribe(const Peer& provider, std::string_view method, std::string_view provider_id,
                        std::string_view principal = {});
  MethodSubscription take_out(MethodSubscription& subscription) noexcept;
  [[nodiscard]] std::optional<rpc::RawValue> subscription_in(EncodedText params);
  bool send_event(const MethodSubscription& subscription, EncodedText params, std::string_view id);
  void keep_early_event(SubscriptionSource& source, EarlyEvent event);
  void send_early_events(SubscriptionSource& source, const MethodSubscription& subscription);
  void lose(MethodSubscription& subscription) noexcept;
  void tell_of_lost(const MethodSubscription& lost) noexcept;
  void end(EndedSubscriptions ended) noexcept;
  [[nodiscard]] bool end_some(const EndedSubscriptions& ended, std::size_t& steps) noexcept;
  void end_more() noexcept;

  BrokerContext* context_;
  CallLedger& calls_;
  RequestWriter* writer_;
  TapFeed* tap_feed_;
  MethodSubscriptions table_;
  std::deque<EndedSubscriptions> ended_;  // that are ended in later turns
  TurnBudget budget_;
};

}  // namespace wirecall::broker
