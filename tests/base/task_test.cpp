// Task alone: values, exceptions, stack, starting, owning, and awaitables that are not wirecall's.
#include "wirecall/task.hpp"

#include <array>
#include <gtest/gtest.h>
#include <malloc.h>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/sanitizers.hpp"
#include "tests/base/stack_probe.hpp"

namespace wirecall {
namespace {

using test::kStackBytesMax;
using test::StackProbe;

Task<int> value_of(int value) { co_return value; }

// ------------------------------------------------------------------------------------------------ values

TEST(Task, DoesNothingUntilItIsAwaited) {
  bool ran = false;
  auto body = [&ran]() -> Task<void> {
    ran = true;
    co_return;
  };
  Task<void> task = body();
  EXPECT_FALSE(ran);
  sync_wait(std::move(task));
  EXPECT_TRUE(ran);
}

Task<int> holds(std::shared_ptr<int> value) { co_return *value; }

TEST(Task, DroppedUnstartedDestroysItsParameters) {
  auto value = std::make_shared<int>(1);
  {
    const Task<int> task = holds(value);
    EXPECT_EQ(value.use_count(), 2);
  }
  EXPECT_EQ(value.use_count(), 1);
}

TEST(Task, MovedFromHoldsNothing) {
  Task<int> first = value_of(7);
  Task<int> second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(second);
  first = std::move(second);
  EXPECT_EQ(sync_wait(std::move(first)), 7);
}

Task<std::unique_ptr<std::string>> make_string() { co_return std::make_unique<std::string>("moved"); }
Task<std::string> through_a_parent() {
  const std::unique_ptr<std::string> text = co_await make_string();
  co_return *text;
}

TEST(Task, ResultThatOnlyMovesComesThrough) {
  EXPECT_EQ(*sync_wait(make_string()), "moved");
  EXPECT_EQ(sync_wait(through_a_parent()), "moved");
}

Task<int&> refers_to(int& value) { co_return value; }
Task<int*> address_through_a_parent(int& value) {
  int& same = co_await refers_to(value);
  co_return &same;
}

TEST(Task, ReferenceComesThroughAsTheSameObject) {
  int value = 0;
  EXPECT_EQ(&sync_wait(refers_to(value)), &value);
  EXPECT_EQ(sync_wait(address_through_a_parent(value)), &value);
}

struct NoDefault {
  explicit NoDefault(int v) : value(v) {}
  int value;
};
Task<NoDefault> without_default() { co_return NoDefault{3}; }

TEST(Task, ResultNeedsNoDefaultConstructor) { EXPECT_EQ(sync_wait(without_default()).value, 3); }

// ------------------------------------------------------------------------------------------------ exceptions

Task<int> throws() {
  throw Error(4711, "from below");
  co_return 0;
}
Task<int> second_level(std::shared_ptr<int> destroyed) {
  const int value = co_await throws();
  co_return value + *destroyed;
}
Task<int> third_level(std::shared_ptr<int> destroyed) { co_return co_await second_level(destroyed); }

TEST(Task, ExceptionPassesThreeLevelsAndDestroysTheirFrames) {
  auto held = std::make_shared<int>(0);
  try {
    sync_wait(third_level(held));
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), 4711);
    EXPECT_EQ(error.message(), "from below");
  }
  EXPECT_EQ(held.use_count(), 1);
}

Task<std::string> recovers() {
  std::string said;
  try {
    co_await throws();
  } catch (const Error& error) {
    said = error.message();
  }
  const int after = co_await value_of(5);
  co_return said + " " + std::to_string(after);
}

TEST(Task, GoesOnAwaitingAfterACaughtException) { EXPECT_EQ(sync_wait(recovers()), "from below 5"); }

// ------------------------------------------------------------------------------------------------ stack

Task<int> probed(StackProbe& probe, int value) {
  probe.here();
  co_return value;
}
Task<long> sum_of_awaits(StackProbe& probe, int count) {
  long sum = 0;
  for (int i = 0; i < count; ++i) sum += co_await probed(probe, i);
  co_return sum;
}

TEST(Task, ThreeMillionCompletedAwaitsTakeNoStack) {
  StackProbe probe;
  EXPECT_EQ(sync_wait(sum_of_awaits(probe, 3'000'000)), 3'000'000L * 2'999'999L / 2);
  EXPECT_EQ(probe.calls(), 3'000'000U);
  EXPECT_LT(probe.bytes(), kStackBytesMax);
}

