// CallLedger: on whose account each relayed call is: its caller's, its provider's and that of its deadline. Who ends a
// call takes it off all of them here, and the counts of all match. Owned by the Router. One thread.
#pragma once

#include <array>
#include <bit>
#include <functional>

#include "base/assert.hpp"
#include "broker/context.hpp"
#include "broker/method_table.hpp"
#include "broker/relayed_calls.hpp"
#include "wirecall/context.hpp"

namespace wirecall::broker {

/// Which relayed calls are over at what time. A wheel of lists, one for each tick of some milliseconds: to put a call
/// in, and to take it out, costs the same however many there are, and nothing happens while none is due. A call is
/// found late by one tick at most, and never early. Pure: time is what it is told.
class Deadlines {
 public:
  explicit Deadlines(RelayedCalls& calls) noexcept : calls_(&calls) {}

  /// The call's deadline is set, and not kNoDeadline.
  void add(SlotNumber slot) noexcept {
    const std::size_t at = list_of((*calls_)[slot].deadline);
    calls_->append(lists_[at], &RelayedCall::of_deadline, slot);
    used_[at / 64] |= std::uint64_t{1} << at % 64;
  }
  void remove(SlotNumber slot) noexcept {
    const std::size_t at = list_of((*calls_)[slot].deadline);
    calls_->remove(lists_[at], &RelayedCall::of_deadline, slot);
    if (lists_[at].empty()) used_[at / 64] &= ~(std::uint64_t{1} << at % 64);
  }
  /// Calls `expired` for each call whose deadline is not after `now`, `most` of them at most; that takes it out, and no
  /// other. Looks at the ticks since the last time. Where more are due, `next` is not after `now`.
  template <class Expired>
  void expire(std::chrono::nanoseconds now, std::size_t most, const Expired& expired) {
    const std::int64_t last = tick_of(now);
    if (last - consumed_ > static_cast<std::int64_t>(kLists)) consumed_ = last - static_cast<std::int64_t>(kLists);
    for (; consumed_ < last; ++consumed_) {
      const std::size_t at = static_cast<std::size_t>(consumed_) % kLists;
      for (SlotNumber slot = lists_[at].first; slot != kNoSlot;) {
        const SlotNumber after = (*calls_)[slot].of_deadline.after;
        if ((*calls_)[slot].deadline <= now) {  // and not a turn of the wheel later
          if (most == 0) return;
          --most;
          expired(slot);
        }
        slot = after;
      }
    }
  }
  /// When `expire` has something to look at next; kNoDeadline for never.
  [[nodiscard]] std::chrono::nanoseconds next() const noexcept {
    const std::size_t from = static_cast<std::size_t>(consumed_) % kLists;
    for (std::size_t i = 0; i <= kWords; ++i) {
      const std::size_t word = (from / 64 + i) % kWords;
      std::uint64_t bits = used_[word];
      if (i == 0) bits &= ~std::uint64_t{0} << from % 64;
      if (i == kWords) bits &= ~(~std::uint64_t{0} << from % 64);
      if (bits == 0) continue;
      const std::size_t at = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      const std::int64_t ahead = static_cast<std::int64_t>((at + kLists - from) % kLists);
      return kTick * (consumed_ + ahead + 1);
    }
    return kNoDeadline;
  }

 private:
  static constexpr std::chrono::nanoseconds kTick = std::chrono::milliseconds{4};
  static constexpr std::size_t kLists = 8192;  // the default call_timeout_ms and some more in one turn of the wheel
  static constexpr std::size_t kWords = kLists / 64;

  [[nodiscard]] static std::int64_t tick_of(std::chrono::nanoseconds time) noexcept { return time / kTick; }
  [[nodiscard]] static std::size_t list_of(std::chrono::nanoseconds deadline) noexcept {
    return static_cast<std::size_t>(tick_of(deadline)) % kLists;
  }

  RelayedCalls* calls_;
  std::array<RelayedCalls::List, kLists> lists_{};
  std::array<std::uint64_t, kWords> used_{};
  std::int64_t consumed_ = 0;  // ticks before it
};

class CallLedger final : private Timer {
 public:
  /// `context` outlives it. `expired` ends a call whose time is up.
  CallLedger(BrokerContext& context, std::function<void(SlotNumber)> expired)
      : context_(&context), expired_(std::move(expired)) {}
  CallLedger(CallLedger&&) = delete;
  ~CallLedger();

  // The slots, as RelayedCalls has them.

  [[nodiscard]] std::optional<SlotNumber> take(std::string_view id_json) { return calls_.take(id_json); }
  [[nodiscard]] RelayedCall& operator[](SlotNumber slot) noexcept { return calls_[slot]; }
  [[nodiscard]] SlotNumber find(std::string_view id_json) noexcept { return calls_.find(id_json); }
  [[nodiscard]] SlotNumber find_number(std::string_view digits) noexcept { return calls_.find_number(digits); }
  [[nodiscard]] std::uint64_t number_of(SlotNumber slot) noexcept { return calls_.number_of(slot); }
  [[nodiscard]] std::size_t in_use() const noexcept { return calls_.in_use(); }
  /// The call is on no account but its deadline's.
  void drop(SlotNumber slot) noexcept {
    stop_timer(slot);
    calls_.give_back(slot);
  }

  /// The first of the caller's calls with that id of its own, streams before others; kNoSlot for none.
  [[nodiscard]] SlotNumber find_of(Peer& caller, std::string_view id_json);
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
