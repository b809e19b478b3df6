// Announcer: tells by events what the broker does: who comes and goes, what is provided. One connection may register
// thousands of methods before thousands who watch: each turn tells a share of that. One thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "broker/announcements.hpp"
#include "broker/context.hpp"
#include "broker/event_bus.hpp"
#include "broker/peer_table.hpp"
#include "broker/turn_budget.hpp"

namespace wirecall::broker {

class Announcer {
 public:
  /// All referred to outlive it.
  Announcer(const BrokerContext& context, const PeerTable& peers, Subscriptions& subscriptions, EventBus& events,
            const FanOuts& fan_outs, const TapFeed& tap_feed)
      : peers_(&peers),
        subscriptions_(&subscriptions),
        events_(&events),
        fan_outs_(&fan_outs),
        tap_feed_(&tap_feed),
        budget_(context.loop.scheduler, kSteps, [this] { tell_more(); }) {}

  /// `topic` is of static storage; `method` is empty for none.
  void announce(Peer& peer, std::string_view topic, std::string_view method = {}) noexcept;

 private:
  // Steps of a share (rpc::Share) that one turn spends; one event may take more.
  static constexpr std::size_t kSteps = 2048;

  void tell(Peer* peer, std::string_view topic, std::string_view client, std::string_view method);
  void tell_of_lost();
  void tell_more() noexcept;

  const PeerTable* peers_;
  Subscriptions* subscriptions_;
  EventBus* events_;
  const FanOuts* fan_outs_;
  const TapFeed* tap_feed_;
  Announcements waiting_;
  TurnBudget budget_;
  std::size_t cost_ = 0;  // of the last one, in steps
};

}  // namespace wirecall::broker
