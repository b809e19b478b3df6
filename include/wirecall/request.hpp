// Request: a call that is ready to be made, and the four ways to make it: wait for it, be called back, take a
// std::future, or co_await it. It is made by Client::request and holds its arguments encoded, so nothing that it was
// made from has to last. Not a connection and not an answer.
//
// Thread: any, one at a time. Where a callback runs: on the thread that drives the client, which is inside Client::run
// while that runs, else the client's background thread, started at the first use. Where a coroutine goes on: a handler,
// and a task of Client::run, on the thread of its own loop; one that was started by hand, on the thread that drives.
#pragma once

#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <expected>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "wirecall/codec.hpp"
#include "wirecall/context.hpp"
#include "wirecall/error.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/task.hpp"

namespace wirecall {

namespace session {
class ClientCore;
class ClientStream;
struct ClientCall;
}  // namespace session
namespace detail {
class OutgoingCall;
}  // namespace detail

/// One call on its way, to be given up. A copyable name: it may outlive the call and the client.
class CallHandle {
 public:
  CallHandle() = default;
  /// Gives the call up: it ends with -32800, and the server is told. False when it had ended already. Any thread.
  bool cancel() const;

 private:
  friend class detail::OutgoingCall;

  std::weak_ptr<session::ClientCore> core_;
  session::ClientCall* call_ = nullptr;
  std::uint64_t generation_ = 0;
};

namespace detail {

/// As what an error is thrown.
enum class ErrorClass : std::uint8_t { error, connection_error, local_error };

/// How a call has ended, for whoever decodes it: a result, or an error. Lasts until the receiver returns.
class Answer {
 public:
  /// Of a notification: there is no result, and no error.
  Answer() = default;
  /// `reader` stands before the value.
  explicit Answer(Reader& reader) noexcept : reader_(&reader) {}
  Answer(Reader& reader, std::string_view result) noexcept : reader_(&reader), result_(result) {}
  explicit Answer(Error error, ErrorClass thrown = ErrorClass::error) noexcept
      : error_(std::move(error)), error_class_(thrown) {}

  [[nodiscard]] bool ok() const noexcept { return !error_; }
  /// The result's encoded value, kPaddingBytes readable behind it, and in which codec that is.
  [[nodiscard]] std::string_view result() const noexcept { return result_; }
  [[nodiscard]] const Codec& codec() const noexcept { return reader_->is_json() ? json_codec() : msgpack_codec(); }
  [[nodiscard]] Reader& reader() {
    if (!result_.empty()) reader_->reset(result_);
    return *reader_;
  }
  /// The result cannot be read as what was asked for: that is an error, too.
  void refuse(std::string_view type) noexcept;
  /// Likewise, for want of memory.
  void refuse() noexcept;
  [[nodiscard]] Error& error() noexcept { return *error_; }
  [[nodiscard]] ErrorClass error_class() const noexcept { return error_class_; }
  [[noreturn]] void throw_error();

 private:
  Reader* reader_ = nullptr;
  std::string_view result_;
  std::optional<Error> error_;
  ErrorClass error_class_ = ErrorClass::error;
};

/// The result as a T; false when `answer` is an error, or becomes one because it is none, or there is no memory for it:
/// whoever is called back with an answer has nobody to throw that to.
template <class T>
bool read_answer(Answer& answer, T& out) {
  if (!answer.ok()) return false;
  try {
    if (decode(answer.reader(), out)) [[likely]]
      return true;
    answer.refuse(type_name<T>());
  } catch (const std::bad_alloc&) {
    answer.refuse();
  }
  return false;
}

template <class T>
std::expected<T, Error> expected_of(Answer& answer) {
  if constexpr (std::is_void_v<T>) {
    if (!answer.ok()) return std::unexpected{std::move(answer.error())};
    return {};
  } else {
    std::expected<T, Error> result;
    if (!read_answer(answer, *result)) result = std::unexpected{std::move(answer.error())};
    return result;
  }
}

template <class T>
T value_of(Answer& answer) {
  if constexpr (std::is_void_v<T>) {
    if (!answer.ok()) answer.throw_error();
  } else {
    T value{};
    if (!read_answer(answer, value)) answer.throw_error();
    return value;
  }
}

using AnswerFunction = std::move_only_function<void(Answer&)>;

/// A call that is being written, and is then handed in once. One owner.
class OutgoingCall {
 public:
  OutgoingCall(std::shared_ptr<session::ClientCore> core, std::string_view method);
  OutgoingCall(OutgoingCall&& other) noexcept
      : core_(std::move(other.core_)), call_(std::exchange(other.call_, nullptr)), generation_(other.generation_) {}
  OutgoingCall& operator=(OutgoingCall&&) = delete;
  ~OutgoingCall() {
    if (call_ != nullptr && generation_ == 0) drop();
  }

