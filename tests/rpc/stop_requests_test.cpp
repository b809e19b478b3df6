// Handlers that are asked to stop: thousands at once are asked in shares, over several turns.
#include "rpc/stop_requests.hpp"

#include <cstddef>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "tests/base/virtual_scheduler.hpp"
#include "tests/rpc/peer.hpp"
#include "wirecall/task.hpp"

namespace wirecall {
namespace {

using namespace test;
using rpc::StopRequests;

TEST(StopRequests, of_one_turn_are_a_share_and_the_others_follow_in_order) {
  VirtualScheduler scheduler;
  StopRequests requests{&scheduler};
  std::vector<std::stop_source> sources(3 * StopRequests::kATurn + 10);
  for (const std::stop_source& source : sources) requests.ask(source);
  std::size_t asked = 0;
  std::size_t turns = 0;
  do {
    std::size_t more = asked;
    while (more != sources.size() && sources[more].stop_requested()) ++more;
    EXPECT_LE(more - asked, StopRequests::kATurn);
    asked = more;
    for (std::size_t i = asked; i != sources.size(); ++i) EXPECT_FALSE(sources[i].stop_requested());
    ++turns;
  } while (scheduler.expire_one());
  EXPECT_EQ(asked, sources.size());
  EXPECT_GE(turns, 4U);
  EXPECT_EQ(scheduler.running(), 0U);
}

TEST(StopRequests, few_need_no_timer) {
  VirtualScheduler scheduler;
  StopRequests requests{&scheduler};
  std::vector<std::stop_source> sources(StopRequests::kATurn / 4);
  for (const std::stop_source& source : sources) requests.ask(source);
  for (const std::stop_source& source : sources) EXPECT_TRUE(source.stop_requested());
  EXPECT_EQ(scheduler.started(), 0U);
}

TEST(StopRequests, that_wait_are_asked_when_there_are_no_more_turns) {
  VirtualScheduler scheduler;
  StopRequests requests{&scheduler};
  std::vector<std::stop_source> sources(3 * StopRequests::kATurn);
  for (const std::stop_source& source : sources) requests.ask(source);
  EXPECT_FALSE(sources.back().stop_requested());
  requests.finish();
  for (const std::stop_source& source : sources) EXPECT_TRUE(source.stop_requested());
  const std::stop_source late;
  requests.ask(late);
  EXPECT_TRUE(late.stop_requested());
}

TEST(StopRequests, without_later_turns_all_are_asked_at_once) {
  StopRequests requests{nullptr};
  std::vector<std::stop_source> sources(3 * StopRequests::kATurn);
  for (const std::stop_source& source : sources) requests.ask(source);
  for (const std::stop_source& source : sources) EXPECT_TRUE(source.stop_requested());
}

TEST(StopRequests, that_have_time_are_asked_when_it_is_up_in_that_order) {
  using namespace std::chrono_literals;
  VirtualScheduler scheduler;
  StopRequests requests{&scheduler};
  const std::stop_source first;
  const std::stop_source second;
  const std::stop_source third;
  EXPECT_TRUE(requests.ask_at(20ms, second));
  EXPECT_TRUE(requests.ask_at(10ms, first));
  EXPECT_TRUE(requests.ask_at(1h, third));
  EXPECT_EQ(requests.later(), 3U);
  scheduler.advance(10ms);
  EXPECT_TRUE(first.stop_requested());
  EXPECT_FALSE(second.stop_requested());
  scheduler.advance(10ms);
  EXPECT_TRUE(second.stop_requested());
  EXPECT_EQ(requests.later(), 1U);
  requests.finish();
  EXPECT_TRUE(third.stop_requested());
  const std::stop_source late;
  EXPECT_FALSE(requests.ask_at(1h, late)) << "nobody would ask it";
}

TEST(StopRequests, that_have_time_need_turns_and_something_to_stop) {
  StopRequests without{nullptr};
  EXPECT_FALSE(without.ask_at(std::chrono::hours{1}, std::stop_source{}));
  VirtualScheduler scheduler;
  StopRequests requests{&scheduler};
  EXPECT_FALSE(requests.ask_at(std::chrono::hours{1}, std::stop_source{std::nostopstate}));
  EXPECT_EQ(scheduler.running(), 0U);
}

class Stopped : public testing::Test {
 protected:
  Stopped() {
    registry.method("wait", [this](Context context) -> Task<void> {
      try {
        co_await sleep_for(context, std::chrono::hours{1});
      } catch (const Cancelled&) {
        ++stopped;
        throw;
      }
    });
  }
  void expect_shares(VirtualScheduler& scheduler) {
    int before = 0;
    do {
      EXPECT_LE(stopped - before, static_cast<int>(StopRequests::kATurn));
      before = stopped;
    } while (scheduler.expire_one());
    EXPECT_EQ(stopped, kMany);
  }
  static constexpr int kMany = 2000;
  Registry registry;
  int stopped = 0;
};

TEST_F(Stopped, handlers_of_a_peer_that_cancels_all_are_stopped_in_shares) {
  Peer peer{registry, Limits{.in_flight = kMany}};
  for (int i = 1; i <= kMany; ++i) EXPECT_EQ(peer.ask(request("wait", {}, std::to_string(i))), "");
  for (int i = 1; i <= kMany; ++i) peer.send(notification("$/cancelRequest", R"({"id":)" + std::to_string(i) + "}"));
  expect_shares(peer.scheduler);
}

TEST_F(Stopped, handlers_that_were_not_asked_yet_take_no_place_from_other_calls) {
  Peer peer{registry, Limits{.in_flight = kMany}};
  for (int i = 1; i <= kMany; ++i) EXPECT_EQ(peer.ask(request("wait", {}, std::to_string(i))), "");
  for (int i = 1; i <= kMany; ++i) peer.send(notification("$/cancelRequest", R"({"id":)" + std::to_string(i) + "}"));
  static_cast<void>(peer.received());
  EXPECT_LT(stopped, kMany);
  for (int i = 1; i <= kMany; ++i) EXPECT_EQ(peer.ask(request("wait", {}, std::to_string(i))), "");
  EXPECT_NE(peer.ask(request("wait", {}, "0")).find("-32005"), std::string::npos);
}

TEST_F(Stopped, handlers_that_were_not_asked_yet_go_with_their_loop_context) {
  {
    Peer peer{registry, Limits{.in_flight = kMany}};
    for (int i = 1; i <= kMany; ++i) EXPECT_EQ(peer.ask(request("wait", {}, std::to_string(i))), "");
    for (int i = 1; i <= kMany; ++i) peer.send(notification("$/cancelRequest", R"({"id":)" + std::to_string(i) + "}"));
    EXPECT_LT(stopped, kMany);
  }
  EXPECT_LT(stopped, kMany) << "they have ended where they waited";
}

// A peer that has sent notifications that wait, and goes.
class NotificationsOfAPeerThatGoes : public Stopped {
 protected:
  void send_and_go(std::string_view params, const Limits& limits = {}) {
    registry.use([this](Call& call, const Next& next) {
      call.on_reply([this](const Outcome& outcome) { codes.push_back(outcome.code); });
      next(call);
    });
    registry.method("doze", [this](Context context) -> Task<void> {
      co_await sleep_for(context, std::chrono::milliseconds{400});
      ++done;
    });
    peer.emplace(registry, limits);
    for (int i = 0; i != 5; ++i) peer->send(notification("wait", params));
    peer->send(request("wait", {}, "1"));
    peer->send(notification("doze"));
    peer->dispatcher.abandon();
    EXPECT_EQ(peer->received(), "");
  }

