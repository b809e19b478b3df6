// The client on a simulated system: connections in memory, virtual time, one thread. What is written and what is not,
// how it connects again, and what depends on time.
#include "client/core.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <expected>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/client/world.hpp"
#include "wirecall/client.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;
using runtime::SimulatedPeer;
using std::chrono::nanoseconds;
using Result = std::expected<int, Error>;

std::string id_of(const std::string& request) {
  const std::size_t at = request.find("\"id\":") + 5;
  return request.substr(at, request.find_first_of(",}", at) - at);
}
std::string result(const std::string& id) { return R"({"jsonrpc":"2.0","result":19,"id":)" + id + "}\n"; }

// Answers each request with 19.
void answer_all(World& world) {
  world.serve = [&world] {
    for (std::string request = world.line(); !request.empty(); request = world.line()) {
      if (request.find("\"id\":") != std::string::npos) world.peers.back()->send(result(id_of(request)));
    }
  };
}

TEST(ClientCore, a_call_of_which_any_byte_has_left_fails_when_the_connection_does_and_is_not_made_again) {
  const std::string request = "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":1}\n";
  for (std::size_t bytes = 0; bytes <= request.size(); ++bytes) {
    World world{static_cast<unsigned>(bytes)};
    world.opened = [&](SimulatedPeer& peer) {
      if (world.peers.empty()) peer.window = bytes;
    };
    std::string first;
    world.serve = [&] {
      if (world.peers.size() == 1) {
        first += std::exchange(world.received, {});
        if (first.size() == bytes) world.peers[0]->reset();
        return;
      }
      for (std::string next = world.line(); !next.empty(); next = world.line()) {
        EXPECT_EQ(next.find(R"("method":"a")"), std::string::npos) << bytes;
        world.peers.back()->send(result(id_of(next)));
      }
    };
    // The connection is there before the call, so that the reset comes while the call is on its way.
    const Result lost = world.client->try_call<int>("a");
    if (bytes == 0 && lost.has_value()) continue;  // the reset was noticed before anything had been handed over
    ASSERT_FALSE(lost.has_value()) << bytes;
    EXPECT_EQ(lost.error().code(), -32001) << bytes;
    EXPECT_NE(lost.error().data().find(R"("delivered":"maybe")"), std::string::npos) << bytes;
    EXPECT_EQ(first, request.substr(0, bytes));
    EXPECT_EQ(world.client->try_call<int>("b"), 19) << bytes;
  }
}

TEST(ClientCore, calls_of_which_no_byte_has_left_wait_for_the_next_connection_and_are_made_once) {
  const std::string request = "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":1}\n";
  for (std::size_t bytes = 0; bytes < request.size(); ++bytes) {
    World world{static_cast<unsigned>(bytes)};
    Client& client = *world.client;
    world.opened = [&](SimulatedPeer& peer) {
      if (world.peers.empty()) peer.window = bytes;
    };
    std::vector<std::string> served;
    std::string first;
    bool all_made = false;
    world.serve = [&] {
      if (world.peers.size() == 1) {
        first += std::exchange(world.received, {});
        if (first.size() == bytes && all_made) world.peers[0]->reset();
        return;
      }
      for (std::string next = world.line(); !next.empty(); next = world.line()) {
        served.push_back(next.substr(0, next.find(",\"id\"")));
        world.peers.back()->send(result(id_of(next)));
      }
    };
    // The first call is stuck at the system's door; those behind it are not even there.
    std::vector<Result> results(4, Result{0});
    const auto call = [&client, &results](std::size_t i, std::string method) -> Task<void> {
      try {
        results[i] = co_await client.request<int>(method);
      } catch (const Error& error) {
        results[i] = std::unexpected{error};
      }
    };
    const auto all = [&]() -> Task<void> {
      std::vector<Task<void>> calls;
      calls.push_back(call(0, "a"));
      const auto later = [&]() -> Task<void> {
        co_await sleep_for(client.scheduler(), 1ms);
        std::vector<Task<void>> rest;
        rest.push_back(call(1, "b"));
        rest.push_back(call(2, "c"));
        rest.push_back(call(3, "d"));
        all_made = true;
        co_await when_all(std::move(rest));
      };
      calls.push_back(later());
      co_await when_all(std::move(calls));
    };
    client.run(all());
    EXPECT_FALSE(results[0].has_value()) << bytes;
    for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(results[i], 19) << bytes << " " << i;
    EXPECT_EQ(served, (std::vector<std::string>{R"({"jsonrpc":"2.0","method":"b")", R"({"jsonrpc":"2.0","method":"c")",
                                                R"({"jsonrpc":"2.0","method":"d")"}))
        << bytes;
  }
}

