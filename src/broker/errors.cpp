// See errors.hpp.
#include "broker/errors.hpp"

#include "rpc/unknown_method.hpp"

namespace wirecall::broker {

static Error internal_error(std::string data) { return Error::with_data(ErrorCode::internal_error, std::move(data)); }

static Error lost_with(std::string_view reason, std::string_view origin, std::string_view delivered) {
  return message::make(
      {.code = ErrorCode::provider_lost, .reason = reason, .delivered = delivered, .limit = {}, .origin = origin});
}

RelayErrors::RelayErrors()
    : not_delivered(message::make(ErrorCode::provider_lost, "the provider has gone", "no")),
      not_there(rpc::no_such_client()),
      maybe_delivered(message::make(ErrorCode::provider_lost, "the provider has gone", "maybe")),
      timed_out_before(message::make(ErrorCode::timeout, "the call was not answered in time", "no")),
      timed_out(message::make(ErrorCode::timeout, "the call was not answered in time", "maybe")),
      malformed(internal_error(R"({"reason":"the provider's response is malformed"})")),
      same_subscription(internal_error(R"({"reason":"the provider has given the id of a subscription that is live"})")),
      overrun(internal_error(R"({"reason":"the provider sends more items than it has credit for"})")),
      input_overrun(ErrorCode::invalid_request),
      no_memory(ErrorCode::internal_error),
      node_lost_before(lost_with("the provider's node has gone", "remote", "no")),
      node_lost(lost_with("the provider's node has gone", "remote", "maybe")),
      moved(lost_with("the method is not provided on its node any more", "remote", "no")),
      bus_lost_before(lost_with("the bus between the nodes has failed", "bus", "no")),
      bus_lost(lost_with("the bus between the nodes has failed", "bus", "maybe")),
      cancelled_before(message::make(ErrorCode::cancelled, "the call was cancelled", "no")) {}

Error forbidden() { return message::make(ErrorCode::forbidden, "the principal has no grant for that", "no"); }

Error conflict(std::string_view reason) { return message::make(ErrorCode::conflict, reason, "no"); }

Error has_ended() { return conflict("the connection has ended its side"); }

Error too_many_methods() { return limit_exceeded("too many methods of this connection", "methods"); }

Error too_many_subscriptions() { return limit_exceeded("too many subscriptions of this connection", "subscriptions"); }

Error too_many_calls() { return limit_exceeded("too many calls are in flight", "relayed_calls"); }

Error too_many_bytes() { return limit_exceeded("too many bytes of this connection's calls wait", "hard_output"); }

Error queue_is_full() { return limit_exceeded("too many calls wait for the provider", "queue"); }

Error provider_holds_too_much() {
  return limit_exceeded("too many bytes wait for the provider and others of its principal", "principal_bytes");
}

}  // namespace wirecall::broker
