// Peer: the other end of the connection on which a call came, for a handler to call it back:
//     Task<bool> rename(Context context, std::string from, std::string to) {
//       if (!co_await Peer{context}.call<bool>("confirm", from, to)) throw Error{"not confirmed"}; …
// Such a call has what remains of the handler's time, is cancelled with the handler, and says within how many calls it
// is made. Not a client: it makes no connection, and is of no use once the one it stands for has gone. Only for
// handlers that are coroutines: others may find themselves on another thread than their connection's. A copyable name;
// lives on the thread that serves the connection, as handlers do.
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

/// One call of the peer, from its sending to its answer. Dropped before that, it is given up, and the peer told.
class PeerCall final : private Timer {
 public:
  /// Sends. Throws Error when that cannot be.
  PeerCall(const Context& context, std::string_view method, std::string_view params_json);
  ~PeerCall();
  PeerCall(PeerCall&&) = delete;

  /// To be awaited: the result's JSON text, padded. Throws what the call was answered with; -32002, -32001.
  [[nodiscard]] const Completion<Buffer>& answer() const noexcept { return answer_; }

 private:
  friend class rpc::PeerCalls;
  void expired() override;

  std::shared_ptr<rpc::PeerCalls> calls_;
  std::uint64_t id_ = 0;  // while it is in the table
  Completion<Buffer> answer_;
};

/// `by_handler`: the handler says it, and not a task that it has started.
void notify_peer(const Context& context, std::string_view method, std::string_view params_json, bool by_handler);
[[nodiscard]] bool can_notify_peer(const Context& context) noexcept;
[[noreturn]] void throw_wrong_result(const Reader& reader, std::string_view type);

template <class R>
Task<R> call_peer(Context context, std::string method, Buffer params) {
  const PeerCall call{context, method, params.view()};
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

class Peer {
 public:
  /// Of the call that `context` belongs to.
  explicit Peer(Context context) noexcept : context_(std::move(context)) {}

  /// Calls `method` with these arguments by position, which are encoded now; the call is made when the task is awaited.
  /// It throws the Error that the peer answered with; -32002 when the handler's time is up, -32001 when the connection
  /// is gone or, as by HTTP, was never one on which the caller can be called, -32005 for too many calls within calls,
  /// or for more than Limits::in_flight that wait for this caller, -32006 for a request over max_message_size. And
  /// LocalError: -32602, from `call` itself, when JSON cannot hold an argument, -32603 when the result is no R.
  template <class R = void, class... Args>
  [[nodiscard]] Task<R> call(std::string method, const Args&... args) const {
    return detail::call_peer<R>(context_, std::move(method), detail::encoded_arguments(args...));
  }
  /// The same with `params`, a struct or an array, as all there is: a struct's members are arguments by name. Let it
  /// have a name: GCC 12 destroys a struct twice that is made in braces within a co_await.
  template <class R = void, class Params>
  [[nodiscard]] Task<R> call_with(std::string method, const Params& params) const {
    return detail::call_peer<R>(context_, std::move(method), detail::encoded_params(params));
  }
  /// Sends a notification, also to a peer that says nothing more itself. One from the handler, and from what it awaits,
  /// leaves at once. One from elsewhere, such as a task that the handler has started, is held until the call's answer
  /// has been written, and dropped when that is an error. Throws -32001 when nobody can be told (see can_notify),
  /// -32005 for too many calls within calls, or when more than Limits::soft_output bytes of this call are held, or more
  /// than Limits::hard_output of its connection, -32006 and LocalError -32602 as call does.
  template <class... Args>
  void notify(std::string_view method, const Args&... args) const {
    notify_encoded(method, detail::encoded_arguments(args...).view());
  }
  template <class Params>
  void notify_with(std::string_view method, const Params& params) const {
    notify_encoded(method, detail::encoded_params(params).view());
  }
  /// False when notify throws -32001: the caller came by HTTP POST or through Registry::handle, the handler is no
  /// coroutine, the connection has gone, or the call has been answered with an error.
  [[nodiscard]] bool can_notify() const noexcept { return detail::can_notify_peer(context_); }

 private:
  void notify_encoded(std::string_view method, std::string_view params_json) const {
    detail::notify_peer(context_, method, params_json, detail::runs_handler_of(context_.caller_link().get()));
  }

  Context context_;
};

}  // namespace wirecall
