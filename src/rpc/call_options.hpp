// What a request says of its own handling by the members of its envelope, and how long its call may take by that and by
// the limits. One thread (the loop's). Implements docs/wire.md "Deadlines and cancelling".
#pragma once

#include "rpc/pending.hpp"
#include "rpc/served_peer.hpp"
#include "wirecall/context.hpp"
#include "wirecall/message.hpp"

namespace wirecall::rpc {

/// A number >= 0 of milliseconds, rounded up to whole ones; the largest value stands for all beyond it.
[[nodiscard]] std::uint32_t milliseconds_of(std::string_view number) noexcept;

/// An integer >= 0; nothing for any other value.
[[nodiscard]] std::optional<std::uint64_t> read_count(const LoopContext& loop_context, std::string_view value);

[[nodiscard]] inline bool has_call_options(const Received& message) noexcept {
  return (message.present &
          (bit_of(Member::timeout_ms) | bit_of(Member::stream) | bit_of(Member::hops) | bit_of(Member::input))) != 0;
}
/// Reads them into the state. False when that is the end of it: the message has been refused.
[[nodiscard]] bool take_call_options(const Received& message, CallState& state);

/// How far the call may go.
[[nodiscard]] CallBounds bounds_of(CallState& state);
/// When the message that is served was received; only where there is a scheduler.
[[nodiscard]] std::chrono::nanoseconds received_at(const ServedPeer& peer);

}  // namespace wirecall::rpc
