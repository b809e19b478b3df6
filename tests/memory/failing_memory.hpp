// Memory that runs out when a test requests it. This test program's malloc, realloc and operator new pass through here:
// on the thread that requested it, the N-th request fails, alone or with all that follow.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wirecall::memory {

enum class Failing : std::uint8_t {
  once,   ///< the N-th request only
  since,  ///< it and all that follow
};

/// From here to the end of its scope, or `end`, this thread's memory fails at request `number`, counted from 1.
class FailingMemory {
 public:
  FailingMemory(std::size_t number, Failing failing) noexcept;
  ~FailingMemory() { end(); }
  FailingMemory(FailingMemory&&) = delete;

  void end() noexcept;
  /// Whether a request has failed.
  [[nodiscard]] static bool has_failed() noexcept;
};

/// Memory of the test itself: within its scope nothing fails, and nothing is counted.
class Spared {
 public:
  Spared() noexcept;
  ~Spared();
  Spared(Spared&&) = delete;
};

/// Bytes that this thread has requested since it began, those of freed blocks included, those under Spared excluded.
[[nodiscard]] std::size_t requested_bytes() noexcept;

}  // namespace wirecall::memory
