// An event for many, or a large one, is told over several turns: no turn sends more than its share, who is told is
// decided when it is published, nothing of the publisher's overtakes it, and what it holds is on its account.
#include "broker/fan_outs.hpp"

#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/broker/world.hpp"

namespace wirecall {
namespace {

using namespace test;
using broker::FanOut;

constexpr std::size_t kCrowd = 3000;
// Of a small event, in one turn.
constexpr std::size_t kBytesInTurn = FanOut::kBytesInTurn;
constexpr std::size_t kToldInTurn = kBytesInTurn / FanOut::kBytesOfDelivery;
constexpr std::string_view kSmallEvent = R"({"topic":"news","params":[1]})";

std::string large_event(std::string_view topic, std::size_t bytes) {
  return R"({"topic":")" + std::string{topic} + R"(","params":[")" + std::string(bytes, 'x') + "\"]}";
}
std::string subscribing(std::string_view topic, std::string_view more = "") {
  return request("rpc.subscribe", R"({"topic":")" + std::string{topic} + "\"" + std::string{more} + "}");
}

class Elsewhere final : public broker::RemoteNode {
 public:
  void begin_call(const CallFacts& /*facts*/) noexcept override {}
  [[nodiscard]] std::string_view name() const noexcept override { return "elsewhere"; }
  [[nodiscard]] std::uint32_t load() const noexcept override { return 0; }
  [[nodiscard]] bool has_client(std::string_view /*name*/) const noexcept override { return false; }
  [[nodiscard]] std::chrono::nanoseconds latency() const noexcept override { return {}; }
  void begin_part(std::string_view /*principal*/) noexcept override {}
};

class FanOuts : public testing::Test {
 protected:
  FanOuts() { publisher.sink->holds_input = true; }

  void subscribe(std::size_t count, std::string_view topic = "news") {
    for (std::size_t i = 0; i < count; ++i) {
      subscribers.push_back(std::make_unique<Client>(world));
      EXPECT_EQ(subscribers.back()->ask(subscribing(topic)), result_reply("true"));
    }
  }
  [[nodiscard]] std::size_t told() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(subscribers, [](const auto& one) { return !one->sink->messages.empty(); }));
  }
  [[nodiscard]] bool is_held() const { return !publisher.sink->input_hold.expired(); }
  // The turns until all have been told.
  int tell_all() {
    int turns = 0;
    for (std::size_t before = told(); is_held() && turns < 1000; before = told(), ++turns) {
      EXPECT_TRUE(world.scheduler.expire_one());
      EXPECT_LE(told() - before, kToldInTurn);
    }
    return turns;
  }
  // What the publisher is answered.
  std::string answer() {
    tell_all();
    publisher.dispatcher->resume_batch();
    return publisher.received();
  }

  World world;
  std::vector<std::unique_ptr<Client>> subscribers;
  Client publisher{world};
};

// What another node sends cannot be held: its peer has no input.
TEST_F(FanOuts, events_of_another_node_are_told_over_several_turns_and_stay_in_order) {
  publisher.sink->holds_input = false;
  subscribe(kCrowd);
  subscribe(1, "other");
  EXPECT_EQ(subscribers.back()->ask(subscribing("news")), result_reply("true"));
  auto& node = static_cast<broker::Peer&>(*publisher.dispatcher->join_broker());
  node.of_node = true;
  const auto publish = [&](std::string_view topic, std::string_view params) {
    const std::string text = notification(topic, params);
    world.router.events().deliver(&node, {.topic = topic, .text = text, .params = params});
  };
  publish("news", "[1]");
  publish("other", "[2]");
  publish("news", "[3]");
  EXPECT_EQ(told(), 0U);
  for (std::size_t before = 0; world.scheduler.expire_one(); before = told()) EXPECT_LE(told() - before, kToldInTurn);
  const std::string both = notification("news", "[1]") + "\n" + notification("news", "[3]");
  for (std::size_t i = 0; i != kCrowd; ++i) EXPECT_EQ(subscribers[i]->received(), both);
  EXPECT_EQ(subscribers.back()->received(),
            notification("news", "[1]") + "\n" + notification("other", "[2]") + "\n" + notification("news", "[3]"));
}

TEST_F(FanOuts, an_event_of_another_node_does_not_overtake_one_of_its_topic) {
  subscribe(kCrowd);
  publisher.send(notification("news", "[1]"));
  Client other{world};
  auto& node = static_cast<broker::Peer&>(*other.dispatcher->join_broker());
  node.of_node = true;
  const std::string text = notification("news", "[2]");
  world.router.events().deliver(&node, {.topic = "news", .text = text, .params = "[2]"});
  while (world.scheduler.expire_one()) {
  }
  for (const auto& one : subscribers) EXPECT_EQ(one->received(), notification("news", "[1]") + "\n" + text);
}

