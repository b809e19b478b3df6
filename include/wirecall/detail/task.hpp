// The bodies behind task.hpp: promises and awaiters of Task, roots of started tasks, Completion's state, and the join
// of when_all and when_any. Not for users; included by task.hpp alone.
#pragma once

#include <coroutine>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "wirecall/task.hpp"

namespace wirecall::detail {

// ------------------------------------------------------------------------------------------------ a single task

template <class T>
class TaskPromiseBase : public PromiseBase {
 public:
  [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
  [[nodiscard]] FinalAwaiter final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { outcome.set_error(std::current_exception()); }

  ResultSlot<T> outcome;
};

template <class T>
class TaskPromise final : public TaskPromiseBase<T> {
 public:
  Task<T> get_return_object() noexcept {
    this->self = std::coroutine_handle<TaskPromise>::from_promise(*this);
    return Task<T>{*this};
  }
  template <class U = T>
  void return_value(U&& value) {
    this->outcome.set_value(static_cast<U&&>(value));
  }
};

template <>
class TaskPromise<void> final : public TaskPromiseBase<void> {
 public:
  Task<void> get_return_object() noexcept {
    self = std::coroutine_handle<TaskPromise>::from_promise(*this);
    return Task<void>{*this};
  }
  void return_void() const noexcept {}
};

template <class T>
class TaskAwaiter : public SwitchingAwaiter {
 public:
  explicit TaskAwaiter(Task<T>&& task) noexcept : task_(std::move(task)) {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> parent) noexcept {
    enter(parent.promise(), task_.promise_);
  }
  T await_resume() { return task_.promise().outcome.take(); }

 private:
  Task<T> task_;
};

template <class T>
auto PromiseBase::await_transform(Task<T>&& task) noexcept {
  return TaskAwaiter<T>{std::move(task)};
}

// ------------------------------------------------------------------------------------------------ started tasks

/// A root whose outermost coroutine is a Task.
template <class T>
class TaskRoot {
 public:
  explicit TaskRoot(Task<T>&& task) noexcept : task_(std::move(task)) {}

 protected:
  PromiseBase*& outermost() noexcept { return task_.promise_; }
  [[nodiscard]] ResultSlot<T>& outcome() const noexcept { return task_.promise().outcome; }
  void drop() noexcept { task_.destroy(); }

 private:
  Task<T> task_;
};

template <class T>
class SyncRoot final : public TaskRoot<T>, public Root {
 public:
  explicit SyncRoot(Task<T>&& task) noexcept : TaskRoot<T>(std::move(task)) {}
  ~SyncRoot() override { unwind(); }

  T wait(std::stop_token stop) {
    begin(this->outermost(), std::move(stop));
    if (!finished_) throw std::logic_error("sync_wait: the task waits for something that only a loop completes");
    return this->outcome().take();
  }

 private:
  void finished(Turn&) noexcept override { finished_ = true; }

  bool finished_ = false;
};

/// A task that owns itself, in the list of its scope, if it has one.
class StartedRoot : public Root {
 public:
  explicit StartedRoot(StartedRoot** first) noexcept;
  ~StartedRoot() override { unlink(); }

  void unlink() noexcept;

  static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
  static void operator delete(void* root, std::size_t bytes) noexcept { free_frame(root, bytes); }

 private:
  StartedRoot** link_ = nullptr;  ///< what points to this: the scope, or the one before it in the list
  StartedRoot* next_ = nullptr;
};

template <class T, class Done>
class StartedTask final : public TaskRoot<T>, public StartedRoot {
 public:
  StartedTask(Task<T>&& task, StartedRoot** first, Done&& done)
      : TaskRoot<T>(std::move(task)), StartedRoot(first), done_(std::move(done)) {}
  ~StartedTask() override { unwind(); }

  /// `this` may be gone when it returns.
  void start(std::stop_token stop) noexcept { begin(this->outermost(), std::move(stop)); }

 private:
  void finished(Turn&) noexcept override {
    TaskResult<T> result = take();
    Done done = std::move(done_);
    delete this;
    done(std::move(result));
  }

  TaskResult<T> take() noexcept {
    if (this->outcome().error()) return std::unexpected(this->outcome().error());
    try {
      if constexpr (std::is_void_v<T>) {
        return {};
      } else {
        return TaskResult<T>{this->outcome().take()};
      }
    } catch (...) {
      return std::unexpected(std::current_exception());  // moving the value threw
    }
  }

  Done done_;
};

// ------------------------------------------------------------------------------------ waiting for something outside

/// An awaiter that is woken once by something outside, or by a request to stop. It lives in the waiting frame.
class Waiter {
 public:
  explicit Waiter() = default;
  Waiter(Waiter&&) = delete;

