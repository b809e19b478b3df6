// How one peer is sent an event, or the event is counted among those that the peer has lost. One that takes too little
// loses events, and learns how many once it has taken most of what waits for it. One thread.
#pragma once

#include "broker/context.hpp"
#include "rpc/event_text.hpp"
#include "wirecall/bytes.hpp"

namespace wirecall::broker {

/// `retained`: the number under which its topic retains the event; 0 for none. Returns whether it has been sent, or
/// will be. One that is still being sent what is retained has events kept for a while.
bool send_event(const BrokerContext& context, Peer& peer, std::string_view topic, rpc::EventText& event,
                std::uint64_t retained = 0);
/// What a topic retains, as it was published.
void send_retained_event(const BrokerContext& context, Peer& peer, std::string_view topic, std::string_view kept);
void send_held_event(const BrokerContext& context, Peer& peer, const HeldEvent& held);
/// The peer loses an event; `retained`: its topic retains it.
void drop_event(const BrokerContext& context, Peer& peer, std::string_view topic, bool retained = false);
/// The same where too much waits for its principal's connections, which are not its own alone: so nothing may come by
/// which it would be told later.
void drop_for_budget(const BrokerContext& context, Peer& peer, std::string_view topic, bool retained = false);
/// The peer has lost so many, and is told later.
void count_lag(Peer& peer, std::string_view topic, std::uint64_t count);
/// Tells it what it has lost, if anything.
void tell_lag(Peer& peer);
/// By which a subscriber is told what it has lost.
[[nodiscard]] Buffer lagged(std::string_view topic, std::uint64_t count);

}  // namespace wirecall::broker
