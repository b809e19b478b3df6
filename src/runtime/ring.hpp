// Ring: one io_uring and the buffers that the kernel receives into, with as little of the kernel's interface as the
// backend needs (uring.cpp, which decides what is asked for). Needs Linux 6.1: completions are only posted while we are
// in `enter`, so what the kernel does and what we do to a connection never overlap.
// Owned by a backend. Made and destroyed on any thread, used on the one that has called `enable`: the kernel takes
// entries from no other. Threads that have made or used a ring and are still there when it is destroyed have a system
// call interrupted (EINTR), as by a signal; so rings are made by threads that end.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <liburing.h>
#include <memory>
#include <vector>

#include "wirecall/bytes.hpp"

namespace wirecall::runtime {

/// Memory that a ring receives into: kCount buffers of kBytes and, numbered behind them, kLargeCount of kLargeBytes,
/// kPaddingBytes behind each. What nothing was received into takes no memory. Outlives the ring.
class ReceiveBuffers {
 public:
  /// Few and small enough to stay in the processor's cache, large enough for a turn of a busy connection.
  static constexpr unsigned kCount = 64;
  static constexpr std::size_t kBytes = 16 * 1024;
  /// For connections whose messages are large: what comes whole is read once and copied nowhere.
  static constexpr unsigned kLargeCount = 4;
  static constexpr std::size_t kLargeBytes = 256 * 1024;
  static constexpr unsigned kNumbers = kCount + kLargeCount;

  ReceiveBuffers() : memory_(std::make_shared_for_overwrite<char[]>(kCount * kStride + kLargeCount * kLargeStride)) {}
  /// The memory, which lives as long as this does, too.
  [[nodiscard]] std::shared_ptr<char[]> memory() const noexcept { return memory_; }
  [[nodiscard]] static constexpr bool is_large(unsigned number) noexcept { return number >= kCount; }
  [[nodiscard]] char* at(unsigned number) const noexcept {
    return memory_.get() + std::min(number, kCount) * kStride + (is_large(number) ? number - kCount : 0) * kLargeStride;
  }

 private:
  static constexpr std::size_t kStride = kBytes + kPaddingBytes;
  static constexpr std::size_t kLargeStride = kLargeBytes + kPaddingBytes;
  std::shared_ptr<char[]> memory_;
};

/// What the kernel tells of an entry.
struct RingCompletion {
  std::uint64_t user_data;
  std::int32_t result;
  std::uint32_t flags;
};

class Ring {
 public:
  /// What completes in a turn beyond this the kernel keeps in a list of its own, which is slower but loses nothing.
  static constexpr unsigned kCompletions = 4096;

  /// Throws std::system_error with what the kernel refused. All buffers are the kernel's from now on.
  explicit Ring(const ReceiveBuffers& buffers);
  ~Ring() { ::io_uring_queue_exit(&ring_); }
  Ring(Ring&&) = delete;

  /// The calling thread uses the ring from now on; once.
  void enable();
  [[nodiscard]] bool enabled() const noexcept { return enabled_; }

  /// A new entry to fill in; handed over by the next `enter`, or before when there are too many.
  [[nodiscard]] io_uring_sqe& entry();
  /// Hands over all entries without looking for completions.
  void submit();
  /// Hands over all entries and waits at most `wait_max` (for ever when negative) for a completion or a signal.
  void enter(std::chrono::nanoseconds wait_max);

  /// Appends all completions that there are, those included that had no room in the ring, as long as `into` has
  /// capacity for them; capacity for a whole ring needs no memory.
  void take(std::vector<RingCompletion>& into);
  [[nodiscard]] const ReceiveBuffers& buffers() const noexcept { return buffers_; }

  /// Makes `entry` a receive that goes on until it fails, each run of bytes in a buffer of its own; or a receive of one
  /// run of bytes, in a large buffer.
  static void receive(io_uring_sqe& entry, int fd, bool large) noexcept;
  /// Lets the kernel have the buffer again.
  void give_back(unsigned buffer) noexcept;

 private:
  using FreeBuffers = std::unique_ptr<io_uring_buf_ring, void (*)(void*)>;

  static FreeBuffers make_free_buffers();
  void provide(io_uring_buf_ring& free, std::uint16_t group, unsigned count);

  ReceiveBuffers buffers_;
  FreeBuffers free_ = make_free_buffers();
  FreeBuffers free_large_ = make_free_buffers();
  io_uring ring_{};
  bool enabled_ = false;
};

/// Tries all that the backend asks of the kernel on a connection to ourselves, and makes a ring, on a thread that ends.
/// Throws std::system_error when the kernel, or a filter in front of it, refuses.
[[nodiscard]] std::unique_ptr<Ring> try_and_make_ring(const ReceiveBuffers& buffers);

}  // namespace wirecall::runtime
