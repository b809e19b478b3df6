// Clients that come back: by the session that a broker has given them the next connection to it is theirs, though it
// may not know yet that the former one is lost. On a simulated system.
#include <chrono>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "tests/server/broker_world.hpp"
#include "wirecall/client.hpp"

namespace wirecall::net {
namespace {

constexpr std::string_view kUnknown =
    R"("error":{"code":-32004,"message":"Unauthenticated","data":{"reason":"there is no such session"}})";

ClientOptions named() {
  ClientOptions options;
  options.client_id = "worker";
  return options;
}
std::string hello(std::string_view resume = {}) {
  std::string text = R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"name":"worker")";
  if (!resume.empty()) text += R"(,"resume":")" + std::string{resume} + '"';
  return text + R"(},"id":"rpc.hello"})";
}

struct Returning : BrokerWorld {
  explicit Returning(std::size_t endpoints = 1) : BrokerWorld{named(), endpoints} { session("secret1"); }
  void session(const std::string& secret) { answers["rpc.hello"] = R"("result":{"session":")" + secret + "\"}"; }
  // The first of the messages that have come.
  std::string first() {
    const std::string message = lines.empty() ? std::string{} : lines.front();
    lines.clear();
    return message;
  }
  void lose() {
    peers.back()->reset();
    static_cast<void>(client->try_call<int>("lost"));
  }
};

// The refusal and the end of the connection come together, before the client has looked at either.
TEST(ClientResume, a_token_that_is_refused_while_it_connects_is_told_as_that) {
  World world{1, named()};
  world.opened = [](runtime::SimulatedPeer& peer) {
    peer.send(R"({"jsonrpc":"2.0",)" + std::string{kUnknown} + R"(,"id":"rpc.hello"})" + "\n");
    peer.finish();
  };
  const std::chrono::nanoseconds began = world.backend->now();
  try {
    world.client->connect();
    ADD_FAILURE() << "it is connected";
  } catch (const ConnectionError& error) {
    EXPECT_EQ(error.code(), -32004) << error.message();
  }
  EXPECT_LT(world.backend->now() - began, std::chrono::milliseconds{ClientOptions{}.connect_timeout_ms});
}

TEST(ClientResume, each_connection_goes_on_with_the_session_of_the_one_before) {
  Returning world;
  EXPECT_EQ(world.client->try_call<int>("a"), 1);
  EXPECT_EQ(world.first(), hello());
  world.lose();
  world.session("secret2");
  EXPECT_EQ(world.client->try_call<int>("a"), 1);
  EXPECT_EQ(world.first(), hello("secret1"));
  world.lose();
  EXPECT_EQ(world.client->try_call<int>("a"), 1);
  EXPECT_EQ(world.first(), hello("secret2"));
}

TEST(ClientResume, what_is_declared_follows_it_and_then_what_waits) {
  Returning world;
  world.client->provide("gpu.add", [](int a, int b) { return a + b; });
  const Subscription news = world.client->subscribe("news", [](const Event&) {});
  EXPECT_EQ(world.client->try_call<int>("a"), 1);
  world.lines.clear();
  world.lose();
  EXPECT_EQ(world.client->try_call<int>("a"), 1);
  EXPECT_EQ(world.methods(), (std::vector<std::string>{"rpc.hello", "rpc.register", "rpc.subscribe", "a"}));
}

TEST(ClientResume, a_broker_that_has_forgotten_it_is_told_the_name_alone_and_no_call_is_lost) {
  Returning world;
  EXPECT_EQ(world.client->try_call<int>("a"), 1);
  world.lose();
  world.lines.clear();
  int greetings = 0;
  world.answer_to = [&](const std::string& request) -> std::string {
    if (BrokerWorld::member(request, "method") != "\"rpc.hello\"") return R"("result":2)";
    return ++greetings == 1 ? std::string{kUnknown} : R"("result":{"session":"secret3"})";
  };
  EXPECT_EQ(world.client->try_call<int>("a"), 2);
  EXPECT_EQ(world.client->try_call<int>("a"), 2);
  EXPECT_EQ(world.methods(), (std::vector<std::string>{"rpc.hello", "a", "rpc.hello", "a"}));
  EXPECT_EQ(world.peers.size(), 2U);
  EXPECT_EQ(world.client->responses_dropped(), 0U);
  EXPECT_EQ(world.log, std::vector<std::string>{});
  world.lose();
  world.lines.clear();
  EXPECT_EQ(world.client->try_call<int>("a"), 2);
  EXPECT_EQ(world.first(), hello("secret3"));
}

TEST(ClientResume, one_that_is_not_let_in_is_told_so_and_the_secret_is_nowhere) {
  Returning world;
  EXPECT_EQ(world.client->try_call<int>("a"), 1);
  world.lose();
  world.answers["rpc.hello"] = kUnknown;
  world.answers["a"] = kUnknown;
  const auto refused = world.client->try_call<int>("a");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), -32004);
  const auto again = world.client->try_call<int>("a");
  ASSERT_FALSE(again.has_value());
  ASSERT_FALSE(world.log.empty());
  for (const std::string& line : world.log) EXPECT_EQ(line.find("secret1"), std::string::npos) << line;
  EXPECT_EQ(again.error().data().find("secret1"), std::string::npos);
}

TEST(ClientResume, another_endpoint_is_not_told) {
  Returning world{2};
  EXPECT_EQ(world.client->try_call<int>("a"), 1);
  world.first();
  const std::string endpoint = world.dialed.back().first;
  world.refuse = [&](const Endpoint& to) { return to.host() == endpoint; };
  world.lose();
  EXPECT_EQ(world.client->try_call<int>("a"), 1);
  ASSERT_NE(world.dialed.back().first, endpoint);
  EXPECT_EQ(world.first(), hello());
}

TEST(ClientResume, a_server_that_gives_no_session_is_told_the_name_alone) {
  Returning world;
  world.answers["rpc.hello"] = R"("result":{"server":"x"})";
  EXPECT_EQ(world.client->try_call<int>("a"), 1);
  world.lose();
  world.lines.clear();
  EXPECT_EQ(world.client->try_call<int>("a"), 1);
  EXPECT_EQ(world.first(), hello());
}

}  // namespace
}  // namespace wirecall::net
