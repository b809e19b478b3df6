// Departures: what a peer leaves behind that says nothing any more, or has gone: its registrations, its subscriptions,
// the calls that it has made, and those that it was asked, end, so many in a turn. Its subscriptions to methods end in
// turns of SubscriptionRelay's; neither waits for the other, and none promises which goes on first. One thread.
#pragma once

#include <deque>

#include "broker/announcer.hpp"
#include "broker/context.hpp"
#include "broker/inputs.hpp"
#include "broker/relay.hpp"
#include "broker/retained_sender.hpp"
#include "broker/streams.hpp"
#include "broker/subscription_relay.hpp"
#include "broker/turn_budget.hpp"

namespace wirecall::broker {

class Departures {
 public:
  struct Parts {
    BrokerContext& context;
    SubscriptionRelay& subscriptions;
    CallLedger& calls;
    Relay& relay;
    Streams& streams;
    Inputs& inputs;
    TapFeed& tap_feed;
    Announcer& announcer;
  };
  /// All referred to outlive it.
  explicit Departures(const Parts& parts)
      : parts_(parts), budget_(parts.context.loop.scheduler, kCallsATurn, [this] { end_more(); }) {}
  Departures(Departures&&) = delete;

  /// The peer says nothing any more: it subscribes to nothing and provides nothing, and what it was asked ends, or is
  /// asked elsewhere, in this turn and, where that is much, in later ones.
  void end_peer(Peer& peer) noexcept;
  /// The same of the calls of one that has ended. One whose connection has gone is destroyed with the last of them.
  void end_calls_of(Peer& peer) noexcept;
  /// The same of the calls that wait for a provider which has unregistered. It goes with the last one that it has.
  void end_waiting(Provider& provider) noexcept;
  /// The connections of all peers have gone: what is left ends now.
  void end_all() noexcept;

 private:
  static constexpr std::size_t kCallsATurn = 256;  // short ones, for which few providers are looked at

  // Calls that are to be ended: all that a peer leaves undone, or those that wait for a provider which has
  // unregistered.
  struct EndedCalls {
    Peer* peer;                           // null for a provider's
    std::shared_ptr<Provider*> provider;  // null for a peer's; where it points to null, the provider has gone
  };

  [[nodiscard]] bool end_some(Peer& peer, std::size_t& steps) noexcept;
  [[nodiscard]] bool lose_some(Provider& provider, bool sent_too, std::size_t& steps) noexcept;
  [[nodiscard]] std::size_t steps_to_lose(SlotNumber slot) noexcept;
  [[nodiscard]] bool end_first() noexcept;
  void end_more() noexcept;

  const Parts parts_;
  std::deque<EndedCalls> queue_;  // in later turns; it owns the peers among them that have left
  TurnBudget budget_;
};

}  // namespace wirecall::broker
