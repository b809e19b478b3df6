// Timers: a binary heap of what is due, earliest first; equal times in the order of their start. Each running timer
// knows its index, so stopping one costs as little as starting it. Not a clock: it is told the time.
// Owned by a loop, used on its thread. The timers themselves belong to those who wait.
//
// Why no timer wheel: docs/architecture.md. Nothing starts a timer for each message: who waits for a connection to fall
// idle notes when it last spoke, and looks at that when the timer expires. Calls that outlive their turn have one each.
#pragma once

#include <cstddef>
#include <vector>

#include "base/assert.hpp"
#include "wirecall/context.hpp"

namespace wirecall::runtime {

class TimerHeap {
 public:
  /// Starts `timer`, or starts it again. `index` is the number in it that only heirs of Scheduler reach: its index,
  /// from 1.
  void insert(Timer& timer, std::uint64_t& index, std::chrono::nanoseconds due) {
    if (index != 0) remove(index);
    entries_.push_back({due.count(), next_order_++, &timer, &index});
    rise(entries_.size() - 1);
  }
  void remove(std::uint64_t& index) noexcept {
    if (index == 0) return;
    const std::size_t at = index - 1;
    WIRECALL_ASSERT(at < entries_.size());
    WIRECALL_DEBUG_ASSERT(entries_[at].index == &index);
    index = 0;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (at == entries_.size()) return;
    put(at, last);
    rise(at);
    sink(*last.index - 1);
  }
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] std::chrono::nanoseconds first_due() const noexcept {
    return std::chrono::nanoseconds{entries_.front().due};
  }
  /// Numbers given to timers so far. A timer of a lower number than this was started before.
  [[nodiscard]] std::uint64_t next_order() const noexcept { return next_order_; }
  /// Takes out the first timer if it is due at `now` and was started before `order`; null otherwise.
  [[nodiscard]] Timer* take(std::chrono::nanoseconds now, std::uint64_t order) noexcept {
    if (entries_.empty() || entries_.front().due > now.count() || entries_.front().order >= order) return nullptr;
    Timer* timer = entries_.front().timer;
    remove(*entries_.front().index);
    return timer;
  }

 private:
  struct Entry {
    std::int64_t due;
    std::uint64_t order;
    Timer* timer;
    std::uint64_t* index;

    bool operator<(const Entry& other) const noexcept {
      return due != other.due ? due < other.due : order < other.order;
    }
  };

  void put(std::size_t at, const Entry& entry) noexcept {
    entries_[at] = entry;
    *entry.index = at + 1;
  }
  void rise(std::size_t at) noexcept {
    const Entry entry = entries_[at];
    for (; at != 0 && entry < entries_[(at - 1) / 2]; at = (at - 1) / 2) put(at, entries_[(at - 1) / 2]);
    put(at, entry);
  }
  void sink(std::size_t at) noexcept {
    const Entry entry = entries_[at];
    for (;;) {
      std::size_t child = 2 * at + 1;
      if (child >= entries_.size()) break;
      if (child + 1 < entries_.size() && entries_[child + 1] < entries_[child]) ++child;
      if (!(entries_[child] < entry)) break;
      put(at, entries_[child]);
      at = child;
    }
    put(at, entry);
  }

  std::vector<Entry> entries_;
  std::uint64_t next_order_ = 0;
};

}  // namespace wirecall::runtime
