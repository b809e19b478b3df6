// Who may use durable topics and queues: the grants to publish, subscribe and call hold for them as for all else, and
// jobs run though nobody is logged in who may call.
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "rpc/access.hpp"
#include "tests/broker/memory_store.hpp"
#include "tests/broker/world.hpp"

namespace wirecall {
namespace {

using test::Client;
using test::MemoryStore;
using test::request;
using test::result_reply;
using test::World;

class DurableAccess : public testing::Test {
 protected:
  DurableAccess() {
    use_principals();
    for (const auto& [client, token] : {std::pair{&one, "some-secret"}, std::pair{&chief, "boss-secret"}})
      static_cast<void>(client->ask(request("rpc.hello", R"({"token":")" + std::string{token} + "\"}")));
  }
  // Anew, as by a reload.
  void use_principals() {
    const Principal some{.name = "some",
                         .tokens = {"some-secret"},
                         .call = {"work.*"},
                         .provide = {},
                         .publish = {"orders.*"},
                         .subscribe = {"orders.>"},
                         .admin = false};
    const Principal boss{.name = "boss",
                         .tokens = {"boss-secret"},
                         .call = {">"},
                         .provide = {">"},
                         .publish = {">"},
                         .subscribe = {">"},
                         .admin = true};
    world.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::vector{some, boss});
  }
  std::string ask(Client& client, std::string_view method, std::string_view params) {
    client.send(request(method, params));
    store->commit();
    return client.received();
  }
  bool may(std::string_view method, std::string_view params) {
    const std::string answer = ask(one, method, params);
    if (answer.find("\"result\"") != std::string::npos) return true;
    EXPECT_NE(answer.find("-32003"), std::string::npos) << answer;
    return false;
  }

  MemoryStore::Disk disk;
  MemoryStore* store = new MemoryStore{disk};
  World world{Limits{}, broker::Settings{}, std::unique_ptr<durable::Store>{store}};
  Client one{world};
  Client chief{world};
};

TEST_F(DurableAccess, grants_hold_for_events_and_consumers) {
  EXPECT_TRUE(may("rpc.publish", R"({"topic":"orders.new","durable":true})"));
  EXPECT_FALSE(may("rpc.publish", R"({"topic":"secret.new","durable":true})"));
  EXPECT_TRUE(may("rpc.subscribe", R"({"topic":"orders.*","durable":"own"})"));
  EXPECT_FALSE(may("rpc.subscribe", R"({"topic":">","durable":"all"})"));
  EXPECT_TRUE(may("rpc.durable.read", R"({"topic":"orders.new"})"));
  EXPECT_FALSE(may("rpc.durable.read", R"({"topic":">"})"));
  static_cast<void>(ask(chief, "rpc.subscribe", R"({"topic":">","durable":"all"})"));
  EXPECT_FALSE(may("rpc.durable.forget", R"({"consumer":"all"})"));
  const std::string listing = ask(one, "rpc.durable.ls", "[]");
  EXPECT_NE(listing.find("\"own\""), std::string::npos) << listing;
  EXPECT_EQ(listing.find("\"all\""), std::string::npos) << listing;
}

TEST_F(DurableAccess, a_message_id_is_one_of_its_principals) {
  const auto said = [&](Client& client, std::string_view method, std::string_view names) {
    return ask(client, method, "{" + std::string{names} + R"(,"msg_id":"order-1"})");
  };
  for (const auto& [method, names] : {std::pair{"rpc.publish", R"("topic":"orders.new","durable":true)"},
                                      std::pair{"rpc.queue.push", R"("method":"work.a")"}}) {
    EXPECT_EQ(said(chief, method, names).find("duplicate"), std::string::npos) << method;
    EXPECT_EQ(said(one, method, names).find("duplicate"), std::string::npos) << method;
    EXPECT_NE(said(one, method, names).find("duplicate"), std::string::npos) << method;
  }
}

