// See waiting_calls.hpp.
#include "broker/waiting_calls.hpp"

namespace wirecall::broker {

using Round = WaitingFlow::Round;

WaitingCalls::Flows& WaitingCalls::flows_of(Round round) noexcept {
  switch (round) {
    case Round::present: return present_;
    case Round::next: return next_;
    case Round::none: break;
  }
  return served_;
}

void WaitingCalls::move(Flows::iterator flow, Round to) noexcept {
  Flows& into = flows_of(to);
  into.splice(into.end(), flows_of(flow->round), flow);
  flow->round = to;
}

WaitingCalls::Flows::iterator WaitingCalls::flow_of(const void* caller) {
  const auto [known, added] = by_caller_.try_emplace(caller);
  if (!added) return known->second;
  try {
    known->second = present_.insert(present_.end(), {.caller = caller});
  } catch (...) {
    by_caller_.erase(known);
    throw;
  }
  return known->second;
}

void WaitingCalls::add(RelayedCalls& calls, SlotNumber slot) {
  const auto flow = flow_of(calls[slot].extras->asked_by);
  if (flow->round == Round::none) move(flow, Round::next);
  calls.append(flow->calls, &RelayedCall::of_provider, slot);
  ++flow->count;
}

SlotNumber WaitingCalls::next() noexcept {
  if (present_.empty()) {
    for (const WaitingFlow& flow : served_) by_caller_.erase(flow.caller);
    served_.clear();
    while (!next_.empty()) move(next_.begin(), Round::present);
  }
  return present_.front().calls.first;
}

void WaitingCalls::remove(RelayedCalls& calls, SlotNumber slot) noexcept {
  const auto known = by_caller_.find(calls[slot].extras->asked_by);
  const auto flow = known->second;
  const bool had_its_turn = flow == present_.begin() && slot == flow->calls.first;
  calls.remove(flow->calls, &RelayedCall::of_provider, slot);
  --flow->count;
  if (flow->count != 0) {
    if (had_its_turn) move(flow, Round::next);
  } else if (had_its_turn || flow->round == Round::next) {
    move(flow, Round::none);
  } else {
    by_caller_.erase(known);
    present_.erase(flow);
  }
  if (!empty()) return;
  by_caller_.clear();
  served_.clear();
}

std::size_t WaitingCalls::count(const void* caller) const noexcept {
  const auto found = by_caller_.find(caller);
  return found == by_caller_.end() ? 0 : found->second->count;
}

const WaitingFlow* WaitingCalls::longest() const noexcept {
  const WaitingFlow* longest = nullptr;
  for (const Flows* flows : {&present_, &next_}) {
    for (const WaitingFlow& flow : *flows) {
      if (longest == nullptr || flow.count > longest->count) longest = &flow;
    }
  }
  return longest;
}

}  // namespace wirecall::broker
