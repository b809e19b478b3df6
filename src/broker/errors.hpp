// The errors of the broker's own: what relayed calls end with that no provider has answered, and what is refused.
#pragma once

#include "broker/realm.hpp"
#include "message/own_error.hpp"
#include "wirecall/context.hpp"
#include "wirecall/error.hpp"
#include "wirecall/task.hpp"

namespace wirecall::broker {

/// What calls end with that no provider has answered; made beforehand, since there may be no memory then.
struct RelayErrors {
  Error not_delivered;     ///< the provider has gone, or there is none
  Error not_there;         ///< the provider that the caller has named is none
  Error maybe_delivered;   ///< the provider has gone, and had been asked
  Error timed_out_before;  ///< the time was up before the provider was asked
  Error timed_out;
  Error malformed;          ///< what the provider has answered
  Error same_subscription;  ///< a provider has given a subscription the id of another of its own
  Error overrun;            ///< a provider has sent more items than it had credit for
  Error input_overrun;      ///< a caller has sent more items than it had credit for
  Error no_memory;
  Error node_lost_before;  ///< the provider's node has gone, and had not been asked
  Error node_lost;
  Error moved;            ///< the provider's node has it no more, and nobody has been asked
  Error bus_lost_before;  ///< the same of the bus
  Error bus_lost;
  Error cancelled_before;  ///< the provider had not been asked
  Cancelled cancelled;

  RelayErrors();

  /// Of a call whose provider has gone.
  [[nodiscard]] const Error& lost(LostBy by, bool sent) const noexcept {
    switch (by) {
      case LostBy::provider: break;
      case LostBy::node: return sent ? node_lost : node_lost_before;
      case LostBy::bus: return sent ? bus_lost : bus_lost_before;
    }
    return sent ? maybe_delivered : not_delivered;
  }
};

/// What a principal is answered that may not do what it wants to.
[[nodiscard]] Error forbidden();
[[nodiscard]] Error conflict(std::string_view reason);
/// A connection that has ended its side wants something new.
[[nodiscard]] Error has_ended();
using message::limit_exceeded;
[[nodiscard]] Error too_many_methods();
[[nodiscard]] Error too_many_subscriptions();
[[nodiscard]] Error too_many_calls();
[[nodiscard]] Error too_many_bytes();
[[nodiscard]] Error queue_is_full();
[[nodiscard]] Error provider_holds_too_much();

}  // namespace wirecall::broker
