// Deadlines: which relayed calls are over at what time. A wheel of lists, one for each tick of some milliseconds: to
// put a call in, and to take it out, costs the same however many there are, and nothing happens while none is due.
// A call is found late by one tick at most, and never early. One thread. Pure: time is what it is told.
#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "broker/relayed_calls.hpp"
#include "wirecall/context.hpp"

namespace wirecall::broker {

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

}  // namespace wirecall::broker
