// Listeners of every backend: what arrives at them, when there is no room for it, and when they go.
#include <cerrno>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <system_error>
#include <vector>

#include "tests/runtime/backend_fixture.hpp"

namespace wirecall::runtime {
namespace {

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

// Two backends that accept on one socket, as two processes may.
class SharedListener : public testing::TestWithParam<bool> {
 protected:
  struct Side {
    std::unique_ptr<Backend> backend;
    std::vector<int> accepted;
    bool cancelled = false;
    bool closed = false;

    void turn(std::vector<Operation> operations = {}) {
      for (Completion& completion : backend->turn(operations, kAtOnce)) {
        if (completion.descriptor >= 0) accepted.push_back(std::exchange(completion.descriptor, -1));
        cancelled = cancelled || completion.error == ECANCELED;
        closed = closed || completion.kind == OperationKind::close;
      }
    }
    void accept_on(int listener) {
      closed = false;
      std::vector<Operation> operations;
      operations.push_back({.kind = OperationKind::open, .handle = {}, .descriptor = ::dup(listener), .buffer = {}});
      operations.push_back({.kind = OperationKind::accept, .handle = {}, .buffer = {}});
      turn(std::move(operations));
    }
    void cancel() {
      std::vector<Operation> operations;
      operations.push_back({.kind = OperationKind::cancel, .handle = {}, .buffer = {}});
      turn(std::move(operations));
    }
    void close() {
      std::vector<Operation> operations;
      operations.push_back({.kind = OperationKind::close, .handle = {}, .buffer = {}});
      turn(std::move(operations));
    }
  };

  void SetUp() override try {
    for (Side* const side : {&first_, &second_})
      side->backend = GetParam() ? make_uring_backend() : make_epoll_backend();
    if (GetParam() && !kRingsAreFollowed) GTEST_SKIP() << "ThreadSanitizer cannot follow io_uring";
  } catch (const std::system_error& refusal) {
    GTEST_SKIP() << "the kernel refuses io_uring: " << refusal.what();
  }

  Side first_;
  Side second_;
};

TEST_P(SharedListener, a_connection_that_comes_while_one_of_two_stops_accepting_is_accepted) {
  SocketWorld world{make_epoll_backend(), AF_INET};
  const int listener = world.listen();
  first_.accept_on(listener);
  second_.accept_on(listener);
  const std::unique_ptr<Peer> peer = world.dial();
  first_.cancel();
  for (int turns = 0; !first_.cancelled && turns < 10'000; ++turns) first_.turn();
  second_.turn();
  EXPECT_EQ(first_.accepted.size() + second_.accepted.size(), 1U);
  for (const Side* const side : {&first_, &second_}) {
    for (const int one : side->accepted) ::close(one);
  }
  ::close(listener);
}

// What others have as well is not left in a backend with the descriptor that is closed, whose number is soon another's.
TEST_P(SharedListener, a_socket_is_accepted_on_again_by_a_descriptor_of_the_same_number) {
  SocketWorld world{make_epoll_backend(), AF_INET};
  const int listener = world.listen();
  for (std::size_t i = 1; i <= 3; ++i) {
    first_.accept_on(listener);
    const std::unique_ptr<Peer> peer = world.dial();
    for (int turns = 0; first_.accepted.size() < i && turns < 10'000; ++turns) first_.turn();
    ASSERT_EQ(first_.accepted.size(), i);
    first_.close();
    for (int turns = 0; !first_.closed && turns < 10'000; ++turns) first_.turn();
    EXPECT_TRUE(first_.closed);
  }
  for (const int one : first_.accepted) ::close(one);
  ::close(listener);
}

INSTANTIATE_TEST_SUITE_P(Engines, SharedListener, testing::Bool(),
                         [](const auto& info) { return info.param ? "uring" : "epoll"; });

INSTANTIATE_TEST_SUITE_P(Backends, AcceptTest, testing::ValuesIn(all_worlds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wirecall::runtime
