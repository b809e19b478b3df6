// Durable topics: what is answered when, who is sent what again, what is given up, and what outlives a restart.
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "tests/broker/memory_store.hpp"
#include "tests/broker/world.hpp"

namespace wirecall {
namespace {

using test::cancel_notification;
using test::Client;
using test::error_reply;
using test::MemoryStore;
using test::notification;
using test::request;
using test::result_reply;
using test::World;
using namespace std::chrono_literals;

class DurableTopics : public testing::Test {
 protected:
  DurableTopics() { start(); }
  void start(std::vector<std::string> patterns = {"kept.>"}) {
    a.reset();
    b.reset();
    world.reset();
    auto made = std::make_unique<MemoryStore>(disk);
    store = made.get();
    world =
        std::make_unique<World>(Limits{}, broker::Settings{.durable_patterns = std::move(patterns)}, std::move(made));
    a = std::make_unique<Client>(*world);
    b = std::make_unique<Client>(*world);
  }
  std::string ask(Client& client, std::string_view method, std::string_view params) {
    client.send(request(method, params));
    store->commit();
    return client.received();
  }
  void publish(std::string_view topic, std::string_view params = "[1]") {
    ask(*a, "rpc.publish",
        R"({"topic":")" + std::string{topic} + R"(","params":)" + std::string{params} + R"(,"durable":true})");
  }
  // What the client is sent behind the answer.
  std::string join(Client& client, std::string_view more = {}) {
    const std::string answer =
        ask(client, "rpc.subscribe", R"({"topic":"orders.>","durable":"billing")" + std::string{more} + "}");
    EXPECT_TRUE(answer.starts_with(R"({"jsonrpc":"2.0","result":{"consumer":"billing")")) << answer;
    const std::size_t end = answer.find('\n');
    return end == std::string::npos ? std::string{} : answer.substr(end + 1);
  }
  static std::string event(std::string_view seq_and_delivery, std::string_view params = "[1]") {
    return R"({"jsonrpc":"2.0","method":"orders.new","params":)" + std::string{params} + R"(,"id":"billing:)" +
           std::string{seq_and_delivery} + "\"}";
  }
  void acknowledge(Client& client, std::string_view seq_and_delivery) {
    client.send(result_reply("null", "\"billing:" + std::string{seq_and_delivery} + "\""));
    store->commit();
  }
  void refuse(Client& client, std::string_view seq_and_delivery) {
    client.send(error_reply(7, "no", {}, "\"billing:" + std::string{seq_and_delivery} + "\""));
    store->commit();
  }

  static int count_of(const std::string& text, std::string_view word) {
    int count = 0;
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) ++count;
    return count;
  }

  MemoryStore::Disk disk;
  MemoryStore* store = nullptr;
  std::unique_ptr<World> world;
  std::unique_ptr<Client> a;
  std::unique_ptr<Client> b;
};

TEST_F(DurableTopics, a_publish_is_answered_once_it_is_safe) {
  EXPECT_EQ(a->ask(request("rpc.publish", R"({"topic":"orders.new","params":[1],"durable":true})")), "");
  store->commit();
  EXPECT_EQ(a->received(), result_reply(R"({"seq":1})"));
  EXPECT_EQ(disk.events.at(0).params, "[1]");
  EXPECT_EQ(ask(*a, "rpc.publish", R"(["orders.new",{"x":1},null,true])"), result_reply(R"({"seq":2})"));
}

TEST_F(DurableTopics, a_message_id_is_kept_once_and_told_to_nobody_again) {
  ask(*b, "rpc.subscribe", R"({"topic":"orders.new"})");
  const std::string publication = R"({"topic":"orders.new","params":[1],"durable":true,"msg_id":"x"})";
  EXPECT_EQ(ask(*a, "rpc.publish", publication), result_reply(R"({"seq":1})"));
  EXPECT_EQ(b->received(), notification("orders.new", "[1]"));
  EXPECT_EQ(ask(*a, "rpc.publish", publication), result_reply(R"({"seq":1,"duplicate":true})"));
  EXPECT_EQ(b->received(), "");
}

