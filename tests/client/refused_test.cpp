// Errors without an id, on a simulated system: they end a call where they can be of no other message, and where they
// can be of one that nobody waits for, no call is blamed.
#include <chrono>
#include <cstddef>
#include <expected>
#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/client/world.hpp"
#include "tests/http/world.hpp"
#include "wirecall/batch.hpp"
#include "wirecall/client.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;
using Result = std::expected<int, Error>;

// Each method is answered as its name says: `refused` without an id, `held` when `release` is called, `silent` never,
// and others with 19.
struct Refusing : World {
  Refusing() : World{1} {
    serve = [this] {
      for (std::string next = line(); !next.empty(); next = line()) {
        if (next.find("refused") != std::string::npos) {
          refuse_one();
        } else if (next.find("held") != std::string::npos) {
          held.push_back(next);
        } else if (next.find("silent") == std::string::npos && next.find(R"("id":)") != std::string::npos &&
                   next.find("$/") == std::string::npos) {
          answer(next);
        }
      }
      if (!held.empty() && then) std::exchange(then, nullptr)();
    };
  }
  void refuse_one() { peers.back()->send(refusal("null") + "\n"); }
  void answer(const std::string& request) { peers.back()->send(result(id_of(request)) + "\n"); }
  void release() {
    for (const std::string& request : std::exchange(held, {})) answer(request);
  }
  // What has been sent arrives, and is answered.
  void settle() {
    client->run([](Client& of) -> Task<void> { co_await sleep_for(of.scheduler(), 20ms); }(*client));
  }
  // Calls the method: the time that it took.
  std::chrono::nanoseconds call(std::string_view method, int code) {
    const std::chrono::nanoseconds begun = backend->now();
    const Result ended = client->try_call<int>(method);
    EXPECT_EQ(ended ? *ended : ended.error().code(), code) << method;
    return backend->now() - begun;
  }

  std::vector<std::string> held;
  std::function<void()> then;  // once, when something is held
};

constexpr int kRefused = -5;

TEST(ClientRefused, a_call_is_when_the_notification_before_it_has_been_dealt_with) {
  Refusing world;
  EXPECT_EQ(world.call("a", 19), world.call("a", 19));
  world.client->notify("n");
  // An answer to what was sent behind shows it.
  EXPECT_LT(world.call("a", 19), 100ms);
  EXPECT_LT(world.call("refused", kRefused), 100ms);
}

TEST(ClientRefused, a_call_is_when_the_notification_before_it_was_already) {
  Refusing world;
  world.client->notify("refused");
  world.settle();
  EXPECT_EQ(world.client->responses_dropped(), 1U);
  EXPECT_LT(world.call("refused", kRefused), 100ms);
  EXPECT_LT(world.call("refused", kRefused), 100ms);
}

TEST(ClientRefused, a_call_is_when_there_are_more_refusals_than_others) {
  Refusing world;
  world.then = [&] { world.refuse_one(); };
  world.client->notify("refused");
  EXPECT_LT(world.call("held", kRefused), 100ms);
}

TEST(ClientRefused, no_call_is_while_it_may_be_a_notification) {
  Refusing world;
  world.then = [&] {
    world.refuse_one();
    world.release();
  };
  world.client->notify("n");
  EXPECT_LT(world.call("held", 19), 100ms);
}

// What was sent before the notification says nothing about it, whenever it is answered.
TEST(ClientRefused, no_call_is_because_of_an_answer_to_what_was_sent_before_the_notification) {
  Refusing world;
  Client& client = *world.client;
  std::optional<Result> first;
  const auto begin = [&]() -> Task<void> {
    client.request<int>("held").then([&](Result result) { first = std::move(result); });
    co_await sleep_for(client.scheduler(), 5ms);
    client.notify("n");
    co_await sleep_for(client.scheduler(), 5ms);
    world.release();
    while (!first) co_await sleep_for(client.scheduler(), 1ms);
  };
  client.run(begin());
  EXPECT_EQ(*first, 19);
  world.then = [&] {
    world.refuse_one();
    world.release();
  };
  EXPECT_LT(world.call("held", 19), 100ms);
}

// Its refusal would come with the answers to the batch.
TEST(ClientRefused, no_call_is_while_it_may_be_a_notification_of_a_batch) {
  std::optional<Batch<int>::Results> results;
  Refusing world;
  Client& client = *world.client;
  const auto begin = [&]() -> Task<void> {
    client.batch().call<int>("silent").notify("n").then([&](auto given) { results.emplace(std::move(given)); });
    co_await sleep_for(client.scheduler(), 5ms);
  };
  client.run(begin());
  EXPECT_LT(world.call("a", 19), 100ms);
  world.then = [&] {
    world.refuse_one();
    world.release();
  };
  EXPECT_LT(world.call("held", 19), 100ms);
}

TEST(ClientRefused, no_call_is_while_it_may_be_one_that_was_given_up) {
  Refusing world;
  EXPECT_EQ(world.client->request<int>("silent").timeout(50ms).try_call().error().code(), -32002);
  world.then = [&] {
    world.refuse_one();
    world.release();
  };
  EXPECT_LT(world.call("held", 19), 100ms);
  // Which was sent behind the other's end.
  EXPECT_LT(world.call("refused", kRefused), 100ms);
}

}  // namespace
}  // namespace wirecall::net