  /// Where the params go, as one array or object. Not asked for where there are none.
  [[nodiscard]] Writer& params();
  /// The same for params that are JSON text already, which is validated.
  void set_params(std::string_view json);
  void set_timeout(std::chrono::milliseconds timeout) noexcept;
  void set_wait(std::chrono::milliseconds wait) noexcept;
  void set_stop(std::stop_token stop);
  void set_context(const Context& context);
  void set_to(std::string_view provider);
  /// The results are wanted as they come, at first so many of them; then `release` hands the call on.
  void set_credit(std::uint32_t credit) noexcept;
  [[nodiscard]] std::unique_ptr<session::ClientStream> release();
  /// The response itself is wanted; see `response`.
  void keep_response() noexcept;
  /// The result is wanted as JSON, whatever the connection speaks.
  void want_json() noexcept;

  /// Makes the call and blocks until it has ended. The answer lasts as long as this.
  [[nodiscard]] Answer wait();
  /// Sends it without an id, and blocks until the system has taken it.
  [[nodiscard]] Answer notify();
  /// Makes the call; `done` is called exactly once, on the thread that drives the client, never from within start.
  void start(AnswerFunction done);
  /// The home of the thread that drives.
  [[nodiscard]] const Home* driver() const noexcept;
  /// After `start`: names the call.
  [[nodiscard]] CallHandle handle() const;
  /// After `start`, on the thread that drives: gives the call up, and `done` is not called.
  void forget() noexcept;
  // For several calls in one message: what `wait`, `notify` and `start` are made of.
  void make_notification() noexcept;
  /// It is not to be sent, and ends with an error.
  void leave_unsent() noexcept;
  [[nodiscard]] session::ClientCall& prepare();
  [[nodiscard]] session::ClientCall& hand_in(AnswerFunction done);
  /// After hand_in: it could not be started, and is to be handed in again or dropped.
  void take_back() noexcept;
  [[nodiscard]] Answer answer();
  /// After `wait`, with keep_response: the text of the response; empty when none came.
  [[nodiscard]] std::string_view response() const noexcept;

 private:
  explicit OutgoingCall(std::shared_ptr<session::ClientCore> core);
  void begin_params();
  void drop() noexcept;

  std::shared_ptr<session::ClientCore> core_;
  session::ClientCall* call_;
  std::uint64_t generation_ = 0;  // names the call once it has been started, and is no longer ours
};

/// What happens to a task away from its home (src/session/client_await.cpp).
template <class Awaiter, class News>
struct Absence;
struct KeptAnswer;

/// What awaits a request, but for the type of the result.
class RequestAwaiterBase : private Waiter {
 public:
  explicit RequestAwaiterBase(OutgoingCall call) noexcept : call_(std::move(call)) {}

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    return suspend(*coroutine.promise().root);
  }

 protected:
  ~RequestAwaiterBase() { forget(); }
  using Waiter::throw_if_stopped;

 private:
  using Away = Absence<RequestAwaiterBase, std::optional<KeptAnswer>>;
  friend Away;

  bool suspend(Root& root);
  void come_home(std::optional<KeptAnswer>& answer) noexcept;
  void forget() noexcept final;
  /// Reads the answer, and does not throw.
  virtual void answered(Answer& answer) noexcept = 0;

