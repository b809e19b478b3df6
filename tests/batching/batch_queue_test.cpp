// Which calls wait, which of them leave together, and who goes where there is no room.
#include "batching/batch_queue.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace wirecall::batching {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

class Queue : public testing::Test {
 protected:
  static constexpr Bounds kBounds{.calls = 3, .rows = 10, .bytes = 1000, .waiting = 6, .waiting_bytes = 5000};

  struct Numbered : WaitingCall {
    int number = 0;
  };
  ~Queue() override {
    for (Numbered& call : calls_) queue_.remove(call);
  }
  Numbered& call(int number, int priority = 0) {
    Numbered& made = calls_.emplace_back();
    made.number = number;
    made.priority = priority;
    return made;
  }
  // The number of who goes; 0 for nobody.
  int add(Numbered& added, const std::string& group = "", nanoseconds hopeless_before = 0ns) {
    const WaitingCall* const leaver = queue_.add(added, group, hopeless_before);
    return leaver == nullptr ? 0 : static_cast<const Numbered*>(leaver)->number;
  }
  std::vector<int> take() {
    std::vector<WaitingCall*> batch;
    queue_.take(batch);
    std::vector<int> numbers;
    for (const WaitingCall* const taken : batch) numbers.push_back(static_cast<const Numbered*>(taken)->number);
    return numbers;
  }

  BatchQueue queue_{kBounds};
  std::deque<Numbered> calls_;
};

using Numbers = std::vector<int>;

TEST_F(Queue, calls_leave_once_they_fill_a_batch_or_the_first_is_ripe) {
  Numbered& first = call(1);
  EXPECT_EQ(add(first), 0);
  EXPECT_EQ(add(call(2)), 0);
  EXPECT_FALSE(queue_.is_due());
  EXPECT_EQ(take(), Numbers{});
  EXPECT_EQ(add(call(3)), 0);
  EXPECT_TRUE(queue_.is_due());
  EXPECT_EQ(add(call(4)), 0);
  EXPECT_EQ(take(), (Numbers{1, 2, 3}));
  EXPECT_FALSE(queue_.is_due());
  queue_.ripen(calls_.back());
  EXPECT_TRUE(queue_.is_due());
  EXPECT_EQ(take(), Numbers{4});
  queue_.ripen(first);
  EXPECT_FALSE(queue_.is_due()) << "one that has left is ripe no more";
  EXPECT_EQ(queue_.size(), 0U);
}

TEST_F(Queue, rows_and_bytes_fill_a_batch_as_well) {
  for (const std::size_t rows : {6, 3, 2, 5}) {
    Numbered& added = call(static_cast<int>(rows));
    added.rows = rows;
    EXPECT_EQ(add(added), 0);
  }
  EXPECT_TRUE(queue_.is_due());
  EXPECT_EQ(take(), (Numbers{6, 3})) << "2 more rows would be 11";
  EXPECT_FALSE(queue_.is_due());
  Numbered& large = call(9);
  large.bytes = 1001;
  EXPECT_EQ(add(large), 0);
  EXPECT_TRUE(queue_.is_due());
  EXPECT_EQ(take(), (Numbers{2, 5}));
  EXPECT_EQ(take(), Numbers{9}) << "more than a batch may be is one by itself";
  EXPECT_EQ(queue_.bytes(), 0U);
}

TEST_F(Queue, only_calls_of_one_group_leave_together) {
  add(call(1), "a");
  add(call(2), "b");
  add(call(3), "a");
  add(call(4), "b");
  EXPECT_FALSE(queue_.is_due()) << "four calls, but no three that may go together";
  add(call(5), "b");
  EXPECT_EQ(take(), (Numbers{2, 4, 5}));
  EXPECT_FALSE(queue_.is_due());
  queue_.ripen(calls_[2]);
  EXPECT_EQ(take(), (Numbers{1, 3}));
}

TEST_F(Queue, of_several_groups_that_are_due_the_one_goes_whose_call_came_first) {
  add(call(1), "a");
  add(call(2), "b");
  queue_.ripen(calls_[1]);
  queue_.ripen(calls_[0]);
  EXPECT_EQ(take(), Numbers{1});
  EXPECT_EQ(take(), Numbers{2});
}

