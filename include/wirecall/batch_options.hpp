// BatchOptions: when the calls that a batched function waits for are run (wirecall/batched.hpp). Shared: a parameter
// that the calls of a batch have in common. Values.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

#include "wirecall/context.hpp"

namespace wirecall {

/// A parameter that the calls of a batch have in common: only calls with equal values of it run together. It is named
/// and sent as a T.
template <class T>
struct Shared {
  T value;

  [[nodiscard]] const T& operator*() const noexcept { return value; }
  [[nodiscard]] const T* operator->() const noexcept { return &value; }
};

/// When the calls that wait are run, and how many may wait. A count is 0 only where that is said to mean something.
struct BatchOptions {
  /// The most calls in a batch, up to 65,536.
  std::size_t size = 64;
  /// For how long the first call waits for others while the function could run, up to 1 minute. 0: until those that
  /// have come in the same turn of the loop have been gathered.
  std::chrono::microseconds wait{0};
  /// Tries out whether it pays to wait for callers that have just been answered (docs/batching.md), instead of `wait`.
  bool adaptive = false;
  /// The most rows in a batch, for calls that bring several each; a call of more is a batch by itself. A call has as
  /// many as there are elements in the first of its arguments that is an array. 0: rows are not counted.
  std::size_t rows = 0;
  /// The most bytes of params in a batch; a call of more is a batch by itself.
  std::size_t bytes = std::size_t{64} << 20;
  /// How many batches run at once, up to 1024. The function has to be thread-safe where these are several.
  std::size_t concurrent = 1;
  /// The most calls that wait, `size` at least; 0 for 16 times that. A further one is -32005, with data.retry_after_ms,
  /// or the one that could no longer be answered before its deadline, or, for a call of a higher priority, the last of
  /// the lowest.
  std::size_t queue = 0;
  /// The most bytes of params that wait, `bytes` at least; 0 for 4 times that. One call may always wait, however long.
  std::size_t queue_bytes = 0;
  /// A call's priority: a greater one leaves first. Called on the loop's thread; it must not throw. Empty for 0.
  std::function<int(const Context&)> priority = {};
};

}  // namespace wirecall
