// Clients that provide methods at a broker: what they say to it and when, what becomes of refusals, and calls of what
// they provide; on a simulated system where the order of things is the question, else over sockets.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <expected>
#include <future>
#include <gtest/gtest.h>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/connection/peer.hpp"
#include "tests/server/broker_world.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/caller.hpp"
#include "wirecall/client.hpp"

namespace wirecall::session {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

int add(int a, int b) { return a + b; }

ClientOptions named() {
  ClientOptions options;
  options.client_id = "worker";
  return options;
}

// ---- what is said ----

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

TEST(ClientProvide, tells_how_a_method_is_to_be_called_and_of_what_types) {
  BrokerWorld world;
  world.client->provide("gpu.add", add,
                        {.concurrency = 1,
                         .queue = 100,
                         .policy = "hash:a",
                         .idempotent = true,
                         .safe = true,
                         .summary = "adds \"two\"",
                         .params = {"a", Param{"b"}.doc("second").otherwise(2)}});
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

// Block after block: 1, 2, …
Stream<int> blocks(Context context, std::string kind) {
  if (kind != "newHeads") throw Error{ErrorCode::invalid_params, "no such kind: " + kind};
  for (int number = 1;; ++number) {
    co_yield number;
    co_await sleep_for(context, 1ms);
  }
}

const SubscriptionNames kEthereum{
    .subscribe = "eth_subscribe", .unsubscribe = "eth_unsubscribe", .notification = "eth_subscription"};

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
    EXPECT_NE(std::string_view{error.what()}.find("connect to tcp:// or unix://"), std::string_view::npos);
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

// ---- refusals ----

constexpr const char* kConflict = R"("error":{"code":-32007,"message":"Conflict","data":{"reason":"another policy"}})";

TEST(ClientProvide, connect_throws_what_is_refused) {
  BrokerWorld world;
  world.answers["rpc.register"] = kConflict;
  world.client->provide("gpu.add", add);
  try {
    world.client->connect();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), -32007);
    EXPECT_EQ(error.message(), "gpu.add is refused: Conflict");
    EXPECT_EQ(error.data(), R"({"reason":"another policy"})");
  }
  EXPECT_EQ(world.log, Names{"warning the server refuses what this client provides or subscribes to name=gpu.add "
                             "code=-32007 error=Conflict"});
  EXPECT_EQ(world.client->try_call<int>("a"), 1) << "the client is usable all the same";
}

TEST(ClientProvide, of_several_methods_that_are_refused_together_each_is_tried_apart) {
  BrokerWorld world;
  world.answer_to = [](const std::string& request) -> std::string {
    return request.find(R"("method":"b")") != request.npos ? kConflict : R"("result":1)";
  };
  Names refused;
  world.client->on_refused([&](std::string_view name, const Error&) { refused.emplace_back(name); });
  for (const char* name : {"a", "b", "c"}) world.client->provide(name, add);
  const Subscription news = world.client->subscribe("news", [](const Event&) {});
  try {
    world.client->connect();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "b is refused: Conflict");
  }
  EXPECT_EQ(refused, Names{"b"});
  EXPECT_EQ(world.methods(), (Names{"rpc.register", "rpc.subscribe", "rpc.register", "rpc.register", "rpc.register"}));
  world.peers[0]->reset();
  world.answer_to = nullptr;
  world.pass(100ms);
  EXPECT_EQ(world.methods(), (Names{"rpc.register", "rpc.subscribe"})) << "together again";
  EXPECT_NO_THROW(world.client->connect());
}

