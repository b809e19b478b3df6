// Clients that subscribe to events and publish them: what is said to the broker, which events reach which function, and
// what happens to functions that throw, go, or run while their client goes.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <future>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/connection/peer.hpp"
#include "tests/server/broker_world.hpp"
#include "wirecall/client.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

std::string event(std::string_view topic, std::string_view params = {}) {
  std::string text = R"({"jsonrpc":"2.0","method":")" + std::string{topic} + "\"";
  if (!params.empty()) text += R"(,"params":)" + std::string{params};
  return text + "}";
}

// Notes what comes as "topic value".
struct Noted : BrokerWorld {
  using BrokerWorld::BrokerWorld;
  EventFunction note(std::string as = {}) {
    return
        [this, as](const Event& event) { noted.push_back(as + event.topic + " " + std::string{event.value_json()}); };
  }
  Names noted;
};

// ---- what is said ----

TEST(ClientSubscribe, says_group_echo_and_last_and_each_subscription_in_a_message_of_its_own) {
  BrokerWorld world;
  const Subscription all =
      world.client->subscribe("a.>", {.group = "g", .echo = true, .last = true}, [](const Event&) {});
  const Subscription one = world.client->subscribe("b", [](const Event&) {});
  world.client->connect();
  EXPECT_EQ(world.lines,
            (Names{R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"a.>","group":"g","echo":true,)"
                   R"("last":true},"id":"rpc.subscribe:1"})",
                   R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"b"},"id":"rpc.subscribe:2"})"}));
}

TEST(ClientSubscribe, what_is_dropped_is_unsubscribed_at_once_and_not_said_again) {
  Noted world;
  std::optional<Subscription> news{world.client->subscribe("news", world.note())};
  const Subscription other = world.client->subscribe("other", world.note());
  world.client->connect();
  world.lines.clear();
  news.reset();
  world.pass(1ms);
  EXPECT_EQ(world.lines, Names{R"({"jsonrpc":"2.0","method":"rpc.unsubscribe","params":{"topic":"news"}})"});
  world.send(event("news", "[1]"));
  world.send(event("other", "[2]"));
  world.pass(1ms);
  EXPECT_EQ(world.noted, Names{"other 2"});
  world.lines.clear();
  world.peers[0]->reset();
  world.pass(100ms);
  ASSERT_EQ(world.lines.size(), 1U);
  EXPECT_NE(world.lines[0].find("other"), std::string::npos);
}

TEST(ClientSubscribe, a_topic_that_somebody_else_here_subscribes_to_stays) {
  Noted world;
  std::optional<Subscription> first{world.client->subscribe("news", world.note("first "))};
  std::optional<Subscription> second{world.client->subscribe("news", {.last = true}, world.note("second "))};
  EXPECT_THROW(static_cast<void>(world.client->subscribe("news", {.group = "g"}, world.note())), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(world.client->subscribe("news", {.echo = true}, world.note())), std::invalid_argument);
  world.client->connect();
  EXPECT_EQ(world.methods(), (Names{"rpc.subscribe", "rpc.subscribe"}));
  world.send(event("news", "[1]"));
  world.pass(1ms);
  EXPECT_EQ(world.noted, (Names{"first news 1", "second news 1"})) << "in the order in which they were made";
  first.reset();
  world.pass(1ms);
  EXPECT_EQ(world.methods(), Names{});
  world.send(event("news", "[2]"));
  world.pass(1ms);
  EXPECT_EQ(world.noted.back(), "second news 2");
  second.reset();
  world.pass(1ms);
  EXPECT_EQ(world.methods(), Names{"rpc.unsubscribe"});
}

TEST(ClientSubscribe, what_goes_before_it_was_ever_said_is_not_said) {
  BrokerWorld world;
  {
    const Subscription news = world.client->subscribe("news", [](const Event&) {});
  }
  world.pass(10ms);
  EXPECT_TRUE(world.dialed.empty());
  EXPECT_EQ(world.client->try_call<int>("a"), 1);
  EXPECT_EQ(world.methods(), Names{"a"});
}

