// Batched functions of a real server: calls of several loops, with the function on threads of the pool, and callers
// that give up or leave.
#include <atomic>
#include <chrono>
#include <deque>
#include <expected>
#include <future>
#include <gtest/gtest.h>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/connection/peer.hpp"
#include "wirecall/batched.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;

class BatchedServer : public testing::Test {
 protected:
  static constexpr int kCallers = 4;
  static constexpr int kRounds = 100;

  // Each caller has eight calls in flight at once, and looks at each answer.
  static void call_all(const std::string& uri, std::string_view method) {
    std::vector<std::jthread> callers;
    for (int caller = 0; caller != kCallers; ++caller) {
      callers.emplace_back([&uri, method, caller] {
        Client client{uri};
        for (int round = 0; round != kRounds; ++round) {
          auto batch = client.batch_of<int>();
          for (int i = 0; i != 8; ++i) batch.call(method, caller * 1000 + round + i);
          int i = 0;
          const auto outcomes = std::move(batch).send();
          for (const std::expected<int, Error>& outcome : outcomes)
            EXPECT_EQ(outcome.value(), 2 * (caller * 1000 + round + i++));
        }
      });
    }
  }
  static std::vector<int> doubled(std::vector<int> numbers) {
    for (int& number : numbers) number *= 2;
    return numbers;
  }
  static Options options() {
    Options options;
    options.thread_count = 2;
    return options;
  }
};

TEST_F(BatchedServer, gathers_the_calls_of_several_loops) {
  Server server{options()};
  std::atomic<std::size_t> calls = 0;
  std::atomic<int> running = 0;
  const auto doubled = [&](const std::vector<int>& numbers) {
    EXPECT_EQ(++running, 1) << "one batch at a time";
    std::vector<int> results;
    for (const int number : numbers) results.push_back(2 * number);
    calls += numbers.size();
    --running;
    return results;
  };
  server.batch_method("double", doubled, {.size = 16, .queue = 1000});
  server.batch_method("later",
                      [](std::vector<int> numbers) -> Task<std::vector<int>> {
                        for (int& number : numbers) number *= 2;
                        co_return numbers;
                      },
                      {.size = 16, .wait = 100us, .concurrent = 2, .queue = 1000});
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running_server{server};
  call_all(endpoint.uri(), "double");
  EXPECT_EQ(calls, std::size_t{kCallers * kRounds * 8});
  call_all(endpoint.uri(), "later");
}

TEST_F(BatchedServer, survives_callers_that_give_up_and_leave) {
  Server server{options()};
  server.batch_method("double",
                      [](std::vector<int> numbers) {
                        for (int& number : numbers) number *= 2;
                        return numbers;
                      },
                      {.size = 4, .wait = 1ms, .queue = 8});
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  for (int round = 0; round != kRounds; ++round) {
    std::optional<Client> leaving{std::in_place, endpoint.uri()};
    Client client{endpoint.uri()};
    std::stop_source stop;
    auto given_up = client.request<int>("double", 1).stop(stop.get_token()).future();
    auto left = leaving->request<int>("double", 2).future();
    auto kept = client.request<int>("double", round).future();
    stop.request_stop();
    leaving.reset();
    EXPECT_EQ(kept.get(), 2 * round);
    for (auto* const one : {&given_up, &left}) {
      try {
        one->get();
      } catch (const Error&) {
      }
    }
  }
}

TEST_F(BatchedServer, what_waits_for_others_leaves_when_it_stops) {
  Server server{options()};
  server.batch_method("double", doubled, {.size = 64, .wait = 1min});
  server.method("there", [] {});
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  std::optional<RunningServer> running{std::in_place, server};
  std::deque<Client> clients;
  std::vector<std::future<int>> answers;
  for (int i = 0; i != 4; ++i) {  // of both loops
    Client& client = clients.emplace_back(endpoint.uri());
    answers.push_back(client.request<int>("double", i).future());
    client.call("there");
  }
  running.reset();
  for (int i = 0; i != 4; ++i) EXPECT_EQ(answers[i].get(), 2 * i);
}

TEST_F(BatchedServer, so_it_does_at_a_provider_when_its_broker_stops) {
  Broker broker;
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  std::optional<RunningServer> running{std::in_place, broker};
  ClientOptions named;
  named.client_id = "worker";  // the broker tells those that have a name
  Client provider{endpoint.uri(), named};
  std::promise<void> came;
  provider.provide("double", batched(doubled, {.size = 2, .wait = 1min}));
  provider.provide("there", [&came] { came.set_value(); });
  provider.connect();
  Client client{endpoint.uri()};
  auto answer = client.request<int>("double", 4).future();
  client.call("there");
  came.get_future().get();
  running.reset();
  EXPECT_EQ(answer.get(), 8);
}

TEST_F(BatchedServer, is_asked_for_two_batches_by_a_broker) {
  Broker broker;
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  const RunningServer running{broker};
  Client provider{endpoint.uri()};
  provider.provide("double", batched(
                                 [](std::vector<int> numbers) {
                                   for (int& number : numbers) number *= 2;
                                   return numbers;
                                 },
                                 {.size = 8}));
  provider.connect();
  call_all(endpoint.uri(), "double");
}

}  // namespace
}  // namespace wirecall::net