TEST(ClientProvide, what_is_not_provided_any_more_is_unregistered_and_may_be_provided_anew) {
  BrokerWorld world;
  world.client->provide("a", add);
  world.client->provide("b", add);
  world.client->connect();
  world.lines.clear();
  EXPECT_TRUE(world.client->unprovide("a"));
  EXPECT_FALSE(world.client->unprovide("a"));
  EXPECT_FALSE(world.client->unprovide("c"));
  world.send(R"({"jsonrpc":"2.0","method":"a","params":[1,2],"id":7})");
  world.pass(10ms);
  EXPECT_EQ(world.lines, (Names{R"({"jsonrpc":"2.0","method":"rpc.unregister","params":{"method":"a"}})",
                                R"({"jsonrpc":"2.0","result":3,"id":7})"}))
      << "a call that was on its way is answered";
  world.lines.clear();
  world.peers[0]->reset();
  world.pass(100ms);
  ASSERT_EQ(world.lines.size(), 1U);
  EXPECT_EQ(world.lines[0].find(R"("method":"a")"), std::string::npos) << world.lines[0];
  world.lines.clear();
  world.client->provide("a", [](int x, int y) { return x - y; });
  world.client->connect();
  ASSERT_EQ(world.lines.size(), 1U);
  EXPECT_NE(world.lines[0].find(R"("method":"a")"), std::string::npos) << world.lines[0];
  world.lines.clear();
  world.send(R"({"jsonrpc":"2.0","method":"a","params":[1,2],"id":8})");
  world.pass(10ms);
  EXPECT_EQ(world.lines, Names{R"({"jsonrpc":"2.0","result":-1,"id":8})"});
}

TEST(ClientProvide, what_is_withdrawn_before_its_answer_takes_nobody_along) {
  BrokerWorld world;
  world.answers["rpc.register"] = "";
  Names refused;
  world.client->on_refused([&](std::string_view name, const Error&) { refused.emplace_back(name); });
  world.client->provide("a", add);
  world.client->provide("b", add);
  world.pass(1ms);
  EXPECT_TRUE(world.client->unprovide("a"));
  world.answers.clear();
  world.send(R"({"jsonrpc":"2.0",)" + std::string{kConflict} + R"(,"id":"rpc.register:1"})");
  world.pass(10ms);
  EXPECT_EQ(refused, Names{}) << "the refusal may have meant the other one, so b is said again";
  EXPECT_EQ(world.methods(), (Names{"rpc.register", "rpc.unregister", "rpc.register"}));
  EXPECT_NO_THROW(world.client->connect());
}

TEST(ClientProvide, connections_that_end_and_are_made_are_told) {
  BrokerWorld world;
  Names news;
  world.client->on_connection([&](const ConnectionNews& one) {
    news.push_back((one.connected ? "connected" : one.cause));
    EXPECT_EQ(one.endpoint, "tcp://place0:1");
  });
  world.client->provide("a", add);
  world.client->connect();
  EXPECT_EQ(news, Names{"connected"});
  world.peers[0]->reset();
  world.pass(100ms);
  EXPECT_EQ(news,
            (Names{"connected", "the connection to tcp://place0:1 is gone: Connection reset by peer", "connected"}));
}

TEST(ClientProvide, a_connection_is_told_when_the_server_has_let_the_client_in) {
  ClientOptions options;
  options.client_id = "worker";
  BrokerWorld world{options};
  Names told;
  world.client->on_connection([&](const ConnectionNews& one) { told.emplace_back(one.connected ? "in" : "out"); });
  world.client->on_refused([&](std::string_view name, const Error& error) {
    told.push_back(std::string{name} + " " + std::to_string(error.code()));
  });
  world.client->provide("a", add);
  world.client->connect();
  world.pass(10ms);
  EXPECT_EQ(told, Names{"in"});
  world.answers["rpc.hello"] = R"("error":{"code":-32003,"message":"Forbidden"})";
  world.answers["rpc.register"] = "";
  world.peers[0]->reset();
  world.pass(100ms);
  ASSERT_GE(told.size(), 3U);
  EXPECT_EQ(Names(told.begin(), told.begin() + 3), (Names{"in", "out", "a -32003"}));
  told.erase(told.begin(), told.begin() + 3);
  world.answers.clear();
  world.pass(5000ms);
  EXPECT_EQ(told.back(), "in");
  told.pop_back();
  for (const std::string& one : told) EXPECT_EQ(one, "a -32003");
  EXPECT_NO_THROW(world.client->connect()) << "it declares the same again";
}

TEST(ClientProvide, a_server_that_asks_who_calls_says_so_though_it_closes_the_connection) {
  BrokerWorld world;
  world.answers["rpc.register"] = R"("error":{"code":-32004,"message":"Unauthenticated"})";
  const auto collect = world.serve;
  world.serve = [&] {
    collect();
    if (!world.lines.empty()) world.peers.back()->finish();
  };
  world.client->provide("a", add);
  try {
    world.client->connect();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), -32004) << error.message();
  }
}

