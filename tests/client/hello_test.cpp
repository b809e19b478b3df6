// What a client with a name says first on each connection, and what it makes of the answer, on a simulated system.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <expected>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/client/world.hpp"
#include "tests/connection/peer.hpp"
#include "tests/http/world.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kHello =
    R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"name":"a \"b\""},"id":"rpc.hello"})";

struct Named : World {
  explicit Named(ClientOptions options = {}) : World{1, with_name(*this, std::move(options))} {
    serve = [this] {
      for (std::string request = line(); !request.empty(); request = line()) {
        lines.push_back(request);
        if (request == kHello) {
          if (!greeting.empty()) peers.back()->send(greeting);
        } else if (answers) {
          peers.back()->send(result(id_of(request)) + "\n");
        }
      }
    };
  }
  static ClientOptions with_name(Named& world, ClientOptions options) {
    options.client_id = "a \"b\"";
    options.log = [&world](const LogRecord& record) {
      world.log.emplace_back(format_log(LogFormat::human, record).substr(25));  // without its time
    };
    return options;
  }
  static std::string greet(const std::string& what) { return R"({"jsonrpc":"2.0","id":"rpc.hello",)" + what + "}\n"; }

  std::string greeting;  // what rpc.hello is answered with
  bool answers = true;   // other requests with 19
  std::vector<std::string> lines;
  std::vector<std::string> log;
};

TEST(ClientHello, is_the_first_message_on_each_connection_and_no_call_waits_for_its_answer) {
  Named world;
  EXPECT_EQ(world.client->try_call<int>("a"), 19);
  world.peers[0]->reset();
  static_cast<void>(world.client->try_call<int>("lost"));
  EXPECT_EQ(world.client->try_call<int>("b"), 19);
  ASSERT_EQ(world.lines.size(), 4U);
  EXPECT_EQ(world.lines[0], kHello);
  EXPECT_NE(world.lines[1].find(R"("method":"a")"), std::string::npos);
  EXPECT_EQ(world.lines[2], kHello);
  EXPECT_NE(world.lines[3].find(R"("method":"b")"), std::string::npos);
}

TEST(ClientHello, is_not_said_by_http) {
  ClientOptions options;
  options.client_id = "a";
  HttpWorld world{1, options};
  world.respond = [](runtime::SimulatedPeer& peer, const Post& post) {
    peer.send(with_length("200 OK", result(id_of(post.body))));
  };
  EXPECT_EQ(world.client->try_call<int>("a"), 19);
  ASSERT_EQ(world.posts.size(), 1U);
  EXPECT_EQ(world.posts[0].body.find("rpc.hello"), std::string::npos);
}

TEST(ClientHello, a_server_that_knows_no_such_method_is_as_good_as_any) {
  Named world;
  world.greeting = Named::greet(R"("error":{"code":-32601,"message":"Method not found"})");
  EXPECT_EQ(world.client->try_call<int>("a"), 19);
  EXPECT_EQ(world.client->responses_dropped(), 0U);
  EXPECT_EQ(world.log, std::vector<std::string>{});
}