TEST(ClientSubscribe, what_is_no_topic_is_refused_with_what_one_is) {
  BrokerWorld world;
  for (const std::string_view bad : {"", "a..b", "a b", "a.b*", ">.a"}) {
    EXPECT_THROW(static_cast<void>(world.client->subscribe(bad, [](const Event&) {})), std::invalid_argument) << bad;
  }
  EXPECT_THROW(static_cast<void>(world.client->subscribe("a", nullptr)), std::invalid_argument);
  world.pass(1ms);
  EXPECT_TRUE(world.dialed.empty());
}

TEST(ClientSubscribe, a_refused_subscription_is_thrown_by_connect) {
  BrokerWorld world;
  world.answers["rpc.subscribe"] = R"("error":{"code":-32003,"message":"Forbidden"})";
  const Subscription secret = world.client->subscribe("secret", [](const Event&) {});
  try {
    world.client->connect();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), -32003);
    EXPECT_EQ(error.message(), "secret is refused: Forbidden");
  }
}

TEST(ClientSubscribe, what_was_refused_is_not_retracted) {
  BrokerWorld world;
  for (const char* const method : {"rpc.subscribe", "rpc.tap", "rpc.register"})
    world.answers[method] = R"("error":{"code":-32003,"message":"Forbidden"})";
  std::optional<Subscription> secret{world.client->subscribe("secret", [](const Event&) {})};
  std::optional<Subscription> tap{world.client->tap(">", [](const Event&) {})};
  world.client->provide("a", [] { return 1; });
  EXPECT_THROW(world.client->connect(), Error);
  EXPECT_EQ(world.methods(), (Names{"rpc.register", "rpc.subscribe", "rpc.tap"}));
  tap.reset();
  EXPECT_TRUE(world.client->unprovide("a"));
  world.pass(1ms);
  EXPECT_EQ(world.methods(), Names{});
  // On the next connection the broker may have accepted what it has not answered.
  world.answers["rpc.subscribe"] = "";
  world.peers[0]->reset();
  world.pass(100ms);
  EXPECT_EQ(world.methods(), Names{"rpc.subscribe"});
  secret.reset();
  world.pass(1ms);
  EXPECT_EQ(world.methods(), Names{"rpc.unsubscribe"});
}

TEST(ClientSubscribe, a_topic_is_unsubscribed_though_the_last_of_its_subscriptions_was_refused) {
  BrokerWorld world;
  world.answer_to = [](const std::string& request) {
    return std::string{request.find("\"last\"") == std::string::npos ? R"("result":1)"
                                                                     : R"("error":{"code":-32005,"message":"no"})"};
  };
  std::optional<Subscription> accepted{world.client->subscribe("news", [](const Event&) {})};
  std::optional<Subscription> refused{world.client->subscribe("news", {.last = true}, [](const Event&) {})};
  EXPECT_THROW(world.client->connect(), Error);
  EXPECT_EQ(world.methods(), (Names{"rpc.subscribe", "rpc.subscribe"}));
  accepted.reset();
  world.pass(1ms);
  EXPECT_EQ(world.methods(), Names{});
  refused.reset();
  world.pass(1ms);
  EXPECT_EQ(world.methods(), Names{"rpc.unsubscribe"});
}

TEST(ClientSubscribe, one_that_is_kept_lasts_as_long_as_the_client) {
  Noted world;
  {
    Subscription news = world.client->subscribe("news", world.note());
    news.keep();
  }
  world.client->connect();
  world.send(event("news", "[1]"));
  world.pass(1ms);
  EXPECT_EQ(world.noted, Names{"news 1"});
}

TEST(ClientSubscribe, one_is_moved_and_outlives_its_client) {
  Subscription outer;
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> alive = held;
  {
    BrokerWorld world;
    Subscription inner = world.client->subscribe("a", [held = std::move(held)](const Event&) {});
    outer = std::move(inner);
    world.client->connect();
    outer = world.client->subscribe("b", [](const Event&) {});
    EXPECT_TRUE(alive.expired()) << "what a function holds goes with its subscription";
    world.pass(1ms);
    EXPECT_EQ(world.methods(), (Names{"rpc.subscribe", "rpc.subscribe", "rpc.unsubscribe"}));
  }
  outer.unsubscribe();
  outer.unsubscribe();
}

// ---- events ----

