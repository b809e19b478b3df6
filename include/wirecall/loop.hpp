// Loop: the event loop of one thread. Each turn submits I/O operations, waits, dispatches completions and expired
// timers, and last lets the users that have produced output submit it. Servers and clients own loops. It has no thread
// of its own: the thread that calls `turn` is the loop's thread until `turn` returns.
//
// Thread: one at a time for everything but `wake` and `post`.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "wirecall/bytes.hpp"
#include "wirecall/context.hpp"
#include "wirecall/watch.hpp"

namespace wirecall {

namespace runtime {
class Backend;
class Inbox;
class IoUser;
class PolledUser;
class SpscChannel;
class TurnUser;
struct Handle;
struct Operation;
}  // namespace runtime

class Loop final : public Scheduler {
 public:
  /// Waits by epoll. Throws std::system_error when the kernel has no descriptors left.
  Loop();
  explicit Loop(std::unique_ptr<runtime::Backend> backend);
  /// Everything attached has been detached before; one last turn closes it.
  ~Loop() override;
  Loop(Loop&&) = delete;

  void start(Timer& timer, std::chrono::nanoseconds delay) override;
  void stop(Timer& timer) noexcept override;
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept override;
  /// A value of `now` that is at most some milliseconds old; cheaper.
  [[nodiscard]] std::chrono::nanoseconds recently() const noexcept;

  /// One turn, waiting at most `wait_max` (negative: for ever) when there is nothing to do.
  void turn(std::chrono::nanoseconds wait_max = std::chrono::nanoseconds{-1});
  /// From now on a turn that has nothing to do looks again and again for this long before it waits. Who wakes the loop
  /// in that time is answered sooner, by what it costs to put a thread to sleep and wake it; the processor is busy
  /// meanwhile, and serves nobody else. 0, as at first, for waiting at once.
  void spin_for(std::chrono::nanoseconds time) noexcept;
  /// Ends the wait of the present or the next turn. Any thread, and signal handlers.
  void wake() noexcept;
  /// Runs `job`, which must not throw, on the loop's thread in its next turn; jobs keep their order. Any thread. False,
  /// and `job` is dropped, when 65,536 jobs wait already. A thread that may outlive the loop posts to its inbox
  /// instead.
  [[nodiscard]] bool post(std::move_only_function<void()> job);

  /// Calls `function` once in each turn in which `descriptor` is ready as `wanted`, until the returned Watch is
  /// destroyed (wirecall/watch.hpp). Throws std::system_error when the system cannot duplicate the descriptor.
  [[nodiscard]] Watch watch(int descriptor, Readiness wanted, WatchFunction function);

  // Internal: for the layers that do I/O (src/runtime has the types) and the takeover of loops.

  /// The number of the present round, modulo 2^32. A round ends when the loop has called every user that asked for
  /// at_next_turn in the round before.
  [[nodiscard]] std::uint32_t rounds() const noexcept;
  /// Ends the present turn on this thread while the turn's own thread is still in the call of a user: serves all other
  /// users. The own thread must return from that call between two turns; its `turn` then returns at once.
  void finish_turn();
  /// Keeps the bytes lent in the present turn readable and writable for as long as the returned objects live.
  [[nodiscard]] std::vector<std::shared_ptr<void>> keep_lent();
  [[nodiscard]] const std::shared_ptr<runtime::Inbox>& inbox() const noexcept;

  /// Calls `user` for completions on `descriptor`, which the loop owns from now on. Throws std::bad_alloc, and does not
  /// own it then.
  runtime::Handle attach(int descriptor, runtime::IoUser& user);
  /// Closes the descriptor; its user is not called any more, whatever is in flight. Needs no memory.
  void detach(runtime::Handle handle) noexcept;
  /// Bytes that the kernel has received on it and the loop has not read.
  [[nodiscard]] std::size_t readable(runtime::Handle handle) const noexcept;
  /// Bytes of the send in flight that the kernel has not accepted yet.
  [[nodiscard]] std::size_t unsent(runtime::Handle handle) const noexcept;
  /// Starts the operation at the beginning of the next turn.
  void submit(runtime::Operation&& operation);
  /// Calls `user.turn_ended()` at the end of this turn. Called at most once a turn. This and the next two functions
  /// need no memory for as many users as handles are attached.
  void at_turn_end(runtime::TurnUser& user);
  /// The same at the end of the next turn, whenever that comes.
  void at_next_turn_end(runtime::TurnUser& user);
  /// Calls `user.next_turn()` in the next turn, which then does not wait, or in one soon after: each turn calls a few
  /// users, in the order in which they asked. Called at most once a turn.
  void at_next_turn(runtime::TurnUser& user);
  /// Cancels all of these, for a user that is destroyed.
  void forget(runtime::TurnUser& user) noexcept;
  /// Calls `user.polled()` once: in this turn if it has not come to that yet, else in the next one. Until then the loop
  /// ends a wait when the user is ready, and lets it know before it waits (runtime::PolledUser). Called at most once
  /// until `polled`; needs no memory, as at_turn_end.
  void poll(runtime::PolledUser& user);
  void forget(runtime::PolledUser& user) noexcept;
  /// Reserves memory for `users` further users, which have no handle, until `release`. Throws std::bad_alloc.
  void admit(std::size_t users);
  void release(std::size_t users) noexcept;

  /// Delivers what `in` brings in each turn, and passes on what `out` has collected when the next turn begins; then
  /// wakes `other`, which has joined the same two channels the other way round. Called before the first turn of both
  /// loops.
  void join(runtime::SpscChannel& in, runtime::SpscChannel& out, Loop& other);
  /// Ends the join with `other`.
  void leave(const Loop& other) noexcept;

  /// Returns a buffer that has been used before, so that a warm connection allocates nothing and an idle one owns none.
  [[nodiscard]] Buffer take_buffer() noexcept;
  /// The same for a message that is likely to be large: the loop keeps a few large buffers, since fresh memory for a
  /// MiB costs the kernel more than copying it. Without one it returns a buffer like any other.
  [[nodiscard]] Buffer take_large_buffer() noexcept;
  void give_buffer(Buffer buffer) noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wirecall
