// What every backend must do, run on each of them: epoll and io_uring over TCP and unix sockets, and the simulated one
// with several seeds.
#include "runtime/backend.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <pthread.h>
#include <signal.h>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/runtime/backend_world.hpp"

namespace wirecall::runtime {
namespace {

using std::chrono::nanoseconds;
class BackendTest : public testing::TestWithParam<WorldKind> {
 protected:
  void SetUp() override {
    std::string reason;
    world_ = GetParam().make(reason);
    if (world_ == nullptr) GTEST_SKIP() << reason;
  }
  // Runs turns until `done`; each completion goes to `seen`.
  void run_until(const std::function<bool()>& done) {
    for (int turns = 0; !done() && turns < 10'000; ++turns) {
      turn(std::chrono::milliseconds{1});
    }
    ASSERT_TRUE(done());
  }
  void turn(nanoseconds wait_max) { turn_until(world_->backend().now() + wait_max); }
  void turn_until(nanoseconds until) {
    std::vector<Operation> now = std::move(submitted_);
    submitted_.clear();
    for (Completion& completion : world_->backend().turn(now, until)) {
      if (completion.kind == OperationKind::receive && !completion.last) {
        EXPECT_EQ(*(completion.bytes.data() + completion.bytes.size()), '\0');
        received_.append(completion.bytes.data(), completion.bytes.size());
        continue;
      }
      if (completion.descriptor >= 0) {
        EXPECT_FALSE(completion.last);
        accepted_.push_back(std::exchange(completion.descriptor, -1));
        continue;
      }
      seen_.push_back({completion.kind, completion.handle, completion.error, std::move(completion.buffer)});
    }
  }
  [[nodiscard]] nanoseconds in_a_moment() { return world_->backend().now() + std::chrono::milliseconds{1}; }
  void submit(OperationKind kind, Handle handle) {
    submitted_.push_back({.kind = kind, .handle = handle, .buffer = {}});
  }
  void open(Handle handle) {
    submitted_.push_back(
        {.kind = OperationKind::open, .handle = handle, .descriptor = world_->connect(peer_), .buffer = {}});
  }
  void send(Handle handle, std::string_view bytes, bool prompt) {
    submitted_.push_back({.kind = OperationKind::send, .prompt = prompt, .handle = handle, .buffer = Buffer{bytes}});
  }

  struct Seen {
    OperationKind kind;
    Handle handle;
    int error;
    Buffer buffer;
  };

