// What callers and providers may do to each other through a broker, and what comes of it: docs/broker.md "What is
// relayed" under messages that are meant to do harm.
#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "tests/broker/world.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::cancel_notification;
using test::cancelled;
using test::Client;
using test::error_reply;
using test::id_of;
using test::notification;
using test::request;
using test::result_reply;
using test::World;

class HostilePeers : public testing::Test {
 protected:
  World world{Limits{.batch = 3}};
  Client provider{world};
  Client caller{world};
};

TEST_F(HostilePeers, a_request_that_says_something_twice_reaches_nobody) {
  provider.provide("add");
  for (const std::string twice : {R"({"jsonrpc":"2.0","method":"add","id":1,"id":2})",
                                  R"({"jsonrpc":"2.0","method":"add","m\u0065thod":"x","id":1})",
                                  R"({"jsonrpc":"2.0","method":"add","params":[],"params":[1],"id":1})",
                                  R"({"jsonrpc":"2.0","method":"add","to":"a","to":"b","id":1})"}) {
    EXPECT_NE(caller.ask(twice).find("-32600"), std::string::npos) << twice;
    EXPECT_EQ(provider.received(), "") << twice;
  }
}

TEST_F(HostilePeers, an_answer_that_says_something_twice_is_none) {
  provider.provide("add");
  caller.send(request("add"));
  const std::string id = id_of(provider.received());
  provider.send(R"({"jsonrpc":"2.0","result":1,"r\u0065sult":2,"id":)" + id + "}");
  EXPECT_NE(caller.received().find("-32603"), std::string::npos);
  EXPECT_EQ(world.router.relayed_calls().in_use(), 0U);
}

TEST_F(HostilePeers, batches_are_taken_apart_or_refused_before_anybody_is_asked) {
  provider.provide("add");
  EXPECT_NE(caller.ask("[]").find("-32600"), std::string::npos);
  EXPECT_NE(caller.ask("[1]").find("-32600"), std::string::npos);
  EXPECT_NE(caller.ask("[[" + request("add") + "]]").find("-32600"), std::string::npos);
  std::string many = "[" + request("add");
  for (int i = 0; i < 3; ++i) many += "," + request("add");
  EXPECT_NE(caller.ask(many + "]").find("\"limit\":\"batch\""), std::string::npos);
  EXPECT_EQ(provider.received(), "");
  EXPECT_EQ(caller.ask("[" + notification("add") + "," + notification("add") + "]"), "");
  EXPECT_EQ(provider.received(), notification("add") + "\n" + notification("add"));
}

TEST_F(HostilePeers, who_sends_more_than_a_provider_takes_costs_it_nothing_and_waits) {
  provider.provide("add");
  provider.sink->overfull = true;
  for (int i = 0; i < 5; ++i) caller.send(notification("add", "[1]"));
  EXPECT_EQ(provider.received(), "");
  EXPECT_EQ(world.loop_context.stats.events_dropped, 5U);
  caller.send(request("add", "[2]", "1"));
  caller.send(request("add", "[3]", "2"));
  EXPECT_EQ(provider.received(), "");
  provider.sink->overfull = false;
  caller.send(request("add", "[4]", "3"));
  caller.send(notification("add", "[5]"));
  EXPECT_EQ(provider.received(), "") << "nothing overtakes what waits";
  provider.dispatcher->on_writable();
  EXPECT_EQ(provider.received(),
            request("add", "[2]", "0") + "\n" + request("add", "[3]", "1") + "\n" + request("add", "[4]", "2"));
  caller.send(notification("add", "[6]"));
  EXPECT_EQ(provider.received(), notification("add", "[6]"));
}

