// Watch: a descriptor that a loop watches for a library that reads and writes it by itself (Loop::watch): a client of a
// message broker or a database, an eventfd. It is level-triggered: in each turn of the loop in which the descriptor is
// ready for what is wanted, the function is called once, on the loop's thread.
//
// The loop watches a duplicate. The descriptor stays its owner's, who may close it at any time; its file is closed a
// turn after the watch has gone, if that was the last.
// The function may do anything: destroy the watch, want something else, close the descriptor. What it throws leaves by
// Loop::turn; the watch goes on, and the next turn begins with what this one has left. It must not block.
// Belongs to its user, who destroys it before the loop. Thread: the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace wirecall {

class Loop;

/// What a descriptor is ready for, or is to be watched for. Flags.
enum class Readiness : std::uint8_t { none = 0, readable = 1, writable = 2, both = 3 };

[[nodiscard]] constexpr Readiness operator|(Readiness a, Readiness b) noexcept {
  return static_cast<Readiness>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
[[nodiscard]] constexpr Readiness operator&(Readiness a, Readiness b) noexcept {
  return static_cast<Readiness>(static_cast<std::uint8_t>(a) & static_cast<std::uint8_t>(b));
}
[[nodiscard]] constexpr bool wants(Readiness wanted, Readiness one) noexcept { return (wanted & one) == one; }

/// Told which of what is wanted the descriptor is ready for: all of it where its peer has gone or failed, as the next
/// read or write will say. `error` is 0; or the errno with which the system refuses to watch the descriptor (EPERM for
/// a file of a disk): then nothing more comes until something is wanted again.
using WatchFunction = std::move_only_function<void(Readiness ready, int error)>;

class Watch {
 public:
  /// None.
  Watch() noexcept;
  Watch(Watch&&) noexcept;
  Watch& operator=(Watch&&) noexcept;
  /// The function is not called any more.
  ~Watch();

  /// Changes what is wanted; of `none` nothing is told. Throws std::bad_alloc.
  void want(Readiness wanted);

 private:
  friend class Loop;
  struct State;
  explicit Watch(std::shared_ptr<State> state) noexcept;

  std::shared_ptr<State> state_;
};

}  // namespace wirecall