TEST_F(DurableTopics, what_is_retained_stays_so_where_its_publisher_goes_before_it_is_safe) {
  const auto publish_and_go = [&](std::string_view params) {
    a->send(
        request("rpc.publish", R"({"topic":"orders.new","durable":true,"retain":true)" + std::string{params} + "}"));
    a->leave();
    store->commit();
    a->connect();
  };
  const auto last = [&] {
    Client late{*world};
    return late.ask(request("rpc.subscribe", R"({"topic":"orders.new","last":true})"));
  };
  publish_and_go(R"(,"params":[1])");
  EXPECT_EQ(last(), result_reply("true") + "\n" + notification("orders.new", "[1]"));
  publish_and_go("");
  EXPECT_EQ(last(), result_reply("true"));
}

TEST_F(DurableTopics, what_the_disk_refuses_is_told_to_its_publisher_alone) {
  ask(*b, "rpc.subscribe", R"({"topic":"orders.new"})");
  disk.broken = "it is full";
  const std::string answer = ask(*a, "rpc.publish", R"({"topic":"orders.new","durable":true})");
  EXPECT_EQ(answer, error_reply(-32603, "Internal error", R"({"reason":"the durable store fails: it is full"})"));
  EXPECT_EQ(b->received(), "");
}

TEST_F(DurableTopics, a_plain_publish_is_as_ever_and_of_a_topic_that_is_kept_it_is_safe_when_it_is_answered) {
  ask(*b, "rpc.subscribe", R"({"topic":">"})");
  EXPECT_EQ(a->ask(request("rpc.publish", R"({"topic":"plain"})")), result_reply("1"));
  EXPECT_EQ(a->ask(request("rpc.publish", R"({"topic":"kept.a","params":[2]})")), "");
  store->commit();
  EXPECT_EQ(a->received(), result_reply("1"));
  a->send(notification("kept.b", "[3]"));
  store->commit();
  ASSERT_EQ(disk.events.size(), 2U);
  EXPECT_EQ(disk.events[1].topic, "kept.b");
  EXPECT_EQ(b->received(),
            notification("plain") + "\n" + notification("kept.a", "[2]") + "\n" + notification("kept.b", "[3]"));
}

TEST_F(DurableTopics, without_a_store_it_says_what_helps) {
  World plain;
  Client client{plain};
  const std::string refused = client.ask(request("rpc.publish", R"({"topic":"a","durable":true})"));
  EXPECT_NE(refused.find("needs_durable"), std::string::npos) << refused;
  EXPECT_EQ(client.ask(request("rpc.publish", R"({"topic":"a","durable":false})")), result_reply("0"));
  for (const auto& [method, params] : {std::pair{"rpc.subscribe", R"({"topic":"a","durable":"c"})"},
                                       std::pair{"rpc.durable.ls", "[]"}, std::pair{"rpc.durable.read", R"(["a"])"}})
    EXPECT_NE(client.ask(request(method, params)).find("needs_durable"), std::string::npos) << method;
}

TEST_F(DurableTopics, a_consumer_is_sent_each_event_as_a_request_and_goes_on_behind_what_it_has_acknowledged) {
  join(*b);
  publish("orders.new");
  publish("other");
  publish("orders.new", "[2]");
  EXPECT_EQ(b->received(), event("1:1") + "\n" + event("3:1", "[2]"));
  acknowledge(*b, "1:1");
  start();
  EXPECT_EQ(join(*b), event("3:1", "[2]"));
  acknowledge(*b, "3:1");
  start();
  EXPECT_EQ(join(*b), "");
  EXPECT_EQ(disk.consumers["billing"].floor, 3U);
}

TEST_F(DurableTopics, an_event_acknowledged_out_of_order_is_not_sent_again_after_a_restart) {
  join(*b);
  publish("orders.new");
  publish("orders.new", "[2]");
  static_cast<void>(b->received());
  acknowledge(*b, "2:1");
  start();
  EXPECT_EQ(join(*b), event("1:1"));
}

