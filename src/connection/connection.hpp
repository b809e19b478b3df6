// Connection: one connection as its owner sees it, whatever is spoken on it. ConnectionOwner: keeps connections and is
// told when one has ended. Host: what all connections of one loop share. Owned by a server or client;
// everything here lives on the loop's thread.
#pragma once

#include "base/assert.hpp"
#include "rpc/dispatcher.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/loop.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::transport {
class TlsServerContext;
}

namespace wirecall::net {

/// Why a connection was closed.
enum class CloseReason : std::uint8_t {
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
[[nodiscard]] constexpr const char* name_of(CloseReason reason) noexcept {
  constexpr const char* kNames[]{"finished", "lost",   "slow",     "unreadable", "too_large",
                                 "too_deep", "silent", "heaviest", "refused"};
  return kNames[static_cast<std::size_t>(reason)];
}

class Connection {
 public:
  Connection() = default;
  Connection(Connection&&) = delete;
  virtual ~Connection() = default;

  /// Another process serves those who connect from now on: a peer that can is told to connect anew, and is served until
  /// it has gone. May be called again, for peers that could not be told before.
  virtual void ask_to_leave() noexcept {}
  /// Answers new calls with -32009 from now on. What has arrived, until nothing more has for once, is still read, and
  /// that is `busy`.
  virtual void drain() noexcept = 0;
  /// A call is being worked on, or input waits to be read.
  [[nodiscard]] virtual bool busy() const noexcept = 0;
  /// Asks the calls being worked on to stop.
  virtual void stop_calls() noexcept = 0;
  /// Reads no more input, sends what waits, tells the peer that nothing follows, and ends when the peer ends too, or
  /// is not heard of for a while.
  virtual void finish() = 0;
  /// Ends at once, whatever is due.
  virtual void cut() = 0;
  /// Asked at regular intervals: one that has been idle (no byte either way, and nothing pending) at `times` of them in
  /// a row ends as `finish` has it, with CloseReason::silent; one whose peer has taken nothing of what waits for it at
  /// as many ends with this turn, with CloseReason::slow.
  virtual void end_if_idle(std::uint8_t times) = 0;
  /// Others may do something now than before: a peer that has to say anew who it is is refused, and the connection ends
  /// as `finish` has it. Before, everybody could do everything where it `was_open`.
  virtual void authority_changed(bool was_open) { static_cast<void>(was_open); }
  /// Others vouch for client certificates than before: a peer whose certificate `now` does not accept is cut off.
  virtual void client_authorities_changed(const transport::TlsServerContext& now) { static_cast<void>(now); }
  /// A handler that it has called has lost the loop, and its thread has yet to rejoin through this connection.
  [[nodiscard]] virtual bool handler_off_loop() const noexcept = 0;
  /// Bytes of output that wait here or at the kernel's door.
  [[nodiscard]] virtual std::size_t output_bytes() const noexcept = 0;
  [[nodiscard]] bool has_output() const noexcept { return output_bytes() != 0; }

  /// For the owner: where in its table the connection is.
  std::size_t position = 0;
};

class ConnectionOwner {
 public:
  /// The connection does nothing any more; destroy it once no code of it is on a stack: after the turn, unless
  /// a handler is off the loop. `error` is an errno for CloseReason::lost, else 0.
  virtual void connection_ended(Connection& connection, CloseReason reason, int error) = 0;
  /// `promoted`, which speaks another protocol, takes the place of `connection`, which does nothing any more; destroy
  /// that as after connection_ended. Only for who owns connections that do so: a server.
  virtual void connection_promoted(Connection& connection, std::unique_ptr<Connection> promoted) {
    static_cast<void>(connection), static_cast<void>(promoted);
    WIRECALL_ASSERT(!"this owner's connections are not promoted");
  }

 protected:
  ~ConnectionOwner() = default;
};

class Channel;
class LongReader;
}  // namespace wirecall::net
namespace wirecall::framing {
class MessageDeflate;
}
namespace wirecall::net {

/// A message of more bytes is long: reading less takes some milliseconds at most. A MiB of binary and its envelope is
/// not.
inline constexpr std::size_t kLongMessageBytes = std::size_t{3} << 19;

/// The same of a message that is compressed: at worst, of blocks with codes of their own that say nothing, a byte takes
/// 100 ns.
inline constexpr std::size_t kLongPackedBytes = 64 * 1024;

/// What all connections of one loop share.
struct Host {
  /// Whether a message of so many bytes is read on another thread.
  [[nodiscard]] bool reads_off_loop(std::size_t bytes) const noexcept {
    return bytes > kLongMessageBytes && long_reader != nullptr;
  }
  [[nodiscard]] bool unpacks_off_loop(std::size_t bytes) const noexcept {
    return bytes > kLongPackedBytes && long_reader != nullptr && deflate != nullptr;
  }
  /// The same of one, however short, that may become so many bytes.
  [[nodiscard]] bool unpacks_off_loop_to(std::size_t bytes) const noexcept {
    return reads_off_loop(bytes) && deflate != nullptr;
  }

  Loop& loop;
  const Registry& registry;
  const Limits& limits;
  rpc::LoopContext& loop_context;
  ConnectionOwner& owner;
  Channel* active_channel = nullptr;                               ///< whose handlers may be running on the loop
  std::optional<std::chrono::nanoseconds> input_received_at = {};  ///< when its input was received, once that is asked
  LongReader* long_reader = nullptr;           ///< null where long messages are read by the loop itself
  framing::MessageDeflate* deflate = nullptr;  ///< null where messages of WebSocket are not compressed
};

}  // namespace wirecall::net
