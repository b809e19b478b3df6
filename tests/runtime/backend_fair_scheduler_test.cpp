// Whom a backend on a kernel serves first when several connections have something: those who send little beside those
// who send much; and that what waits for that reason is lost by nothing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/backend.hpp"
#include "runtime/fair_scheduler.hpp"
#include "tests/runtime/backend_world.hpp"

namespace wirecall::runtime {
namespace {

constexpr std::uint32_t kHeavy = 10;  // connections that send much, 0 to 9
constexpr std::uint32_t kLight = kHeavy;
constexpr std::size_t kMuch = 4000;
constexpr std::size_t kLittle = 60;

struct Told {
  std::uint32_t slot;
  std::string bytes;
};

std::unique_ptr<Backend> epoll_or_uring(std::string_view name) {
  return name == "epoll" ? make_epoll_backend() : make_uring_backend();
}

class FairSchedulers : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    if (GetParam() == "uring" && !kRingsAreFollowed) GTEST_SKIP();
    try {
      world_ = std::make_unique<SocketWorld>(epoll_or_uring(GetParam()), AF_UNIX);
    } catch (const std::system_error& refusal) {
      GTEST_SKIP() << refusal.what();
    }
    for (std::uint32_t slot = 0; slot <= kLight; ++slot) {
      peers_.emplace_back();
      operations_.push_back({.kind = OperationKind::open,
                             .handle = handle(slot),
                             .descriptor = world_->connect(peers_.back()),
                             .buffer = {}});
      operations_.push_back({.kind = OperationKind::receive, .handle = handle(slot), .buffer = {}});
    }
  }
  static Handle handle(std::uint32_t slot) { return {.slot = slot, .generation = 1}; }
  void send_much() {
    for (std::uint32_t slot = 0; slot < kHeavy; ++slot) {
      peers_[slot]->send(std::string(kMuch, static_cast<char>('a' + slot)));
    }
  }
  void send_little() { peers_[kLight]->send(std::string(kLittle, 'x')); }

  // What one turn tells, in its order.
  std::vector<Told> turn() {
    std::vector<Told> told;
    for (const Completion& completion : world_->backend().turn(operations_, kForever)) {
      if (completion.bytes.empty()) continue;
      told.push_back({completion.handle.slot, std::string{completion.bytes.data(), completion.bytes.size()}});
    }
    operations_.clear();
    return told;
  }
  // What is told until so many messages have come, from the turns of `turn`.
  std::vector<Told> take(std::size_t messages, const std::function<std::vector<Told>()>& turn) {
    std::vector<Told> all;
    while (all.size() < messages) {
      for (Told& told : turn()) all.push_back(std::move(told));
    }
    return all;
  }
  std::vector<Told> take(std::size_t messages) {
    return take(messages, [this] { return turn(); });
  }
  // So that it is known who sends how much.
  void get_to_know() {
    for (int round = 0; round < 20; ++round) {
      send_much();
      send_little();
      static_cast<void>(take(kHeavy + 1));
    }
  }
  static std::size_t index_of_light(const std::vector<Told>& told) {
    std::size_t index = 0;
    while (index != told.size() && told[index].slot != kLight) ++index;
    return index;
  }
  static void expect_all_of_heavy(const std::vector<Told>& told) {
    std::vector<std::size_t> times(kHeavy);
    for (const Told& each : told) {
      ASSERT_LT(each.slot, kHeavy);
      EXPECT_EQ(each.bytes, std::string(kMuch, static_cast<char>('a' + each.slot)));
      ++times[each.slot];
    }
    EXPECT_EQ(times, std::vector<std::size_t>(kHeavy, 1));
  }

  std::unique_ptr<SocketWorld> world_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<Operation> operations_;
};

TEST_P(FairSchedulers, who_sends_little_is_served_before_those_who_send_much) {
  get_to_know();
  for (int round = 0; round < 10; ++round) {
    send_much();
    send_little();
    EXPECT_LE(index_of_light(take(kHeavy + 1)), std::size_t{kHeavyInTurn});
  }
}

TEST_P(FairSchedulers, who_comes_with_little_meanwhile_waits_for_few) {
  get_to_know();
  for (int round = 0; round < 10; ++round) {
    send_much();
    std::vector<Told> told = turn();
    EXPECT_EQ(told.size(), std::size_t{kHeavyInTurn});
    send_little();
    EXPECT_LE(index_of_light(take(kHeavy + 1 - told.size())), kHeavy / 3);
  }
}

