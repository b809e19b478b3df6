// Streams and listeners over the simulated backend; and what only a real socket can do.
#include "transport/socket.hpp"

#include <cerrno>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "tests/runtime/simulated_backend.hpp"
#include "transport/endpoint_socket.hpp"

namespace wirecall::transport {
namespace {

using runtime::SimulatedBackend;
using std::chrono::milliseconds;

class Reader final : public StreamUser {
 public:
  void received(std::span<char> bytes) override { text.append(bytes.data(), bytes.size()); }
  void ended() override { log += 'e'; }
  void sent(Buffer) override { log += 's'; }
  void failed(int error) override {
    log += 'f';
    reason = error;
  }

  std::string text;
  std::string log;
  int reason = 0;
};

class SocketStreamTest : public testing::TestWithParam<unsigned> {
 protected:
  SocketStreamTest() {
    auto [descriptor, peer] = backend_->pair();
    peer_ = peer;
    stream_ = std::make_unique<SocketStream>(loop_, descriptor);
    stream_->start(user_);
  }
  void turns(int count = 30) {
    for (int i = 0; i < count; ++i) loop_.turn(milliseconds{1});
  }

  SimulatedBackend* backend_ = new SimulatedBackend{GetParam()};
  Loop loop_{std::unique_ptr<runtime::Backend>{backend_}};
  std::shared_ptr<runtime::SimulatedPeer> peer_;
  Reader user_;
  std::unique_ptr<SocketStream> stream_;
};

TEST_P(SocketStreamTest, carries_bytes_both_ways_and_the_end) {
  peer_->send("question");
  stream_->send(Buffer{"answer"}, false);
  turns();
  peer_->finish();
  turns();
  EXPECT_EQ(user_.text, "question");
  EXPECT_EQ(user_.log, "se");
  EXPECT_EQ(peer_->take(), "answer");
}

TEST_P(SocketStreamTest, nothing_arrives_while_it_is_paused_and_everything_after) {
  turns(3);
  stream_->pause();
  peer_->send("early");
  turns();
  EXPECT_EQ(user_.text, "");
  stream_->resume();
  turns();
  EXPECT_EQ(user_.text, "early");
}

TEST_P(SocketStreamTest, pausing_and_resuming_within_a_turn_loses_nothing) {
  std::string all;
  for (int i = 0; i < 50; ++i) {
    stream_->pause();
    if (i % 3 == 0) loop_.turn(milliseconds{1});
    stream_->resume();
    if (i % 2 == 0) stream_->pause();
    stream_->resume();
    peer_->send(std::to_string(i));
    all += std::to_string(i);
    loop_.turn(milliseconds{1});
  }
  turns();
  EXPECT_EQ(user_.text, all);
}

TEST_P(SocketStreamTest, a_reset_is_a_failure) {
  peer_->reset();
  turns();
  EXPECT_EQ(user_.log, "f");
  EXPECT_EQ(user_.reason, ECONNRESET);
}

TEST_P(SocketStreamTest, destroying_it_closes_whatever_is_under_way) {
  peer_->window = 10;
  stream_->send(Buffer{std::string(1000, 'x')}, false);
  loop_.turn(milliseconds{1});
  stream_.reset();
  turns(3);
  EXPECT_TRUE(peer_->closed);
  EXPECT_EQ(user_.log, "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, SocketStreamTest, testing::Range(1U, 9U));

class RealPair : public testing::Test {
 protected:
  RealPair() {
    const BoundSocket bound = listen_on(Endpoint{"tcp://127.0.0.1:0"});
    peer_ = connect_to(bound.endpoint, milliseconds{5000}).release_socket();
    descriptor_ = ::accept(bound.descriptor, nullptr, nullptr);
    ::close(bound.descriptor);
  }
  ~RealPair() override { ::close(peer_); }

  Loop loop_;
  int peer_;
  int descriptor_;
};

TEST_F(RealPair, nobody_vouches_for_a_peer_over_tcp) {
  const SocketStream stream{loop_, descriptor_};
  EXPECT_FALSE(stream.peer_credentials().has_value());
}

TEST(Listener, hands_over_each_connection_once) {
  auto* backend = new SimulatedBackend{3};
  Loop loop{std::unique_ptr<runtime::Backend>{backend}};
  const int descriptor = backend->listen();
  std::vector<PendingConnection> accepted;
  const Listener listener{loop, descriptor,
                          [&](PendingConnection connection) { accepted.push_back(std::move(connection)); },
                          [](int) { FAIL(); }};
  for (int i = 0; i < 10; ++i) backend->connect(descriptor);
  for (int i = 0; i < 60; ++i) loop.turn(milliseconds{1});
  EXPECT_EQ(accepted.size(), 10U);
}

TEST(Listener, waits_when_there_are_no_descriptors_and_accepts_again_later) {
  auto* backend = new SimulatedBackend{3};
  Loop loop{std::unique_ptr<runtime::Backend>{backend}};
  const int descriptor = backend->listen();
  std::vector<PendingConnection> accepted;
  std::vector<int> told;
  const Listener listener{loop, descriptor,
                          [&](PendingConnection connection) { accepted.push_back(std::move(connection)); },
                          [&](int error) { told.push_back(error); }};
  backend->fail_accept(EMFILE);
  backend->connect(descriptor);
  while (told.empty()) loop.turn();
  const std::chrono::nanoseconds failed_at = loop.now();
  const std::size_t turns_before = backend->turns();
  while (accepted.empty()) loop.turn();
  EXPECT_GE(loop.now() - failed_at, milliseconds{100});
  EXPECT_LT(backend->turns() - turns_before, 20U);  // it did not spin
  // Another connection that finds none belongs to the same shortage.
  backend->fail_accept(EMFILE);
  backend->connect(descriptor);
  while (accepted.size() < 2) loop.turn();
  EXPECT_EQ(told, std::vector<int>{EMFILE});
  while (told.size() < 2) loop.turn();
  EXPECT_EQ(told, (std::vector<int>{EMFILE, 0}));
  backend->fail_accept(EMFILE);
  backend->connect(descriptor);
  while (told.size() < 3) loop.turn();
  EXPECT_EQ(told.back(), EMFILE);
}

TEST(RealSocketStream, has_the_kernel_find_out_whether_the_peer_is_still_there) {
  Loop loop;
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  ASSERT_GE(descriptor, 0);
  SocketStream stream{loop, descriptor};
  const auto option = [&](int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    EXPECT_EQ(::getsockopt(descriptor, level, name, &value, &size), 0);
    return value;
  };
  stream.watch_peer(std::chrono::seconds{120});
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPIDLE), 60);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPINTVL) * option(IPPROTO_TCP, TCP_KEEPCNT), 60);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_USER_TIMEOUT), 120'000);
  stream.watch_peer(std::chrono::milliseconds{1});
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPIDLE), 1);
  stream.watch_peer(std::chrono::hours{24 * 49});
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPIDLE), 32767);
}

}  // namespace
}  // namespace wirecall::transport
