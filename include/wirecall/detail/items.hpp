// Items: where the values of a handler's stream go, one by one: into one array that answers the call, or each to the
// caller at once, as fast as the caller takes them. Which it is, Call::items decides; a handler does not know.
// Owned by the task that passes the values on; one thread, but those to which nothing has been added may go on any.
// Not for users.
#pragma once

#include <memory>
#include <string_view>

#include "wirecall/codec.hpp"
#include "wirecall/detail/awaited.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::detail {

class Items;

/// Waits until one more item may be added; throws Cancelled when stop is requested first.
class ItemsAwaiter final : public AwaitedWaiter {
 public:
  explicit ItemsAwaiter(Items& items) noexcept;
  ~ItemsAwaiter() { forget(); }

  [[nodiscard]] bool await_ready() const noexcept;
  void await_resume() const { throw_if_stopped(); }

 private:
  Items* items_;
};

class Items : public Awaited {
 public:
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
  /// The same for an item that is encoded already, by Call::item_codec.
  void add_encoded(std::string_view item) {
    begin().encoded(item);
    end();
  }
  /// What the call is answered with after the last item.
  virtual void write_result(Writer& writer) = 0;

 private:
  friend class ItemsAwaiter;
  /// Where the next item is written; then one of the other two.
  virtual Writer& begin() = 0;
  virtual void end() = 0;
  virtual void discard() noexcept = 0;
  [[nodiscard]] virtual bool writable() noexcept = 0;
};

/// What remains to be said once a stream has ended.
struct StreamResult {
  std::shared_ptr<Items> items;
};

inline ItemsAwaiter::ItemsAwaiter(Items& items) noexcept : AwaitedWaiter(&items), items_(&items) {}

}  // namespace wirecall::detail
