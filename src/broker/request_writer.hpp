// RequestWriter: writes requests and notifications to providers: as they came but for the id, the time that is left,
// and what says for whom they are and whose; one that has been kept is read anew. Requests in another encoding go on as
// they came to who speaks it, and as JSON to others. One thread. Implements docs/broker.md "What is relayed".
#pragma once

#include "broker/call_ledger.hpp"
#include "broker/context.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/message.hpp"

namespace wirecall::broker {

class RequestWriter {
 public:
  /// All referred to outlive it.
  RequestWriter(BrokerContext& context, CallLedger& calls) noexcept : context_(&context), calls_(calls) {}

  /// Sends its provider a call that is in no list of its, and enters it there. `from` is as BrokerContext::from_of says
  /// it. `caller` is needed where the provider is at another node. Throws std::bad_alloc, and nothing has been sent
  /// then.
  void send(SlotNumber slot, const Received& message, const Peer* caller, std::string_view from);
  /// The same of one of rpc.call_all.
  void send_to_all(SlotNumber slot, const Peer* caller);
  void notify(const Provider& provider, const Received& message, const Peer& caller, std::string_view from);

  /// What a request in another encoding is in JSON, as which it goes on; or why it does not. `message` views `json`.
  [[nodiscard]] std::optional<Error> read_as_json(EncodedText request, Buffer& json, Received& message);
  /// A request that has been kept: one in the encoding `wanted` as it is, else in JSON. `message` views both texts.
  [[nodiscard]] std::optional<Error> read_kept(std::string_view text, Encoding wanted, Buffer& read, Received& message);

 private:
  [[nodiscard]] std::chrono::milliseconds time_for(const RelayedCall& call) noexcept;
  void begin_at_node(SlotNumber slot, const Received& message, const Peer& caller) noexcept;
  void send_encoded(SlotNumber slot, const Received& message, std::string_view from);
  inline void sent(SlotNumber slot);

  BrokerContext* context_;
  CallLedger& calls_;
};

/// Whether a request of so many bytes may be sent to the provider besides what waits for those of its principal.
[[nodiscard]] inline bool has_budget(const Provider& provider, std::size_t bytes) {
  return bytes <= rpc::kBytesUnasked || provider.peer->sink().has_budget_for(bytes);
}

}  // namespace wirecall::broker