  std::vector<int> codes;
  int done = 0;
  std::optional<Peer> peer;
};

TEST_F(NotificationsOfAPeerThatGoes, go_on_to_their_end) {
  send_and_go({});
  EXPECT_EQ(stopped, 1) << "the request alone";
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0, 0, 0, -32800, 0}));
  peer->advance(std::chrono::milliseconds{400});
  EXPECT_EQ(done, 1);
  EXPECT_EQ(stopped, 1);
}

TEST_F(NotificationsOfAPeerThatGoes, go_on_for_as_long_as_calls_of_one_that_has_ended_its_side) {
  send_and_go({}, {.half_closed_ms = 300});
  peer->advance(std::chrono::milliseconds{299});
  EXPECT_EQ(stopped, 1);
  peer->advance(std::chrono::milliseconds{1});
  EXPECT_EQ(stopped, 6);
  EXPECT_EQ(done, 0);
}

TEST_F(NotificationsOfAPeerThatGoes, are_stopped_where_too_many_go_on_already) {
  send_and_go({}, {.half_closed_calls = 6});
  EXPECT_EQ(stopped, 1 + 2) << "half of what was left goes on";
  peer->advance(std::chrono::milliseconds{400});
  EXPECT_EQ(done, 0) << "which was the last";
}

TEST_F(NotificationsOfAPeerThatGoes, end_with_their_loop) {
  send_and_go({});
  peer.reset();
  EXPECT_EQ(done, 0);
}

}  // namespace
}  // namespace wirecall
