// Streams: relayed calls whose results come one by one. A caller says how many items it takes; its provider is told of
// no more of them than the caller's connection has room for, and of the rest as the caller takes what it has been sent.
// So a caller that does not read stops its own streams and nobody else's, and what waits for it at the broker is
// bounded whatever it has said. A provider that sends $/progress cannot be stopped: its stream ends where there is no
// room. One thread. Implements docs/wire.md "Result streams".
#pragma once

#include "broker/call_ledger.hpp"
#include "broker/context.hpp"
#include "broker/relay.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/message.hpp"

namespace wirecall::broker {

class Streams {
 public:
  /// All referred to outlive it.
  Streams(BrokerContext& context, CallLedger& calls, Relay& relay) noexcept
      : context_(&context), calls_(calls), relay_(&relay) {}

  /// rpc.item or $/progress, for a stream that `peer` was asked for; one that nobody waits for is dropped. Of an item
  /// returns whether it was for such a stream.
  bool item(const Peer& peer, const Received& message);
  void progress(const Peer& peer, const Received& message);
  /// The caller takes so many items more. Returns whether there is such a stream.
  bool grant(Peer& caller, std::string_view id_json, std::uint64_t more);
  /// The caller has taken most of what it was sent, or says nothing any more.
  void resume(Peer& caller) noexcept;

 private:
  /// What an item says: of which call it is, by its `id` or `token`, and its value; as they came, empty for none.
  struct ItemParts {
    std::string_view name;
    std::string_view value;
    bool by_token = false;  ///< it came as $/progress
  };

  [[nodiscard]] ItemParts parts_of(const Received& message, bool by_token) const;
  [[nodiscard]] SlotNumber find_asked(const Received& message, const ItemParts& parts) noexcept;
  [[nodiscard]] bool is_streaming(const Peer& provider, SlotNumber slot) noexcept;
  [[nodiscard]] bool admit_item(SlotNumber slot, std::size_t bytes, bool with_credit);
  void pass_item(SlotNumber slot, const Received& message, const ItemParts& parts);
  [[nodiscard]] std::optional<Error> item_as_json(const Received& message, Buffer& json, Received& plain);
  void append_item(Buffer& out, const RelayedCall& call, const Received& message, const ItemParts& parts);
  void pass_credit(SlotNumber slot) noexcept;
  void renew_deadline(SlotNumber slot) noexcept;

  BrokerContext* context_;
  CallLedger& calls_;
  Relay* relay_;
};

}  // namespace wirecall::broker
