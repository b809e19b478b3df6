// Peers that leave with thousands of calls: each turn ends a share of them, whoever waits is told all the same, and
// nothing of a peer that has left is asked or told any more.
#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "tests/broker/world.hpp"

namespace wirecall {
namespace {

using namespace test;

constexpr int kMany = 3000;
constexpr int kShare = 256;

int lines_of(const std::string& text) {
  return text.empty() ? 0 : static_cast<int>(std::ranges::count(text, '\n')) + 1;
}

class Leaving : public testing::Test {
 protected:
  void call_many(Client& caller, int count = kMany) {
    for (int i = 0; i < count; ++i) caller.send(request("work", "[]", std::to_string(i + 1)));
  }
  // How many calls `told` is told of, in shares.
  int expect_shares(Client& told) {
    int all = 0;
    int turns = 0;
    do {
      const int more = lines_of(told.received());
      EXPECT_LE(more, kShare);
      all += more;
      ++turns;
    } while (world.scheduler.expire_one());
    EXPECT_GE(turns, all / kShare);
    return all;
  }

  World world;
  Client provider{world};
  Client caller{world};
  Client other{world};
};

TEST_F(Leaving, callers_give_up_their_calls_in_shares) {
  provider.provide("work");
  call_many(caller);
  static_cast<void>(provider.received());
  caller.leave();
  EXPECT_EQ(expect_shares(provider), kMany) << "each is cancelled";
  EXPECT_EQ(world.exchange.relayed_calls().in_use(), 0U);
}

TEST_F(Leaving, callers_of_one_turn_have_one_share_together) {
  provider.provide("work");
  std::vector<std::unique_ptr<Client>> callers;
  for (int i = 0; i < 8; ++i) call_many(*callers.emplace_back(std::make_unique<Client>(world)), 400);
  static_cast<void>(provider.received());
  for (const auto& one : callers) one->leave();
  EXPECT_EQ(expect_shares(provider), 3200);
}

TEST_F(Leaving, providers_lose_their_calls_in_shares_and_callers_are_told) {
  provider.provide("work");
  call_many(caller);
  static_cast<void>(provider.received());
  provider.leave();
  EXPECT_EQ(expect_shares(caller), kMany);
  EXPECT_EQ(world.exchange.methods().size(), 0U);
}

TEST_F(Leaving, providers_with_calls_that_wait_lose_them_in_shares) {
  provider.provide("work", R"(,"concurrency":1,"queue":5000)");
  call_many(caller);
  static_cast<void>(provider.received());
  provider.leave();
  EXPECT_EQ(expect_shares(caller), kMany);
  EXPECT_EQ(world.exchange.relayed_calls().in_use(), 0U);
}

TEST_F(Leaving, providers_that_end_their_side_do_so_too) {
  provider.provide("work", R"(,"concurrency":1,"queue":5000)");
  call_many(caller);
  static_cast<void>(provider.received());
  provider.dispatcher->peer_ended();
  EXPECT_EQ(lines_of(caller.received()), kShare);
  provider.leave();  // in the middle
  EXPECT_EQ(expect_shares(caller), kMany - kShare);
}

TEST_F(Leaving, providers_are_asked_nothing_new_and_another_can_take_their_place) {
  provider.provide("work");
  call_many(caller);
  provider.leave();
  const std::string refused = other.ask(request("work", "[]", "7"));
  EXPECT_NE(refused.find("-32601"), std::string::npos) << refused;
  Client next{world};
  next.provide("work");
  other.send(request("work", "[]", "8"));
  EXPECT_EQ(lines_of(next.received()), 1);
  static_cast<void>(expect_shares(caller));
  next.leave();
  EXPECT_EQ(other.received(), provider_lost("maybe", "8"));
}

TEST_F(Leaving, callers_are_told_nothing_that_is_answered_meanwhile) {
  provider.provide("work");
  call_many(caller, 600);
  const std::string asked = provider.received();
  const std::string last = id_of(asked.substr(asked.rfind('\n') + 1));
  caller.leave();
  provider.send(result_reply("1", last));
  EXPECT_EQ(provider.dropped, 0U) << "the call was still there";
  static_cast<void>(expect_shares(provider));
  EXPECT_EQ(world.exchange.relayed_calls().in_use(), 0U);
  EXPECT_EQ(world.workspace.stats.calls_in_flight, 0U);
}

TEST_F(Leaving, both_of_a_broker_that_ends_in_the_middle_go_with_it) {
  auto world2 = std::make_unique<World>();
  auto serving = std::make_unique<Client>(*world2);
  auto calling = std::make_unique<Client>(*world2);
  serving->provide("work");
  call_many(*calling);
  calling->leave();
  serving->leave();
  calling.reset();
  serving.reset();
  world2.reset();
}

}  // namespace
}  // namespace wirecall
