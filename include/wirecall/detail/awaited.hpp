// Awaited: what one coroutine at a time waits for by an AwaitedWaiter, until the class derived from it wakes that: the
// next item of a call's input, or that one more item may be sent. One thread. Not for users.
#pragma once

#include <coroutine>

#include "wirecall/task.hpp"

namespace wirecall::detail {

class Awaited;

/// A derived class calls `forget` in its destructor, before what it waits for may go.
class AwaitedWaiter : protected Waiter {
 public:
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    if (!wait(*coroutine.promise().root)) return false;
    join();
    return true;
  }

 protected:
  /// Null for what never has it wait.
  explicit AwaitedWaiter(Awaited* awaited) noexcept : awaited_(awaited) {}
  ~AwaitedWaiter() = default;
  void forget() noexcept final;

 private:
  friend class Awaited;
  void join();

  Awaited* awaited_;
  bool joined_ = false;
};

class Awaited {
 public:
  Awaited() = default;
  Awaited(Awaited&&) = delete;

 protected:
  ~Awaited() = default;
  [[nodiscard]] bool waiting() const noexcept { return waiting_ != nullptr; }
  /// `this` may be gone when it returns.
  void wake() noexcept;

 private:
  friend class AwaitedWaiter;
  /// The coroutine waits, or does not any more.
  virtual void wait_begins() {}
  virtual void wait_ends() noexcept {}

  AwaitedWaiter* waiting_ = nullptr;
};

}  // namespace wirecall::detail