TEST_P(FairSchedulers, equals_are_served_in_one_turn) {
  for (int round = 0; round < 10; ++round) {
    send_much();
    const std::vector<Told> told = turn();
    expect_all_of_heavy(told);
  }
}

TEST_P(FairSchedulers, what_waits_is_readable_still) {
  get_to_know();
  send_much();
  std::vector<Told> told = turn();
  ASSERT_LT(told.size(), kHeavy);
  std::size_t readable = 0;
  for (std::uint32_t slot = 0; slot < kHeavy; ++slot) readable += world_->backend().readable(handle(slot));
  EXPECT_EQ(readable, (kHeavy - told.size()) * kMuch);
}

TEST_P(FairSchedulers, what_waits_is_told_when_another_thread_takes_the_turns) {
  for (const bool keeps : {false, true}) {
    get_to_know();
    send_much();
    std::vector<Told> told = turn();
    ASSERT_LT(told.size(), kHeavy);
    const std::shared_ptr<void> kept = keeps ? world_->backend().keep_lent() : nullptr;
    std::thread{[&] {
      for (Told& each : take(kHeavy - told.size())) told.push_back(std::move(each));
      expect_all_of_heavy(told);
      send_much();
      expect_all_of_heavy(take(kHeavy));
    }}.join();
  }
}

TEST_P(FairSchedulers, what_waits_is_told_to_who_pauses_and_goes_on) {
  get_to_know();
  send_much();
  std::vector<Told> told = turn();
  ASSERT_LT(told.size(), kHeavy);
  for (std::uint32_t slot = 0; slot < kHeavy; ++slot) {
    operations_.push_back({.kind = OperationKind::cancel, .handle = handle(slot), .buffer = {}});
  }
  // Before it is told that nothing more comes, or after the next receive is asked for.
  std::size_t ended = 0;
  while (ended < kHeavy) {
    for (const Completion& completion : world_->backend().turn(operations_, kForever)) {
      if (!completion.bytes.empty()) {
        told.push_back({completion.handle.slot, std::string{completion.bytes.data(), completion.bytes.size()}});
      }
      ended += completion.last ? 1 : 0;
    }
    operations_.clear();
  }
  for (std::uint32_t slot = 0; slot < kHeavy; ++slot) {
    operations_.push_back({.kind = OperationKind::receive, .handle = handle(slot), .buffer = {}});
  }
  for (Told& each : take(kHeavy - told.size())) told.push_back(std::move(each));
  expect_all_of_heavy(told);
}

TEST_P(FairSchedulers, what_waits_stays_readable_for_each_thread_that_keeps_it) {
  get_to_know();
  send_much();
  std::vector<Told> told = turn();
  ASSERT_LT(told.size(), kHeavy);
  std::shared_ptr<void> first = world_->backend().keep_lent();
  std::shared_ptr<void> second;
  std::vector<Completion> kept;
  std::thread{[&] {
    // One turn tells what waited for the thread before, where it was; and this one does not come back from it either.
    for (Completion& completion : world_->backend().turn(operations_, kForever)) {
      if (!completion.bytes.empty())
        kept.push_back({.kind = completion.kind, .handle = completion.handle, .bytes = completion.bytes, .buffer = {}});
    }
    operations_.clear();
    second = world_->backend().keep_lent();
  }}.join();
  first.reset();
  std::thread{[&] {
    send_little();
    static_cast<void>(take(told.size() + kept.size() == kHeavy ? 1 : kHeavy + 1 - told.size() - kept.size()));
  }}.join();
  for (const Completion& completion : kept) {
    const auto letter = static_cast<char>('a' + completion.handle.slot);
    EXPECT_EQ((std::string_view{completion.bytes.data(), completion.bytes.size()}), std::string(kMuch, letter));
  }
}

