// Batches of a client: one message, results in their order whatever order they come in.
#include "wirecall/batch.hpp"

#include <chrono>
#include <functional>
#include <future>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/client/world.hpp"
#include "tests/connection/peer.hpp"
#include "wirecall/client.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;

template <class AnyBatch>
Task<typename AnyBatch::Results> awaited(AnyBatch batch) {
  co_return co_await std::move(batch);
}

// What `begin` begins and hands its results to, on a thread that drives the client until they are there.
template <class Results>
Task<Results> driven(Client& client, std::function<void(std::optional<Results>&)> begin) {
  std::optional<Results> results;
  begin(results);
  while (!results) co_await sleep_for(client.scheduler(), 1ms);
  co_return std::move(*results);
}

// A batch can be made in four ways.
class EachWay : public testing::TestWithParam<int> {
 protected:
  template <class AnyBatch>
  static typename AnyBatch::Results in_way(int way, AnyBatch batch, Client& client) {
    using Results = typename AnyBatch::Results;
    switch (way) {
      case 0: return std::move(batch).send();
      case 1: {
        std::promise<Results> done;
        std::move(batch).then([&](Results results) { done.set_value(std::move(results)); });
        return done.get_future().get();
      }
      case 2: return std::move(batch).future().get();
      default: return client.run(awaited(std::move(batch)));
    }
  }
  // The same on a simulated system, on one thread.
  template <class AnyBatch>
  static typename AnyBatch::Results in_way(int way, AnyBatch batch, World& world) {
    using Results = typename AnyBatch::Results;
    if (way == 1) {
      return world.client->run(driven<Results>(*world.client, [&](std::optional<Results>& results) {
        std::move(batch).then([&](Results given) { results.emplace(std::move(given)); });
      }));
    }
    if (way == 2) {
      const auto wait = [](Client& client, std::future<Results> future) -> Task<Results> {
        while (future.wait_for(0s) != std::future_status::ready) co_await sleep_for(client.scheduler(), 1ms);
        co_return future.get();
      };
      const auto begin_and_wait = [&]() -> Task<Results> {
        co_return co_await wait(*world.client, std::move(batch).future());
      };
      return world.client->run(begin_and_wait());
    }
    return in_way(way, std::move(batch), *world.client);
  }
};

// Two calls with a notification between them.
class ClientBatches : public EachWay {
 protected:
  static Batch<int, std::string>::Results call(Client& client) {
    return in_way(GetParam(), client.batch().call<int>("number", 1).notify("note").call<std::string>("text"), client);
  }
};

INSTANTIATE_TEST_SUITE_P(Each, ClientBatches, testing::Range(0, 4));

constexpr std::string_view kSent = R"([{"jsonrpc":"2.0","method":"number","params":[1],"id":1},)"
                                   R"({"jsonrpc":"2.0","method":"note"},{"jsonrpc":"2.0","method":"text","id":2}])";

TEST_P(ClientBatches, go_as_one_message_and_give_results_in_their_order) {
  const ScriptedServer server{[](RawPeer peer) {
    EXPECT_EQ(peer.line(), kSent);
    peer.send(R"([{"jsonrpc":"2.0","result":"two","id":2},{"jsonrpc":"2.0","result":1,"id":1}])"
              "\n");
    peer.line();
  }};
  Client client{server.uri()};
  const auto [number, text] = call(client);
  EXPECT_EQ(number, 1);
  EXPECT_EQ(text, "two");
}

TEST_P(ClientBatches, give_each_call_its_own_error) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(R"([{"jsonrpc":"2.0","error":{"code":7,"message":"no"},"id":1},{"jsonrpc":"2.0","result":2,"id":2}])"
              "\n");
    peer.line();
  }};
  Client client{server.uri()};
  const auto [number, text] = call(client);
  EXPECT_EQ(number.error().code(), 7);
  EXPECT_EQ(text.error().code(), -32603);
}

TEST_P(ClientBatches, that_are_refused_as_a_whole_fail_as_a_whole) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null})"
              "\n");
    peer.line();
  }};
  Client client{server.uri()};
  Batch<int, int> batch = client.batch().call<int>("a").call<int>("b");
  const auto [a, b] = std::move(batch).send();
  EXPECT_EQ(a.error().code(), -32600);
  EXPECT_EQ(b.error().code(), -32600);
}

