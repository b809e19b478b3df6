// Backend: the one seam between wirecall and the operating system's I/O. It is shaped by completions: once per turn it
// takes a list of operations and gives a list of what has completed. Not a loop (loop.hpp) and no policy: it does not
// know what the bytes mean, who is told, or when to give up.
//
// Ownership: a descriptor belongs to the backend from `open` until `close` has completed; a Buffer belongs to it from
// `send` until the completion gives it back. Bytes of a receive completion are lent until the next turn, kPaddingBytes
// readable behind them, the first of them zero; whoever is lent them may write to them.
// Thread: the loop's, but for `wake`.
#pragma once

#include <span>

#include "base/sanitizers.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/engine.hpp"
#include "wirecall/log.hpp"
#include "wirecall/watch.hpp"

namespace wirecall::runtime {

/// Names something open at a backend. The loop gives slots out; a slot is used again under another generation, so
/// whatever comes late for the former user is recognised.
struct Handle {
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
  friend bool operator==(const Handle&, const Handle&) = default;
};

enum class OperationKind : std::uint8_t {
  open,     ///< `descriptor` is known as `handle` from now on; never completes
  accept,   ///< multishot: completes once for each connection that arrives
  receive,  ///< multishot: completes once for each run of bytes, then with zero bytes at the end of the stream; and
            ///< unasked, with an error, when a connection breaks on which nothing is in flight
  cancel,   ///< ends the accept or receive of `handle`, which completes with ECANCELED; itself it never completes
  poll,     ///< multishot, level-triggered: completes once in each turn in which the descriptor is ready for what is
            ///< wanted, or with an error when the system refuses to watch it, and then no more; a further one changes
            ///< what is wanted. Not on a handle that accepts, receives or sends. Ends with `close`, and is not told so
  send,     ///< completes when all bytes are taken, or with an error; at most one a handle at a time
  shut_down,  ///< ends the stream towards the peer; never completes
  close,      ///< what is in flight completes with ECANCELED, then this completes, and the slot is free
};

/// What a caller wants done. Several of one handle are done in the order of the list.
struct Operation {
  OperationKind kind;
  /// For send: its completion ends the wait of this turn. Otherwise a send that was taken whole is told with whatever
  /// ends the wait, so that it costs no turn of its own.
  bool prompt = false;
  Readiness wanted = Readiness::none;  ///< poll
  Handle handle;
  int descriptor = -1;
  Buffer buffer;
};

/// What became of an operation.
struct Completion {
  OperationKind kind;
  /// A multishot operation has ended with this, and must be submitted again to go on.
  bool last = true;
  Readiness ready = Readiness::none;  ///< poll: of what is wanted; where the peer has gone or failed, all of that
  Handle handle;
  int error = 0;          ///< an errno, 0 for success
  int descriptor = -1;    ///< accept: the new connection, owned by whoever takes it out, leaving -1
  std::span<char> bytes;  ///< receive
  Buffer buffer;          ///< send: the buffer given, for another use
};

/// Times that stand for a wait without end, and for none.
inline constexpr std::chrono::nanoseconds kForever = std::chrono::nanoseconds::max();
inline constexpr std::chrono::nanoseconds kAtOnce{0};

class Backend {
 public:
  virtual ~Backend() = default;

  /// Does what was submitted, waits until the time `until` at the latest for something to complete or to be woken, and
  /// returns what has completed, in the order in which it did. It may return early with nothing. The list is valid
  /// until the next turn.
  virtual std::span<Completion> turn(std::span<Operation> submitted, std::chrono::nanoseconds until) = 0;
  /// Whether the time `until` of the last turn may have come: looking at the clock costs a turn with one request 1 %.
  [[nodiscard]] virtual bool time_may_be_up() const noexcept { return true; }
  /// Handles will have slots below `slots`. A backend that asks for memory does so here, and throws when there is none,
  /// or before it has done anything in a turn: a turn that throws std::bad_alloc can be tried again. What the last turn
  /// has returned stays where it is.
  virtual void expect([[maybe_unused]] std::size_t slots) {}
  /// Ends the wait of the present or the next turn. Any thread, and signal handlers.
  virtual void wake() noexcept = 0;
  /// The bytes lent in the present turn stay readable and writable for as long as what is returned lives. Throws
  /// std::bad_alloc or std::system_error when the system has nothing in their place; then nothing has changed.
  [[nodiscard]] virtual std::shared_ptr<void> keep_lent() = 0;
  /// Bytes that have arrived for `handle` and have not been received: 0 for what is not open.
  [[nodiscard]] virtual std::size_t readable(Handle handle) const noexcept = 0;
  /// Bytes of the send of `handle` that is in flight which have not been taken yet: 0 for none.
  [[nodiscard]] virtual std::size_t unsent(Handle handle) const noexcept = 0;
  /// A clock that only goes forward; simulated backends have their own time.
  [[nodiscard]] virtual std::chrono::nanoseconds now() const noexcept = 0;
  /// What that clock said some milliseconds ago at most; a look costs nearly nothing.
  [[nodiscard]] virtual std::chrono::nanoseconds recently() const noexcept { return now(); }
};

/// Linux epoll, level-triggered. A receive completes with `receive_bytes` at most, and each time that so many have
/// come, the next one with twice as many, up to 256 KiB; beyond 64 KiB it stays at that until 16 in a row were smaller
/// than 16 KiB.
/// Throws std::system_error when the kernel refuses its descriptors.
[[nodiscard]] std::unique_ptr<Backend> make_epoll_backend(std::size_t receive_bytes = 64 * 1024);

/// Linux io_uring. Throws std::system_error when the kernel, or a filter in front of it, refuses something that is
/// needed; it is tried here, so a backend that was made works. Its turns may come from one thread after another, but
/// each change of the thread costs about 100 us, and interrupts (EINTR) what the former one may be waiting for. A
/// receive completes with 16 KiB at most; when so many have come, the next ones with up to 256 KiB, until 16 in a row
/// were smaller than 16 KiB.
[[nodiscard]] std::unique_ptr<Backend> make_uring_backend();

// ThreadSanitizer does not see what the kernel does between the ends of a ring, and reports races that are none.
inline constexpr bool kRingsAreFollowed = !kThreadSanitizer;

/// The backend of a loop that is to wait by `engine`. When io_uring was asked for, or nothing, and is not to be had,
/// it is epoll, and `log` is told the cause and the cure: a warning when it was asked for. It is also epoll when
/// nothing was asked for and a sanitizer runs that io_uring would confuse.
[[nodiscard]] std::unique_ptr<Backend> make_backend(Engine engine, const LogSink& log);

}  // namespace wirecall::runtime
