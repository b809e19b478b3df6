// What every backend must do, run on each of them: epoll over socket pairs, and the simulated one with several seeds.
#include "runtime/backend.hpp"

#include <cerrno>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "tests/runtime/simulated_backend.hpp"

namespace wirecall::runtime {
namespace {

using std::chrono::nanoseconds;
constexpr nanoseconds kForEver{-1};
constexpr nanoseconds kAtOnce{0};

// The other end of a connection, whatever it is made of.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual void send(std::string_view bytes) = 0;
  virtual void finish() = 0;
  /// Goes without reading anything more.
  virtual void reset() = 0;
  virtual std::string take() = 0;
  [[nodiscard]] virtual bool sees_end() = 0;
  /// Lets the other side send no more than a little before it has to wait for `take`.
  virtual void narrow() = 0;
};

class World {
 public:
  virtual ~World() = default;
  virtual Backend& backend() = 0;
  virtual int connect(std::unique_ptr<Peer>& peer) = 0;
};

class SocketPeer final : public Peer {
 public:
  SocketPeer(int fd, int other) : fd_(fd), other_(other) {}
  ~SocketPeer() override { reset(); }
  void send(std::string_view bytes) override {
    ASSERT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  void finish() override { ::shutdown(fd_, SHUT_WR); }
  void reset() override {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  std::string take() override {
    std::string all;
    char block[65536];
    ssize_t got;
    while ((got = ::recv(fd_, block, sizeof block, MSG_DONTWAIT)) > 0) all.append(block, static_cast<std::size_t>(got));
    ended_ = ended_ || got == 0;
    return all;
  }
  bool sees_end() override {
    take();
    return ended_;
  }
  void narrow() override {
    const int bytes = 4096;
    ::setsockopt(other_, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  }

 private:
  int fd_;
  int other_;
  bool ended_ = false;
};

class EpollWorld final : public World {
 public:
  Backend& backend() override { return *backend_; }
  int connect(std::unique_ptr<Peer>& peer) override {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    peer = std::make_unique<SocketPeer>(ends[1], ends[0]);
    return ends[0];
  }

 private:
  std::unique_ptr<Backend> backend_ = make_epoll_backend();
};

class SimulatedWorld final : public World {
 public:
  explicit SimulatedWorld(unsigned seed) : backend_(seed) {}
  Backend& backend() override { return backend_; }
  int connect(std::unique_ptr<Peer>& peer) override {
    auto [descriptor, end] = backend_.pair();
    peer = std::make_unique<End>(end);
    return descriptor;
  }

 private:
  struct End final : Peer {
    explicit End(std::shared_ptr<SimulatedPeer> end) : end(std::move(end)) {}
    void send(std::string_view bytes) override { end->send(bytes); }
    void finish() override { end->finish(); }
    void reset() override { end->reset(); }
    std::string take() override {
      if (end->window < 1000) end->window = 1000;
      return end->take();
    }
    bool sees_end() override { return end->shut_down || end->closed; }
    void narrow() override { end->window = 1000; }
    std::shared_ptr<SimulatedPeer> end;
  };

  SimulatedBackend backend_;
};

struct Kind {
  std::string name;
  std::function<std::unique_ptr<World>()> make;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class BackendTest : public testing::TestWithParam<Kind> {
 protected:
  // Runs turns until `done`; each completion goes to `seen`.
  void run_until(const std::function<bool()>& done) {
    for (int turns = 0; !done() && turns < 10'000; ++turns) {
      turn(std::chrono::milliseconds{1});
    }
    ASSERT_TRUE(done());
  }
  void turn(nanoseconds wait_max) {
    std::vector<Operation> now = std::move(submitted_);
    submitted_.clear();
    for (Completion& completion : world_->backend().turn(now, wait_max)) {
      if (completion.kind == OperationKind::receive && !completion.last) {
        EXPECT_EQ(*(completion.bytes.data() + completion.bytes.size()), '\0');
        received_.append(completion.bytes.data(), completion.bytes.size());
        continue;
      }
      seen_.push_back({completion.kind, completion.handle, completion.error, std::move(completion.buffer)});
    }
  }
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

  std::unique_ptr<World> world_ = GetParam().make();
  std::unique_ptr<Peer> peer_;
  std::vector<Operation> submitted_;
  std::vector<Seen> seen_;
  std::string received_;
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
  EXPECT_EQ(seen_[1].error, ECONNRESET);
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
  turn(kForEver);
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
  turn(kForEver);
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
  turn(kForEver);
  ASSERT_EQ(seen_.size(), 3U);
  EXPECT_EQ(seen_[0].kind, OperationKind::receive);
  EXPECT_EQ(seen_[0].error, ECANCELED);
  EXPECT_EQ(seen_[1].kind, OperationKind::send);
  EXPECT_EQ(seen_[1].error, ECANCELED);
  EXPECT_EQ(seen_[2].kind, OperationKind::close);
  EXPECT_TRUE(peer_->sees_end());
}

TEST_P(BackendTest, a_slot_that_is_used_again_hears_nothing_meant_for_the_former) {
  open(handle_);
  submit(OperationKind::receive, handle_);
  turn(kAtOnce);
  peer_->send("for the first");
  submit(OperationKind::close, handle_);
  turn(kForEver);
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

TEST_P(BackendTest, waking_ends_the_wait) {
  std::thread waker{[this] { world_->backend().wake(); }};
  turn(std::chrono::hours{1});
  waker.join();
  EXPECT_TRUE(seen_.empty());
}

TEST_P(BackendTest, time_only_goes_forward) {
  const nanoseconds before = world_->backend().now();
  turn(std::chrono::milliseconds{2});
  EXPECT_GE(world_->backend().now(), before);
}

std::vector<Kind> kinds() {
  std::vector<Kind> all{{"epoll", [] { return std::make_unique<EpollWorld>(); }}};
  for (unsigned seed = 1; seed <= 8; ++seed) {
    all.push_back({"simulated_" + std::to_string(seed), [seed] { return std::make_unique<SimulatedWorld>(seed); }});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Backends, BackendTest, testing::ValuesIn(kinds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wirecall::runtime
