// Streams whose sockets are another thread's. Here both loops are turned by the test, one after the other or as a seed
// has it, over simulated backends: so what happens between two threads is told by a number.
#include "transport/io_thread.hpp"

#include <cerrno>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "tests/runtime/simulated_backend.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::transport {
namespace {

using runtime::SimulatedBackend;
using std::chrono::milliseconds;

class Reader final : public StreamUser {
 public:
  void received(std::span<char> bytes) override {
    EXPECT_EQ(bytes.data()[bytes.size()], '\0') << "padding";
    text.append(bytes.data(), bytes.size());
  }
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

class IoThreadTest : public testing::TestWithParam<unsigned> {
 protected:
  IoThreadTest() {
    auto [descriptor, peer] = sockets_->pair();
    peer_ = peer;
    stream_ = io_.open(PendingConnection{descriptor});
    stream_->start(user_);
  }
  void turn() {
    owner_.turn(milliseconds{1});
    io_.loop().turn(milliseconds{1});
  }
  void turns(int count = 30) {
    for (int i = 0; i < count; ++i) turn();
  }

  SimulatedBackend* sockets_ = new SimulatedBackend{GetParam()};
  Loop owner_{std::make_unique<SimulatedBackend>(GetParam())};
  IoThread io_{owner_, std::unique_ptr<runtime::Backend>{sockets_}};
  std::shared_ptr<runtime::SimulatedPeer> peer_;
  Reader user_;
  std::unique_ptr<ByteStream> stream_;
};

TEST_P(IoThreadTest, carries_bytes_both_ways_and_the_end) {
  peer_->send("question");
  stream_->send(Buffer{"answer"}, false);
  turns();
  peer_->finish();
  turns();
  EXPECT_EQ(user_.text, "question");
  EXPECT_EQ(user_.log, "se");
  EXPECT_EQ(peer_->take(), "answer");
}

TEST_P(IoThreadTest, what_has_crossed_when_it_is_paused_comes_when_it_goes_on) {
  turns(3);
  peer_->send("early");
  for (int i = 0; i < 20; ++i) io_.loop().turn(milliseconds{1});
  stream_->pause();
  peer_->send(", late");
  peer_->finish();
  turns();
  EXPECT_EQ(user_.text, "");
  EXPECT_EQ(user_.log, "");
  EXPECT_GE(stream_->readable(), 5U);
  stream_->resume();
  stream_->pause();
  turns();
  EXPECT_EQ(user_.text, "");
  stream_->resume();
  turns();
  EXPECT_EQ(user_.text, "early, late");
  EXPECT_EQ(user_.log, "e");
}

TEST_P(IoThreadTest, pausing_and_resuming_loses_nothing_and_turns_nothing_round) {
  std::mt19937 random{GetParam()};
  std::string all;
  for (int i = 0; i < 300; ++i) {
    if (random() % 3 == 0) stream_->pause();
    if (random() % 2 == 0) stream_->resume();
    if (random() % 2 == 0) owner_.turn(milliseconds{1});
    if (random() % 3 != 0) io_.loop().turn(milliseconds{1});
    peer_->send(std::to_string(i) + ' ');
    all += std::to_string(i) + ' ';
  }
  stream_->resume();
  turns();
  EXPECT_EQ(user_.text, all);
}

TEST_P(IoThreadTest, little_is_sent_for_its_user_as_soon_as_the_other_thread_has_it) {
  peer_->window = 0;
  turns(3);
  stream_->send(Buffer{std::string(1000, 'x')}, false);
  owner_.turn(milliseconds{0});
  EXPECT_EQ(user_.log, "s");
  turns();
  EXPECT_EQ(user_.log, "s") << "once";
}

TEST_P(IoThreadTest, much_is_sent_when_the_system_has_taken_it) {
  peer_->window = IoThread::kSentAtOnce / 2;
  turns(3);
  stream_->send(Buffer{std::string(IoThread::kSentAtOnce, 'x')}, false);
  turns();
  EXPECT_EQ(user_.log, "s");
  stream_->send(Buffer{"y"}, false);
  turns();
  EXPECT_EQ(user_.log, "s") << "it waits for what was before it";
  peer_->window = std::size_t{1} << 40;
  turns();
  EXPECT_EQ(user_.log, "ss");
  EXPECT_EQ(peer_->take(), std::string(IoThread::kSentAtOnce, 'x') + "y");
}

TEST_P(IoThreadTest, a_prompt_send_is_sent_when_the_system_has_taken_it_and_all_before) {
  peer_->window = 10;
  turns(3);
  stream_->send(Buffer{"0123456789ab"}, false);
  owner_.turn(milliseconds{0});
  EXPECT_EQ(user_.log, "s");
  stream_->send(Buffer{"cd"}, true);
  turns();
  EXPECT_EQ(user_.log, "s");
  peer_->window = 100;
  turns();
  EXPECT_EQ(user_.log, "ss");
  EXPECT_EQ(peer_->take(), "0123456789abcd");
}

TEST_P(IoThreadTest, tells_how_much_the_peer_has_not_taken) {
  peer_->window = 400;
  turns(3);
  stream_->send(Buffer{std::string(1000, 'x')}, true);
  turns();
  static_cast<void>(stream_->unsent());
  turns();
  EXPECT_EQ(stream_->unsent(), 600U);
  peer_->window = 2000;
  turns();
  EXPECT_EQ(stream_->unsent(), 0U);
}

TEST_P(IoThreadTest, an_end_comes_after_all_that_was_sent_before_it) {
  turns(3);
  peer_->window = 5;
  stream_->send(Buffer{"0123456789"}, false);
  stream_->shut_down();
  turns();
  EXPECT_FALSE(peer_->shut_down);
  peer_->window = 100;
  turns();
  EXPECT_TRUE(peer_->shut_down);
  EXPECT_EQ(peer_->take(), "0123456789");
}

TEST_P(IoThreadTest, a_reset_is_a_failure_and_nothing_comes_after_it) {
  peer_->reset();
  turns();
  EXPECT_EQ(user_.log, "f");
  EXPECT_EQ(user_.reason, ECONNRESET);
  stream_->pause();
  stream_->resume();
  stream_.reset();
  turns();
  EXPECT_EQ(user_.log, "f");
  EXPECT_TRUE(peer_->closed);
}

TEST_P(IoThreadTest, what_counts_as_sent_leaves_before_the_stream_is_closed) {
  turns(3);
  stream_->send(Buffer{"last words"}, false);
  owner_.turn(milliseconds{0});
  EXPECT_EQ(user_.log, "s");
  stream_.reset();
  turns();
  EXPECT_TRUE(peer_->closed);
  EXPECT_EQ(peer_->take(), "last words");
}

TEST_P(IoThreadTest, a_peer_that_does_not_take_the_last_of_it_holds_nothing_up_for_ever) {
  peer_->window = 0;
  turns(3);
  stream_->send(Buffer{"last words"}, false);
  owner_.turn(milliseconds{0});
  stream_.reset();
  turns();
  EXPECT_FALSE(peer_->closed);
  for (int i = 0; i < 100 && !peer_->closed; ++i) {
    owner_.turn(milliseconds{0});
    io_.loop().turn(std::chrono::seconds{1});
  }
  EXPECT_TRUE(peer_->closed);
}

TEST_P(IoThreadTest, the_thread_ends_when_last_words_are_taken_or_a_little_later) {
  turns(3);
  const auto run = [this] {
    owner_.turn(milliseconds{0});
    const auto began = io_.loop().now();
    io_.run([] { return true; });
    return io_.loop().now() - began;
  };
  peer_->window = 4;
  stream_->send(Buffer{"last words"}, false);
  stream_.reset();
  EXPECT_GE(run(), IoThread::kLastWords);
  EXPECT_TRUE(peer_->closed);

  auto [descriptor, peer] = sockets_->pair();
  stream_ = io_.open(PendingConnection{descriptor});
  stream_->start(user_);
  turns(3);
  stream_->send(Buffer{"last words"}, false);
  stream_.reset();
  EXPECT_LT(run(), IoThread::kLastWords);
  EXPECT_TRUE(peer->closed);
  EXPECT_EQ(peer->take(), "last words");
}

TEST_P(IoThreadTest, destroying_it_while_a_send_is_waited_for_closes_at_once) {
  peer_->window = 10;
  stream_->send(Buffer{std::string(1000, 'x')}, true);
  turn();
  stream_.reset();
  turns(3);
  EXPECT_TRUE(peer_->closed);
  EXPECT_EQ(user_.log, "");
}

TEST_P(IoThreadTest, a_flood_waits_in_the_kernel_for_an_owner_that_is_busy) {
  constexpr std::size_t kPart = 64 * 1024;
  const std::string part(kPart, 'x');
  std::size_t sent = 0;
  turns(3);
  for (int i = 0; i < 300; ++i) {
    if (peer_->to_us.empty()) {
      peer_->send(part);
      sent += kPart;
    }
    io_.loop().turn(milliseconds{1});
  }
  // What is on its way when the receive is ended comes on top.
  EXPECT_GT(sent, IoThread::kBytesAhead);
  EXPECT_LT(sent, IoThread::kBytesAhead + 4 * kPart);
  for (int i = 0; i < 3000 && user_.text.size() < sent; ++i) turn();
  EXPECT_EQ(user_.text.size(), sent);
}

TEST_P(IoThreadTest, streams_that_come_and_go_leave_nothing_behind) {
  std::mt19937 random{GetParam()};
  sockets_->break_one_in(50);
  for (int round = 0; round < 200; ++round) {
    auto [descriptor, peer] = sockets_->pair();
    Reader user;
    auto stream = io_.open(PendingConnection{descriptor});
    stream->start(user);
    peer->send("hello");
    if (random() % 2 == 0) stream->send(Buffer{std::string(random() % 100'000, 'x')}, random() % 2 == 0);
    if (random() % 4 == 0) stream->pause();
    if (random() % 4 == 0) stream->shut_down();
    for (auto left = random() % 4; left != 0; --left) random() % 2 == 0 ? owner_.turn(milliseconds{0}) : turn();
    stream.reset();
    turns(6);
    for (int i = 0; i < 100 && !peer->closed; ++i) {
      owner_.turn(milliseconds{0});
      io_.loop().turn(std::chrono::seconds{1});
    }
    ASSERT_TRUE(peer->closed) << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, IoThreadTest, testing::Range(1U, 9U));

}  // namespace
}  // namespace wirecall::transport
