// Stream<T>: a coroutine that yields any number of values; a handler that returns one is a server-streaming method, as
// in gRPC one declared `returns (stream T)`:
//     Stream<int> count(int n) { for (int i = 0; i < n; ++i) co_yield i; }
// Between values it may await tasks and anything else. It makes one value at a time, when the consumer asks for it. It
// is not the byte stream of a connection, and not a container. ResultStream is the client's side of such a method.
//
// Lifetime and thread: as for Task (task.hpp). A Stream is owned and consumed by one task at a time; it may be moved
// between two calls of `next`, not during one. Destroying it destroys the suspended coroutine and its locals.
// Stack: none is taken by yielding or awaiting, however often.
#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "wirecall/detail/coroutine.hpp"
#include "wirecall/task.hpp"

namespace wirecall {

namespace detail {

template <class T>
class StreamPromise;
template <class T>
class NextAwaiter;

}  // namespace detail

template <class T>
class [[nodiscard]] Stream {
  static_assert(std::is_object_v<T>, "a Stream yields values: neither void nor references");

 public:
  using value_type = T;
  using promise_type = detail::StreamPromise<T>;

  Stream() = default;
  Stream(Stream&& other) noexcept : promise_(std::exchange(other.promise_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    if (this != &other) {
      destroy();
      promise_ = std::exchange(other.promise_, nullptr);
    }
    return *this;
  }
  ~Stream() { destroy(); }

  /// `std::optional<T> value = co_await stream.next();` runs the stream to its next value; empty at its end, and for
  /// ever after. Throws what the stream throws, which ends it, and Cancelled when stop is requested of the consumer.
  /// Awaited in a Task or Stream, one at a time.
  [[nodiscard]] detail::NextAwaiter<T> next() noexcept { return detail::NextAwaiter<T>{*this}; }

 private:
  friend class detail::StreamPromise<T>;
  friend class detail::NextAwaiter<T>;

  explicit Stream(promise_type& promise) noexcept : promise_(&promise) {}
  void destroy() noexcept {
    if (promise_ != nullptr) std::exchange(promise_, nullptr)->self.destroy();
  }

  detail::PromiseBase* promise_ = nullptr;
};

namespace detail {

/// Suspends the stream after a value, as at its end.
using YieldAwaiter = FinalAwaiter;

template <class T>
class StreamPromise final : public PromiseBase {
 public:
  Stream<T> get_return_object() noexcept {
    self = std::coroutine_handle<StreamPromise>::from_promise(*this);
    return Stream<T>{*this};
  }
  [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
  [[nodiscard]] FinalAwaiter final_suspend() const noexcept { return {}; }
  [[nodiscard]] YieldAwaiter yield_value(T&& value) {
    item_.emplace(std::move(value));
    return {};
  }
  [[nodiscard]] YieldAwaiter yield_value(const T& value)
    requires std::copy_constructible<T>
  {
    item_.emplace(value);
    return {};
  }
  void return_void() const noexcept {}
  void unhandled_exception() noexcept { error_ = std::current_exception(); }

 private:
  friend class NextAwaiter<T>;

  std::optional<T> item_;
  std::exception_ptr error_;
};

template <class T>
class NextAwaiter : public SwitchingAwaiter {
 public:
  explicit NextAwaiter(Stream<T>& stream) noexcept : stream_(&stream) {}

  [[nodiscard]] bool await_ready() const noexcept {
    return stream_->promise_ == nullptr || stream_->promise_->self.done();
  }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> consumer) noexcept {
    // Checked here, so that a stream that never waits can be cancelled.
    stopped_ = consumer.promise().root->stop_token().stop_requested();
    if (stopped_) return false;
    enter(consumer.promise(), stream_->promise_);
    return true;
  }
  std::optional<T> await_resume() {
    if (stopped_) throw Cancelled{};
    if (stream_->promise_ == nullptr) return std::nullopt;
    auto& promise = static_cast<StreamPromise<T>&>(*stream_->promise_);
    if (promise.error_) [[unlikely]]
      std::rethrow_exception(std::exchange(promise.error_, nullptr));
    return std::exchange(promise.item_, std::nullopt);
  }

 private:
  Stream<T>* stream_;
  bool stopped_ = false;
};

}  // namespace detail
}  // namespace wirecall
