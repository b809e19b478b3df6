// Clients that join consumers of durable topics: what is said to the broker, which events are acknowledged and when,
// and what else is kept safely.
#include <gtest/gtest.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/server/broker_world.hpp"
#include "wirecall/client.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;

class ClientConsume : public testing::Test {
 protected:
  using Texts = std::vector<std::string>;
  void send_event(std::string_view id, std::string_view params = "[1]") {
    world.send(R"({"jsonrpc":"2.0","method":"orders.new","params":)" + std::string{params} + R"(,"id":")" +
               std::string{id} + "\"}");
    world.pass(1ms);
  }
  // What has been said since.
  Texts said() { return std::exchange(world.lines, {}); }
  void connect() {
    world.client->connect();
    said();
  }
  static std::string acknowledged(std::string_view id) {
    return R"({"jsonrpc":"2.0","result":null,"id":")" + std::string{id} + "\"}";
  }

  BrokerWorld world;
};

TEST_F(ClientConsume, says_which_consumer_it_joins_and_leaves) {
  std::optional<Subscription> billing{world.client->subscribe(
      "orders.>", {.durable = "billing", .start = "17", .ack_wait_ms = 1000, .max_deliver = 0, .max_in_flight = 2},
      [](const Event&) {})};
  const Subscription all =
      world.client->subscribe("orders.>", {.durable = "all", .start = "first"}, [](const Event&) {});
  world.client->connect();
  EXPECT_EQ(said(), (Texts{R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"orders.>",)"
                           R"("durable":"billing","start":17,"ack_wait_ms":1000,"max_deliver":0,"max_in_flight":2},)"
                           R"("id":"rpc.subscribe:1"})",
                           R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"orders.>",)"
                           R"("durable":"all","start":"first"},"id":"rpc.subscribe:2"})"}));
  billing.reset();
  world.pass(1ms);
  EXPECT_EQ(said(), Texts{R"({"jsonrpc":"2.0","method":"rpc.unsubscribe","params":{"topic":"orders.>",)"
                          R"("durable":"billing"}})"});
}

TEST_F(ClientConsume, an_event_is_acknowledged_when_its_function_has_returned) {
  Texts noted;
  const Subscription billing = world.client->subscribe("orders.>", {.durable = "billing"}, [&](const Event& event) {
    EXPECT_TRUE(world.lines.empty());
    noted.push_back(event.topic + " " + std::string{event.value_json()});
  });
  connect();
  send_event("billing:1:1");
  EXPECT_EQ(noted, Texts{"orders.new 1"});
  EXPECT_EQ(said(), Texts{acknowledged("billing:1:1")});
}

TEST_F(ClientConsume, an_event_whose_function_throws_is_refused_with_its_error) {
  const Subscription billing = world.client->subscribe("orders.>", {.durable = "billing"}, [](const Event& event) {
    if (event.as<int>() == 1) throw Error{7, "no"};
    throw std::runtime_error{"secret"};
  });
  connect();
  send_event("billing:1:1");
  EXPECT_EQ(said(), Texts{R"({"jsonrpc":"2.0","error":{"code":7,"message":"no"},"id":"billing:1:1"})"});
  send_event("billing:2:1", "[2]");
  EXPECT_EQ(said(),
            Texts{R"({"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error"},"id":"billing:2:1"})"});
  EXPECT_EQ(world.log.size(), 2U);
}

TEST_F(ClientConsume, an_event_may_be_acknowledged_later_and_in_another_order) {
  std::vector<EventReply> replies;
  const Subscription billing = world.client->consume(
      "orders.>", {.durable = "billing"}, [&](const Event&, EventReply reply) { replies.push_back(std::move(reply)); });
  connect();
  send_event("billing:1:1");
  send_event("billing:2:1");
  EXPECT_EQ(said(), Texts{});
  replies.at(1).acknowledge();
  replies.at(1).acknowledge();
  replies.at(0).refuse(Error{7, "no"});
  world.pass(1ms);
  EXPECT_EQ(said(), (Texts{acknowledged("billing:2:1"),
                           R"({"jsonrpc":"2.0","error":{"code":7,"message":"no"},"id":"billing:1:1"})"}));
}

TEST_F(ClientConsume, a_reply_that_goes_unanswered_refuses_and_one_that_outlives_its_client_has_no_effect) {
  std::optional<EventReply> kept;
  const Subscription billing = world.client->consume("orders.>", {.durable = "billing"},
                                                     [&](const Event&, EventReply reply) { kept = std::move(reply); });
  connect();
  send_event("billing:1:1");
  kept.reset();
  world.pass(1ms);
  EXPECT_EQ(said(),
            Texts{R"({"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error"},"id":"billing:1:1"})"});
  send_event("billing:1:2");
  world.client.reset();
  kept->acknowledge();
}

TEST_F(ClientConsume, an_event_of_a_consumer_that_nobody_here_has_joined_is_an_unknown_method) {
  connect();
  send_event("other:1:1");
  const Texts answers = said();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_NE(answers[0].find("-32601"), std::string::npos) << answers[0];
}

TEST_F(ClientConsume, a_plain_subscription_to_the_same_topic_has_events_and_no_requests) {
  int plain = 0;
  int durable = 0;
  const Subscription one = world.client->subscribe("orders.>", [&](const Event&) { ++plain; });
  const Subscription two =
      world.client->subscribe("orders.>", {.durable = "billing"}, [&](const Event&) { ++durable; });
  connect();
  send_event("billing:1:1");
  world.send(R"({"jsonrpc":"2.0","method":"orders.new","params":[1]})");
  world.pass(1ms);
  EXPECT_EQ(plain, 1);
  EXPECT_EQ(durable, 1);
}

TEST_F(ClientConsume, options_that_cannot_be_are_refused_at_once) {
  const auto refused = [&](SubscribeOptions options) {
    EXPECT_THROW(static_cast<void>(world.client->subscribe("a", std::move(options), [](const Event&) {})),
                 std::invalid_argument);
  };
  refused({.start = "first"});
  refused({.group = "g", .durable = "billing"});
  const Subscription first = world.client->subscribe("a", {.durable = "billing"}, [](const Event&) {});
  refused({.durable = "billing"});
}

TEST_F(ClientConsume, publish_durable_says_so_and_returns_the_seq) {
  world.answers["rpc.publish"] = R"("result":{"seq":5,"duplicate":true})";
  const Published kept = world.client->publish_durable("orders.new", 17, "order-17");
  EXPECT_EQ(kept.seq, 5U);
  EXPECT_EQ(kept.duplicate, true);
  ASSERT_FALSE(world.lines.empty());
  EXPECT_NE(
      world.lines.back().find(R"("params":{"topic":"orders.new","params":[17],"durable":true,"msg_id":"order-17"})"),
      std::string::npos)
      << world.lines.back();
}

}  // namespace
}  // namespace wirecall::net