TEST_F(HostilePeers, what_waits_for_a_provider_is_bounded_in_bytes) {
  World small{Limits{.max_message_size = 4000, .hard_output = 10'000}};
  Client worker{small};
  Client greedy{small};
  Client modest{small};
  worker.provide("add", R"(,"concurrency":1)");
  const std::string large = "[\"" + std::string(3900, 'x') + "\"]";
  greedy.send(request("add", "[]", "0"));
  for (int i = 1; i <= 4; ++i) greedy.send(request("add", large, std::to_string(i)));
  const std::string refused = greedy.received();
  EXPECT_EQ(id_of(refused.substr(0, refused.find('\n'))), "3") << refused.substr(0, 300);
  EXPECT_NE(refused.find(R"("delivered":"no","limit":"hard_output")"), std::string::npos);
  EXPECT_EQ(std::count(refused.begin(), refused.end(), '\n'), 1) << "two of four have room";
  EXPECT_EQ(modest.ask(request("add", large)), "");
  // What has gone to the provider makes room.
  worker.send(result_reply("1", id_of(worker.received())));
  EXPECT_EQ(greedy.received(), result_reply("1", "0"));
  greedy.send(request("add", large, "5"));
  EXPECT_EQ(greedy.received(), "");
  greedy.leave();
  modest.leave();
  EXPECT_EQ(small.router.relayed_calls().in_use(), 1U) << "the one that the provider is at work on";
}

TEST_F(HostilePeers, a_text_of_several_lines_is_one_line_for_who_may_read_lines) {
  Client lines{world};
  lines.sink->lines = true;
  lines.provide("add");
  EXPECT_EQ(lines.ask(request("rpc.subscribe", R"(["news"])")), result_reply("true"));
  caller.send("{\"jsonrpc\":\"2.0\",\r\n\t\"method\" : \"add\",\n\"params\":[\"a\\nb\"],\n\"id\":1\n}");
  EXPECT_EQ(lines.received(), "{\"jsonrpc\":\"2.0\",  \t\"method\" : \"add\", \"params\":[\"a\\nb\"], \"id\":0 }");
  caller.sink->lines = true;
  lines.send("{\"jsonrpc\":\"2.0\",\n\"result\":[\n1\n],\"id\":0}");
  EXPECT_EQ(caller.received(), R"({"jsonrpc":"2.0", "result":[ 1 ],"id":1})");
  caller.send("{\"jsonrpc\":\"2.0\",\n\"method\":\"news\"}");
  EXPECT_EQ(lines.received(), R"({"jsonrpc":"2.0", "method":"news"})");
  provider.provide("sub");
  caller.send("{\"jsonrpc\":\"2.0\",\n\"method\":\"sub\",\"id\":1}");
  EXPECT_TRUE(provider.received().starts_with("{\"jsonrpc\":\"2.0\",\n\"method\":\"sub\","))
      << "elsewhere it is as it came";
}

TEST_F(HostilePeers, what_is_no_name_reaches_nobody_who_provides_all_of_them) {
  provider.provide(">");
  for (const std::string name : {"", "a..b", "a b", "*", "a.*", ".", "a."}) {
    EXPECT_NE(caller.ask(request(name)).find("-32601"), std::string::npos) << name;
    EXPECT_EQ(provider.received(), "") << name;
  }
  caller.send(request("a.b"));
  EXPECT_NE(provider.received(), "");
}

TEST_F(HostilePeers, a_call_that_has_not_been_asked_for_says_so_when_it_is_cancelled) {
  provider.provide("add", R"(,"concurrency":1)");
  caller.send(request("add", {}, "1"));
  caller.send(request("add", {}, "2"));
  caller.send(notification("rpc.cancel", "[2]"));
  EXPECT_NE(caller.received().find(R"("delivered":"no"}},"id":2})"), std::string::npos);
  caller.send(notification("rpc.cancel", "[1]"));
  EXPECT_NE(caller.received().find(R"("delivered":"maybe"}},"id":1})"), std::string::npos);
}

TEST_F(HostilePeers, two_that_call_each_other_within_their_calls_come_to_an_end) {
  Client other{world};
  provider.provide("ping");
  other.provide("pong");
  const auto with_hops = [](std::string_view method, int hops) {
    return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","hops":)" + std::to_string(hops) +
           R"(,"id":"nested"})";
  };
  caller.send(request("ping", {}, "\"outer\""));
  std::vector<std::string> asked;
  std::string refused;
  int hops = 0;
  for (; refused.empty() && hops < 100; ++hops) {
    Client& asks = hops % 2 == 0 ? provider : other;
    asked.push_back(id_of(asks.received()));
    asks.send(with_hops(hops % 2 == 0 ? "pong" : "ping", hops + 1));
    // Whoever was asked has it; whoever was refused is told.
    if (hops + 1 > 16) refused = asks.received();
  }
  EXPECT_NE(refused.find("\"limit\":\"hops\""), std::string::npos) << refused;
  EXPECT_EQ(hops, 17);
  // Each one's error goes back as the answer to whoever had asked it.
  for (int i = 16; i >= 0; --i) {
    Client& answers = i % 2 == 0 ? provider : other;
    if (i != 16) {
      EXPECT_NE(answers.received().find("\"id\":\"nested\""), std::string::npos) << i;
    }
    answers.send(error_reply(-32000, "too far", {}, asked[static_cast<std::size_t>(i)]));
  }
  EXPECT_EQ(caller.received(), error_reply(-32000, "too far", {}, "\"outer\""));
  EXPECT_EQ(world.router.relayed_calls().in_use(), 0U);
}

TEST_F(HostilePeers, a_cancellation_and_an_answer_that_cross_are_one_outcome) {
  provider.provide("add");
  caller.send(request("add", {}, "5"));
  const std::string first = id_of(provider.received());
  provider.send(result_reply("1", first));
  EXPECT_EQ(caller.ask(request("rpc.cancel", R"({"id":5})", "6")),
            result_reply("1", "5") + "\n" + result_reply("0", "6"));
  EXPECT_EQ(provider.received(), "");
  caller.send(request("add", {}, "7"));
  const std::string second = id_of(provider.received());
  EXPECT_EQ(caller.ask(request("rpc.cancel", R"({"id":7})", "8")), cancelled("7") + "\n" + result_reply("1", "8"));
  EXPECT_EQ(provider.received(), cancel_notification(second));
  provider.send(result_reply("1", second));
  EXPECT_EQ(caller.received(), "");
  EXPECT_EQ(provider.dropped, 1U);
}

TEST_F(HostilePeers, more_topics_than_anybody_needs_cost_nobody_anything) {
  Client subscriber{world};
  EXPECT_EQ(subscriber.ask(request("rpc.subscribe", R"({"topic":"t.*"})")), result_reply("true"));
  // Topics come and go with those who publish them: nothing is kept of one that nobody subscribes to.
  for (int i = 0; i < 10'000; ++i) caller.send(notification("other." + std::to_string(i)));
  caller.send(notification("t.1"));
  EXPECT_EQ(subscriber.received(), notification("t.1"));
  World few{Limits{.subscriptions = 2}};
  Client greedy{few};
  EXPECT_EQ(greedy.ask(request("rpc.subscribe", R"(["a"])")), result_reply("true"));
  EXPECT_EQ(greedy.ask(request("rpc.subscribe", R"(["b"])")), result_reply("true"));
  EXPECT_NE(greedy.ask(request("rpc.subscribe", R"(["c"])")).find("\"limit\":\"subscriptions\""), std::string::npos);
}

TEST_F(HostilePeers, topics_by_the_ten_thousand_are_kept_as_far_as_there_is_room_and_go_with_those_who_ask_for_them) {
  constexpr std::size_t kRoom = 256 * 1024;
  World narrow{Limits{.retained_bytes = kRoom}};
  Client publisher{narrow};
  std::size_t kept = 0;
  constexpr int kTopics = 50'000;
  for (int i = 0; i < kTopics; ++i) {
    const std::string answer = publisher.ask(
        request("rpc.publish", R"({"topic":"t.)" + std::to_string(i) + R"(","params":[1],"retain":true})"));
    if (answer == result_reply("0")) {
      ++kept;
    } else {
      ASSERT_NE(answer.find("\"limit\":\"retained_bytes\""), std::string::npos) << answer;
    }
  }
  EXPECT_LT(kept, kRoom / 256) << "what each costs besides its bytes is counted";
  EXPECT_GT(kept, kRoom / 512);
  // Subscriptions that come and go between events: who is there is told, once.
  Client steady{narrow};
  EXPECT_EQ(steady.ask(request("rpc.subscribe", R"(["t.*"])")), result_reply("true"));
  for (int round = 0; round < 4; ++round) {
    auto restless = std::make_unique<Client>(narrow);
    for (int i = 0; i < 4096; ++i)
      restless->send(notification("rpc.subscribe", "[\"t." + std::to_string(i * 7) + "\"]"));
    EXPECT_EQ(publisher.ask(request("rpc.publish", R"({"topic":"t.7","params":[1]})")), result_reply("2"));
    for (int i = 0; i < 4096; i += 2)
      restless->send(notification("rpc.unsubscribe", "[\"t." + std::to_string(i * 7) + "\"]"));
    EXPECT_EQ(publisher.ask(request("rpc.publish", R"({"topic":"t.14","params":[1]})")), result_reply("1"));
    EXPECT_EQ(publisher.ask(request("rpc.publish", R"({"topic":"t.21","params":[1]})")), result_reply("2"));
    restless->leave();
    EXPECT_EQ(publisher.ask(request("rpc.publish", R"({"topic":"t.21","params":[1]})")), result_reply("1"));
    static_cast<void>(steady.received());
  }
}

TEST_F(HostilePeers, one_that_stalls_loses_its_own_events_and_delays_nobody) {
  Client stalled{world};
  Client quick{world};
  EXPECT_EQ(stalled.ask(request("rpc.subscribe", R"(["news"])")), result_reply("true"));
  EXPECT_EQ(quick.ask(request("rpc.subscribe", R"(["news"])")), result_reply("true"));
  stalled.sink->overfull = true;
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(caller.ask(request("rpc.publish", R"({"topic":"news","params":[1]})")), result_reply("1"));
  EXPECT_EQ(stalled.received(), "");
  EXPECT_EQ(quick.received(),
            notification("news", "[1]") + "\n" + notification("news", "[1]") + "\n" + notification("news", "[1]"));
}

}  // namespace
}  // namespace wirecall
