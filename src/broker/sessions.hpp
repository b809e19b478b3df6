// Sessions: rpc.hello and rpc.kick: which client a connection is, by its name and by the secret of a session that it
// goes on with. One thread. Implements docs/broker.md "Coming back".
#pragma once

#include <string_view>

#include "broker/announcer.hpp"
#include "broker/context.hpp"
#include "broker/departures.hpp"
#include "broker/kicked_clients.hpp"
#include "broker/peer_table.hpp"
#include "broker/relay.hpp"
#include "broker/session_keys.hpp"
#include "rpc/broker.hpp"

namespace wirecall::broker {

class Sessions {
 public:
  /// All referred to outlive it.
  Sessions(BrokerContext& context, PeerTable& peers, Relay& relay, Departures& departures,
           Announcer& announcer) noexcept
      : context_(&context), peers_(&peers), relay_(&relay), departures_(&departures), announcer_(&announcer) {}

  /// A number for a connection that begins now: larger than all before.
  [[nodiscard]] std::uint64_t number() noexcept { return keys_.begin(context_->now()); }
  /// Gives the peer that name, or one like it when another has it. With the secret of a session, each empty for none,
  /// the connection that has that session is closed, and its name is the peer's. Throws Error -32004, -32007, -32602.
  rpc::HelloResult hello(Peer& peer, std::string_view name, std::string_view resume);
  /// Closes the connection of the client with that name; false when there is none.
  bool kick(const Peer& by, std::string_view name);
  /// The peer has gone, and its name with it.
  void end(Peer& peer) noexcept;

 private:
  void refuse_kicked(Peer& peer, std::string_view name, std::string_view resume);
  void take_over(Peer& peer, std::string_view name, std::string_view resume);
  void give_name(Peer& peer, std::string_view name);

  BrokerContext* context_;
  PeerTable* peers_;
  Relay* relay_;
  Departures* departures_;
  Announcer* announcer_;
  SessionKeys keys_;
  KickedClients kicked_;
};

}  // namespace wirecall::broker
