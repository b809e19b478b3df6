// Connection: one connection as its owner sees it, whatever is spoken on it. Owner: whoever keeps connections and is
// told when one has ended. Host: what all connections of one loop have in common. Owned by a server or client;
// everything here lives on the loop's thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "rpc/dispatcher.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/loop.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::session {

/// Why a connection has ended.
enum class End : std::uint8_t {
  finished,    ///< in order: the peer has ended and everything before that is answered
  lost,        ///< the connection failed
  slow,        ///< the peer does not read: too much output waits, or for too long
  unreadable,  ///< the peer sent what cannot be understood
  too_large,   ///< the peer sent a message over Limits::max_message_size
  too_deep,    ///< the peer sent a message over Limits::depth
  silent,      ///< the peer did not send in time what it had to
  heaviest,    ///< of its principal's connections, which held too much together, it held most
  refused,     ///< the peer did not say who it is, or may not stay
};

/// The same in a word.
[[nodiscard]] constexpr const char* name_of(End end) noexcept {
  constexpr const char* kNames[]{"finished", "lost",   "slow",     "unreadable", "too_large",
                                 "too_deep", "silent", "heaviest", "refused"};
  return kNames[static_cast<std::size_t>(end)];
}

class Connection {
 public:
  Connection() = default;
  Connection(Connection&&) = delete;
  virtual ~Connection() = default;

  /// Answers new calls with -32009 from now on. What has arrived, until nothing more has for once, is
  /// still looked at, and that is `busy`.
  virtual void drain() noexcept = 0;
  /// A call is being worked on, or input waits to be looked at.
  [[nodiscard]] virtual bool busy() const noexcept = 0;
  /// Asks the calls being worked on to stop.
  virtual void stop_calls() noexcept = 0;
  /// Looks at no more input, sends what waits, tells the peer that nothing follows, and ends when the peer ends too, or
  /// is not heard of for a while.
  virtual void finish() = 0;
  /// Ends at once, whatever is due.
  virtual void cut() = 0;
  /// Asked at regular intervals: one that has been idle (no byte either way, and nothing pending) at `times` of them in
  /// a row ends as `finish` has it, with End::silent; one whose peer has taken nothing of what waits for it at as many
  /// ends with this turn, with End::slow.
  virtual void end_if_idle(std::uint8_t times) = 0;
  /// Others may do something now than before: a peer that has to say anew who it is is refused, and the connection ends
  /// as `finish` has it. Before, everybody could do everything where it `was_open`.
  virtual void authority_changed(bool was_open) { static_cast<void>(was_open); }
  /// A handler that it has called has lost the loop, and its thread is still to come back through it.
  [[nodiscard]] virtual bool handler_away() const noexcept = 0;
  /// Bytes of output that wait here or at the kernel's door.
  [[nodiscard]] virtual std::size_t output_bytes() const noexcept = 0;
  [[nodiscard]] bool has_output() const noexcept { return output_bytes() != 0; }

  /// For the owner: where in its table the connection is.
  std::size_t position = 0;
};

class Owner {
 public:
  /// The connection does nothing any more; destroy it once no code of it is on a stack: after the turn, unless
  /// a handler is away. `error` is an errno for End::lost, else 0.
  virtual void connection_ended(Connection& connection, End end, int error) = 0;

 protected:
  ~Owner() = default;
};

class Channel;
class LongReader;

/// What all connections of one loop have in common.
struct Host {
  Loop& loop;
  const Registry& registry;
  const Limits& limits;
  rpc::Workspace& workspace;
  Owner& owner;
  Channel* looking = nullptr;  ///< whose handlers may be running, unless they have come back late
  std::optional<std::chrono::nanoseconds> looking_came = {};  ///< when its input had come, once that is asked
  LongReader* long_reader = nullptr;                          ///< null where long messages are read by the loop itself
};

}  // namespace wirecall::session