TEST(ClientSubscribe, an_event_reaches_each_subscription_whose_pattern_takes_it_once) {
  Noted world;
  std::vector<Subscription> subscriptions;
  for (const std::string pattern : {"a.b", "a.*", "a.>", ">", "*.c", "x"}) {
    subscriptions.push_back(world.client->subscribe(pattern, world.note(pattern + " ")));
  }
  world.client->connect();
  world.send(event("a.b", "[1]"));
  world.pass(1ms);
  EXPECT_EQ(world.noted, (Names{"a.b a.b 1", "a.* a.b 1", "a.> a.b 1", "> a.b 1"}));
}

TEST(ClientSubscribe, an_array_of_one_value_that_is_no_array_or_object_is_that_value) {
  const std::map<std::string, std::string> values{{"[1]", "1"},
                                                  {"[ \"a]\" ]", "\"a]\""},
                                                  {"[null]", "null"},
                                                  {"[true]", "true"},
                                                  {"", "null"},
                                                  {"[-1.5e3]", "-1.5e3"},
                                                  {"[]", "[]"},
                                                  {"[1,2]", "[1,2]"},
                                                  {"[[1]]", "[[1]]"},
                                                  {R"([{"a":1}])", R"([{"a":1}])"},
                                                  {R"({"a":1})", R"({"a":1})"}};
  for (const auto& [params, value] : values) {
    const Event one{.topic = "a", .params_json = params};
    EXPECT_EQ(one.value_json(), value) << params;
  }
}

TEST(ClientSubscribe, a_value_is_read_as_what_is_asked_for) {
  struct Point {
    int x;
    int y;
  };
  const auto of = [](std::string params) { return Event{.topic = "a", .params_json = std::move(params)}; };
  EXPECT_EQ(of("[19]").as<int>(), 19);
  EXPECT_EQ(of("[19]").as<std::vector<int>>(), std::vector<int>{19}) << "an array that was published as such";
  EXPECT_EQ(of("[1,2]").as<std::vector<int>>(), (std::vector<int>{1, 2}));
  EXPECT_EQ(of(R"({"x":1,"y":2})").as<Point>().y, 2);
  EXPECT_EQ(of("").as<std::optional<int>>(), std::nullopt);
  try {
    static_cast<void>(of(R"(["a"])").as<int>());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), -32602);
    EXPECT_NE(error.data().find("integer"), std::string::npos) << error.data();
  }
}

TEST(ClientSubscribe, a_function_that_throws_is_logged_and_the_others_are_called) {
  Noted world;
  const Subscription bad = world.client->subscribe("a", [](const Event& event) { static_cast<void>(event.as<int>()); });
  const Subscription worse = world.client->subscribe("a", [](const Event&) { throw 1; });
  const Subscription good = world.client->subscribe("a", world.note());
  world.client->connect();
  world.send(event("a", R"(["x"])"));
  world.send(event("a", "[2]"));
  world.pass(1ms);
  EXPECT_EQ(world.noted, (Names{"a \"x\"", "a 2"}));
  EXPECT_EQ(world.log, (Names{"error the function of a subscription has failed name=a error=\"Invalid params\"",
                              "error the function of a subscription has failed name=a error=\"what is no "
                              "std::exception\"",
                              "error the function of a subscription has failed name=a error=\"what is no "
                              "std::exception\""}));
}

TEST(ClientSubscribe, a_notification_with_subscriptions_is_an_event_and_another_is_for_the_method) {
  Noted world;
  Names called;
  world.client->provide("both", [&](int n) { called.push_back("both " + std::to_string(n)); });
  world.client->provide("mine", [&](int n) { called.push_back("mine " + std::to_string(n)); });
  const Subscription both = world.client->subscribe("both", world.note());
  world.client->connect();
  world.lines.clear();
  world.send(event("both", "[1]"));
  world.send(event("mine", "[2]"));
  world.send(R"({"jsonrpc":"2.0","method":"both","params":[3],"id":1})");
  world.pass(1ms);
  EXPECT_EQ(world.noted, Names{"both 1"});
  EXPECT_EQ(called, (Names{"mine 2", "both 3"})) << "a request is none";
  EXPECT_EQ(world.lines, Names{R"({"jsonrpc":"2.0","result":null,"id":1})"});
}

