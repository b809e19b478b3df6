// Inputs: relayed calls that bring a stream towards their handler. The provider says how many items it takes, and the
// caller is told of no more of them than the provider's connection has room for: so a provider that does not read stops
// its own callers' streams and nobody else's. Items go on as they came but for the id. One thread. Implements
// docs/wire.md "Streams towards a handler".
#pragma once

#include "broker/call_ledger.hpp"
#include "broker/context.hpp"
#include "broker/relay.hpp"
#include "wirecall/message.hpp"

namespace wirecall::broker {

class Inputs {
 public:
  /// All referred to outlive it.
  Inputs(BrokerContext& context, CallLedger& calls, Relay& relay) noexcept
      : context_(&context), calls_(calls), relay_(&relay) {}

  /// rpc.item, for a relayed call of `caller`; false where it is of none.
  bool item(Peer& caller, const Received& message);
  /// The provider takes so many items more of a call that it was asked for by that id; false where there is none.
  bool grant(const Peer& provider, std::string_view id_json, std::uint64_t more);
  /// The caller says nothing any more: calls whose stream it has not ended fail.
  void caller_ended(Peer& caller) noexcept;
  /// The provider has taken most of what it was sent.
  void resume(const Peer& provider) noexcept;

 private:
  [[nodiscard]] SlotNumber find_of(Peer& caller, const Received& message, std::string_view id);
  void pass_item(SlotNumber slot, const Received& message, std::string_view id);
  void pass_credit(SlotNumber slot) noexcept;
  void renew_deadline(SlotNumber slot) noexcept;

  BrokerContext* context_;
  CallLedger& calls_;
  Relay* relay_;
};

}  // namespace wirecall::broker
