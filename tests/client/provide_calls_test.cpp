// Calls of what clients provide at a broker, on a simulated system; and from other threads than the one that drives,
// over sockets.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <gtest/gtest.h>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/client/provided.hpp"
#include "tests/connection/peer.hpp"
#include "tests/server/broker_world.hpp"
#include "wirecall/caller.hpp"
#include "wirecall/client.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

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

}  // namespace
}  // namespace wirecall::net