TEST_F(FanOuts, of_what_another_node_sends_too_much_of_the_newest_is_lost_and_overtakes_nothing) {
  world.limits.hard_output = 90'000;
  publisher.sink->holds_input = false;
  subscribe(kCrowd);
  auto& node = static_cast<broker::Peer&>(*publisher.dispatcher->join_broker());
  node.of_node = true;
  const auto publish = [&](const std::string& params) {
    const std::string text = notification("news", params);
    world.router.events().deliver(&node, {.topic = "news", .text = text, .params = params});
  };
  publish("[1]");
  publish("[\"" + std::string(150'000, 'x') + "\"]");
  // Its recipients are counted as well.
  for (int i = 2; i != 10; ++i) publish("[" + std::to_string(i) + "]");
  EXPECT_EQ(told(), 0U);
  while (world.scheduler.expire_one()) {
  }
  publish("[10]");
  while (world.scheduler.expire_one()) {
  }
  std::string expected = notification("rpc.lagged", R"({"topic":"news","dropped":9})") + "\n";
  const std::string received = subscribers.front()->received();
  EXPECT_EQ(received, expected + notification("news", "[1]") + "\n" + notification("news", "[10]"));
  for (std::size_t i = 1; i != kCrowd; ++i) EXPECT_EQ(subscribers[i]->received(), received);
}

TEST_F(FanOuts, an_event_of_one_node_does_not_wait_for_another_s) {
  publisher.sink->holds_input = false;
  subscribe(kCrowd);
  subscribe(1, "other");
  const auto publish = [&](Client& client, broker::RemoteNode* at, std::string_view topic) {
    auto& node = static_cast<broker::Peer&>(*client.dispatcher->join_broker());
    node.of_node = true;
    node.node = at;
    const std::string text = notification(topic, "[1]");
    world.router.events().deliver(&node, {.topic = topic, .text = text, .params = "[1]"});
    node.node = nullptr;
  };
  Client second{world};
  publish(publisher, nullptr, "news");
  Elsewhere elsewhere;
  publish(second, &elsewhere, "other");
  EXPECT_EQ(subscribers.back()->received(), notification("other", "[1]"));
  while (world.scheduler.expire_one()) {
  }
}

TEST_F(FanOuts, an_event_for_many_is_told_over_several_turns) {
  subscribe(kCrowd);
  publisher.send(notification("news", "[1]"));
  EXPECT_EQ(told(), 0U);
  EXPECT_TRUE(is_held());
  EXPECT_EQ(tell_all(), static_cast<int>(kCrowd / kToldInTurn + 1));
  for (const auto& one : subscribers) EXPECT_EQ(one->received(), notification("news", "[1]"));
  EXPECT_FALSE(is_held());
  while (world.scheduler.expire_one()) {
  }
  EXPECT_EQ(world.loop_context.stats.events_delivered, kCrowd);
  EXPECT_EQ(world.scheduler.running(), 0U);
}

TEST_F(FanOuts, an_event_for_few_is_told_at_once) {
  subscribe(100);
  EXPECT_EQ(publisher.ask(request("rpc.publish", kSmallEvent)), result_reply("100"));
  EXPECT_EQ(told(), 100U);
  EXPECT_FALSE(is_held());
}

TEST_F(FanOuts, publish_is_answered_with_how_many_have_been_told_when_they_have) {
  subscribe(kCrowd);
  EXPECT_EQ(publisher.ask(request("rpc.publish", kSmallEvent)), "");
  EXPECT_EQ(answer(), result_reply(std::to_string(kCrowd)));
  EXPECT_EQ(told(), kCrowd);
}

TEST_F(FanOuts, an_event_is_not_overtaken_by_the_next_of_its_topic_whoever_publishes_it) {
  subscribe(kCrowd);
  Client next{world};
  next.sink->holds_input = true;
  Client last{world};
  last.sink->holds_input = true;
  Client elsewhere{world};
  Client other{world};
  EXPECT_EQ(other.ask(subscribing("others")), result_reply("true"));
  publisher.send(notification("news", "[1]"));
  next.send(notification("news", "[2]"));
  last.send(notification("news", "[3]"));
  elsewhere.send(notification("others", "[4]"));
  EXPECT_EQ(other.received(), notification("others", "[4]")) << "another topic does not wait";
  while (world.scheduler.expire_one()) {
  }
  const std::string all =
      notification("news", "[1]") + "\n" + notification("news", "[2]") + "\n" + notification("news", "[3]");
  for (const auto& one : subscribers) EXPECT_EQ(one->received(), all);
  EXPECT_TRUE(next.sink->input_hold.expired());
  EXPECT_TRUE(last.sink->input_hold.expired());
  EXPECT_EQ(world.scheduler.running(), 0U);
}

TEST_F(FanOuts, publish_that_is_late_or_cut_off_may_have_been_delivered) {
  subscribe(kCrowd);
  const std::string publish =
      R"({"jsonrpc":"2.0","method":"rpc.publish","params":)" + std::string{kSmallEvent} + R"(,"timeout_ms":1,"id":1})";
  EXPECT_EQ(publisher.ask(publish), "");
  world.scheduler.advance(std::chrono::milliseconds{2});
  const std::string late = answer();
  EXPECT_NE(late.find("-32002"), std::string::npos) << late;
  EXPECT_NE(late.find(R"("delivered":"maybe")"), std::string::npos) << late;
  EXPECT_EQ(publisher.ask("[" + request("rpc.publish", kSmallEvent, "1") + "," + request("rpc.ping", {}, "2") + "]"),
            "");
  publisher.dispatcher->refuse_open_batch();
  const std::string cut = answer();
  EXPECT_NE(cut.find(R"("delivered":"maybe"}},"id":1})"), std::string::npos) << cut;
  EXPECT_NE(cut.find(R"("delivered":"no"}},"id":2})"), std::string::npos) << cut;
}

TEST_F(FanOuts, publish_in_a_batch_is_answered_in_its_place) {
  subscribe(kCrowd);
  EXPECT_EQ(publisher.ask("[" + request("rpc.publish", kSmallEvent, "1") + "," + request("rpc.ping", {}, "2") + "]"),
            "");
  EXPECT_EQ(answer(), "[" + result_reply(std::to_string(kCrowd), "1") + "," + result_reply("\"pong\"", "2") + "]");
}

TEST_F(FanOuts, publish_without_an_id_leaves_its_answer_to_nobody) {
  subscribe(kCrowd);
  EXPECT_EQ(publisher.ask(notification("rpc.publish", kSmallEvent)), "");
  Client other{world};
  EXPECT_EQ(other.ask(subscribing("others")), result_reply("true"));
  tell_all();
  EXPECT_EQ(told(), kCrowd);
  EXPECT_EQ(publisher.ask(request("rpc.publish", R"({"topic":"others"})")), result_reply("1"));
}

TEST_F(FanOuts, a_large_event_is_told_to_one_at_a_time_with_turns_in_between) {
  subscribe(7);
  publisher.send(request("rpc.publish", large_event("news", 4 * kBytesInTurn)));
  for (std::size_t i = 0; i < 7; ++i) {
    for (int between = 0; between < 4; ++between) {
      EXPECT_EQ(told(), i);
      EXPECT_TRUE(world.scheduler.expire_one());
    }
    EXPECT_EQ(told(), i + 1);
  }
  EXPECT_EQ(answer(), result_reply("7"));
}

TEST_F(FanOuts, who_leaves_or_unsubscribes_meanwhile_is_told_nothing_and_not_counted) {
  subscribe(kCrowd);
  EXPECT_EQ(publisher.ask(request("rpc.publish", kSmallEvent)), "");
  subscribers[kCrowd - 1]->leave();
  EXPECT_EQ(subscribers[kCrowd - 2]->ask(request("rpc.unsubscribe", R"({"topic":"news"})")), result_reply("true"));
  subscribers[kCrowd - 3]->dispatcher->peer_ended();
  EXPECT_EQ(subscribers[kCrowd - 4]->ask(request("rpc.unsubscribe", R"({"topic":"news"})")), result_reply("true"));
  EXPECT_EQ(subscribers[kCrowd - 4]->ask(subscribing("news")), result_reply("true"));
  subscribers[kCrowd - 1]->connect();
  EXPECT_EQ(answer(), result_reply(std::to_string(kCrowd - 4)));
  for (std::size_t i = 1; i <= 4; ++i) EXPECT_EQ(subscribers[kCrowd - i]->received(), "") << i;
}

TEST_F(FanOuts, who_still_has_another_subscription_to_it_is_told) {
  subscribe(kCrowd);
  Client& last = *subscribers.back();
  EXPECT_EQ(last.ask(subscribing("*")), result_reply("true"));
  EXPECT_EQ(publisher.ask(request("rpc.publish", kSmallEvent)), "");
  EXPECT_EQ(last.ask(request("rpc.unsubscribe", R"({"topic":"news"})")), result_reply("true"));
  EXPECT_EQ(subscribers[kCrowd - 2]->ask(subscribing("news", R"(,"group":"g")")), result_reply("true"));
  EXPECT_EQ(answer(), result_reply(std::to_string(kCrowd)));
}

TEST_F(FanOuts, who_subscribes_meanwhile_is_told_nothing) {
  subscribe(kCrowd);
  EXPECT_EQ(publisher.ask(request("rpc.publish", kSmallEvent)), "");
  Client late{world};
  EXPECT_EQ(late.ask(subscribing("news")), result_reply("true"));
  tell_all();
  EXPECT_EQ(late.received(), "");
}

TEST_F(FanOuts, who_takes_too_little_when_its_turn_comes_learns_what_it_has_lost) {
  subscribe(kCrowd);
  EXPECT_EQ(publisher.ask(request("rpc.publish", kSmallEvent)), "");
  Client& last = *subscribers.back();
  last.sink->overfull = true;
  EXPECT_EQ(answer(), result_reply(std::to_string(kCrowd - 1)));
  last.sink->overfull = false;
  last.dispatcher->on_writable();
  EXPECT_EQ(last.received(), notification("rpc.lagged", R"({"topic":"news","dropped":1})"));
}

TEST_F(FanOuts, of_a_group_one_is_told_whoever_of_it_leaves_meanwhile) {
  subscribe(kCrowd);
  Client a{world};
  Client b{world};
  for (Client* one : {&a, &b}) EXPECT_EQ(one->ask(subscribing("news", R"(,"group":"g")")), result_reply("true"));
  EXPECT_EQ(publisher.ask(request("rpc.publish", kSmallEvent)), "");
  EXPECT_EQ(a.ask(request("rpc.unsubscribe", R"({"topic":"news"})")), result_reply("true"));
  EXPECT_EQ(answer(), result_reply(std::to_string(kCrowd)));
  EXPECT_EQ(b.received(), "");
}

TEST_F(FanOuts, a_publisher_that_leaves_has_published_it_all_the_same) {
  subscribe(kCrowd);
  publisher.send(notification("news", "[1]"));
  publisher.leave();
  while (world.scheduler.expire_one()) {
  }
  EXPECT_EQ(told(), kCrowd);
}

TEST_F(FanOuts, several_take_turns) {
  subscribe(kCrowd);
  Client other{world};
  other.sink->holds_input = true;
  Client third{world};
  EXPECT_EQ(third.ask(subscribing("few")), result_reply("true"));
  publisher.send(request("rpc.publish", kSmallEvent));
  other.send(request("rpc.publish", large_event("few", 2 * kBytesInTurn)));
  EXPECT_EQ(third.received(), "");
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(world.scheduler.expire_one());
  EXPECT_NE(third.received(), "");
  EXPECT_TRUE(is_held());
  EXPECT_EQ(answer(), result_reply(std::to_string(kCrowd)));
}

TEST_F(FanOuts, what_is_retained_is_so_at_once) {
  subscribe(kCrowd);
  EXPECT_EQ(publisher.ask(request("rpc.publish", R"({"topic":"news","params":[1],"retain":true})")), "");
  Client late{world};
  EXPECT_EQ(late.ask(subscribing("news", R"(,"last":true)")),
            result_reply("true") + "\n" + notification("news", "[1]"));
  EXPECT_EQ(answer(), result_reply(std::to_string(kCrowd)));
  EXPECT_EQ(late.received(), "");
}

TEST_F(FanOuts, announcements_before_many_keep_their_order) {
  subscribe(kCrowd, "rpc.method.registered");
  for (const auto& one : subscribers) EXPECT_EQ(one->ask(subscribing("rpc.method.unregistered")), result_reply("true"));
  publisher.provide("m");
  EXPECT_EQ(publisher.ask(request("rpc.unregister", R"({"method":"m"})")), result_reply("1"));
  EXPECT_LE(told(), kToldInTurn);
  EXPECT_FALSE(is_held());
  while (world.scheduler.expire_one()) {
  }
  const std::string params = R"({"client":null,"method":"m"})";
  for (const auto& one : subscribers)
    ASSERT_EQ(one->received(),
              notification("rpc.method.registered", params) + "\n" + notification("rpc.method.unregistered", params));
}

TEST_F(FanOuts, what_is_too_much_for_the_account_is_lost_by_who_has_not_been_told) {
  world.limits.principal_bytes = 10'000'000;
  subscribe(3);
  std::vector<std::unique_ptr<Client>> publishers;
  for (int i = 0; i < 3; ++i) {
    publishers.push_back(std::make_unique<Client>(world));
    publishers.back()->sink->holds_input = true;
    publishers.back()->send(
        notification("news", R"([")" + std::string(4'000'000 + 1000 * static_cast<std::size_t>(i), 'x') + "\"]"));
  }
  while (world.scheduler.expire_one()) {
  }
  for (const auto& one : subscribers) {
    EXPECT_EQ(one->sink->messages.size(), 3U);
    EXPECT_EQ(std::ranges::count(one->sink->messages, notification("rpc.lagged", R"({"topic":"news","dropped":1})")),
              1);
  }
}

TEST_F(FanOuts, a_broker_that_ends_meanwhile_tells_nothing_more) {
  subscribe(kCrowd);
  publisher.send(notification("news", "[1]"));
  EXPECT_LE(told(), kToldInTurn);
}

}  // namespace
}  // namespace wirecall