TEST_F(DurableTopics, a_new_consumer_begins_where_it_says) {
  publish("orders.new", "[1]");
  publish("orders.new", "[2]");
  const auto sent = [&](std::string_view more) {
    return ask(*b, "rpc.subscribe", R"({"topic":"orders.>","durable":)" + std::string{more} + "}");
  };
  EXPECT_NE(sent(R"("all","start":"first","max_in_flight":1)").find(R"("id":"all:1:1")"), std::string::npos);
  EXPECT_NE(sent(R"("second","start":2)").find(R"("id":"second:2:1")"), std::string::npos);
  EXPECT_EQ(sent(R"("new")"), result_reply(R"({"consumer":"new","position":2})"));
}

TEST_F(DurableTopics, an_error_has_it_sent_again_after_a_pause_that_doubles) {
  join(*b);
  publish("orders.new");
  static_cast<void>(b->received());
  refuse(*b, "1:1");
  EXPECT_EQ(b->received(), "");
  world->advance(100ms);
  EXPECT_EQ(b->received(), event("1:2"));
  refuse(*b, "1:2");
  world->advance(199ms);
  EXPECT_EQ(b->received(), "");
  world->advance(1ms);
  EXPECT_EQ(b->received(), event("1:3"));
}

TEST_F(DurableTopics, one_that_is_not_answered_in_time_is_cancelled_and_sent_again_and_a_late_result_counts) {
  join(*b, R"(,"ack_wait_ms":1000)");
  publish("orders.new");
  static_cast<void>(b->received());
  world->advance(999ms);
  EXPECT_EQ(b->received(), "");
  world->advance(1ms);
  EXPECT_EQ(b->received(), cancel_notification(R"("billing:1:1")") + "\n" + event("1:2"));
  acknowledge(*b, "1:1");
  world->advance(10s);
  EXPECT_EQ(b->received(), "");
  EXPECT_EQ(disk.consumers["billing"].floor, 1U);
}

TEST_F(DurableTopics, before_another_process_takes_over_what_is_at_work_ends_and_nothing_else_begins) {
  join(*b);
  publish("orders.new");
  EXPECT_EQ(b->received(), event("1:1"));
  EXPECT_FALSE(world->router.settle());
  publish("orders.new", "[2]");
  EXPECT_EQ(b->received(), "");
  acknowledge(*b, "1:1");
  EXPECT_EQ(b->received(), "");
  EXPECT_TRUE(world->router.settle());
  static_cast<void>(world->router.hand_over());
  publish("orders.new", "[3]");
  world->router.stay();
  store->commit();
  EXPECT_EQ(b->received(), event("2:1", "[2]") + "\n" + event("3:1", "[3]"));
}

TEST_F(DurableTopics, once_another_process_has_taken_over_what_needs_the_store_is_refused_undelivered) {
  static_cast<void>(world->router.settle());
  static_cast<void>(world->router.hand_over());
  world->router.replaced();
  store->resume();
  const std::string refused = ask(*a, "rpc.publish", R"({"topic":"orders.new","params":[1],"durable":true})");
  EXPECT_NE(refused.find("-32009"), std::string::npos) << refused;
  EXPECT_NE(refused.find(R"("delivered":"no")"), std::string::npos) << refused;
  EXPECT_TRUE(disk.events.empty());
}

TEST_F(DurableTopics, consumers_share_what_may_be_in_memory_and_all_read_in_the_end) {
  publish("orders.new", "[\"" + std::string(3'000'000, 'x') + "\"]");
  constexpr int kConsumers = 100;
  // Of one principal; with those of the reads that had begun.
  constexpr int kAtOnce = 64 * 1024 * 1024 / 3'000'000 + 8;
  std::deque<Client> clients;
  int read = 0;
  for (int i = 0; i != kConsumers; ++i)
    clients.emplace_back(*world).send(
        request("rpc.subscribe", R"({"topic":"orders.>","start":"first","durable":"c)" + std::to_string(i) + "\"}"));
  store->commit();
  for (Client& client : clients) read += count_of(client.received(), R"("method":"orders.new")");
  EXPECT_LE(read, kAtOnce);
  for (int round = 0; round != 5; ++round) {
    for (std::size_t i = 0; i != clients.size(); ++i)
      clients[i].send(result_reply("null", "\"c" + std::to_string(i) + ":1:1\""));
    store->commit();
  }
  for (const auto& [name, state] : disk.consumers) EXPECT_EQ(state.floor, 1U) << name;
}

