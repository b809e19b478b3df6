// WaitingCalls: the calls that wait for one provider, in the order in which they go to it: in each round one of every
// caller who has any, those of one caller in the order in which they came. So who has a thousand waiting holds up
// nobody by more than one call, and who comes anew waits for those of the present round at most (start-time fair
// queueing, each call as long as another). One thread. Owned by a Provider; its calls are in RelayedCalls, which goes
// after it.
#pragma once

#include <list>
#include <unordered_map>

#include "broker/relayed_calls.hpp"

namespace wirecall::broker {

/// The calls of one caller among them.
struct WaitingFlow {
  enum class Round : std::uint8_t {
    present,  ///< it has a turn in this one
    next,     ///< it has had it, and has more
    none,     ///< it has had it, and no more
  };

  const void* caller;  ///< its name only
  Round round = Round::present;
  RelayedCalls::List calls{};
  std::size_t count = 0;
};

class WaitingCalls {
 public:
  WaitingCalls() = default;
  WaitingCalls(WaitingCalls&&) = delete;

  [[nodiscard]] bool empty() const noexcept { return present_.empty() && next_.empty(); }
  /// The call that is to go next. There is one.
  [[nodiscard]] SlotNumber next() noexcept;

  /// A call that keeps extras. Throws std::bad_alloc, and nothing has happened.
  void add(RelayedCalls& calls, SlotNumber slot);
  void remove(RelayedCalls& calls, SlotNumber slot) noexcept;

  /// How many of that caller wait.
  [[nodiscard]] std::size_t count(const void* caller) const noexcept;
  /// Of the caller who has the most; null for none.
  [[nodiscard]] const WaitingFlow* longest() const noexcept;

 private:
  using Flows = std::list<WaitingFlow>;

  [[nodiscard]] Flows& flows_of(WaitingFlow::Round round) noexcept;
  [[nodiscard]] Flows::iterator flow_of(const void* caller);
  void move(Flows::iterator flow, WaitingFlow::Round to) noexcept;

  Flows present_;
  Flows next_;
  Flows served_;  // that have no more: known for as long as the round lasts
  std::unordered_map<const void*, Flows::iterator> by_caller_;
};

}  // namespace wirecall::broker
