// A server that is given other limits, and another level of its log, while it serves: on each engine and by all of its
// threads, on connections that are open already.
#include <atomic>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/connection/peer.hpp"
#include "tests/server/engines.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {
namespace {

constexpr std::string_view kBatch =
    R"([{"jsonrpc":"2.0","method":"one","id":1},{"jsonrpc":"2.0","method":"one","id":2}])"
    "\n";

bool takes_batches_of_two(RawPeer& peer) {
  EXPECT_TRUE(peer.send(kBatch));
  return peer.line().find("error") == std::string::npos;
}

Limits of_batch(std::size_t elements) {
  Limits limits;
  limits.batch = elements;
  return limits;
}

/// Gives the server these limits and waits until they are in force.
void give(Server& server, const Limits& limits) {
  std::atomic<bool> in_force = false;
  server.set_limits(limits, [&] { in_force = true; });
  EXPECT_TRUE(comes_true([&] { return in_force.load(); }));
}

TEST_P(EngineTest, open_connections_of_all_threads_take_other_limits) {
  Server server{options(3)};
  server.method("one", [] { return 1; });
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  std::vector<RawPeer> peers;
  for (int i = 0; i < 16; ++i) peers.emplace_back(endpoint);
  for (RawPeer& peer : peers) EXPECT_TRUE(takes_batches_of_two(peer));
  give(server, of_batch(1));
  for (RawPeer& peer : peers) EXPECT_FALSE(takes_batches_of_two(peer));
  give(server, of_batch(2));
  for (RawPeer& peer : peers) EXPECT_TRUE(takes_batches_of_two(peer));
}

TEST_P(EngineTest, limits_and_the_level_of_the_log_may_change_while_calls_are_served) {
  std::atomic<int> logged = 0;
  Options given = options(1);
  given.takeover_ms = 1;
  given.log = LogSink{[&](const LogRecord&) { ++logged; }};
  Broker server{given};
  std::atomic<bool> over = false;
  server.method("one", [] { return 1; });
  server.method("stay", [&] { return comes_true([&] { return over.load(); }); });
  server.method("fail", []() -> int { throw std::runtime_error{"on purpose"}; });
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  // A handler that is off its loop all the time.
  RawPeer off_loop{endpoint};
  EXPECT_TRUE(off_loop.send("{\"jsonrpc\":\"2.0\",\"method\":\"stay\",\"id\":1}\n"));
  std::thread changes{[&] {
    for (int i = 0; i < 200; ++i) {
      server.set_limits(of_batch(i % 2 == 0 ? 1 : 2));
      server.set_log_level(i % 2 == 0 ? LogLevel::error : LogLevel::debug);
    }
  }};
  RawPeer peer{endpoint};
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(peer.send(kBatch));
    EXPECT_TRUE(peer.send("{\"jsonrpc\":\"2.0\",\"method\":\"fail\",\"id\":3}\n"));
    EXPECT_NE(peer.line(), "");
    EXPECT_NE(peer.line().find("\"id\":3"), std::string::npos);
  }
  changes.join();
  over = true;
  EXPECT_NE(off_loop.line().find("true"), std::string::npos);
  EXPECT_GE(logged, 200);
}

INSTANTIATE_TEST_SUITE_P(ServerLimits, EngineTest, kEachEngine, engine_name);

TEST(ServerLimits, that_cannot_be_are_refused_and_change_nothing) {
  Server server{threads(1)};
  server.method("one", [] { return 1; });
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  bool in_force = false;
  EXPECT_THROW(server.set_limits(of_batch(0), [&] { in_force = true; }), std::invalid_argument);
  EXPECT_FALSE(in_force);
  RawPeer peer{endpoint};
  EXPECT_TRUE(takes_batches_of_two(peer));
}

TEST(ServerLimits, given_before_the_server_runs_are_in_force_when_it_does) {
  Server server{threads(2)};
  server.method("one", [] { return 1; });
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  std::atomic<bool> in_force = false;
  server.set_limits(of_batch(1), [&] { in_force = true; });
  const RunningServer running{server};
  EXPECT_TRUE(comes_true([&] { return in_force.load(); }));
  RawPeer peer{endpoint};
  EXPECT_FALSE(takes_batches_of_two(peer));
}

TEST(ServerLimits, whoever_waits_for_them_is_told_though_the_server_goes_without_having_run) {
  bool told = false;
  {
    Server server{threads(2)};
    server.set_limits(of_batch(1), [&] { told = true; });
    EXPECT_FALSE(told);
  }
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace wirecall::net
