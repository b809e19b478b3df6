// Caller: the peer that sent a call: a client, or the broker or server that relayed the call. The call's handler calls
// and notifies it on the same connection, in the other direction:
//     Task<bool> rename(Context context, std::string from, std::string to) {
//       if (!co_await Caller{context}.call<bool>("confirm", from, to)) throw Error{"not confirmed"}; …
// Such a call has what is left of the handler's time, is cancelled with the handler, and counts as one hop further. A
// Caller makes no connection of its own: once the connection has ended, its calls fail. It is for handlers that are
// coroutines; a plain function may run on another thread than the connection's. A copyable handle. Thread: the one that
// serves the connection, on which coroutine handlers run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "wirecall/bytes.hpp"
#include "wirecall/context.hpp"
#include "wirecall/error.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/task.hpp"

namespace wirecall {

namespace rpc {
class PeerCalls;
}

namespace detail {

/// One call that a handler makes to its caller, from sending to answer. Destroying it before the answer cancels the
/// call and tells the caller.
class CallerRequest final : private Timer {
 public:
  /// Sends the request. Throws Error where it cannot be sent.
  CallerRequest(const Context& context, std::string_view method, std::string_view params_json);
  ~CallerRequest();
  CallerRequest(CallerRequest&&) = delete;

  /// To be awaited: the result's JSON text, padded. Throws the error of the answer, -32002 for a timeout, -32001 for a
  /// lost connection.
  [[nodiscard]] const Completion<Buffer>& answer() const noexcept { return answer_; }

 private:
  friend class rpc::PeerCalls;
  void expired() override;

  std::shared_ptr<rpc::PeerCalls> calls_;
  std::uint64_t id_ = 0;  // while it is in the table
  Completion<Buffer> answer_;
};

/// `by_handler`: the handler itself sends it, not a task that the handler has started.
void notify_caller(const Context& context, std::string_view method, std::string_view params_json, bool by_handler);
[[nodiscard]] bool can_notify_caller(const Context& context) noexcept;
[[noreturn]] void throw_wrong_result(const Reader& reader, std::string_view type);

template <class R>
Task<R> call_caller(Context context, std::string method, Buffer params) {
  const CallerRequest call{context, method, params.view()};
  [[maybe_unused]] Buffer text = co_await call.answer();
  if constexpr (!std::is_void_v<R>) {
    const std::unique_ptr<Reader> reader = json_codec().reader();
    reader->reset(text.padded());
    R result{};
    if (!decode(*reader, result)) throw_wrong_result(*reader, type_name<R>());
    co_return result;
  }
}

template <class T>
Buffer encoded_params(const T& params) {
  Buffer text;
  const std::unique_ptr<Writer> writer = json_codec().writer();
  writer->reset(text);
  encode(*writer, params);
  if (writer->failed()) throw LocalError{ErrorCode::invalid_params, writer->failure()};
  return text;
}

template <class... Args>
Buffer encoded_arguments(const Args&... args) {
  if constexpr (sizeof...(Args) == 0) {
    return {};
  } else {
    return encoded_params(std::tie(args...));
  }
}

}  // namespace detail

class Caller {
 public:
  /// The caller of the call that `context` belongs to.
  explicit Caller(Context context) noexcept : context_(std::move(context)) {}

  /// Calls `method` with `args` by position. They are encoded now; the request is sent when the task is awaited. The
  /// task throws the Error of the answer, or
  /// - -32001 where the connection has ended, or cannot carry calls to the caller, as by HTTP;
  /// - -32002 when the handler's time is up;
  /// - -32005 beyond Limits::hops, or beyond Limits::in_flight calls that wait for this caller;
  /// - -32006 for a request of more than Limits::max_message_size bytes;
  /// - LocalError -32603 when the result is not an R.
  /// `call` itself throws LocalError -32602 where JSON cannot hold an argument.
  template <class R = void, class... Args>
  [[nodiscard]] Task<R> call(std::string method, const Args&... args) const {
    return detail::call_caller<R>(context_, std::move(method), detail::encoded_arguments(args...));
  }
  /// The same with `params`, a struct or an array, as the whole params: a struct's members are arguments by name. Give
  /// the struct a variable: GCC 12 destroys a temporary twice that is made in braces within a co_await.
  template <class R = void, class Params>
  [[nodiscard]] Task<R> call_with(std::string method, const Params& params) const {
    return detail::call_caller<R>(context_, std::move(method), detail::encoded_params(params));
  }
  /// Sends a notification, also to a caller that has closed its sending side (a TCP half-close). The handler, and the
  /// tasks that it awaits, send it at once. A notification of another task, such as one that the handler has started,
  /// is held until the call's answer has been written, and dropped if that answer is an error. Throws
  /// - -32001 where can_notify is false;
  /// - -32005 beyond Limits::hops, and when more than Limits::soft_output bytes of this call, or Limits::hard_output
  ///   bytes of its connection, are held;
  /// - -32006 and LocalError -32602 as `call`.
  template <class... Args>
  void notify(std::string_view method, const Args&... args) const {
    notify_encoded(method, detail::encoded_arguments(args...).view());
  }
  template <class Params>
  void notify_with(std::string_view method, const Params& params) const {
    notify_encoded(method, detail::encoded_params(params).view());
  }
  /// False where notify throws -32001: the call came by HTTP POST or through Registry::handle, the handler is not a
  /// coroutine, the connection has ended, or the call has been answered with an error.
  [[nodiscard]] bool can_notify() const noexcept { return detail::can_notify_caller(context_); }

 private:
  void notify_encoded(std::string_view method, std::string_view params_json) const {
    detail::notify_caller(context_, method, params_json, detail::runs_handler_of(context_.caller_link().get()));
  }

  Context context_;
};

}  // namespace wirecall
