// While both processes of a restart serve: events and calls between the clients of the one and of the other.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <gtest/gtest.h>
#include <optional>
#include <signal.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "tests/cli/restarts.hpp"
#include "wirecall/client.hpp"

namespace wirecall::cli {
namespace {

/// A client that stays with the old process, since it knows of no restarts.
class Both : public Restart {
 protected:
  Both() { server_.first().read_error_until("Methods:"); }

  /// Until `then` has become true, which others do.
  template <class Act>
  static void again_until(const std::atomic<bool>& then, const Act& act) {
    while (!then.load()) act();
  }
  /// Another process has taken over when this returns, and who connects from now on comes to that one: the old process
  /// answers `stock` only after it has stopped to accept.
  void restart(Stock& stock) {
    server_.restart();
    stock.send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":0})");
    EXPECT_NE(stock.line().find(R"("id":0})"), std::string::npos);
  }
  [[nodiscard]] static std::string publish(std::string_view topic, int value) {
    return R"({"jsonrpc":"2.0","method":")" + std::string{topic} + R"(","params":[)" + std::to_string(value) + "]}";
  }

  Restarted server_{serve({"--drain-ms", "3000"})};
};

TEST_F(Both, events_reach_who_subscribes_with_the_other_process) {
  Stock stock{folder_.path + "/calls.sock"};
  stock.send(R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"news.*"},"id":1})");
  EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","result":true,"id":1})");
  restart(stock);
  Client client{folder_.socket()};
  client.publish("news.first", 1);
  EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","method":"news.first","params":[1]})");
  // The old process has to hear first of who subscribes with the new one.
  std::atomic<bool> came{false};
  const Subscription subscription = client.subscribe("back.*", [&](const Event& event) {
    EXPECT_EQ(event.topic, "back.first");
    came.store(true);
  });
  again_until(came, [&] { stock.send(publish("back.first", 1)); });
  // Of its own it is told nothing, and of the other's each once.
  client.publish("news.second", 2);
  EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","method":"news.second","params":[2]})");
  // It may subscribe anew, and unsubscribe.
  stock.send(R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"more"},"id":2})");
  EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","result":true,"id":2})");
  std::atomic<bool> told{false};
  std::jthread publisher{[&] { again_until(told, [&] { client.publish("more", 3); }); }};
  EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","method":"more","params":[3]})");
  told.store(true);
  publisher.join();
}

TEST_F(Both, of_a_group_one_is_told_wherever_an_event_is_published) {
  Stock stock{folder_.path + "/calls.sock"};
  Stock second{folder_.path + "/calls.sock"};
  stock.send(R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"jobs","group":"workers"},"id":1})"
             R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"end"},"id":2})");
  stock.line();
  stock.line();
  second.send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})");
  second.line();
  restart(stock);
  Client client{folder_.socket()};
  client.publish("jobs", 1);  // nobody else is in the group
  EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","method":"jobs","params":[1]})");
  std::atomic<int> here{0};
  std::atomic<bool> ready{false};
  SubscribeOptions group;
  group.group = "workers";
  const Subscription jobs = client.subscribe("jobs", group, [&](const Event&) { ++here; });
  const Subscription other = client.subscribe("ready", [&](const Event&) { ready.store(true); });
  // The old process knows of both once it knows of the second.
  again_until(ready, [&] { second.send(publish("ready", 0)); });
  Client publisher{folder_.socket()};
  constexpr int kEvents = 50;
  for (int i = 0; i < kEvents; ++i) publisher.publish("jobs", 2);
  publisher.publish("end", 0);
  EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","method":"end","params":[0]})");
  for (int i = 0; i < kEvents; ++i) {
    second.send(publish("jobs", 3));
    EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","method":"jobs","params":[3]})");
  }
  ready.store(false);
  again_until(ready, [&] { second.send(publish("ready", 0)); });
  EXPECT_EQ(here.load(), kEvents);
}

TEST_F(Both, an_event_right_behind_a_change_of_a_group_is_told_as_the_group_is_then) {
  Stock stock{folder_.path + "/calls.sock"};
  Stock second{folder_.path + "/calls.sock"};
  const std::string join =
      R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"jobs","group":"workers"},"id":1})";
  stock.send(join);
  stock.line();
  second.send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})");
  second.line();
  restart(stock);
  Stock other{folder_.path + "/calls.sock"};
  other.send(join + R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"ready"},"id":2})");
  other.line();
  other.line();
  {
    std::atomic<bool> ready{false};
    const std::jthread publisher{[&] { again_until(ready, [&] { second.send(publish("ready", 0)); }); }};
    EXPECT_EQ(other.line(), publish("ready", 0));
    ready.store(true);
  }
  other.send(R"({"jsonrpc":"2.0","method":"rpc.unsubscribe","params":{"topic":"jobs"},"id":3})" + publish("jobs", 9));
  EXPECT_EQ(stock.line(), publish("jobs", 9));
}

