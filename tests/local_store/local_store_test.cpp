// LocalStore: answers come in the order of what was asked, once it is safe, and never once the store has gone.
#include "local_store/local_store.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "tests/local_store/failing_disk.hpp"
#include "tests/local_store/world.hpp"

namespace wirecall::local_store {
namespace {

// A loop that runs what is posted when the test waits for it.
class TurnsOfTest final : public detail::Executor {
 public:
  void post(std::shared_ptr<Continuation> continuation) noexcept override {
    const std::scoped_lock lock{mutex_};
    queue_.push_back(std::move(continuation));
    posted_.notify_one();
  }
  template <class Until>
  void run_until(const Until& until) {
    while (!until()) {
      std::unique_lock lock{mutex_};
      posted_.wait(lock, [this] { return !queue_.empty(); });
      const std::shared_ptr<Continuation> next = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      next->resume();
    }
  }
  std::size_t waiting() {
    const std::scoped_lock lock{mutex_};
    return queue_.size();
  }
  void run_all() {
    const std::scoped_lock lock{mutex_};
    for (; !queue_.empty(); queue_.pop_front()) queue_.front()->resume();
  }

 private:
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::shared_ptr<Continuation>> queue_;
};

class LocalStoreTest : public testing::Test {
 protected:
  void open() { store = std::make_unique<LocalStore>(LocalStoreOptions{.folder = folder.path()}, turns, LogSink{}); }