TEST(ClientProvide, a_server_that_is_no_broker_says_so) {
  BrokerWorld world;
  world.answers["rpc.subscribe"] = R"("error":{"code":-32601,"message":"Method not found"})";
  const Subscription news = world.client->subscribe("news", [](const Event&) {});
  try {
    world.client->connect();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), -32601);
    EXPECT_NE(error.message().find("no broker"), std::string::npos) << error.message();
  }
}

TEST(ClientProvide, a_refusal_at_a_later_connection_goes_to_the_log_and_to_who_asked_for_it) {
  BrokerWorld world;
  std::vector<std::string> refused;
  world.client->on_refused([&](std::string_view name, const Error& error) {
    refused.push_back(std::string{name} + " " + std::to_string(error.code()));
    throw std::runtime_error("no matter");
  });
  world.client->provide("a", add);
  world.client->provide("b", add);
  world.client->connect();
  EXPECT_TRUE(refused.empty());
  world.answers["rpc.register"] = kConflict;
  world.peers[0]->reset();
  world.pass(100ms);
  EXPECT_EQ(refused, (Names{"a -32007", "b -32007"}));
  EXPECT_EQ(world.log.size(), 4U) << "two refusals, and two functions that threw";
  world.answers.clear();
  world.peers[1]->reset();
  world.pass(200ms);
  EXPECT_NO_THROW(world.client->connect()) << "accepted at last";
}

TEST(ClientProvide, connect_does_not_wait_for_ever_for_an_answer) {
  ClientOptions options;
  options.call_timeout_ms = 50;
  BrokerWorld world{options};
  world.answers["rpc.register"] = "";
  world.client->provide("gpu.add", add);
  try {
    world.client->connect();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), -32002);
  }
}

TEST(ClientProvide, connect_says_that_the_server_has_gone_instead_of_answering) {
  BrokerWorld world;
  world.answers["rpc.register"] = "";
  world.client->provide("gpu.add", add);
  const auto collect = world.serve;
  world.serve = [&] {
    collect();
    if (!world.lines.empty()) world.peers.back()->reset();
  };
  EXPECT_THROW(world.client->connect(), ConnectionError);
}

TEST(ClientProvide, an_answer_that_is_none_is_a_refusal_and_a_foreign_one_is_dropped) {
  BrokerWorld world;
  world.answers["rpc.register"] = R"("nothing":1,"error":1)";
  world.client->provide("gpu.add", add);
  EXPECT_THROW(world.client->connect(), Error);
  for (const std::string_view id : {R"("rpc.register:0")", R"("rpc.register:")", R"("rpc.register:x")", R"("rpc.")"}) {
    world.send(R"({"jsonrpc":"2.0","result":1,"id":)" + std::string{id} + "}");
  }
  world.pass(10ms);
  EXPECT_EQ(world.client->responses_dropped(), 4U);
}

// ---- calls of what is provided ----

TEST(ClientProvide, a_provided_method_is_called_and_several_at_once_where_they_wait) {
  BrokerWorld world;
  int most = 0;
  int now = 0;
  world.client->provide("slow",
                        [&](Context context, int n) -> Task<int> {
                          most = std::max(most, ++now);
                          co_await sleep_for(context, 5ms);
                          --now;
                          co_return 2 * n;
                        },
                        {.concurrency = 3});
  world.client->connect();
  world.lines.clear();
  for (int i = 1; i <= 3; ++i) {
    world.send(R"({"jsonrpc":"2.0","method":"slow","params":[)" + std::to_string(i) + R"(],"id":)" + std::to_string(i) +
               "}");
  }
  world.pass(50ms);
  std::ranges::sort(world.lines);
  EXPECT_EQ(world.lines, (Names{R"({"jsonrpc":"2.0","result":2,"id":1})", R"({"jsonrpc":"2.0","result":4,"id":2})",
                                R"({"jsonrpc":"2.0","result":6,"id":3})"}));
  EXPECT_EQ(most, 3);
}

