// Clients that provide methods, and subscriptions, at a broker of ours, over sockets.
#include <chrono>
#include <cstddef>
#include <expected>
#include <gtest/gtest.h>
#include <optional>
#include <semaphore>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/client/provided.hpp"
#include "tests/connection/peer.hpp"
#include "tests/server/broker_world.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/caller.hpp"
#include "wirecall/client.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;

// ---- at a broker of ours ----

class ClientAtBroker : public testing::Test {
 protected:
  ClientAtBroker() {
    broker_.method("own", [](int n) { return 10 * n; });
  }

  ClientOptions called(std::string name) {
    ClientOptions options;
    options.client_id = std::move(name);
    return options;
  }

  Broker broker_;
  const std::string uri_ = broker_.listen("tcp://127.0.0.1:0").uri();
  RunningServer running_{broker_};
};

TEST_F(ClientAtBroker, one_client_calls_what_another_provides) {
  Client provider{uri_, called("provider")};
  provider.provide("add", add, {.concurrency = 1, .queue = 10, .policy = "round_robin", .params = {"a", "b"}});
  provider.connect();
  Client caller{uri_};
  EXPECT_EQ(caller.call<int>("add", 42, 23), 65);
  EXPECT_EQ(caller.call<int>("add", arg("b") = 1, arg("a") = 2), 3);
  EXPECT_EQ(caller.try_call<int>("add", "x").error().code(), -32602);
}

TEST_F(ClientAtBroker, a_handler_calls_what_others_provide_and_circles_end) {
  Client provider{uri_};
  provider.provide("nested", [](Context context, int n) -> Task<int> {
    co_return 1 + co_await Caller{context}.call<int>("own", n);
  });
  provider.provide("circle",
                   [](Context context) -> Task<int> { co_return co_await Caller{context}.call<int>("circle"); });
  provider.connect();
  Client caller{uri_};
  EXPECT_EQ(caller.call<int>("nested", 2), 21);
  EXPECT_EQ(caller.try_call<int>("circle").error().code(), -32005);
}

TEST_F(ClientAtBroker, connect_throws_the_conflict_of_one_method_and_others_are_provided) {
  Client provider{uri_};
  provider.provide("own", add);
  provider.provide("add", add);
  try {
    provider.connect();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), -32007);
    EXPECT_TRUE(error.message().starts_with("own is refused")) << error.message();
  }
  Client caller{uri_};
  EXPECT_TRUE(comes_true([&] { return caller.try_call<int>("add", 1, 2) == 3; }));
  EXPECT_EQ(caller.call<int>("own", 2), 20);
}

TEST_F(ClientAtBroker, all_who_provide_a_method_are_called_at_once) {
  Client first{uri_, called("first")};
  first.provide("version", [](int n) { return n; });
  first.connect();
  Client second{uri_, called("second")};
  second.provide("version", [](int) -> int { throw Error{7, "no"}; });
  second.connect();
  Client caller{uri_};
  const auto outcomes = caller.call_all<int>("version", 5);
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_EQ(outcomes[0].client, "first");
  EXPECT_EQ(outcomes[0].outcome.value(), 5);
  EXPECT_EQ(outcomes[1].client, "second");
  EXPECT_EQ(outcomes[1].outcome.error().code(), 7);
}

TEST_F(ClientAtBroker, a_provider_that_goes_is_missed_and_one_that_comes_is_found) {
  Client caller{uri_};
  for (int i = 0; i < 3; ++i) {
    Client provider{uri_};
    provider.provide("add", add);
    provider.connect();
    EXPECT_EQ(caller.call<int>("add", i, 1), i + 1);
  }
  EXPECT_TRUE(comes_true([&] {
    const std::expected<int, Error> result = caller.try_call<int>("add", 1, 2);
    return !result && result.error().code() == -32601;
  }));
}

// ---- subscriptions that clients provide ----

class ClientSubscriptions : public ClientAtBroker {
 protected:
  ClientSubscriptions() { provide(); }

