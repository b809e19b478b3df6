// The loop's own rules, in simulated time: timers, who is told what and when, slots that are used again, buffers.
#include "wirecall/loop.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/fair_scheduler.hpp"
#include "runtime/turn.hpp"
#include "tests/runtime/simulated_backend.hpp"
#include "tests/runtime/wrapped_backend.hpp"

namespace wirecall {
namespace {

using runtime::Completion;
using runtime::Handle;
using runtime::kHeavyInTurn;
using runtime::OperationKind;
using runtime::SimulatedBackend;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

class Alarm final : public Timer {
 public:
  explicit Alarm(std::function<void()> action) : action_(std::move(action)) {}
  void expired() override { action_(); }

 private:
  std::function<void()> action_;
};

class LoopTest : public testing::Test {
 protected:
  SimulatedBackend* backend_ = new SimulatedBackend{1};
  Loop loop_{std::unique_ptr<runtime::Backend>{backend_}};
  std::string log_;
};

TEST_F(LoopTest, timers_expire_in_the_order_in_which_they_are_due) {
  Alarm a{[&] { log_ += 'a'; }};
  Alarm b{[&] { log_ += 'b'; }};
  Alarm c{[&] { log_ += 'c'; }};
  loop_.start(a, milliseconds{30});
  loop_.start(b, milliseconds{10});
  loop_.start(c, milliseconds{20});
  while (log_.size() < 3) loop_.turn();
  EXPECT_EQ(log_, "bca");
}

TEST_F(LoopTest, a_timer_may_be_as_far_off_as_can_be_said) {
  Alarm near{[&] { log_ += 'n'; }};
  loop_.start(near, milliseconds{5});
  while (log_.empty()) loop_.turn();
  Alarm far{[&] { log_ += 'f'; }};
  loop_.start(far, nanoseconds::max());
  loop_.start(near, milliseconds{5});
  while (log_.size() < 2) loop_.turn();
  EXPECT_EQ(log_, "nn");
  loop_.stop(far);
}

TEST_F(LoopTest, timers_due_at_one_time_expire_in_the_order_of_their_start) {
  std::vector<std::unique_ptr<Alarm>> alarms;
  for (char c = 'a'; c <= 'z'; ++c) {
    alarms.push_back(std::make_unique<Alarm>([this, c] { log_ += c; }));
    loop_.start(*alarms.back(), milliseconds{5});
  }
  while (log_.empty()) loop_.turn();
  EXPECT_EQ(log_, "abcdefghijklmnopqrstuvwxyz");
}

TEST_F(LoopTest, a_timer_does_not_expire_before_its_time) {
  const nanoseconds start = loop_.now();
  nanoseconds expired{0};
  Alarm alarm{[&] { expired = loop_.now(); }};
  loop_.start(alarm, milliseconds{7});
  while (expired == nanoseconds{0}) loop_.turn(milliseconds{2});
  EXPECT_GE(expired - start, milliseconds{7});
}

TEST_F(LoopTest, a_stopped_timer_does_not_expire_and_stopping_twice_is_harmless) {
  Alarm alarm{[&] { log_ += 'x'; }};
  Alarm end{[&] { log_ += '.'; }};
  loop_.start(alarm, milliseconds{1});
  loop_.start(end, milliseconds{2});
  loop_.stop(alarm);
  loop_.stop(alarm);
  while (log_.empty()) loop_.turn();
  EXPECT_EQ(log_, ".");
}

TEST_F(LoopTest, a_timer_started_again_expires_at_its_new_time_only) {
  Alarm alarm{[&] { log_ += 'x'; }};
  Alarm end{[&] { log_ += '.'; }};
  loop_.start(alarm, milliseconds{1});
  loop_.start(alarm, milliseconds{3});
  loop_.start(end, milliseconds{2});
  while (log_.size() < 2) loop_.turn();
  EXPECT_EQ(log_, ".x");
}

TEST_F(LoopTest, a_timer_that_starts_itself_with_no_delay_lets_the_turn_end) {
  int times = 0;
  Alarm alarm{[&] {}};
  Alarm again{[&] {
    ++times;
    loop_.start(again, nanoseconds{0});
  }};
  loop_.start(again, nanoseconds{0});
  loop_.turn();
  EXPECT_EQ(times, 1);
  loop_.turn();
  EXPECT_EQ(times, 2);
  loop_.stop(again);
}

TEST_F(LoopTest, a_timer_may_stop_another_that_is_due) {
  Alarm other{[&] { log_ += 'x'; }};
  Alarm first{[&] { loop_.stop(other); }};
  loop_.start(first, milliseconds{1});
  loop_.start(other, milliseconds{1});
  for (int i = 0; i < 10; ++i) loop_.turn(milliseconds{1});
  EXPECT_EQ(log_, "");
}

TEST_F(LoopTest, thousands_of_timers_started_and_stopped_at_random_expire_in_order) {
  std::mt19937 random{7};
  struct Noted {
    nanoseconds due;
    bool running = false;
    std::unique_ptr<Alarm> alarm;
  };
  std::vector<Noted> all(2000);
  nanoseconds last{0};
  int expired = 0;
  for (Noted& noted : all) {
    noted.alarm = std::make_unique<Alarm>([&] {
      EXPECT_TRUE(noted.running);
      EXPECT_LE(last, noted.due);
      EXPECT_LE(noted.due, loop_.now());
      last = noted.due;
      noted.running = false;
      ++expired;
    });
  }
  int running = 0;
  for (int i = 0; i < 6000; ++i) {
    Noted& noted = all[random() % all.size()];
    if (random() % 3 == 0) {
      loop_.stop(*noted.alarm);
      noted.running = false;
    } else {
      const milliseconds delay{1 + random() % 500};
      loop_.start(*noted.alarm, delay);
      noted.due = loop_.now() + delay;
      noted.running = true;
    }
  }
  for (const Noted& noted : all) running += noted.running;
  for (int i = 0; i < 2000 && expired < running; ++i) loop_.turn(milliseconds{1});
  EXPECT_EQ(expired, running);
}

class Recorder final : public runtime::IoUser, public runtime::TurnUser {
 public:
  explicit Recorder(std::function<void(Completion&)> action) : action_(std::move(action)) {}
  void completed(Completion& completion) override { action_(completion); }
  void turn_ended() override { log += 'e'; }
  void next_turn() override { log += 'n'; }