TEST(ClientSubscribe, topics_of_the_broker_itself_are_events_and_its_methods_are_none) {
  Noted world;
  world.answers["slow"] = "";
  const Subscription all = world.client->subscribe("rpc.>", world.note());
  const Subscription others = world.client->subscribe(">", world.note());  // none of the broker's
  world.client->connect();
  for (const std::string_view topic : {"rpc.client.joined", "rpc.method.registered", "rpc.cancel", "rpc.credit",
                                       "$/cancelRequest", "$/progress", "rpc.item", "rpc.draining"}) {
    world.send(event(topic, R"({"id":1})"));
  }
  world.pass(1ms);
  EXPECT_EQ(world.noted,
            (Names{R"(rpc.client.joined {"id":1})", R"(rpc.method.registered {"id":1})", R"(rpc.draining {"id":1})"}));
}

TEST(ClientSubscribe, a_topic_that_came_with_escapes_is_the_same_topic) {
  Noted world;
  const Subscription one = world.client->subscribe("caf\xC3\xA9", world.note());
  world.client->connect();
  world.send(event("c\\u0061f\\u00e9", "[1]"));
  world.pass(1ms);
  EXPECT_EQ(world.noted, Names{"caf\xC3\xA9 1"});
}

TEST(ClientSubscribe, functions_may_subscribe_unsubscribe_and_call) {
  Noted world;
  Subscription once;
  Subscription second;
  std::optional<int> answer;
  once = world.client->subscribe("a", [&](const Event&) {
    world.noted.emplace_back("once");
    once.unsubscribe();
    second = world.client->subscribe("b", world.note());
    static_cast<void>(world.client->request<int>("call").then([&](std::expected<int, Error> got) { answer = *got; }));
  });
  world.client->connect();
  world.send(event("a") + event("a"));
  world.pass(5ms);
  EXPECT_EQ(world.noted, Names{"once"});
  EXPECT_EQ(answer, 1);
  EXPECT_EQ(world.methods(), (Names{"rpc.subscribe", "rpc.unsubscribe", "rpc.subscribe", "call"}));
  world.send(event("b", "[1]"));
  world.pass(1ms);
  EXPECT_EQ(world.noted, (Names{"once", "b 1"}));
}

TEST(ClientSubscribe, one_that_ends_while_an_event_is_given_round_gets_it_no_more) {
  Noted world;
  Subscription second;
  const Subscription first = world.client->subscribe("a", [&](const Event&) { second.unsubscribe(); });
  second = world.client->subscribe("a", world.note());
  world.client->connect();
  world.send(event("a"));
  world.pass(1ms);
  EXPECT_EQ(world.noted, Names{});
}

TEST(ClientSubscribe, what_was_dropped_goes_to_the_log_and_to_who_asked_for_it) {
  BrokerWorld world;
  Names lagged;
  world.client->on_lagged([&](std::string_view topic, std::uint64_t dropped) {
    lagged.push_back(std::string{topic} + " " + std::to_string(dropped));
  });
  const Subscription all = world.client->subscribe(">", [](const Event&) { ADD_FAILURE(); });
  world.client->connect();
  world.send(event("rpc.lagged", R"({"topic":"news","dropped":17})"));
  world.send(event("rpc.lagged", "[1]"));
  world.send(event("rpc.lagged"));
  world.pass(1ms);
  EXPECT_EQ(lagged, Names{"news 17"});
  EXPECT_EQ(world.log, Names{"warning the server has dropped events, since this client does not keep up topic=news "
                             "dropped=17"});
}

TEST(ClientSubscribe, what_a_broker_shows_goes_to_its_function_alone) {
  Noted world;
  const Subscription all = world.client->subscribe("rpc.*", world.note("event "));
  std::optional<Subscription> tap{world.client->tap("gpu.>", world.note())};
  std::optional<Subscription> again{world.client->tap("gpu.>", world.note("again "))};
  EXPECT_THROW(static_cast<void>(world.client->tap(">", world.note())), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(world.client->tap("a..b", world.note())), std::invalid_argument);
  world.client->connect();
  EXPECT_EQ(world.lines.at(1), R"({"jsonrpc":"2.0","method":"rpc.tap","params":{"pattern":"gpu.>"},"id":"rpc.tap:2"})");
  world.send(event("rpc.tap", R"({"kind":"call"})"));
  world.pass(1ms);
  EXPECT_EQ(world.noted, (Names{R"(rpc.tap {"kind":"call"})", R"(again rpc.tap {"kind":"call"})"}));
  world.lines.clear();
  tap.reset();
  world.pass(1ms);
  EXPECT_EQ(world.lines, Names{});
  again.reset();
  world.pass(1ms);
  EXPECT_EQ(world.lines, Names{R"({"jsonrpc":"2.0","method":"rpc.tap","params":{"pattern":null}})"});
}

