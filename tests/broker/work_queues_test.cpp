// Work queues: jobs wait for a provider, are made as calls, tried again, given up, and outlive a restart.
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "tests/broker/memory_store.hpp"
#include "tests/broker/world.hpp"

namespace wirecall {
namespace {

using test::Client;
using test::error_reply;
using test::id_of;
using test::MemoryStore;
using test::notification;
using test::request;
using test::result_reply;
using test::World;
using namespace std::chrono_literals;

class WorkQueues : public testing::Test {
 protected:
  WorkQueues() { start(); }
  void start() {
    caller.reset();
    worker.reset();
    world.reset();
    auto made = std::make_unique<MemoryStore>(disk);
    store = made.get();
    world = std::make_unique<World>(Limits{}, broker::Settings{.durable_patterns = {"queue.dead.>"}}, std::move(made));
    caller = std::make_unique<Client>(*world);
    worker = std::make_unique<Client>(*world);
    world->advance(1ms);  // jobs of before are looked for
    store->commit();
  }
  std::string ask(Client& client, std::string_view method, std::string_view params) {
    client.send(request(method, params));
    store->commit();
    return client.received();
  }
  std::string push(std::string_view params) { return ask(*caller, "rpc.queue.push", params); }
  void provide(std::string_view terms = {}) {
    worker->send(request("rpc.register", R"({"method":"work")" + std::string{terms} + "}"));
    EXPECT_TRUE(worker->received().starts_with(result_reply("1")));
    store->commit();
  }
  void advance(std::chrono::milliseconds by) {
    disk.now += by.count();
    world->advance(by);
    store->commit();
  }
  // What the worker has been asked, as its params; remembers the id, and the time that it has.
  std::string asked() {
    const std::string text = worker->received();
    if (text.empty()) return text;
    id = id_of(text);
    const std::size_t at = text.find(R"("params":)");
    const std::size_t end = text.find(R"(,"timeout_ms":)");
    timeout = text.substr(end, text.find(R"(,"id")") - end);
    return text.substr(at + 9, end - at - 9);
  }
  void answer(std::string_view result) {
    worker->send(result_reply(result, id));
    store->commit();
  }
  void refuse() {
    worker->send(error_reply(7, "no", {}, id));
    store->commit();
  }

