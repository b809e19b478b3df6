// Answers: bring the outcome of a relayed call to who waits for it: a caller with a connection, a sink of the
// dispatcher's, or the results of an rpc.call_all. One thread.
#pragma once

#include "broker/call_ledger.hpp"
#include "broker/context.hpp"
#include "broker/subscription_relay.hpp"
#include "broker/tap_feed.hpp"
#include "wirecall/message.hpp"

namespace wirecall::broker {

/// Whether the message is larger than `bytes_max` with another id, of so many bytes of JSON. In Protocol Buffers its
/// own id, as JSON, may be longer than the whole message.
[[nodiscard]] inline bool is_too_large_with_id(const Received& message, std::size_t id_bytes,
                                               std::size_t bytes_max) noexcept {
  return message.text.size() + id_bytes > bytes_max + message.id().size();
}

class Answers {
 public:
  /// All referred to outlive it.
  Answers(BrokerContext& context, CallLedger& calls, SubscriptionRelay& subscriptions, TapFeed& tap_feed) noexcept
      : context_(&context), calls_(calls), subscriptions_(&subscriptions), tap_feed_(&tap_feed) {}

  /// The call ends with the response of `provider`, on whose account it is no more.
  void deliver(SlotNumber slot, const Received& message, Provider& provider);
  /// The call ends with `error`, and nobody is at work on it any more.
  void fail(SlotNumber slot, const Error& error) noexcept;
  /// Tells a caller that has a connection; the call is where it was.
  void tell(SlotNumber slot, const Error& error) noexcept;
  /// Whether the response with the caller's own id is larger than a message may be.
  [[nodiscard]] bool is_too_large(const RelayedCall& call, const Received& message) const noexcept {
    return is_too_large_with_id(message, call.id_bytes, context_->limits.max_message_size);
  }
  void log_failure(SlotNumber slot, const Error& error) noexcept;

 private:
  void deliver_to_sink(SlotNumber slot, const Received& message, const Provider& provider);
  void set_outcomes_of(std::string_view node, const CallAllEntry& of, std::string_view array) noexcept;

  BrokerContext* context_;
  CallLedger& calls_;
  SubscriptionRelay* subscriptions_;
  TapFeed* tap_feed_;
};

}  // namespace wirecall::broker