  std::unique_ptr<World> world_;
  std::unique_ptr<Peer> peer_;
  std::vector<Operation> submitted_;
  std::vector<Seen> seen_;
  std::string received_;
  std::vector<int> accepted_;
  const Handle handle_{.slot = 0, .generation = 0};
};

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

TEST_P(BackendTest, many_connections_are_served_though_all_speak_at_once) {
  constexpr std::uint32_t kConnections = 300;
  std::vector<std::unique_ptr<Peer>> peers;
  std::vector<std::string> received(kConnections);
  for (std::uint32_t slot = 0; slot < kConnections; ++slot) {
    open({.slot = slot, .generation = 0});
    submit(OperationKind::receive, {.slot = slot, .generation = 0});
    peers.push_back(std::move(peer_));
  }
  turn(kAtOnce);
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (std::uint32_t slot = 0; slot < kConnections; ++slot) peers[slot]->send(std::to_string(slot) + ";");
  }
  std::size_t left = kConnections;
  for (int turns = 0; left != 0 && turns < 10'000; ++turns) {
    for (Completion& completion : world_->backend().turn({}, in_a_moment())) {
      ASSERT_FALSE(completion.last);
      std::string& text = received[completion.handle.slot];
      text.append(completion.bytes.data(), completion.bytes.size());
      const std::string one = std::to_string(completion.handle.slot) + ";";
      if (text == one + one + one) --left;
    }
  }
  EXPECT_EQ(left, 0U);
}

// Whoever accepts a connection makes a handle of it while it looks at what else has completed.
TEST_P(BackendTest, what_has_completed_in_a_turn_stays_where_it_is_when_many_more_handles_are_expected) {
  constexpr std::size_t kHandles = 100'000;
  open(handle_);
  submit(OperationKind::receive, handle_);
  peer_->send("x");
  std::span<Completion> completed;
  for (int turns = 0; completed.empty() && turns < 10'000; ++turns) {
    completed = world_->backend().turn(submitted_, in_a_moment());
    submitted_.clear();
  }
  ASSERT_EQ(completed.size(), 1U);
  for (std::size_t handles = 2; handles < kHandles; handles *= 2) {
    world_->backend().expect(handles);
    ASSERT_EQ(completed[0].kind, OperationKind::receive);
    ASSERT_EQ((std::string_view{completed[0].bytes.data(), completed[0].bytes.size()}), "x");
  }
  peer_->send("y");
  run_until([&] { return received_ == "y"; });
}

TEST_P(BackendTest, bytes_lent_in_a_turn_stay_as_they_are_and_may_be_written_to_until_the_next) {
  constexpr std::uint32_t kConnections = 20;
  std::vector<std::unique_ptr<Peer>> peers;
  for (std::uint32_t slot = 0; slot < kConnections; ++slot) {
    open({.slot = slot, .generation = 0});
    submit(OperationKind::receive, {.slot = slot, .generation = 0});
    peer_->send(std::string(3000, static_cast<char>('a' + slot)));
    peers.push_back(std::move(peer_));
  }
  std::size_t total = 0;
  std::vector<Operation> now = std::move(submitted_);
  for (int turns = 0; total != 3000 * kConnections && turns < 10'000; ++turns) {
    const std::span<Completion> completions = world_->backend().turn(now, in_a_moment());
    now.clear();
    for (Completion& completion : completions) {
      std::fill(completion.bytes.begin(), completion.bytes.end(), static_cast<char>('A' + completion.handle.slot));
      std::fill_n(completion.bytes.data() + completion.bytes.size(), kPaddingBytes, '#');
    }
    for (Completion& completion : completions) {
      for (const char c : completion.bytes) ASSERT_EQ(c, static_cast<char>('A' + completion.handle.slot));
      total += completion.bytes.size();
    }
  }
  EXPECT_EQ(total, 3000 * kConnections);
}

TEST_P(BackendTest, lent_bytes_that_are_kept_outlast_their_turn_while_another_thread_goes_on) {
  open(handle_);
  submit(OperationKind::receive, handle_);
  peer_->send("kept");
  std::shared_ptr<void> kept;
  std::string_view bytes;
  for (int turns = 0; bytes.empty() && turns < 10'000; ++turns) {
    for (Completion& completion : world_->backend().turn(submitted_, in_a_moment())) {
      bytes = {completion.bytes.data(), completion.bytes.size()};
      kept = world_->backend().keep_lent();
    }
    submitted_.clear();
  }
  ASSERT_FALSE(bytes.empty());
  const std::string before{bytes};
  received_ = before;
  std::thread{[this] {
    for (int i = 0; i < 20; ++i) peer_->send(std::string(1000, '#'));
    run_until([&] { return received_.size() == 4 + 20 * 1000; });
  }}.join();
  EXPECT_EQ(bytes, before);
  EXPECT_TRUE(received_.starts_with("kept"));
}

// ---- listeners ----

class AcceptTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (world_ == nullptr) return;
    listener_ = world_->listen();
    submitted_.push_back({.kind = OperationKind::open, .handle = handle_, .descriptor = listener_, .buffer = {}});
    submit(OperationKind::accept, handle_);
  }

  int listener_ = -1;
};

TEST_P(AcceptTest, each_connection_is_accepted_once_and_carries_bytes) {
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 50; ++i) {
    peers.push_back(world_->dial());
    peers.back()->send("x");
  }
  run_until([&] { return accepted_.size() == 50; });
  EXPECT_TRUE(seen_.empty());
  for (std::uint32_t slot = 1; slot <= 50; ++slot) {
    const Handle handle{.slot = slot, .generation = 0};
    submitted_.push_back(
        {.kind = OperationKind::open, .handle = handle, .descriptor = accepted_[slot - 1], .buffer = {}});
    submit(OperationKind::receive, handle);
  }
  run_until([&] { return received_.size() == 50; });
}

