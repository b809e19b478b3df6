// Events: who is told, what is kept, what a slow subscriber loses, and what the broker itself tells.
#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>
#include <string>

#include "tests/broker/world.hpp"

namespace wirecall {
namespace {

using test::Client;
using test::error_reply;
using test::notification;
using test::request;
using test::result_reply;
using test::World;

class Events : public testing::Test {
 protected:
  static void subscribe(Client& client, std::string_view params) {
    EXPECT_EQ(client.ask(request("rpc.subscribe", params)), result_reply("true"));
  }
  World world;
  Client publisher{world};
  Client a{world};
  Client b{world};
};

TEST_F(Events, a_notification_reaches_all_who_subscribe_to_its_name_as_it_was_written) {
  subscribe(a, R"({"topic":"news"})");
  subscribe(b, R"(["*"])");
  publisher.send(R"({ "jsonrpc":"2.0", "method":"news","params":[1.50], "x":1 })");
  EXPECT_EQ(a.received(), R"({ "jsonrpc":"2.0", "method":"news","params":[1.50], "x":1 })");
  EXPECT_EQ(b.received(), R"({ "jsonrpc":"2.0", "method":"news","params":[1.50], "x":1 })");
  publisher.send(R"({"from":"me","jsonrpc":"2.0","method":"n\u0065ws","to":"a"})");
  EXPECT_EQ(a.received(), R"({"jsonrpc":"2.0","method":"n\u0065ws"})");
  EXPECT_EQ(publisher.received(), "");
}

TEST_F(Events, publish_says_how_many_it_was_queued_to) {
  EXPECT_EQ(publisher.ask(request("rpc.publish", R"({"topic":"news","params":{"a":1}})")), result_reply("0"));
  subscribe(a, R"({"topic":"news"})");
  subscribe(b, R"({"topic":"*"})");
  EXPECT_EQ(publisher.ask(request("rpc.publish", R"({"topic":"news","params":{"a":1}})")), result_reply("2"));
  EXPECT_EQ(a.received(), notification("news", R"({"a":1})"));
  EXPECT_EQ(publisher.ask(request("rpc.publish", R"({"topic":"news"})")), result_reply("2"));
  EXPECT_EQ(a.received(), notification("news"));
  EXPECT_EQ(publisher.ask(notification("rpc.publish", R"({"topic":"news"})")), "");
  EXPECT_EQ(a.received(), notification("news"));
}

TEST_F(Events, publish_reaches_no_provider_and_a_notification_one_provider_as_well) {
  a.provide("work");
  subscribe(b, R"({"topic":"work"})");
  EXPECT_EQ(publisher.ask(request("rpc.publish", R"({"topic":"work"})")), result_reply("1"));
  EXPECT_EQ(a.received(), "");
  EXPECT_EQ(b.received(), notification("work"));
  publisher.send(notification("work"));
  EXPECT_EQ(a.received(), notification("work"));
  EXPECT_EQ(b.received(), notification("work"));
}

TEST_F(Events, a_provider_that_subscribes_to_its_own_name_is_told_once) {
  a.provide("work");
  subscribe(a, R"({"topic":">"})");
  publisher.send(notification("work", "[1]"));
  EXPECT_EQ(a.received(), notification("work", "[1]"));
  publisher.send(notification("work", "[2]"));
  EXPECT_EQ(a.received(), notification("work", "[2]"));
}

TEST_F(Events, a_method_of_the_servers_own_is_called_and_told_of) {
  int calls = 0;
  world.registry.method("own", [&] { ++calls; });
  subscribe(a, R"({"topic":"own"})");
  publisher.send(notification("own"));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(a.received(), notification("own"));
}

TEST_F(Events, who_publishes_is_told_of_it_only_by_echo) {
  subscribe(publisher, R"({"topic":"news"})");
  publisher.send(notification("news"));
  EXPECT_EQ(publisher.received(), "");
  subscribe(publisher, R"({"topic":"news","echo":true})");
  publisher.send(notification("news"));
  EXPECT_EQ(publisher.received(), notification("news"));
}

TEST_F(Events, one_of_a_group_is_told) {
  subscribe(a, R"({"topic":"news","group":"g"})");
  subscribe(b, R"({"topic":"news","group":"g"})");
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(publisher.ask(request("rpc.publish", R"({"topic":"news"})")), result_reply("1"));
  EXPECT_EQ(a.received(), notification("news") + "\n" + notification("news"));
  EXPECT_EQ(b.received(), notification("news") + "\n" + notification("news"));
}

TEST_F(Events, unsubscribing_ends_it_and_again_is_an_error) {
  subscribe(a, R"({"topic":"news"})");
  EXPECT_EQ(a.ask(request("rpc.unsubscribe", R"({"topic":"news"})")), result_reply("true"));
  publisher.send(notification("news"));
  EXPECT_EQ(a.received(), "");
  EXPECT_NE(a.ask(request("rpc.unsubscribe", R"({"topic":"news"})")).find("-32008"), std::string::npos);
}

TEST_F(Events, topics_that_cannot_be_are_refused) {
  for (const std::string topic : {"", "a b", "a..b", "a.*", ">", "rpc.client.joined", "$/x"})
    EXPECT_NE(publisher.ask(request("rpc.publish", R"({"topic":")" + topic + "\"}")).find("-32602"), std::string::npos)
        << topic;
  for (const std::string topic : {"", "a b", "a..b", "a*", ">.a"})
    EXPECT_NE(a.ask(request("rpc.subscribe", R"({"topic":")" + topic + "\"}")).find("-32602"), std::string::npos)
        << topic;
  for (const std::string params : {"1", "\"x\"", "true"})
    EXPECT_NE(publisher.ask(request("rpc.publish", R"({"topic":"a","params":)" + params + "}")).find("-32602"),
              std::string::npos);
  publisher.send(notification("rpc.client.joined", R"({"client":"x"})"));
  subscribe(a, R"({"topic":"rpc.client.joined"})");
  publisher.send(notification("rpc.client.joined", R"({"client":"x"})"));
  EXPECT_EQ(a.received(), "");
}

