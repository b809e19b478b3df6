// Streams towards a handler that another connection provides: ids mapped, credit passed on, items as they came.
#include <chrono>
#include <gtest/gtest.h>
#include <string>

#include "tests/broker/world.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::cancel_notification;
using test::Client;
using test::invalid_request;
using test::notification;
using test::request;
using test::result_reply;
using test::timed_out;
using test::World;

std::string asked(std::string_view id, std::string_view more = {}) {
  return R"({"jsonrpc":"2.0","method":"sum","input":true)" + std::string{more} + R"(,"id":)" + std::string{id} + "}";
}
std::string sent(std::string_view id, int sequence, std::string_view value = "1") {
  return notification("rpc.item", R"({"id":)" + std::string{id} + R"(,"seq":)" + std::to_string(sequence) +
                                      R"(,"value":)" + std::string{value} + "}");
}
std::string ended(std::string_view id, int sequence) {
  return notification("rpc.item",
                      R"({"id":)" + std::string{id} + R"(,"seq":)" + std::to_string(sequence) + R"(,"end":true})");
}
std::string credit(std::string_view id, std::size_t items) {
  return notification("rpc.credit", R"({"id":)" + std::string{id} + R"(,"n":)" + std::to_string(items) + "}");
}
constexpr std::string_view kFirst = R"("0")";  // by which the provider is asked

class RelayedInputs : public testing::Test {
 protected:
  void SetUp() override { provider.provide("sum"); }

  World world{Limits{.call_timeout_ms = 100}};
  Client provider{world};
  Client caller{world};
};

TEST_F(RelayedInputs, go_to_the_provider_under_its_id_as_it_gives_credit) {
  EXPECT_EQ((caller.send(asked("7")), provider.received()), asked(kFirst));
  EXPECT_EQ((provider.send(credit(kFirst, 2)), caller.received()), credit("7", 2));
  EXPECT_EQ((caller.send(sent("7", 0, R"({ "a" : 1 })")), provider.received()), sent(kFirst, 0, R"({ "a" : 1 })"));
  EXPECT_EQ((caller.send(sent("7", 1)), provider.received()), sent(kFirst, 1));
  EXPECT_EQ((provider.send(credit(kFirst, 1)), caller.received()), credit("7", 1));
  EXPECT_EQ((caller.send(ended("7", 2)), provider.received()), ended(kFirst, 2));
  EXPECT_EQ((provider.send(result_reply("5", kFirst)), caller.received()), result_reply("5", "7"));
  EXPECT_EQ((caller.send(sent("7", 3)), provider.received() + caller.received()), "");
}

TEST_F(RelayedInputs, beyond_credit_end_the_call_and_the_provider_is_told) {
  static_cast<void>((caller.send(asked("7")), provider.received()));
  EXPECT_EQ((caller.send(sent("7", 0)), caller.received()), invalid_request("7"));
  EXPECT_EQ(provider.received(), cancel_notification(kFirst));
  EXPECT_EQ((provider.send(credit(kFirst, 2)), caller.received()), "");
}

TEST_F(RelayedInputs, run_beside_results) {
  EXPECT_EQ((caller.send(asked("7", R"(,"stream":9)")), provider.received()), asked(kFirst, R"(,"stream":9)"));
  EXPECT_EQ((provider.send(credit(kFirst, 4)), caller.received()), credit("7", 4));
  EXPECT_EQ((caller.send(sent("7", 0)), provider.received()), sent(kFirst, 0));
  EXPECT_EQ((provider.send(sent(kFirst, 0, "10")), caller.received()), sent("7", 0, "10"));
  EXPECT_EQ((caller.send(credit("7", 1)), provider.received()), credit(kFirst, 1));
  EXPECT_EQ((caller.send(sent("7", 1)), provider.received()), sent(kFirst, 1));
  EXPECT_EQ((provider.send(sent(kFirst, 1, "11")), caller.received()), sent("7", 1, "11"));
}

TEST_F(RelayedInputs, of_a_peer_that_provides_as_well_are_told_from_its_results) {
  caller.provide("count");
  Client other{world};
  EXPECT_EQ((other.send(R"({"jsonrpc":"2.0","method":"count","stream":9,"id":1})"), caller.received()),
            R"({"jsonrpc":"2.0","method":"count","stream":9,"id":0})");
  static_cast<void>((caller.send(asked(R"("i0")")), provider.received()));
  static_cast<void>((provider.send(credit(R"("1")", 1)), caller.received()));
  EXPECT_EQ((caller.send(sent(R"("i0")", 0, "5")), provider.received()), sent(R"("1")", 0, "5"));
  EXPECT_EQ((caller.send(sent("0", 0, "6")), other.received()), sent("1", 0, "6"));
}

TEST_F(RelayedInputs, are_given_no_more_credit_than_the_provider_has_room_for) {
  static_cast<void>((caller.send(asked("7")), provider.received()));
  EXPECT_EQ((provider.send(credit(kFirst, 1'000'000)), caller.received()), credit("7", 64));
  provider.sink->messages_max = 0;
  for (int i = 0; i < 64; ++i) caller.send(sent("7", i));
  EXPECT_EQ(caller.received(), "") << "the provider does not read";
  static_cast<void>(provider.received());
  provider.sink->messages_max = 1'000'000;
  provider.dispatcher->on_writable();
  EXPECT_EQ(caller.received(), credit("7", 1024));
}

TEST_F(RelayedInputs, stop_with_cancel_timeout_and_either_end) {
  static_cast<void>((caller.send(asked("7")), provider.received()));
  caller.send(notification("rpc.cancel", "[7]"));
  EXPECT_EQ(provider.received(), cancel_notification(kFirst));
  static_cast<void>(caller.received());

  static_cast<void>((caller.send(asked("8")), provider.received()));
  provider.send(credit(R"("4194304")", 9));
  EXPECT_EQ(caller.received(), credit("8", 9));
  world.scheduler.advance(99ms);
  caller.send(sent("8", 0));
  world.scheduler.advance(99ms);
  EXPECT_EQ(caller.received(), "") << "the time is for the gap between items";
  world.scheduler.advance(11ms);
  EXPECT_EQ(caller.received(), timed_out("8"));
}

TEST_F(RelayedInputs, of_a_caller_that_ends_its_side_before_the_stream_end) {
  static_cast<void>((caller.send(asked("7")), provider.received()));
  caller.send(asked("8"));
  caller.send(ended("8", 0));
  static_cast<void>(provider.received());
  caller.dispatcher->peer_ended();
  EXPECT_EQ(caller.received(), test::cancelled("7"));
  EXPECT_EQ(provider.received(), cancel_notification(kFirst));
  EXPECT_EQ((provider.send(result_reply("5", R"("1")")), caller.received()), result_reply("5", "8"));
}

TEST_F(RelayedInputs, that_end_without_an_item_need_no_credit) {
  static_cast<void>((caller.send(asked("7")), provider.received()));
  EXPECT_EQ((caller.send(ended("7", 0)), provider.received()), ended(kFirst, 0));
}

TEST_F(RelayedInputs, of_a_batch_are_refused) {
  EXPECT_EQ((caller.send("[" + asked("7") + "]"), caller.received()),
            "[" + test::error_reply(-32600, "Invalid Request", R"({"reason":"needs_connection"})", "7") + "]");
  EXPECT_EQ(provider.received(), "");
}

}  // namespace
}  // namespace wirecall
