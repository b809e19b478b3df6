#include "runtime/thread_pool.hpp"

#include <atomic>
#include <gtest/gtest.h>
#include <latch>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace wirecall::runtime {
namespace {

TEST(ThreadPool, runs_as_many_jobs_at_once_as_it_has_threads) {
  ThreadPool pool{3};
  std::latch together{3};
  std::latch done{3};
  for (int i = 0; i < 3; ++i) {
    pool.run([&] {
      together.arrive_and_wait();  // never passed by fewer threads
      done.count_down();
    });
  }
  done.wait();
}

TEST(ThreadPool, makes_no_more_threads_than_that_and_begins_jobs_in_order) {
  ThreadPool pool{1};
  std::vector<int> order;
  std::set<std::thread::id> threads;
  std::latch done{100};
  for (int i = 0; i < 100; ++i) {
    pool.run([&, i] {
      order.push_back(i);
      threads.insert(std::this_thread::get_id());
      done.count_down();
    });
  }
  done.wait();
  EXPECT_EQ(threads.size(), 1U);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(ThreadPool, uses_a_thread_that_waits_before_it_makes_one) {
  ThreadPool pool{8};
  std::mutex mutex;
  std::set<std::thread::id> threads;
  const auto all_idle = std::make_shared<int>();
  for (int i = 0; i < 50; ++i) {
    pool.run([&, held = all_idle] {
      const std::scoped_lock lock{mutex};
      threads.insert(std::this_thread::get_id());
    });
    while (all_idle.use_count() != 1) std::this_thread::yield();
  }
  // A thread that has let go of its job may not have come to wait yet.
  EXPECT_LE(threads.size(), 8U);
  EXPECT_GE(threads.size(), 1U);
}

TEST(ThreadPool, waits_for_what_has_begun_and_keeps_nothing_when_it_stops) {
  const auto alive = std::make_shared<int>();
  std::atomic<bool> finished{false};
  std::latch begun{1};
  std::latch go_on{1};
  ThreadPool pool{1};
  pool.run([&] {
    begun.count_down();
    go_on.wait();
    finished = true;
  });
  pool.run([held = alive] {});
  begun.wait();
  std::thread stopping{[&] { pool.stop(); }};
  go_on.count_down();
  stopping.join();
  EXPECT_TRUE(finished);
  EXPECT_EQ(alive.use_count(), 1);
}

}  // namespace
}  // namespace wirecall::runtime
