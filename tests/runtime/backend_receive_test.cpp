// What every backend lends: to many connections at once, and for how long; and large messages, whose receives may
// change their size.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/runtime/backend_fixture.hpp"

namespace wirecall::runtime {
namespace {

class LendingTest : public BackendTest {};

TEST_P(LendingTest, many_connections_are_served_though_all_speak_at_once) {
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
TEST_P(LendingTest, what_has_completed_in_a_turn_stays_where_it_is_when_many_more_handles_are_expected) {
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

TEST_P(LendingTest, bytes_lent_in_a_turn_stay_as_they_are_and_may_be_written_to_until_the_next) {
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

TEST_P(LendingTest, lent_bytes_that_are_kept_outlast_their_turn_while_another_thread_goes_on) {
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

// ---- large messages ----

std::string numbers(std::size_t bytes) {
  std::string text;
  for (int i = 0; text.size() < bytes; ++i) text += std::to_string(i) + ' ';
  text.resize(bytes);
  return text;
}

TEST_P(LendingTest, large_and_small_messages_arrive_in_order_with_a_zero_behind_each_run) {
  open(handle_);
  submit(OperationKind::receive, handle_);
  std::string all;
  for (int round = 0; round < 6; ++round) {
    for (const std::size_t bytes : {100'000UL, 16'384UL, 16'385UL, 1UL, 40'000UL}) {
      const std::string part = numbers(bytes);
      peer_->send(part);
      all += part;
      run_until([&] { return received_.size() == all.size(); });
    }
    for (int i = 0; i < 20 * (round % 2); ++i) {
      peer_->send("small");
      all += "small";
      run_until([&] { return received_.size() == all.size(); });
    }
  }
  EXPECT_EQ(received_, all);
  EXPECT_TRUE(seen_.empty());
}

TEST_P(LendingTest, a_cancel_that_meets_large_messages_loses_and_doubles_none) {
  open(handle_);
  std::string all;
  for (int i = 0; i < 60; ++i) {
    submit(OperationKind::receive, handle_);
    for (int turns = 0; turns < i % 4; ++turns) turn(kAtOnce);
    const std::string part = numbers(i % 20 < 10 ? 50'000 : 10);
    peer_->send(part);
    all += part;
    for (int turns = 0; turns < i % 3; ++turns) turn(kAtOnce);
    submit(OperationKind::cancel, handle_);
    run_until([&] { return !seen_.empty(); });
    ASSERT_EQ(seen_.size(), 1U);
    EXPECT_EQ(seen_[0].kind, OperationKind::receive);
    EXPECT_EQ(seen_[0].error, ECANCELED);
    seen_.clear();
    const std::size_t before = received_.size();
    for (int turns = 0; turns < 3; ++turns) turn(kAtOnce);
    ASSERT_EQ(received_.size(), before);
    if (i % 2 != 0) continue;
    submit(OperationKind::receive, handle_);
    run_until([&] { return received_.size() == all.size(); });
    submit(OperationKind::cancel, handle_);
    run_until([&] { return !seen_.empty(); });
    ASSERT_EQ(seen_.size(), 1U);
    seen_.clear();
  }
  submit(OperationKind::receive, handle_);
  run_until([&] { return received_.size() >= all.size(); });
  EXPECT_EQ(received_, all);
}

TEST_P(LendingTest, handles_come_and_go_in_the_midst_of_large_messages) {
  const std::string large = numbers(100'000);
  for (std::uint32_t generation = 0; generation < 60; ++generation) {
    const Handle handle{.slot = 0, .generation = generation};
    open(handle);
    submit(OperationKind::receive, handle);
    for (std::size_t messages = 1; messages <= 1 + generation % 3; ++messages) {
      peer_->send(large);
      run_until([&] { return received_.size() == messages * large.size(); });
    }
    received_.clear();
    peer_->send(large);
    for (std::uint32_t turns = 0; turns < generation % 4; ++turns) turn(kAtOnce);
    submit(OperationKind::close, handle);
    run_until([&] { return seen_.size() >= 2; });
    ASSERT_EQ(seen_.size(), 2U);
    EXPECT_EQ(seen_[0].kind, OperationKind::receive);
    EXPECT_EQ(seen_[1].kind, OperationKind::close);
    for (const Seen& seen : seen_) EXPECT_EQ(seen.handle, handle);
    EXPECT_TRUE(large.starts_with(received_));
    seen_.clear();
    received_.clear();
  }
}

TEST_P(LendingTest, the_end_behind_a_large_message_is_told_behind_it) {
  const std::string large = numbers(100'000);
  open(handle_);
  submit(OperationKind::receive, handle_);
  peer_->send(large);
  run_until([&] { return received_.size() == large.size(); });
  peer_->send(large);
  peer_->finish();
  run_until([&] { return !seen_.empty(); });
  EXPECT_EQ(received_, large + large);
  EXPECT_EQ(seen_[0].kind, OperationKind::receive);
  EXPECT_EQ(seen_[0].error, 0);
}

TEST_P(LendingTest, large_messages_that_are_kept_outlast_their_turn_while_another_thread_goes_on) {
  const std::string large = numbers(100'000);
  open(handle_);
  submit(OperationKind::receive, handle_);
  peer_->send(large);
  run_until([&] { return received_.size() == large.size(); });
  peer_->send(large);
  std::vector<std::pair<std::string_view, std::shared_ptr<void>>> kept;
  for (std::size_t bytes = 0; bytes < large.size();) {
    std::shared_ptr<void> memory;
    for (const Completion& completion : world_->backend().turn(submitted_, in_a_moment())) {
      if (memory == nullptr) memory = world_->backend().keep_lent();
      kept.emplace_back(std::string_view{completion.bytes.data(), completion.bytes.size()}, memory);
      bytes += completion.bytes.size();
    }
    submitted_.clear();
  }
  received_.clear();
  std::thread{[&] {
    for (int i = 0; i < 10; ++i) {
      peer_->send(large);
      run_until([&] { return received_.size() == (i + 1) * large.size(); });
    }
  }}.join();
  std::string before;
  for (const auto& [bytes, memory] : kept) before += bytes;
  EXPECT_EQ(before, large);
}

TEST_P(LendingTest, handles_that_wait_for_room_are_closed_and_used_again_by_another_thread) {
  constexpr std::uint32_t kConnections = 12;
  const std::string large = numbers(100'000);
  std::vector<std::unique_ptr<Peer>> peers(kConnections);
  const auto serve = [&](std::uint32_t generation) {
    for (std::uint32_t slot = 0; slot < kConnections; ++slot) {
      open({.slot = slot, .generation = generation});
      submit(OperationKind::receive, {.slot = slot, .generation = generation});
      peers[slot] = std::move(peer_);
    }
    for (int round = 0; round < 2; ++round) {
      received_.clear();
      for (const auto& peer : peers) peer->send(large);
      run_until([&] { return received_.size() == kConnections * large.size(); });
    }
    for (const auto& peer : peers) peer->send(large);
    turn(kAtOnce);
    for (std::uint32_t slot = 0; slot < kConnections; ++slot) {
      submit(OperationKind::close, {.slot = slot, .generation = generation});
    }
    run_until([&] { return seen_.size() == 2 * kConnections; });
    seen_.clear();
  };
  for (std::uint32_t generation = 0; generation < 4; ++generation) std::thread{[&] { serve(generation); }}.join();
}

TEST_P(LendingTest, who_sends_little_is_heard_beside_many_who_send_much) {
  constexpr std::uint32_t kConnections = 20;
  const std::string large = numbers(100'000);
  std::vector<std::unique_ptr<Peer>> peers;
  std::vector<std::string> received(kConnections + 1);
  for (std::uint32_t slot = 0; slot <= kConnections; ++slot) {
    open({.slot = slot, .generation = 0});
    submit(OperationKind::receive, {.slot = slot, .generation = 0});
    peers.push_back(std::move(peer_));
  }
  const auto turns_until = [&](const std::function<bool()>& done) {
    int turns = 0;
    while (!done() && ++turns < 10'000) {
      for (const Completion& completion : world_->backend().turn(submitted_, in_a_moment())) {
        ASSERT_FALSE(completion.last);
        received[completion.handle.slot].append(completion.bytes.data(), completion.bytes.size());
      }
      submitted_.clear();
    }
    ASSERT_TRUE(done());
  };
  for (std::size_t round = 1; round <= 3; ++round) {
    for (std::uint32_t slot = 0; slot < kConnections; ++slot) peers[slot]->send(large);
    peers.back()->send("?");
    turns_until([&] { return received.back().size() == round; });
    turns_until([&] {
      return std::ranges::all_of(received.begin(), received.end() - 1,
                                 [&](const std::string& text) { return text.size() == round * large.size(); });
    });
  }
  for (std::uint32_t slot = 0; slot < kConnections; ++slot) EXPECT_EQ(received[slot], large + large + large);
}

INSTANTIATE_TEST_SUITE_P(Backends, LendingTest, testing::ValuesIn(all_worlds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wirecall::runtime
