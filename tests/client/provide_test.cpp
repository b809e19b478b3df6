// What clients that provide methods at a broker say to it, and when; on a simulated system.
#include <chrono>
#include <cstddef>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/client/provided.hpp"
#include "tests/connection/peer.hpp"
#include "tests/server/broker_world.hpp"
#include "wirecall/batched.hpp"
#include "wirecall/client.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

ClientOptions named() {
  ClientOptions options;
  options.client_id = "worker";
  return options;
}

TEST(ClientProvide, says_hello_then_registers_all_in_one_message_then_subscribes_and_only_then_calls) {
  BrokerWorld world{named()};
  world.client->provide("gpu.add", add);
  const Subscription news = world.client->subscribe("news", [](const Event&) {});
  world.client->provide("gpu.sub", [](int a, int b) { return a - b; });
  const Subscription sensors = world.client->subscribe("sensors.*.temp", [](const Event&) {});
  EXPECT_EQ(world.client->try_call<int>("a"), 1);
  ASSERT_EQ(world.lines.size(), 5U);
  EXPECT_EQ(world.lines[0], R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"name":"worker"},"id":"rpc.hello"})");
  EXPECT_TRUE(world.lines[1].starts_with(
      R"({"jsonrpc":"2.0","method":"rpc.register","params":{"methods":[{"method":"gpu.add",)"))
      << world.lines[1];
  EXPECT_NE(world.lines[1].find(R"({"method":"gpu.sub",)"), std::string::npos) << world.lines[1];
  EXPECT_TRUE(world.lines[1].ends_with(R"(]},"id":"rpc.register:1"})")) << world.lines[1];
  EXPECT_EQ(world.lines[2],
            R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"news"},"id":"rpc.subscribe:2"})");
  EXPECT_EQ(world.lines[3],
            R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"sensors.*.temp"},"id":"rpc.subscribe:3"})");
  EXPECT_NE(world.lines[4].find(R"("method":"a")"), std::string::npos);
  EXPECT_EQ(world.client->responses_dropped(), 0U);
}

TEST(ClientProvide, tells_that_two_batches_of_a_batched_function_are_of_use) {
  BrokerWorld world;
  const auto doubled = [](std::vector<int> numbers) { return numbers; };
  world.client->provide("double", batched(doubled, {.size = 32}), {.params = {"number"}});
  world.client->provide("twice", batched(doubled, {.size = 32, .concurrent = 2}));
  world.client->provide("own", batched(doubled, {.size = 32}), {.concurrency = 7});
  EXPECT_EQ(world.client->try_call<int>("a"), 1);
  const std::string& registered = world.lines[0];
  EXPECT_NE(registered.find(R"("method":"double","params":[{"name":"number")"), std::string::npos) << registered;
  for (const char* told : {R"("concurrency":64)", R"("concurrency":96)", R"("concurrency":7)"})
    EXPECT_NE(registered.find(told), std::string::npos) << told << " in " << registered;
}

TEST(ClientProvide, tells_how_a_method_is_to_be_called_and_of_what_types) {
  BrokerWorld world;
  world.client->provide("gpu.add", add,
                        {.concurrency = 1,
                         .queue = 100,
                         .policy = "hash:a",
                         .idempotent = true,
                         .safe = true,
                         .summary = "adds \"two\"",
                         .params = {"a", Param{"b"}.description("second").default_value(2)}});
  world.client->provide("reset", [] {}, {.queue = 0});
  world.client->connect();
  ASSERT_EQ(world.lines.size(), 1U);
  const std::string integer = R"({"type":"integer","minimum":-2147483648,"maximum":2147483647})";
  const std::string with_default = integer.substr(0, integer.size() - 1) + R"(,"default":2})";
  EXPECT_EQ(BrokerWorld::member(world.lines[0], "params"),
            R"({"methods":[{"method":"gpu.add","params":[{"name":"a","schema":)" + integer +
                R"(,"required":true},{"name":"b","schema":)" + with_default +
                R"(,"description":"second","required":false}],"result":{"name":"result","schema":)" + integer +
                R"(},"summary":"adds \"two\"","policy":"hash:a","concurrency":1,"queue":100,"idempotent":true,)"
                R"("safe":true},{"method":"reset","params":[],"result":{"name":"result","schema":{"type":"null"}},)"
                R"("queue":0}]})");
}