TEST_P(AcceptTest, without_descriptors_it_ends_once_and_goes_on_when_asked_again) {
  const std::unique_ptr<Peer> peer = world_->dial();
  world_->exhaust_descriptors();
  run_until([&] { return !seen_.empty(); });
  world_->relieve();
  for (int i = 0; i < 10; ++i) turn(kAtOnce);
  ASSERT_EQ(seen_.size(), 1U);
  EXPECT_EQ(seen_[0].kind, OperationKind::accept);
  EXPECT_EQ(seen_[0].error, EMFILE);
  EXPECT_TRUE(accepted_.empty());
  submit(OperationKind::accept, handle_);
  run_until([&] { return accepted_.size() == 1; });
  EXPECT_EQ(seen_.size(), 1U);
}

TEST_P(AcceptTest, a_cancelled_accept_completes_and_accepts_nothing_until_asked_again) {
  turn(kAtOnce);
  submit(OperationKind::cancel, handle_);
  run_until([&] { return seen_.size() == 1; });
  EXPECT_EQ(seen_[0].kind, OperationKind::accept);
  EXPECT_EQ(seen_[0].error, ECANCELED);
  const std::unique_ptr<Peer> peer = world_->dial();
  for (int i = 0; i < 10; ++i) turn(kAtOnce);
  EXPECT_TRUE(accepted_.empty());
  submit(OperationKind::accept, handle_);
  run_until([&] { return accepted_.size() == 1; });
}

TEST_P(AcceptTest, when_its_close_has_completed_nobody_listens_any_more) {
  turn(kAtOnce);
  submit(OperationKind::close, handle_);
  run_until([&] { return seen_.size() == 2; });
  EXPECT_EQ(seen_[0].kind, OperationKind::accept);
  EXPECT_EQ(seen_[0].error, ECANCELED);
  EXPECT_EQ(seen_[1].kind, OperationKind::close);
  EXPECT_EQ(world_->dial(), nullptr);
}

// ---- waking and time ----

// One connection that receives by epoll, and the sizes of what came.
struct Receiving {
  explicit Receiving(std::unique_ptr<Backend> backend) : world(std::move(backend), AF_UNIX) {
    operations[0] = {.kind = OperationKind::open, .handle = kHandle, .descriptor = world.connect(peer), .buffer = {}};
    operations[1] = {.kind = OperationKind::receive, .handle = kHandle, .buffer = {}};
  }

  std::vector<std::size_t> sizes(std::size_t count) {
    std::vector<std::size_t> all;
    while (all.size() < count) {
      for (const Completion& completion : world.backend().turn(operations, kForever))
        all.push_back(completion.bytes.size());
      operations.clear();
    }
    return all;
  }

  static constexpr Handle kHandle{.slot = 0, .generation = 1};
  SocketWorld world;
  std::unique_ptr<Peer> peer;
  std::vector<Operation> operations = std::vector<Operation>(2);
};

TEST(EpollBackend, receives_as_little_as_it_is_told_and_more_while_there_is_more) {
  Receiving receiving{make_epoll_backend(100)};
  receiving.peer->send(std::string(1000, 'x'));
  EXPECT_EQ(receiving.sizes(4), (std::vector<std::size_t>{100, 200, 400, 300}));
  receiving.peer->send(std::string(300, 'x'));
  EXPECT_EQ(receiving.sizes(2), (std::vector<std::size_t>{100, 200}));
}

