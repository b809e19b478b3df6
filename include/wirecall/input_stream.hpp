// InputStream<T>: a parameter by which a handler reads the stream that its caller sends beside the params, as in gRPC a
// method declared `rpc Sum(stream T)`:
//     Task<int> sum_all(InputStream<int> in) { int sum = 0; while (auto v = co_await in.next()) sum += *v; co_return
//     sum; }
// It may stand anywhere among the parameters of a coroutine, once, and is no param: callers do not name it. A handler
// that returns a Stream as well reads and yields at the same time. The caller sends as many items as the handler makes
// room for by reading. A caller that sends no stream gives an empty one.
//
// Lifetime and thread: the handler's. It outlives the call safely: after its end `next` throws Cancelled.
// Implements docs/wire.md "Streams towards a handler".
#pragma once

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "wirecall/codec.hpp"
#include "wirecall/detail/awaited.hpp"
#include "wirecall/error.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall {

namespace detail {

class Input;

/// Waits until an item has come, or the end; throws Cancelled when stop is requested first.
class InputWaiter : public AwaitedWaiter {
 public:
  explicit InputWaiter(std::shared_ptr<Input> input) noexcept;

  [[nodiscard]] bool await_ready() const;

 protected:
  ~InputWaiter() { forget(); }
  /// The reader of the next item; null at the end. Throws what the stream has failed with.
  [[nodiscard]] Reader* take();
  /// The item that was taken last is none of that type: -32602, and the stream is over.
  [[nodiscard]] Error refuse();

 private:
  std::shared_ptr<Input> input_;
};

/// Where the items of one call's input come from. Owned by the handler's InputStream; one thread.
class Input : public Awaited {
 public:
  virtual ~Input() = default;

 private:
  friend class InputWaiter;
  /// The handler asks for the next item: whether it, the end or a failure is there.
  [[nodiscard]] virtual bool ask() = 0;
  [[nodiscard]] virtual Reader* take() = 0;
  [[nodiscard]] virtual Error refuse() = 0;
};

inline InputWaiter::InputWaiter(std::shared_ptr<Input> input) noexcept
    : AwaitedWaiter(input.get()), input_(std::move(input)) {}

template <class T>
class InputAwaiter final : public InputWaiter {
 public:
  using InputWaiter::InputWaiter;

  std::optional<T> await_resume() {
    throw_if_stopped();
    Reader* const reader = take();
    if (reader == nullptr) return std::nullopt;
    std::optional<T> item{std::in_place};
    if (!decode(*reader, *item)) throw refuse();
    return item;
  }
};

}  // namespace detail

template <class T>
class [[nodiscard]] InputStream {
  static_assert(std::is_object_v<T> && std::is_default_constructible_v<T>,
                "wirecall: an InputStream brings values, which are made first and then decoded into");

 public:
  using value_type = T;

  /// An empty stream.
  InputStream() = default;
  explicit InputStream(std::shared_ptr<detail::Input> input) noexcept : input_(std::move(input)) {}

  /// `std::optional<T> item = co_await in.next();` waits for the next item; empty at the end, and for ever after.
  /// Throws Error -32602 for an item that is no T, -32800 where the caller sends no more without having ended its
  /// stream, and Cancelled when the call is over. Awaited in a Task or Stream, one at a time. What an item borrows (a
  /// std::string_view) lasts until the next one is asked for.
  [[nodiscard]] detail::InputAwaiter<T> next() noexcept { return detail::InputAwaiter<T>{input_}; }

 private:
  std::shared_ptr<detail::Input> input_;
};

}  // namespace wirecall
