// How much stack awaits take: three million that complete at once, one after the other, and a hundred thousand nested
// ones that are resumed from the innermost. Prints the distance between the highest and the lowest stack address seen
// inside the coroutines; it must not grow with the number of awaits, on any compiler and under sanitizers.
// tests/base/task_test.cpp asserts the same.
#include <chrono>
#include <cstddef>
#include <cstdio>

#include "tests/base/stack_probe.hpp"
#include "wirecall/task.hpp"

namespace {

using wirecall::Completion;
using wirecall::Task;
using wirecall::TaskResult;
using wirecall::test::StackProbe;

constexpr int kAwaits = 3'000'000;
constexpr int kDepth = 100'000;

Task<int> child(StackProbe& probe, int value) {
  probe.here();
  co_return value;
}

Task<long> one_after_the_other(StackProbe& probe, int count) {
  long sum = 0;
  for (int i = 0; i < count; ++i) sum += co_await child(probe, 1);
  co_return sum;
}

Task<long> nested(StackProbe& probe, const Completion<long>& leaf, int depth) {
  probe.here();
  long sum = 0;
  if (depth == 1) {
    sum = co_await leaf;
  } else {
    sum = co_await nested(probe, leaf, depth - 1);
  }
  probe.here();
  co_return sum + 1;
}

using Clock = std::chrono::steady_clock;

bool report(const char* what, int count, Clock::time_point begin, const StackProbe& probe, bool completed) {
  const std::chrono::duration<double, std::nano> taken = Clock::now() - begin;
  std::printf("%-40s %9d %9.1f %9zu\n", what, count, taken.count() / count, probe.bytes());
  return completed && probe.bytes() < wirecall::test::kStackBytesMax;
}

}  // namespace

int main() {
  std::printf("%-40s %9s %9s %9s\n", "", "awaits", "ns each", "stack, B");
  bool good = true;
  {
    StackProbe probe;
    const auto begin = Clock::now();
    const long sum = wirecall::sync_wait(one_after_the_other(probe, kAwaits));
    good = report("completing at once, one after the other", kAwaits, begin, probe, sum == kAwaits) && good;
  }
  {
    StackProbe probe;
    const Completion<long> leaf;
    long sum = 0;
    const auto begin = Clock::now();
    wirecall::start(nested(probe, leaf, kDepth), {}, [&sum](TaskResult<long> result) { sum = result.value(); });
    leaf.set(0);
    good = report("nested, resumed from the innermost", kDepth, begin, probe, sum == kDepth) && good;
  }
  return good ? 0 : 1;
}
