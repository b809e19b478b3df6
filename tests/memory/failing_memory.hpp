// Memory that runs out when a test says so. This test program's malloc, realloc and operator new go through here: on
// the thread that has asked for it, the N-th request fails, alone or with all that follow.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wirecall::memory {

enum class Failing : std::uint8_t {
  once,   ///< the N-th request only
  since,  ///< it and all that follow
};

/// From here to the end of its scope, or `end`, the memory of this thread fails at request `number`, counted from 1.
class FailingMemory {
 public:
  FailingMemory(std::size_t number, Failing failing) noexcept;
  ~FailingMemory() { end(); }
  FailingMemory(FailingMemory&&) = delete;

  void end() noexcept;
  /// Whether it has come to that.
  [[nodiscard]] static bool has_failed() noexcept;
};

/// What is the test's own: within its scope nothing fails, and nothing is counted.
class Spared {
 public:
  Spared() noexcept;
  ~Spared();
  Spared(Spared&&) = delete;
};

/// Bytes that this thread has requested since it began, those of blocks that have gone among them; what is spared is
/// not counted.
[[nodiscard]] std::size_t requested_bytes() noexcept;

}  // namespace wirecall::memory
