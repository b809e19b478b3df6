// Handlers that await a client: they wait for something that happens on another thread, and go on on their own.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <gtest/gtest.h>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/connection/peer.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"
#include "wirecall/stream.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

// A server in front of another one.
class ProxyTest : public testing::Test {
 protected:
  ProxyTest() {
    back.method("add", [](int a, int b) { return a + b; });
    back.method("count", [](int n) -> Stream<int> {
      for (int i = 0; i < n; ++i) co_yield i;
    });
    back.method("wait", [this](const Context& context) -> Task<int> {
      waiting.set_value();
      try {
        co_await sleep_for(context, std::chrono::hours{1});
      } catch (const Cancelled&) {
        stopped.set_value();
        throw;
      }
      co_return 0;
    });
    client.emplace(back.listen("tcp://127.0.0.1:0").uri());
    front.method("add", [this](int a, int b) -> Task<int> {
      const int sum = co_await client->request<int>("add", a, b);
      note_thread();
      co_return sum;
    });
    front.method("add_twice", [this](int a, int b) -> Task<int> {
      auto [one, other] = co_await client->batch().call<int>("add", a, b).call<int>("add", b, a);
      note_thread();
      co_return one.value() + other.value();
    });
    front.method("add_all", [this](int a, int b) -> Task<int> {
      std::vector<Task<int>> tasks;
      for (int i = 0; i < 3; ++i) tasks.push_back(add(a, b));
      int sum = 0;
      for (const int one : co_await when_all(std::move(tasks))) sum += one;
      note_thread();
      co_return sum;
    });
    front.method("count", [this](int n) -> Stream<int> {
      Stream<int> items = client->stream<int>("count", n).awaited();
      while (const std::optional<int> item = co_await items.next()) {
        note_thread();
        co_yield *item;
      }
    });
    front.method("fail", [this]() -> Task<int> { co_return co_await client->request<int>("nothing"); });
    front.method("add_nothing", [this]() -> Task<int> {
      co_return co_await client->request<int>("add", std::numeric_limits<double>::quiet_NaN(), 1);
    });
    front.method("take_text",
                 [this]() -> Task<std::string> { co_return co_await client->request<std::string>("add", 1, 2); });
    front.method("wait", [this]() -> Task<int> { co_return co_await client->request<int>("wait"); });
    endpoint.emplace(front.listen("tcp://127.0.0.1:0"));
  }

  Task<int> add(int a, int b) { co_return co_await client->request<int>("add", a, b); }
  // False, and a failure, when it is not set within a time in which anything would have been.
  [[nodiscard]] static bool is_set(std::promise<void>& promise) {
    const bool set = promise.get_future().wait_for(kWatchdog) == std::future_status::ready;
    EXPECT_TRUE(set);
    return set;
  }
  void note_thread() {
    const std::scoped_lock lock{mutex};
    threads.insert(std::this_thread::get_id());
  }

  std::promise<void> waiting;
  std::promise<void> stopped;
  std::mutex mutex;
  std::set<std::thread::id> threads;
  Server back;
  std::optional<Client> client;
  Server front;
  std::optional<Endpoint> endpoint;
};

TEST_F(ProxyTest, HandlersGoOnOnTheThreadOfTheirLoop) {
  const RunningServer behind{back};
  const RunningServer before{front};
  Client caller{endpoint->uri()};
  std::vector<std::future<int>> sums;
  for (int i = 0; i < 200; ++i) sums.push_back(caller.request<int>(i % 2 == 0 ? "add" : "add_twice", i, 1).future());
  for (int i = 0; i < 200; ++i) EXPECT_EQ(sums[static_cast<std::size_t>(i)].get(), (i + 1) * (i % 2 == 0 ? 1 : 2));
  EXPECT_EQ(caller.call<int>("add_all", 2, 3), 15);
  int next = 0;
  for (const int item : caller.stream<int>("count", 100)) EXPECT_EQ(item, next++);
  EXPECT_EQ(next, 100);
  EXPECT_EQ(caller.try_call<int>("fail").error().code(), -32601);
  EXPECT_EQ(threads.size(), 1U);
}