TEST_P(ClientBatches, end_with_their_connection) {
  const ScriptedServer server{[](RawPeer peer) { peer.line(); }};
  Client client{server.uri()};
  const auto [number, text] = call(client);
  EXPECT_EQ(number.error().code(), -32001);
  EXPECT_EQ(text.error().code(), -32001);
}

TEST(ClientBatch, calls_time_out_one_by_one) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(R"([{"jsonrpc":"2.0","result":1,"id":1}])"
              "\n");
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":2}})");
    peer.line();
  }};
  Client client{server.uri()};
  const auto [a, b] = client.batch().call<int>("a").call<int>("b").timeout(1s).send();
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b.error().code(), -32002);
}

// The first has less time than the second, which is answered later than that.
TEST_P(ClientBatches, give_each_call_its_own_time) {
  World world{1};
  std::vector<std::string> lines;
  bool answered = false;
  world.serve = [&] {
    for (std::string line = world.line(); !line.empty(); line = world.line()) lines.push_back(line);
    if (world.backend->now() < 300ms || lines.empty() || answered) return;
    answered = true;
    world.peers.back()->send(R"([{"jsonrpc":"2.0","result":1,"id":1},{"jsonrpc":"2.0","result":2,"id":2}])"
                             "\n");
  };
  const auto [first, second] =
      in_way(GetParam(), world.client->batch().call<int>("a").timeout(50ms).call<int>("b"), world);
  EXPECT_GE(world.backend->now(), 300ms);
  ASSERT_FALSE(first.has_value());
  EXPECT_EQ(first.error().code(), -32002);
  EXPECT_EQ(second, 2);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0],
            R"([{"jsonrpc":"2.0","method":"a","id":1,"timeout_ms":50},{"jsonrpc":"2.0","method":"b","id":2}])");
  EXPECT_EQ(lines[1], R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}})");
  EXPECT_EQ(world.client->responses_dropped(), 1U);
}

// A number of calls with a notification among them.
class ClientBatchesOfAnySize : public EachWay {
 protected:
  static BatchOf<int>::Results call(Client& client, int count) {
    BatchOf<int> batch = client.batch_of<int>();
    for (int i = 0; i < count; ++i) {
      if (i == 1) batch.notify("note");
      batch.call("square", i);
    }
    EXPECT_EQ(batch.size(), static_cast<std::size_t>(count));
    return in_way(GetParam(), std::move(batch), client);
  }
};

INSTANTIATE_TEST_SUITE_P(Each, ClientBatchesOfAnySize, testing::Range(0, 4));

TEST_P(ClientBatchesOfAnySize, give_a_result_or_an_error_for_each_call_in_its_order) {
  const ScriptedServer server{[](RawPeer peer) {
    EXPECT_EQ(peer.line(),
              R"([{"jsonrpc":"2.0","method":"square","params":[0],"id":1},)"
              R"({"jsonrpc":"2.0","method":"note"},{"jsonrpc":"2.0","method":"square","params":[1],"id":2},)"
              R"({"jsonrpc":"2.0","method":"square","params":[2],"id":3}])");
    peer.send(R"([{"jsonrpc":"2.0","result":4,"id":3},{"jsonrpc":"2.0","error":{"code":7,"message":"no"},"id":2},)"
              R"({"jsonrpc":"2.0","result":0,"id":1}])"
              "\n");
    peer.line();
  }};
  Client client{server.uri()};
  const auto results = call(client, 3);
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0], 0);
  EXPECT_EQ(results[1].error().code(), 7);
  EXPECT_EQ(results[2], 4);
}

TEST_P(ClientBatchesOfAnySize, are_empty_when_nothing_was_added) {
  Client client{"unix:///there/is/no/server"};  // and so it is not asked
  EXPECT_TRUE(call(client, 0).empty());
}

TEST(ClientBatch, that_is_empty_calls_back_where_others_do_and_not_within_then) {
  Client client{"unix:///there/is/no/server"};
  std::promise<std::thread::id> called_back;
  client.batch_of<int>().then([&](const auto&) { called_back.set_value(std::this_thread::get_id()); });
  EXPECT_NE(called_back.get_future().get(), std::this_thread::get_id());
  bool returned = false;
  bool called = false;
  client.run([](Client& of, bool& then_returned, bool& was_called) -> Task<void> {
    of.batch().then([&](const auto&) {
      EXPECT_TRUE(then_returned);
      was_called = true;
    });
    then_returned = true;
    while (!was_called) co_await sleep_for(of.scheduler(), 1ms);
  }(client, returned, called));
}