TEST_F(Queue, a_greater_priority_leaves_first) {
  add(call(1));
  add(call(2, -1));
  add(call(3, 5));
  add(call(4, 5), "other");
  add(call(5));
  EXPECT_EQ(take(), (Numbers{3, 1, 5}));
  queue_.ripen(calls_[1]);
  queue_.ripen(calls_[3]);
  EXPECT_EQ(take(), Numbers{4});
  EXPECT_EQ(take(), Numbers{2});
}

TEST_F(Queue, where_there_is_no_room_the_call_goes_itself) {
  for (int i = 1; i <= 6; ++i) EXPECT_EQ(add(call(i), std::to_string(i)), 0);
  EXPECT_EQ(add(call(7), "7"), 7);
  EXPECT_EQ(queue_.size(), 6U);
  queue_.remove(calls_[2]);
  EXPECT_EQ(add(call(8), "8"), 0);
}

TEST_F(Queue, or_the_last_of_the_lowest_priority_that_is_lower) {
  add(call(1, 2), "1");
  add(call(2, 1), "2");
  add(call(3, 1), "3");
  for (int i = 4; i <= 6; ++i) add(call(i, 2), std::to_string(i));
  EXPECT_EQ(add(call(7, 1), "7"), 7);
  EXPECT_EQ(add(call(8, 2), "8"), 3);
  EXPECT_EQ(add(call(9, 2), "9"), 2);
  EXPECT_EQ(add(call(10, 2), "10"), 10);
}

TEST_F(Queue, or_first_the_one_whose_deadline_cannot_be_kept) {
  for (int i = 1; i <= 6; ++i) {
    Numbered& added = call(i, i == 1 ? 9 : 0);
    added.deadline = std::chrono::milliseconds{100 - i};
    add(added, std::to_string(i), 0ns);
  }
  Numbered& newest = call(7);
  newest.deadline = 200ms;
  EXPECT_EQ(add(newest, "7", 94ms), 7) << "94 is the earliest, and can be kept";
  EXPECT_EQ(add(call(8), "8", 95ms), 6);
  EXPECT_EQ(add(call(9), "9", 95ms), 9);
  EXPECT_EQ(add(call(10), "10", 96ms), 5);
  EXPECT_EQ(add(call(11, -1), "11", 1s), 4);
}

TEST_F(Queue, bytes_that_wait_are_bounded_and_nobody_makes_room_for_several) {
  for (int i = 1; i <= 5; ++i) {
    Numbered& added = call(i, -1);
    added.bytes = 900;
    EXPECT_EQ(add(added, std::to_string(i)), 0);
  }
  Numbered& fits = call(6);
  fits.bytes = 600;
  EXPECT_EQ(add(fits, "6"), 5) << "500 are left, and the last of a lower priority has 900";
  Numbered& large = call(7);
  large.bytes = 1801;
  EXPECT_EQ(add(large, "7"), 7);
  Numbered& larger_than_all = call(8);
  larger_than_all.bytes = 5001;
  EXPECT_EQ(add(larger_than_all, "8"), 8);
  for (Numbered& one : calls_) queue_.remove(one);
  EXPECT_EQ(add(larger_than_all, "8"), 0) << "one call may always wait";
  EXPECT_EQ(add(call(9), "9"), 9);
}

TEST_F(Queue, who_is_removed_is_neither_counted_nor_taken) {
  add(call(1));
  add(call(2));
  add(call(3));
  queue_.remove(calls_[1]);
  EXPECT_FALSE(queue_.is_due());
  queue_.ripen(calls_[0]);
  queue_.remove(calls_[0]);
  EXPECT_FALSE(queue_.is_due());
  queue_.remove(calls_[0]);
  queue_.ripen(calls_[2]);
  EXPECT_EQ(take(), Numbers{3});
}

