// Request: a call that is prepared and not sent, and the four ways to make it: block for the result, be called back,
// get a std::future, or co_await it. Client::request makes it. It holds its arguments encoded, so they need not outlive
// it.
//
// Thread: any, one at a time. A callback runs on the thread that drives the client: that of Client::run while that
// runs, else the client's background thread, which the first use starts. A coroutine is resumed on the thread of its
// own loop where a server, or Client::run, runs it; on the thread that drives where it was started by hand.
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
#include <string_view>
#include <type_traits>
#include <utility>

#include "wirecall/codec.hpp"
#include "wirecall/context.hpp"
#include "wirecall/detail/input_source.hpp"
#include "wirecall/error.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/task.hpp"

namespace wirecall {

namespace net {
class ClientCore;
class ClientStream;
struct ClientCall;
}  // namespace net
namespace detail {
class OutgoingCall;
}  // namespace detail

/// A handle by which a started call is cancelled. Copyable; it may outlive the call and the client.
class CallHandle {
 public:
  CallHandle() = default;
  /// Cancels the call: it ends with -32800, and the server is told. False when it has ended already. Any thread.
  bool cancel() const;

 private:
  friend class detail::OutgoingCall;

  std::weak_ptr<net::ClientCore> core_;
  net::ClientCall* call_ = nullptr;
  std::uint64_t generation_ = 0;
};

namespace detail {

/// The class as which an error is thrown.
enum class ErrorClass : std::uint8_t { error, connection_error, local_error };

/// What a call was answered with, before decoding: a result or an error. Valid until the receiver returns.
class Answer {
 public:
  /// The answer of a notification: neither result nor error.
  Answer() = default;
  /// `reader` reads the value next.
  explicit Answer(Reader& reader) noexcept : reader_(&reader) {}
  Answer(Reader& reader, std::string_view result) noexcept : reader_(&reader), result_(result) {}
  explicit Answer(Error error, ErrorClass thrown = ErrorClass::error) noexcept
      : error_(std::move(error)), error_class_(thrown) {}

  [[nodiscard]] bool ok() const noexcept { return !error_; }
  /// The encoded result, with kPaddingBytes readable behind it, and its codec.
  [[nodiscard]] std::string_view result() const noexcept { return result_; }
  [[nodiscard]] const Codec& codec() const noexcept { return reader_->codec(); }
  [[nodiscard]] Reader& reader() {
    if (!result_.empty()) reader_->reset(result_);
    return *reader_;
  }
  /// Makes this an error: the result could not be decoded as a `type`.
  void refuse(std::string_view type) noexcept;
  /// Makes this an error: there was no memory to decode the result.
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

/// Decodes the result as a T. False when `answer` is an error, or has become one because the result is not a T or there
/// is no memory for it. Never throws, since a callback has nobody to throw to.
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

/// A call that is being written, and is then sent once. One owner.
class OutgoingCall {
 public:
  OutgoingCall(std::shared_ptr<net::ClientCore> core, std::string_view method);
  OutgoingCall(OutgoingCall&& other) noexcept
      : core_(std::move(other.core_)), call_(std::exchange(other.call_, nullptr)), generation_(other.generation_) {}
  OutgoingCall& operator=(OutgoingCall&&) = delete;
  ~OutgoingCall() {
    if (call_ != nullptr && generation_ == 0) drop();
  }

  /// Writes the params, as one array or object. Not called where there are none.
  [[nodiscard]] Writer& params();
  /// The same for params that are JSON text, which is validated.
  void set_params(std::string_view json);
  void set_timeout(std::chrono::milliseconds timeout) noexcept;
  void set_wait(std::chrono::milliseconds wait) noexcept;
  void set_idempotent(bool idempotent) noexcept;
  void set_stop(std::stop_token stop);
  void set_context(const Context& context);
  void set_to(std::string_view provider);
  void set_input(std::unique_ptr<InputSource> source);
  /// The layout of packed params, which outlives the call: an error that names the callee's gets it as "own".
  void set_layout(std::string_view own) noexcept;
  /// Makes this a streaming call with `credit` results to begin with; `release` then hands the call to a ClientStream.
  void set_credit(std::uint32_t credit) noexcept;
  [[nodiscard]] std::unique_ptr<net::ClientStream> release();
  /// Keeps the text of the response for `response`.
  void keep_response() noexcept;
  /// Has the result converted to JSON where the connection speaks MessagePack.
  void want_json() noexcept;

