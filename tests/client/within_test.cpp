// Batches and streams of a handler's own (`within`), or with a stop token or a time of their own, in each of the ways
// in which they can be made, on a simulated system: what the server is told, and how they end.
#include <algorithm>
#include <chrono>
#include <expected>
#include <functional>
#include <future>
#include <gtest/gtest.h>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/client/world.hpp"
#include "tests/connection/peer.hpp"
#include "wirecall/batch.hpp"
#include "wirecall/client.hpp"
#include "wirecall/result_stream.hpp"
#include "wirecall/server.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// How each call has ended: its result, or the code of its error.
using Ends = std::vector<int>;

int end_of(const std::expected<int, Error>& result) { return result ? *result : result.error().code(); }
Ends ends_of(const std::vector<std::expected<int, Error>>& results) {
  Ends ends;
  for (const auto& result : results) ends.push_back(end_of(result));
  return ends;
}
Ends ends_of(const std::tuple<std::expected<int, Error>, std::expected<int, Error>>& results) {
  return {end_of(std::get<0>(results)), end_of(std::get<1>(results))};
}

// A way to make both kinds of batch, on the thread of the test.
struct Way {
  template <class AnyBatch>
  Ends operator()(World& world, AnyBatch batch) const {
    using Results = typename AnyBatch::Results;
    Client& client = *world.client;
    switch (number) {
      case 0: return ends_of(std::move(batch).send());
      case 1: {
        std::optional<Results> results;
        std::move(batch).then([&](Results given) { results.emplace(std::move(given)); });
        client.run(until(client, [&] { return results.has_value(); }));
        return ends_of(*results);
      }
      case 2: {
        std::future<Results> future = std::move(batch).future();
        client.run(until(client, [&] { return future.wait_for(0s) == std::future_status::ready; }));
        return ends_of(future.get());
      }
      default:
        return ends_of(client.run(
            [](AnyBatch awaited) -> Task<Results> { co_return co_await std::move(awaited); }(std::move(batch))));
    }
  }
  static Task<void> until(Client& client, std::function<bool()> condition) {
    while (!condition()) co_await sleep_for(client.scheduler(), 1ms);
  }

  int number;
};

// A server that keeps what it is sent, and answers nothing but what `serves` does.
struct SilentWorld : World {
  SilentWorld() : World{1} { listen(); }
  explicit SilentWorld(ClientOptions options) : World{1, std::move(options)} { listen(); }
  void listen() {
    serve = [this] {
      read_lines();
      if (serves) serves();
    };
  }
  void read_lines() {
    if (!peers.empty()) received += peers.back()->take();
    for (std::string next = line(); !next.empty(); next = line()) lines.push_back(next);
  }
  Context context(nanoseconds left, std::stop_token stop = {}) {
    return {"outer",
            "7",
            std::move(stop),
            &client->scheduler(),
            {.deadline = left == kNoDeadline ? left : client->scheduler().now() + left, .hops = 3}};
  }
  void send(std::string_view text) { peers.back()->send(text); }
  // Once the server has got so many messages.
  void stop_after(std::size_t messages, std::stop_source& stop) {
    serves = [this, messages, &stop] {
      if (lines.size() >= messages) stop.request_stop();
    };
  }

  std::vector<std::string> lines;
  std::function<void()> serves;
};

std::string cancel_of(int id) {
  return R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":)" + std::to_string(id) + "}}";
}