TEST_F(ProxyTest, ACallWithinAnotherHasWhatIsLeftOfItsTimeAndEndsWhenItGoesInACircle) {
  back.method("left_ms", [](const Context& context) -> Task<std::int64_t> {
    co_return std::chrono::duration_cast<std::chrono::milliseconds>(context.remaining()).count();
  });
  front.method("left_behind_ms", [this](Context context) -> Task<std::int64_t> {
    co_return co_await client->request<std::int64_t>("left_ms").within(context);
  });
  Client home{endpoint->uri()};
  std::atomic<int> rounds{0};
  front.method("round", [&](Context context) -> Task<int> {
    ++rounds;
    co_return co_await home.request<int>("round").within(context);
  });
  const RunningServer behind{back};
  const RunningServer before{front};
  Client caller{endpoint->uri()};
  const auto left = caller.request<std::int64_t>("left_behind_ms").timeout(std::chrono::milliseconds{10'000}).call();
  EXPECT_GT(left, 0);
  EXPECT_LE(left, 10'001);  // each side rounds up
  const Error error = caller.try_call<int>("round").error();
  EXPECT_EQ(error.code(), -32005);
  EXPECT_NE(error.data().find("hops"), std::string::npos) << error.data();
  EXPECT_EQ(rounds, 17);  // that of the caller, and limits.hops within it
}

TEST_F(ProxyTest, ACallThatIsCancelledIsCancelledBehindAsWell) {
  const RunningServer behind{back};
  const RunningServer before{front};
  Client caller{endpoint->uri()};
  std::promise<int> code;
  const CallHandle handle = caller.request<int>("wait").then(
      [&](std::expected<int, Error> result) { code.set_value(result ? 0 : result.error().code()); });
  ASSERT_TRUE(is_set(waiting));
  EXPECT_TRUE(handle.cancel());
  EXPECT_EQ(code.get_future().get(), -32800);
  ASSERT_TRUE(is_set(stopped));
  EXPECT_EQ(caller.call<int>("add", 1, 2), 3);
}

TEST_F(ProxyTest, AServerMayEndBeforeItsHandlersAreAnswered) {
  const RunningServer behind{back};
  {
    RunningServer before{front};
    RawPeer peer{*endpoint};
    peer.send(R"({"jsonrpc":"2.0","method":"wait","id":1})"
              "\n");
    ASSERT_TRUE(is_set(waiting));
    peer.reset();
  }
  ASSERT_TRUE(is_set(stopped));
  EXPECT_EQ(client->call<int>("add", 1, 2), 3);
}

// An argument that JSON has no word for, a result of another type: the caller can make nothing of those.
TEST_F(ProxyTest, WhatAHandlerItselfDoesWrongWithAClientIsNotItsCallersFault) {
  const RunningServer behind{back};
  const RunningServer before{front};
  Client caller{endpoint->uri()};
  for (const char* const method : {"add_nothing", "take_text"}) {
    const auto answer = caller.try_call<int>(method);
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(answer.error().code(), -32603) << method;
    EXPECT_EQ(answer.error().message(), "Internal error") << method;
  }
  EXPECT_THROW(caller.call("add", std::numeric_limits<double>::quiet_NaN(), 1), LocalError);
  EXPECT_THROW(caller.call<std::string>("add", 1, 2), LocalError);
}

// The task of one client awaits another.
TEST_F(ProxyTest, ATaskThatIsRunByOneClientMayAwaitAnother) {
  const RunningServer behind{back};
  const RunningServer before{front};
  Client caller{endpoint->uri()};
  const auto both = [&]() -> Task<int> {
    int sum = 0;
    for (int i = 0; i < 20; ++i) {
      sum += co_await caller.request<int>("add", i, 0);
      note_thread();
      sum += co_await client->request<int>("add", i, 0);
      note_thread();
    }
    co_return sum;
  };
  threads.clear();
  EXPECT_EQ(caller.run(both()), 380);
  EXPECT_TRUE(threads.contains(std::this_thread::get_id()));
  EXPECT_EQ(threads.size(), 2U) << "this one, and that of the server in front";
}

}  // namespace
}  // namespace wirecall::net