TEST(ClientProvide, a_handler_calls_the_broker_back_within_its_own_time_and_counts_hops) {
  BrokerWorld world;
  world.answers["other"] = R"("result":20)";
  world.client->provide("nested", [](Context context, int n) -> Task<int> {
    co_return n + co_await Caller{context}.call<int>("other", n);
  });
  world.client->connect();
  world.lines.clear();
  world.send(R"({"jsonrpc":"2.0","method":"nested","params":[1],"id":7,"timeout_ms":500,"hops":2})");
  world.pass(50ms);
  ASSERT_EQ(world.lines.size(), 2U);
  EXPECT_EQ(BrokerWorld::member(world.lines[0], "method"), "\"other\"");
  EXPECT_EQ(BrokerWorld::member(world.lines[0], "hops"), "3");
  const int left = std::stoi(BrokerWorld::member(world.lines[0], "timeout_ms"));
  EXPECT_GT(left, 0);
  EXPECT_LE(left, 500);
  EXPECT_EQ(world.lines[1], R"({"jsonrpc":"2.0","result":21,"id":7})");
}

TEST(ClientProvide, a_nested_call_ends_with_the_call_that_made_it) {
  BrokerWorld world;
  world.answers["other"] = "";
  world.client->provide("nested",
                        [](Context context) -> Task<int> { co_return co_await Caller{context}.call<int>("other"); });
  world.client->connect();
  world.send(R"({"jsonrpc":"2.0","method":"nested","id":7})");
  world.pass(5ms);
  world.lines.clear();
  world.send(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":7}})");
  world.pass(5ms);
  ASSERT_EQ(world.lines.size(), 2U);
  EXPECT_EQ(std::ranges::count_if(world.lines, [](const auto& line) { return line.find("-32800") != line.npos; }), 1);
  EXPECT_EQ(
      std::ranges::count_if(world.lines, [](const auto& line) { return line.find("$/cancelRequest") != line.npos; }),
      1);
}

// ---- over sockets ----

// Answers what declares something, until the connection ends or `enough` of them have come.
void accept_declarations(RawPeer& peer, int enough) {
  for (std::string line = peer.line(); !line.empty(); line = peer.line()) {
    const std::string id = BrokerWorld::member(line, "id");
    if (!id.empty()) peer.send(R"({"jsonrpc":"2.0","result":1,"id":)" + id + "}\n");
    if (--enough == 0) return;
  }
}

TEST(ClientProvide, connects_at_once_and_again_without_any_call) {
  std::promise<void> twice;
  ScriptedServer server{2, [&, connections = 0](RawPeer peer) mutable {
                          EXPECT_NE(peer.line().find("rpc.register"), std::string::npos);
                          if (++connections == 1) return;
                          twice.set_value();
                          peer.all();
                        }};
  Client client{server.uri()};
  client.provide("gpu.add", add);
  EXPECT_EQ(twice.get_future().wait_for(kWatchdog), std::future_status::ready);
}

TEST(ClientProvide, methods_are_provided_while_others_are_called_and_the_client_calls) {
  constexpr int kMethods = 50;
  ScriptedServer server{[&](RawPeer peer) {
    std::thread asking{[&] {
      for (int i = 0; i < 500; ++i) peer.send(R"({"jsonrpc":"2.0","method":"m0","params":[1,2],"id":"x"})");
    }};
    std::size_t registered = 0;
    for (std::string line = peer.line(); !line.empty(); line = peer.line()) {
      if (BrokerWorld::member(line, "method").empty()) continue;
      const std::string params = BrokerWorld::member(line, "params");
      for (std::size_t at = 0; (at = params.find("{\"method\":", at)) != params.npos; ++at) ++registered;
      peer.send(R"({"jsonrpc":"2.0","result":1,"id":)" + BrokerWorld::member(line, "id") + "}\n");
    }
    asking.join();
    EXPECT_EQ(registered, kMethods);
  }};
  {
    Client client{server.uri()};
    std::vector<std::jthread> threads;
    std::atomic<int> next{0};
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = next++; i < kMethods; i = next++) {
          client.provide("m" + std::to_string(i), add);
          EXPECT_EQ(client.request<int>("other").future().get(), 1);
        }
      });
    }
    threads.clear();
    client.connect();
  }
  server.join();
}

TEST(ClientProvide, what_is_offered_cannot_be_changed_while_another_thread_is_in_run_but_inside_it_can) {
  ScriptedServer server{[](RawPeer peer) { accept_declarations(peer, -1); }};
  Client client{server.uri()};
  std::binary_semaphore inside{0};
  std::atomic<bool> enough{false};
  std::thread runner{[&] {
    client.run([](Client& of, std::binary_semaphore& in, const std::atomic<bool>& end) -> Task<void> {
      of.provide("inside", add);
      in.release();
      while (!end) co_await sleep_for(of.scheduler(), 1ms);
    }(client, inside, enough));
  }};
  inside.acquire();
  EXPECT_THROW(client.provide("beside", add), std::logic_error);
  enough = true;
  runner.join();
  client.provide("behind", add);
  EXPECT_NO_THROW(client.connect());
}