  void provide() {
    provider_.provide_subscription(kEthereum,
                                   [this](Context context, std::string kind) -> Stream<int> {
                                     const struct End {
                                       std::counting_semaphore<>& ended;
                                       ~End() { ended.release(); }
                                     } end{ended_};
                                     Stream<int> numbers = blocks(std::move(context), std::move(kind));
                                     while (std::optional<int> number = co_await numbers.next()) co_yield *number;
                                   },
                                   {.params = {"kind"}});
    provider_.connect();
  }
  // The id of a new subscription.
  static std::string subscribe(RawPeer& caller) {
    const std::string answer = ask(caller, "eth_subscribe", "newHeads");
    EXPECT_TRUE(answer.starts_with(R"({"jsonrpc":"2.0","result":"0x)")) << answer;
    return answer.substr(27, 34);
  }
  static std::string event(std::string_view id, int number) {
    return R"({"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":")" + std::string{id} +
           R"(","result":)" + std::to_string(number) + "}}";
  }
  // What a caller is answered, behind any number of events.
  static std::string ask(RawPeer& caller, std::string_view method, std::string_view param) {
    caller.send(R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":[")" + std::string{param} +
                R"("],"id":2})"
                "\n");
    for (;;) {
      std::string line = caller.line();
      if (line.empty() || line.find(R"("id":2)") != std::string::npos) return line;
    }
  }
  [[nodiscard]] bool ends() { return ended_.try_acquire_for(kWatchdog); }

  std::counting_semaphore<> ended_{0};
  Client provider_{uri_};
};

TEST_F(ClientSubscriptions, bring_their_events_in_order_behind_the_answer_until_they_are_ended) {
  RawPeer caller{Endpoint{uri_}};
  RawPeer other{Endpoint{uri_}};
  const std::string id = subscribe(caller);
  const std::string others = subscribe(other);
  EXPECT_NE(id, others);
  for (int number = 1; number <= 10; ++number) EXPECT_EQ(caller.line(), event(id, number));
  for (int number = 1; number <= 3; ++number) EXPECT_EQ(other.line(), event(others, number));
  EXPECT_NE(ask(caller, "eth_unsubscribe", others).find(R"("result":false)"), std::string::npos) << "another's";
  EXPECT_NE(ask(caller, "eth_unsubscribe", id).find(R"("result":true)"), std::string::npos);
  EXPECT_TRUE(ends());
  EXPECT_NE(ask(caller, "eth_unsubscribe", id).find(R"("result":false)"), std::string::npos) << "once";
  EXPECT_EQ(other.line(), event(others, 4)) << "which goes on";
}

TEST_F(ClientSubscriptions, are_refused_by_what_the_stream_throws_first) {
  RawPeer caller{Endpoint{uri_}};
  EXPECT_NE(ask(caller, "eth_subscribe", "nothing").find(R"("code":-32602,"message":"no such kind: nothing")"),
            std::string::npos);
}

TEST_F(ClientSubscriptions, end_at_the_provider_when_their_caller_goes) {
  RawPeer caller{Endpoint{uri_}};
  subscribe(caller);
  subscribe(caller);
  caller.close();
  EXPECT_TRUE(ends());
  EXPECT_TRUE(ends());
}

TEST_F(ClientSubscriptions, end_for_their_caller_when_they_are_provided_no_more_and_may_be_provided_anew) {
  RawPeer caller{Endpoint{uri_}};
  const std::string id = subscribe(caller);
  EXPECT_TRUE(provider_.unprovide("eth_subscribe"));
  std::string line = caller.line();
  while (line.find(R"("result":)") != std::string::npos) line = caller.line();
  EXPECT_NE(line.find(R"("subscription":")" + id + R"(","error":{"code":-32001)"), std::string::npos) << line;
  EXPECT_TRUE(ends());
  EXPECT_NE(ask(caller, "eth_unsubscribe", id).find("-32601"), std::string::npos) << "nobody provides it";
  provide();
  const std::string next = subscribe(caller);
  EXPECT_NE(next, id);
  EXPECT_EQ(caller.line(), event(next, 1));
}

}  // namespace
}  // namespace wirecall::net