 protected:
  ~Waiter() { wait_no_more(); }
  /// False when stop has been requested already: there is nothing to wait for.
  [[nodiscard]] bool wait(Root& root);
  /// Nothing is to come after all.
  void wait_no_more() noexcept {
    if (root_ != nullptr && root_->waiter_ == this) root_->waiter_ = nullptr;
  }
  /// What was waited for is there. `this` is gone when it returns.
  void wake() noexcept;
  void throw_if_stopped() const {
    if (stopped_) throw Cancelled{};
  }

 private:
  friend class Root;
  /// Stop was requested: nothing may call wake any more.
  virtual void forget() noexcept = 0;

  Root* root_ = nullptr;
  bool stopped_ = false;
};

template <class T>
struct CompletionState {
  ResultSlot<T> outcome;
  CompletionAwaiter<T>* waiting = nullptr;
  bool completed = false;

  template <class... U>
  void set(U&&... value) {
    if (completed) return;
    outcome.set_value(static_cast<U&&>(value)...);
    complete();
  }
  void fail(std::exception_ptr error) {
    if (completed) return;
    outcome.set_error(std::move(error));
    complete();
  }

 private:
  void complete() {
    completed = true;
    if (waiting != nullptr) std::exchange(waiting, nullptr)->wake();
  }
};

template <class T>
class CompletionAwaiter final : private Waiter {
 public:
  explicit CompletionAwaiter(std::shared_ptr<CompletionState<T>> state) noexcept : state_(std::move(state)) {}
  ~CompletionAwaiter() { forget(); }

  [[nodiscard]] bool await_ready() const noexcept { return state_->completed; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    if (state_->waiting != nullptr) throw std::logic_error("a Completion is awaited by one task only");
    if (!wait(*coroutine.promise().root)) return false;
    state_->waiting = this;
    return true;
  }
  T await_resume() {
    throw_if_stopped();
    return state_->outcome.take();
  }

 private:
  friend struct CompletionState<T>;
  void forget() noexcept override {
    if (state_->waiting == this) state_->waiting = nullptr;
  }

  std::shared_ptr<CompletionState<T>> state_;
};

// ------------------------------------------------------------------------------------------- when_all and when_any

class Join;

/// One of the tasks that a Join runs: a line of execution of its own.
class JoinedRoot : public Root {
 public:
  virtual void start(std::stop_token stop) noexcept = 0;
  [[nodiscard]] virtual const std::exception_ptr& error() const noexcept = 0;

 protected:
  void finished(Turn& turn) noexcept override;

 private:
  friend class Join;
  Join* join_ = nullptr;
  JoinedRoot* next_ = nullptr;
  std::size_t index_ = 0;
};

/// Runs tasks side by side for one coroutine, which awaits it. Decided by the first failure, or by the first that
/// finishes: then the others are asked to stop. The coroutine goes on when all are done.
class Join {
 public:
  enum class DecidedBy { failure, finish };

  /// `parent` is the awaiting coroutine's stop token.
  Join(DecidedBy decided_by, const std::stop_token& parent);
  Join(Join&&) = delete;

  void add(JoinedRoot& root) noexcept;
  /// Which one decided, in the order of add. Only once all are done, and only if one did.
  [[nodiscard]] std::size_t decider() const noexcept { return decider_->index_; }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
    return run_all(*coroutine.promise().root);
  }
  /// Throws the failure that decided.
  void await_resume() const;

 private:
  friend class JoinedRoot;
  struct Forward {
    Join* join;
    void operator()() const noexcept { join->request_stop(); }
  };
  bool run_all(Root& parent) noexcept;
  void finished(JoinedRoot& root, Turn& turn) noexcept;
  void request_stop() noexcept;

  DecidedBy decided_by_;
  std::stop_source stop_;
  JoinedRoot* first_ = nullptr;
  JoinedRoot* last_ = nullptr;
  JoinedRoot* decider_ = nullptr;
  std::exception_ptr failure_;
  std::size_t pending_ = 0;
  Root* parent_ = nullptr;
  std::stop_callback<Forward> forward_;  // last, because constructing it may request stop at once
};

template <class T>
class JoinedTask final : public TaskRoot<T>, public JoinedRoot {
 public:
  explicit JoinedTask(Task<T>&& task) noexcept : TaskRoot<T>(std::move(task)) {}
  ~JoinedTask() override { unwind(); }