// One of its calls has been answered when the batch is given up.
TEST(ClientBatch, that_was_begun_by_then_is_given_up_by_its_handle) {
  World world{1};
  std::vector<std::string> lines;
  world.serve = [&] {
    for (std::string line = world.line(); !line.empty(); line = world.line()) {
      if (lines.empty()) {
        world.peers.back()->send(R"([{"jsonrpc":"2.0","result":1,"id":1}])"
                                 "\n");
      }
      lines.push_back(line);
    }
  };
  Client& client = *world.client;
  std::optional<Batch<int, int, int>::Results> results;
  const auto give_up = [&]() -> Task<void> {
    const BatchHandle handle = client.batch().call<int>("a").call<int>("b").notify("n").call<int>("c").then(
        [&](auto given) { results.emplace(std::move(given)); });
    while (lines.empty()) co_await sleep_for(client.scheduler(), 1ms);
    co_await sleep_for(client.scheduler(), 1ms);
    EXPECT_TRUE(handle.cancel());
    EXPECT_FALSE(handle.cancel());
    while (!results) co_await sleep_for(client.scheduler(), 1ms);
    EXPECT_FALSE(handle.cancel());
    while (lines.size() < 3) co_await sleep_for(client.scheduler(), 1ms);
  };
  client.run(give_up());
  const auto& [a, b, c] = *results;
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b.error().code(), -32800);
  EXPECT_EQ(c.error().code(), -32800);
  EXPECT_EQ(lines[1], R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":2}})");
  EXPECT_EQ(lines[2], R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":3}})");
  EXPECT_LT(world.backend->now(), 1s);
  EXPECT_FALSE(BatchHandle{}.cancel());
}

TEST(ClientBatch, longer_than_its_server_or_its_client_takes_is_not_sent) {
  const ScriptedServer server{[](RawPeer peer) { EXPECT_EQ(peer.line(), ""); }};
  ClientOptions options;
  options.limits.batch = 2;
  Client client{server.uri(), options};
  client.connect();
  BatchOf<int> batch = client.batch_of<int>();
  for (int i = 0; i < 3; ++i) batch.call("a");
  batch.timeout(1h);  // so that it would not come back when its time is up
  for (const auto& result : std::move(batch).send()) {
    EXPECT_EQ(result.error().code(), -32006);
    EXPECT_NE(result.error().data().find(R"("limit":"batch")"), std::string::npos);
  }
}

TEST(ClientBatch, is_answered_by_the_responses_in_an_array_of_more_than_fits) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(R"([{"jsonrpc":"2.0","result":3,"id":1},{"jsonrpc":"2.0","result":4,"id":2},)"
              R"({"jsonrpc":"2.0","result":5,"id":77},{"jsonrpc":"2.0","method":"back","id":"x"}])"
              "\n");
    EXPECT_EQ(peer.line(), R"([{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request",)"
                           R"("data":{"limit":"batch"}},"id":"x"}])")
        << "of the requests in it nothing is run";
    EXPECT_EQ(peer.line(), "");
  }};
  ClientOptions options;
  options.limits.batch = 2;
  Client client{server.uri(), options};
  bool called = false;
  client.method("back", [&called] { called = true; });
  const auto [a, b] = client.batch().call<int>("a").call<int>("b").send();
  EXPECT_EQ(a, 3);
  EXPECT_EQ(b, 4);
  EXPECT_FALSE(called);
}

TEST(ClientBatch, over_the_limit_of_a_server_that_tells_nobody_of_it_fails_each_call_by_its_id) {
  Options few;
  few.limits.batch = 2;
  Server server{few};
  int calls = 0;
  server.method("a", [&calls] { ++calls; });
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  Client client{endpoint.uri()};
  BatchOf<int> batch = client.batch_of<int>();
  for (int i = 0; i < 3; ++i) batch.call("a");
  for (const auto& result : std::move(batch).send()) {
    EXPECT_EQ(result.error().code(), -32600);
    EXPECT_EQ(result.error().data(), R"({"limit":"batch"})");
  }
  EXPECT_EQ(calls, 0);
}

TEST(ClientBatch, of_notifications_returns_when_it_is_sent_and_an_empty_one_sends_nothing) {
  const ScriptedServer server{[](RawPeer peer) {
    EXPECT_EQ(peer.line(), R"([{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}])");
  }};
  Client client{server.uri()};
  static_cast<void>(client.batch().send());
  static_cast<void>(client.batch().notify("a").notify("b").send());
}

}  // namespace
}  // namespace wirecall::net
