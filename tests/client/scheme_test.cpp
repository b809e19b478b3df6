// Clients at a broker by each scheme whose bytes are more than messages: WebSocket, and what is encrypted. Every kind
// of call, both ways, over real sockets.
#include <expected>
#include <future>
#include <gtest/gtest.h>
#include <semaphore>
#include <utility>

#include "tests/client/provided.hpp"
#include "tests/client/served.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

using namespace std::string_literals;

class ClientScheme : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] std::string uri() const { return by(GetParam(), served_.tcp); }
  [[nodiscard]] static bool calls_back() { return GetParam() != "https"s; }
  Served served_;
};

TEST_P(ClientScheme, calls_in_each_of_the_four_ways) {
  for (const char* const host : {"127.0.0.1", "localhost"}) {
    Client client{by(GetParam(), served_.tcp, host), trusting()};
    EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
    EXPECT_EQ(client.request<int>("subtract", 42, 22).future().get(), 20);
    std::promise<std::expected<int, Error>> done;
    client.request<int>("subtract", 42, 21).then([&](std::expected<int, Error> result) {
      done.set_value(std::move(result));
    });
    EXPECT_EQ(done.get_future().get(), 21);
    const auto task = [&]() -> Task<int> { co_return co_await client.request<int>("subtract", 42, 20); };
    EXPECT_EQ(client.run(task()), 22);
    EXPECT_EQ(client.try_call<int>("nowhere").error().code(), -32601);
  }
}

TEST_P(ClientScheme, sends_and_reads_messages_of_every_length) {
  for (const Encoding encoding : {Encoding::json, Encoding::msgpack}) {
    ClientOptions options = trusting();
    options.encoding = encoding;
    Client client{uri(), options};
    for (const std::size_t bytes : {0, 1, 60, 125, 126, 16'300, 16'400, 65'000, 66'000, 260'000, 3'000'000}) {
      const std::string text = std::string(bytes, 'x') + "\u03BA";
      EXPECT_EQ(client.call<std::string>("echo", text), text);
    }
  }
}

TEST_P(ClientScheme, sends_batches_and_notifications) {
  Client client{uri(), trusting()};
  const auto [difference, text] = client.batch().call<int>("subtract", 5, 3).call<std::string>("echo", "x").send();
  EXPECT_EQ(difference, 2);
  EXPECT_EQ(text, "x");
  client.notify("note");
  EXPECT_EQ(client.call<int>("notes"), 1);
}

TEST_P(ClientScheme, streams) {
  if (!calls_back()) GTEST_SKIP() << "not by HTTP";
  Client client{uri(), trusting()};
  int count = 0;
  for (const int i : client.stream<int>("count", 1000)) EXPECT_EQ(i, count++);
  EXPECT_EQ(count, 1000);
}

TEST_P(ClientScheme, provides_and_subscribes) {
  if (!calls_back()) GTEST_SKIP() << "not by HTTP";
  Client provider{uri(), trusting()};
  provider.provide("add", add, {.params = {"a", "b"}});
  std::counting_semaphore<> came{0};
  std::string topic;
  const Subscription news = provider.subscribe("news.>", [&](const Event& event) {
    topic = event.topic + " " + std::string{event.value_json()};
    came.release();
  });
  provider.connect();
  Client caller{uri(), trusting()};
  EXPECT_EQ(caller.call<int>("add", 2, 3), 5);
  Client plain{served_.tcp};
  EXPECT_EQ(plain.call<int>("add", 2, 4), 6);
  plain.publish("news.today", 7);
  ASSERT_TRUE(came.try_acquire_for(kWatchdog));
  EXPECT_EQ(topic, "news.today 7");
}

TEST_P(ClientScheme, connects_again_to_a_server_that_was_started_again) {
  ClientOptions options = trusting();
  options.connect_attempts = 0;
  Client client{uri(), options};
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
  served_.running.reset();
  Broker next{serving()};
  next.method("subtract", [](int a, int b) { return 100 + a - b; });
  EXPECT_EQ(next.listen(served_.tcp).uri(), served_.tcp);
  const RunningServer running{next};
  EXPECT_TRUE(comes_true([&] { return client.try_call<int>("subtract", 42, 23) == 119; }));
}

INSTANTIATE_TEST_SUITE_P(Schemes, ClientScheme, testing::Values("ws", "wss", "tls", "https"),
                         [](const auto& tested) { return std::string{tested.param}; });

}  // namespace
}  // namespace wirecall::net
