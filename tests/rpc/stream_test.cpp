// Stream: yielding, awaiting in between, ending, failing, cancelling, and no stack.
#include "wirecall/stream.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/base/stack_probe.hpp"
#include "tests/base/virtual_scheduler.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::kStackBytesMax;
using test::StackProbe;
using test::VirtualScheduler;

Stream<int> count(int n) {
  for (int i = 0; i < n; ++i) co_yield i;
}

template <class T>
Task<std::vector<T>> gather(Stream<T> stream) {
  std::vector<T> values;
  while (std::optional<T> value = co_await stream.next()) values.push_back(std::move(*value));
  co_return values;
}

TEST(Stream, YieldsItsValuesInOrderAndEnds) {
  EXPECT_EQ(sync_wait(gather(count(4))), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_TRUE(sync_wait(gather(count(0))).empty());
}

Task<int> asks_after_the_end() {
  Stream<int> stream = count(1);
  int values = 0;
  for (int i = 0; i < 5; ++i) values += (co_await stream.next()).has_value() ? 1 : 0;
  co_return values;
}

TEST(Stream, StaysAtItsEnd) { EXPECT_EQ(sync_wait(asks_after_the_end()), 1); }

Stream<int> notes_beginning(bool& began) {
  began = true;
  co_yield 1;
}

TEST(Stream, DoesNothingUntilItIsAskedForAValue) {
  bool began = false;
  {
    const Stream<int> stream = notes_beginning(began);
  }
  EXPECT_FALSE(began);
}

Stream<std::string> texts() {
  co_yield "literal";
  const std::string kept = "kept";
  co_yield kept;
  std::string moved = "moved";
  co_yield std::move(moved);
  co_yield kept + "!";
}

TEST(Stream, TakesLvaluesTemporariesAndWhatConverts) {
  EXPECT_EQ(sync_wait(gather(texts())), (std::vector<std::string>{"literal", "kept", "moved", "kept!"}));
}

Stream<std::unique_ptr<int>> pointers() {
  for (int i = 0; i < 3; ++i) co_yield std::make_unique<int>(i);
}

TEST(Stream, YieldsWhatOnlyMoves) {
  const auto values = sync_wait(gather(pointers()));
  ASSERT_EQ(values.size(), 3U);
  EXPECT_EQ(*values[2], 2);
}

Task<int> doubled(StackProbe& probe, int value) {
  probe.here();
  co_return value * 2;
}
Stream<int> awaits_between(StackProbe& probe, int n) {
  for (int i = 0; i < n; ++i) {
    const int value = co_await doubled(probe, i);
    probe.here();
    co_yield value;
  }
}
Task<long> sum(Stream<int> stream, StackProbe& probe) {
  long total = 0;
  while (const std::optional<int> value = co_await stream.next()) {
    probe.here();
    total += *value;
  }
  co_return total;
}

TEST(Stream, MillionYieldsAndAwaitsTakeNoStack) {
  StackProbe probe;
  EXPECT_EQ(sync_wait(sum(awaits_between(probe, 1'000'000), probe)), 1'000'000L * 999'999L);
  EXPECT_EQ(probe.calls(), 3'000'000U);
  EXPECT_LT(probe.bytes(), kStackBytesMax);
}

Stream<int> ticks(Scheduler& scheduler, int n) {
  for (int i = 0; i < n; ++i) {
    co_await sleep_for(scheduler, 10ms);
    co_yield i;
  }
}

TEST(Stream, MayWaitBetweenValues) {
  VirtualScheduler scheduler;
  std::vector<int> values;
  start(gather(ticks(scheduler, 3)), {}, [&values](TaskResult<std::vector<int>> result) { values = result.value(); });
  scheduler.advance(29ms);
  EXPECT_TRUE(values.empty());
  scheduler.advance(1ms);
  EXPECT_EQ(values, (std::vector<int>{0, 1, 2}));
}

Stream<int> fails_after_one() {
  co_yield 1;
  throw Error("broken off");
}
Task<std::string> reads_a_failing_stream() {
  Stream<int> stream = fails_after_one();
  std::string seen = std::to_string((co_await stream.next()).value());
  try {
    co_await stream.next();
  } catch (const Error& error) {
    seen += error.message();
  }
  co_return seen + ((co_await stream.next()).has_value() ? "more" : "end");
}

TEST(Stream, ThrowsWhatItThrewThenIsAtItsEnd) { EXPECT_EQ(sync_wait(reads_a_failing_stream()), "1broken offend"); }

Stream<int> passes_on(Stream<int> from) {
  while (const std::optional<int> value = co_await from.next()) co_yield *value + 1;
}

TEST(Stream, ConsumesAnother) {
  EXPECT_EQ(sync_wait(gather(passes_on(passes_on(count(3))))), (std::vector<int>{2, 3, 4}));
}

bool is_cancelled(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Cancelled&) {
    return true;
  } catch (...) {
    return false;
  }
}

TEST(Stream, StopRequestedWhileItWaitsCancelsIt) {
  VirtualScheduler scheduler;
  std::stop_source source;
  bool cancelled = false;
  start(gather(ticks(scheduler, 3)), source.get_token(),
        [&cancelled](TaskResult<std::vector<int>> result) { cancelled = is_cancelled(result.error()); });
  scheduler.advance(15ms);
  source.request_stop();
  EXPECT_TRUE(cancelled);
  EXPECT_EQ(scheduler.running(), 0U);
}

Stream<int> endless(std::stop_source source) {
  for (int i = 0;; ++i) {
    if (i == 1000) source.request_stop();
    co_yield i;
  }
}

TEST(Stream, ThatNeverWaitsIsCancelledAtItsNextValue) {
  std::stop_source source;
  EXPECT_THROW(sync_wait(gather(endless(source)), source.get_token()), Cancelled);
}

struct Counts {
  int* destroyed;
  ~Counts() { ++*destroyed; }
};
Stream<int> guarded(int& destroyed) {
  const Counts guard{&destroyed};
  for (int i = 0;; ++i) co_yield i;
}
Task<int> takes_two(int& destroyed) {
  Stream<int> stream = guarded(destroyed);
  const int first = (co_await stream.next()).value();
  Stream<int> moved = std::move(stream);
  co_return first + (co_await moved.next()).value();
}

TEST(Stream, DroppedBetweenValuesDestroysItsLocals) {
  int destroyed = 0;
  EXPECT_EQ(sync_wait(takes_two(destroyed)), 1);
  EXPECT_EQ(destroyed, 1);
}

Stream<int> guarded_ticks(Scheduler& scheduler, int& destroyed) {
  const Counts guard{&destroyed};
  co_await sleep_for(scheduler, 1h);
  co_yield 1;
}

TEST(Stream, DestroyedWhileItWaitsDestroysItsLocalsOnce) {
  VirtualScheduler scheduler;
  int destroyed = 0;
  {
    TaskScope scope;
    scope.start(gather(passes_on(guarded_ticks(scheduler, destroyed))), {},
                [](TaskResult<std::vector<int>>) { FAIL(); });
  }
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(scheduler.running(), 0U);
}

}  // namespace
}  // namespace wirecall