  StoreFolder folder;
  std::shared_ptr<TurnsOfTest> turns = std::make_shared<TurnsOfTest>();
  std::unique_ptr<LocalStore> store;
};

TEST_F(LocalStoreTest, answers_in_the_order_in_which_it_was_asked) {
  open();
  std::vector<std::uint64_t> seqs;
  for (int i = 0; i != 1000; ++i) {
    store->append({.topic = "a", .params = "[]"},
                  [&](const durable::Outcome<durable::Appended>& outcome) { seqs.push_back(outcome.value().seq); });
  }
  turns->run_until([&] { return seqs.size() == 1000; });
  EXPECT_TRUE(std::ranges::is_sorted(seqs));
  EXPECT_EQ(seqs.back(), 1000U);
  EXPECT_EQ(store->waiting(), 0U);
}

TEST_F(LocalStoreTest, what_was_asked_for_before_it_goes_is_done_and_told_to_nobody) {
  open();
  bool told = false;
  store->append({.topic = "a", .params = "[]"}, [&](const auto&) { told = true; });
  store.reset();
  turns->run_all();
  EXPECT_FALSE(told);
  open();
  EXPECT_EQ(store->last_seq(), 1U);
}

TEST_F(LocalStoreTest, one_refusal_refuses_no_other_of_its_commit) {
  open();
  std::vector<bool> done;
  const auto note = [&](const auto& outcome) { done.push_back(outcome.has_value()); };
  store->append({.topic = "a", .params = "[]"}, note);
  store->forget_consumer("nobody", note);
  store->append({.topic = "a", .params = "[]"}, note);
  turns->run_until([&] { return done.size() == 3; });
  EXPECT_EQ(done, (std::vector<bool>{true, false, true}));
}

TEST_F(LocalStoreTest, tells_at_start_what_there_is) {
  open();
  bool done = false;
  store->open_consumer({.name = "c", .pattern = "a"}, [](const auto&) {});
  store->push({.method = "m", .params = "[]"}, [&](const auto&) { done = true; });
  turns->run_until([&] { return done; });
  store.reset();
  open();
  ASSERT_EQ(store->consumers().size(), 1U);
  EXPECT_EQ(store->consumers()[0].settings.name, "c");
  EXPECT_EQ(store->waiting_methods(), std::vector<std::string>{"m"});
}

TEST_F(LocalStoreTest, opens_on_a_full_disk_and_refuses_changes_until_there_is_room) {
  FailingDisk disk;
  open();
  bool made = false;
  store->open_consumer({.name = "c", .pattern = "a"}, [&](const auto&) { made = true; });
  turns->run_until([&] { return made; });
  store.reset();
  disk.writes_fail = true;
  open();
  EXPECT_EQ(store->consumers().size(), 1U);
  std::vector<bool> kept;
  const auto append = [&] {
    store->append({.topic = "a", .params = "[]"}, [&](const auto& outcome) { kept.push_back(outcome.has_value()); });
    turns->run_until([&, before = kept.size()] { return kept.size() != before; });
  };
  append();
  disk.writes_fail = false;
  append();
  EXPECT_EQ(kept, (std::vector<bool>{false, true}));
  store.reset();
}

TEST_F(LocalStoreTest, what_many_have_asked_for_is_not_in_memory_at_once) {
  open();
  constexpr std::size_t kBytes = 6'000'000;
  bool kept = false;
  store->append({.topic = "a", .params = '"' + std::string(kBytes, 'x') + '"'}, [&](const auto&) { kept = true; });
  turns->run_until([&] { return kept; });
  std::size_t read = 0;
  for (int i = 0; i != 20; ++i) {
    store->fetch({.pattern = "a", .after = 0, .count = 1, .bytes = 1},
                 [&](const durable::Outcome<durable::Fetched>& outcome) { read += outcome.value().events.size(); });
  }
  turns->run_until([&] { return read == 1; });
  EXPECT_LE(turns->waiting(), 4U);
  turns->run_until([&] { return read == 20; });
}

TEST_F(LocalStoreTest, who_asks_to_read_much_delays_nobodys_change_or_read_by_all_of_it) {
  open();
  store->pause();
  int read = 0;
  int read_before_change = -1;
  int read_before_other = -1;
  for (int i = 0; i != 100; ++i)
    store->fetch({.pattern = "a", .count = 1, .bytes = 1, .asker = "p"}, [&](const auto&) { ++read; });
  store->fetch({.pattern = "a", .count = 1, .bytes = 1, .asker = "q"}, [&](const auto&) { read_before_other = read; });
  store->append({.topic = "a", .params = "[]"}, [&](const auto&) { read_before_change = read; });
  store->resume();
  turns->run_until([&] { return read == 100; });
  EXPECT_EQ(read_before_other, 1);
  EXPECT_LE(read_before_change, 8);
}

TEST_F(LocalStoreTest, who_looks_much_up_delays_others_who_look_something_up_by_one_of_it) {
  open();
  store->pause();
  int looked_up = 0;
  std::vector<int> before;
  const auto note = [&](const auto&) { before.push_back(looked_up); };
  for (int i = 0; i != 100; ++i) {
    store->find_job(1, "p", [&](const auto&) { ++looked_up; });
    store->list_queues("p", [&](const auto&) { ++looked_up; });
    store->list_topics("p", [&](const auto&) { ++looked_up; });
  }
  store->find_job(1, "q", note);
  store->list_queues("r", note);
  store->list_topics("s", note);
  store->resume();
  turns->run_until([&] { return looked_up == 300; });
  EXPECT_EQ(before, (std::vector<int>{1, 1, 1}));
}

TEST_F(LocalStoreTest, one_that_pauses_leaves_reads_for_when_it_goes_on_or_has_left) {
  open();
  bool kept = false;
  store->append({.topic = "a", .params = '"' + std::string(6'000'000, 'x') + '"'}, [&](const auto&) { kept = true; });
  turns->run_until([&] { return kept; });
  int read = 0;
  int failed = 0;
  for (int i = 0; i != 20; ++i) {
    store->fetch({.pattern = "a", .after = 0, .count = 1, .bytes = 1},
                 [&](const auto& outcome) { ++(outcome.has_value() ? read : failed); });
  }
  store->pause();
  EXPECT_LE(turns->waiting(), 4U);
  store->resume();
  turns->run_until([&] { return read == 10; });
  store->leave();
  turns->run_until([&] { return read + failed == 20; });
  EXPECT_GT(failed, 0);
}

TEST_F(LocalStoreTest, one_that_pauses_leaves_its_file_to_another_process_and_does_what_waits_once_it_has_it_again) {
  open();
  std::vector<std::uint64_t> seqs;
  const auto append = [&] {
    store->append({.topic = "a", .params = "[]"},
                  [&](const durable::Outcome<durable::Appended>& outcome) { seqs.push_back(outcome.value().seq); });
  };
  append();
  store->pause();
  turns->run_until([&] { return seqs.size() == 1; });  // done before it has paused
  auto other = std::make_unique<LocalStore>(LocalStoreOptions{.folder = folder.path()}, turns, LogSink{});
  EXPECT_EQ(other->last_seq(), 1U);
  append();
  store->resume();
  append();
  turns->run_all();
  EXPECT_EQ(seqs.size(), 1U);
  other.reset();
  turns->run_until([&] { return seqs.size() == 3; });
  EXPECT_EQ(seqs, (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST_F(LocalStoreTest, jobs_run_on_where_another_process_has_had_the_file_but_was_asked_for_nothing) {
  open();
  bool taken = false;
  store->push({.method = "m", .params = "[]"}, [](const auto&) {});
  store->take({.method = "m", .count = 1}, [&](const auto&) { taken = true; });
  turns->run_until([&] { return taken; });
  std::vector<durable::Job::State> states;
  const auto look = [&](LocalStore& at) {
    at.find_job(1, "p", [&](const durable::Outcome<durable::Job>& job) { states.push_back(job.value().state); });
    turns->run_until([&, before = states.size()] { return states.size() != before; });
  };
  const auto other = [&] {
    return std::make_unique<LocalStore>(LocalStoreOptions{.folder = folder.path()}, turns, LogSink{}, Opening::handed);
  };
  store->pause();
  EXPECT_EQ(other()->waiting_methods(), std::vector<std::string>{"m"});
  store->resume();
  look(*store);
  store->pause();
  look(*other());
  EXPECT_EQ(states, (std::vector{durable::Job::State::running, durable::Job::State::waiting}));
}

TEST_F(LocalStoreTest, one_that_has_left_refuses_what_waits_and_what_comes) {
  open();
  std::vector<durable::Failure::Kind> kinds;
  const auto note = [&](const auto& outcome) { kinds.push_back(outcome.error().kind); };
  store->pause();
  store->append({.topic = "a", .params = "[]"}, note);
  store->fetch({.pattern = "a", .after = 0, .count = 1, .bytes = 1}, note);
  store->leave();
  store->push({.method = "m", .params = "[]"}, note);
  turns->run_until([&] { return kinds.size() == 3; });
  EXPECT_EQ(kinds, std::vector<durable::Failure::Kind>(3, durable::Failure::Kind::moved));
  EXPECT_EQ(store->waiting(), 0U);
  const LocalStore other{LocalStoreOptions{.folder = folder.path()}, turns, LogSink{}, Opening::handed};
  EXPECT_EQ(other.last_seq(), 0U);
}

TEST_F(LocalStoreTest, one_that_pauses_for_ever_goes_without_what_waits) {
  open();
  bool told = false;
  store->pause();
  store->append({.topic = "a", .params = "[]"}, [&](const auto&) { told = true; });
  store.reset();
  turns->run_all();
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace wirecall::local_store
