// Peers that leave with thousands of calls: each turn ends a share of them, whoever waits is told all the same, and
// nothing of a peer that has left is asked or told any more.
#include <algorithm>
#include <chrono>
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
  EXPECT_EQ(world.router.relayed_calls().in_use(), 0U);
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
  EXPECT_EQ(world.router.methods().size(), 0U);
}

TEST_F(Leaving, providers_with_calls_that_wait_lose_them_in_shares) {
  provider.provide("work", R"(,"concurrency":1,"queue":5000)");
  call_many(caller);
  static_cast<void>(provider.received());
  provider.leave();
  EXPECT_EQ(expect_shares(caller), kMany);
  EXPECT_EQ(world.router.relayed_calls().in_use(), 0U);
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

class Unregistering : public Leaving {
 protected:
  Unregistering() { provider.provide("work", R"(,"concurrency":1,"queue":5000)"); }
  void unregister() {
    EXPECT_TRUE(provider.ask(request("rpc.unregister", R"(["work"])")).ends_with(result_reply("1")));
  }
  // Which takes one of the calls at once.
  void provide_as_well(Client& client) {
    const std::string said = client.ask(request("rpc.register", R"({"method":"work","concurrency":1,"queue":5000})"));
    EXPECT_EQ(lines_of(said), 2) << said;
  }
  [[nodiscard]] std::size_t waiting_for(int index) {
    return world.router.methods().find_registered("work")->providers()[static_cast<std::size_t>(index)]->waiting;
  }
};

TEST_F(Unregistering, calls_that_wait_end_in_shares_and_the_one_at_work_is_answered) {
  call_many(caller);
  const std::string asked = provider.received();
  unregister();
  EXPECT_EQ(expect_shares(caller), kMany - 1);
  EXPECT_EQ(provider.received(), "");
  provider.send(result_reply("5", id_of(asked)));
  EXPECT_EQ(caller.received(), result_reply("5", "1"));
  EXPECT_EQ(world.router.methods().size(), 0U);
  EXPECT_EQ(world.router.relayed_calls().in_use(), 0U);
}

TEST_F(Unregistering, providers_go_when_the_one_at_work_is_answered_first) {
  call_many(caller);
  const std::string asked = provider.received();
  unregister();
  provider.send(result_reply("5", id_of(asked)));
  EXPECT_EQ(provider.received(), "") << "asked nothing further";
  EXPECT_EQ(world.router.methods().size(), 1U);
  static_cast<void>(caller.received());
  EXPECT_EQ(expect_shares(caller), kMany - 1 - kShare);
  EXPECT_EQ(world.router.methods().size(), 0U);
}

TEST_F(Unregistering, calls_that_wait_go_to_another_provider_in_shares) {
  call_many(caller);
  provide_as_well(other);
  unregister();
  EXPECT_EQ(waiting_for(1), static_cast<std::size_t>(kShare));
  while (world.scheduler.expire_one()) {
  }
  EXPECT_EQ(waiting_for(0), 0U);
  EXPECT_EQ(waiting_for(1), static_cast<std::size_t>(kMany - 2));
  EXPECT_EQ(caller.received(), "");
}

TEST_F(Unregistering, long_requests_make_a_share_smaller) {
  const std::string params = "[\"" + std::string(64 * 1024, 'x') + "\"]";
  for (int i = 0; i < 60; ++i) caller.send(request("work", params, std::to_string(i + 1)));
  provide_as_well(other);
  unregister();
  EXPECT_LE(waiting_for(1), 20U);
  while (world.scheduler.expire_one()) {
  }
  EXPECT_EQ(waiting_for(1), 58U);
}

TEST_F(Unregistering, who_registers_again_meanwhile_is_asked_what_still_waits) {
  call_many(caller, 600);
  const std::string asked = provider.received();
  unregister();
  EXPECT_EQ(lines_of(caller.received()), kShare);
  provider.provide("work", R"(,"concurrency":1,"queue":5000)");
  while (world.scheduler.expire_one()) {
  }
  EXPECT_EQ(caller.received(), "");
  int answered = 1;
  provider.send(result_reply("1", id_of(asked)));
  for (std::string next = provider.received(); !next.empty(); next = provider.received(), ++answered)
    provider.send(result_reply("1", id_of(next)));
  EXPECT_EQ(answered, 600 - kShare);
  EXPECT_EQ(lines_of(caller.received()), 600 - kShare);
  EXPECT_EQ(world.router.relayed_calls().in_use(), 0U);
  unregister();
  EXPECT_EQ(world.router.methods().size(), 0U);
}

TEST_F(Unregistering, registering_and_unregistering_again_goes_on_where_it_was) {
  call_many(caller);
  unregister();
  provider.provide("work", R"(,"concurrency":1,"queue":5000)");
  unregister();
  EXPECT_EQ(lines_of(caller.received()), kShare) << "one share a turn";
  EXPECT_EQ(expect_shares(caller), kMany - 1 - kShare);
}

TEST_F(Unregistering, each_call_ends_once_however_it_ends_meanwhile) {
  call_many(caller);
  unregister();
  EXPECT_EQ(lines_of(caller.received()), kShare);
  EXPECT_TRUE(caller.ask(request("rpc.cancel", R"({"id":2999})", "0")).ends_with(result_reply("1", "0")));
  provider.leave();
  Client next{world};
  provide_as_well(next);
  while (world.scheduler.expire_one()) {
  }
  EXPECT_EQ(lines_of(caller.received()), 1) << "the one that was at work";
  EXPECT_EQ(waiting_for(0), static_cast<std::size_t>(kMany - 1 - kShare - 1 - 1))
      << "but for the one cancelled, and taken";
}

TEST_F(Unregistering, the_time_of_calls_goes_on_meanwhile) {
  caller.send(request("work", {}, "0"));
  for (int i = 1; i < 600; ++i)
    caller.send(R"({"jsonrpc":"2.0","method":"work","timeout_ms":20,"id":)" + std::to_string(i) + "}");
  unregister();
  int told = lines_of(caller.received());
  EXPECT_EQ(told, kShare);
  world.advance(std::chrono::milliseconds{100});
  told += lines_of(caller.received());
  EXPECT_EQ(told, 599);
  EXPECT_EQ(world.router.relayed_calls().in_use(), 1U);
}

TEST_F(Unregistering, a_broker_may_end_in_the_middle) {
  auto world2 = std::make_unique<World>();
  auto serving = std::make_unique<Client>(*world2);
  auto calling = std::make_unique<Client>(*world2);
  serving->provide("work", R"(,"concurrency":1,"queue":5000)");
  call_many(*calling);
  serving->send(notification("rpc.unregister", R"(["work"])"));
  serving.reset();
  calling.reset();
  world2.reset();
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
  EXPECT_EQ(world.router.relayed_calls().in_use(), 0U);
  EXPECT_EQ(world.loop_context.stats.calls_in_flight, 0U);
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
