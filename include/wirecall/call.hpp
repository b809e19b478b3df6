// Call: one received request or notification, as middleware and untyped handlers see it (gRPC's ServerCall). ReplySink:
// the handle by which a call is answered later, once (as a responder). Typed handlers, functions and coroutines, see
// neither: they return their result.
// Thread: the one that dispatches (the loop's). Neither may be used from another.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "wirecall/codec.hpp"
#include "wirecall/context.hpp"
#include "wirecall/detail/watchdog_slot.hpp"
#include "wirecall/error.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/message.hpp"

namespace wirecall {

class Call;
class Method;
struct Principal;
class TaskScope;
namespace detail {
class BlockingPool;
class EventSink;
class Executor;
class Input;
class Items;
struct ParamReaders;
}  // namespace detail
namespace rpc {
class BrokerPeer;
class Invocation;
class MessageSink;
struct CallState;
struct LoopContext;
struct PendingCalls;
/// What the call's loop has.
[[nodiscard]] LoopContext& loop_of(const Call& call) noexcept;
}  // namespace rpc

/// How a call ended, for middleware: the error's code, or 0 for a result.
struct Outcome {
  int code = 0;
  [[nodiscard]] bool ok() const noexcept { return code == 0; }
};
using ReplyHook = std::function<void(const Outcome&)>;

/// Answers one call, once, at any later time. Movable. Destroying it without an answer answers -32603. Where the caller
/// has disconnected, answers are dropped.
class ReplySink {
 public:
  ReplySink() = default;
  ReplySink(ReplySink&& other) noexcept;
  ReplySink& operator=(ReplySink&& other) noexcept;
  ~ReplySink();

  /// Answers with a result: write one value with the Writer that begin_result returns, then call end_result. The Writer
  /// is null where nobody waits for a value (a notification, a caller that has disconnected); end_result must be called
  /// all the same. Between the two this thread must not answer another call or suspend: all calls share one writer.
  [[nodiscard]] Writer* begin_result();
  void end_result();
  /// Answers with a value that is encoded already. A non-empty `failure` says why encoding failed; then the answer is
  /// -32603.
  void encoded_result(std::string_view value, std::string_view failure);
  /// Relays another server's response to this call. `text` is the response, `id` a view of its id, which is replaced by
  /// the call's own; `code` is the code of its error, 0 for a result.
  void response(std::string_view text, std::string_view id, int code);
  void error(const Error& error);
  /// Answers with the current exception; only in a catch block. An Error is sent as it is. Any other exception is
  /// -32603, and its text goes to the log.
  void error_in_flight();
  /// False once answered, and when the caller has disconnected.
  [[nodiscard]] bool wanted() const noexcept;
  /// True when default-constructed or moved from.
  [[nodiscard]] bool empty() const noexcept { return calls_ == nullptr; }
  /// Whoever answers has a copy of the params, of so many bytes: they count among what the caller's connection holds
  /// for as long as there is this sink. Once, before the call is answered.
  void keeps(std::size_t bytes) noexcept;
  /// Internal. Of a call detached within its turn, which takes longer all the same: from now on it can be cancelled,
  /// and is late in time. `began` is when it came. Throws std::bad_alloc, and has no effect then.
  void outlive_turn(std::chrono::nanoseconds began);

 private:
  friend class Call;
  ReplySink(std::shared_ptr<rpc::PendingCalls> calls, std::uint32_t slot, std::uint32_t generation) noexcept;

  std::shared_ptr<rpc::PendingCalls> calls_;
  std::uint32_t slot_ = 0;
  std::uint32_t generation_ = 0;
};

class Call {
 public:
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  [[nodiscard]] const Method& method() const noexcept { return *method_; }
  [[nodiscard]] bool is_notification() const noexcept { return message_->kind == MessageKind::notification; }
  /// The envelope as received; its spans last until the handler returns.
  [[nodiscard]] const Received& message() const noexcept { return *message_; }
  /// The params as sent, empty for none.
  [[nodiscard]] std::string_view params() const noexcept { return message_->params(); }
  /// The Context for the handler. It copies what outlives the message.
  [[nodiscard]] Context context();
  /// The stop token of the Context: stop is requested when nobody waits for the answer any more.
  [[nodiscard]] std::stop_token stop_token();
  /// The scheduler of the Context, for timers; null without timers.
  [[nodiscard]] Scheduler* scheduler() const noexcept;
  /// Calls `hook` once with the outcome, before the reply is sent; with -32800 when the caller disconnects first.
  void on_reply(ReplyHook hook);
  [[nodiscard]] const Limits& limits() const noexcept;

  /// The encoding of params and result.
  [[nodiscard]] const Codec& codec() const noexcept;
  /// The principal by which the caller has authenticated; null where the server has no principals.
  [[nodiscard]] const Principal* principal() const noexcept;