TEST(ClientCore, a_batch_of_which_no_byte_has_left_is_one_message_again_on_the_next_connection) {
  World world{1};
  Client& client = *world.client;
  bool made = false;
  world.opened = [&](SimulatedPeer& peer) {
    if (world.peers.empty()) peer.window = 0;
  };
  std::vector<std::string> served;
  world.serve = [&] {
    if (world.peers.size() == 1) {
      if (made) world.peers[0]->reset();
      return;
    }
    for (std::string next = world.line(); !next.empty(); next = world.line()) {
      served.push_back(next);
      const std::size_t second = next.find("\"c\"");
      std::string first_answer = result(id_of(next));
      first_answer.back() = ',';
      std::string second_answer = result(id_of(next.substr(second)));
      second_answer.back() = ']';
      world.peers.back()->send("[" + first_answer + second_answer + "\n");
    }
  };
  const auto all = [&]() -> Task<Batch<int, int>::Results> {
    // Stuck at the system's door; so the batch behind it is not even there.
    static_cast<void>(client.request<int>("a").then([](const Result&) {}));
    co_await sleep_for(client.scheduler(), 1ms);
    std::optional<Batch<int, int>::Results> results;
    client.batch().call<int>("b").notify("n").call<int>("c").then(
        [&](auto given) { results.emplace(std::move(given)); });
    made = true;
    while (!results) co_await sleep_for(client.scheduler(), 1ms);
    co_return std::move(*results);
  };
  const auto [b, c] = client.run(all());
  EXPECT_EQ(b, 19);
  EXPECT_EQ(c, 19);
  EXPECT_EQ(served,
            (std::vector<std::string>{R"([{"jsonrpc":"2.0","method":"b","id":4},{"jsonrpc":"2.0","method":"n"},)"
                                      R"({"jsonrpc":"2.0","method":"c","id":5}])"}));
}