Task<int> nested(StackProbe& probe, const Completion<int>& leaf, int depth) {
  probe.here();
  int value = 0;
  if (depth == 0) {
    value = co_await leaf;
  } else {
    value = 1 + co_await nested(probe, leaf, depth - 1);
  }
  probe.here();
  co_return value;
}

TEST(Task, HundredThousandNestedAwaitsTakeNoStackOnTheWayDownOrUp) {
  StackProbe probe;
  Completion<int> leaf;
  int result = 0;
  start(nested(probe, leaf, 100'000), {}, [&](TaskResult<int> value) { result = value.value(); });
  EXPECT_EQ(probe.calls(), 100'001U);
  EXPECT_EQ(result, 0);
  leaf.set(5);
  EXPECT_EQ(result, 100'005);
  EXPECT_EQ(probe.calls(), 200'002U);
  EXPECT_LT(probe.bytes(), kStackBytesMax);
}

struct ProbesWhenDestroyed {
  StackProbe* probe;
  ~ProbesWhenDestroyed() { probe->here(); }
};
Task<int> nested_guard(StackProbe& probe, const Completion<int>& leaf, int depth) {
  const ProbesWhenDestroyed guard{&probe};
  if (depth == 0) co_return co_await leaf;
  co_return co_await nested_guard(probe, leaf, depth - 1);
}

TEST(Task, DestroyingAHundredThousandNestedAwaitsTakesNoStack) {
  StackProbe probe;
  const Completion<int> leaf;
  {
    TaskScope scope;
    scope.start(nested_guard(probe, leaf, 100'000), {}, [](TaskResult<int>) { FAIL() << "destroyed, not done"; });
    EXPECT_EQ(probe.calls(), 0U);
  }
  EXPECT_EQ(probe.calls(), 100'001U);
  EXPECT_LT(probe.bytes(), kStackBytesMax);
}

// ------------------------------------------------------------------------------------------------ starting

TEST(Task, FramesThatAThreadOnlyEndsAreGivenBackWithIt) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "they have memory of their own";
  constexpr std::size_t kBytes = 512;
  constexpr std::size_t kFrames = 64;
  const auto round = [] {
    std::array<void*, kFrames> frames;
    for (void*& frame : frames) frame = detail::allocate_frame(kBytes);
    std::thread{[&frames] {
      for (void* frame : frames) detail::free_frame(frame, kBytes);
    }}.join();
  };
  round();
  const std::size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 100; ++i) round();
  EXPECT_LT(mallinfo2().uordblks, before + 10 * kFrames * kBytes);
}

// A coroutine that waits again and again listens for a request to stop all the time, and only while it waits.
TEST(Task, IsStoppedInWhicheverWaitItIs) {
  for (int waits = 0; waits < 4; ++waits) {
    std::stop_source stop;
    std::vector<Completion<int>> completions(4);
    int passed = 0;
    bool cancelled = false;
    start(
        [](std::vector<Completion<int>>& all, int& count) -> Task<void> {
          for (Completion<int>& one : all) {
            co_await one;
            ++count;
          }
        }(completions, passed),
        stop.get_token(), [&cancelled](TaskResult<void> result) { cancelled = !result; });
    for (int i = 0; i < waits; ++i) completions[static_cast<std::size_t>(i)].set(i);
    EXPECT_EQ(passed, waits);
    stop.request_stop();
    EXPECT_EQ(passed, waits);
    EXPECT_TRUE(cancelled);
    completions[static_cast<std::size_t>(waits)].set(1);  // for nobody
  }
}

TEST(Task, WaitsAgainAfterItWasAskedToStopAreRefused) {
  std::stop_source stop;
  Completion<int> first;
  Completion<int> second;
  int refused = 0;
  bool done = false;
  start(
      [](Completion<int>& a, Completion<int>& b, int& count) -> Task<void> {
        for (Completion<int>* one : {&a, &b}) {
          try {
            co_await *one;
          } catch (const Cancelled&) {
            ++count;
          }
        }
      }(first, second, refused),
      stop.get_token(), [&done](const TaskResult<void>& result) { done = result.has_value(); });
  stop.request_stop();
  EXPECT_EQ(refused, 2);
  EXPECT_TRUE(done);
}

TEST(Start, CallsDoneBeforeItReturnsWhenTheTaskNeverWaits) {
  int calls = 0;
  start(value_of(9), {}, [&calls](TaskResult<int> result) {
    ++calls;
    EXPECT_EQ(result.value(), 9);
  });
  EXPECT_EQ(calls, 1);
}

Task<int> awaits(Completion<int> completion) { co_return co_await completion; }

TEST(Start, CallsDoneOnceWhenWhatTheTaskWaitsForComes) {
  const Completion<int> completion;
  std::vector<int> results;
  start(awaits(completion), {}, [&results](TaskResult<int> result) { results.push_back(result.value()); });
  EXPECT_TRUE(results.empty());
  completion.set(3);
  EXPECT_EQ(results, std::vector<int>{3});
}

TEST(Start, HandsWhatTheTaskThrewToDone) {
  std::exception_ptr error;
  start(throws(), {}, [&error](TaskResult<int> result) { error = result.error(); });
  EXPECT_THROW(std::rethrow_exception(error), Error);
}

TEST(Start, DestroysTheFrameBeforeDoneIsCalled) {
  auto held = std::make_shared<int>(6);
  long users = 0;
  start(holds(held), {}, [&users, &held](TaskResult<int>) { users = held.use_count(); });
  EXPECT_EQ(users, 1);
}

TEST(Start, TakesACallbackThatOnlyMoves) {
  auto target = std::make_unique<int>(0);
  const int* seen = target.get();
  std::unique_ptr<int> back;
  start(value_of(8), {}, [target = std::move(target), &back](TaskResult<int> result) mutable {
    *target = result.value();
    back = std::move(target);
  });
  EXPECT_EQ(back.get(), seen);
  EXPECT_EQ(*back, 8);
}

TEST(Start, MakesAReferenceAReferenceWrapper) {
  int value = 0;
  int* seen = nullptr;
  start(refers_to(value), {}, [&seen](TaskResult<int&> result) { seen = &result.value().get(); });
  EXPECT_EQ(seen, &value);
}

Task<bool> sees_stop() {
  const std::stop_token& token = co_await this_task::stop_token();
  co_return token.stop_requested();
}
Task<bool> child_sees_stop() { co_return co_await sees_stop(); }

TEST(Start, GivesItsStopTokenToAllThatIsAwaited) {
  std::stop_source source;
  EXPECT_FALSE(sync_wait(child_sees_stop(), source.get_token()));
  source.request_stop();
  EXPECT_TRUE(sync_wait(child_sees_stop(), source.get_token()));
}

TEST(SyncWait, RefusesATaskThatWaits) {
  const Completion<int> never;
  EXPECT_THROW(sync_wait(awaits(never)), std::logic_error);
}

// ------------------------------------------------------------------------------------------------ owning

struct Notes {
  std::string* text;
  char letter;
  ~Notes() { text->push_back(letter); }
};
Task<int> leaf_frame(std::string& order, const Completion<int>& never) {
  const Notes notes{&order, 'c'};
  co_return co_await never;
}
Task<int> middle_frame(std::string& order, const Completion<int>& never) {
  const Notes notes{&order, 'b'};
  co_return co_await leaf_frame(order, never);
}
Task<int> outer_frame(std::string& order, const Completion<int>& never) {
  const Notes notes{&order, 'a'};
  co_return co_await middle_frame(order, never);
}

TEST(TaskScope, DestroysUnfinishedFramesInnermostFirstAndCallsNoDone) {
  const Completion<int> never;
  std::string order;
  TaskScope scope;
  scope.start(outer_frame(order, never), {}, [](TaskResult<int>) { FAIL(); });
  EXPECT_FALSE(scope.empty());
  scope.destroy_all();
  EXPECT_EQ(order, "cba");
  EXPECT_TRUE(scope.empty());
  never.set(1);  // nobody is there any more
}

TEST(TaskScope, ForgetsWhatHasFinishedInAnyOrder) {
  std::vector<Completion<int>> completions(5);
  std::vector<int> results;
  TaskScope scope;
  for (const auto& completion : completions) {
    scope.start(awaits(completion), {}, [&results](TaskResult<int> result) { results.push_back(result.value()); });
  }
  for (const std::size_t i : {2U, 4U, 0U}) completions[i].set(static_cast<int>(i));
  EXPECT_EQ(results, (std::vector<int>{2, 4, 0}));
  EXPECT_FALSE(scope.empty());
  for (const std::size_t i : {1U, 3U}) completions[i].set(static_cast<int>(i));
  EXPECT_TRUE(scope.empty());
}

TEST(TaskScope, MayBeDestroyedFromADone) {
  const Completion<int> first;
  const Completion<int> second;
  auto scope = std::make_unique<TaskScope>();
  scope->start(awaits(second), {}, [](TaskResult<int>) { FAIL(); });
  scope->start(awaits(first), {}, [&scope](TaskResult<int>) { scope.reset(); });
  first.set(1);
  EXPECT_EQ(scope, nullptr);
  second.set(1);
}

// ------------------------------------------------------------------------------------------------ other awaitables

/// Keeps the plain handle that any library's awaiter is given.
struct PlainEvent {
  std::coroutine_handle<> waiting;
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) noexcept { waiting = handle; }
  [[nodiscard]] int await_resume() const noexcept { return 1; }
};

Task<int> waits_for_plain(PlainEvent& event) { co_return co_await event; }
Task<int> awaits_children_after_plain(PlainEvent& event, StackProbe& probe) {
  int sum = co_await waits_for_plain(event);
  for (int i = 0; i < 100'000; ++i) sum += co_await probed(probe, 1);
  sum += co_await event;
  co_return sum + co_await value_of(1);
}

TEST(ForeignAwaitable, ResumedByItsPlainHandleGoesOnWithoutGrowingTheStack) {
  PlainEvent event;
  StackProbe probe;
  int result = 0;
  start(awaits_children_after_plain(event, probe), {}, [&result](TaskResult<int> value) { result = value.value(); });
  event.waiting.resume();
  EXPECT_EQ(result, 0);
  event.waiting.resume();
  EXPECT_EQ(result, 100'003);
  EXPECT_LT(probe.bytes(), kStackBytesMax);
}

struct ResumesAtOnce {
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) const { handle.resume(); }
  void await_resume() const noexcept {}
};
struct DeclinesToSuspend {
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  [[nodiscard]] bool await_suspend(std::coroutine_handle<>) const noexcept { return false; }
  void await_resume() const noexcept {}
};
struct ReturnsItsHandle {
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<> handle) const noexcept { return handle; }
  void await_resume() const noexcept {}
};
struct FailsToSuspend {
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<>) const { throw Error("cannot wait"); }
  void await_resume() const noexcept {}
};
struct HasMemberOperator {
  [[nodiscard]] DeclinesToSuspend operator co_await() const noexcept { return {}; }
};
struct HasFreeOperator {};
DeclinesToSuspend operator co_await(HasFreeOperator) noexcept { return {}; }

Task<int> awaits_all_kinds() {
  int steps = 0;
  co_await ResumesAtOnce{};
  steps += co_await value_of(1);
  co_await DeclinesToSuspend{};
  steps += co_await value_of(1);
  co_await ReturnsItsHandle{};
  steps += co_await value_of(1);
  try {
    co_await FailsToSuspend{};
  } catch (const Error&) {
    steps += 10;
  }
  steps += co_await value_of(1);
  co_await HasMemberOperator{};
  steps += co_await value_of(1);
  co_await HasFreeOperator{};
  steps += co_await value_of(1);
  co_await std::suspend_never{};
  co_return steps;
}
Task<int> parent_of_all_kinds() { co_return 100 + co_await awaits_all_kinds(); }

TEST(ForeignAwaitable, MaySuspendDeclineResumeOrThrow) { EXPECT_EQ(sync_wait(parent_of_all_kinds()), 116); }

/// Resumes on a new thread, possibly before await_suspend has returned on the old one.
struct ContinueOnThread {
  std::vector<std::thread>* threads;
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) const {
    threads->emplace_back([handle] { handle.resume(); });
  }
  void await_resume() const noexcept {}
};
Task<int> hops(std::vector<std::thread>& threads) {
  co_await ContinueOnThread{&threads};
  co_return co_await value_of(2);
}
Task<int> parent_of_hops(std::vector<std::thread>& threads) {
  const int value = co_await hops(threads);
  co_return value + co_await value_of(40);
}

TEST(ForeignAwaitable, MayResumeOnAnotherThread) {
  for (int round = 0; round < 100; ++round) {
    std::vector<std::thread> threads;
    threads.reserve(1);
    int result = 0;
    start(parent_of_hops(threads), {}, [&result](TaskResult<int> value) { result = value.value(); });
    threads.front().join();
    EXPECT_EQ(result, 42);
  }
}

}  // namespace
}  // namespace wirecall
