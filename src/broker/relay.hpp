// Relay: carries a call from its caller to a provider, which is asked under the number of the call's slot: the same
// bytes under another id, there and back.
//
// A relayed call ends in one of these ways: its provider answers; its time is up, it is cancelled, or its caller goes,
// and then the provider is told; its provider goes. Where a provider takes only so many calls at once, one that was
// given up counts until the provider has answered it, since it may still be at work.
// Owned by the Router. One thread. Implements docs/broker.md "What is relayed".
#pragma once

#include "broker/answers.hpp"
#include "broker/call_ledger.hpp"
#include "broker/context.hpp"
#include "broker/method_table.hpp"
#include "broker/peer_table.hpp"
#include "broker/request_writer.hpp"
#include "broker/subscription_relay.hpp"
#include "broker/tap_feed.hpp"
#include "wirecall/message.hpp"

namespace wirecall::broker {

class Relay {
 public:
  struct Parts {
    CallLedger& calls;
    RequestWriter& writer;
    Answers& answers;
    SubscriptionRelay& subscriptions;
    TapFeed& tap_feed;
  };
  /// All referred to outlive it.
  Relay(BrokerContext& context, const Parts& parts) noexcept
      : context_(&context),
        calls_(parts.calls),
        writer_(&parts.writer),
        answers_(&parts.answers),
        subscriptions_(&parts.subscriptions),
        tap_feed_(&parts.tap_feed) {}
  Relay(Relay&&) = delete;

  // To a provider: relay.cpp.

  /// The way of every relayed call: sends it to a provider of `route`, or keeps it until there is one that is free.
  void relay(Route& route, Call& call);
  /// A call in no list of a provider's goes to that one, or waits for it. Its request has been kept.
  void hand_to(Provider& provider, SlotNumber slot) noexcept;
  /// The provider may be free for a call that waits.
  void free_again(Provider& provider) noexcept;
  /// Whether the broker keeps that text for its caller; a single one it keeps however long it is.
  [[nodiscard]] bool may_keep(const Peer& caller, std::string_view text) const noexcept;
  /// Whether a further call of the caller's may wait for the provider; where that has as many as it may, the last one
  /// of the caller who has the most is refused for it, unless this one has as many.
  [[nodiscard]] bool admits_waiting(Provider& provider, const Peer& caller) noexcept;

  // Back, or not: relay_end.cpp.

  /// False when the response answers nothing that `peer` was asked.
  [[nodiscard]] bool response(Peer& peer, const Received& message);
  /// Whether the result of a response in another encoding than JSON is for a caller who speaks that.
  [[nodiscard]] bool takes_encoded(const Peer& peer, const Received& message) noexcept;
  /// Returns how many calls of the caller's had that id.
  std::size_t cancel(Peer& caller, std::string_view id_json);
  /// Answers all calls of `caller` with `error`, or, where that is null, nobody; their providers are told.
  void end_calls(Peer& caller, const Error* error) noexcept;
  /// Of the connections of the caller's account the one with the most relayed calls loses its last, unless it is this
  /// one or has hardly more. Returns whether it has.
  bool shed_call(const Peer& caller) noexcept;
  /// Of the calls of `caller` the first `kept` go on, until `until` at most; the others are answered with `error`.
  void limit_calls(Peer& caller, std::size_t kept, std::chrono::nanoseconds until, const Error& error) noexcept;
  /// Nobody waits for the call any more: its provider is told.
  void give_up(SlotNumber slot) noexcept;
  /// The same, and whoever waits for the call is told.
  void give_up(SlotNumber slot, const Error& error) noexcept;
  /// The time of the call is up.
  void run_out(SlotNumber slot) noexcept;
  /// The dispatcher of a call that a sink answers has ended it.
  void caller_ended(std::uint64_t number, const Outcome& outcome) noexcept;
  /// The call was sent to that node's peer, and has not come there.
  void not_taken(const Peer& node, std::uint64_t number) noexcept;
  /// The provider will not answer this call: it is asked of another one, where that is safe, or ends.
  void lose(SlotNumber slot) noexcept;

 private:
  [[nodiscard]] Provider* provider_for(Route& route, const Received& message, Call& call);
  void relay_as_json(Provider& provider, Route& route, Call& call, const Received& message);
  [[nodiscard]] Provider* linked_provider(Route& route, const Peer& caller);
  [[nodiscard]] RealmChoice choice_in_realm(const Peer* caller, const Provider* but = nullptr) const noexcept;
  [[nodiscard]] std::string from_of(const Provider& provider, const Peer& caller, const Received& message) const;
  [[nodiscard]] bool has_moved(const Received& response) const;
  void relay_to(Provider& provider, Route& route, Call& call, const Received& message);
  inline void notify(const Provider& provider, const Peer& caller, const Received& message);
  [[nodiscard]] bool moves_within_budget(SlotNumber slot, std::string_view text) noexcept;
  void send_kept(SlotNumber slot) noexcept;
  void fail_unsent(SlotNumber slot, const Error& error) noexcept;
  bool keep_for(Provider& provider, SlotNumber slot) noexcept;
  [[nodiscard]] SlotNumber next_for(Provider& provider) noexcept;
  inline void answered(const Provider& provider, const RelayedCall& call, bool failed) noexcept;
  void end_by(SlotNumber slot, std::chrono::nanoseconds until) noexcept;
  [[nodiscard]] bool may_have_been_asked(SlotNumber slot) noexcept;
  [[nodiscard]] bool ask_another(SlotNumber slot, bool sent) noexcept;
  [[nodiscard]] bool was_not_begun(const Received& message) noexcept;
  [[nodiscard]] bool waits_for_return(SlotNumber slot) noexcept;

  BrokerContext* context_;
  CallLedger& calls_;
  RequestWriter* writer_;
  Answers* answers_;
  SubscriptionRelay* subscriptions_;
  TapFeed* tap_feed_;
};

}  // namespace wirecall::broker
