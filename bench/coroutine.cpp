// What a coroutine call costs, beside a plain function: create the frame, run it, read its value, destroy it.
// Prints the median of several rounds, each way of calling in turn within a round. One core, nothing else measured.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string_view>

#include "wirecall/stream.hpp"
#include "wirecall/task.hpp"

namespace {

using wirecall::Stream;
using wirecall::Task;
using wirecall::TaskResult;

constexpr int kCalls = 1'000'000;
constexpr std::size_t kRounds = 9;

// Both are kept out of line, and their argument out of the optimiser's sight, so that a call remains a call.
[[gnu::noinline]] int plain(int value) {
  asm volatile("" : "+r"(value));
  return value;
}
[[gnu::noinline]] Task<int> coroutine(int value) { co_return plain(value); }
[[gnu::noinline]] Stream<int> stream(int count) {
  for (int i = 0; i < count; ++i) co_yield plain(i);
}

long call_plain() {
  long sum = 0;
  for (int i = 0; i < kCalls; ++i) sum += plain(i);
  return sum;
}
Task<long> await_all() {
  long sum = 0;
  for (int i = 0; i < kCalls; ++i) sum += co_await coroutine(i);
  co_return sum;
}
long await() { return wirecall::sync_wait(await_all()); }
long run_sync() {
  long sum = 0;
  for (int i = 0; i < kCalls; ++i) sum += wirecall::sync_wait(coroutine(i));
  return sum;
}
long start() {
  long sum = 0;
  wirecall::TaskScope scope;
  for (int i = 0; i < kCalls; ++i) scope.start(coroutine(i), {}, [&sum](TaskResult<int> value) { sum += *value; });
  return sum;
}
Task<long> drain(Stream<int> values) {
  long sum = 0;
  while (const auto value = co_await values.next()) sum += *value;
  co_return sum;
}
long yield() { return wirecall::sync_wait(drain(stream(kCalls))); }

struct Row {
  std::string_view name;
  long (*run)();
  bool bounded;  ///< creates and runs one coroutine for each call
  std::array<double, kRounds> ns{};
};

double time_ns(long (*run)()) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const long sum = run();
  const std::chrono::duration<double, std::nano> taken = Clock::now() - begin;
  if (sum != static_cast<long>(kCalls) * (kCalls - 1) / 2) std::puts("wrong sum");
  return taken.count() / kCalls;
}

}  // namespace

int main() {
  constexpr double kBoundNs = 62;
  std::array rows{Row{"plain function", call_plain, false, {}}, Row{"co_await a task", await, true, {}},
                  Row{"sync_wait(task)", run_sync, true, {}}, Row{"TaskScope::start(task, done)", start, true, {}},
                  Row{"co_await stream.next()", yield, false, {}}};
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (Row& row : rows) row.ns[round] = time_ns(row.run);
  }
  bool within = true;
  std::printf("%-30s %8s %8s %8s\n", "one call, ns", "median", "least", "bound");
  for (Row& row : rows) {
    std::sort(row.ns.begin(), row.ns.end());
    const double median = row.ns[kRounds / 2];
    std::printf("%-30.*s %8.1f %8.1f", static_cast<int>(row.name.size()), row.name.data(), median, row.ns.front());
    if (row.bounded) std::printf(" %8.0f", kBoundNs);
    std::puts("");
    if (row.bounded && median > kBoundNs) within = false;
  }
  return within ? 0 : 1;
}
