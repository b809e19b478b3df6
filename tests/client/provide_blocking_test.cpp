// Methods that a client provides and that say they block: on threads of a pool, several at once, while the client goes
// on.
#include <atomic>
#include <chrono>
#include <expected>
#include <future>
#include <gtest/gtest.h>
#include <latch>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "tests/connection/peer.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/caller.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {
namespace {

class ProvideBlocking : public testing::Test {
 protected:
  Broker broker;
  Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  RunningServer running{broker};
};

TEST_F(ProvideBlocking, several_wait_at_once_and_others_are_served_meanwhile) {
  std::latch all{3};
  Client provider{endpoint.uri()};
  provider.provide("meet", blocking([&all](int answer) {
                     all.arrive_and_wait();
                     return answer;
                   }));
  provider.provide("arrive", [&all] { all.count_down(); });
  provider.connect();
  Client caller{endpoint.uri()};
  // Each waits for both others.
  const auto [one, two, arrived] = caller.batch().call<int>("meet", 1).call<int>("meet", 2).call<void>("arrive").send();
  EXPECT_EQ(one.value(), 1);
  EXPECT_EQ(two.value(), 2);
  EXPECT_TRUE(arrived.has_value());
}

TEST_F(ProvideBlocking, may_call_their_own_client) {
  Client provider{endpoint.uri()};
  provider.provide("inner", [] { return 20; });
  provider.provide("outer", blocking([&provider] { return 2 * provider.call<int>("inner") + 2; }));
  provider.connect();
  Client caller{endpoint.uri()};
  EXPECT_EQ(caller.call<int>("outer"), 42);
}

TEST_F(ProvideBlocking, the_end_of_the_client_asks_them_to_stop_and_waits_for_them) {
  std::promise<void> begun;
  std::atomic<bool> ended = false;
  std::optional<Client> provider{std::in_place, endpoint.uri()};
  provider->provide("wait", blocking([&](Context context) {
                      begun.set_value();
                      std::promise<void> stopped;
                      const std::stop_callback stop{context.stop_token(), [&stopped] { stopped.set_value(); }};
                      stopped.get_future().wait();
                      ended = true;
                    }));
  provider->connect();
  Client caller{endpoint.uri()};
  std::promise<int> code;
  caller.request<void>("wait").then(
      [&code](const std::expected<void, Error>& outcome) { code.set_value(outcome ? 0 : outcome.error().code()); });
  begun.get_future().wait();
  provider.reset();
  EXPECT_TRUE(ended);
  EXPECT_EQ(code.get_future().get(), -32001);
}

TEST_F(ProvideBlocking, the_end_of_the_client_ends_the_calls_that_they_make_by_it) {
  Client slow{endpoint.uri()};
  std::promise<void> called;
  slow.provide("slow", [&called](Context context) -> Task<int> {
    called.set_value();
    co_await sleep_for(context, std::chrono::hours{1});
    co_return 1;
  });
  slow.connect();
  std::optional<Client> provider{std::in_place, endpoint.uri()};
  std::atomic<int> code = 0;
  provider->provide("outer", blocking([&] {
                      const auto outcome = provider->try_call<int>("slow");
                      code = outcome ? 0 : outcome.error().code();
                      // Later ones fail as well.
                      EXPECT_FALSE(provider->try_call<int>("slow").has_value());
                    }));
  provider->connect();
  Client caller{endpoint.uri()};
  caller.notify("outer");
  called.get_future().wait();
  provider->close();
  EXPECT_EQ(code, -32001);
  provider.reset();
}

TEST_F(ProvideBlocking, one_may_be_the_last_that_has_its_client) {
  auto provider = std::make_shared<Client>(endpoint.uri());
  std::promise<void> begun;
  std::promise<void> given_up;
  std::promise<void> ended;
  provider->provide("last", blocking([&, weak = std::weak_ptr{provider}] {
                      const std::shared_ptr<Client> own = weak.lock();
                      begun.set_value();
                      given_up.get_future().wait();
                      const std::shared_ptr<void> telling{nullptr, [&ended](void*) { ended.set_value(); }};
                    }));
  provider->connect();
  Client caller{endpoint.uri()};
  caller.notify("last");
  begun.get_future().wait();
  provider.reset();
  given_up.set_value();
  ended.get_future().wait();
}

TEST_F(ProvideBlocking, are_called_back_by_a_server_whose_call_is_waited_for) {
  Server server;
  server.method("call_me", [](Context context) -> Task<int> {
    const Caller caller{context};
    co_return 2 * co_await caller.call<int>("slow");
  });
  const Endpoint at = server.listen("tcp://127.0.0.1:0");
  const RunningServer served{server};
  Client client{at.uri()};
  client.method("slow", blocking([] { return 21; }));
  EXPECT_EQ(client.call<int>("call_me"), 42);
}

TEST_F(ProvideBlocking, without_a_pool_they_run_on_the_thread_that_drives) {
  Client provider{endpoint.uri(), ClientOptions::from_json(R"({"blocking_threads":0})")};
  std::thread::id plain;
  std::thread::id blocked;
  provider.provide("plain", [&plain] { plain = std::this_thread::get_id(); });
  provider.provide("blocked", blocking([&blocked] { blocked = std::this_thread::get_id(); }));
  provider.connect();
  Client caller{endpoint.uri()};
  caller.call("plain");
  caller.call("blocked");
  EXPECT_EQ(plain, blocked);
}

}  // namespace
}  // namespace wirecall::net
