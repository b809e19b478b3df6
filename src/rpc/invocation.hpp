// Invocation: how one request or notification becomes a call: the limits admit it, its method is looked up, and the
// method runs with middleware around it. One thread (the loop's).
#pragma once

#include "base/dotted_name.hpp"
#include "message/own_error.hpp"
#include "rpc/access.hpp"
#include "rpc/admission.hpp"
#include "rpc/authentication.hpp"
#include "rpc/batch_run.hpp"
#include "rpc/broker.hpp"
#include "rpc/call_options.hpp"
#include "rpc/method_counts.hpp"
#include "rpc/pending.hpp"
#include "rpc/refused_messages.hpp"
#include "rpc/served_peer.hpp"
#include "rpc/unknown_method.hpp"
#include "wirecall/call.hpp"
#include "wirecall/message.hpp"
#include "wirecall/middleware.hpp"

namespace wirecall::rpc {

class Invocation {
 public:
  /// Of a message of kind request, notification or invalid.
  static inline void serve(ServedPeer& peer, const Received& message, CallState& state);
  /// Runs the method, which has been looked up and admitted, for a peer without middleware.
  static void serve_alone(const Method& method, const Received& message, CallState& state);

 private:
  /// Valid until the thread's reader is used again.
  [[nodiscard]] static std::string_view unescaped_method(const ServedPeer& peer, const Received& message);
  [[nodiscard]] static inline const Method* look_up(ServedPeer& peer, const Received& message, std::string_view name,
                                                    CallState& state);
  [[nodiscard]] static inline bool may_begin(ServedPeer& peer, Call& call);
  static inline void run(const ServedPeer& peer, Call& call, CallState& state);
  static void answer_exception(Call& call, const CallState& state);
  static void answer_silence(Call& call, const CallState& state);
  static void run_timed(Call& call, CallState& state, OwnCountsRow& row);
};

/// Invocation::serve, out of line.
void serve_message(ServedPeer& peer, const Received& message, CallState& state);

// The way of every call. It is inline here, so that a single message and an element of a batch have it without a
// further stack frame; what few calls need is out of line.

[[gnu::always_inline]] inline void Invocation::serve(ServedPeer& peer, const Received& message, CallState& state) {
  if (message.kind == MessageKind::invalid) [[unlikely]]
    return refuse_invalid(message, state);
  if ((peer.limits.rate | peer.limits.principal_rate) != 0 && !belongs_to_a_call(message) && !is_continued(peer))
      [[unlikely]] {
    if (refuse_rate(message, state)) return;
  }
  if (has_call_options(message) || peer.timeout_max_ms != ServedPeer::kNoTimeout) [[unlikely]] {
    if (!take_call_options(message, state)) return;
  }
  const std::string_view name = message.method_escaped ? unescaped_method(peer, message) : message.method();
  const Method* const method = look_up(peer, message, name, state);
  if (method == nullptr) [[unlikely]]
    return;
  Stats& stats = peer.loop.stats;
  ++(message.kind == MessageKind::notification ? stats.notifications : stats.calls);
  Call call{state, message, *method, peer.loop.services.watchdog_slot};
  if (!may_begin(peer, call)) [[unlikely]]
    return;
  if (peer.loop.services.broker != nullptr && peer.loop.services.broker->is_tapped()) [[unlikely]]
    peer.join_broker()->tapped(call, name);
  if (peer.loop.services.own_counts != nullptr) {
    OwnCountsRow* const row = peer.loop.services.own_counts->of(*method);
    if (row != nullptr) {
      ++row->calls;
      if (row->timed_in != stats.loop_turns) [[unlikely]]
        return run_timed(call, state, *row);
    }
  }
  run(peer, call, state);
}

// The method that the peer may call by that name: the process's own, or one that a client of the broker provides. Null
// for none: then the message has been answered.
[[gnu::always_inline]] inline const Method* Invocation::look_up(ServedPeer& peer, const Received& message,
                                                                std::string_view name, CallState& state) {
  const bool brokered = peer.loop.services.broker != nullptr;
  if (message.kind == MessageKind::notification && brokered) peer.join_broker()->notified(message, name);
  if (peer.loop.services.authority != nullptr && !is_reserved(name) && !may_call(peer.principal(), name)) [[unlikely]] {
    if (brokered) peer.join_broker()->not_granted(name);
    serve_reserved_or_refuse(message, name, state);
    return nullptr;
  }
  const Method* method = peer.registry.find(name);
  if (method == nullptr) {
    if (brokered) method = peer.join_broker()->find(name, message);
    if (method == nullptr) [[unlikely]]
      serve_reserved_or_refuse(message, name, state);
  } else if (message.has(Member::to)) [[unlikely]] {
    refuse_addressed(message, name, state);
    return nullptr;
  }
  return method;
}

// False where the call has been refused.
[[gnu::always_inline]] inline bool Invocation::may_begin(ServedPeer& peer, Call& call) {
  if (peer.draining) [[unlikely]] {
    call.error(message::make(ErrorCode::draining, "the server is shutting down", "no"));
    return false;
  }
  if (is_full(peer)) [[unlikely]] {
    if (const std::optional<Error> why = refuse_full(peer)) {
      call.error(*why);
      return false;
    }
  }
  return true;
}

[[gnu::always_inline]] inline void Invocation::run(const ServedPeer& peer, Call& call, CallState& state) {
  // The one place in which a handler's exceptions are caught; those of tasks come here by way of error_in_flight.
  try {
    if (peer.middleware.empty()) [[likely]] {
      call.method().invoke(call);
    } else {
      Next{peer.middleware.data(), peer.middleware.size()}(call);
    }
  } catch (...) {
    answer_exception(call, state);
  }
  if (!state.answered) [[unlikely]]
    answer_silence(call, state);
}

}  // namespace wirecall::rpc
