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

}  // namespace
}  // namespace wirecall