TEST(ClientSubscribe, a_refusal_without_an_id_is_not_taken_for_that_of_a_call_while_it_may_be_of_a_subscription) {
  BrokerWorld world;
  world.answers["rpc.subscribe"] = "";
  const Subscription news = world.client->subscribe("news", [](const Event&) {});
  world.answers["a"] = "";
  world.serve = [&world, serve = world.serve] {
    const std::size_t before = world.lines.size();
    serve();
    for (std::size_t i = before; i < world.lines.size(); ++i) {
      if (i == 1) world.send(R"({"jsonrpc":"2.0","error":{"code":-5,"message":"no"},"id":null})");
    }
  };
  EXPECT_EQ(world.client->request<int>("a").timeout(20ms).try_call().error().code(), -32002);
  EXPECT_EQ(world.client->responses_dropped(), 1U);
}

// ---- publishing, and all providers ----

TEST(ClientPublish, says_topic_params_and_retain_and_returns_to_how_many) {
  BrokerWorld world;
  world.answers["rpc.publish"] = R"("result":3)";
  EXPECT_EQ(world.client->publish("a", 19), 3U);
  EXPECT_EQ(world.client->publish("a", std::vector<int>{19}, {.retain = true}), 3U);
  EXPECT_EQ(world.client->publish("a", std::map<std::string, int>{{"x", 1}}), 3U);
  EXPECT_EQ(world.client->publish("a", {.retain = true}), 3U);
  EXPECT_EQ(world.client->publish("a", "text"), 3U);
  EXPECT_EQ(world.client->publication("a", true).future().valid(), true);
  world.pass(1ms);
  Names params;
  for (const std::string& line : world.lines) params.push_back(BrokerWorld::member(line, "params"));
  EXPECT_EQ(params, (Names{R"({"topic":"a","params":[19]})", R"({"topic":"a","params":[19],"retain":true})",
                           R"({"topic":"a","params":{"x":1}})", R"({"topic":"a","retain":true})",
                           R"({"topic":"a","params":["text"]})", R"({"topic":"a","params":[true]})"}));
}

TEST(ClientPublish, throws_what_it_is_refused_with_and_what_json_cannot_hold) {
  BrokerWorld world;
  world.answers["rpc.publish"] = R"("error":{"code":-32003,"message":"Forbidden"})";
  try {
    world.client->publish("a", 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), -32003);
  }
  EXPECT_THROW(world.client->publish("a", std::string{"\xFF"}), LocalError);
  EXPECT_EQ(world.methods(), Names{"rpc.publish"}) << "what cannot be encoded is not sent";
}

TEST(ClientCallAll, returns_each_provider_s_outcome) {
  BrokerWorld world;
  world.answers["rpc.call_all"] =
      R"("result":[{"client":"a","result":1},{"error":{"code":-5,"message":"no","data":[1]},"client":"b"},)"
      R"({"result":"x","more":1},{"client":null,"result":4}])";
  const auto outcomes = world.client->call_all<int>("ping", 1, "x");
  EXPECT_EQ(BrokerWorld::member(world.lines[0], "params"), R"({"method":"ping","params":[1,"x"]})");
  ASSERT_EQ(outcomes.size(), 4U);
  EXPECT_EQ(outcomes[0].client, "a");
  EXPECT_EQ(outcomes[0].outcome, 1);
  EXPECT_EQ(outcomes[1].client, "b");
  ASSERT_FALSE(outcomes[1].outcome.has_value());
  EXPECT_EQ(outcomes[1].outcome.error().code(), -5);
  EXPECT_EQ(outcomes[1].outcome.error().data(), "[1]");
  ASSERT_FALSE(outcomes[2].outcome.has_value());
  EXPECT_EQ(outcomes[2].outcome.error().code(), -32603);
  EXPECT_EQ(outcomes[3].client, "");
  EXPECT_EQ(outcomes[3].outcome, 4);
}

