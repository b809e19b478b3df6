// The machinery under Task and Stream: how a coroutine starts, hands over to the one it awaits, and comes back.
// Not for users. Every switch between coroutines goes through one loop (Root::run) instead of one coroutine resuming
// another, because GCC 12 makes no tail call of a symmetric transfer at -O0 or under sanitizers: so awaits cost no
// stack on any compiler, neither in number nor in depth.
//
// A Root is one line of execution: an outermost coroutine, the ones it awaits below it, innermost in `current_`.
// Exactly one coroutine of a root runs or waits at a time, and one thread at a time may run it.
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace wirecall {

class Method;
template <class T>
class Task;

namespace this_task {
/// What `stop_token()` returns: awaiting it never suspends.
struct StopTokenRequest {};
}  // namespace this_task

namespace detail {

/// Memory for coroutine frames and what starts them, recycled per thread.
[[nodiscard]] void* allocate_frame(std::size_t bytes);
void free_frame(void* frame, std::size_t bytes) noexcept;

class Executor;
class Root;
class Waiter;
struct WatchdogSlot;

/// Whether the present thread runs the handler of `call`, itself or what it awaits: not a task that it has started.
[[nodiscard]] bool runs_handler_of(const void* call) noexcept;

/// The present thread runs the handler of `call` as long as this lives; null for none.
class HandlerScope {
 public:
  explicit HandlerScope(const void* call) noexcept;
  ~HandlerScope();
  HandlerScope(HandlerScope&&) = delete;

 private:
  const void* outer_;
};

/// One run of the loop: whose turn it is next. It lives on the stack of whoever runs the loop.
struct Turn {
  Root* next = nullptr;
};

/// What the promises of Task and Stream have in common. The coroutine's frame owns it.
class PromiseBase {
 public:
  PromiseBase() = default;
  PromiseBase(const PromiseBase&) = delete;
  PromiseBase& operator=(const PromiseBase&) = delete;

  std::coroutine_handle<> self;
  Root* root = nullptr;           ///< whose line of execution this runs in; set when it is started
  PromiseBase* parent = nullptr;  ///< the coroutine that awaits this one; null for the outermost
  PromiseBase** owner = nullptr;  ///< where the Task or Stream that owns this frame points to it

  /// A coroutine that is done, or that yields, hands over to whoever awaits it.
  void leave() noexcept;

  template <class T>
  auto await_transform(Task<T>&& task) noexcept;
  template <class T>
  void await_transform(Task<T>& task) = delete;  // A task runs once: co_await std::move(task).
  auto await_transform(this_task::StopTokenRequest) noexcept;
  template <class Awaitable>
  decltype(auto) await_transform(Awaitable&& awaitable);

  static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
  static void operator delete(void* frame, std::size_t bytes) noexcept { free_frame(frame, bytes); }

 protected:
  ~PromiseBase() = default;
};

/// One line of execution. Whoever starts a task owns its Root, keeps it in place, and is told when it has finished.
class Root {
 public:
  Root() = default;
  Root(Root&&) = delete;
  virtual ~Root() = default;

  [[nodiscard]] const std::stop_token& stop_token() const noexcept { return stop_; }
  /// What resumes this root. Null, or a pointer to null, where the thread that wakes it resumes it. The pointer is
  /// valid as long as the root.
  [[nodiscard]] const std::shared_ptr<Executor>* executor() const noexcept { return executor_; }
  void set_executor(const std::shared_ptr<Executor>* executor) noexcept { executor_ = executor; }
  /// What runs here is a handler of `method`. The watchdog, if there is one, sees it in the slot to which `slot` points
  /// at that time.
  void set_handler(const Method* method, WatchdogSlot* const* slot) noexcept {
    method_ = slot != nullptr ? method : nullptr;
    watchdog_slot_ = slot;
  }
  /// What runs here is the handler of `call`, for HandlerScope.
  void set_call(const void* call) noexcept { call_ = call; }
  /// Takes the executor of `other`, and is part of the same handler.
  void belong_to(const Root& other) noexcept {
    call_ = other.call_;
    executor_ = other.executor_;
    method_ = other.method_;
    watchdog_slot_ = other.watchdog_slot_;
  }
  /// Its frames are being destroyed: it must not be run any more.
  [[nodiscard]] bool unwinding() const noexcept { return unwinding_; }

  /// Runs the innermost coroutine, and whatever that leads to, until this line of execution waits or has finished.
  /// `this` may be gone when it returns.
  void run() noexcept {
    Turn turn{this};
    run(turn);
  }

  /// `promise` runs next: at once when no loop is running this root, else when the present coroutine has suspended.
  void switch_to(PromiseBase& promise) noexcept {
    current_ = &promise;
    hand_over();
  }

  /// The outermost coroutine is done.
  void finish() noexcept {
    current_ = nullptr;
    hand_over();
  }

  /// Before the innermost coroutine suspends for something outside: whoever resumes it then starts a new loop, perhaps
  /// on another thread, and the present loop does not look at this root again.
  [[nodiscard]] Turn* detach() noexcept { return std::exchange(turn_, nullptr); }
  /// After all it goes on at once.
  void attach(Turn* turn) noexcept { turn_ = turn; }

 protected:
  /// Runs what `outermost` points to, until it first waits.
  void begin(PromiseBase*& outermost, std::stop_token stop) noexcept {
    stop_ = std::move(stop);
    outermost->root = this;
    outermost->owner = &outermost;
    current_ = outermost;
    run();
  }
  /// Destroys the frames of what has not finished, innermost first and without recursion. The outermost is left to
  /// its owner when it has finished.
  void unwind() noexcept;

  /// Called from the loop once the outermost coroutine is done, when nothing of this root is on the stack. It may
  /// destroy the root, and may name another one to run next.
  virtual void finished(Turn& turn) noexcept = 0;

 private:
  friend class Waiter;
  struct OnStop {
    Root* root;
    void operator()() const noexcept;
  };

  static void run(Turn& turn) noexcept;
  void hand_over() noexcept {
    if (turn_ != nullptr) {
      turn_->next = this;
    } else {
      // A foreign awaiter resumed the coroutine itself, so no loop is there to come back to.
      run();
    }
  }

  PromiseBase* current_ = nullptr;
  Turn* turn_ = nullptr;
  Waiter* waiter_ = nullptr;  // what a request to stop ends
  const std::shared_ptr<Executor>* executor_ = nullptr;
  const Method* method_ = nullptr;  // of a handler that may be watched
  WatchdogSlot* const* watchdog_slot_ = nullptr;
  const void* call_ = nullptr;  // whose handler runs here
  std::stop_token stop_;
  std::optional<std::stop_callback<OnStop>> on_stop_;  // since the first wait: joining costs more than most waits
  bool unwinding_ = false;
};

inline void PromiseBase::leave() noexcept {
  if (parent != nullptr) {
    root->switch_to(*parent);
  } else {
    root->finish();
  }
}

/// Starts or continues `child`, which its owner points to, on behalf of `parent`.
inline void enter(PromiseBase& parent, PromiseBase*& child) noexcept {
  child->root = parent.root;
  child->parent = &parent;
  child->owner = &child;
  parent.root->switch_to(*child);
}

/// Awaiters derived from this hand over to another coroutine of the same root themselves.
struct SwitchingAwaiter {};

/// The end of a coroutine: control goes to whoever awaits it, the frame stays until its owner has read the result.
struct FinalAwaiter : SwitchingAwaiter {
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> coroutine) const noexcept {
    coroutine.promise().leave();
  }
  void await_resume() const noexcept {}
};

template <class T>
inline constexpr bool kHasMemberCoAwait = requires(T&& t) { static_cast<T&&>(t).operator co_await(); };
template <class T>
inline constexpr bool kHasFreeCoAwait = requires(T&& t) { operator co_await(static_cast<T&&>(t)); };

template <class T>
decltype(auto) awaiter_of(T&& awaitable) {
  if constexpr (kHasMemberCoAwait<T>) {
    return static_cast<T&&>(awaitable).operator co_await();
  } else if constexpr (kHasFreeCoAwait<T>) {
    return operator co_await(static_cast<T&&>(awaitable));
  } else {
    return static_cast<T&&>(awaitable);
  }
}

/// Any awaitable that is no coroutine of ours, ours to wait with included. It may be resumed by `handle.resume()`,
/// from inside its await_suspend or later, and on another thread.
template <class Awaitable>
class LeafAwaiter {
 public:
  explicit LeafAwaiter(Awaitable&& awaitable) : awaiter_(awaiter_of(static_cast<Awaitable&&>(awaitable))) {}

  bool await_ready() { return awaiter_.await_ready(); }

  template <class Promise>
  auto await_suspend(std::coroutine_handle<Promise> coroutine) {
    Root& root = *coroutine.promise().root;
    Turn* turn = root.detach();
    // When await_suspend throws, or declines to suspend, the coroutine goes on in the present loop.
    try {
      using Result = decltype(awaiter_.await_suspend(coroutine));
      if constexpr (std::is_void_v<Result>) {
        awaiter_.await_suspend(coroutine);
      } else if constexpr (std::is_same_v<Result, bool>) {
        const bool suspended = awaiter_.await_suspend(coroutine);
        if (!suspended) root.attach(turn);
        return suspended;
      } else {
        const std::coroutine_handle<> next = awaiter_.await_suspend(coroutine);
        if (next == coroutine) root.attach(turn);
        return next;
      }
    } catch (...) {
      root.attach(turn);
      throw;
    }
  }

  decltype(auto) await_resume() { return awaiter_.await_resume(); }

 private:
  decltype(awaiter_of(std::declval<Awaitable>())) awaiter_;
};

class StopTokenAwaiter : public SwitchingAwaiter {
 public:
  explicit StopTokenAwaiter(const std::stop_token& token) noexcept : token_(&token) {}
  [[nodiscard]] bool await_ready() const noexcept { return true; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  [[nodiscard]] const std::stop_token& await_resume() const noexcept { return *token_; }

 private:
  const std::stop_token* token_;
};

inline auto PromiseBase::await_transform(this_task::StopTokenRequest) noexcept {
  return StopTokenAwaiter{root->stop_token()};
}

template <class Awaitable>
decltype(auto) PromiseBase::await_transform(Awaitable&& awaitable) {
  if constexpr (std::derived_from<std::remove_cvref_t<Awaitable>, SwitchingAwaiter>) {
    return static_cast<Awaitable&&>(awaitable);
  } else {
    return LeafAwaiter<Awaitable>{static_cast<Awaitable&&>(awaitable)};
  }
}

/// What a coroutine came to: a value, or an exception.
template <class T>
class ResultSlot {
 public:
  template <class U = T>
  void set_value(U&& value) {
    value_.emplace(static_cast<U&&>(value));
  }
  void set_error(std::exception_ptr error) noexcept { error_ = std::move(error); }
  [[nodiscard]] const std::exception_ptr& error() const noexcept { return error_; }
  [[nodiscard]] T take() {
    if (error_) [[unlikely]]
      std::rethrow_exception(std::exchange(error_, nullptr));
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  std::exception_ptr error_;
};

template <class T>
class ResultSlot<T&> {
 public:
  void set_value(T& value) noexcept { value_ = std::addressof(value); }
  void set_error(std::exception_ptr error) noexcept { error_ = std::move(error); }
  [[nodiscard]] const std::exception_ptr& error() const noexcept { return error_; }
  [[nodiscard]] T& take() {
    if (error_) [[unlikely]]
      std::rethrow_exception(std::exchange(error_, nullptr));
    return *value_;
  }

 private:
  T* value_ = nullptr;
  std::exception_ptr error_;
};

template <>
class ResultSlot<void> {
 public:
  void set_value() noexcept {}
  void set_error(std::exception_ptr error) noexcept { error_ = std::move(error); }
  [[nodiscard]] const std::exception_ptr& error() const noexcept { return error_; }
  void take() {
    if (error_) [[unlikely]]
      std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  std::exception_ptr error_;
};

}  // namespace detail
}  // namespace wirecall
