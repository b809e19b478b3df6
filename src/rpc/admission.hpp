// Admission: whether the limits let a peer's message, or a further call of it, be served now: how many in a second, and
// how many at once. One thread (the loop's). Implements docs/options.md.
#pragma once

#include "rpc/pending.hpp"
#include "rpc/served_peer.hpp"
#include "wirecall/error.hpp"
#include "wirecall/message.hpp"

namespace wirecall::rpc {

/// What a call ends with for which its principal, or source, has too many in flight.
[[nodiscard]] Error too_many_of_principal(std::string_view delivered);

/// Whether the message says something of a call in progress: lost, that would end wrongly, or not at all.
[[nodiscard]] bool belongs_to_a_call(const Received& message) noexcept;

/// Counts a message among those of the connection and of its account, and refuses one that comes too soon: true.
[[nodiscard]] bool refuse_rate(const Received& message, CallState& state);

/// Whether no further call may wait.
[[nodiscard, gnu::always_inline]] inline bool is_full(const ServedPeer& peer) noexcept {
  const PeerLoad* const load = peer.load;
  return load != nullptr &&
         (load->calls >= peer.limits.in_flight || load->calls.of_account() >= peer.limits.principal_calls);
}
/// Why it may not, where that is so; nothing where another connection of the account has given way to this one.
[[nodiscard]] std::optional<Error> refuse_full(ServedPeer& peer);

/// Whether a name like one that does not exist may be looked for. That costs as much as many a call: whoever mistypes
/// one name after the other is no person.
[[nodiscard]] bool may_suggest(ServedPeer& peer);

}  // namespace wirecall::rpc
