// What tasks wait with: Completion, sleep_for, when_all, when_any, and how stop requests reach them.
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/base/virtual_scheduler.hpp"
#include "wirecall/task.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::VirtualScheduler;

/// How a task ended, as text: its value, "cancelled", or the message of its exception.
template <class T>
std::string text_of(TaskResult<T> result) {
  try {
    if (!result) std::rethrow_exception(result.error());
    if constexpr (std::is_void_v<T>) {
      return "done";
    } else {
      return std::to_string(*result);
    }
  } catch (const Cancelled&) {
    return "cancelled";
  } catch (const std::exception& error) {
    return error.what();
  }
}

template <class T>
auto into(std::string& outcome) {
  return [&outcome](TaskResult<T> result) { outcome += text_of<T>(std::move(result)); };
}

Task<int> value_of(int value) { co_return value; }
Task<int> awaits(Completion<int> completion) { co_return co_await completion; }
Task<int> fails(std::string message) {
  throw Error(std::move(message));
  co_return 0;
}
Task<int> after(Scheduler& scheduler, std::chrono::nanoseconds delay, int value) {
  co_await sleep_for(scheduler, delay);
  co_return value;
}
Task<int> fails_after(Scheduler& scheduler, std::chrono::nanoseconds delay, std::string message) {
  co_await sleep_for(scheduler, delay);
  throw Error(std::move(message));
}
/// Takes its time to stop, and notes when it has.
Task<int> stops_slowly(Scheduler& scheduler, std::string& events, Completion<void> stopped) {
  try {
    co_await sleep_for(scheduler, 1h);
  } catch (const Cancelled&) {
    events += "asked ";
  }
  // The stop token stays stopped, so only what cannot be cancelled is left to wait with.
  struct Uncancellable {
    Completion<void> completion;
    static Task<void> wait(Completion<void> done) { co_await done; }
  };
  Completion<void> resumed;
  start(Uncancellable::wait(stopped), {}, [resumed](TaskResult<void>) { resumed.set(); });
  struct Plain {
    std::coroutine_handle<>* handle;
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) const noexcept { *handle = h; }
    void await_resume() const noexcept {}
  };
  std::coroutine_handle<> handle;
  start(Uncancellable::wait(resumed), {}, [&handle](TaskResult<void>) { handle.resume(); });
  co_await Plain{&handle};
  events += "stopped ";
  co_return 0;
}

// ------------------------------------------------------------------------------------------------ Completion

TEST(Completion, SetBeforeItIsAwaitedDoesNotSuspend) {
  const Completion<int> completion;
  completion.set(4);
  EXPECT_TRUE(completion.completed());
  EXPECT_EQ(sync_wait(awaits(completion)), 4);
}

TEST(Completion, OnlyTheFirstSetCounts) {
  const Completion<int> completion;
  completion.set(1);
  completion.set(2);
  completion.fail(std::make_exception_ptr(Error("late")));
  EXPECT_EQ(sync_wait(awaits(completion)), 1);
}

TEST(Completion, FailThrowsInTheAwaitingTask) {
  const Completion<int> completion;
  std::string outcome;
  start(awaits(completion), {}, into<int>(outcome));
  completion.fail(std::make_exception_ptr(Error("broken")));
  EXPECT_EQ(outcome, "broken");
}

TEST(Completion, StopCancelsTheAwaitAndALaterSetDoesNoHarm) {
  std::stop_source source;
  const Completion<int> completion;
  std::string outcome;
  start(awaits(completion), source.get_token(), into<int>(outcome));
  source.request_stop();
  EXPECT_EQ(outcome, "cancelled");
  completion.set(1);
  EXPECT_EQ(outcome, "cancelled");
}

TEST(Completion, StopRequestedBeforeCancelsAtOnce) {
  std::stop_source source;
  source.request_stop();
  const Completion<int> completion;
  std::string outcome;
  start(awaits(completion), source.get_token(), into<int>(outcome));
  EXPECT_EQ(outcome, "cancelled");
}

TEST(Completion, StopAfterItWasSetChangesNothing) {
  std::stop_source source;
  const Completion<int> completion;
  std::string outcome;
  start(awaits(completion), source.get_token(), into<int>(outcome));
  completion.set(6);
  source.request_stop();
  EXPECT_EQ(outcome, "6");
}

TEST(Completion, RefusesASecondAwaiter) {
  const Completion<int> completion;
  std::string first;
  std::string second;
  start(awaits(completion), {}, into<int>(first));
  start(awaits(completion), {}, into<int>(second));
  EXPECT_EQ(second, "a Completion is awaited by one task only");
  completion.set(1);
  EXPECT_EQ(first, "1");
}