  /// Answer before the handler returns; as ReplySink's functions.
  [[nodiscard]] Writer* begin_result();
  void end_result();
  /// begin_result and end_result for an integer, the commonest result.
  void integer_result(std::int64_t value);
  void encoded_result(std::string_view value, std::string_view failure);
  void error(const Error& error);
  void error_in_flight();
  /// Answers -32602 with what `reader` could not decode.
  void invalid_params(const Reader& reader);
  /// Returns the sink by which the call is answered later. Adds the call to the calls in flight, unless lose_loop has.
  [[nodiscard]] ReplySink detach();

  // Internal: for typed handlers, the broker and the takeover of loops. Programs do not call what follows.

  /// Adds the call to the calls in flight, so that the handler's answer goes through a sink. The thread that takes the
  /// loop over from the handler calls it; `ran` is how long the handler has run. A second call has no effect. Throws
  /// std::bad_alloc, and has no effect then.
  void lose_loop(std::chrono::nanoseconds ran);
  /// As detach, of a call that is answered before this turn of the loop ends: so it can be neither cancelled nor late,
  /// which costs time to keep up. See ReplySink::outlive_turn.
  [[nodiscard]] ReplySink detach_within_turn();
  /// The encoding in which the answer is sent, and whether it is written in that encoding or as JSON text.
  [[nodiscard]] MessageForm form() const noexcept;
  /// The call's begin, deadline and hops.
  [[nodiscard]] CallBounds bounds() const;
  /// The caller's peer at the broker; null without a broker.
  [[nodiscard]] rpc::BrokerPeer* broker_peer() const noexcept;
  /// Whether the answer may be written to the caller's connection without this Call. False for an element of a batch,
  /// for a call by HTTP, and where middleware waits for the outcome.
  [[nodiscard]] bool can_be_left() const noexcept;
  /// The params have come in the form that their types alone explain, and the result is to go so, unless it is kept for
  /// others as well.
  void use_own_form() noexcept;
  [[nodiscard]] bool uses_own_form() const noexcept;
  /// Answers with a value that is encoded as `form` says; `compact` for one without line breaks.
  void cached_result(std::string_view value, bool compact);
  /// Leaves the answer to the function that calls it: the dispatcher sends none.
  void leave() noexcept;

  /// The thread's reader, which decodes params before the handler runs.
  [[nodiscard]] Reader& reader() noexcept;
  /// That reader and the readers of default values. A call whose params take long to decode, or that outlives its
  /// frame, has its own.
  [[nodiscard]] detail::ParamReaders& param_readers() noexcept;
  /// The encoding of the items of a stream that are given to it encoded.
  [[nodiscard]] const Codec& item_codec() const noexcept;
  /// Where the items of a handler that returns a stream go. Called once, before `context`.
  [[nodiscard]] std::shared_ptr<detail::Items> items();
  /// The stream that the caller sends beside the params; null where it sends none. Called once, before `context`.
  [[nodiscard]] std::shared_ptr<detail::Input> input();
  /// Where the events of a method declared by Registry::subscription go. Null where the connection can carry none: then
  /// the call has been answered.
  [[nodiscard]] std::shared_ptr<detail::EventSink> subscribe();
  /// Ends the subscription of that id; returns whether this connection has had one.
  bool unsubscribe(std::string_view id) noexcept;
  /// The watchdog slot that is open while a handler that does not wait runs; may be null.
  [[nodiscard]] detail::WatchdogSlot* watchdog_slot() const noexcept { return watchdog_slot_; }
  /// Takes the present watchdog slot of the thread; called after the handler's thread has rejoined the loop.
  void renew_watchdog_slot() noexcept;
  /// The pool on which a handler that blocks runs; null without such a pool.
  [[nodiscard]] detail::BlockingPool* blocking_pool() const noexcept;
  /// The scope that owns the tasks that calls of this thread start.
  [[nodiscard]] TaskScope& tasks() noexcept;
  /// The executor of this thread's loop, by which other threads return what they have done for a call; null without a
  /// loop.
  [[nodiscard]] const std::shared_ptr<detail::Executor>& executor() const noexcept;
  /// Calls `after` once when the present turn of this thread's loop ends. Returns false, and does not call it, without
  /// a loop.
  bool at_turn_end(void (*after)() noexcept) noexcept;

 private:
  friend class rpc::Invocation;
  friend rpc::LoopContext& rpc::loop_of(const Call& call) noexcept;
  Call(rpc::CallState& state, const Received& message, const Method& method, detail::WatchdogSlot* slot) noexcept
      : state_(&state), message_(&message), method_(&method), watchdog_slot_(slot) {}

  [[nodiscard]] ReplySink detach(bool within_turn);
  [[gnu::noinline]] void end_result_slowly();
  /// A whole reply with that packed, but for the sending; false where it is to be written otherwise. Of a call that
  /// nothing is unusual of.
  [[nodiscard]] bool append_packed(std::int64_t value);
  void answered(int code) noexcept;
  [[nodiscard]] std::string caller() const;
  [[nodiscard]] ReplySink* late_sink() const noexcept;

  rpc::CallState* state_;
  const Received* message_;
  const Method* method_;
  detail::WatchdogSlot* watchdog_slot_;
};

}  // namespace wirecall
