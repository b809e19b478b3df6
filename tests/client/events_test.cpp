// Clients and a broker of ours together: events, what is retained, and what a client that comes back subscribes to.
#include <future>
#include <gtest/gtest.h>
#include <string>

#include "tests/connection/peer.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/client.hpp"

namespace wirecall::net {
namespace {

class ClientEvents : public testing::Test {
 protected:
  Broker broker_;
  const std::string endpoint_ = broker_.listen("tcp://127.0.0.1:0").uri();
  RunningServer running_{broker_};
  Client publisher_{endpoint_};
};

TEST_F(ClientEvents, what_one_publishes_reaches_who_subscribes_as_the_value_it_was) {
  Client client{endpoint_};
  std::promise<double> number;
  std::promise<std::string> topic;
  const Subscription subscription = client.subscribe("sensors.*.temp", [&](const Event& event) {
    topic.set_value(event.topic);
    number.set_value(event.as<double>());
  });
  client.connect();
  EXPECT_EQ(publisher_.publish("sensors.roof.temp", 21.5), 1u);
  EXPECT_EQ(topic.get_future().get(), "sensors.roof.temp");
  EXPECT_EQ(number.get_future().get(), 21.5);
  EXPECT_EQ(publisher_.publish("sensors.roof.hum", 1), 0u);
}

TEST_F(ClientEvents, what_is_retained_comes_to_who_asks_for_the_last) {
  EXPECT_EQ(publisher_.publish("news", 1, {.retain = true}), 0u);
  EXPECT_EQ(publisher_.publish("news", 2, {.retain = true}), 0u);
  Client client{endpoint_};
  std::promise<int> last;
  const Subscription subscription =
      client.subscribe("news", {.last = true}, [&](const Event& event) { last.set_value(event.as<int>()); });
  EXPECT_EQ(last.get_future().get(), 2);
}

TEST_F(ClientEvents, a_subscription_that_has_gone_counts_no_more) {
  Client client{endpoint_};
  {
    const Subscription subscription = client.subscribe("news", [](const Event&) {});
    client.connect();
    EXPECT_EQ(publisher_.publish("news", 1), 1u);
  }
  EXPECT_TRUE(comes_true([&] { return publisher_.publish("news", 1) == 0; }));
}

TEST_F(ClientEvents, what_is_provided_is_asked_by_another) {
  ClientOptions options;
  options.client_id = "adder";
  Client provider{endpoint_, options};
  provider.provide("add", [](int a, int b) { return a + b; }, {.params = {"a", "b"}});
  provider.connect();
  EXPECT_EQ(publisher_.call<int>("add", 42, 23), 65);
  EXPECT_EQ(publisher_.call<int>("add", arg("b") = 1, arg("a") = 2), 3);
}

}  // namespace
}  // namespace wirecall::net
