// Watch: makes a loop wait for a descriptor that another library reads and writes (Loop::watch), such as a client of a
// database or an eventfd. It is level-triggered: the loop calls the function once in each turn in which the descriptor
// is ready as wanted, on the loop's thread.
//
// The loop watches a duplicate of the descriptor, so the owner may close the original at any time; the open file itself
// is closed at most a turn after the Watch is destroyed. The function may destroy the watch, change what is wanted or
// close the descriptor; it must not block. An exception that it throws leaves Loop::turn; the watch stays, and the next
// turn serves what is left of this one.
// The user owns a Watch, and destroys it before the loop. Thread: the loop's.
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

/// `ready` is the part of what is wanted for which the descriptor is ready; all of it when the peer has closed the
/// connection or failed, which the next read or write reports. `error` is 0, or the errno with which the system refuses
/// to watch the descriptor (EPERM for a regular file); after an error the function is called again only after `want`.
using WatchFunction = std::move_only_function<void(Readiness ready, int error)>;

class Watch {
 public:
  /// Watches nothing.
  Watch() noexcept;
  Watch(Watch&&) noexcept;
  Watch& operator=(Watch&&) noexcept;
  /// Ends the watch: the function is not called any more.
  ~Watch();

  /// Changes what is wanted; with `none` the function is not called. Throws std::bad_alloc.
  void want(Readiness wanted);

 private:
  friend class Loop;
  struct State;
  explicit Watch(std::shared_ptr<State> state) noexcept;

  std::shared_ptr<State> state_;
};

}  // namespace wirecall