  MemoryStore::Disk disk;
  MemoryStore* store = nullptr;
  std::unique_ptr<World> world;
  std::unique_ptr<Client> caller;
  std::unique_ptr<Client> worker;
  std::string id;
  std::string timeout;
};

TEST_F(WorkQueues, a_push_is_answered_once_it_is_safe_and_the_job_waits_for_a_provider) {
  EXPECT_EQ(caller->ask(request("rpc.queue.push", R"({"method":"work","params":[1]})")), "");
  store->commit();
  EXPECT_EQ(caller->received(), result_reply(R"({"id":1})"));
  provide();
  EXPECT_EQ(asked(), "[1]");
  answer("42");
  const std::string result = ask(*caller, "rpc.queue.result", R"({"id":1})");
  EXPECT_NE(result.find(R"("state":"done","deliveries":1)"), std::string::npos) << result;
  EXPECT_NE(result.find(R"("result":42)"), std::string::npos) << result;
}

TEST_F(WorkQueues, a_message_id_is_pushed_once) {
  EXPECT_EQ(push(R"({"method":"work","msg_id":"x"})"), result_reply(R"({"id":1})"));
  EXPECT_EQ(push(R"({"method":"work","msg_id":"x"})"), result_reply(R"({"id":1,"duplicate":true})"));
  EXPECT_EQ(disk.jobs.size(), 1U);
}

TEST_F(WorkQueues, a_job_for_a_provider_that_is_there_is_made_at_once_and_its_end_is_told) {
  provide();
  static_cast<void>(ask(*caller, "rpc.subscribe", R"({"topic":"queue.done.work"})"));
  static_cast<void>(push(R"({"method":"work","params":{"a":1}})"));
  EXPECT_EQ(asked(), R"({"a":1})");
  answer(R"("made")");
  EXPECT_EQ(caller->received(), notification("queue.done.work", R"({"id":1,"deliveries":1,"result":"made"})"));
}

TEST_F(WorkQueues, a_provider_has_no_more_jobs_at_once_than_it_takes) {
  for (const char* const params : {"[1]", "[2]", "[3]"})
    static_cast<void>(push(R"({"method":"work","params":)" + std::string{params} + "}"));
  provide(R"(,"concurrency":1)");
  EXPECT_EQ(asked(), "[1]");
  EXPECT_EQ(asked(), "");
  answer("null");
  EXPECT_EQ(asked(), "[2]");
  EXPECT_EQ(disk.jobs[3].state, durable::Job::State::waiting);
}

TEST_F(WorkQueues, a_job_is_for_providers_at_this_broker_and_for_none_at_another) {
  Client node{*world};
  static_cast<broker::Peer&>(*node.dispatcher->join_broker()).of_node = true;
  static_cast<void>(push(R"({"method":"work","params":[1]})"));
  static_cast<void>(node.ask(request("rpc.register", R"({"method":"work"})")));
  store->commit();
  EXPECT_EQ(disk.jobs[1].state, durable::Job::State::waiting);
  provide(R"(,"concurrency":1)");
  EXPECT_EQ(asked(), "[1]");
  answer("1");
  caller->send(request("work", "[2]", "9"));  // the provider here is occupied
  EXPECT_NE(worker->received().find("[2]"), std::string::npos);
  static_cast<void>(push(R"({"method":"work","params":[3]})"));
  EXPECT_EQ(disk.jobs[2].state, durable::Job::State::running);
  EXPECT_EQ(node.received(), "");
}

TEST_F(WorkQueues, a_job_of_the_processs_own_is_made_without_a_provider) {
  world->registry.method("own", [](int a) { return a + 1; });
  static_cast<void>(push(R"({"method":"own","params":[1]})"));
  EXPECT_EQ(disk.jobs[1].state, durable::Job::State::done);
  EXPECT_EQ(disk.jobs[1].result, "2");
}

TEST_F(WorkQueues, what_fails_is_made_again_later_and_dead_in_the_end) {
  provide();
  static_cast<void>(ask(*caller, "rpc.subscribe", R"({"topic":"queue.>"})"));
  static_cast<void>(push(R"({"method":"work","params":[1],"max_deliver":2})"));
  EXPECT_EQ(asked(), "[1]");
  refuse();
  EXPECT_EQ(asked(), "");
  advance(999ms);
  EXPECT_EQ(asked(), "");
  advance(1ms);
  EXPECT_EQ(asked(), "[1]");
  refuse();
  EXPECT_EQ(disk.jobs[1].state, durable::Job::State::dead);
  EXPECT_EQ(caller->received(),
            notification("queue.dead.work", R"({"id":1,"deliveries":2,"error":{"code":7,"message":"no"}})"));
  ASSERT_EQ(disk.events.size(), 1U);
  EXPECT_EQ(disk.events[0].topic, "queue.dead.work");
  advance(1h);
  EXPECT_EQ(asked(), "");
  EXPECT_EQ(ask(*caller, "rpc.queue.retry", R"({"id":1})"), result_reply("true"));
  EXPECT_EQ(asked(), "[1]");
}

TEST_F(WorkQueues, what_nobody_has_got_does_not_count) {
  provide(R"(,"concurrency":1,"queue":0)");
  Client other{*world};
  other.send(request("work", "[0]", "9"));  // occupies the provider
  static_cast<void>(worker->received());
  static_cast<void>(push(R"({"method":"work","params":[1],"max_deliver":1})"));
  EXPECT_EQ(disk.jobs[1].state, durable::Job::State::waiting);
  EXPECT_EQ(disk.jobs[1].deliveries, 0U);
}

TEST_F(WorkQueues, what_a_provider_says_was_not_delivered_counts_all_the_same) {
  provide();
  for (const auto& [code, data] :
       {std::pair{-32601, ""}, std::pair{-32009, R"({"origin":"remote","delivered":"no"})"}}) {
    static_cast<void>(push(R"({"method":"work","params":[1],"max_deliver":1})"));
    EXPECT_EQ(asked(), "[1]");
    worker->send(error_reply(code, "no", data, id));
    store->commit();
  }
  EXPECT_EQ(disk.jobs[1].state, durable::Job::State::dead);
  EXPECT_EQ(disk.jobs[2].state, durable::Job::State::dead);
}

TEST_F(WorkQueues, a_job_has_a_time_of_its_own_and_not_that_of_a_call) {
  provide();
  static_cast<void>(push(R"({"method":"work","params":[1],"timeout_ms":60000})"));
  EXPECT_EQ(asked(), "[1]");
  EXPECT_EQ(timeout, R"(,"timeout_ms":60000)");
  advance(59s);
  EXPECT_EQ(disk.jobs[1].state, durable::Job::State::running);
  advance(2s);
  EXPECT_EQ(disk.jobs[1].state, durable::Job::State::waiting);
  EXPECT_NE(disk.jobs[1].result.find("-32002"), std::string::npos) << disk.jobs[1].result;
  static_cast<void>(push(R"({"method":"work","params":[2]})"));
  advance(50min);
  EXPECT_EQ(disk.jobs[2].state, durable::Job::State::running);
}

TEST_F(WorkQueues, an_error_that_is_too_large_is_kept_by_its_code) {
  provide();
  static_cast<void>(push(R"({"method":"work","params":[1],"max_deliver":1})"));
  EXPECT_EQ(asked(), "[1]");
  worker->send(error_reply(7, std::string(20'000, 'x'), {}, id));
  store->commit();
  EXPECT_EQ(disk.jobs[1].state, durable::Job::State::dead);
  EXPECT_EQ(disk.jobs[1].result, R"({"code":7,"message":"The provider's error is too large to be kept"})");
}

TEST_F(WorkQueues, a_job_whose_provider_goes_is_made_again_at_another_one) {
  provide();
  static_cast<void>(push(R"({"method":"work","params":[1]})"));
  EXPECT_EQ(asked(), "[1]");
  worker->leave();
  store->commit();
  worker->connect();
  provide();
  advance(1s);
  EXPECT_EQ(asked(), "[1]");
  EXPECT_EQ(disk.jobs[1].deliveries, 2U);
}

TEST_F(WorkQueues, a_job_that_was_running_when_the_broker_ended_is_made_again) {
  provide();
  static_cast<void>(push(R"({"method":"work","params":[1]})"));
  EXPECT_EQ(asked(), "[1]");
  start();
  provide();
  EXPECT_EQ(asked(), "[1]");
  EXPECT_EQ(disk.jobs[1].deliveries, 2U);
}

TEST_F(WorkQueues, before_another_process_takes_over_no_job_begins) {
  provide();
  static_cast<void>(push(R"({"method":"work","params":[1]})"));
  EXPECT_EQ(asked(), "[1]");
  EXPECT_FALSE(world->router.settle());
  static_cast<void>(push(R"({"method":"work","params":[2]})"));
  EXPECT_EQ(asked(), "");
  answer("null");
  EXPECT_TRUE(world->router.settle());
  EXPECT_EQ(disk.jobs[1].state, durable::Job::State::done);
  EXPECT_EQ(disk.jobs[2].state, durable::Job::State::waiting);
  world->router.stay();
  store->commit();
  EXPECT_EQ(asked(), "[2]");
}

TEST_F(WorkQueues, a_job_at_work_is_not_begun_once_more_where_another_process_has_had_it_wait) {
  provide(R"(,"concurrency":2)");
  static_cast<void>(push(R"({"method":"work","params":[1]})"));
  EXPECT_EQ(asked(), "[1]");
  const std::string first = id;
  disk.jobs[1].state = durable::Job::State::waiting;
  static_cast<void>(push(R"({"method":"work","params":[2]})"));
  EXPECT_EQ(asked(), "[2]");
  EXPECT_EQ(asked(), "");
  answer("2");
  id = first;
  answer("1");
  EXPECT_EQ(disk.jobs[1].result, "1");
  static_cast<void>(push(R"({"method":"work","params":[3]})"));
  EXPECT_EQ(asked(), "[3]");
  static_cast<void>(push(R"({"method":"work","params":[4]})"));
  EXPECT_EQ(asked(), "[4]");
}

TEST_F(WorkQueues, what_has_become_of_a_job_is_kept_once_the_disk_takes_it) {
  provide();
  static_cast<void>(push(R"({"method":"work","params":[1]})"));
  EXPECT_EQ(asked(), "[1]");
  disk.broken = "it is full";
  answer("42");
  EXPECT_EQ(disk.jobs[1].state, durable::Job::State::running);
  advance(1s);
  disk.broken.clear();
  advance(1s);
  EXPECT_EQ(disk.jobs[1].state, durable::Job::State::done);
  EXPECT_EQ(disk.jobs[1].result, "42");
  EXPECT_EQ(asked(), "");
}

TEST_F(WorkQueues, a_delayed_job_is_made_when_its_time_has_come) {
  provide();
  static_cast<void>(push(R"({"method":"work","params":[1],"delay_ms":5000})"));
  advance(4999ms);
  EXPECT_EQ(asked(), "");
  advance(1ms);
  EXPECT_EQ(asked(), "[1]");
}

TEST_F(WorkQueues, a_method_without_jobs_and_providers_is_no_queue) {
  static_cast<void>(push(R"({"method":"work"})"));
  EXPECT_TRUE(world->router.work_queues().waits_for_providers());
  EXPECT_EQ(ask(*caller, "rpc.queue.drop", R"({"id":1})"), result_reply("true"));
  EXPECT_FALSE(world->router.work_queues().waits_for_providers());
  static_cast<void>(push(R"({"method":"work","params":[2]})"));
  static_cast<void>(push(R"({"method":"work","params":[3]})"));
  EXPECT_EQ(ask(*caller, "rpc.queue.drop", R"({"id":2})"), result_reply("true"));
  EXPECT_TRUE(world->router.work_queues().waits_for_providers());
  provide();
  EXPECT_EQ(asked(), "[3]");
  answer("1");
  EXPECT_FALSE(world->router.work_queues().waits_for_providers());
}

TEST_F(WorkQueues, a_full_queue_refuses) {
  disk.queue_count = 1;
  static_cast<void>(push(R"({"method":"work"})"));
  const std::string refused = push(R"({"method":"work"})");
  EXPECT_NE(refused.find("-32005"), std::string::npos) << refused;
  EXPECT_NE(refused.find(R"("limit":"durable.queue_count")"), std::string::npos) << refused;
}

TEST_F(WorkQueues, jobs_are_listed_looked_at_and_dropped) {
  static_cast<void>(push(R"({"method":"work","params":[1]})"));
  EXPECT_EQ(ask(*caller, "rpc.queue.ls", "[]"),
            result_reply(R"([{"method":"work","waiting":1,"running":0,"done":0,"dead":0,"bytes":0}])"));
  EXPECT_EQ(ask(*caller, "rpc.queue.peek", R"({"method":"work"})"),
            result_reply(R"([{"id":1,"method":"work","state":"waiting","deliveries":0,"at_ms":0,"params":[1]}])"));
  EXPECT_EQ(ask(*caller, "rpc.queue.drop", R"({"id":1})"), result_reply("true"));
  EXPECT_NE(ask(*caller, "rpc.queue.result", R"({"id":1})").find("there is no job"), std::string::npos);
}

TEST_F(WorkQueues, wrong_params_are_refused) {
  const auto refused = [&](std::string_view method, std::string_view params) {
    return ask(*caller, method, params).find("-32602") != std::string::npos;
  };
  EXPECT_TRUE(refused("rpc.queue.push", R"({"method":"rpc.ping"})"));
  EXPECT_TRUE(refused("rpc.queue.push", R"({"method":"a","params":1})"));
  EXPECT_TRUE(refused("rpc.queue.push", R"({"method":"a","delay_ms":-1})"));
  EXPECT_TRUE(refused("rpc.queue.peek", R"({"method":"a","state":"lost"})"));
  EXPECT_TRUE(refused("rpc.queue.result", R"({"id":"x"})"));
}

TEST_F(WorkQueues, a_broker_without_a_store_says_what_helps) {
  World plain;
  Client client{plain};
  EXPECT_NE(client.ask(request("rpc.queue.push", R"({"method":"a"})")).find("needs_durable"), std::string::npos);
  EXPECT_NE(client.ask(request("rpc.queue.ls")).find("needs_durable"), std::string::npos);
}

}  // namespace
}  // namespace wirecall