TEST_F(Both, what_is_retained_with_one_is_known_to_the_other) {
  Stock stock{folder_.path + "/calls.sock"};
  stock.send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})");
  stock.line();
  restart(stock);
  const std::string publish = R"({"jsonrpc":"2.0","method":"rpc.publish","params":{"topic":"state",)";
  stock.send(publish + R"("params":[7],"retain":true},"id":2})");
  stock.line();
  Client client{folder_.socket()};
  std::atomic<bool> came{false};
  SubscribeOptions last;
  last.last = true;
  again_until(came, [&] {
    const Subscription state = client.subscribe("state", last, [&](const Event& event) {
      EXPECT_EQ(event.value_json(), "7");
      came.store(true);
    });
    static_cast<void>(client.call<int>("subtract", 5, 3));  // the answer comes behind what is retained
  });
  client.publish("state", 8, {.retain = true});
  const auto got = [&] {
    stock.send(R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"state","last":true},"id":3})");
    EXPECT_NE(stock.line().find(R"("result":true)"), std::string::npos);
    const std::string event = stock.line();
    stock.send(R"({"jsonrpc":"2.0","method":"rpc.unsubscribe","params":{"topic":"state"},"id":4})");
    stock.line();
    return event;
  };
  while (got() != R"({"jsonrpc":"2.0","method":"state","params":[8]})") {
  }
}

TEST_F(Both, who_stays_with_the_old_process_calls_who_provides_with_the_new_one) {
  Stock stock{folder_.path + "/calls.sock"};
  stock.send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})");
  stock.line();
  restart(stock);
  const auto call = [&](const std::string& more = "") {
    stock.send(R"({"jsonrpc":"2.0","method":"work","params":[1],"id":2)" + more + "}");
    return stock.line();
  };
  EXPECT_NE(call().find("-32009"), std::string::npos);  // nobody provides it anywhere
  const std::string result = R"({"jsonrpc":"2.0","result":2,"id":2})";
  std::optional<std::promise<int>> notified{std::in_place};
  {
    ClientOptions options;
    options.client_id = "worker";
    Client worker{folder_.socket(), options};
    worker.provide("work", [&](int a) {
      if (a > 1) notified->set_value(a);
      return a + 1;
    });
    worker.connect();
    while (call() != result) {
    }
    EXPECT_EQ(call(R"(,"to":"worker")"), result);
    const std::string other = call(R"(,"to":"somebody")");
    EXPECT_NE(other.find(R"("code":-32001)"), std::string::npos) << other;
    EXPECT_NE(other.find(R"("delivered":"no")"), std::string::npos) << other;
    stock.send(R"({"jsonrpc":"2.0","method":"work","params":[7]})");
    EXPECT_EQ(notified->get_future().get(), 7);
    EXPECT_EQ(call(), result);
  }
  while (call().find("-32009") == std::string::npos) {  // as soon as the old process has heard that nobody does
  }
}

TEST_F(Both, who_provides_with_the_old_process_is_asked_there_and_who_has_come_to_the_new_one_after_that) {
  Stock stock{folder_.path + "/calls.sock"};
  std::optional<Provider> provider{std::in_place, folder_.path + "/calls.sock"};
  stock.send(R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})");
  stock.line();
  restart(stock);
  Client other{folder_.socket()};
  other.provide("stock.add", [](int a, int b) { return 10 * (a + b); });
  other.connect();
  Client client{folder_.socket()};
  EXPECT_EQ(client.call<int>("stock.add", 1, 2), 30);
  const std::string call = R"({"jsonrpc":"2.0","method":"stock.add","params":[1,2],"id":2})";
  stock.send(call);
  provider->answer();
  EXPECT_EQ(stock.line(), R"({"jsonrpc":"2.0","result":3,"id":2})");
  provider.reset();
  std::string answer;
  do {
    stock.send(call);
  } while ((answer = stock.line()).find("error") != std::string::npos);
  EXPECT_EQ(answer, R"({"jsonrpc":"2.0","result":30,"id":2})");
}

TEST_F(Restart, the_connection_between_both_is_not_ended_for_being_idle) {
  Restarted server{serve({"--drain-ms", "2000", "--keepalive-timeout-ms", "100"})};
  server.first().read_error_until("Methods:");
  std::optional<Provider> provider{std::in_place, folder_.path + "/calls.sock"};
  server.restart();
  Client client{folder_.socket()};
  client.call<void>("sleep", 500);
  EXPECT_EQ(provider->sum_of(client), 3);
  provider.reset();
  EXPECT_EQ(server.first().wait(), 0);
  server.end();
}

TEST_F(Restart, the_connection_between_both_is_not_ended_by_other_principals) {
  const std::string principals = folder_.path + "/principals.json";
  const auto write = [&](const std::string& more) {
    std::ofstream{principals} << R"([{"name": "readers", "tokens": ["r"], "subscribe": ["news"]})" << more << "]";
    std::filesystem::permissions(principals, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  };
  write("");
  Restarted server{serve({"--principals-file", principals, "--drain-ms", "20000"})};
  server.first().read_error_until("Methods:");
  std::optional<Stock> reader{folder_.path + "/calls.sock"};
  reader->send(R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"token":"r"},"id":1})"
               R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"news"},"id":2})");
  reader->line();
  EXPECT_EQ(reader->line(), R"({"jsonrpc":"2.0","result":true,"id":2})");
  server.restart();
  EXPECT_EQ(reader->line(), R"({"jsonrpc":"2.0","method":"rpc.draining"})");
  write(R"(, {"name": "writers", "tokens": ["w"], "publish": ["news"]})");
  int reloads = 0;
  for (const pid_t one : {server.pid(), server.first().id()}) {
    kill(one, SIGHUP);
    server.first().read_error_until("the configuration is in force", ++reloads);
  }
  ClientOptions options;
  options.token = "w";
  Client client{folder_.socket(), options};
  client.publish("news", 1);
  EXPECT_EQ(reader->line(), R"({"jsonrpc":"2.0","method":"news","params":[1]})");
  reader.reset();
  EXPECT_EQ(server.first().wait(), 0);
  server.end();
}

}  // namespace
}  // namespace wirecall::cli