TEST(ClientProvide, connect_waits_for_the_answer_of_the_thread_in_the_background) {
  ScriptedServer server{[](RawPeer peer) {
    accept_declarations(peer, 1);
    peer.send(R"({"jsonrpc":"2.0","method":"gpu.add","params":[1,2],"id":"h"})");
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","result":3,"id":"h"})");
    peer.all();
  }};
  Client client{server.uri()};
  std::promise<int> sum;
  client.provide("gpu.add", [&](int a, int b) {
    sum.set_value(a + b);
    return a + b;
  });
  client.connect();
  EXPECT_EQ(sum.get_future().get(), 3);
}

// ---- at a broker of ours ----

class ClientAtBroker : public testing::Test {
 protected:
  ClientAtBroker() {
    broker_.method("own", [](int n) { return 10 * n; });
  }

  ClientOptions called(std::string name) {
    ClientOptions options;
    options.client_id = std::move(name);
    return options;
  }

  Broker broker_;
  const std::string uri_ = broker_.listen("tcp://127.0.0.1:0").uri();
  RunningServer running_{broker_};
};

TEST_F(ClientAtBroker, one_client_calls_what_another_provides) {
  Client provider{uri_, called("provider")};
  provider.provide("add", add, {.concurrency = 1, .queue = 10, .policy = "round_robin", .params = {"a", "b"}});
  provider.connect();
  Client caller{uri_};
  EXPECT_EQ(caller.call<int>("add", 42, 23), 65);
  EXPECT_EQ(caller.call<int>("add", arg("b") = 1, arg("a") = 2), 3);
  EXPECT_EQ(caller.try_call<int>("add", "x").error().code(), -32602);
}

TEST_F(ClientAtBroker, a_handler_calls_what_others_provide_and_circles_end) {
  Client provider{uri_};
  provider.provide("nested", [](Context context, int n) -> Task<int> {
    co_return 1 + co_await Caller{context}.call<int>("own", n);
  });
  provider.provide("circle",
                   [](Context context) -> Task<int> { co_return co_await Caller{context}.call<int>("circle"); });
  provider.connect();
  Client caller{uri_};
  EXPECT_EQ(caller.call<int>("nested", 2), 21);
  EXPECT_EQ(caller.try_call<int>("circle").error().code(), -32005);
}

TEST_F(ClientAtBroker, connect_throws_the_conflict_of_one_method_and_others_are_provided) {
  Client provider{uri_};
  provider.provide("own", add);
  provider.provide("add", add);
  try {
    provider.connect();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), -32007);
    EXPECT_TRUE(error.message().starts_with("own is refused")) << error.message();
  }
  Client caller{uri_};
  EXPECT_TRUE(comes_true([&] { return caller.try_call<int>("add", 1, 2) == 3; }));
  EXPECT_EQ(caller.call<int>("own", 2), 20);
}

TEST_F(ClientAtBroker, all_who_provide_a_method_are_called_at_once) {
  Client first{uri_, called("first")};
  first.provide("version", [](int n) { return n; });
  first.connect();
  Client second{uri_, called("second")};
  second.provide("version", [](int) -> int { throw Error{7, "no"}; });
  second.connect();
  Client caller{uri_};
  const auto outcomes = caller.call_all<int>("version", 5);
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_EQ(outcomes[0].client, "first");
  EXPECT_EQ(outcomes[0].outcome.value(), 5);
  EXPECT_EQ(outcomes[1].client, "second");
  EXPECT_EQ(outcomes[1].outcome.error().code(), 7);
}

TEST_F(ClientAtBroker, a_provider_that_goes_is_missed_and_one_that_comes_is_found) {
  Client caller{uri_};
  for (int i = 0; i < 3; ++i) {
    Client provider{uri_};
    provider.provide("add", add);
    provider.connect();
    EXPECT_EQ(caller.call<int>("add", i, 1), i + 1);
  }
  EXPECT_TRUE(comes_true([&] {
    const std::expected<int, Error> result = caller.try_call<int>("add", 1, 2);
    return !result && result.error().code() == -32601;
  }));
}