TEST(ClientCore, pauses_between_attempts_double_up_to_the_maximum_less_a_random_part) {
  ClientOptions options;
  options.call_timeout_ms = 10'000;
  options.reconnect_min_ms = 100;
  options.reconnect_max_ms = 1000;
  World world{1, options};
  world.refuse = [](const Endpoint&) { return true; };
  const Result nobody = world.client->try_call<int>("a");
  ASSERT_FALSE(nobody.has_value());
  EXPECT_EQ(nobody.error().message(), "cannot connect to tcp://place0:1: refused");
  ASSERT_GT(world.dialed.size(), 8U);
  double whole = 100;
  for (std::size_t i = 1; i < world.dialed.size(); ++i) {
    const double pause =
        std::chrono::duration<double, std::milli>(world.dialed[i].second - world.dialed[i - 1].second).count();
    EXPECT_GE(pause, whole / 2) << i;
    EXPECT_LE(pause, whole + 1) << i;
    whole = std::min(whole * 2, 1000.0);
  }
  EXPECT_LE(world.backend->now(), 10'001ms);
  // The same seed, the same pauses.
  World again{1, options};
  again.refuse = world.refuse;
  static_cast<void>(again.client->try_call<int>("a"));
  EXPECT_EQ(again.dialed, world.dialed);
}

TEST(ClientCore, every_endpoint_is_tried_before_there_is_a_pause) {
  World world{1, {}, 3};
  answer_all(world);
  int attempts = 0;
  world.refuse = [&](const Endpoint& endpoint) { return ++attempts < 6 || endpoint.host() != "place1"; };
  EXPECT_EQ(world.client->try_call<int>("a"), 19);
  std::vector<std::string> endpoints;
  for (const auto& [endpoint, time] : world.dialed) endpoints.push_back(endpoint);
  EXPECT_EQ(endpoints,
            (std::vector<std::string>{"place0", "place1", "place2", "place0", "place1", "place2", "place0", "place1"}));
  EXPECT_EQ(world.dialed[0].second, world.dialed[2].second);
  EXPECT_LT(world.dialed[2].second, world.dialed[3].second);
}

TEST(ClientCore, a_call_may_wait_for_its_server_as_long_as_it_has_time) {
  World world{3};
  answer_all(world);
  world.refuse = [&](const Endpoint&) { return world.backend->now() < 5s; };
  EXPECT_EQ(world.client->try_call<int>("a"), 19);
  EXPECT_GE(world.backend->now(), 5s);
}

TEST(ClientCore, a_draining_server_s_calls_go_to_another_endpoint) {
  World world{4, {}, 2};
  world.serve = [&] {
    for (std::string request = world.line(); !request.empty(); request = world.line()) {
      const std::string id = id_of(request);
      world.peers.back()->send(world.peers.size() == 1
                                   ? R"({"jsonrpc":"2.0","error":{"code":-32009,"message":"Draining","data":)"
                                     R"({"reason":"r","origin":"local","delivered":"no"}},"id":)" +
                                         id + "}\n"
                                   : result(id));
      if (world.peers.size() == 1) world.peers.back()->finish();
    }
  };
  EXPECT_EQ(world.client->try_call<int>("a"), 19);
  ASSERT_EQ(world.dialed.size(), 2U);
  EXPECT_EQ(world.dialed[1].first, "place1");
}

TEST(ClientCore, a_draining_server_that_breaks_off_is_the_one_named_and_the_next_endpoint_is_tried) {
  World world{4, {}, 3};
  world.serve = [&] {
    for (std::string request = world.line(); !request.empty(); request = world.line()) {
      if (world.peers.size() != 1) {
        world.peers.back()->send(result(id_of(request)));
        continue;
      }
      world.peers.back()->send("{\"jsonrpc\":\"2.0\",\"method\":\"rpc.draining\"}\n");
      world.peers.back()->finish();
    }
  };
  const Result lost = world.client->try_call<int>("a");
  ASSERT_FALSE(lost.has_value());
  EXPECT_NE(lost.error().message().find("place0"), std::string::npos) << lost.error().message();
  EXPECT_EQ(world.client->try_call<int>("a"), 19);
  ASSERT_EQ(world.dialed.size(), 2U);
  EXPECT_EQ(world.dialed[1].first, "place1");
}

TEST(ClientCore, a_server_that_takes_connections_and_closes_them_is_not_tried_without_a_pause) {
  ClientOptions options;
  options.call_timeout_ms = 2000;
  World world{5, options};
  world.opened = [](SimulatedPeer& peer) {
    peer.window = 0;
    peer.finish();
  };
  EXPECT_FALSE(world.client->try_call<int>("a").has_value());
  EXPECT_LT(world.dialed.size(), 40U);
}

// It says hello, and then nothing else: so it is no better than one that cannot be connected to.
TEST(ClientCore, a_server_that_greets_and_leaves_is_not_tried_without_a_pause) {
  for (const bool drains : {false, true}) {
    ClientOptions options;
    options.call_timeout_ms = 2000;
    options.client_id = "me";
    World world{5, options};
    world.serve = [&] {
      for (std::string request = world.line(); !request.empty(); request = world.line()) {
        if (request.find("rpc.hello") == std::string::npos) continue;
        world.peers.back()->send(R"({"jsonrpc":"2.0","result":{"name":"me"},"id":)" + id_of(request) + "}\n");
        if (drains) {
          world.peers.back()->send("{\"jsonrpc\":\"2.0\",\"method\":\"rpc.draining\"}\n");
        } else {
          world.peers.back()->finish();
        }
      }
    };
    world.client->method("offered", [] { return 1; });
    const nanoseconds begun = world.backend->now();
    while (world.backend->now() < begun + 2s) static_cast<void>(world.client->try_call<int>("a"));
    EXPECT_LT(world.dialed.size(), 40U) << drains;
  }
}

TEST(ClientCore, connect_tries_at_once_though_a_pause_is_not_over) {
  ClientOptions options;
  options.connect_timeout_ms = 100;
  options.reconnect_min_ms = 5000;
  options.reconnect_max_ms = 5000;
  World world{6, options};
  world.refuse = [](const Endpoint&) { return true; };
  EXPECT_FALSE(world.client->request<int>("a").timeout(50ms).try_call().has_value());
  const std::size_t dialed = world.dialed.size();
  EXPECT_THROW(world.client->connect(), ConnectionError);
  EXPECT_EQ(world.dialed.size(), dialed + 1);
  world.refuse = nullptr;
  answer_all(world);
  world.client->connect();
  EXPECT_EQ(world.client->try_call<int>("a"), 19);
}

TEST(ClientCore, a_deadline_is_met_to_the_millisecond_and_told_to_the_server) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    World world{seed};
    std::string sent;
    world.serve = [&] {
      if (sent.empty()) sent = world.line();
    };
    const nanoseconds begun = world.backend->now();
    const Result late = world.client->request<int>("a").timeout(1234ms).try_call();
    EXPECT_EQ(late.error().code(), -32002);
    EXPECT_GE(world.backend->now() - begun, 1234ms);
    EXPECT_LE(world.backend->now() - begun, 1235ms);
    EXPECT_EQ(sent, R"({"jsonrpc":"2.0","method":"a","id":1,"timeout_ms":1234})");
  }
}

