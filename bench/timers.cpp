// What a timer costs with many others running, in the heap that a loop has and in the cheapest timer wheel that there
// can be: lists by the millisecond, on four levels of 256, of which nothing but linking and unlinking is measured.
// "a call" starts a timer of 30 s and stops it again, as a call that waits and is answered does; "a restart" gives one
// of those that run another time. Prints the median of several rounds. One core, nothing else measured.
#include "runtime/timers.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr int kSteps = 200'000;
constexpr std::size_t kRounds = 9;
constexpr nanoseconds kTimeout = 30s;

class Heap {
 public:
  struct Entry final : wirecall::Timer {
    void expired() override {}
    std::uint64_t index = 0;
  };
  void start(Entry& entry, nanoseconds due) { heap_.insert(entry, entry.index, due); }
  void stop(Entry& entry) { heap_.remove(entry.index); }

 private:
  wirecall::runtime::TimerHeap heap_;
};

class Wheel {
 public:
  struct Entry {
    Entry* next = this;
    Entry* previous = this;
    std::uint64_t due = 0;
  };
  void start(Entry& entry, nanoseconds due) {
    stop(entry);
    entry.due = static_cast<std::uint64_t>(due / 1ms);
    const std::size_t level = std::min<std::size_t>((std::bit_width(entry.due | 1) - 1) / 8, 3);
    Entry& slot = slots_[level][(entry.due >> (8 * level)) & 255];
    entry.next = &slot;
    entry.previous = slot.previous;
    slot.previous->next = &entry;
    slot.previous = &entry;
  }
  void stop(Entry& entry) {
    entry.previous->next = entry.next;
    entry.next->previous = entry.previous;
    entry.next = entry.previous = &entry;
  }

 private:
  std::array<std::array<Entry, 256>, 4> slots_;
};

struct Costs {
  double call;
  double restart;
};

template <class Timers>
Costs measure(std::size_t running) {
  Timers timers;
  std::vector<typename Timers::Entry> entries(running);
  std::minstd_rand random{1};
  std::uniform_int_distribution<std::size_t> any{0, running - 1};
  std::uniform_int_distribution<std::int64_t> anywhen{0, kTimeout.count()};
  for (auto& entry : entries) timers.start(entry, nanoseconds{anywhen(random)});
  std::vector<std::size_t> which(kSteps);
  for (std::size_t& one : which) one = any(random);
  typename Timers::Entry call;
  const auto median = [&](auto step) {
    std::array<double, kRounds> rounds;
    for (double& round : rounds) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < kSteps; ++i) step(i);
      round = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / kSteps;
    }
    std::ranges::nth_element(rounds, rounds.begin() + kRounds / 2);
    return rounds[kRounds / 2];
  };
  std::int64_t now = kTimeout.count();
  const double call_ns = median([&](int) {
    timers.start(call, nanoseconds{++now} + kTimeout);
    timers.stop(call);
  });
  const double restart_ns = median(
      [&](int i) { timers.start(entries[which[static_cast<std::size_t>(i)]], nanoseconds{now += 1000} + kTimeout); });
  return {call_ns, restart_ns};
}

}  // namespace

int main() {
  std::printf("%10s %18s %18s %18s %18s\n", "running", "heap: a call", "wheel: a call", "heap: a restart",
              "wheel: a restart");
  for (const std::size_t running : {100UL, 10'000UL, 100'000UL}) {
    const auto heap = measure<Heap>(running);
    const auto wheel = measure<Wheel>(running);
    std::printf("%10zu %15.0f ns %15.0f ns %15.0f ns %15.0f ns\n", running, heap.call, wheel.call, heap.restart,
                wheel.restart);
  }
}