TEST(ClientHello, another_refusal_is_a_warning_unless_the_log_is_for_errors) {
  const std::string refusal = Named::greet(R"("error":{"code":-32007,"message":"Conflict"})");
  Named world;
  world.greeting = refusal;
  EXPECT_EQ(world.client->try_call<int>("a"), 19);
  EXPECT_EQ(world.log, std::vector<std::string>{"warning the server refuses this client "
                                                R"(client_id="a \"b\"" code=-32007 error=Conflict)"});
  EXPECT_EQ(world.client->responses_dropped(), 0U);
  ClientOptions options;
  options.log_level = LogLevel::error;
  Named quiet{options};
  quiet.greeting = refusal;
  EXPECT_EQ(quiet.client->try_call<int>("a"), 19);
  EXPECT_EQ(quiet.log, std::vector<std::string>{});
}

TEST(ClientHello, a_request_that_the_server_says_is_too_large_for_it_is_not_sent) {
  Named world;
  world.greeting = Named::greet(R"("result":{"server":"x","limits":{"max_message_size":100,"hops":1}})");
  EXPECT_EQ(world.client->try_call<int>("a"), 19);
  const std::expected<int, Error> large = world.client->try_call<int>("a", std::string(100, 'x'));
  ASSERT_FALSE(large.has_value());
  EXPECT_EQ(large.error().code(), -32006);
  EXPECT_NE(large.error().data().find(R"("delivered":"no")"), std::string::npos);
  EXPECT_EQ(world.client->try_call<int>("a"), 19);
  EXPECT_EQ(world.lines.size(), 3U);
  EXPECT_EQ(world.peers.size(), 1U);
}

TEST(ClientHello, calls_beyond_what_the_server_takes_at_once_wait) {
  Named world;
  world.greeting = Named::greet(R"("result":{"limits":{"in_flight":2}})");
  EXPECT_EQ(world.client->try_call<int>("a"), 19);
  world.answers = false;
  std::size_t most = 0;
  const auto all = [&]() -> Task<void> {
    std::vector<Task<int>> calls;
    for (int i = 0; i < 5; ++i) {
      calls.push_back([](Client& client) -> Task<int> { co_return co_await client.request<int>("b"); }(*world.client));
    }
    co_await when_all(std::move(calls));
  };
  const auto collect = world.serve;
  world.serve = [&] {
    const std::size_t before = world.lines.size();
    collect();
    most = std::max(most, world.lines.size() - before);
    for (std::size_t i = before; i < world.lines.size(); ++i) {
      world.peers.back()->send(result(id_of(world.lines[i])) + "\n");
    }
  };
  world.client->run(all());
  EXPECT_EQ(most, 2U);
  EXPECT_EQ(world.lines.size(), 7U);
}

// The server refuses what it is called, without saying whom.
void refuse_anonymously(Named& world) {
  world.serve = [&world] {
    for (std::string request = world.line(); !request.empty(); request = world.line()) {
      if (request == kHello && world.greeting.empty()) continue;
      world.peers.back()->send(refusal("null") + "\n");
    }
  };
}

TEST(ClientHello, an_error_without_an_id_may_be_its_answer_once) {
  Named world;
  world.greeting = "anonymous";
  refuse_anonymously(world);
  world.client->connect();
  const auto pause = [&]() -> Task<void> { co_await sleep_for(world.client->scheduler(), 10ms); };
  world.client->run(pause());
  EXPECT_EQ(world.client->responses_dropped(), 1U);
  EXPECT_EQ(world.client->try_call<int>("a").error().code(), -5);
  EXPECT_EQ(world.client->try_call<int>("b").error().code(), -5);
}

TEST(ClientHello, is_no_more_waited_for_than_any_call) {
  ClientOptions options;
  options.call_timeout_ms = 100;
  Named world{options};
  refuse_anonymously(world);
  world.client->connect();
  const auto pause = [&]() -> Task<void> { co_await sleep_for(world.client->scheduler(), 150ms); };
  world.client->run(pause());
  EXPECT_EQ(world.client->try_call<int>("a").error().code(), -5);
}

TEST(ClientHello, what_is_no_sensible_answer_changes_nothing) {
  for (const std::string what : {R"("result":null)", R"("result":{"limits":{"in_flight":-1}})",
                                 R"("result":{"limits":{"in_flight":0,"max_message_size":0}})"}) {
    Named world;
    world.greeting = Named::greet(what);
    EXPECT_EQ(world.client->try_call<int>("a"), 19) << what;
    EXPECT_EQ(world.client->try_call<int>("a"), 19) << what;
    EXPECT_EQ(world.client->responses_dropped(), 0U) << what;
  }
}

TEST(ClientHello, a_server_of_ours_understands_it) {
  Server server;
  server.method("subtract", [](int a, int b) { return a - b; });
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  RunningServer running{server};
  std::vector<std::string> log;
  ClientOptions options;
  options.client_id = "me";
  options.log = [&log](const LogRecord& record) { log.emplace_back(record.message); };
  Client client{endpoint.uri(), options};
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
  EXPECT_EQ(client.responses_dropped(), 0U);
  EXPECT_EQ(log, std::vector<std::string>{});
}

}  // namespace
}  // namespace wirecall::net
