// Task<T>: a lazily started C++20 coroutine, and the functions that start, join, time-limit and cancel tasks. Not a
// thread pool and not a future: a task runs on the thread that starts or resumes it.
//
// Lifetime: the frame belongs to the Task, then to whoever awaits or starts it. Whatever a coroutine refers to must
// outlive it: parameters taken by reference or view, the object behind `this`, and the captures of a lambda coroutine
// (they live in the lambda, not in the frame). Take parameters by value when the caller does not await at once.
//
// Thread: one thread at a time resumes a task, each resumption happening after the suspension before it. A task of a
// server or client is resumed on the thread of its loop, whatever it awaited, except a foreign awaitable. Stop is
// requested on the thread that runs the task, because a waiting coroutine is resumed from inside request_stop.
//
// Stack: awaiting takes none, however many tasks are awaited and however deeply, on every compiler and under
// sanitizers; depth is bounded by memory alone. Each level of when_all or when_any nested in another takes a constant
// amount while it starts, stops or destroys its tasks: about 0.2 KiB optimised, 0.5 KiB under AddressSanitizer.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <expected>
#include <functional>
#include <memory>
#include <stop_token>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "wirecall/context.hpp"
#include "wirecall/detail/coroutine.hpp"
#include "wirecall/detail/executor.hpp"
#include "wirecall/error.hpp"

namespace wirecall {

/// Thrown by a waiting operation when stop is requested: -32800.
class Cancelled : public Error {
 public:
  Cancelled()
      : Error(ErrorCode::cancelled, "Cancelled",
              R"({"reason":"the call was stopped","origin":"local","delivered":"maybe"})") {}
};

/// The result of a finished task: its value, or what it threw. A reference is a std::reference_wrapper.
template <class T>
using TaskResult =
    std::expected<std::conditional_t<std::is_reference_v<T>, std::reference_wrapper<std::remove_reference_t<T>>, T>,
                  std::exception_ptr>;

namespace detail {

template <class T>
class TaskPromise;
template <class T>
class TaskAwaiter;
template <class T>
class TaskRoot;
class StartedRoot;
template <class T>
struct CompletionState;
template <class T>
class CompletionAwaiter;

/// A T as a member of a tuple or variant: void becomes std::monostate, T& becomes std::reference_wrapper<T>.
template <class T>
using Stored = std::conditional_t<
    std::is_void_v<T>, std::monostate,
    std::conditional_t<std::is_reference_v<T>, std::reference_wrapper<std::remove_reference_t<T>>, T>>;

}  // namespace detail

/// A coroutine that returns a T (a value, also a move-only one; a reference; void) or throws. It does nothing until it
/// is awaited, by `co_await f()` or `co_await std::move(task)`, or started. Destroying it unstarted is harmless.
template <class T = void>
class [[nodiscard]] Task {
 public:
  using value_type = T;
  using promise_type = detail::TaskPromise<T>;

  Task() = default;
  Task(Task&& other) noexcept : promise_(std::exchange(other.promise_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      destroy();
      promise_ = std::exchange(other.promise_, nullptr);
    }
    return *this;
  }
  ~Task() { destroy(); }

  /// False once moved from: only a task that holds a coroutine may be awaited or started.
  [[nodiscard]] explicit operator bool() const noexcept { return promise_ != nullptr; }

 private:
  template <class U>
  friend class detail::TaskPromise;
  template <class U>
  friend class detail::TaskAwaiter;
  template <class U>
  friend class detail::TaskRoot;

  explicit Task(promise_type& promise) noexcept : promise_(&promise) {}
  [[nodiscard]] promise_type& promise() const noexcept { return static_cast<promise_type&>(*promise_); }
  void destroy() noexcept {
    if (promise_ != nullptr) std::exchange(promise_, nullptr)->self.destroy();
  }

  detail::PromiseBase* promise_ = nullptr;
};

// ------------------------------------------------------------------------------------------------- inside a task

namespace this_task {

/// `const std::stop_token& stop = co_await this_task::stop_token();` inside a Task or Stream: the token with which it
/// was started. It is valid as long as the coroutine.
[[nodiscard]] inline StopTokenRequest stop_token() noexcept { return {}; }

}  // namespace this_task

/// Waits for `duration`; throws Cancelled as soon as stop is requested. `scheduler` must outlive the wait.
[[nodiscard]] Task<void> sleep_for(Scheduler& scheduler, std::chrono::nanoseconds duration);
/// The same with the timers of the call's thread. Throws Error where there are none (`scheduler()` is null).
[[nodiscard]] Task<void> sleep_for(const Context& context, std::chrono::nanoseconds duration);

/// Bridges a callback to a task: give a copy to whoever will call `set` or `fail`, and await another, once:
///     Completion<int> answer;
///     library.ask([answer](int value) { answer.set(value); });
///     int value = co_await answer;
/// A handle: copies share one state, so a callback that comes after the task was cancelled or destroyed does no harm.
/// The await throws what `fail` was given, or Cancelled when stop is requested. `set` and `fail` resume the waiting
/// task before they return; the first of them counts, later ones have no effect. One thread.
template <class T = void>
class Completion {
 public:
  Completion() : state_(std::make_shared<detail::CompletionState<T>>()) {}