// ---- what is kept ----

TEST_F(Events, who_asks_for_the_last_is_sent_it_after_the_answer) {
  EXPECT_EQ(publisher.ask(request("rpc.publish", R"({"topic":"roof.temp","params":[1],"retain":true})")),
            result_reply("0"));
  static_cast<void>(publisher.ask(request("rpc.publish", R"({"topic":"roof.temp","params":[2],"retain":true})")));
  static_cast<void>(publisher.ask(request("rpc.publish", R"({"topic":"roof.hum","params":[3],"retain":true})")));
  EXPECT_EQ(a.ask(request("rpc.subscribe", R"({"topic":"roof.*","last":true})")),
            result_reply("true") + "\n" + notification("roof.hum", "[3]") + "\n" + notification("roof.temp", "[2]"));
  subscribe(b, R"({"topic":"roof.*"})");
  static_cast<void>(publisher.ask(request("rpc.publish", R"({"topic":"roof.temp","retain":true})")));
  EXPECT_EQ(a.received(), "");
  b.leave();
  b.connect();
  EXPECT_EQ(b.ask(request("rpc.subscribe", R"({"topic":"roof.temp","last":true})")), result_reply("true"));
}

TEST_F(Events, what_is_kept_comes_as_it_is_taken_and_then_what_is_new) {
  for (int i = 0; i < 9; ++i)
    EXPECT_EQ(publisher.ask(request("rpc.publish",
                                    R"({"topic":"state.)" + std::to_string(i) + R"(","params":[1],"retain":true})")),
              result_reply("0"));
  a.sink->overfull_from = 4;
  a.send(request("rpc.subscribe", R"({"topic":"state.*","last":true})"));
  const auto event = [](int i, int value) {
    return notification("state." + std::to_string(i), "[" + std::to_string(value) + "]");
  };
  EXPECT_EQ(a.received(), result_reply("true") + "\n" + event(0, 1) + "\n" + event(1, 1) + "\n" + event(2, 1));
  // What is retained meanwhile comes in its turn, what is not is lost and told.
  EXPECT_EQ(publisher.ask(request("rpc.publish", R"({"topic":"state.5","params":[2],"retain":true})")),
            result_reply("1"));
  publisher.send(notification("state.0", "[3]"));
  a.dispatcher->on_writable();
  EXPECT_EQ(a.received(), event(3, 1) + "\n" + event(4, 1) + "\n" + event(5, 2) + "\n" + event(6, 1));
  a.dispatcher->on_writable();
  const std::string last = a.received();
  EXPECT_TRUE(last.starts_with(event(7, 1) + "\n" + event(8, 1) + "\n")) << last;
  EXPECT_TRUE(last.ends_with("\n" + notification("rpc.lagged", R"({"topic":"state.0","dropped":1})"))) << last;
  EXPECT_EQ(publisher.ask(request("rpc.publish", R"({"topic":"state.0","params":[4]})")), result_reply("1"));
  EXPECT_EQ(a.received(), event(0, 4));
}