TEST(Completion, CarriesWhatOnlyMoves) {
  const Completion<std::unique_ptr<int>> completion;
  auto take = [](Completion<std::unique_ptr<int>> from) -> Task<int> {
    const std::unique_ptr<int> value = co_await from;
    co_return *value;
  };
  std::string outcome;
  start(take(completion), {}, into<int>(outcome));
  completion.set(std::make_unique<int>(12));
  EXPECT_EQ(outcome, "12");
}

TEST(Cancelled, IsTheCatalogueError) { EXPECT_EQ(Cancelled{}.code(), -32800); }

// ------------------------------------------------------------------------------------------------ sleep_for

TEST(SleepFor, WakesWhenTheTimeHasPassedAndNotBefore) {
  VirtualScheduler scheduler;
  std::string outcome;
  start(sleep_for(scheduler, 10ms), {}, into<void>(outcome));
  scheduler.advance(9'999'999ns);
  EXPECT_EQ(outcome, "");
  scheduler.advance(1ns);
  EXPECT_EQ(outcome, "done");
}

TEST(SleepFor, StopsItsTimerWhenStopIsRequested) {
  VirtualScheduler scheduler;
  std::stop_source source;
  std::string outcome;
  start(sleep_for(scheduler, 1h), source.get_token(), into<void>(outcome));
  EXPECT_EQ(scheduler.running(), 1U);
  source.request_stop();
  EXPECT_EQ(outcome, "cancelled");
  EXPECT_EQ(scheduler.running(), 0U);
}

TEST(SleepFor, StartsNoTimerOnceStopIsRequested) {
  VirtualScheduler scheduler;
  std::stop_source source;
  source.request_stop();
  std::string outcome;
  start(sleep_for(scheduler, 1h), source.get_token(), into<void>(outcome));
  EXPECT_EQ(outcome, "cancelled");
  EXPECT_EQ(scheduler.started(), 0U);
}

TEST(SleepFor, DestroyedWhileItSleepsStopsItsTimer) {
  VirtualScheduler scheduler;
  {
    TaskScope scope;
    scope.start(sleep_for(scheduler, 1h), {}, [](TaskResult<void>) { FAIL(); });
    EXPECT_EQ(scheduler.running(), 1U);
  }
  EXPECT_EQ(scheduler.running(), 0U);
}

TEST(SleepFor, UsesTheTimersOfTheCall) {
  VirtualScheduler scheduler;
  const Context context{"m", "1", {}, &scheduler};
  std::string outcome;
  start(sleep_for(context, 1s), {}, into<void>(outcome));
  scheduler.advance(1s);
  EXPECT_EQ(outcome, "done");
}

TEST(SleepFor, WithoutTimersSaysSo) { EXPECT_THROW(static_cast<void>(sleep_for(Context{}, 1s)), Error); }

// ------------------------------------------------------------------------------------------------ when_all

TEST(WhenAll, ComesToAllValuesInOrder) {
  auto [a, b, c] = sync_wait(when_all(value_of(1), value_of(2), value_of(3)));
  EXPECT_EQ(a + 10 * b + 100 * c, 321);
}

TEST(WhenAll, OfNothingIsDoneAtOnce) {
  EXPECT_EQ(sync_wait(when_all()), std::tuple<>{});
  EXPECT_TRUE(sync_wait(when_all(std::vector<Task<int>>{})).empty());
  sync_wait(when_all(std::vector<Task<void>>{}));
}

TEST(WhenAll, TakesVoidReferencesAndWhatOnlyMoves) {
  int target = 0;
  auto nothing = []() -> Task<void> { co_return; };
  auto reference = [](int& to) -> Task<int&> { co_return to; };
  auto pointer = []() -> Task<std::unique_ptr<int>> { co_return std::make_unique<int>(5); };
  auto [none, same, owned] = sync_wait(when_all(nothing(), reference(target), pointer()));
  static_assert(std::is_same_v<decltype(none), std::monostate>);
  EXPECT_EQ(&same.get(), &target);
  EXPECT_EQ(*owned, 5);
}

Task<int> sum_side_by_side(Scheduler& scheduler) {
  auto [a, b] = co_await when_all(after(scheduler, 20ms, 1), after(scheduler, 10ms, 2));
  co_return a * 10 + b;
}

TEST(WhenAll, RunsTasksSideBySide) {
  VirtualScheduler scheduler;
  std::string outcome;
  start(sum_side_by_side(scheduler), {}, into<int>(outcome));
  scheduler.advance(19ms);
  EXPECT_EQ(outcome, "");
  scheduler.advance(1ms);
  EXPECT_EQ(outcome, "12");
}

Task<int> sum_of(std::vector<Task<int>> tasks) {
  int sum = 0;
  for (const int value : co_await when_all(std::move(tasks))) sum += value;
  co_return sum;
}