  /// Makes the call and blocks until it has ended. The answer is valid as long as this object.
  [[nodiscard]] Answer wait();
  /// Sends it as a notification, and blocks until the kernel has accepted its bytes.
  [[nodiscard]] Answer notify();
  /// Makes the call; `done` is called exactly once, on the thread that drives the client, never from within start.
  void start(AnswerFunction done);
  /// The executor of the thread that drives the client.
  [[nodiscard]] const Executor* driver() const noexcept;
  /// After `start`: the handle of the call.
  [[nodiscard]] CallHandle handle() const;
  /// After `start`, on the thread that drives: cancels the call; `done` is not called.
  void forget() noexcept;
  // The parts of `wait`, `notify` and `start`, for several calls in one message.
  void make_notification() noexcept;
  /// The call is not sent, and ends with an error.
  void leave_unsent() noexcept;
  [[nodiscard]] net::ClientCall& prepare();
  [[nodiscard]] net::ClientCall& hand_in(AnswerFunction done);
  /// After hand_in, where starting has failed: takes the call back, to be handed in again or dropped.
  void take_back() noexcept;
  [[nodiscard]] Answer answer();
  /// After `wait` with keep_response: the text of the response; empty when none has come.
  [[nodiscard]] std::string_view response() const noexcept;

 private:
  explicit OutgoingCall(std::shared_ptr<net::ClientCore> core);
  void begin_params();
  void drop() noexcept;

  std::shared_ptr<net::ClientCore> core_;
  net::ClientCall* call_;
  std::uint64_t generation_ = 0;  // of the call once it has been started, and belongs to the core; 0 before
};

/// A task that its own executor resumes with the answer (src/client/await.cpp).
template <class Awaiter, class Payload>
struct PendingResumption;
struct BufferedAnswer;

/// Awaits what comes on the thread that drives a client: `Awaiter` begins it, and is the class that derives from this.
/// A task of that thread is resumed at once; any other by its own executor, with a Payload. (src/client/await.cpp)
template <class Awaiter, class Payload>
class DrivenAwaiter : protected Waiter {
 public:
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    return suspend(*coroutine.promise().root);
  }

 protected:
  using Driven = DrivenAwaiter;
  using Pending = PendingResumption<Awaiter, Payload>;

  ~DrivenAwaiter() = default;
  void resume() noexcept {
    waiting_ = false;
    wake();
  }
  /// The destructor of Awaiter calls it.
  void forget() noexcept final;

 private:
  friend Pending;
  bool suspend(Root& root);

  std::shared_ptr<Pending> pending_;  // null where the thread that drives resumes the task
  bool waiting_ = false;
};

/// Awaits a request, whatever the type of its result.
class RequestAwaiterBase : public DrivenAwaiter<RequestAwaiterBase, std::optional<BufferedAnswer>> {
 public:
  explicit RequestAwaiterBase(OutgoingCall call) noexcept : call_(std::move(call)) {}

 protected:
  ~RequestAwaiterBase() { forget(); }

 private:
  friend Driven;
  friend Pending;
  [[nodiscard]] const Executor* driver() const noexcept { return call_.driver(); }
  bool begin(const std::shared_ptr<Pending>& pending);
  void take(std::optional<BufferedAnswer>& payload) noexcept;
  void give_up(bool elsewhere) noexcept;
  /// Reads the answer, and does not throw.
  virtual void answered(Answer& answer) noexcept = 0;

  OutgoingCall call_;
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