TEST(ClientCore, ids_stay_different_and_answers_in_any_order_find_their_calls) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    World world{seed};
    Client& client = *world.client;
    std::vector<std::string> waiting;
    std::mt19937 random{seed};
    world.serve = [&] {
      for (std::string request = world.line(); !request.empty(); request = world.line()) waiting.push_back(request);
      std::ranges::shuffle(waiting, random);
      for (std::size_t left = waiting.size() / 2 + 1; left != 0 && !waiting.empty(); --left) {
        const std::string& request = waiting.back();
        const std::size_t at = request.find("\"params\":[") + 10;
        const std::string value = request.substr(at, request.find(']', at) - at);
        world.peers.back()->send(R"({"jsonrpc":"2.0","result":)" + value + R"(,"id":)" + id_of(request) + "}\n");
        waiting.pop_back();
      }
    };
    const auto caller = [](Client& from, int number) -> Task<void> {
      for (int i = 0; i < 20; ++i) {
        const int value = number * 1000 + i;
        EXPECT_EQ(co_await from.request<int>("echo", value), value);
      }
    };
    std::vector<Task<void>> callers;
    for (int number = 0; number < 100; ++number) callers.push_back(caller(client, number));
    client.run(when_all(std::move(callers)));
    EXPECT_EQ(client.responses_dropped(), 0U);
  }
}

TEST(CallTable, finds_by_id_what_it_holds_and_nothing_else) {
  CallTable table;
  std::deque<ClientCall> calls(1000);
  for (ClientCall& call : calls) table.insert(call);
  EXPECT_EQ(table.size(), 1000U);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].id, i + 1);
    EXPECT_EQ(table.find(i + 1), &calls[i]);
  }
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.find(1001), nullptr);
  EXPECT_EQ(table.find(~std::uint64_t{0}), nullptr);
  for (std::size_t i = 1; i < calls.size(); ++i) table.erase(calls[i]);
  // The first stays, however many come and go: its place is passed over.
  for (int i = 0; i < 10'000; ++i) {
    table.insert(calls[1]);
    EXPECT_EQ(table.find(calls[1].id), &calls[1]);
    EXPECT_EQ(table.find(1), &calls[0]);
    table.erase(calls[1]);
  }
  EXPECT_EQ(table.size(), 1U);
}

}  // namespace
}  // namespace wirecall::net
