// See call_ledger.hpp.
#include "broker/call_ledger.hpp"

namespace wirecall::broker {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// So many calls run out of time in a turn; the others in the next ones.
constexpr std::size_t kExpiredATurn = 256;
// A caller with no more of them has its calls looked through for one of a certain id.
constexpr std::size_t kCallsLookedThrough = 16;

CallLedger::~CallLedger() {
  if (context_->loop.scheduler != nullptr) context_->loop.scheduler->stop(*this);
}

SlotNumber CallLedger::find_of(Peer& caller, std::string_view id_json) {
  if (caller.calls_made > kCallsLookedThrough) return caller.calls_by_id.find(id_json, calls_, caller.calls);
  SlotNumber found = kNoSlot;
  for (SlotNumber slot = caller.calls.first; slot != kNoSlot; slot = calls_[slot].of_caller.after) {
    if (calls_[slot].id() != id_json) continue;
    if (calls_[slot].stream || calls_[slot].input) return slot;
    if (found == kNoSlot) found = slot;
  }
  return found;
}

// ---- time ----

milliseconds CallLedger::time_left(const RelayedCall& call) const noexcept {
  WIRECALL_ASSERT(call.deadline != kNoDeadline);
  return std::max(std::chrono::ceil<milliseconds>(call.deadline - context_->now()), milliseconds{1});
}

void CallLedger::wake_earlier() {
  const nanoseconds next = deadlines_.next();
  Scheduler& scheduler = *context_->loop.scheduler;
  scheduler.stop(*this);
  scheduler.start(*this, std::max(next - scheduler.now(), nanoseconds{0}));
  wakes_at_ = next;
}

void CallLedger::expired() {
  wakes_at_ = kNoDeadline;
  deadlines_.expire(context_->now(), kExpiredATurn, expired_);
  const nanoseconds next = deadlines_.next();
  if (next == kNoDeadline) return;
  context_->loop.scheduler->start(*this, std::max(next - context_->now(), nanoseconds{0}));
  wakes_at_ = next;
}

// ---- lists ----

void CallLedger::wait_for_provider(SlotNumber slot) {
  RelayedCall& call = calls_[slot];
  WIRECALL_ASSERT(call.state == RelayedCall::State::waiting && call.provider != nullptr && call.extras != nullptr);
  call.provider->queue_of(call).add(calls_, slot);
  ++call.provider->waiting;
}

void CallLedger::forget(SlotNumber slot) noexcept {
  leave_caller(slot);
  if (const Provider* const provider = calls_[slot].provider) {
    leave_provider(slot);
    if (provider->peer->source != nullptr) [[unlikely]]
      context_->loop.stats.events_dropped += provider->peer->source->drop_unwanted();
  }
  calls_.give_back(slot);
}

}  // namespace wirecall::broker
