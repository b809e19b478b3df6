// Registrar: enters into the table of methods what peers provide, by rpc.register. One thread. Implements
// docs/broker.md "Registering".
#pragma once

#include "broker/announcer.hpp"
#include "broker/context.hpp"
#include "broker/departures.hpp"
#include "broker/method_table.hpp"

namespace wirecall::broker {

/// One method as rpc.register names it.
struct Registration {
  std::string name;
  Policy policy = Policy::least_inflight;
  bool policy_given = false;
  std::string hash_param;
  ProviderOptions options;
  Description description;
};

class Registrar {
 public:
  /// All referred to outlive it, and `handlers` answer the calls.
  Registrar(BrokerContext& context, const RouteHandlers& handlers, Departures& departures,
            Announcer& announcer) noexcept
      : context_(&context), handlers_(handlers), departures_(&departures), announcer_(&announcer) {}
  Registrar(Registrar&&) = delete;

  /// Those of a LinkedBroker's clients, which go to whoever registers them here. What is provided already stays.
  void register_linked(Peer& link, std::vector<Registration> registrations);
  /// All of them or none. Throws Error -32003, -32005 and -32007.
  void register_methods(Peer& peer, std::vector<Registration> registrations);
  /// Returns whether the peer had registered it. No call comes to the peer by that name any more; those that it has
  /// are still its own to answer.
  bool unregister(Peer& peer, std::string_view name);

 private:
  void require_admissible(const Peer& peer, const std::vector<Registration>& registrations) const;
  void register_one(Peer& peer, Registration one);

  BrokerContext* context_;
  const RouteHandlers handlers_;
  Departures* departures_;
  Announcer* announcer_;
};

}  // namespace wirecall::broker