TEST(ClientProvide, tells_that_a_method_subscribes_and_what_ends_it_and_brings_its_events) {
  BrokerWorld world;
  world.client->provide_subscription(kEthereum, blocks, {.concurrency = 8, .params = {"kind"}});
  EXPECT_THROW(world.client->provide_subscription(kEthereum, blocks), Error) << "the name is taken";
  world.client->connect();
  ASSERT_EQ(world.lines.size(), 1U);
  EXPECT_EQ(BrokerWorld::member(world.lines[0], "params"),
            R"({"methods":[{"method":"eth_subscribe","params":[{"name":"kind","schema":{"type":"string"},)"
            R"("required":true}],"result":{"name":"result","schema":{"type":"string"}},"subscription":)"
            R"({"unsubscribe":"eth_unsubscribe","notification":"eth_subscription"},"concurrency":8}]})");
}

TEST(ClientProvide, says_it_all_again_on_the_next_connection_before_calls_that_have_waited) {
  BrokerWorld world{named()};
  world.client->provide("gpu.add", add);
  const Subscription news = world.client->subscribe("news", [](const Event&) {});
  world.client->connect();
  EXPECT_EQ(world.methods(), (Names{"rpc.hello", "rpc.register", "rpc.subscribe"}));
  world.peers[0]->reset();
  world.pass(1ms);
  EXPECT_EQ(world.client->try_call<int>("waits"), 1);
  EXPECT_EQ(world.methods(), (Names{"rpc.hello", "rpc.register", "rpc.subscribe", "waits"}));
  EXPECT_EQ(world.peers.size(), 2U);
}

TEST(ClientProvide, connects_again_by_itself_with_the_pauses_of_any_client) {
  BrokerWorld world;
  world.client->provide("gpu.add", add);
  world.pass(1ms);
  EXPECT_EQ(world.methods(), Names{"rpc.register"});
  world.refuse = [](const Endpoint&) { return true; };
  world.peers[0]->reset();
  const std::size_t before = world.dialed.size();
  world.pass(1s);
  // 50 ms, 100 ms, 200 ms and 400 ms, less up to half of each: not one after the other without a pause.
  EXPECT_GE(world.dialed.size(), before + 4);
  EXPECT_LE(world.dialed.size(), before + 8);
  world.refuse = nullptr;
  world.pass(1s);
  EXPECT_EQ(world.methods(), Names{"rpc.register"});
}

TEST(ClientProvide, what_is_added_later_is_registered_alone_and_on_the_next_connection_with_the_rest) {
  BrokerWorld world;
  world.client->provide("a", add);
  world.client->connect();
  world.client->provide("b", add);
  world.client->connect();
  ASSERT_EQ(world.lines.size(), 2U);
  EXPECT_EQ(world.lines[1].find(R"("method":"a")"), std::string::npos);
  EXPECT_NE(world.lines[1].find(R"("method":"b")"), std::string::npos);
  world.lines.clear();
  world.peers[0]->reset();
  world.pass(100ms);
  ASSERT_EQ(world.lines.size(), 1U);
  EXPECT_NE(world.lines[0].find(R"("method":"a")"), std::string::npos);
  EXPECT_NE(world.lines[0].find(R"("method":"b")"), std::string::npos);
}

TEST(ClientProvide, of_several_connections_the_first_alone_registers) {
  ClientOptions options;
  options.connections = 3;
  options.limits.in_flight = 1;
  BrokerWorld world{options};
  world.client->provide("gpu.add", add);
  world.client->connect();
  EXPECT_EQ(world.methods(), Names{"rpc.register"});
  world.answers["slow"] = "";
  const auto two = [&]() -> Task<void> {
    const auto call = [](Client& client, std::chrono::milliseconds after, std::string method) -> Task<void> {
      co_await sleep_for(client.scheduler(), after);
      static_cast<void>(co_await client.request<int>(method).timeout(20ms));
    };
    std::vector<Task<void>> calls;
    calls.push_back(call(*world.client, 0ms, "slow"));
    calls.push_back(call(*world.client, 5ms, "other"));
    co_await when_all(std::move(calls));
  };
  EXPECT_THROW(world.client->run(two()), Error);
  EXPECT_EQ(world.peers.size(), 2U);
  EXPECT_EQ(std::ranges::count(world.methods(), "rpc.register"), 0);
}

