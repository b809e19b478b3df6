#include "transport/pending_connection.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "tests/transport/memory_stream.hpp"

namespace wirecall::transport {
namespace {

using runtime::Descriptor;

class Heard final : public StreamUser {
 public:
  void received(std::span<char> bytes) override { text.append(bytes.data(), bytes.size()); }
  void ended() override { over = true; }
  void sent(Buffer) override {}
  void failed(int) override { over = true; }

  std::string text;
  bool over = false;
};

struct SocketPair {
  SocketPair() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    pending = PendingConnection{ends[0]};
    peer = Descriptor{ends[1]};
  }
  [[nodiscard]] bool peer_sees_the_end() const {
    char byte;
    return ::recv(peer.get(), &byte, 1, 0) == 0;
  }
  PendingConnection pending;
  Descriptor peer;
};

TEST(PendingConnection, one_that_is_dropped_is_closed) {
  const SocketPair pair = [] {
    SocketPair made;
    EXPECT_FALSE(made.peer_sees_the_end());
    static_cast<void>(PendingConnection{std::move(made.pending)});
    return made;
  }();
  EXPECT_TRUE(pair.peer_sees_the_end());

  Loop loop;
  Heard user;
  auto [one, other] = memory_pair();
  const auto stream = one.attach(loop);
  stream->start(user);
  other = PendingConnection{};
  while (!user.over) loop.turn();
}

TEST(PendingConnection, is_one_until_it_is_attached_or_moved) {
  Loop loop;
  SocketPair pair;
  EXPECT_TRUE(pair.pending);
  EXPECT_GE(pair.pending.descriptor(), 0);
  const auto stream = pair.pending.attach(loop);
  EXPECT_FALSE(pair.pending);
  EXPECT_EQ(pair.pending.descriptor(), -1);

  auto [one, other] = memory_pair();
  EXPECT_TRUE(one);
  EXPECT_EQ(one.descriptor(), -1);
  EXPECT_EQ(one.release_socket(), -1) << "it has none";
  PendingConnection moved = std::move(one);
  EXPECT_TRUE(moved);
  const auto end = moved.attach(loop);
  EXPECT_FALSE(moved);
}

TEST(PendingConnection, takes_no_more_than_two_words) { EXPECT_LE(sizeof(PendingConnection), 2 * sizeof(void*)); }

}  // namespace
}  // namespace wirecall::transport
