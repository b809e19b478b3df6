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
  /// How many rounds have begun, modulo 2^32: one is over when each who asked for at_next_turn in the one before has
  /// been called. Tells one from the next.
  [[nodiscard]] std::uint32_t rounds() const noexcept;
  /// Ends the present turn in place of a thread that does not return from it: the user that this thread is in is left
  /// to it, all others are served. When that thread does return, which must not be during a turn, its `turn` returns
  /// without doing anything more.
  void finish_turn();
  /// The bytes lent in the present turn stay readable and writable for as long as what is returned lives.
  [[nodiscard]] std::vector<std::shared_ptr<void>> keep_lent();
  /// Ends the wait of the present or the next turn. Any thread, and signal handlers.
  void wake() noexcept;
  /// Runs `job`, which must not throw, on the loop's thread in its next turn; jobs keep their order. Any thread. False,
  /// and `job` is dropped, when 65,536 jobs wait already. A thread that may outlive the loop posts to its inbox
  /// instead.
  [[nodiscard]] bool post(std::move_only_function<void()> job);

  /// Calls `function` once in each turn in which `descriptor` is ready for what is wanted, until what is returned goes
  /// (wirecall/watch.hpp). Throws std::system_error when the system refuses a second descriptor of the file.
  [[nodiscard]] Watch watch(int descriptor, Readiness wanted, WatchFunction function);

  // What follows is for the layers that do I/O (src/runtime has the types).

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
  /// `user.turn_ended()` is called at the end of this turn; ask once a turn. This and the next two need no memory for
  /// as many users as handles are attached.
  void at_turn_end(runtime::TurnUser& user);
  /// The same at the end of the next turn, whenever that comes.
  void at_next_turn_end(runtime::TurnUser& user);
  /// `user.next_turn()` is called in the next turn, which then does not wait, or in one soon after: no more than a few
  /// are called in each, in the order in which they asked; ask once a turn.
  void at_next_turn(runtime::TurnUser& user);
  /// Cancels all of these, for a user that is destroyed.
  void forget(runtime::TurnUser& user) noexcept;
  /// Reserves memory for `users` further users, which have no handle, until `release`. Throws std::bad_alloc.
  void admit(std::size_t users);
  void release(std::size_t users) noexcept;

  /// What comes by `in` is told in each turn, and what `out` has collected is handed over when the next one begins; the
  /// loop `other`, which has joined the same two the other way round, is woken for it. Before any turn of the two.
  void join(runtime::SpscChannel& in, runtime::SpscChannel& out, Loop& other);
  /// No more of that.
  void leave(const Loop& other) noexcept;

  /// Buffers that have been used before, so that a warm connection allocates nothing and an idle one owns none.
  [[nodiscard]] Buffer take_buffer() noexcept;
  /// The same for what is likely to be large: a few such buffers are kept, since fresh memory for a MiB costs the
  /// kernel more than copying it. One like any other where there is none.
  [[nodiscard]] Buffer take_large_buffer() noexcept;
  void give_buffer(Buffer buffer) noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wirecall