TEST_F(Events, what_is_kept_does_not_come_to_who_has_unsubscribed) {
  for (const char* const topic : {"a.1", "a.2"})
    publisher.send(
        notification("rpc.publish", R"({"topic":")" + std::string{topic} + R"(","params":[1],"retain":true})"));
  a.sink->overfull = true;
  EXPECT_EQ(a.ask(request("rpc.subscribe", R"({"topic":"a.*","last":true})")), result_reply("true"));
  EXPECT_EQ(a.ask(request("rpc.unsubscribe", R"(["a.*"])")), result_reply("true"));
  a.sink->overfull = false;
  a.dispatcher->on_writable();
  EXPECT_EQ(a.received(), "");
}

std::string retained(std::string_view topic, int value) {
  return notification("rpc.publish", R"({"topic":")" + std::string{topic} + R"(","params":[)" + std::to_string(value) +
                                         R"(],"retain":true})");
}

class Kept : public Events {
 protected:
  static constexpr int kTopics = 3000;
  static constexpr std::uint64_t kStepsOfATurn = 1024 + 2;

  Kept() {
    for (int i = 0; i < kTopics; ++i) publisher.send(retained(topic(i), i));
  }
  // In the order of their names.
  static std::string topic(int i) { return "a.b.c" + std::to_string(10'000 + i); }
  std::uint64_t steps() const { return world.router.event_steps(); }
};

TEST_F(Kept, is_looked_for_in_pieces_whatever_is_asked_for_at_once) {
  std::uint64_t before = steps();
  for (int i = 0; i < 200; ++i)
    a.send(request("rpc.subscribe", R"({"topic":"*.*.zzz)" + std::to_string(i) + R"(","last":true})"));
  EXPECT_LE(steps() - before, kStepsOfATurn);
  std::uint64_t turns = 0;
  for (before = steps(); world.scheduler.expire_one(); before = steps(), ++turns) {
    ASSERT_LE(steps() - before, kStepsOfATurn);
    EXPECT_EQ(b.ask(request("rpc.ping")), result_reply("\"pong\"")) << "others are served meanwhile";
  }
  EXPECT_GE(turns, 200U * kTopics / kStepsOfATurn - 1);
  EXPECT_LE(turns, 200U * kTopics * 128 / 127 / 1024 + 3);
  EXPECT_EQ(world.scheduler.running(), 0U);
}

TEST_F(Kept, is_looked_for_once_where_the_same_is_asked_for_again_meanwhile) {
  const std::uint64_t before = steps();
  for (int i = 0; i < 200; ++i) a.send(request("rpc.subscribe", R"({"topic":"*.*.zzz","last":true})"));
  world.advance(std::chrono::nanoseconds{0});
  EXPECT_LE(steps() - before, kTopics + kTopics / 64U);
}

TEST_F(Kept, begins_where_the_pattern_has_its_first_wildcard) {
  publisher.send(retained("x.y.z", 7));
  const std::uint64_t before = steps();
  EXPECT_EQ(a.ask(request("rpc.subscribe", R"({"topic":"x.y.*","last":true})")),
            result_reply("true") + "\n" + notification("x.y.z", "[7]"));
  EXPECT_LE(steps() - before, 3U);
}

TEST_F(Kept, comes_before_what_is_published_meanwhile_and_each_once) {
  a.send(request("rpc.subscribe", R"({"topic":">","last":true})"));
  EXPECT_TRUE(a.received().starts_with(result_reply("true") + "\n" + notification(topic(0), "[0]")));
  publisher.send(notification("live", "[1]"));
  publisher.send(retained(topic(kTopics - 1), -1));  // whose turn has not come
  publisher.send(retained(topic(0), -2));            // whose turn is over
  EXPECT_EQ(a.received(), "");
  std::string all;
  while (world.scheduler.expire_one()) all += a.received() + "\n";
  const std::string end = notification(topic(kTopics - 2), "[" + std::to_string(kTopics - 2) + "]") + "\n" +
                          notification(topic(kTopics - 1), "[-1]") + "\n" + notification("live", "[1]") + "\n" +
                          notification(topic(0), "[-2]");
  while (all.ends_with('\n')) all.pop_back();
  EXPECT_TRUE(all.ends_with(end)) << all.substr(all.size() - std::min<std::size_t>(all.size(), 400));
  publisher.send(notification("live", "[2]"));
  EXPECT_EQ(a.received(), notification("live", "[2]"));
}

TEST_F(Kept, what_is_published_meanwhile_is_kept_for_who_unsubscribes_from_the_rest) {
  subscribe(a, R"({"topic":"live"})");
  a.send(request("rpc.subscribe", R"({"topic":"a.>","last":true})"));
  static_cast<void>(a.received());
  publisher.send(notification("live", "[1]"));
  EXPECT_EQ(a.ask(request("rpc.unsubscribe", R"(["a.>"])")), result_reply("true"));
  world.advance(std::chrono::nanoseconds{0});
  EXPECT_EQ(a.received(), notification("live", "[1]"));
}

TEST_F(Kept, is_not_waited_for_without_end) {
  a.send(request("rpc.subscribe", R"({"topic":">","last":true})"));
  const std::string text = R"([")" + std::string(1000, 'x') + R"("])";
  for (int i = 0; i < 100; ++i) publisher.send(notification("live", text));
  std::string all;
  while (world.scheduler.expire_one()) all += a.received();
  EXPECT_NE(all.find(R"("method":"live")"), std::string::npos);
  EXPECT_NE(all.find(R"("method":"rpc.lagged","params":{"topic":"live","dropped":)"), std::string::npos);
  publisher.send(notification("live", "[2]"));
  EXPECT_EQ(a.received(), notification("live", "[2]")) << "it lost some, and was never without room";
}

TEST_F(Kept, is_forgotten_with_who_asked_for_it) {
  a.send(request("rpc.subscribe", R"({"topic":"*.*.zzz","last":true})"));
  b.send(request("rpc.subscribe", R"({"topic":"a.b.*","last":true})"));
  a.leave();
  world.advance(std::chrono::nanoseconds{0});
  EXPECT_NE(b.received().find(topic(kTopics - 1)), std::string::npos);
}

TEST_F(Events, one_of_a_group_that_takes_too_little_leaves_them_to_others) {
  for (Client* member : {&a, &b})
    EXPECT_EQ(member->ask(request("rpc.subscribe", R"({"topic":"work","group":"g"})")), result_reply("true"));
  a.sink->overfull = true;
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(publisher.ask(request("rpc.publish", R"({"topic":"work"})")), result_reply("1"));
  EXPECT_EQ(a.received(), "");
  EXPECT_EQ(b.sink->messages.size(), 4U);
  b.sink->overfull = true;
  EXPECT_EQ(publisher.ask(request("rpc.publish", R"({"topic":"work"})")), result_reply("0"));
}

TEST_F(Events, what_is_kept_is_bounded) {
  World small{Limits{.retained_bytes = 1000}};
  Client client{small};
  const std::string big = R"({"topic":"a","params":[")" + std::string(500, 'x') + R"("],"retain":true})";
  const std::string more = R"({"topic":"b","params":[")" + std::string(500, 'x') + R"("],"retain":true})";
  EXPECT_EQ(client.ask(request("rpc.publish", big)), result_reply("0"));
  EXPECT_EQ(client.ask(request("rpc.publish", big)), result_reply("0"));
  EXPECT_NE(client.ask(request("rpc.publish", more)).find(R"("limit":"retained_bytes")"), std::string::npos);
  EXPECT_EQ(client.ask(request("rpc.publish", R"({"topic":"a","retain":true})")), result_reply("0"));
  EXPECT_EQ(client.ask(request("rpc.publish", more)), result_reply("0"));
}

TEST_F(Events, what_the_subscriptions_of_a_connection_hold_is_bounded) {
  World small{Limits{.subscription_bytes = 1000}};
  Client client{small};
  const auto ask = [&](char first) {
    return client.ask(request("rpc.subscribe", R"({"topic":")" + std::string(200, first) + R"(.*"})"));
  };
  EXPECT_EQ(ask('a'), result_reply("true"));
  EXPECT_EQ(ask('b'), result_reply("true"));
  EXPECT_NE(ask('c').find(R"("limit":"subscription_bytes")"), std::string::npos);
  EXPECT_EQ(client.ask(request("rpc.unsubscribe", R"([")" + std::string(200, 'a') + R"(.*"])")), result_reply("true"));
  EXPECT_EQ(ask('c'), result_reply("true"));
}

TEST_F(Events, patterns_that_would_cost_every_event_too_much_are_refused_and_others_always_match) {
  std::string reply = result_reply("true");
  int admitted = 0;
  for (unsigned stars = 1; reply == result_reply("true") && stars < 4096; ++stars, ++admitted) {
    std::string pattern = "w";
    for (unsigned i = 0; i < 12; ++i) pattern += (stars >> i & 1) != 0 ? ".*" : ".w";
    reply = a.ask(request("rpc.subscribe", R"({"topic":")" + pattern + R"("})"));
  }
  EXPECT_NE(reply.find(R"("code":-32005)"), std::string::npos) << reply;
  EXPECT_NE(reply.find(R"("limit":"subscription_steps")"), std::string::npos) << reply;
  EXPECT_GE(admitted, 30);
  subscribe(a, R"({"topic":"few.*.words"})");
  subscribe(b, R"({"topic":"w.w.w.w.w.w.w.w.w.w.w.w.*"})");
  EXPECT_EQ(publisher.ask(request("rpc.publish", R"({"topic":"w.w.w.w.w.w.w.w.w.w.w.w.w"})")), result_reply("2"));
}

TEST_F(Events, subscriptions_of_a_connection_are_bounded) {
  World small{Limits{.subscriptions = 2}};
  Client client{small};
  subscribe(client, R"(["a"])");
  subscribe(client, R"(["b"])");
  EXPECT_NE(client.ask(request("rpc.subscribe", R"(["c"])")).find(R"("limit":"subscriptions")"), std::string::npos);
}

// ---- slow subscribers ----

TEST_F(Events, a_subscriber_that_takes_too_little_learns_how_much_it_has_lost) {
  subscribe(a, R"({"topic":">"})");
  subscribe(b, R"({"topic":">"})");
  a.sink->overfull = true;
  for (int i = 0; i < 3; ++i) publisher.send(notification("x"));
  a.sink->overfull = false;
  // It is told in order: nothing new before it knows what it has missed.
  EXPECT_EQ(publisher.ask(request("rpc.publish", R"({"topic":"y"})")), result_reply("1"));
  EXPECT_EQ(a.received(), "");
  a.dispatcher->on_writable();
  EXPECT_EQ(a.received(), notification("rpc.lagged", R"({"topic":"x","dropped":3})") + "\n" +
                              notification("rpc.lagged", R"({"topic":"y","dropped":1})"));
  publisher.send(notification("x"));
  EXPECT_EQ(a.received(), notification("x"));
  EXPECT_EQ(b.received(), notification("x") + "\n" + notification("x") + "\n" + notification("x") + "\n" +
                              notification("y") + "\n" + notification("x"));
}

TEST_F(Events, what_is_remembered_of_lost_events_is_bounded) {
  subscribe(a, R"({"topic":">"})");
  a.sink->overfull = true;
  for (int i = 0; i < 1000; ++i) publisher.send(notification("t" + std::to_string(i)));
  a.sink->overfull = false;
  a.dispatcher->on_writable();
  const std::string lagged = a.received();
  EXPECT_LE(std::ranges::count(lagged, '\n'), 64);
  EXPECT_NE(lagged.find(R"({"topic":">","dropped":937})"), std::string::npos) << lagged;
}

// ---- what the broker tells ----

TEST_F(Events, who_comes_and_goes_and_what_is_provided_are_topics) {
  subscribe(a, R"({"topic":"rpc.>"})");
  static_cast<void>(b.ask(request("rpc.hello", R"({"name":"bee"})")));
  EXPECT_EQ(a.received(), notification("rpc.client.joined", R"({"client":"bee"})"));
  b.provide("work");
  EXPECT_EQ(a.received(), notification("rpc.method.registered", R"({"client":"bee","method":"work"})"));
  static_cast<void>(b.ask(request("rpc.unregister", R"(["work"])")));
  EXPECT_EQ(a.received(), notification("rpc.method.unregistered", R"({"client":"bee","method":"work"})"));
  b.provide("play");
  static_cast<void>(a.received());
  b.leave();
  EXPECT_EQ(a.received(), notification("rpc.method.unregistered", R"({"client":"bee","method":"play"})") + "\n" +
                              notification("rpc.client.left", R"({"client":"bee"})"));
}

}  // namespace
}  // namespace wirecall