TEST(WhenAll, TakesAVector) {
  VirtualScheduler scheduler;
  std::vector<Task<int>> tasks;
  for (int i = 1; i <= 100; ++i) tasks.push_back(after(scheduler, std::chrono::milliseconds{i}, i));
  std::string outcome;
  start(sum_of(std::move(tasks)), {}, into<int>(outcome));
  scheduler.advance(1s);
  EXPECT_EQ(outcome, "5050");
}

Task<int> all_of_three(Scheduler& scheduler) {
  auto [a, b, c] = co_await when_all(after(scheduler, 1h, 1), fails_after(scheduler, 10ms, "first"),
                                     fails_after(scheduler, 20ms, "second"));
  co_return a + b + c;
}

TEST(WhenAll, ThrowsTheFirstFailureAndCancelsTheOthers) {
  VirtualScheduler scheduler;
  std::string outcome;
  start(all_of_three(scheduler), {}, into<int>(outcome));
  scheduler.advance(10ms);
  EXPECT_EQ(outcome, "first");
  EXPECT_EQ(scheduler.running(), 0U);
}

Task<int> all_with_slow_stop(Scheduler& scheduler, std::string& events, Completion<void> stopped) {
  auto [a, b] = co_await when_all(stops_slowly(scheduler, events, stopped), fails_after(scheduler, 10ms, "failed"));
  co_return a + b;
}

TEST(WhenAll, ThrowsOnlyOnceAllAreDone) {
  VirtualScheduler scheduler;
  std::string events;
  const Completion<void> stopped;
  start(all_with_slow_stop(scheduler, events, stopped), {}, into<int>(events));
  scheduler.advance(10ms);
  EXPECT_EQ(events, "asked ");
  stopped.set();
  EXPECT_EQ(events, "asked stopped failed");
}

TEST(WhenAll, DropsTasksNotBegunWhenAnEarlierOneFailsAtOnce) {
  bool began = false;
  auto begins = [&began]() -> Task<int> {
    began = true;
    co_return 1;
  };
  EXPECT_THROW(sync_wait(when_all(fails("at once"), begins())), Error);
  EXPECT_FALSE(began);
}

TEST(WhenAll, PassesAStopRequestOnToEveryTask) {
  VirtualScheduler scheduler;
  std::stop_source source;
  std::string outcome;
  start(sum_side_by_side(scheduler), source.get_token(), into<int>(outcome));
  EXPECT_EQ(scheduler.running(), 2U);
  source.request_stop();
  EXPECT_EQ(outcome, "cancelled");
  EXPECT_EQ(scheduler.running(), 0U);
}

Task<int> ignores_stop(Completion<int> completion) {
  try {
    co_return co_await completion;
  } catch (const Cancelled&) {
    co_return -1;
  }
}

Task<int> all_that_ignore_stop() {
  auto [a, b] = co_await when_all(ignores_stop({}), ignores_stop({}));
  co_return a + b;
}

TEST(WhenAll, OfTasksThatFinishDespiteAStopRequestIsTheirValues) {
  std::stop_source source;
  std::string outcome;
  start(all_that_ignore_stop(), source.get_token(), into<int>(outcome));
  source.request_stop();
  EXPECT_EQ(outcome, "-2");
}

TEST(WhenAll, DestroyedUnfinishedDestroysItsTasks) {
  VirtualScheduler scheduler;
  {
    TaskScope scope;
    scope.start(sum_side_by_side(scheduler), {}, [](TaskResult<int>) { FAIL(); });
    EXPECT_EQ(scheduler.running(), 2U);
  }
  EXPECT_EQ(scheduler.running(), 0U);
}

struct SetsWhenDestroyed {
  Completion<int> completion;
  ~SetsWhenDestroyed() { completion.set(1); }
};
Task<int> guards(Completion<int> sets, Completion<int> never) {
  const SetsWhenDestroyed guard{sets};
  co_return co_await never;
}
Task<int> one_guards_the_other(Completion<int> between, bool& went_on) {
  auto [a, b] = co_await when_all(guards(between, {}), awaits(between));
  went_on = true;
  co_return a + b;
}

TEST(WhenAll, BeingDestroyedIsNotResumedByADestructorThatCompletesItsLastTask) {
  bool went_on = false;
  {
    TaskScope scope;
    scope.start(one_guards_the_other({}, went_on), {}, [](TaskResult<int>) { FAIL(); });
  }
  EXPECT_FALSE(went_on);
}

Task<int> tree(Scheduler& scheduler, int depth) {
  if (depth == 0) co_return co_await after(scheduler, 1ms, 1);
  auto [left, right] = co_await when_all(tree(scheduler, depth - 1), tree(scheduler, depth - 1));
  co_return left + right;
}

