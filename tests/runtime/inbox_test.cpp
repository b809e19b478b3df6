// The inbox of a loop: jobs from other threads run on its own, in order, each once, with one wake a turn; and what
// becomes of those that come too late or are too many.
#include "runtime/inbox.hpp"

#include <atomic>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/runtime/simulated_backend.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::runtime {
namespace {

using std::chrono::nanoseconds;

TEST(Inbox, jobs_of_many_threads_run_on_the_loop_s_thread_each_once_and_in_their_poster_s_order) {
  constexpr int kThreads = 4;
  constexpr int kJobs = 2000;
  Loop loop;
  std::vector<std::vector<int>> seen(kThreads);
  const std::thread::id ours = std::this_thread::get_id();
  std::vector<std::thread> posters;
  for (int thread = 0; thread < kThreads; ++thread) {
    posters.emplace_back([&, thread] {
      for (int job = 0; job < kJobs; ++job) {
        ASSERT_TRUE(loop.post([&seen, ours, thread, job] {
          EXPECT_EQ(std::this_thread::get_id(), ours);
          seen[static_cast<std::size_t>(thread)].push_back(job);
        }));
      }
    });
  }
  const auto done = [&] {
    for (const auto& jobs : seen) {
      if (jobs.size() != kJobs) return false;
    }
    return true;
  };
  while (!done()) loop.turn();
  for (std::thread& poster : posters) poster.join();
  for (const auto& jobs : seen) {
    for (int job = 0; job < kJobs; ++job) EXPECT_EQ(jobs[static_cast<std::size_t>(job)], job);
  }
}

// Counts its wakes.
class CountingBackend final : public Backend {
 public:
  std::span<Completion> turn(std::span<Operation>, nanoseconds) override { return {}; }
  void wake() noexcept override { ++wakes; }
  [[nodiscard]] std::shared_ptr<void> keep_lent() override { return nullptr; }
  [[nodiscard]] std::size_t readable(Handle) const noexcept override { return 0; }
  [[nodiscard]] std::size_t unsent(Handle) const noexcept override { return 0; }
  [[nodiscard]] nanoseconds now() const noexcept override { return nanoseconds{1}; }

  int wakes = 0;
};

TEST(Inbox, however_many_are_posted_wake_the_loop_once_a_turn) {
  auto* backend = new CountingBackend;
  Loop loop{std::unique_ptr<Backend>{backend}};
  int ran = 0;
  for (int turn = 1; turn <= 3; ++turn) {
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(loop.post([&] { ++ran; }));
    EXPECT_EQ(backend->wakes, turn);
    loop.turn();
    EXPECT_EQ(ran, 10 * turn);
  }
}

TEST(Inbox, what_a_job_posts_waits_for_the_next_turn) {
  Loop loop{std::make_unique<SimulatedBackend>(1U)};
  std::string log;
  ASSERT_TRUE(loop.post([&] {
    log += 'a';
    ASSERT_TRUE(loop.post([&] { log += 'b'; }));
  }));
  loop.turn();
  EXPECT_EQ(log, "a");
  loop.turn();
  EXPECT_EQ(log, "ab");
}

TEST(Inbox, a_full_one_refuses_and_has_room_again_after_a_turn) {
  Loop loop{std::make_unique<SimulatedBackend>(1U)};
  std::size_t ran = 0;
  for (std::size_t i = 0; i < Inbox::kJobsMax; ++i) ASSERT_TRUE(loop.post([&] { ++ran; }));
  EXPECT_FALSE(loop.post([&] { ++ran; }));
  EXPECT_TRUE(loop.inbox()->post_owed([&] { ++ran; }));
  loop.turn();
  EXPECT_EQ(ran, Inbox::kJobsMax + 1);
  EXPECT_TRUE(loop.post([&] { ++ran; }));
  loop.turn();
  EXPECT_EQ(ran, Inbox::kJobsMax + 2);
}

TEST(Inbox, a_refused_job_is_its_poster_s_still) {
  Inbox::Job job;
  std::shared_ptr<Inbox> inbox;
  {
    Loop loop{std::make_unique<SimulatedBackend>(1U)};
    inbox = loop.inbox();
  }
  int ran = 0;
  job = [&] { ++ran; };
  EXPECT_FALSE(inbox->post(std::move(job)));
  EXPECT_FALSE(inbox->post_owed(std::move(job)));
  job();
  EXPECT_EQ(ran, 1);
}

struct Note final : Inbox::Continuation {
  explicit Note(std::string& text) : log(text) {}
  void resume() noexcept override { log += 'n'; }
  std::string& log;
};

TEST(Inbox, a_continuation_runs_in_its_turn_among_the_jobs) {
  std::string log;
  const auto note = std::make_shared<Note>(log);
  const auto late = std::make_shared<Note>(log);
  std::shared_ptr<Inbox> inbox;
  {
    Loop loop{std::make_unique<SimulatedBackend>(1U)};
    inbox = loop.inbox();
    ASSERT_TRUE(loop.post([&] { log += 'a'; }));
    inbox->post(note);
    ASSERT_TRUE(loop.post([&] { log += 'b'; }));
    EXPECT_EQ(note.use_count(), 2);
    loop.turn();
    EXPECT_EQ(log, "anb");
    EXPECT_EQ(note.use_count(), 1);
  }
  inbox->post(late);
  EXPECT_EQ(late.use_count(), 1);
  EXPECT_EQ(log, "anb");
}

TEST(Inbox, jobs_that_the_loop_leaves_are_destroyed_without_being_run) {
  const auto held = std::make_shared<int>(0);
  {
    Loop loop{std::make_unique<SimulatedBackend>(1U)};
    for (std::size_t i = 0; i < Inbox::kJobsMax; ++i) ASSERT_TRUE(loop.post([held] { ++*held; }));
  }
  EXPECT_EQ(*held, 0);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Inbox, posting_to_a_loop_that_goes_meanwhile_is_harmless) {
  for (int i = 0; i < 50; ++i) {
    auto loop = std::make_unique<Loop>();
    std::thread poster{[inbox = loop->inbox()] {
      while (inbox->post_owed([] {})) std::this_thread::yield();
    }};
    loop->turn();
    loop.reset();
    poster.join();
  }
}

}  // namespace
}  // namespace wirecall::runtime