TEST_F(DurableTopics, one_that_answers_nothing_holds_its_share_and_leaves_it_to_others_when_it_goes) {
  publish("orders.new", "[\"" + std::string(3'000'000, 'x') + "\"]");
  constexpr int kConsumers = 20;
  for (int i = 0; i != kConsumers; ++i)
    b->send(
        request("rpc.subscribe", R"({"topic":"orders.>","start":"first","durable":"c)" + std::to_string(i) + "\"}"));
  store->commit();
  const int sent = count_of(b->received(), R"("method":"orders.new")");
  EXPECT_GE(sent, 3);
  EXPECT_LE(sent, 3 + 8);  // with those of the reads that had begun
  for (int round = 0; round != kConsumers; ++round) {
    for (int i = 0; i != kConsumers; ++i) b->send(result_reply("null", "\"c" + std::to_string(i) + ":1:1\""));
    store->commit();
  }
  for (const auto& [name, state] : disk.consumers) EXPECT_EQ(state.floor, 1U) << name;
}

TEST_F(DurableTopics, what_nobody_has_joined_for_is_read_anew_when_somebody_does) {
  join(*b);
  for (const char* const params : {"[1]", "[2]", "[3]"}) publish("orders.new", params);
  acknowledge(*b, "2:1");
  b->leave();
  store->commit();
  EXPECT_NE(ask(*a, "rpc.durable.ls", "[]").find(R"("position":0,"pending":0,"members":0)"), std::string::npos);
  b->connect();
  EXPECT_EQ(join(*b), event("1:2") + "\n" + event("3:2", "[3]"));
}