TEST_F(DurableAccess, a_dead_letter_is_on_the_account_of_who_had_the_event_last) {
  for (Client* const client : {&chief, &one})
    static_cast<void>(ask(*client, "rpc.subscribe", R"({"topic":"orders.*","durable":"own","max_deliver":1})"));
  Client publisher{world};
  static_cast<void>(publisher.ask(request("rpc.hello", R"({"token":"boss-secret"})")));
  for (int i = 0; i != 2; ++i)
    static_cast<void>(ask(publisher, "rpc.publish", R"({"topic":"orders.a","durable":true})"));
  for (Client* const client : {&chief, &one}) {
    const bool has_first = client->received().find("own:1:1") != std::string::npos;
    client->send(test::error_reply(7, "no", {}, has_first ? R"("own:1:1")" : R"("own:2:1")"));
    store->commit();
  }
  ASSERT_EQ(disk.events.size(), 4U);
  EXPECT_EQ(disk.principals[3], "principal boss");
  EXPECT_EQ(disk.principals[4], "principal some");
}

TEST_F(DurableAccess, a_dead_letter_that_was_not_safe_at_first_is_on_that_account_too) {
  static_cast<void>(ask(chief, "rpc.subscribe", R"({"topic":"orders.*","durable":"own","max_deliver":1})"));
  static_cast<void>(ask(one, "rpc.subscribe", R"({"topic":"orders.*","durable":"own","max_deliver":1})"));
  static_cast<void>(ask(chief, "rpc.unsubscribe", R"({"topic":"orders.*","durable":"own"})"));
  static_cast<void>(ask(chief, "rpc.publish", R"({"topic":"orders.a","durable":true})"));
  disk.broken = "the disk is full";
  one.send(test::error_reply(7, "no", {}, R"("own:1:1")"));
  store->commit();
  ASSERT_EQ(disk.events.size(), 1U);
  disk.broken.clear();
  world.advance(std::chrono::seconds{1});
  store->commit();
  ASSERT_EQ(disk.events.size(), 2U);
  EXPECT_EQ(disk.principals[2], "principal some");
}

TEST_F(DurableAccess, what_one_principal_does_not_answer_leaves_room_for_others) {
  const std::string params = "[\"" + std::string(3'000'000, 'x') + "\"]";
  static_cast<void>(ask(chief, "rpc.publish", R"({"topic":"orders.a","durable":true,"params":)" + params + "}"));
  constexpr std::size_t kAtOnce = std::size_t{64} * 1024 * 1024 / 3'000'000 + 8;  // with those of reads that had begun
  std::deque<Client> clients;
  const auto subscribe = [&](Client& client, std::size_t number) {
    return ask(client, "rpc.subscribe",
               R"({"topic":"orders.>","start":"first","durable":"c)" + std::to_string(number) + "\"}");
  };
  std::size_t sent = 0;
  for (std::size_t i = 0; i != 40; ++i) {
    Client& client = clients.emplace_back(world);
    static_cast<void>(client.ask(request("rpc.hello", R"({"token":"some-secret"})")));
    sent += subscribe(client, i).find("orders.a") != std::string::npos ? 1 : 0;
  }
  EXPECT_LE(sent, kAtOnce);
  EXPECT_NE(subscribe(chief, 40).find("orders.a"), std::string::npos);
  for (int round = 0; round != 2; ++round) {
    for (std::size_t i = 0; i != clients.size(); ++i)
      clients[i].send(result_reply("null", "\"c" + std::to_string(i) + ":1:1\""));
    store->commit();
  }
  for (std::size_t i = 0; i != 40; ++i) EXPECT_EQ(disk.consumers.at("c" + std::to_string(i)).floor, 1U) << i;
}