TEST(ClientProvide, a_server_that_drains_is_left_and_the_next_endpoint_is_told_all) {
  BrokerWorld world{named(), 2};
  world.client->provide("gpu.add", add);
  world.client->connect();
  EXPECT_EQ(world.methods(), (Names{"rpc.hello", "rpc.register"}));
  world.send(R"({"jsonrpc":"2.0","method":"rpc.draining"})");
  world.pass(200ms);
  EXPECT_EQ(world.methods(), (Names{"rpc.hello", "rpc.register"}));
  ASSERT_EQ(world.dialed.size(), 2U);
  EXPECT_EQ(world.dialed[0].first, "place0");
  EXPECT_EQ(world.dialed[1].first, "place1");
}

TEST(ClientProvide, a_server_that_takes_nothing_since_it_drains_is_left_without_a_word) {
  BrokerWorld world{{}, 2};
  world.answer_to = [&](const std::string&) -> std::string {
    return world.dialed.back().first == "place0" ? R"("error":{"code":-32009,"message":"Draining"})" : R"("result":1)";
  };
  world.client->provide("gpu.add", add);
  world.pass(200ms);
  EXPECT_EQ(world.methods(), (Names{"rpc.register", "rpc.register"}));
  ASSERT_EQ(world.dialed.size(), 2U);
  EXPECT_EQ(world.dialed[1].first, "place1");
  EXPECT_EQ(world.log, Names{});
  EXPECT_NO_THROW(world.client->connect());
}

TEST(ClientProvide, what_cannot_be_provided_is_refused_with_the_cure) {
  BrokerWorld world;
  EXPECT_THROW(world.client->provide("rpc.mine", add), std::invalid_argument);
  EXPECT_THROW(world.client->provide("gpu.>", add), std::invalid_argument);
  EXPECT_THROW(world.client->provide("none", add, {.concurrency = 0}), std::invalid_argument);
  world.client->provide("gpu.add", add);
  EXPECT_THROW(world.client->provide("gpu.add", add), Error);
  Client by_http{"http://127.0.0.1:1/rpc"};
  try {
    by_http.provide("gpu.add", add);
    FAIL();
  } catch (const std::logic_error& error) {
    EXPECT_NE(std::string_view{error.what()}.find("connect to tcp://, tls://, ws://, wss:// or unix://"),
              std::string_view::npos);
  }
  EXPECT_THROW(static_cast<void>(by_http.subscribe("news", [](const Event&) {})), std::logic_error);
}

TEST(ClientProvide, an_endpoint_by_http_is_left_for_one_at_which_clients_are_called) {
  std::vector<Endpoint> endpoints{Endpoint{"http://web:1/rpc"}, Endpoint{"tcp://place:1"}};
  World world{1, {}, std::move(endpoints)};
  world.serve = [&] {
    if (world.received.find("rpc.register") != std::string::npos) {
      world.received.clear();
      world.peers.back()->send(R"({"jsonrpc":"2.0","result":1,"id":"rpc.register:1"})");
    }
  };
  world.client->provide("gpu.add", add);
  world.client->connect();
  ASSERT_EQ(world.dialed.size(), 1U);
  EXPECT_EQ(world.dialed[0].first, "place");
}

TEST(ClientProvide, a_connection_by_http_goes_when_something_is_provided) {
  std::vector<Endpoint> endpoints{Endpoint{"http://web:1/rpc"}, Endpoint{"tcp://place:1"}};
  World world{1, {}, std::move(endpoints)};
  bool called = false;
  world.serve = [&] {
    if (std::exchange(world.received, {}).find("POST") == std::string::npos) return;
    world.peers.back()->send(
        "HTTP/1.1 200 OK\r\nContent-Length: 35\r\n\r\n"
        R"({"jsonrpc":"2.0","result":1,"id":1})");
    called = true;
  };
  EXPECT_EQ(world.client->try_call<int>("a"), 1);
  EXPECT_TRUE(called);
  world.serve = [&] {
    if (std::exchange(world.received, {}).find("rpc.register") == std::string::npos) return;
    world.peers.back()->send(R"({"jsonrpc":"2.0","result":1,"id":"rpc.register:1"})");
  };
  world.client->provide("gpu.add", add);
  world.client->connect();
  ASSERT_EQ(world.dialed.size(), 2U);
  EXPECT_EQ(world.dialed[1].first, "place");
}

}  // namespace
}  // namespace wirecall::net