  void start(std::stop_token stop) noexcept override { begin(this->outermost(), std::move(stop)); }
  [[nodiscard]] const std::exception_ptr& error() const noexcept override { return this->outcome().error(); }
  Stored<T> take() {
    if constexpr (std::is_void_v<T>) {
      this->outcome().take();
      return {};
    } else {
      return Stored<T>{this->outcome().take()};
    }
  }
};

template <class... Ts>
void add_all(Join& join, std::tuple<JoinedTask<Ts>...>& tasks) noexcept {
  std::apply([&join](auto&... task) { (join.add(task), ...); }, tasks);
}

template <class... Ts>
std::tuple<Stored<Ts>...> take_all(std::tuple<JoinedTask<Ts>...>& tasks) {
  return std::apply([](auto&... task) { return std::tuple<Stored<Ts>...>{task.take()...}; }, tasks);
}

template <std::size_t I = 0, class... Ts>
std::variant<Stored<Ts>...> take_one(std::tuple<JoinedTask<Ts>...>& tasks, std::size_t index) {
  if constexpr (I + 1 < sizeof...(Ts)) {
    if (index != I) return take_one<I + 1>(tasks, index);
  }
  return std::variant<Stored<Ts>...>{std::in_place_index<I>, std::get<I>(tasks).take()};
}

/// The tasks of a vector; a deque, because roots stay in place.
template <class T>
std::deque<JoinedTask<T>> joined(std::vector<Task<T>>& tasks, Join& join) {
  std::deque<JoinedTask<T>> roots;
  for (Task<T>& task : tasks) join.add(roots.emplace_back(std::move(task)));
  return roots;
}

}  // namespace wirecall::detail

namespace wirecall {

template <class T, class Done>
void start(Task<T> task, std::stop_token stop, Done done) {
  (new detail::StartedTask<T, Done>(std::move(task), nullptr, std::move(done)))->start(std::move(stop));
}

template <class T, class Done>
void TaskScope::start(Task<T> task, std::stop_token stop, Done done, const Method* method, const void* call) {
  auto* const started = new detail::StartedTask<T, Done>(std::move(task), &first_, std::move(done));
  started->set_executor(&executor_);
  started->set_handler(method, watchdog_slot_);
  started->set_call(call);
  started->start(std::move(stop));
}

template <class T>
T sync_wait(Task<T> task, std::stop_token stop) {
  return detail::SyncRoot<T>{std::move(task)}.wait(std::move(stop));
}

template <class... Ts>
Task<std::tuple<detail::Stored<Ts>...>> when_all(Task<Ts>... tasks) {
  const std::stop_token& stop = co_await this_task::stop_token();
  detail::Join join{detail::Join::DecidedBy::failure, stop};
  std::tuple<detail::JoinedTask<Ts>...> roots{std::move(tasks)...};
  detail::add_all(join, roots);
  co_await join;
  co_return detail::take_all(roots);
}

template <class T>
  requires(!std::is_void_v<T>)
Task<std::vector<detail::Stored<T>>> when_all(std::vector<Task<T>> tasks) {
  const std::stop_token& stop = co_await this_task::stop_token();
  detail::Join join{detail::Join::DecidedBy::failure, stop};
  std::deque<detail::JoinedTask<T>> roots = detail::joined(tasks, join);
  co_await join;
  std::vector<detail::Stored<T>> values;
  values.reserve(roots.size());
  for (auto& root : roots) values.push_back(root.take());
  co_return values;
}

template <class... Ts>
  requires(sizeof...(Ts) > 0)
Task<FirstOf<std::variant<detail::Stored<Ts>...>>> when_any(Task<Ts>... tasks) {
  const std::stop_token& stop = co_await this_task::stop_token();
  detail::Join join{detail::Join::DecidedBy::finish, stop};
  std::tuple<detail::JoinedTask<Ts>...> roots{std::move(tasks)...};
  detail::add_all(join, roots);
  co_await join;
  co_return FirstOf<std::variant<detail::Stored<Ts>...>>{join.decider(), detail::take_one(roots, join.decider())};
}

template <class T>
Task<FirstOf<detail::Stored<T>>> when_any(std::vector<Task<T>> tasks) {
  if (tasks.empty()) throw std::invalid_argument("when_any: of no tasks none can be first");
  const std::stop_token& stop = co_await this_task::stop_token();
  detail::Join join{detail::Join::DecidedBy::finish, stop};
  std::deque<detail::JoinedTask<T>> roots = detail::joined(tasks, join);
  co_await join;
  co_return FirstOf<detail::Stored<T>>{join.decider(), roots[join.decider()].take()};
}

}  // namespace wirecall