TEST(WhenAll, Nests) {
  VirtualScheduler scheduler;
  std::string outcome;
  start(tree(scheduler, 10), {}, into<int>(outcome));
  scheduler.advance(1ms);
  EXPECT_EQ(outcome, "1024");
}

// ------------------------------------------------------------------------------------------------ when_any

Task<int> first_of_three(Scheduler& scheduler) {
  auto first = co_await when_any(after(scheduler, 30ms, 1), after(scheduler, 10ms, 2), after(scheduler, 20ms, 3));
  EXPECT_EQ(first.value.index(), first.index);
  co_return static_cast<int>(first.index) * 10 + std::get<1>(first.value);
}

TEST(WhenAny, ComesToTheFirstAndStopsTheOthers) {
  VirtualScheduler scheduler;
  std::string outcome;
  start(first_of_three(scheduler), {}, into<int>(outcome));
  scheduler.advance(10ms);
  EXPECT_EQ(outcome, "12");
  EXPECT_EQ(scheduler.running(), 0U);
}

Task<int> within(Scheduler& scheduler, std::chrono::nanoseconds bound, Task<int> work) {
  auto first = co_await when_any(std::move(work), sleep_for(scheduler, bound));
  if (first.index == 1) throw Error(ErrorCode::timeout);
  co_return std::get<0>(first.value);
}

TEST(WhenAny, BoundsTheTimeOfATask) {
  VirtualScheduler scheduler;
  std::string in_time;
  std::string late;
  start(within(scheduler, 100ms, after(scheduler, 99ms, 7)), {}, into<int>(in_time));
  start(within(scheduler, 100ms, after(scheduler, 101ms, 7)), {}, into<int>(late));
  scheduler.advance(1s);
  EXPECT_EQ(in_time, "7");
  EXPECT_EQ(late, Error(ErrorCode::timeout).message());
}

TEST(WhenAny, ThrowsWhenTheFirstToFinishThrew) {
  VirtualScheduler scheduler;
  std::string outcome;
  start(within(scheduler, 100ms, fails_after(scheduler, 5ms, "broke first")), {}, into<int>(outcome));
  scheduler.advance(5ms);
  EXPECT_EQ(outcome, "broke first");
  EXPECT_EQ(scheduler.running(), 0U);
}

Task<int> any_with_slow_stop(Scheduler& scheduler, std::string& events, Completion<void> stopped) {
  auto first = co_await when_any(stops_slowly(scheduler, events, stopped), after(scheduler, 10ms, 5));
  co_return std::get<1>(first.value);
}

TEST(WhenAny, AwaitsTheOthersBeforeItComesToTheFirst) {
  VirtualScheduler scheduler;
  std::string events;
  const Completion<void> stopped;
  start(any_with_slow_stop(scheduler, events, stopped), {}, into<int>(events));
  scheduler.advance(10ms);
  EXPECT_EQ(events, "asked ");
  stopped.set();
  EXPECT_EQ(events, "asked stopped 5");
}

TEST(WhenAny, DropsTasksNotBegunWhenAnEarlierOneFinishesAtOnce) {
  bool began = false;
  auto begins = [&began]() -> Task<int> {
    began = true;
    co_return 1;
  };
  EXPECT_EQ(sync_wait(when_any(value_of(3), begins())).index, 0U);
  EXPECT_FALSE(began);
}

Task<int> first_of(std::vector<Task<int>> tasks) {
  const FirstOf<int> first = co_await when_any(std::move(tasks));
  co_return static_cast<int>(first.index) * 1000 + first.value;
}

TEST(WhenAny, TakesAVector) {
  VirtualScheduler scheduler;
  std::vector<Task<int>> tasks;
  for (int i = 0; i < 10; ++i) tasks.push_back(after(scheduler, std::chrono::milliseconds{100 - i}, i));
  std::string outcome;
  start(first_of(std::move(tasks)), {}, into<int>(outcome));
  scheduler.advance(1s);
  EXPECT_EQ(outcome, "9009");
}

TEST(WhenAny, OfNoTasksIsRefused) {
  EXPECT_THROW(sync_wait(when_any(std::vector<Task<int>>{})), std::invalid_argument);
}

TEST(WhenAny, PassesAStopRequestOnToEveryTask) {
  VirtualScheduler scheduler;
  std::stop_source source;
  std::string outcome;
  start(first_of_three(scheduler), source.get_token(), into<int>(outcome));
  source.request_stop();
  EXPECT_EQ(outcome, "cancelled");
  EXPECT_EQ(scheduler.running(), 0U);
}

}  // namespace
}  // namespace wirecall