TEST_F(DurableAccess, what_one_does_not_answer_is_on_his_account_whoever_has_made_the_consumers) {
  const std::string params = "[\"" + std::string(3'000'000, 'x') + "\"]";
  const auto subscribe = [&](Client& client, const std::string& name) {
    return ask(client, "rpc.subscribe", R"({"topic":"orders.>","start":"first","durable":")" + name + "\"}");
  };
  // Made by the chief, who has left them.
  for (int i = 0; i != 40; ++i) {
    static_cast<void>(subscribe(chief, "c" + std::to_string(i)));
    static_cast<void>(ask(chief, "rpc.unsubscribe", R"({"topic":"orders.>","durable":"c)" + std::to_string(i) + "\"}"));
  }
  static_cast<void>(ask(chief, "rpc.publish", R"({"topic":"orders.a","durable":true,"params":)" + params + "}"));
  std::deque<Client> clients;
  std::size_t sent = 0;
  for (int i = 0; i != 40; ++i) {
    Client& client = clients.emplace_back(world);
    static_cast<void>(client.ask(request("rpc.hello", R"({"token":"some-secret"})")));
    sent += subscribe(client, "c" + std::to_string(i)).find("orders.a") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(sent, 20U);
  EXPECT_LT(sent, 40U);
  EXPECT_NE(subscribe(chief, "own").find("orders.a"), std::string::npos);
  for (Client& client : clients) client.leave();
  store->commit();
  EXPECT_NE(subscribe(chief, "c7").find("orders.a"), std::string::npos);
}

TEST_F(DurableAccess, grants_hold_for_queues) {
  EXPECT_TRUE(may("rpc.queue.push", R"({"method":"work.a","params":[1]})"));
  EXPECT_FALSE(may("rpc.queue.push", R"({"method":"secret"})"));
  EXPECT_EQ(ask(chief, "rpc.queue.push", R"({"method":"secret","params":[2]})"), result_reply(R"({"id":2})"));
  EXPECT_TRUE(may("rpc.queue.result", R"({"id":1})"));
  EXPECT_FALSE(may("rpc.queue.result", R"({"id":2})"));
  EXPECT_FALSE(may("rpc.queue.peek", R"({"method":"secret"})"));
  EXPECT_FALSE(may("rpc.queue.drop", R"({"id":2})"));
  EXPECT_EQ(ask(one, "rpc.queue.ls", "[]").find("secret"), std::string::npos);
  EXPECT_EQ(disk.jobs.size(), 2U);
}

TEST_F(DurableAccess, what_a_job_holds_is_for_whoever_has_pushed_it_and_for_admins) {
  static_cast<void>(ask(chief, "rpc.queue.push", R"({"method":"work.a","params":["secret"]})"));
  static_cast<void>(ask(one, "rpc.queue.push", R"({"method":"work.a","params":["own"]})"));
  const std::string seen = ask(one, "rpc.queue.peek", R"({"method":"work.a"})");
  EXPECT_EQ(seen.find("secret"), std::string::npos) << seen;
  EXPECT_NE(seen.find("own"), std::string::npos) << seen;
  EXPECT_NE(ask(chief, "rpc.queue.peek", R"({"method":"work.a"})").find("own"), std::string::npos);
  EXPECT_FALSE(may("rpc.queue.result", R"({"id":1})"));
  EXPECT_FALSE(may("rpc.queue.drop", R"({"id":1})"));
  EXPECT_TRUE(may("rpc.queue.drop", R"({"id":2})"));
}

TEST_F(DurableAccess, a_job_is_made_by_the_broker_and_after_a_reload_as_well) {
  world.registry.method("work.own", [](int a) { return a + 1; });
  EXPECT_TRUE(may("rpc.queue.push", R"({"method":"work.own","params":[1]})"));
  EXPECT_EQ(disk.jobs[1].result, "2");
  use_principals();
  EXPECT_TRUE(may("rpc.queue.push", R"({"method":"work.own","params":[2]})"));
  EXPECT_EQ(disk.jobs[2].result, "3");
}

TEST_F(DurableAccess, who_has_not_logged_in_may_nothing) {
  Client nobody{world};
  EXPECT_NE(nobody.ask(request("rpc.queue.ls", "[]")).find("-32004"), std::string::npos);
  Client another{world};
  EXPECT_NE(another.ask(request("rpc.publish", R"({"topic":"orders.new","durable":true})")).find("-32004"),
            std::string::npos);
}

}  // namespace
}  // namespace wirecall