  void set() const
    requires std::is_void_v<T>
  {
    state_->set();
  }
  template <class U = T>
    requires(!std::is_void_v<T>)
  void set(U&& value) const {
    state_->set(static_cast<U&&>(value));
  }
  void fail(std::exception_ptr error) const { state_->fail(std::move(error)); }
  [[nodiscard]] bool completed() const noexcept { return state_->completed; }

  [[nodiscard]] detail::CompletionAwaiter<T> operator co_await() const { return detail::CompletionAwaiter<T>{state_}; }

 private:
  std::shared_ptr<detail::CompletionState<T>> state_;
};

// ------------------------------------------------------------------------------------------------- several tasks

/// Runs the tasks concurrently, on this thread, and returns all their values, void as std::monostate. When one
/// throws, the others are asked to stop (those not begun are dropped), and once all are done, that is thrown.
/// The tasks see a stop token of their own, which also stops when the awaiting task's does.
template <class... Ts>
[[nodiscard]] Task<std::tuple<detail::Stored<Ts>...>> when_all(Task<Ts>... tasks);
template <class T>
  requires(!std::is_void_v<T>)
[[nodiscard]] Task<std::vector<detail::Stored<T>>> when_all(std::vector<Task<T>> tasks);
[[nodiscard]] Task<void> when_all(std::vector<Task<void>> tasks);

/// Which of several tasks finished first, counted from 0, and its value. For tasks given one by one `value` is a
/// std::variant whose alternative is `index`.
template <class Value>
struct FirstOf {
  std::size_t index;
  Value value;
};

/// Runs the tasks concurrently until the first has finished, by a value or by throwing. The others are asked to stop
/// (those not begun are dropped) and awaited; then this returns the first one's value, or throws what it threw.
/// `when_any(work(), sleep_for(context, 200ms))` bounds the time of work.
template <class... Ts>
  requires(sizeof...(Ts) > 0)
[[nodiscard]] Task<FirstOf<std::variant<detail::Stored<Ts>...>>> when_any(Task<Ts>... tasks);
/// Of no tasks none can be first: an empty vector is std::invalid_argument.
template <class T>
[[nodiscard]] Task<FirstOf<detail::Stored<T>>> when_any(std::vector<Task<T>> tasks);

// ------------------------------------------------------------------------------------------------ starting tasks

/// Runs `task` until it first waits. `done(TaskResult<T>)` is called exactly once, when it has finished: before start
/// returns, or later from whoever resumes it. The frame is destroyed before `done` is called; `done` must not throw.
/// `stop` is the stop token of the task and of all that it awaits.
/// The task owns itself: if it never finishes, its frame is never freed. See TaskScope.
template <class T, class Done>
void start(Task<T> task, std::stop_token stop, Done done);

/// Owns what was started through it and has not finished. Destroying it destroys those frames, innermost first, and
/// their `done` is not called. It may be destroyed from a `done`, but not from inside one of its tasks.
class TaskScope {
 public:
  TaskScope() = default;
  TaskScope(TaskScope&&) = delete;
  ~TaskScope() { destroy_all(); }

  /// As the free start. The task is a handler of `method`, if that is not null, and of `call` (detail::HandlerScope).
  template <class T, class Done>
  void start(Task<T> task, std::stop_token stop, Done done, const Method* method = nullptr, const void* call = nullptr);

  /// Sets what resumes the tasks that are started from now on. Without an executor, the thread that wakes a task
  /// resumes it.
  void set_executor(std::shared_ptr<detail::Executor> executor) noexcept { executor_ = std::move(executor); }
  [[nodiscard]] const std::shared_ptr<detail::Executor>& executor() const noexcept { return executor_; }
  /// Where handlers that are started from now on are shown to the watchdog: a pointer to the slot, which may be null.
  void set_watchdog_slot(detail::WatchdogSlot* const* slot) noexcept { watchdog_slot_ = slot; }
  /// Of the thread that has the loop now; null without a watchdog.
  [[nodiscard]] detail::WatchdogSlot* watchdog_slot() const noexcept {
    return watchdog_slot_ != nullptr ? *watchdog_slot_ : nullptr;
  }
  /// Whether all that was started has finished.
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  void destroy_all() noexcept;

 private:
  friend class detail::StartedRoot;
  detail::StartedRoot* first_ = nullptr;
  std::shared_ptr<detail::Executor> executor_;
  detail::WatchdogSlot* const* watchdog_slot_ = nullptr;
};

/// Runs a task that waits for nothing outside itself and returns what it came to, or throws what it threw. For tests
/// and pure code: a task that does wait is destroyed, and std::logic_error thrown.
template <class T>
T sync_wait(Task<T> task, std::stop_token stop = {});

}  // namespace wirecall

#include "wirecall/detail/task.hpp"