// ---- subscriptions that clients provide ----

class ClientSubscriptions : public ClientAtBroker {
 protected:
  ClientSubscriptions() { provide(); }

  void provide() {
    provider_.provide_subscription(kEthereum,
                                   [this](Context context, std::string kind) -> Stream<int> {
                                     const struct End {
                                       std::counting_semaphore<>& ended;
                                       ~End() { ended.release(); }
                                     } end{ended_};
                                     Stream<int> numbers = blocks(std::move(context), std::move(kind));
                                     while (std::optional<int> number = co_await numbers.next()) co_yield *number;
                                   },
                                   {.params = {"kind"}});
    provider_.connect();
  }
  // The id of a new subscription.
  static std::string subscribe(RawPeer& caller) {
    const std::string answer = ask(caller, "eth_subscribe", "newHeads");
    EXPECT_TRUE(answer.starts_with(R"({"jsonrpc":"2.0","result":"0x)")) << answer;
    return answer.substr(27, 34);
  }
  static std::string event(std::string_view id, int number) {
    return R"({"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":")" + std::string{id} +
           R"(","result":)" + std::to_string(number) + "}}";
  }
  // What a caller is answered, behind any number of events.
  static std::string ask(RawPeer& caller, std::string_view method, std::string_view param) {
    caller.send(R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":[")" + std::string{param} +
                R"("],"id":2})"
                "\n");
    for (;;) {
      std::string line = caller.line();
      if (line.empty() || line.find(R"("id":2)") != std::string::npos) return line;
    }
  }
  [[nodiscard]] bool ends() { return ended_.try_acquire_for(kWatchdog); }

  std::counting_semaphore<> ended_{0};
  Client provider_{uri_};
};

TEST_F(ClientSubscriptions, bring_their_events_in_order_behind_the_answer_until_they_are_ended) {
  RawPeer caller{Endpoint{uri_}};
  RawPeer other{Endpoint{uri_}};
  const std::string id = subscribe(caller);
  const std::string others = subscribe(other);
  EXPECT_NE(id, others);
  for (int number = 1; number <= 10; ++number) EXPECT_EQ(caller.line(), event(id, number));
  for (int number = 1; number <= 3; ++number) EXPECT_EQ(other.line(), event(others, number));
  EXPECT_NE(ask(caller, "eth_unsubscribe", others).find(R"("result":false)"), std::string::npos) << "another's";
  EXPECT_NE(ask(caller, "eth_unsubscribe", id).find(R"("result":true)"), std::string::npos);
  EXPECT_TRUE(ends());
  EXPECT_NE(ask(caller, "eth_unsubscribe", id).find(R"("result":false)"), std::string::npos) << "once";
  EXPECT_EQ(other.line(), event(others, 4)) << "which goes on";
}

TEST_F(ClientSubscriptions, are_refused_by_what_the_stream_throws_first) {
  RawPeer caller{Endpoint{uri_}};
  EXPECT_NE(ask(caller, "eth_subscribe", "nothing").find(R"("code":-32602,"message":"no such kind: nothing")"),
            std::string::npos);
}

TEST_F(ClientSubscriptions, end_at_the_provider_when_their_caller_goes) {
  RawPeer caller{Endpoint{uri_}};
  subscribe(caller);
  subscribe(caller);
  caller.close();
  EXPECT_TRUE(ends());
  EXPECT_TRUE(ends());
}

TEST_F(ClientSubscriptions, end_for_their_caller_when_they_are_provided_no_more_and_may_be_provided_anew) {
  RawPeer caller{Endpoint{uri_}};
  const std::string id = subscribe(caller);
  EXPECT_TRUE(provider_.unprovide("eth_subscribe"));
  std::string line = caller.line();
  while (line.find(R"("result":)") != std::string::npos) line = caller.line();
  EXPECT_NE(line.find(R"("subscription":")" + id + R"(","error":{"code":-32001)"), std::string::npos) << line;
  EXPECT_TRUE(ends());
  EXPECT_NE(ask(caller, "eth_unsubscribe", id).find("-32601"), std::string::npos) << "nobody provides it";
  provide();
  const std::string next = subscribe(caller);
  EXPECT_NE(next, id);
  EXPECT_EQ(caller.line(), event(next, 1));
}

}  // namespace
}  // namespace wirecall::session