// Against a model that keeps all in one list.
TEST_F(Queue, does_as_a_plain_list_does) {
  struct Model {
    Numbered* call;
    std::string group;
    bool ripe;
  };
  constexpr Bounds kSmall{.calls = 4, .rows = 12, .bytes = 100, .waiting = 20, .waiting_bytes = 300};
  std::mt19937 random{7};
  const auto below = [&random](int bound) { return static_cast<int>(random() % static_cast<unsigned>(bound)); };
  BatchQueue queue{kSmall};
  std::vector<Model> model;
  const auto leaves_first = [](const Model& a, const Model& b) {
    return std::pair{-a.call->priority, a.call->number} < std::pair{-b.call->priority, b.call->number};
  };
  const auto of_group = [&](const std::string& group) {
    std::vector<Model> found;
    for (const Model& one : model) {
      if (one.group == group) found.push_back(one);
    }
    std::ranges::sort(found, leaves_first);
    return found;
  };
  const auto is_due = [&](const std::string& group) {
    std::size_t calls = 0, rows = 0, bytes = 0;
    bool ripe = false;
    for (const Model& one : of_group(group)) {
      ++calls;
      rows += one.call->rows;
      bytes += one.call->bytes;
      ripe = ripe || one.ripe;
    }
    return ripe || calls >= kSmall.calls || rows >= kSmall.rows || bytes >= kSmall.bytes;
  };
  const auto forget = [&model](const WaitingCall* call) {
    std::erase_if(model, [call](const Model& one) { return one.call == call; });
  };
  std::size_t taken = 0;
  for (int step = 0; step != 20'000; ++step) {
    const int what = below(10);
    if (what < 6) {
      Numbered& added = call(step, below(3));
      added.rows = static_cast<std::size_t>(1 + below(5));
      added.bytes = static_cast<std::size_t>(below(60));
      added.deadline = nanoseconds{step + below(60)};
      const std::string group(1, static_cast<char>('a' + below(3)));
      std::size_t bytes = 0;
      for (const Model& one : model) bytes += one.call->bytes;
      const bool room = model.empty() || (model.size() < kSmall.waiting && bytes + added.bytes <= kSmall.waiting_bytes);
      const WaitingCall* const leaver = queue.add(added, group, nanoseconds{step + 10});
      EXPECT_EQ(leaver == nullptr, room);
      if (leaver != nullptr && leaver != &added) {
        const auto earliest =
            std::ranges::min(model, {}, [](const Model& one) { return one.call->deadline; }).call->deadline;
        EXPECT_TRUE(leaver->deadline < nanoseconds{step + 10} ? leaver->deadline == earliest
                                                              : leaver->priority < added.priority);
        forget(leaver);
      }
      if (leaver != &added) model.push_back({&added, group, false});
    } else if (what < 7 && !model.empty()) {
      const Model gone = model[static_cast<std::size_t>(below(static_cast<int>(model.size())))];
      queue.remove(*gone.call);
      forget(gone.call);
    } else if (what < 8 && !model.empty()) {
      Model& ripe = model[static_cast<std::size_t>(below(static_cast<int>(model.size())))];
      queue.ripen(*ripe.call);
      ripe.ripe = true;
    } else {
      std::vector<Model> ordered = model;
      std::ranges::sort(ordered, leaves_first);
      const auto due = std::ranges::find_if(ordered, is_due, &Model::group);
      EXPECT_EQ(queue.is_due(), due != ordered.end());
      std::vector<WaitingCall*> batch;
      queue.take(batch);
      std::vector<WaitingCall*> expected;
      std::size_t rows = 0, bytes = 0;
      for (const Model& one : due != ordered.end() ? of_group(due->group) : std::vector<Model>{}) {
        rows += one.call->rows;
        bytes += one.call->bytes;
        if (!expected.empty() && (expected.size() == kSmall.calls || rows > kSmall.rows || bytes > kSmall.bytes)) break;
        expected.push_back(one.call);
      }
      ASSERT_EQ(batch, expected);
      for (const WaitingCall* const one : batch) forget(one);
      taken += batch.size();
    }
    ASSERT_EQ(queue.size(), model.size());
  }
  EXPECT_GT(taken, 5'000U);
  for (const Model& one : model) queue.remove(*one.call);
}

}  // namespace
}  // namespace wirecall::batching