class BatchesWithin : public testing::TestWithParam<int> {
 protected:
  const Way way{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Each, BatchesWithin, testing::Range(0, 4));

TEST_P(BatchesWithin, say_their_hops_and_the_time_that_is_left_and_end_with_it) {
  for (const bool any_size : {false, true}) {
    SilentWorld world;
    Ends ends;
    if (any_size) {
      // Also for what is added behind.
      BatchOf<int> batch = world.client->batch_of<int>();
      batch.call("a");
      batch.within(world.context(100ms));
      batch.notify("n");
      batch.call("b");
      ends = way(world, std::move(batch));
    } else {
      ends = way(world, world.client->batch().call<int>("a").within(world.context(100ms)).notify("n").call<int>("b"));
    }
    EXPECT_EQ(ends, (Ends{-32002, -32002}));
    EXPECT_GE(world.backend->now(), 100ms);
    EXPECT_LE(world.backend->now(), 110ms);
    ASSERT_FALSE(world.lines.empty());
    EXPECT_EQ(
        world.lines[0],
        R"([{"jsonrpc":"2.0","method":"a","id":1,"timeout_ms":100,"hops":4},{"jsonrpc":"2.0","method":"n","hops":4},)"
        R"({"jsonrpc":"2.0","method":"b","id":2,"timeout_ms":100,"hops":4}])");
  }
}

TEST_P(BatchesWithin, have_their_own_time_where_that_is_less_or_said_behind) {
  SilentWorld world;
  world.serves = [&] {
    if (world.lines.size() != 1) return;
    world.lines.emplace_back();
    world.send(R"([{"jsonrpc":"2.0","result":1,"id":1},{"jsonrpc":"2.0","result":2,"id":2}])"
               "\n");
  };
  const Ends ends = way(world, world.client->batch()
                                   .call<int>("a")
                                   .timeout(50ms)
                                   .within(world.context(100ms))
                                   .call<int>("b")
                                   .within(world.context(90s)));
  EXPECT_EQ(ends, (Ends{1, 2}));
  EXPECT_EQ(world.lines[0], R"([{"jsonrpc":"2.0","method":"a","id":1,"timeout_ms":50,"hops":4},)"
                            R"({"jsonrpc":"2.0","method":"b","id":2,"timeout_ms":100,"hops":4}])");
}

TEST_P(BatchesWithin, are_given_up_with_the_call_that_their_handler_serves) {
  std::stop_source stop;
  std::stop_source other;
  SilentWorld world;
  world.stop_after(1, stop);
  EXPECT_EQ(way(world, world.client->batch()
                           .call<int>("a")
                           .call<int>("b")
                           .stop(other.get_token())
                           .within(world.context(kNoDeadline, stop.get_token()))),
            (Ends{-32800, -32800}));
  EXPECT_LT(world.backend->now(), 1s);
  world.read_lines();
  ASSERT_EQ(world.lines.size(), 3U);
  std::ranges::sort(world.lines);  // the batch comes first
  EXPECT_EQ(world.lines[1], cancel_of(1));
  EXPECT_EQ(world.lines[2], cancel_of(2));
  // Once it has been cancelled, nothing is sent.
  BatchOf<int> late = world.client->batch_of<int>();
  late.within(world.context(kNoDeadline, stop.get_token()));
  late.call("a");
  EXPECT_EQ(way(world, std::move(late)), Ends{-32800});
  world.read_lines();
  EXPECT_EQ(world.lines.size(), 3U);
}

TEST_P(BatchesWithin, are_stopped_by_the_token_that_is_said_last) {
  std::stop_source stop;
  std::stop_source other;
  SilentWorld world;
  world.stop_after(1, stop);
  BatchOf<int> batch = world.client->batch_of<int>();
  batch.call("a");
  batch.within(world.context(kNoDeadline, other.get_token()));
  batch.stop(stop.get_token());
  batch.call("b");
  EXPECT_EQ(way(world, std::move(batch)), (Ends{-32800, -32800}));
  EXPECT_LT(world.backend->now(), 1s);
}

// ---- streams ----

struct Items {
  std::vector<int> values;
  int code = 0;  // of the error at the end
};

Items read_blocking(ResultStream<int> stream) {
  Items items;
  try {
    for (const int value : stream) items.values.push_back(value);
  } catch (const Error& error) {
    items.code = error.code();
  }
  return items;
}
Task<Items> read_awaited(ResultStream<int> stream) {
  Items items;
  Stream<int> awaited = std::move(stream).awaited();
  try {
    while (const std::optional<int> value = co_await awaited.next()) items.values.push_back(*value);
  } catch (const Error& error) {
    items.code = error.code();
  }
  co_return items;
}

std::string item(int seq) {
  return R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":1,"seq":)" + std::to_string(seq) + R"(,"value":)" +
         std::to_string(seq) + "}}\n";
}

class StreamsWithin : public testing::TestWithParam<bool> {
 protected:
  static Items read(World& world, ResultStream<int> stream) {
    return GetParam() ? world.client->run(read_awaited(std::move(stream))) : read_blocking(std::move(stream));
  }
  // One item each 20 ms.
  static void send_slowly(SilentWorld& world, int& sent) {
    world.serves = [&world, &sent] {
      if (world.lines.empty() || world.backend->now() < 20ms * sent) return;
      world.send(item(sent++));
    };
  }
};

INSTANTIATE_TEST_SUITE_P(Each, StreamsWithin, testing::Bool());

TEST_P(StreamsWithin, have_one_time_for_all_of_their_items) {
  SilentWorld world;
  int sent = 0;
  send_slowly(world, sent);
  const Items items = read(world, world.client->stream<int>("count").timeout(110ms));
  EXPECT_EQ(items.values, (std::vector{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(items.code, -32002);
  EXPECT_LE(world.backend->now(), 120ms);
  ASSERT_FALSE(world.lines.empty());
  EXPECT_EQ(world.lines[0], R"({"jsonrpc":"2.0","method":"count","id":1,"timeout_ms":110,"stream":64})");
}

TEST_P(StreamsWithin, wait_no_longer_for_an_item_for_having_more_time_for_all) {
  ClientOptions options;
  options.call_timeout_ms = 100;
  SilentWorld world{options};
  world.serves = [&, sent = false]() mutable {
    if (!world.lines.empty() && !std::exchange(sent, true)) world.send(item(0));
  };
  const Items items = read(world, world.client->stream<int>("count").timeout(10s));
  EXPECT_EQ(items.values, std::vector{0});
  EXPECT_EQ(items.code, -32002);
  EXPECT_LE(world.backend->now(), 120ms);
  EXPECT_EQ(world.lines[0], R"({"jsonrpc":"2.0","method":"count","id":1,"timeout_ms":10000,"stream":64})");
}

TEST_P(StreamsWithin, say_their_hops_and_the_time_that_is_left_and_end_with_it) {
  // More than the time from item to item, too: it is for all of them.
  for (const auto call_timeout_ms : {30'000, 50}) {
    ClientOptions options;
    options.call_timeout_ms = static_cast<std::uint32_t>(call_timeout_ms);
    SilentWorld world{options};
    int sent = 0;
    send_slowly(world, sent);
    const Items items = read(world, world.client->stream<int>("count").within(world.context(110ms)));
    EXPECT_EQ(items.values, (std::vector{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(items.code, -32002);
    EXPECT_EQ(world.lines[0], R"({"jsonrpc":"2.0","method":"count","id":1,"timeout_ms":110,"stream":64,"hops":4})");
  }
}

TEST_P(StreamsWithin, are_given_up_with_the_call_that_their_handler_serves) {
  std::stop_source stop;
  SilentWorld world;
  world.serves = [&, sent = false]() mutable {
    if (world.lines.empty()) return;
    if (!std::exchange(sent, true)) world.send(item(0));
    if (world.backend->now() >= 10ms) stop.request_stop();
  };
  const Items items =
      read(world, world.client->stream<int>("count").within(world.context(kNoDeadline, stop.get_token())));
  EXPECT_EQ(items.values, std::vector{0});
  EXPECT_EQ(items.code, -32800);
  EXPECT_LT(world.backend->now(), 1s);
  EXPECT_EQ(world.lines[0], R"({"jsonrpc":"2.0","method":"count","id":1,"stream":64,"hops":4})");
  const Items late = read(world, world.client->stream<int>("count").stop(stop.get_token()));
  EXPECT_EQ(late.values, std::vector<int>{});
  EXPECT_EQ(late.code, -32800);
  world.read_lines();
  ASSERT_EQ(world.lines.size(), 2U);
  EXPECT_EQ(world.lines[1], cancel_of(1));
}

// ---- in a circle ----

// A server whose handler calls it again, each time within the call that it serves.
TEST(CallsInACircle, end_at_the_limit_of_hops_whether_they_go_by_batches_or_by_streams) {
  Server server;
  std::optional<Client> home;
  int rounds = 0;
  server.method("batch", [&](Context context) -> Task<int> {
    ++rounds;
    auto [inner] = co_await home->batch().call<int>("batch").within(context);
    if (!inner) throw Error{inner.error()};
    co_return *inner;
  });
  server.method("stream", [&](Context context) -> Task<int> {
    ++rounds;
    Stream<int> items = home->stream<int>("stream").within(context).awaited();
    const std::optional<int> first = co_await items.next();
    co_return first.value_or(0);
  });
  const std::string uri = server.listen("tcp://127.0.0.1:0").uri();
  home.emplace(uri);
  const RunningServer running{server};
  Client caller{uri};
  for (const char* const method : {"batch", "stream"}) {
    rounds = 0;
    const std::expected<int, Error> ended = caller.try_call<int>(method);
    ASSERT_FALSE(ended.has_value());
    EXPECT_EQ(ended.error().code(), -32005) << method;
    EXPECT_NE(ended.error().data().find(R"("limit":"hops")"), std::string::npos) << ended.error().data();
    EXPECT_EQ(rounds, 17) << method << ": that of the caller, and limits.hops within it";
  }
}

}  // namespace
}  // namespace wirecall::net
