// Call: one request or notification on its way to its handler, and ReplySink: the one way in which any handler (sync,
// Task, stream, middleware, and whatever answers later) gives its answer. Handlers that are plain functions never see
// either; middleware and untyped handlers do.
// Thread: the one that dispatches (the loop's). Neither may be used from another.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "wirecall/codec.hpp"
#include "wirecall/context.hpp"
#include "wirecall/detail/handler_window.hpp"
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
class Home;
class Items;
struct ParamReaders;
}  // namespace detail
namespace rpc {
class BrokerPeer;
class Dispatcher;
class Outlet;
struct CallState;
struct PendingCalls;
}  // namespace rpc

/// How a call ended, for middleware that asks: the error's code, or 0 for a result.
struct Outcome {
  int code = 0;
  [[nodiscard]] bool ok() const noexcept { return code == 0; }
};
using ReplyHook = std::function<void(const Outcome&)>;

/// Answers one call, once, at any later time. Movable. A sink that is destroyed without an answer answers -32603; one
/// whose caller has gone answers into nothing.
class ReplySink {
 public:
  ReplySink() = default;
  ReplySink(ReplySink&& other) noexcept;
  ReplySink& operator=(ReplySink&& other) noexcept;
  ~ReplySink();

  /// Answers with a result: one value is written with what begin_result returns, then end_result is called. It returns
  /// null where nobody waits for a value (a notification, a caller that has gone); end_result is due all the same.
  /// Between the two nothing else may be answered on this thread, and nothing may wait: all calls share one writer.
  [[nodiscard]] Writer* begin_result();
  void end_result();
  /// The same as both for a value that is encoded already; ended as if it had failed for a reason that is not empty.
  void encoded_result(std::string_view value, std::string_view failure);
  /// Answers with another's response to the same call, as it stands but for its id, which `id` views. `code` is that
  /// of its error, 0 for a result.
  void response(std::string_view text, std::string_view id, int code);
  void error(const Error& error);
  /// Answers with the exception in flight; only in a catch block. An Error is sent as it is; anything else is -32603,
  /// and its text goes to the log.
  void error_in_flight();
  /// False once answered, and when the caller has gone.
  [[nodiscard]] bool wanted() const noexcept;

 private:
  friend class Call;
  friend class rpc::Dispatcher;
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
  [[nodiscard]] std::string_view params() const noexcept {
    return message_->has(Member::params) ? (*message_)[Member::params] : std::string_view{};
  }
  /// What a handler may know beyond its parameters; makes the copies that outlive the frame.
  [[nodiscard]] Context context();
  /// The parts of it that those need who take no Context: stop is requested when nobody waits for the answer any more;
  /// null where there are no timers.
  [[nodiscard]] std::stop_token stop_token();
  [[nodiscard]] Scheduler* scheduler() const noexcept;
  /// Called once with the outcome, before the reply leaves, whether it is given now or later; with -32800 when the
  /// caller has gone before.
  void on_reply(ReplyHook hook);
  [[nodiscard]] const Limits& limits() const noexcept;

  /// The ways to answer on the caller's stack: as ReplySink's.
  [[nodiscard]] Writer* begin_result();
  void end_result();
  /// The same as both for an integer, which is the commonest result.
  void integer_result(std::int64_t value);
  void encoded_result(std::string_view value, std::string_view failure);
  void error(const Error& error);
  void error_in_flight();
  /// -32602 with what `reader` could not decode.
  void invalid_params(const Reader& reader);
  /// The way to answer later: the call joins the table of calls in flight, unless it has by lose_loop.
  [[nodiscard]] ReplySink detach();
  /// The handler runs for `ran` already and does not come back, and the loop goes on without it: the call joins those
  /// in flight, and what the handler answers when it comes back goes the way of a sink. Meant for who has taken the
  /// loop. Again: no effect. Throws std::bad_alloc, and has no effect then.
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
  [[nodiscard]] detail::HandlerWindow* window() const noexcept { return window_; }
  /// For who has come back late: the window is another one from now on.
  void renew_window() noexcept;
  /// For a handler that blocks: where it runs. Null where there are no threads but this one.
  [[nodiscard]] detail::BlockingPool* blocking_pool() const noexcept;
  /// What owns the tasks that calls of this thread start.
  [[nodiscard]] TaskScope& tasks() noexcept;
  /// Where what another thread has done for a call comes back to this one. Null where there is no loop.
  [[nodiscard]] const std::shared_ptr<detail::Home>& home() const noexcept;
  /// `after` is called once the turn of this thread's loop has ended, once a turn; where there is no loop, never:
  /// false.
  bool at_turn_end(void (*after)() noexcept) noexcept;

 private:
  friend class rpc::Dispatcher;
  Call(rpc::CallState& state, const Received& message, const Method& method, detail::HandlerWindow* window) noexcept
      : state_(&state), message_(&message), method_(&method), window_(window) {}

  [[gnu::noinline]] void end_result_slowly();
  void answered(int code) noexcept;
  [[nodiscard]] std::string caller() const;
  [[nodiscard]] ReplySink* late_sink() const noexcept;

  rpc::CallState* state_;
  const Received* message_;
  const Method* method_;
  detail::HandlerWindow* window_;
};

}  // namespace wirecall
