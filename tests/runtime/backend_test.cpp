// What every backend must do, run on each of them: epoll and io_uring over TCP and unix sockets, and the simulated one
// with several seeds. Here one connection, from its beginning to its end; in the other backend_*_test.cpp what is lent,
// listeners, and waits.
#include "runtime/backend.hpp"

#include <cerrno>
#include <string>
#include <string_view>

#include "tests/runtime/backend_fixture.hpp"

namespace wirecall::runtime {
namespace {

TEST_P(BackendTest, bytes_arrive_in_order_with_a_zero_behind_each_run) {
  open(handle_);
  submit(OperationKind::receive, handle_);
  std::string all;
  for (int i = 0; i < 50; ++i) {
    const std::string part(static_cast<std::size_t>(1 + i * 37), static_cast<char>('a' + i % 26));
    peer_->send(part);
    all += part;
    turn(kAtOnce);
  }
  run_until([&] { return received_.size() == all.size(); });
  EXPECT_EQ(received_, all);
  EXPECT_TRUE(seen_.empty());
}

TEST_P(BackendTest, the_end_of_the_stream_completes_the_receive_once) {
  open(handle_);
  submit(OperationKind::receive, handle_);
  peer_->send("last words");
  peer_->finish();
  run_until([&] { return !seen_.empty(); });
  for (int i = 0; i < 10; ++i) turn(kAtOnce);
  EXPECT_EQ(received_, "last words");
  ASSERT_EQ(seen_.size(), 1U);
  EXPECT_EQ(seen_[0].kind, OperationKind::receive);
  EXPECT_EQ(seen_[0].error, 0);
}

TEST_P(BackendTest, a_reset_after_the_end_of_the_stream_is_told_once_though_nothing_is_in_flight) {
  open(handle_);
  submit(OperationKind::receive, handle_);
  peer_->finish();
  run_until([&] { return !seen_.empty(); });
  for (int i = 0; i < 10; ++i) turn(kAtOnce);
  peer_->reset();
  run_until([&] { return seen_.size() == 2; });
  for (int i = 0; i < 10; ++i) turn(kAtOnce);
  ASSERT_EQ(seen_.size(), 2U);
  EXPECT_EQ(seen_[1].kind, OperationKind::receive);
  EXPECT_TRUE(seen_[1].error == ECONNRESET || seen_[1].error == EPIPE) << seen_[1].error;
}

TEST_P(BackendTest, what_has_arrived_and_not_been_received_is_readable) {
  EXPECT_EQ(world_->backend().readable(handle_), 0U);
  open(handle_);
  turn(kAtOnce);
  EXPECT_EQ(world_->backend().readable(handle_), 0U);
  peer_->send("hello");
  EXPECT_EQ(world_->backend().readable(handle_), 5U);
  submit(OperationKind::receive, handle_);
  run_until([&] { return received_.size() == 5; });
  EXPECT_EQ(world_->backend().readable(handle_), 0U);
}

TEST_P(BackendTest, a_send_gives_its_buffer_back_when_all_is_taken) {
  open(handle_);
  send(handle_, "hello", true);
  run_until([&] { return !seen_.empty(); });
  ASSERT_EQ(seen_.size(), 1U);
  EXPECT_EQ(seen_[0].kind, OperationKind::send);
  EXPECT_EQ(seen_[0].error, 0);
  EXPECT_GE(seen_[0].buffer.capacity(), 5U);
  EXPECT_EQ(peer_->take(), "hello");
}

TEST_P(BackendTest, a_send_that_was_taken_at_once_is_told_before_what_arrives_later) {
  open(handle_);
  submit(OperationKind::receive, handle_);
  turn(kAtOnce);
  send(handle_, "question", false);
  std::string got;
  run_until([&] {
    got += peer_->take();
    if (got == "question") peer_->send("answer");
    return received_.size() >= 6;
  });
  ASSERT_EQ(seen_.size(), 1U);
  EXPECT_EQ(seen_[0].kind, OperationKind::send);
}

TEST_P(BackendTest, a_large_send_goes_on_as_the_peer_takes_it) {
  open(handle_);
  submit(OperationKind::receive, handle_);
  peer_->narrow();
  std::string large;
  for (int i = 0; i < 100'000; ++i) large += std::to_string(i);
  send(handle_, large, false);
  turn(kAtOnce);
  EXPECT_TRUE(seen_.empty());
  std::string got;
  run_until([&] {
    got += peer_->take();
    return !seen_.empty() && got.size() == large.size();
  });
  EXPECT_EQ(got, large);
  EXPECT_EQ(seen_[0].kind, OperationKind::send);
  EXPECT_EQ(seen_[0].error, 0);
  peer_->send("still heard");
  run_until([&] { return received_ == "still heard"; });
}

TEST_P(BackendTest, a_cancelled_receive_completes_and_lends_nothing_until_asked_again) {
  open(handle_);
  submit(OperationKind::receive, handle_);
  turn(kAtOnce);
  submit(OperationKind::cancel, handle_);
  turn_until(kForever);
  ASSERT_EQ(seen_.size(), 1U);
  EXPECT_EQ(seen_[0].kind, OperationKind::receive);
  EXPECT_EQ(seen_[0].error, ECANCELED);
  peer_->send("early");
  for (int i = 0; i < 10; ++i) turn(kAtOnce);
  EXPECT_EQ(received_, "");
  submit(OperationKind::receive, handle_);
  run_until([&] { return received_ == "early"; });
}

TEST_P(BackendTest, an_end_that_nobody_receives_is_told_when_somebody_does) {
  open(handle_);
  submit(OperationKind::receive, handle_);
  turn(kAtOnce);
  submit(OperationKind::cancel, handle_);
  turn_until(kForever);
  peer_->finish();
  for (int i = 0; i < 10; ++i) turn(kAtOnce);
  EXPECT_EQ(seen_.size(), 1U);
  submit(OperationKind::receive, handle_);
  run_until([&] { return seen_.size() == 2; });
  EXPECT_EQ(seen_[1].error, 0);
}

TEST_P(BackendTest, closing_completes_all_that_is_in_flight_and_then_itself) {
  open(handle_);
  submit(OperationKind::receive, handle_);
  peer_->narrow();
  send(handle_, std::string(5'000'000, 'x'), false);
  turn(kAtOnce);
  submit(OperationKind::close, handle_);
  run_until([&] { return seen_.size() == 3; });
  EXPECT_EQ(seen_[0].kind, OperationKind::receive);
  EXPECT_EQ(seen_[0].error, ECANCELED);
  EXPECT_EQ(seen_[1].kind, OperationKind::send);
  EXPECT_EQ(seen_[1].error, ECANCELED);
  EXPECT_EQ(seen_[2].kind, OperationKind::close);
  run_until([&] { return peer_->sees_end(); });
}

TEST_P(BackendTest, a_slot_that_is_used_again_hears_nothing_meant_for_the_former) {
  open(handle_);
  submit(OperationKind::receive, handle_);
  turn(kAtOnce);
  peer_->send("for the first");
  submit(OperationKind::close, handle_);
  turn_until(kForever);
  const std::unique_ptr<Peer> former = std::move(peer_);
  seen_.clear();
  received_.clear();
  const Handle next{.slot = 0, .generation = 1};
  open(next);
  submit(OperationKind::receive, next);
  peer_->send("for the second");
  run_until([&] { return received_.size() == 14; });
  EXPECT_EQ(received_, "for the second");
  EXPECT_TRUE(seen_.empty());
}

TEST_P(BackendTest, shutting_down_ends_one_direction_only) {
  open(handle_);
  submit(OperationKind::receive, handle_);
  submit(OperationKind::shut_down, handle_);
  turn(kAtOnce);
  EXPECT_TRUE(peer_->sees_end());
  peer_->send("heard");
  run_until([&] { return received_ == "heard"; });
}

TEST_P(BackendTest, an_end_without_a_byte_before_it_is_an_end) {
  open(handle_);
  submit(OperationKind::receive, handle_);
  peer_->finish();
  run_until([&] { return !seen_.empty(); });
  EXPECT_EQ(received_, "");
  EXPECT_EQ(seen_[0].error, 0);
}

TEST_P(BackendTest, after_the_peer_s_end_bytes_still_go_the_other_way) {
  open(handle_);
  submit(OperationKind::receive, handle_);
  peer_->finish();
  run_until([&] { return !seen_.empty(); });
  send(handle_, "answer", true);
  run_until([&] { return seen_.size() == 2; });
  EXPECT_EQ(seen_[1].kind, OperationKind::send);
  EXPECT_EQ(seen_[1].error, 0);
  EXPECT_EQ(peer_->take(), "answer");
}

TEST_P(BackendTest, a_reset_ends_the_receive_with_an_error) {
  open(handle_);
  submit(OperationKind::receive, handle_);
  turn(kAtOnce);
  send(handle_, "never read", true);
  run_until([&] { return seen_.size() == 1; });
  peer_->reset();
  run_until([&] { return seen_.size() == 2; });
  EXPECT_EQ(seen_[1].kind, OperationKind::receive);
  EXPECT_EQ(seen_[1].error, ECONNRESET);
}

TEST_P(BackendTest, a_reset_while_nothing_is_received_is_told) {
  open(handle_);
  submit(OperationKind::receive, handle_);
  turn(kAtOnce);
  submit(OperationKind::cancel, handle_);
  run_until([&] { return seen_.size() == 1; });
  send(handle_, "never read", true);
  run_until([&] { return seen_.size() == 2; });
  peer_->reset();
  run_until([&] { return seen_.size() == 3; });
  EXPECT_EQ(seen_[2].kind, OperationKind::receive);
  EXPECT_NE(seen_[2].error, 0);
}

TEST_P(BackendTest, a_reset_ends_a_send_that_waits_with_an_error) {
  open(handle_);
  submit(OperationKind::receive, handle_);
  peer_->narrow();
  send(handle_, std::string(5'000'000, 'x'), false);
  turn(kAtOnce);
  peer_->reset();
  run_until([&] { return seen_.size() == 2; });
  for (const Seen& seen : seen_) {
    EXPECT_NE(seen.error, 0);
    EXPECT_EQ(seen.buffer.capacity() >= 5'000'000, seen.kind == OperationKind::send);
  }
}

TEST_P(BackendTest, a_cancel_that_meets_arriving_bytes_loses_and_doubles_none) {
  open(handle_);
  std::string all;
  for (int i = 0; i < 200; ++i) {
    submit(OperationKind::receive, handle_);
    if (i % 3 == 0) turn(kAtOnce);
    const std::string part = std::to_string(i) + ",";
    peer_->send(part);
    all += part;
    submit(OperationKind::cancel, handle_);
    run_until([&] { return !seen_.empty(); });
    ASSERT_EQ(seen_.size(), 1U);
    EXPECT_EQ(seen_[0].kind, OperationKind::receive);
    EXPECT_EQ(seen_[0].error, ECANCELED);
    seen_.clear();
  }
  submit(OperationKind::receive, handle_);
  run_until([&] { return received_.size() >= all.size(); });
  EXPECT_EQ(received_, all);
}

TEST_P(BackendTest, handles_come_and_go_with_everything_in_flight) {
  for (std::uint32_t generation = 0; generation < 200; ++generation) {
    const Handle handle{.slot = 0, .generation = generation};
    open(handle);
    submit(OperationKind::receive, handle);
    const std::string own = std::to_string(generation);
    peer_->send(own);
    send(handle, own, false);
    run_until([&] { return received_.size() == own.size() && !seen_.empty(); });
    EXPECT_EQ(received_, own);
    EXPECT_EQ(seen_[0].handle, handle);
    EXPECT_EQ(seen_[0].kind, OperationKind::send);
    peer_->send("too late");
    submit(OperationKind::close, handle);
    run_until([&] { return seen_.size() >= 3; });
    ASSERT_EQ(seen_.size(), 3U);
    EXPECT_EQ(seen_[1].kind, OperationKind::receive);
    EXPECT_EQ(seen_[2].kind, OperationKind::close);
    for (const Seen& seen : seen_) EXPECT_EQ(seen.handle, handle);
    seen_.clear();
    received_.clear();
  }
}

TEST_P(BackendTest, what_was_sent_in_the_turn_of_the_close_is_delivered) {
  open(handle_);
  turn(kAtOnce);
  // The simulated kernel takes bytes late on purpose.
  if (GetParam().name.starts_with("simulated")) return;
  send(handle_, "last words", false);
  submit(OperationKind::close, handle_);
  run_until([&] { return seen_.size() == 2; });
  EXPECT_EQ(seen_[0].kind, OperationKind::send);
  EXPECT_EQ(seen_[0].error, 0);
  EXPECT_EQ(peer_->take(), "last words");
}

TEST_P(BackendTest, a_descriptor_is_closed_when_its_close_has_completed) {
  const int descriptor = world_->connect(peer_);
  submitted_.push_back({.kind = OperationKind::open, .handle = handle_, .descriptor = descriptor, .buffer = {}});
  submit(OperationKind::receive, handle_);
  turn(kAtOnce);
  submit(OperationKind::close, handle_);
  run_until([&] { return seen_.size() == 2; });
  EXPECT_TRUE(world_->closed(descriptor));
}

INSTANTIATE_TEST_SUITE_P(Backends, BackendTest, testing::ValuesIn(all_worlds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wirecall::runtime