TEST(EpollBackend, what_came_in_two_parts_comes_whole_the_next_time_until_less_comes) {
  Receiving receiving{make_epoll_backend()};
  for (int round = 0; round < 2; ++round) {
    receiving.peer->send(std::string(100'000, 'x'));
    EXPECT_EQ(receiving.sizes(2), (std::vector<std::size_t>{65'536, 34'464}));
    receiving.peer->send(std::string(100'000, 'x'));
    EXPECT_EQ(receiving.sizes(1), (std::vector<std::size_t>{100'000}));
    receiving.peer->send(std::string(1000, 'x'));
    EXPECT_EQ(receiving.sizes(1), (std::vector<std::size_t>{1000}));
  }
}

TEST_P(BackendTest, waking_ends_the_wait) {
  std::thread waker{[this] { world_->backend().wake(); }};
  turn(std::chrono::hours{1});
  waker.join();
  EXPECT_TRUE(seen_.empty());
}

Backend* awake_by_signal = nullptr;

TEST_P(BackendTest, a_signal_handler_ends_the_wait) {
  awake_by_signal = &world_->backend();
  struct sigaction action{};
  struct sigaction previous{};
  action.sa_handler = [](int) { awake_by_signal->wake(); };
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR1, &action, &previous);
  const pthread_t us = ::pthread_self();
  std::thread sender{[us] { ::pthread_kill(us, SIGUSR1); }};
  turn(std::chrono::hours{1});
  sender.join();
  ::sigaction(SIGUSR1, &previous, nullptr);
  EXPECT_TRUE(seen_.empty());
}

TEST_P(BackendTest, waking_many_times_from_many_threads_ends_each_wait) {
  constexpr int kWakes = 200;
  std::atomic<int> asked{0};
  std::vector<std::thread> wakers;
  for (int i = 0; i < 4; ++i) {
    wakers.emplace_back([&] {
      for (int wakes = 0; wakes < kWakes; ++wakes) {
        asked.fetch_add(1);
        world_->backend().wake();
      }
    });
  }
  // Whoever asks is heard after asking: a last turn comes after the last asking.
  int heard = 0;
  while (heard < 4 * kWakes) {
    turn(std::chrono::hours{1});
    heard = asked.load();
  }
  for (std::thread& waker : wakers) waker.join();
}

TEST_P(BackendTest, what_stands_goes_on_when_another_thread_takes_the_turns) {
  open(handle_);
  submit(OperationKind::receive, handle_);
  peer_->narrow();
  std::string large;
  for (int i = 0; i < 100'000; ++i) large += std::to_string(i);
  send(handle_, large, false);
  peer_->send("first");
  std::thread{[this] { run_until([&] { return received_ == "first"; }); }}.join();
  peer_->send("second");
  std::string got;
  run_until([&] {
    got += peer_->take();
    return got.size() == large.size() && received_ == "firstsecond" && !seen_.empty();
  });
  EXPECT_EQ(got, large);
  std::thread waker{[this] { world_->backend().wake(); }};
  turn(std::chrono::hours{1});
  waker.join();
}

TEST_P(BackendTest, time_only_goes_forward) {
  const nanoseconds before = world_->backend().now();
  turn(std::chrono::milliseconds{2});
  EXPECT_GE(world_->backend().now(), before);
}

// Long ones are ended by an alarm that stays set (alarm.hpp), which must not outlast a change of mind or of the thread.
TEST_P(BackendTest, each_wait_ends_at_its_time) {
  Backend& backend = world_->backend();
  const auto wait_until = [&](nanoseconds until) {
    int turns = 0;
    while (backend.now() < until) {
      turn_until(until);
      ++turns;
    }
    // One may have been ended by an alarm that was set before, one by a wake that nobody has seen yet, and some by the
    // kernel, which takes down the rings of other tests when it likes and interrupts this thread for each (ring.hpp). A
    // wait that does not last makes thousands.
    EXPECT_LE(turns, 40);
  };
  const auto from_now = [&](int milliseconds) { return backend.now() + std::chrono::milliseconds{milliseconds}; };
  backend.wake();
  turn_until(from_now(70));
  wait_until(from_now(120));
  backend.wake();
  turn_until(from_now(3'600'000));
  wait_until(from_now(60));
  wait_until(from_now(3));
  backend.wake();
  const nanoseconds soon = from_now(60);
  turn_until(soon);
  std::thread{[&] { wait_until(soon); }}.join();
  wait_until(from_now(60));
}

INSTANTIATE_TEST_SUITE_P(Backends, AcceptTest, testing::ValuesIn(all_worlds()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Backends, BackendTest, testing::ValuesIn(all_worlds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wirecall::runtime