  std::string log;

 private:
  std::function<void(Completion&)> action_;
};

TEST_F(LoopTest, the_end_of_a_turn_comes_after_all_that_completed_in_it) {
  auto [descriptor, peer] = backend_->pair();
  Recorder* self = nullptr;
  Recorder user{[&](Completion& completion) {
    if (completion.kind != OperationKind::receive || completion.last) return;
    self->log += 'r';
    if (self->log == "r") loop_.at_turn_end(*self);
  }};
  self = &user;
  const Handle handle = loop_.attach(descriptor, user);
  loop_.submit({.kind = OperationKind::receive, .handle = handle, .buffer = {}});
  peer->send("x");
  for (int i = 0; i < 20; ++i) loop_.turn(milliseconds{1});
  EXPECT_EQ(user.log, "re");
  loop_.detach(handle);
}

// A clock that a test lets jump, as it does where the process is stopped for a while.
class JumpingBackend final : public runtime::WrappedBackend {
 public:
  explicit JumpingBackend(SimulatedBackend& inner) noexcept : WrappedBackend(inner) {}
  [[nodiscard]] nanoseconds now() const noexcept override { return WrappedBackend::now() + jumped; }

  nanoseconds jumped{0};
};

TEST(LoopTime, that_passes_within_a_turn_makes_nobody_late_whose_bytes_have_come) {
  SimulatedBackend simulated{1};
  auto* const backend = new JumpingBackend{simulated};
  Loop loop{std::unique_ptr<runtime::Backend>{backend}};
  auto [descriptor, peer] = simulated.pair();
  std::string log;
  Recorder user{[&](Completion& completion) {
    if (completion.kind == OperationKind::receive && !completion.last) log += 'r';
  }};
  Alarm late{[&] { log += 'l'; }};
  Alarm first{[&] { log += 'f'; }};
  loop.start(first, milliseconds{1});
  while (log.empty()) loop.turn();
  const Handle handle = loop.attach(descriptor, user);
  EXPECT_TRUE(loop.post([&, sent = peer] {
    loop.submit({.kind = OperationKind::receive, .handle = handle, .buffer = {}});
    loop.start(late, std::chrono::seconds{1});
    loop.start(first, std::chrono::hours{1});
    sent->send("x");
    backend->jumped = std::chrono::seconds{2};
  }));
  for (int i = 0; i < 20; ++i) loop.turn(milliseconds{1});
  EXPECT_EQ(log, "frl");
  loop.stop(first);
  loop.detach(handle);
}

TEST_F(LoopTest, who_asks_for_the_next_turn_is_called_in_it_without_a_wait) {
  Recorder user{[](Completion&) {}};
  loop_.at_next_turn(user);
  const nanoseconds before = loop_.now();
  loop_.turn(std::chrono::hours{1});
  EXPECT_EQ(user.log, "n");
  EXPECT_EQ(loop_.now(), before);
  loop_.turn(milliseconds{1});
  EXPECT_EQ(user.log, "n");
}

TEST_F(LoopTest, of_many_who_ask_for_the_next_turn_few_are_called_in_each_and_all_before_anybody_again) {
  constexpr std::size_t kUsers = 10;
  std::vector<std::unique_ptr<Recorder>> users;
  for (std::size_t i = 0; i < kUsers; ++i) users.push_back(std::make_unique<Recorder>([](Completion&) {}));
  const auto called = [&] {
    return static_cast<std::size_t>(std::ranges::count_if(users, [](const auto& user) { return !user->log.empty(); }));
  };
  for (const auto& user : users) loop_.at_next_turn(*user);
  const nanoseconds before = loop_.now();
  const std::uint32_t rounds_before = loop_.rounds();
  for (std::size_t expected = 0; expected != kUsers;) {
    expected = std::min(expected + kHeavyInTurn, kUsers);
    loop_.turn(std::chrono::hours{1});
    EXPECT_EQ(called(), expected);
    EXPECT_EQ(loop_.rounds(), rounds_before + 1);
    if (expected == kHeavyInTurn) loop_.at_next_turn(*users[0]);
  }
  EXPECT_EQ(users[0]->log, "n");
  loop_.turn(std::chrono::hours{1});
  EXPECT_EQ(users[0]->log, "nn");
  EXPECT_EQ(loop_.rounds(), rounds_before + 2);
  EXPECT_EQ(loop_.now(), before) << "none of these turns waited";
}

TEST_F(LoopTest, who_asks_for_the_next_end_is_called_once_a_turn) {
  Recorder user{[](Completion&) {}};
  loop_.at_turn_end(user);
  loop_.at_next_turn_end(user);
  loop_.turn(nanoseconds{0});
  loop_.turn(nanoseconds{0});
  EXPECT_EQ(user.log, "ee");
}

TEST_F(LoopTest, the_forgotten_are_not_called) {
  Recorder user{[](Completion&) {}};
  loop_.at_turn_end(user);
  loop_.at_next_turn(user);
  loop_.at_next_turn_end(user);
  loop_.forget(user);
  loop_.turn(nanoseconds{0});
  loop_.turn(nanoseconds{0});
  EXPECT_EQ(user.log, "");
}

TEST_F(LoopTest, a_detached_user_is_told_nothing_even_of_the_same_turn) {
  int told = 0;
  std::vector<std::pair<std::unique_ptr<Recorder>, Handle>> users;
  std::vector<std::shared_ptr<runtime::SimulatedPeer>> peers;
  for (int i = 0; i < 8; ++i) {
    auto [descriptor, peer] = backend_->pair();
    users.emplace_back(std::make_unique<Recorder>([&](Completion&) {
                         if (++told > 1) return;
                         for (const auto& [user, handle] : users) loop_.detach(handle);
                       }),
                       Handle{});
    users.back().second = loop_.attach(descriptor, *users.back().first);
    loop_.submit({.kind = OperationKind::receive, .handle = users.back().second, .buffer = {}});
    peer->send("x");
    peers.push_back(peer);
  }
  for (int i = 0; i < 20; ++i) loop_.turn(milliseconds{1});
  EXPECT_EQ(told, 1);
  for (const auto& peer : peers) EXPECT_TRUE(peer->closed);
}

TEST_F(LoopTest, slots_are_used_again_under_another_generation) {
  Recorder user{[](Completion&) {}};
  const Handle first = loop_.attach(backend_->pair().first, user);
  loop_.detach(first);
  loop_.turn(nanoseconds{0});
  const Handle second = loop_.attach(backend_->pair().first, user);
  EXPECT_EQ(second.slot, first.slot);
  EXPECT_NE(second.generation, first.generation);
  loop_.detach(first);  // a name of the past: nothing happens
  loop_.detach(second);
  loop_.turn(nanoseconds{0});
}

TEST_F(LoopTest, a_connection_that_arrives_for_a_listener_that_has_gone_is_closed) {
  // Another user's completion detaches the listener in the very turn in which a connection comes for it. Whether that
  // happens before or after is the seed's choice, so many are tried.
  int closed = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    auto* backend = new SimulatedBackend{seed};
    Loop loop{std::unique_ptr<runtime::Backend>{backend}};
    const int listening = backend->listen();
    auto [descriptor, peer] = backend->pair();
    Recorder acceptor{[&](Completion& completion) {
      if (completion.descriptor >= 0) loop.detach(loop.attach(std::exchange(completion.descriptor, -1), acceptor));
    }};
    const Handle listener = loop.attach(listening, acceptor);
    Recorder other{[&](Completion&) { loop.detach(listener); }};
    const Handle connection = loop.attach(descriptor, other);
    loop.submit({.kind = OperationKind::accept, .handle = listener, .buffer = {}});
    loop.submit({.kind = OperationKind::receive, .handle = connection, .buffer = {}});
    const auto arriving = backend->connect(listening);
    peer->send("x");
    for (int i = 0; i < 20; ++i) loop.turn(milliseconds{1});
    closed += arriving->closed;
    loop.detach(connection);
    loop.turn(nanoseconds{0});
  }
  EXPECT_GT(closed, 10);
}

TEST_F(LoopTest, a_buffer_that_was_given_is_taken_again_empty) {
  Buffer buffer{"something"};
  const char* memory = buffer.data();
  loop_.give_buffer(std::move(buffer));
  const Buffer again = loop_.take_buffer();
  EXPECT_EQ(again.data(), memory);
  EXPECT_TRUE(again.empty());
  EXPECT_EQ(loop_.take_buffer().capacity(), 0U);
}

TEST_F(LoopTest, huge_buffers_are_not_kept) {
  Buffer buffer;
  static_cast<void>(buffer.reserve(10'000'000));
  loop_.give_buffer(std::move(buffer));
  EXPECT_EQ(loop_.take_buffer().capacity(), 0U);
}

TEST(EpollLoop, another_thread_ends_the_wait) {
  Loop loop;
  std::thread other{[&] { loop.wake(); }};
  loop.turn();
  other.join();
}

}  // namespace
}  // namespace wirecall
