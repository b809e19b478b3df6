// What becomes of the methods that clients provide when the broker refuses them, ends the connection, or does not
// answer; on a simulated system.
#include <chrono>
#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/client/provided.hpp"
#include "tests/server/broker_world.hpp"
#include "wirecall/client.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

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
  world.client->on_connection([&](const ConnectionEvent& one) {
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
  world.client->on_connection([&](const ConnectionEvent& one) { told.emplace_back(one.connected ? "in" : "out"); });
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

}  // namespace
}  // namespace wirecall::net