TEST(ClientCallAll, takes_arguments_by_name_or_none_and_results_that_nobody_reads) {
  BrokerWorld world;
  world.answers["rpc.call_all"] = R"("result":[{"result":null}])";
  EXPECT_TRUE(world.client->call_all("ping").at(0).outcome.has_value());
  EXPECT_TRUE(world.client->call_all("ping", arg("a") = 1).at(0).outcome.has_value());
  EXPECT_EQ(BrokerWorld::member(world.lines[0], "params"), R"({"method":"ping"})");
  EXPECT_EQ(BrokerWorld::member(world.lines[1], "params"), R"({"method":"ping","params":{"a":1}})");
  world.answers["rpc.call_all"] = R"("result":[{}])";
  EXPECT_THROW(world.client->call_all("ping"), LocalError);
}

// ---- over sockets ----

// A server that accepts one subscription and then sends events until the connection ends.
ScriptedServer streaming_server() {
  return ScriptedServer{[](RawPeer peer) {
    const std::string id = BrokerWorld::member(peer.line(), "id");
    peer.send(R"({"jsonrpc":"2.0","result":1,"id":)" + id + "}\n");
    while (peer.send(event("a.b", "[1]"))) {
    }
  }};
}

TEST(ClientSubscribe, the_thread_in_the_background_calls_and_connects_again_without_any_call) {
  std::promise<void> twice;
  ScriptedServer server{2, [&](RawPeer peer) {
                          EXPECT_NE(peer.line().find("rpc.subscribe"), std::string::npos);
                          peer.send(event("a", "[1]"));
                          static_cast<void>(peer.send(event("a", "[2]")));
                        }};
  std::atomic<int> events{0};
  Client client{server.uri()};
  const Subscription one = client.subscribe("a", [&](const Event&) {
    if (++events == 4) twice.set_value();
  });
  EXPECT_EQ(twice.get_future().wait_for(kWatchdog), std::future_status::ready);
}

TEST(ClientSubscribe, a_client_goes_while_events_arrive) {
  for (int i = 0; i < 20; ++i) {
    ScriptedServer server = streaming_server();
    std::atomic<int> events{0};
    {
      Client client{server.uri()};
      Subscription one = client.subscribe("a.*", [&](const Event&) { ++events; });
      EXPECT_TRUE(comes_true([&] { return events > i; }));
      one.keep();
    }
    const int at_the_end = events;
    server.join();
    EXPECT_EQ(events, at_the_end) << "nothing is called once the client is gone";
  }
}

TEST(ClientSubscribe, what_a_function_refers_to_may_go_once_it_is_unsubscribed) {
  ScriptedServer server = streaming_server();
  Client client{server.uri()};
  for (int i = 0; i < 50; ++i) {
    auto count = std::make_unique<int>(0);
    Subscription one = client.subscribe("a.b", [&count = *count](const Event&) { ++count; });
    if (i == 0) client.connect();
    one.unsubscribe();
    const int at_the_end = *count;
    std::this_thread::yield();
    EXPECT_EQ(*count, at_the_end);
  }
}

TEST(ClientSubscribe, unsubscribing_waits_for_the_function_that_runs) {
  ScriptedServer server = streaming_server();
  Client client{server.uri()};
  std::binary_semaphore running{0};
  std::atomic<bool> go_on{false};
  std::atomic<bool> returned{false};
  Subscription one = client.subscribe("a.b", [&](const Event&) {
    if (returned) return;
    running.release();
    while (!go_on) std::this_thread::yield();
    returned = true;
  });
  running.acquire();
  std::jthread releasing{[&] { go_on = true; }};
  one.unsubscribe();
  EXPECT_TRUE(returned);
}

TEST(ClientSubscribe, many_threads_subscribe_and_unsubscribe_while_others_call) {
  ScriptedServer server{[](RawPeer peer) {
    for (std::string line = peer.line(); !line.empty(); line = peer.line()) {
      if (const std::string id = BrokerWorld::member(line, "id"); !id.empty()) {
        peer.send(event("t0", "[1]") + R"({"jsonrpc":"2.0","result":1,"id":)" + id + "}\n");
      }
    }
  }};
  {
    Client client{server.uri()};
    std::atomic<int> events{0};
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          const Subscription one = client.subscribe("t" + std::to_string(i % 2), [&](const Event&) { ++events; });
          EXPECT_EQ(client.try_call<int>("a", t), 1);
        }
      });
    }
    threads.clear();
  }
  server.join();
}

}  // namespace
}  // namespace wirecall::net