TEST_P(FairSchedulers, of_what_one_sends_a_part_comes_in_each_turn) {
  get_to_know();
  std::string sent;
  for (int i = 0; sent.size() < 40'000; ++i) sent += std::to_string(i) + ' ';
  peers_[0]->send(sent);
  std::string received;
  int parts = 0;
  while (received.size() < sent.size()) {
    send_little();
    int light = 0;
    std::size_t bytes = 0;
    for (const Told& told : turn()) {
      light += told.slot == kLight ? 1 : 0;
      if (told.slot == kLight) continue;
      EXPECT_EQ(told.slot, 0U);
      bytes += told.bytes.size();
      received += told.bytes;
      ++parts;
    }
    EXPECT_LE(bytes, received.size() == bytes ? kPartMin : kPartMax);
    EXPECT_EQ(light, 1);
  }
  EXPECT_EQ(received, sent);
  EXPECT_GE(parts, 3) << "4, 8 and 16 KiB at the most, and the rest";
}

TEST(FairScheduler, a_part_is_what_is_looked_at_in_time) {
  FairScheduler scheduler;
  const auto part = [&] { return scheduler.part_of(1); };
  scheduler.brought(1, 50'000, 50'000);
  EXPECT_GT(part(), kPartMax) << "there is no light one";
  scheduler.brought(2, 100, 100);
  EXPECT_EQ(part(), kPartMin);
  EXPECT_GT(scheduler.part_of(2), kPartMax) << "it is the light one itself";
  scheduler.took(kPartTime / 5);
  EXPECT_EQ(part(), 2 * kPartMin);
  scheduler.took(kPartTime / 2);
  EXPECT_EQ(part(), 2 * kPartMin) << "that is about right";
  for (int i = 0; i < 10; ++i) scheduler.took(kPartTime / 5);
  EXPECT_EQ(part(), kPartMax);
  for (int i = 0; i < 10; ++i) scheduler.took(2 * kPartTime);
  EXPECT_EQ(part(), kPartMin);
}

TEST_P(FairSchedulers, those_who_send_much_are_served_alike) {
  constexpr std::size_t kVeryMuch = 40'000;  // more than a small buffer takes
  const std::string text(kVeryMuch, 'y');
  std::vector<std::size_t> due(kHeavy, 0);     // bytes on their way
  std::vector<std::size_t> served(kHeavy, 0);  // messages
  const auto refill = [&] {
    for (std::uint32_t slot = 0; slot < kHeavy; ++slot) {
      if (due[slot] != 0) continue;
      peers_[slot]->send(text);
      due[slot] = text.size();
    }
  };
  for (int round = 0; round < 4000; ++round) {
    refill();
    send_little();
    for (const Told& told : turn()) {
      if (told.slot == kLight) continue;
      due[told.slot] -= told.bytes.size();
      if (due[told.slot] == 0) ++served[told.slot];
    }
  }
  const auto [least, most] = std::ranges::minmax(served);
  EXPECT_GE(least, 10u);
  EXPECT_LE(most, 2 * least);
}

TEST_P(FairSchedulers, a_send_that_is_not_taken_whole_goes_on_whatever_else_completes) {
  constexpr std::uint32_t kMany = 4500;  // more than a ring holds completions
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlim_t wanted = 3 * kMany;
  if (limit.rlim_max < wanted) GTEST_SKIP() << "not enough descriptors";
  const rlimit before =
      std::exchange(limit, {.rlim_cur = std::max(limit.rlim_cur, wanted), .rlim_max = limit.rlim_max});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  get_to_know();
  std::vector<std::unique_ptr<Peer>> many(kMany);
  for (std::uint32_t i = 0; i < kMany; ++i) {
    const Handle handle{.slot = kLight + 1 + i, .generation = 1};
    operations_.push_back(
        {.kind = OperationKind::open, .handle = handle, .descriptor = world_->connect(many[i]), .buffer = {}});
    operations_.push_back({.kind = OperationKind::receive, .handle = handle, .buffer = {}});
  }
  send_little();
  static_cast<void>(take(1));
  send_much();
  send_little();
  std::vector<Told> told = turn();
  many.clear();  // all of them hang up, while there is always something of the heavy ones that waits
  for (int round = 0; round < 400; ++round) {
    for (const Told& each : told) {
      if (each.slot != kLight) peers_[each.slot]->send(std::string(kMuch, 'h'));
    }
    send_little();
    told = turn();
  }
  Buffer text;
  text.append(std::string(4'000'000, 'z'));
  operations_.push_back({.kind = OperationKind::send, .handle = handle(0), .buffer = std::move(text)});
  std::size_t received = 0;
  bool sent = false;
  for (int round = 0; round < 100'000 && !sent; ++round) {
    send_little();
    for (const Completion& completion : world_->backend().turn(operations_, kForever)) {
      sent = sent || completion.kind == OperationKind::send;
    }
    operations_.clear();
    if (round > 20) received += peers_[0]->take().size();
  }
  EXPECT_TRUE(sent);
  EXPECT_EQ(received + peers_[0]->take().size(), 4'000'000u);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

INSTANTIATE_TEST_SUITE_P(Backends, FairSchedulers, testing::Values("epoll", "uring"),
                         [](const auto& given) { return std::string{given.param}; });

}  // namespace
}  // namespace wirecall::runtime
