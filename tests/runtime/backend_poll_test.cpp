// Descriptors that a backend polls for somebody who reads and writes them.
#include <algorithm>
#include <cerrno>
#include <gtest/gtest.h>
#include <utility>

#include "tests/runtime/backend_fixture.hpp"

namespace wirecall::runtime {
namespace {

class BackendPoll : public BackendTest {
 protected:
  void open_polled(Readiness wanted) {
    descriptor_ = world_->connect(peer_);
    submitted_.push_back({.kind = OperationKind::open, .handle = handle_, .descriptor = descriptor_, .buffer = {}});
    poll(wanted);
  }
  void poll(Readiness wanted) {
    submitted_.push_back({.kind = OperationKind::poll, .wanted = wanted, .handle = handle_, .buffer = {}});
  }
  // How often it was told in so many turns.
  std::size_t told_in(int turns) {
    seen_.clear();
    for (int i = 0; i < turns; ++i) turn(std::chrono::milliseconds{1});
    return seen_.size();
  }

  int descriptor_ = -1;
};

TEST_P(BackendPoll, is_told_again_and_again_until_what_has_come_is_taken) {
  open_polled(Readiness::readable);
  EXPECT_EQ(told_in(5), 0U);
  peer_->send("hello");
  run_until([&] { return seen_.size() >= 5; });
  for (const Seen& seen : seen_) {
    EXPECT_EQ(seen.kind, OperationKind::poll);
    EXPECT_EQ(seen.handle, handle_);
    EXPECT_EQ(seen.error, 0);
    EXPECT_EQ(seen.ready, Readiness::readable);
  }
  world_->drain(descriptor_);
  turn(kAtOnce);  // what was there when the descriptor was asked last
  EXPECT_EQ(told_in(5), 0U);
  peer_->send("more");
  run_until([&] { return !seen_.empty(); });
}

TEST_P(BackendPoll, is_told_once_a_turn) {
  open_polled(Readiness::both);
  peer_->send("hello");
  run_until([&] { return !seen_.empty() && seen_.back().ready == Readiness::both; });
  for (int i = 0; i < 10; ++i) EXPECT_LE(told_in(1), 1U);
}

TEST_P(BackendPoll, is_told_of_room_when_there_is_some) {
  open_polled(Readiness::writable);
  run_until([&] { return !seen_.empty(); });
  EXPECT_EQ(seen_[0].ready, Readiness::writable);
  world_->fill(descriptor_);
  turn(kAtOnce);
  EXPECT_EQ(told_in(5), 0U);
  run_until([&] {
    static_cast<void>(peer_->take());
    return !seen_.empty();
  });
}

TEST_P(BackendPoll, tells_what_is_wanted_and_nothing_else) {
  open_polled(Readiness::readable);
  EXPECT_EQ(told_in(5), 0U) << "there is room, but nobody asked";
  poll(Readiness::both);
  run_until([&] { return !seen_.empty(); });
  EXPECT_EQ(seen_[0].ready, Readiness::writable);
  peer_->send("hello");
  poll(Readiness::none);
  EXPECT_EQ(told_in(10), 0U);
  poll(Readiness::readable);
  run_until([&] { return !seen_.empty(); });
  EXPECT_EQ(seen_[0].ready, Readiness::readable);
}

TEST_P(BackendPoll, a_peer_that_has_ended_makes_it_readable_and_one_that_is_gone_all_that_is_wanted) {
  open_polled(Readiness::readable);
  peer_->finish();
  run_until([&] { return seen_.size() >= 3; });
  EXPECT_EQ(seen_[0].ready, Readiness::readable);
  world_->fill(descriptor_);
  poll(Readiness::both);
  peer_->reset();
  run_until([&] { return seen_.back().ready == Readiness::both; });
  poll(Readiness::none);
  EXPECT_EQ(told_in(10), 0U);
  poll(Readiness::readable);
  run_until([&] { return !seen_.empty(); });
  EXPECT_TRUE(std::ranges::all_of(seen_, [](const Seen& seen) { return seen.kind == OperationKind::poll; }));
}

TEST_P(BackendPoll, a_close_ends_it_untold_and_the_slot_is_for_others) {
  open_polled(Readiness::readable);
  peer_->send("hello");
  turn(kAtOnce);
  seen_.clear();
  submit(OperationKind::close, handle_);
  run_until([&] { return !seen_.empty(); });
  EXPECT_EQ(seen_.back().kind, OperationKind::close);
  EXPECT_TRUE(world_->closed(descriptor_));
  const Handle next{.slot = handle_.slot, .generation = handle_.generation + 1};
  seen_.clear();
  open(next);
  submit(OperationKind::receive, next);
  peer_->send("for another");
  run_until([&] { return received_ == "for another"; });
  EXPECT_TRUE(seen_.empty());
}

INSTANTIATE_TEST_SUITE_P(Backends, BackendPoll, testing::ValuesIn(all_worlds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wirecall::runtime
