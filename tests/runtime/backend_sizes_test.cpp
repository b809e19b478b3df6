// How much the backends on a kernel receive at a time, of those who send much and of those who send little.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/backend.hpp"
#include "tests/runtime/backend_world.hpp"

namespace wirecall::runtime {
namespace {

using Sizes = std::vector<std::size_t>;

// Connections that receive, and the sizes of what came.
struct Receiving {
  explicit Receiving(std::unique_ptr<Backend> backend, std::uint32_t connections = 1)
      : world(std::move(backend), AF_UNIX), peers(connections) {
    for (std::uint32_t slot = 0; slot < connections; ++slot) {
      const Handle handle{.slot = slot, .generation = 1};
      operations.push_back(
          {.kind = OperationKind::open, .handle = handle, .descriptor = world.connect(peers[slot]), .buffer = {}});
      operations.push_back({.kind = OperationKind::receive, .handle = handle, .buffer = {}});
    }
  }

  Sizes turn(std::chrono::nanoseconds until = kForever) {
    Sizes all;
    for (const Completion& completion : world.backend().turn(operations, until)) all.push_back(completion.bytes.size());
    operations.clear();
    return all;
  }
  Sizes sizes(std::size_t bytes) {
    Sizes all;
    for (std::size_t sum = 0; sum < bytes;) {
      for (const std::size_t size : turn()) {
        all.push_back(size);
        sum += size;
      }
    }
    // What follows from them, nobody waits for.
    for (int turns = 0; turns < 3; ++turns) EXPECT_EQ(turn(kAtOnce), Sizes{});
    return all;
  }
  /// Of a message to one connection.
  Sizes sizes_of(std::size_t bytes, std::size_t connection = 0) {
    peers[connection]->send(std::string(bytes, 'x'));
    return sizes(bytes);
  }

  SocketWorld world;
  std::vector<std::unique_ptr<Peer>> peers;
  std::vector<Operation> operations;
};

// Of ten that send large messages at once, all have them whole, some in a later turn.
void expect_whole_in_turns(std::unique_ptr<Backend> backend) {
  constexpr std::uint32_t kConnections = 10;
  Receiving receiving{std::move(backend), kConnections};
  for (std::uint32_t i = 0; i < kConnections; ++i) receiving.sizes_of(100'000, i);
  for (int round = 0; round < 3; ++round) {
    for (const auto& peer : receiving.peers) peer->send(std::string(100'000, 'x'));
    std::size_t turns = 0;
    for (std::size_t messages = 0; messages < kConnections;) {
      const Sizes sizes = receiving.turn();
      EXPECT_EQ(sizes, Sizes(sizes.size(), 100'000));
      EXPECT_LE(sizes.size(), 4U);
      ++turns;
      messages += sizes.size();
    }
    EXPECT_GE(turns, 3U);
  }
}

TEST(EpollBackend, receives_as_little_as_it_is_told_and_more_while_there_is_more) {
  Receiving receiving{make_epoll_backend(100)};
  EXPECT_EQ(receiving.sizes_of(1000), (Sizes{100, 200, 400, 300}));
  EXPECT_EQ(receiving.sizes_of(300), (Sizes{100, 200}));
}

TEST(EpollBackend, what_came_in_two_parts_comes_whole_the_next_time_until_less_comes_for_a_while) {
  Receiving receiving{make_epoll_backend()};
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(receiving.sizes_of(100'000), (Sizes{65'536, 34'464}));
    EXPECT_EQ(receiving.sizes_of(100'000), (Sizes{100'000}));
    for (int small = 0; small < 15; ++small) EXPECT_EQ(receiving.sizes_of(1000), (Sizes{1000}));
    EXPECT_EQ(receiving.sizes_of(100'000), (Sizes{100'000}));
    for (int small = 0; small < 16; ++small) EXPECT_EQ(receiving.sizes_of(1000), (Sizes{1000}));
  }
}

TEST(EpollBackend, who_finds_too_little_room_for_a_large_message_has_it_in_a_later_turn) {
  expect_whole_in_turns(make_epoll_backend());
}

class UringSizes : public testing::Test {
 protected:
  void SetUp() override {
    if (!kRingsAreFollowed) GTEST_SKIP();
    try {
      backend_ = make_uring_backend();
    } catch (const std::system_error& refusal) {
      GTEST_SKIP() << refusal.what();
    }
  }

  std::unique_ptr<Backend> backend_;
  const Sizes in_parts_{16'384, 16'384, 16'384, 16'384, 16'384, 16'384, 1696};
};

TEST_F(UringSizes, what_came_in_parts_comes_whole_the_next_time_until_less_comes_for_a_while) {
  Receiving receiving{std::move(backend_)};
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(receiving.sizes_of(100'000), in_parts_);
    EXPECT_EQ(receiving.sizes_of(100'000), (Sizes{100'000}));
    for (int small = 0; small < 15; ++small) EXPECT_EQ(receiving.sizes_of(1), (Sizes{1}));
    EXPECT_EQ(receiving.sizes_of(100'000), (Sizes{100'000}));
    for (int small = 0; small < 16; ++small) EXPECT_EQ(receiving.sizes_of(1), (Sizes{1}));
  }
}

TEST_F(UringSizes, who_finds_no_large_buffer_has_one_in_a_later_turn) { expect_whole_in_turns(std::move(backend_)); }

TEST_F(UringSizes, large_receives_stay_large_when_another_thread_takes_the_turns) {
  Receiving receiving{std::move(backend_)};
  receiving.sizes_of(100'000);
  for (int round = 0; round < 3; ++round) {
    std::thread{[&] { EXPECT_EQ(receiving.sizes_of(100'000), (Sizes{100'000})); }}.join();
  }
}

}  // namespace
}  // namespace wirecall::runtime
