// Items: where the values of a handler's stream go, one by one: into one array that answers the call, or each to the
// caller at once, as fast as the caller takes them. Which it is, Call::items decides; a handler does not know.
// Owned by the task that passes the values on; one thread. Not for users.
#pragma once

#include <coroutine>
#include <string_view>

#include "wirecall/codec.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/task.hpp"

namespace wirecall::detail {

class Items;

/// Waits until one more item may be added; throws Cancelled when stop is requested first.
class ItemsAwaiter final : private Waiter {
 public:
  explicit ItemsAwaiter(Items& items) noexcept : items_(&items) {}
  ~ItemsAwaiter() { forget(); }

  [[nodiscard]] bool await_ready() const noexcept;
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    if (!wait(*coroutine.promise().root)) return false;
    join();
    return true;
  }
  void await_resume() const { throw_if_stopped(); }

 private:
  friend class Items;
  void join();
  void forget() noexcept override;

  Items* items_;
  bool joined_ = false;
};

class Items {
 public:
  Items() = default;
  Items(Items&&) = delete;
  virtual ~Items() = default;

  /// `co_await items.until_writable();` comes before each item.
  [[nodiscard]] ItemsAwaiter until_writable() noexcept { return ItemsAwaiter{*this}; }
  /// Throws Error when the item, or all together, are too large, or nobody waits for them any more, and
  /// std::runtime_error when it cannot be encoded.
  template <class T>
  void add(const T& item) {
    Writer& writer = begin();
    try {
      encode(writer, item);
    } catch (...) {
      discard();
      throw;
    }
    end();
  }
  /// The same for an item that is encoded already, by the call's codec.
  void add_encoded(std::string_view item) {
    begin().encoded(item);
    end();
  }
  /// What the call is answered with after the last item.
  virtual void write_result(Writer& writer) = 0;

 protected:
  [[nodiscard]] bool waiting() const noexcept { return waiting_ != nullptr; }
  /// `this` may be gone when it returns.
  void wake() noexcept;

 private:
  friend class ItemsAwaiter;
  /// Where the next item is written; then one of the other two.
  virtual Writer& begin() = 0;
  virtual void end() = 0;
  virtual void discard() noexcept = 0;
  [[nodiscard]] virtual bool writable() noexcept = 0;
  /// The task waits until the items are writable, or does not any more.
  virtual void wait_begins() {}
  virtual void wait_ends() noexcept {}

  ItemsAwaiter* waiting_ = nullptr;
};

}  // namespace wirecall::detail
