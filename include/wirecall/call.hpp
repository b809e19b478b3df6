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

class Method;
struct Principal;
class TaskScope;
namespace detail {
class BlockingPool;
class EventSink;
class Executor;
class Items;
struct ParamReaders;
}  // namespace detail
namespace rpc {
class BrokerPeer;
class Invocation;
class MessageSink;
struct CallState;
struct PendingCalls;
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
  /// Answers with a value that is encoded already. A non-empty `failure` is why encoding failed: the answer is -32603.
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
  /// The stop token of the Context: stop is requested when nobody waits for the answer any more. And its scheduler,
  /// null without timers.
  [[nodiscard]] std::stop_token stop_token();
  [[nodiscard]] Scheduler* scheduler() const noexcept;
  /// Calls `hook` once with the outcome, before the reply is sent, now or later; with -32800 when the caller has
  /// disconnected before.
  void on_reply(ReplyHook hook);
  [[nodiscard]] const Limits& limits() const noexcept;

  /// Answer before the handler returns; as ReplySink's functions.
  [[nodiscard]] Writer* begin_result();
  void end_result();
  /// Both for an integer, the commonest result.
  void integer_result(std::int64_t value);
  void encoded_result(std::string_view value, std::string_view failure);
  void error(const Error& error);
  void error_in_flight();
  /// -32602 with what `reader` could not decode.
  void invalid_params(const Reader& reader);
  /// The way to answer later: the call joins the table of calls in flight, unless it has by lose_loop.
  [[nodiscard]] ReplySink detach();
  /// The handler has run for `ran` and loses the loop: the call joins those in flight, and the handler's answer goes
  /// the way of a sink. For the thread that takes the loop over. Again: no effect. Throws std::bad_alloc, and has no
  /// effect then.
  void lose_loop(std::chrono::nanoseconds ran);

  // What follows is for a broker.

  /// What the answer is to be sent as.
  [[nodiscard]] MessageForm form() const noexcept;

  /// How far the call may go.
  [[nodiscard]] CallBounds bounds() const;
  /// Who calls, as far as it has shown that; null where nobody has to.
  [[nodiscard]] const Principal* principal() const noexcept;
  /// The caller, as the broker knows it; null without one.
  [[nodiscard]] rpc::BrokerPeer* broker_peer() const noexcept;
  /// Whether the answer may be a message of its own on the caller's connection, which nobody here need know of: not
  /// for an element of a batch, by HTTP, or where middleware waits for the outcome.
  [[nodiscard]] bool can_be_left() const noexcept;
  /// Whoever says so answers the call, or nobody does.
  void leave() noexcept;

  /// The encoding of params and result.
  [[nodiscard]] const Codec& codec() const noexcept;
  /// The thread's reader, for decoding params before the handler runs.
  [[nodiscard]] Reader& reader() noexcept;
  /// The same, with those for defaults. A call whose params take long, or that outlives its frame, has its own.
  [[nodiscard]] detail::ParamReaders& param_readers() noexcept;
  /// For a handler that returns a stream: where its items go. Ask once, before `context`.
  [[nodiscard]] std::shared_ptr<detail::Items> items();
  /// For a method declared by Registry::subscription: where the events go. Null where there can be none: then the call
  /// has been answered.
  [[nodiscard]] std::shared_ptr<detail::EventSink> subscribe();
  /// For the method that ends subscriptions: whether this connection has had one of that id.
  bool unsubscribe(std::string_view id) noexcept;
  /// To be open while a handler runs that does not wait; may be null.
  [[nodiscard]] detail::WatchdogSlot* watchdog_slot() const noexcept { return watchdog_slot_; }
  /// After a rejoin: the slot is another one from now on.
  void renew_watchdog_slot() noexcept;
  /// For a handler that blocks: where it runs. Null where there are no threads but this one.
  [[nodiscard]] detail::BlockingPool* blocking_pool() const noexcept;
  /// What owns the tasks that calls of this thread start.
  [[nodiscard]] TaskScope& tasks() noexcept;
  /// The executor of this thread's loop, by which other threads return what they have done for a call. Null without a
  /// loop.
  [[nodiscard]] const std::shared_ptr<detail::Executor>& executor() const noexcept;
  /// `after` is called once the turn of this thread's loop has ended, once a turn; where there is no loop, never:
  /// false.
  bool at_turn_end(void (*after)() noexcept) noexcept;

 private:
  friend class rpc::Invocation;
  Call(rpc::CallState& state, const Received& message, const Method& method, detail::WatchdogSlot* slot) noexcept
      : state_(&state), message_(&message), method_(&method), watchdog_slot_(slot) {}

  [[gnu::noinline]] void end_result_slowly();
  void answered(int code) noexcept;
  [[nodiscard]] std::string caller() const;
  [[nodiscard]] ReplySink* late_sink() const noexcept;

  rpc::CallState* state_;
  const Received* message_;
  const Method* method_;
  detail::WatchdogSlot* watchdog_slot_;
};

}  // namespace wirecall