  /// Bounds the time of the call, connecting and one retry included; the server is told as well. When it is over, the
  /// call ends with -32002. From 0 ms, which is over at once, to 100 years, which is what longer ones become. The
  /// default is ClientOptions::call_timeout_ms.
  Request&& timeout(std::chrono::milliseconds timeout) && {
    call_.set_timeout(timeout);
    return std::move(*this);
  }
  /// For how long after it is made, and within its timeout, the call is retried while no client provides its method at
  /// the broker: every 10 ms at first, every 100 ms later. 0 for no retry. The default is ClientOptions::wait_ms.
  Request&& wait(std::chrono::milliseconds wait) && {
    call_.set_wait(wait);
    return std::move(*this);
  }
  /// Says that the method may run several times for this call. By UDP the call is then sent again while nothing answers
  /// it, after 200 ms and then 400, 800, 1600 and 3200, within its timeout; else it is sent once, and lost with its
  /// datagram. Elsewhere it has no effect.
  Request&& idempotent(bool idempotent = true) && {
    call_.set_idempotent(idempotent);
    return std::move(*this);
  }
  /// Cancels the call when stop is requested, on any thread: it ends with -32800, and the server is told. A stop that
  /// is requested before the call is made ends it unsent.
  Request&& stop(std::stop_token stop) && {
    call_.set_stop(std::move(stop));
    return std::move(*this);
  }

  /// Makes the call as part of the call that a handler serves. It has the time that is left of that call, or its own
  /// default where that is less; it is cancelled with that call; and it counts as one hop further, so that calls in a
  /// circle end with -32005. It replaces a `stop` before it; a `timeout` or `stop` after it replaces the context's.
  Request&& within(const Context& context) && {
    call_.set_context(context);
    return std::move(*this);
  }

  /// At a broker: calls the provider of that name (its ClientOptions::client_id) and no other. Where that client does
  /// not provide the method, the call ends with -32001, `delivered` "no". Empty means any provider. Without a broker it
  /// has no effect.
  Request&& to(std::string_view provider) && {
    call_.set_to(provider);
    return std::move(*this);
  }

  /// Sends a stream towards the handler, which reads it as an InputStream (docs/client.md "Streams towards a handler"):
  /// a range, a Stream, or a function that returns a std::optional, empty at the end. It is kept by value, and asked
  /// for each item on the thread that drives, when the server has room for that; so it must not block where other calls
  /// are to go on. A view refers to what has to live until the call has ended. Where the handler answers before the
  /// end, the rest is not asked for. What it throws ends the call with that Error, or with LocalError -32603; an item
  /// that cannot be encoded with LocalError -32602. Without a `timeout`, the call has its time anew with each item. By
  /// HTTP and UDP the call is refused with -32600.
  template <class Source>
  Request&& input(Source&& source) && {
    call_.set_input(detail::input_source(std::forward<Source>(source)));
    return std::move(*this);
  }

  /// Makes the call and blocks for the result. Throws as Client::call.
  T call() && {
    detail::Answer answer = call_.wait();
    return detail::value_of<T>(answer);
  }
  /// The same, with the error returned in place of thrown.
  [[nodiscard]] std::expected<T, Error> try_call() && {
    detail::Answer answer = call_.wait();
    return detail::expected_of<T>(answer);
  }
  /// Makes the call and returns; `callback(std::expected<T, Error>)` is called exactly once, on the thread that drives,
  /// and must not throw.
  template <std::invocable<std::expected<T, Error>> F>
  CallHandle then(F callback) && {
    call_.start(
        [callback = std::move(callback)](detail::Answer& answer) mutable { callback(detail::expected_of<T>(answer)); });
    return call_.handle();
  }
  /// Makes the call and returns; the future throws what `call` throws.
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
  /// Makes the call when awaited, in a Task or Stream. Throws what `call` throws, and Cancelled when stop is requested
  /// of the task, which also cancels the call.
  [[nodiscard]] detail::RequestAwaiter<T> operator co_await() && noexcept {
    return detail::RequestAwaiter<T>{std::move(call_)};
  }

 private:
  detail::OutgoingCall call_;
};

}  // namespace wirecall
