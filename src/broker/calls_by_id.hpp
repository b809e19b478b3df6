// CallsById: the relayed calls of one caller by its own ids, for cancelling and credit. Few callers do either, and most
// have few calls on their way, among which a look at each is enough: so there is nothing here until it is asked for.
// One thread. Pure.
#pragma once

#include <memory>
#include <new>
#include <set>
#include <string_view>
#include <tuple>

#include "broker/relayed_calls.hpp"

namespace wirecall::broker {

class CallsById {
 public:
  /// The first of the calls with that id, streams before others; kNoSlot for none. `list` is all of the caller's calls.
  [[nodiscard]] SlotNumber find(std::string_view id_json, RelayedCalls& calls, const RelayedCalls::List& list) {
    if (!index_) {
      auto made = std::make_unique<Index>();
      for (SlotNumber slot = list.first; slot != kNoSlot; slot = calls[slot].of_caller.after)
        made->insert(key(calls[slot], slot));
      index_ = std::move(made);
    }
    const auto found = index_->lower_bound({id_json, false, 0});
    return found != index_->end() && std::get<0>(*found) == id_json ? std::get<2>(*found) : kNoSlot;
  }
  void add(const RelayedCall& call, SlotNumber slot) noexcept {
    if (!index_) [[likely]]
      return;
    try {
      index_->insert(key(call, slot));
    } catch (const std::bad_alloc&) {
      index_.reset();  // and made anew when it is asked for
    }
  }
  void remove(const RelayedCall& call, SlotNumber slot) noexcept {
    if (!index_) [[likely]]
      return;
    index_->erase(key(call, slot));
    if (index_->empty()) index_.reset();
  }

 private:
  using Key = std::tuple<std::string_view, bool, SlotNumber>;  // the id, as the slot has it; whether it is no stream
  using Index = std::set<Key>;
  [[nodiscard]] static Key key(const RelayedCall& call, SlotNumber slot) noexcept {
    return {call.id(), !call.stream, slot};
  }

  std::unique_ptr<Index> index_;
};

}  // namespace wirecall::broker
