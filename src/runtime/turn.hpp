// Who is told what in a turn of the loop. Both are called by the loop on its thread, never from within a call that the
// told one made itself, so nothing here recurs. Neither is owned by the loop.
#pragma once

#include "runtime/backend.hpp"

namespace wirecall::runtime {

/// The user of one handle: a listener, a stream.
class IoUser {
 public:
  /// May take descriptor and buffer out of `completion`. May detach itself or others.
  virtual void completed(Completion& completion) = 0;

 protected:
  ~IoUser() = default;
};

/// Somebody whose input comes through memory that another thread or process writes: no completion tells of it.
class PolledUser {
 public:
  /// Whether `polled` has something to do. Called again and again while the loop spins.
  [[nodiscard]] virtual bool ready() const noexcept = 0;
  /// The loop is about to wait: from now on a descriptor has to end the wait. False when `ready` has become true.
  [[nodiscard]] virtual bool fall_asleep() noexcept = 0;
  /// Tells its user what there is. Asked for by Loop::poll.
  virtual void polled() = 0;

 protected:
  ~PolledUser() = default;
};

/// Somebody who has something left to do in a turn.
class TurnUser {
 public:
  /// The turn's input has all been looked at: hand over the output that it produced. Asked for by Loop::at_turn_end.
  virtual void turn_ended() = 0;
  /// The turn after the one in which Loop::at_next_turn was called: go on with what was left over.
  virtual void next_turn() = 0;

 protected:
  ~TurnUser() = default;
};

}  // namespace wirecall::runtime