  OutgoingCall call_;
  std::shared_ptr<Away> away_;  // null where the task has no home
  bool waiting_ = false;
};

template <class T>
class RequestAwaiter final : public RequestAwaiterBase {
 public:
  using RequestAwaiterBase::RequestAwaiterBase;
  T await_resume() {
    throw_if_stopped();
    return outcome_.take();
  }

 private:
  void answered(Answer& answer) noexcept override {
    try {
      if constexpr (std::is_void_v<T>) {
        value_of<void>(answer);
        outcome_.set_value();
      } else {
        outcome_.set_value(value_of<T>(answer));
      }
    } catch (...) {
      outcome_.set_error(std::current_exception());
    }
  }

  ResultSlot<T> outcome_;
};

}  // namespace detail

template <class T = void>
class [[nodiscard]] Request {
 public:
  explicit Request(detail::OutgoingCall call) noexcept : call_(std::move(call)) {}

  /// How long the call may take, connecting and one retry included; ClientOptions::call_timeout_ms where none is given.
  /// The server is told as well.
  Request&& timeout(std::chrono::milliseconds timeout) && {
    call_.set_timeout(timeout);
    return std::move(*this);
  }
  /// How long the call is made again, from its begin on and within its time, while nobody provides its method;
  /// ClientOptions::wait_ms where none is given.
  Request&& wait(std::chrono::milliseconds wait) && {
    call_.set_wait(wait);
    return std::move(*this);
  }
  /// Gives the call up when stop is requested, on any thread: it ends with -32800.
  Request&& stop(std::stop_token stop) && {
    call_.set_stop(std::move(stop));
    return std::move(*this);
  }

  /// For a handler: makes the call as a part of the one that it serves. It has the time that is left of that one, or
  /// its own where that is less, is given up with it, and counts as one hop further: one that goes round in a circle
  /// ends with -32005. Said last: it takes the place of a `stop` before it, and a `timeout` or `stop` behind it takes
  /// the place of the context's.
  Request&& within(const Context& context) && {
    call_.set_context(context);
    return std::move(*this);
  }

  /// At a broker: of all who provide the method, calls the client of that name, which its rpc.hello has been given
  /// (ClientOptions::client_id), and no other: where it does not, the call ends with -32001, `delivered` "no". Empty
  /// for any. Elsewhere it means nothing.
  Request&& to(std::string_view provider) && {
    call_.set_to(provider);
    return std::move(*this);
  }

  /// Makes the call and blocks. Throws the Error it ended with; see Client::call.
  T call() && {
    detail::Answer answer = call_.wait();
    return detail::value_of<T>(answer);
  }
  /// The same without exceptions.
  [[nodiscard]] std::expected<T, Error> try_call() && {
    detail::Answer answer = call_.wait();
    return detail::expected_of<T>(answer);
  }
  /// Makes the call; `callback(std::expected<T, Error>)` is called once, whatever comes, and must not throw.
  template <std::invocable<std::expected<T, Error>> F>
  CallHandle then(F callback) && {
    call_.start(
        [callback = std::move(callback)](detail::Answer& answer) mutable { callback(detail::expected_of<T>(answer)); });
    return call_.handle();
  }
  /// Makes the call; the future throws what `call` would.
  [[nodiscard]] std::future<T> future() && {
    std::promise<T> promise;
    std::future<T> future = promise.get_future();
    call_.start([promise = std::move(promise)](detail::Answer& answer) mutable {
      try {
        if constexpr (std::is_void_v<T>) {
          detail::value_of<void>(answer);
          promise.set_value();
        } else {
          promise.set_value(detail::value_of<T>(answer));
        }
      } catch (...) {
        promise.set_exception(std::current_exception());
      }
    });
    return future;
  }
  /// Makes the call when it is awaited, in a Task or Stream; throws what `call` would, and Cancelled when the task is
  /// asked to stop, which gives the call up.
  [[nodiscard]] detail::RequestAwaiter<T> operator co_await() && noexcept {
    return detail::RequestAwaiter<T>{std::move(call_)};
  }

 private:
  detail::OutgoingCall call_;
};

}  // namespace wirecall