TEST_F(DurableTopics, what_was_none_of_its_pattern_is_not_read_again_by_who_joins_next) {
  join(*b);
  for (int i = 0; i != 3; ++i) publish("other");
  b->leave();
  store->commit();
  EXPECT_EQ(disk.consumers["billing"].floor, 3U);
  b->connect();
  join(*b);
  for (int i = 0; i != 9'999; ++i) publish("other");
  EXPECT_EQ(disk.consumers["billing"].floor, 3U);
  publish("other");
  EXPECT_EQ(disk.consumers["billing"].floor, 10'003U);
}

TEST_F(DurableTopics, behind_one_that_is_never_answered_so_many_are_acknowledged_and_no_more) {
  join(*b, R"(,"max_in_flight":2)");
  publish("orders.new");
  static_cast<void>(b->received());
  int seq = 2;
  for (; seq != 10'010; ++seq) {
    publish("orders.new");
    if (b->received().empty()) break;
    acknowledge(*b, std::to_string(seq) + ":1");
  }
  EXPECT_EQ(seq, 10'002);
  EXPECT_EQ(disk.consumers["billing"].tried.size(), 10'000U);
  acknowledge(*b, "1:1");
  EXPECT_EQ(b->received(), event("10002:1"));
  EXPECT_EQ(disk.consumers["billing"].floor, 10'001U);
}

TEST_F(DurableTopics, one_that_lets_time_run_out_for_ever_fills_nothing_where_the_disk_is_slow) {
  join(*b, R"(,"ack_wait_ms":1,"max_deliver":0,"max_in_flight":1000)");
  for (int i = 0; i != 1000; ++i) publish("orders.new");
  for (int i = 0; i != 500; ++i) {
    world->advance(1ms);
    static_cast<void>(b->received());
  }
  EXPECT_GT(store->waiting(), 1000U);
  EXPECT_LE(store->waiting(), 65'537U);
}

TEST_F(DurableTopics, what_is_given_up_is_given_up_again_where_the_disk_has_not_taken_it) {
  join(*b, R"(,"max_deliver":1)");
  publish("orders.new");
  static_cast<void>(b->received());
  std::vector<std::string> lines;
  const LogSink log = [&](const LogRecord& record) { lines.emplace_back(record.message); };
  const LogSink* const before = std::exchange(world->loop_context.log, &log);
  disk.broken = "it is full";
  refuse(*b, "1:1");
  for (int i = 0; i != 3; ++i) {
    world->advance(1s);
    store->commit();
  }
  EXPECT_EQ(lines, std::vector<std::string>{"consumer billing gives up event 1 of orders.new after 1 deliveries"});
  EXPECT_EQ(disk.events.size(), 1U);
  disk.broken.clear();
  world->advance(1s);
  store->commit();
  EXPECT_EQ(b->received(), "");
  ASSERT_EQ(disk.events.size(), 2U);
  EXPECT_EQ(disk.events[1].topic, "dead.billing");
  EXPECT_EQ(disk.consumers["billing"].floor, 1U);
  world->loop_context.log = before;
}

TEST_F(DurableTopics, a_consumer_that_somebody_is_about_to_join_is_not_forgotten) {
  b->send(request("rpc.subscribe", R"({"topic":"orders.>","durable":"billing"})"));
  EXPECT_NE(a->ask(request("rpc.durable.forget", R"({"consumer":"billing"})")).find("-32007"), std::string::npos);
  store->commit();
  static_cast<void>(b->received());
  publish("orders.new");
  EXPECT_EQ(b->received(), event("1:1"));
}

TEST_F(DurableTopics, notifications_that_wait_for_the_disk_hold_no_more_than_they_may) {
  const std::string large = "[\"" + std::string(3'000'000, 'x') + "\"]";
  for (int i = 0; i != 40; ++i) a->send(notification("kept.a", large));
  EXPECT_EQ(store->waiting(), 64U * 1024 * 1024 / large.size());
  store->commit();
  a->send(notification("kept.a", "[1]"));
  store->commit();
  EXPECT_EQ(disk.events.back().params, "[1]");
}

TEST_F(DurableTopics, more_consumers_at_once_than_may_be_are_refused) {
  for (int i = 0; i != 4097; ++i) {
    b->send(request("rpc.subscribe", R"({"topic":"orders.>","durable":"c)" + std::to_string(i) + R"("})"));
  }
  store->commit();
  EXPECT_LE(disk.consumers.size(), 4096U);
}

TEST_F(DurableTopics, consumers_that_a_connection_is_about_to_join_count_as_those_that_it_has_joined) {
  world->limits.subscriptions = 3;
  const auto subscribe = [&](int number) {
    b->send(request("rpc.subscribe", R"({"topic":"orders.>","durable":"c)" + std::to_string(number) + "\"}"));
  };
  for (int i = 0; i != 5; ++i) subscribe(i);
  store->commit();
  EXPECT_EQ(disk.consumers.size(), 3U);
  EXPECT_EQ(count_of(b->received(), "-32005"), 2);
  EXPECT_EQ(ask(*b, "rpc.unsubscribe", R"({"topic":"orders.>","durable":"c0"})"), result_reply("true"));
  disk.broken = "it is full";
  subscribe(5);
  store->commit();
  disk.broken.clear();
  static_cast<void>(b->received());
  for (int i = 6; i != 8; ++i) subscribe(i);
  store->commit();
  EXPECT_EQ(disk.consumers.size(), 4U);
  EXPECT_EQ(count_of(b->received(), "-32005"), 1);
}

TEST_F(DurableTopics, who_leaves_leaves_what_he_was_sent_to_others) {
  join(*a);
  join(*b);
  Client publisher{*world};
  for (const char* const params : {"[1]", "[2]"})
    ask(publisher, "rpc.publish", R"({"topic":"orders.new","durable":true,"params":)" + std::string{params} + "}");
  EXPECT_EQ(a->received(), event("1:1"));
  EXPECT_EQ(b->received(), event("2:1", "[2]"));
  a->leave();
  store->commit();
  EXPECT_EQ(b->received(), event("1:2"));
}

TEST_F(DurableTopics, no_more_is_sent_than_may_be_in_flight_and_the_rest_is_read_later) {
  join(*b, R"(,"max_in_flight":2)");
  for (const char* const params : {"[1]", "[2]", "[3]", "[4]"}) publish("orders.new", params);
  EXPECT_EQ(b->received(), event("1:1") + "\n" + event("2:1", "[2]"));
  acknowledge(*b, "1:1");
  EXPECT_EQ(b->received(), event("3:1", "[3]"));
  acknowledge(*b, "2:1");
  EXPECT_EQ(b->received(), event("4:1", "[4]"));
}

TEST_F(DurableTopics, what_fails_too_often_is_kept_as_a_dead_letter) {
  join(*b, R"(,"max_deliver":2)");
  publish("orders.new");
  refuse(*b, "1:1");
  world->advance(100ms);
  refuse(*b, "1:2");
  world->advance(10s);
  ASSERT_EQ(disk.events.size(), 2U);
  EXPECT_EQ(disk.events[1].topic, "dead.billing");
  EXPECT_EQ(disk.events[1].params,
            R"({"topic":"orders.new","seq":1,"deliveries":2,"params":[1],"error":{"code":7,"message":"no"}})");
  EXPECT_EQ(disk.consumers["billing"].floor, 1U);
  const std::string dead = ask(*a, "rpc.durable.read", R"({"topic":"dead.>"})");
  EXPECT_NE(dead.find(R"("topic":"dead.billing")"), std::string::npos) << dead;
}

TEST_F(DurableTopics, an_event_that_no_consumer_could_be_sent_is_refused_and_a_job_that_no_provider_could) {
  world->limits.max_message_size = 2000;
  const std::string params = "[\"" + std::string(1750, 'x') + "\"]";
  for (const auto& [method, names] : {std::pair{"rpc.publish", R"("topic":"kept.a","durable":true)"},
                                      std::pair{"rpc.queue.push", R"("method":"a")"}}) {
    const std::string answer = ask(*a, method, "{" + std::string{names} + R"(,"params":)" + params + "}");
    EXPECT_NE(answer.find("-32006"), std::string::npos) << answer;
  }
  a->send(notification("kept.a", params));
  EXPECT_EQ(store->waiting(), 0U);
  EXPECT_EQ(world->loop_context.stats.events_dropped, 1U);
}

TEST_F(DurableTopics, a_dead_letter_is_no_larger_than_a_message_whatever_the_event_and_its_error_are) {
  join(*b, R"(,"max_deliver":1)");
  publish("orders.new");
  static_cast<void>(b->received());
  b->send(error_reply(7, std::string(100'000, 'x'), {}, "\"billing:1:1\""));
  store->commit();
  EXPECT_EQ(disk.events.at(1).params,
            R"({"topic":"orders.new","seq":1,"deliveries":1,"params":[1],)"
            R"("error":{"code":7,"message":"The consumer's error is too large to be kept"}})");
  world->limits.max_message_size = 2000;
  publish("orders.new", "[\"" + std::string(1600, 'x') + "\"]");
  static_cast<void>(b->received());
  b->send(error_reply(7, std::string(500, 'y'), {}, "\"billing:3:1\""));
  store->commit();
  EXPECT_TRUE(disk.events.at(3).params.starts_with(
      R"({"topic":"orders.new","seq":3,"deliveries":1,"error":{"code":7,"message":"yyy)"))
      << disk.events.at(3).params;
}

TEST_F(DurableTopics, deliveries_that_failed_count_after_a_restart) {
  join(*b, R"(,"max_deliver":2)");
  publish("orders.new");
  refuse(*b, "1:1");
  start();
  EXPECT_EQ(join(*b, R"(,"max_deliver":2)"), event("1:2"));
  refuse(*b, "1:2");
  EXPECT_EQ(disk.events.size(), 2U);
}

TEST_F(DurableTopics, nobody_else_acknowledges_what_a_member_was_sent) {
  join(*b);
  publish("orders.new");
  acknowledge(*a, "1:1");
  EXPECT_EQ(a->dropped, 1U);
  EXPECT_EQ(disk.consumers["billing"].floor, 0U);
  acknowledge(*b, "1:7");
  acknowledge(*b, "9:1");
  EXPECT_EQ(disk.consumers["billing"].floor, 0U);
}

TEST_F(DurableTopics, an_event_costs_the_consumers_of_its_topic_however_many_others_there_are) {
  const auto subscribe = [&](const std::string& topic, const std::string& name) {
    ask(*b, "rpc.subscribe", R"({"topic":")" + topic + R"(","durable":")" + name + "\"}");
  };
  for (int i = 0; i != 300; ++i) subscribe("other.a" + std::to_string(i) + ".*", "c" + std::to_string(i));
  subscribe("orders.*", "one");
  subscribe("orders.new", "two");
  const std::uint64_t before = world->router.durable_topics().looked_at();
  for (int i = 0; i != 100; ++i) publish("orders.new");
  EXPECT_EQ(world->router.durable_topics().looked_at() - before, 100U * (2 + 1));
  EXPECT_EQ(count_of(b->received(), R"("method":"orders.new")"), 2 * 64);  // as many as may be in flight
  publish("other.a7.x");
  EXPECT_NE(b->received().find(R"("id":"c7:101:1")"), std::string::npos);
}

TEST_F(DurableTopics, one_of_which_there_was_no_room_for_an_event_reads_it_later_and_misses_none) {
  join(*b, R"(,"max_in_flight":1)");
  publish("orders.new");
  publish("other");
  publish("orders.new", "[2]");
  publish("other");
  EXPECT_EQ(b->received(), event("1:1"));
  acknowledge(*b, "1:1");
  EXPECT_EQ(b->received(), event("3:1", "[2]"));
  acknowledge(*b, "3:1");
  publish("other");
  publish("orders.new", "[3]");
  EXPECT_EQ(b->received(), event("6:1", "[3]"));
  acknowledge(*b, "6:1");
  EXPECT_EQ(disk.consumers["billing"].floor, 6U);
}

TEST_F(DurableTopics, as_many_shapes_of_long_patterns_as_an_event_may_cost_have_consumers_and_no_more) {
  int refused = 0;
  for (int i = 0; i != 1000; ++i) {
    std::string topic = "a";
    for (int word = 0; word != 10; ++word) topic += (i >> word & 1) != 0 ? ".*" : ".a";
    const std::string params = R"({"topic":")" + topic + R"(","durable":"c)" + std::to_string(i) + "\"}";
    refused += count_of(ask(*b, "rpc.subscribe", params), "subscription_steps");
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 500);
  EXPECT_EQ(disk.consumers.size(), 1000U - static_cast<unsigned>(refused));
}

TEST_F(DurableTopics, what_has_been_tried_is_read_once_however_often_a_consumer_is_joined) {
  join(*b);
  for (int i = 0; i != 3; ++i) publish("orders.new");
  acknowledge(*b, "2:1");
  acknowledge(*b, "3:1");
  start();
  const std::string joins = request("rpc.subscribe", R"({"topic":"orders.>","durable":"billing"})");
  for (int i = 0; i != 100; ++i) b->send(joins);
  store->commit();
  for (int i = 0; i != 100; ++i) b->send(joins);
  store->commit();
  EXPECT_EQ(store->tried_read, 2U);
  EXPECT_EQ(count_of(b->received(), R"("method":"orders.new")"), 1);
  b->leave();
  store->commit();
  disk.broken = "it is full";
  a->send(joins);
  b->connect();
  b->send(joins);
  store->commit_one();
  disk.broken.clear();
  store->commit();
  EXPECT_EQ(store->tried_read, 2U + 3U);  // the first one was lost with the connection
  EXPECT_EQ(count_of(b->received(), R"("method":"orders.new")"), 1);
}

TEST_F(DurableTopics, a_late_result_counts_where_the_event_is_at_another_member_meanwhile) {
  join(*b, R"(,"ack_wait_ms":1000)");
  publish("orders.new");
  static_cast<void>(b->received());
  join(*a, R"(,"ack_wait_ms":1000)");
  world->advance(1s);
  EXPECT_EQ(a->received(), event("1:2"));
  refuse(*b, "1:1");
  EXPECT_EQ(disk.consumers["billing"].floor, 0U);
  acknowledge(*b, "1:1");
  EXPECT_EQ(disk.consumers["billing"].floor, 1U);
}

TEST_F(DurableTopics, an_answer_by_a_connection_that_was_not_sent_the_event_acknowledges_nothing) {
  join(*a);
  publish("orders.new");
  static_cast<void>(a->received());
  join(*b);
  acknowledge(*b, "1:1");
  EXPECT_EQ(disk.consumers["billing"].floor, 0U);
  a->leave();
  store->commit();
  EXPECT_EQ(b->received(), event("1:2"));
  a->connect();
  join(*a);
  acknowledge(*a, "1:1");  // of the connection before
  EXPECT_EQ(disk.consumers["billing"].floor, 0U);
  acknowledge(*b, "1:2");
  EXPECT_EQ(disk.consumers["billing"].floor, 1U);
}

TEST_F(DurableTopics, who_unsubscribes_is_sent_no_more_and_may_answer_what_it_has) {
  join(*b);
  publish("orders.new");
  static_cast<void>(b->received());
  EXPECT_EQ(ask(*b, "rpc.unsubscribe", R"({"topic":"orders.>","durable":"billing"})"), result_reply("true"));
  publish("orders.new", "[2]");
  EXPECT_EQ(b->received(), "");
  acknowledge(*b, "1:1");
  EXPECT_EQ(disk.consumers["billing"].floor, 1U);
  EXPECT_EQ(join(*a), event("2:1", "[2]"));
}

TEST_F(DurableTopics, a_consumer_is_forgotten_once_nobody_has_joined_it) {
  join(*b);
  const std::string refused = ask(*a, "rpc.durable.forget", R"({"consumer":"billing"})");
  EXPECT_NE(refused.find("-32007"), std::string::npos) << refused;
  b->leave();
  EXPECT_EQ(ask(*a, "rpc.durable.forget", R"({"consumer":"billing"})"), result_reply("true"));
  EXPECT_TRUE(disk.consumers.empty());
  EXPECT_NE(ask(*a, "rpc.durable.forget", R"({"consumer":"billing"})").find("there is no consumer"), std::string::npos);
}

TEST_F(DurableTopics, the_listing_tells_how_far_consumers_are) {
  join(*b);
  publish("orders.new");
  const std::string listing = ask(*a, "rpc.durable.ls", "[]");
  EXPECT_NE(listing.find(R"({"name":"billing","topic":"orders.>","position":0,"pending":1,"members":1)"),
            std::string::npos)
      << listing;
}

TEST_F(DurableTopics, wrong_params_are_refused_with_what_is_expected) {
  const auto expected = [&](std::string_view params, std::string_view words) {
    const std::string answer = ask(*b, "rpc.subscribe", params);
    EXPECT_NE(answer.find("-32602"), std::string::npos) << answer;
    EXPECT_NE(answer.find(words), std::string::npos) << answer;
  };
  expected(R"({"topic":"a","durable":"a b"})", "letters");
  expected(R"({"topic":"a..b","durable":"c"})", "words between dots");
  expected(R"({"topic":"a","durable":"c","start":"later"})", "first");
  expected(R"({"topic":"a","durable":"c","max_in_flight":0})", "number from 1");
  expected(R"({"topic":"a","durable":"c","group":"g"})", "no consumer together");
  EXPECT_NE(ask(*b, "rpc.publish", R"({"topic":"a","durable":true,"params":1})").find("array or object"),
            std::string::npos);
}

TEST_F(DurableTopics, a_publish_by_name_written_with_escapes_is_durable_all_the_same) {
  EXPECT_EQ(ask(*a, "rpc.publish", R"({"topic":"a","d\u0075rable":true})"), result_reply(R"({"seq":1})"));
}

}  // namespace
}  // namespace wirecall
