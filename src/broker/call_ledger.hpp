// CallLedger: on whose account each relayed call is: its caller's, its provider's and that of its deadline. Who ends a
// call takes it off all of them here, and the counts of all match. Owned by the Router. One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "broker/context.hpp"
#include "broker/deadlines.hpp"
#include "broker/method_table.hpp"
#include "broker/relayed_calls.hpp"

namespace wirecall::broker {

class CallLedger final : private Timer {
 public:
  /// `context` outlives it. `expired` ends a call whose time is up.
  CallLedger(BrokerContext& context, std::function<void(SlotNumber)> expired)
      : context_(&context), expired_(std::move(expired)) {}
  CallLedger(CallLedger&&) = delete;
  ~CallLedger();

  // The slots, as RelayedCalls has them.

  [[nodiscard]] RelayedCalls& slots() noexcept { return calls_; }
  [[nodiscard]] const RelayedCalls& slots() const noexcept { return calls_; }
  [[nodiscard]] RelayedCall& operator[](SlotNumber slot) noexcept { return calls_[slot]; }
  [[nodiscard]] SlotNumber find(std::string_view number_json) noexcept { return calls_.find(number_json); }
  [[nodiscard]] std::uint64_t number_of(SlotNumber slot) noexcept { return calls_.number_of(slot); }

  /// The first of the caller's calls with that id of its own, streams before others; kNoSlot for none.
  [[nodiscard]] SlotNumber find(Peer& caller, std::string_view id_json);
  /// Its time runs, until RelayedCall::deadline. Throws std::bad_alloc; then nothing but that wakes the loop for it.
  void start_timer(SlotNumber slot);
  void stop_timer(SlotNumber slot) noexcept;
  /// Of what the deadline leaves, at least 1.
  [[nodiscard]] std::chrono::milliseconds time_left(const RelayedCall& call) const noexcept;

  /// The call is answered by a message to its caller.
  void enter_caller(SlotNumber slot, Peer& caller) noexcept;
  /// Nobody waits for the call any more.
  void leave_caller(SlotNumber slot) noexcept;
  /// A call that its provider has just been sent, and in no list of its.
  void enter_provider(SlotNumber slot) noexcept;
  /// A call that waits for its provider. Throws std::bad_alloc, and nothing has happened then.
  void wait_for_provider(SlotNumber slot);
  void leave_provider(SlotNumber slot) noexcept;
  /// The call is over.
  void forget(SlotNumber slot) noexcept;

 private:
  void expired() override;
  // Sees to it that time goes on for a call just added.
  void watch(SlotNumber slot) {
    if (calls_[slot].deadline < wakes_at_) wake_earlier();
  }
  void wake_earlier();

  BrokerContext* context_;
  const std::function<void(SlotNumber)> expired_;
  RelayedCalls calls_;
  Deadlines deadlines_{calls_};
  std::chrono::nanoseconds wakes_at_ = kNoDeadline;
};

// On the way of every call, and small.

[[gnu::always_inline]] inline void CallLedger::stop_timer(SlotNumber slot) noexcept {
  RelayedCall& call = calls_[slot];
  if (!call.timed) return;
  deadlines_.remove(slot);
  call.timed = false;
}

[[gnu::always_inline]] inline void CallLedger::start_timer(SlotNumber slot) {
  RelayedCall& call = calls_[slot];
  WIRECALL_ASSERT(!call.timed && call.deadline != kNoDeadline);
  deadlines_.add(slot);
  call.timed = true;
  watch(slot);
}

[[gnu::always_inline]] inline void CallLedger::enter_caller(SlotNumber slot, Peer& caller) noexcept {
  RelayedCall& call = calls_[slot];
  WIRECALL_ASSERT(call.caller == nullptr);
  call.caller = &caller;
  calls_.append(caller.calls, &RelayedCall::of_caller, slot);
  caller.calls_by_id.add(call, slot);
  ++caller.calls_made;
  if (call.stream) ++caller.streams;
  ++caller.load().calls;
  ++context_->loop.stats.calls_in_flight;
}

[[gnu::always_inline]] inline void CallLedger::leave_caller(SlotNumber slot) noexcept {
  RelayedCall& call = calls_[slot];
  stop_timer(slot);
  if (call.caller == nullptr) return;
  Peer& caller = *call.caller;
  WIRECALL_ASSERT(caller.calls_made != 0 && (!call.stream || caller.streams != 0));
  calls_.remove(caller.calls, &RelayedCall::of_caller, slot);
  caller.calls_by_id.remove(call, slot);
  --caller.calls_made;
  if (call.stream) --caller.streams;
  --caller.load().calls;
  --context_->loop.stats.calls_in_flight;
  call.caller = nullptr;
  WIRECALL_DEBUG_ASSERT(calls_.is_count(caller.calls, &RelayedCall::of_caller, caller.calls_made));
}

[[gnu::always_inline]] inline void CallLedger::enter_provider(SlotNumber slot) noexcept {
  RelayedCall& call = calls_[slot];
  WIRECALL_ASSERT(call.state == RelayedCall::State::waiting && call.provider != nullptr);
  Provider& provider = *call.provider;
  call.state = RelayedCall::State::sent;
  if (call.is_subscribing()) ++provider.peer->source->asked;
  calls_.append(provider.sent, &RelayedCall::of_provider, slot);
  ++provider.at_work;
}

[[gnu::always_inline]] inline void CallLedger::leave_provider(SlotNumber slot) noexcept {
  RelayedCall& call = calls_[slot];
  WIRECALL_ASSERT(call.state != RelayedCall::State::unused && call.provider != nullptr);
  Provider& provider = *call.provider;
  if (call.state == RelayedCall::State::waiting) {
    WIRECALL_ASSERT(provider.waiting != 0);
    provider.queue_of(call).remove(calls_, slot);
    --provider.waiting;
  } else {
    WIRECALL_ASSERT(provider.at_work != 0);
    calls_.remove(provider.sent, &RelayedCall::of_provider, slot);
    --provider.at_work;
    if (call.is_subscribing()) --provider.peer->source->asked;
  }
  call.provider = nullptr;
  WIRECALL_DEBUG_ASSERT(calls_.is_count(provider.sent, &RelayedCall::of_provider, provider.at_work));
}

}  // namespace wirecall::broker
