// Whatever one connection sends, repeated, a turn serves it a bounded share, counted in steps and bytes on a simulated
// loop; who has little to say is answered meanwhile; and twice as much costs at most 2.3 times the steps. A broker that
// has several times as much of everything spends no more of a turn. The table has the worst case of each method of
// wirecall's own and each path of HTTP, and fails for one that it has no case of.
//
// Steps are what the code itself charges. What is counted beside them, whoever forgets to charge: the bytes that a turn
// requests of memory, and, where the library is compiled for the fuzzers, its comparisons.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/methods.hpp"
#include "broker/router.hpp"
#include "connection/channel.hpp"
#include "connection/protocol_detector.hpp"
#include "framing/json_text.hpp"
#include "http/http_connection.hpp"
#include "http/protocols.hpp"
#include "rpc/reserved.hpp"
#include "tests/connection/crowd.hpp"
#include "tests/memory/failing_memory.hpp"
#include "tests/runtime/simulated_backend.hpp"
#include "transport/socket.hpp"
#include "wirecall/registry.hpp"

namespace {
using wirecall::net::comparisons;
}

// Called for each comparison of integers in code that is compiled with -fsanitize=fuzzer-no-link.
extern "C" {
void __sanitizer_cov_trace_cmp1(std::uint8_t, std::uint8_t) { ++comparisons; }
void __sanitizer_cov_trace_cmp2(std::uint16_t, std::uint16_t) { ++comparisons; }
void __sanitizer_cov_trace_cmp4(std::uint32_t, std::uint32_t) { ++comparisons; }
void __sanitizer_cov_trace_cmp8(std::uint64_t, std::uint64_t) { ++comparisons; }
void __sanitizer_cov_trace_const_cmp1(std::uint8_t, std::uint8_t) { ++comparisons; }
void __sanitizer_cov_trace_const_cmp2(std::uint16_t, std::uint16_t) { ++comparisons; }
void __sanitizer_cov_trace_const_cmp4(std::uint32_t, std::uint32_t) { ++comparisons; }
void __sanitizer_cov_trace_const_cmp8(std::uint64_t, std::uint64_t) { ++comparisons; }
}

namespace wirecall::net {
namespace {

const std::string kShared = R"({"method":"shared"})";

// The worst that is known of one method: the params of its call number `i`, and how many calls are made.
struct Worst {
  std::function<std::string(int)> params;
  int calls = 300;
  bool notification = false;
  bool fails = false;  // the worst is answered with an error
};

const std::map<std::string, Worst, std::less<>>& worst_cases() {
  static const std::map<std::string, Worst, std::less<>> kWorst{
      {"rpc.cancel",
       {.params =
            [](int i) {
              std::string ids = "[" + text_of(i);
              for (int more = 1; more < 50; ++more) ids += "," + text_of(i + 10'000 * more);
              return ids + "]";
            }}},
      {"$/cancelRequest", {.params = [](int i) { return R"({"id":)" + text_of(i) + "}"; }}},
      {"rpc.credit", {.params = [](int i) { return R"({"id":)" + text_of(i) + R"(,"n":1})"; }}},
      {"rpc.ping", {.params = [](int) { return std::string{"[]"}; }}},
      {"keepAlive", {.params = [](int) { return std::string{"[]"}; }}},
      {"rpc.undelivered", {.params = [](int) { return std::string{"[]"}; }}},
      {"rpc.discover", {.params = [](int) { return std::string{"[]"}; }, .calls = 12}},
      {"rpc.methods", {.params = [](int) { return std::string{"[]"}; }, .calls = 12}},
      {"rpc.stats", {.params = [](int) { return std::string{"[]"}; }, .calls = 12}},
      {"rpc.cluster", {.params = [](int) { return std::string{"[]"}; }, .calls = 12}},
      {"rpc.clients", {.params = [](int) { return std::string{"[]"}; }, .calls = 12}},
      {"rpc.health", {.params = [](int) { return std::string{"[]"}; }}},
      // All the others have the first of these names.
      {"rpc.hello",
       {.params = [](int i) { return R"({"name":")" + std::string{i % 2 == 0 ? "other" : "own"} + "\"}"; }}},
      {"rpc.register",
       {.params = [](int i) { return i % 2 == 0 ? R"({"method":"more.method_)" + text_of(i) + "\"}" : kShared; }}},
      {"rpc.unregister",
       {.params = [](int i) { return i % 2 == 0 ? R"({"method":"service.method_)" + text_of(i) + "\"}" : kShared; }}},
      {"rpc.subscribe",
       {.params =
            [](int i) {
              return i % 2 == 0 ? R"({"topic":"*.*.zzz)" + text_of(i % 10) + R"(","last":true})"
                                : R"({"topic":"busy.groups","group":"mine)" + text_of(i) + "\"}";
            },
        .calls = 40}},
      {"rpc.unsubscribe", {.params = [](int i) { return R"({"topic":"*.*.zzz)" + text_of(i) + "\"}"; }, .fails = true}},
      {"rpc.publish",
       {.params =
            [](int i) {
              const std::string topic = std::vector{"busy", "queue", "busy.groups"}[static_cast<std::size_t>(i % 3)];
              return R"({"topic":")" + topic + R"(","params":{},"retain":true})";
            },
        .calls = 100}},
      {"rpc.kick", {.params = [](int i) { return R"({"client":"nobody)" + text_of(i) + "\"}"; }}},
      {"rpc.tap", {.params = [](int i) { return std::string{i % 2 == 0 ? R"({"pattern":"a.>"})" : "[null]"}; }}},
      {"rpc.item",
       {.params = [](int i) { return R"({"id":)" + text_of(i) + R"(,"seq":0,"value":1})"; }, .notification = true}},
      {"$/progress",
       {.params = [](int i) { return R"({"token":)" + text_of(i) + R"(,"value":1})"; }, .notification = true}},
      {"rpc.call_all",
       {.params = [](int) { return std::string{R"({"method":"shared","timeout_ms":1})"}; }, .calls = 10}},
      // No methods of wirecall's own, but as dear as one: a call for which one of many providers is chosen, and one
      // whose name is mistyped.
      {"shared", {.params = [](int) { return std::string{"[]"}; }}},
      {"service.metod_1", {.params = [](int) { return std::string{"[]"}; }, .fails = true}},
  };
  return kWorst;
}

std::vector<std::string> calls_of(std::string_view name, const Worst& worst, int count) {
  std::vector<std::string> calls;
  for (int i = 0; i < count; ++i) {
    calls.push_back(R"({"jsonrpc":"2.0","method":")" + std::string{name} + R"(","params":)" + worst.params(i) +
                    (worst.notification ? "}" : R"(,"id":)" + text_of(i) + "}"));
  }
  return calls;
}
std::string pipelined(const std::vector<std::string>& calls) {
  std::string text;
  for (const std::string& call : calls) text += call + "\n";
  return text;
}
std::string as_batch(const std::vector<std::string>& calls) {
  std::string text = "[";
  for (const std::string& call : calls) text += (text.size() == 1 ? "" : ",") + call;
  return text + "]";
}
std::string posted(const std::string& body) {
  return "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + text_of(static_cast<int>(body.size())) +
         "\r\n\r\n" + body;
}

enum class Answers { results, errors, either };

void expect_bounded(const Cost& cost, Answers answers) {
  EXPECT_LE(cost.turn_steps_max, kShareSteps + kMessageStepsMax);
  EXPECT_LE(cost.turn_bytes_max, kTurnBytesMax);
  EXPECT_LE(cost.turn_requested_max, kTurnRequestedMax);
  EXPECT_LE(cost.turn_comparisons_max, kTurnComparisonsMax);
  EXPECT_LE(cost.turns, kTurnsOfPing * (cost.pings + 4));
  // What is refused at once shows nothing of what it costs.
  if (answers == Answers::results) {
    EXPECT_EQ(cost.error, "");
  } else if (answers == Answers::errors) {
    EXPECT_NE(cost.error, "");
  }
}

void expect_bounded(const std::string& once, const std::string& twice, Answers answers = Answers::either) {
  const Cost one = serve(once);
  const Cost two = serve(twice);
  expect_bounded(two, answers);
  {
    SCOPED_TRACE("where there is more of everything");
    expect_bounded(serve(twice, kLargerWorld), answers);
  }
  EXPECT_GT(one.steps, 0);
  EXPECT_LE(static_cast<double>(two.steps), kGrowthMax * static_cast<double>(one.steps) + kShareSteps);
  EXPECT_LE(static_cast<double>(two.comparisons), kGrowthMax * static_cast<double>(one.comparisons) + kFewComparisons);
}

// Each name that is served, whoever adds one.
std::vector<std::string> own_names() {
  std::vector<std::string> names{"rpc.call_all", "shared", "service.metod_1"};
  for (const auto& methods : {rpc::reserved_methods(), broker::broker_methods()}) {
    for (const rpc::ReservedMethod& method : methods) {
      if (std::ranges::find(names, method.name) == names.end()) names.emplace_back(method.name);
    }
  }
  return names;
}

class OwnMethod : public testing::TestWithParam<std::string> {};

TEST_P(OwnMethod, takes_a_bounded_share_of_a_turn_however_often_it_is_called) {
  const auto found = worst_cases().find(GetParam());
  ASSERT_NE(found, worst_cases().end()) << "say in this table what the worst call of " << GetParam() << " is";
  const Worst& worst = found->second;
  const auto once = calls_of(GetParam(), worst, worst.calls);
  const auto twice = calls_of(GetParam(), worst, 2 * worst.calls);
  const Answers answers = worst.fails ? Answers::errors : Answers::results;
  {
    SCOPED_TRACE("one after the other");
    expect_bounded(pipelined(once), pipelined(twice), answers);
  }
  {
    SCOPED_TRACE("in a batch");
    expect_bounded(as_batch(once), as_batch(twice), answers);
  }
  {
    SCOPED_TRACE("in a batch by HTTP");
    expect_bounded(posted(as_batch(once)), posted(as_batch(twice)));
  }
}

INSTANTIATE_TEST_SUITE_P(Each, OwnMethod, testing::ValuesIn(own_names()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace_if(name, [](char c) { return c == '.' || c == '$' || c == '/'; }, '_');
  return name;
});

class OwnPath : public testing::TestWithParam<std::string> {};

TEST_P(OwnPath, takes_a_bounded_share_of_a_turn_however_often_it_is_asked_for) {
  const std::string query = GetParam() == "/events" ? "?topic=*.*.zzz&last=true" : "";
  const std::string get = "GET " + GetParam() + query + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const auto times = [&](int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += get;
    return all;
  };
  expect_bounded(times(10), times(20));
}

// Those that are read by GET.
std::vector<std::string> paths() {
  std::vector<std::string> all;
  const HttpRoutes routes;
  for (const HttpRoute& route : routes.all()) {
    const bool whole = route.path != "/" && !route.path.ends_with("/*");
    if (whole && route.methods.contains(framing::HttpMethod::get)) all.push_back(route.path);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Each, OwnPath, testing::ValuesIn(paths()), [](const auto& info) {
  std::string name = info.param;
  std::erase_if(name, [](char c) { return c == '/' || c == '.'; });
  return name;
});

// The steps that a batch of so many listings costs, and its answer, which is all that a message may hold.
std::pair<std::int64_t, std::string> list_in_batch(std::string_view method, int count, std::string_view more = "",
                                                   std::uint32_t call_timeout_ms = Limits{}.call_timeout_ms,
                                                   std::chrono::milliseconds turn_takes = {}) {
  Crowd crowd;
  crowd.limits.max_message_size = 200'000;
  crowd.limits.call_timeout_ms = call_timeout_ms;
  std::string text = "[";
  for (int i = 0; i < count; ++i) {
    text += std::string{i == 0 ? "" : ","} + R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","id":)" +
            text_of(i) + std::string{more} + "}";
  }
  crowd.attacker->peer->send(text + "]\n");
  std::int64_t steps = 0;
  std::string answer;
  for (int i = 0; i < kTurnsMax && !answer.ends_with('\n'); ++i) {
    crowd.backend->take_time(turn_takes);
    crowd.turn();
    steps += crowd.attacker->channel() != nullptr ? crowd.attacker->channel()->steps_used() : 0;
    answer += crowd.attacker->peer->take();
  }
  return {steps, answer};
}
std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Shares, listings_that_an_array_has_no_room_for_are_not_written) {
  for (const std::string_view method : {"rpc.discover", "rpc.methods", "rpc.stats"}) {
    const auto [full_steps, full] = list_in_batch(method, 30);
    const auto [more_steps, more] = list_in_batch(method, 330);
    EXPECT_GT(count_of(full, "\"result\""), 0U) << method;
    ASSERT_GT(count_of(full, "-32006"), 0U) << method;
    EXPECT_EQ(count_of(more, "-32006") - count_of(full, "-32006"),
              300U - (count_of(more, "\"result\"") - count_of(full, "\"result\"")))
        << method;
    EXPECT_LE(more_steps - full_steps, 300 * 16) << method;
  }
}

TEST(Shares, listings_in_a_batch_are_written_in_the_time_of_a_call) {
  const auto [steps, answer] = list_in_batch("rpc.discover", 30, "", 20, std::chrono::milliseconds{4});
  EXPECT_EQ(count_of(answer, "\"id\":"), 30U);
  EXPECT_GT(count_of(answer, "-32002"), 20U);
}

TEST(Shares, what_is_late_leaves_nothing_to_the_next_element) {
  const auto [steps, answer] =
      list_in_batch("rpc.discover", 2, R"(,"timeout_ms":3)", 1000, std::chrono::milliseconds{4});
  EXPECT_EQ(count_of(answer, "-32002"), 2U);
}

TEST(Shares, no_more_names_are_read_than_a_connection_may_provide) {
  for (const auto& [method, element] :
       {std::pair{"rpc.register", R"({"method":"a"})"}, std::pair{"rpc.unregister", R"("a")"}}) {
    const std::string text = R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":{"methods":[)" +
                             many(element) + "]},\"id\":1}\n";
    const Cost cost = serve(text);
    EXPECT_NE(cost.error.find(R"("limit":"methods")"), std::string::npos) << method << cost.error;
    EXPECT_LE(cost.turn_requested_max, 4 * text.size()) << method;
  }
}

TEST(Shares, who_registers_and_discovers_in_turns_pays_for_both) {
  const auto in_turns = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += R"({"jsonrpc":"2.0","method":"rpc.register","params":{"method":"in.turns_)" + text_of(i) +
              R"("},"id":1})"
              R"({"jsonrpc":"2.0","method":"rpc.discover","id":2})";
    }
    return text;
  };
  expect_bounded(in_turns(6), in_turns(12));
}

TEST(Shares, a_session_is_taken_over_in_a_bounded_share_of_a_turn) {
  Crowd crowd{kLargerWorld};
  crowd.bystander->peer->send(R"({"jsonrpc":"2.0","method":"rpc.hello","id":1})");
  std::string hello;
  for (int i = 0; i < kTurnsMax && !hello.ends_with('\n'); ++i) {
    crowd.turn();
    hello += crowd.bystander->peer->take();
  }
  constexpr std::string_view kSession = R"("session":")";
  const std::size_t at = hello.find(kSession);
  ASSERT_NE(at, hello.npos);
  const std::string secret = hello.substr(at + kSession.size(), 48);
  const std::string resume =
      R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"resume":")" + secret + "\"},\"id\":1}\n";
  crowd.bystander = &crowd.connect();
  std::string again;
  for (int i = 0; i < 600; ++i) again += resume;
  expect_bounded(serve(crowd, again), Answers::results);
}

TEST(Shares, calls_that_wait_for_who_unregisters_end_in_shares) {
  constexpr int kCallers = 4;
  constexpr int kCallsOfEach = 4000;
  constexpr std::size_t kCallsEndedATurn = 256;
  Crowd crowd;
  crowd.attacker->peer->send(
      R"({"jsonrpc":"2.0","method":"rpc.register","params":{"method":"slow","concurrency":1,"queue":100000}})");
  for (int i = 0; i < 8; ++i) crowd.turn();
  std::string calls;
  for (int i = 0; i < kCallsOfEach; ++i) calls += R"({"jsonrpc":"2.0","method":"slow","id":)" + text_of(i) + "}\n";
  for (int i = 0; i < kCallers; ++i) crowd.connect().peer->send(calls);
  for (int i = 0; i < kTurnsMax && crowd.router.relayed_calls().in_use() != kCallers * kCallsOfEach; ++i) crowd.turn();
  crowd.attacker->peer->send(R"({"jsonrpc":"2.0","method":"rpc.unregister","params":{"method":"slow"},"id":1})");
  std::size_t ended_max = 0;
  std::size_t requested_max = 0;
  for (int i = 0; i < kTurnsMax && crowd.router.relayed_calls().in_use() != 1; ++i) {
    const std::size_t before = crowd.router.relayed_calls().in_use();
    const std::size_t requested_before = memory::requested_bytes();
    crowd.turn();
    ended_max = std::max(ended_max, before - crowd.router.relayed_calls().in_use());
    requested_max = std::max(requested_max, memory::requested_bytes() - requested_before);
  }
  // A turn looks at what has come, and then at what is due.
  EXPECT_LE(ended_max, 2 * kCallsEndedATurn);
  EXPECT_LE(requested_max, kTurnRequestedMax);
  EXPECT_EQ(crowd.router.relayed_calls().in_use(), 1U) << "the one at work";
}

TEST(Shares, a_long_request_is_asked_of_all_in_a_bounded_share_of_a_turn) {
  const std::string params = "[\"" + std::string(256 * 1024, 'x') + "\"";
  const std::string call = R"({"jsonrpc":"2.0","method":"rpc.call_all","params":{"method":"shared","params":)" +
                           params + R"(],"timeout_ms":1},"id":1})" + "\n";
  expect_bounded(call + call, call + call + call + call, Answers::results);
}

// An event for many, or a large one, is sent by several turns.
class LargeEvents : public testing::Test {
 protected:
  void subscribe(int count, const std::string& topic) {
    for (int i = 0; i < count; ++i) {
      subscribers.push_back(&crowd.connect());
      subscribers.back()->peer->send(R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":")" + topic +
                                     R"("},"id":1})");
    }
    for (int i = 0; i < 20; ++i) crowd.turn();
    for (const Line* one : subscribers)
      EXPECT_EQ(one->peer->take(), R"({"jsonrpc":"2.0","result":true,"id":1})"
                                   "\n");
  }
  // Until so many events have been told, and what has been said of that is on its way.
  void tell(std::uint64_t events) {
    for (int i = 0, more = 20; i < kTurnsMax && more != 0; ++i) {
      const std::size_t bytes = crowd.loop_context.stats.bytes_out;
      const std::uint64_t messages = crowd.loop_context.stats.messages_out;
      const std::size_t requested = memory::requested_bytes();
      crowd.turn();
      EXPECT_LE(crowd.loop_context.stats.bytes_out - bytes, kTurnBytesMax);
      EXPECT_LE(crowd.loop_context.stats.messages_out - messages, 600U);
      EXPECT_LE(memory::requested_bytes() - requested, kTurnRequestedMax);
      if (crowd.loop_context.stats.events_delivered >= events) --more;
    }
    EXPECT_EQ(crowd.loop_context.stats.events_delivered, events);
  }
  static std::string published(const std::string& topic, std::size_t bytes) {
    return R"({"jsonrpc":"2.0","method":"rpc.publish","params":{"topic":")" + topic + R"(","params":[")" +
           std::string(bytes, 'x') + R"("]},"id":1})";
  }

  Crowd crowd;
  std::vector<Line*> subscribers;
};

TEST_F(LargeEvents, to_some_are_sent_by_several_turns) {
  subscribe(60, "large");
  crowd.attacker->peer->send(published("large", 1'000'000));
  tell(60);
  EXPECT_EQ(crowd.attacker->peer->take(), R"({"jsonrpc":"2.0","result":60,"id":1})"
                                          "\n");
}

TEST_F(LargeEvents, to_very_many_are_sent_by_several_turns_however_small) {
  subscribe(2000, "small");
  crowd.attacker->peer->send(published("small", 1));
  tell(2000);
  EXPECT_EQ(crowd.attacker->peer->take(), R"({"jsonrpc":"2.0","result":2000,"id":1})"
                                          "\n");
}

TEST_F(LargeEvents, are_not_overtaken_by_what_their_publisher_says_next) {
  subscribe(4, "work");
  for (Line* one : subscribers)
    one->peer->send(R"({"jsonrpc":"2.0","method":"rpc.register","params":{"method":"work"}})");
  for (int i = 0; i < 20; ++i) crowd.turn();
  const std::string small = R"({"jsonrpc":"2.0","method":"work","params":[2]})";
  const std::string large = R"({"jsonrpc":"2.0","method":"work","params":[")" + std::string(1'500'000, 'x') + "\"]}";
  crowd.attacker->peer->send(large + small + "[" + published("work", 1'500'000) + "," + small + "]" + small);
  tell(5 * 4);
  const std::string text = large + "\n" + small + "\n" + large + "\n" + small + "\n" + small + "\n";
  for (const Line* one : subscribers) EXPECT_TRUE(one->peer->take() == text);
  EXPECT_EQ(crowd.attacker->peer->take(), R"([{"jsonrpc":"2.0","result":4,"id":1}])"
                                          "\n");
}

TEST(Shares, a_listing_in_a_batch_is_written_however_long_its_request_is) {
  Crowd crowd;
  crowd.attacker->peer->send(R"([{"jsonrpc":"2.0","method":"rpc.discover","id":1,"x":")" + std::string(1'000'000, 'x') +
                             "\"}]");
  std::string answer;
  for (int i = 0; i < 2000 && !answer.ends_with('\n'); ++i) {
    crowd.turn();
    answer += crowd.attacker->peer->take();
  }
  EXPECT_TRUE(answer.starts_with(R"([{"jsonrpc":"2.0","result":{)")) << answer.substr(0, 200);
}

TEST_F(LargeEvents, are_not_overtaken_by_a_request_behind_them_by_http_either) {
  subscribe(4, "work");
  const std::string small = R"({"jsonrpc":"2.0","method":"work","params":[2]})";
  crowd.attacker->peer->send(posted(published("work", 1'500'000)) + posted(small) + posted(published("work", 2)));
  tell(3 * 4);
  for (const Line* one : subscribers) {
    EXPECT_TRUE(one->peer->take().ends_with("x\"]}\n" + small + "\n" +
                                            R"({"jsonrpc":"2.0","method":"work","params":["xx"]})" + "\n"));
  }
  const std::string answers = crowd.attacker->peer->take();
  EXPECT_EQ(count_of(answers, "HTTP/1.1 20"), 3U);
  EXPECT_EQ(count_of(answers, R"("result":4)"), 2U);
}

TEST_F(LargeEvents, of_a_publisher_that_says_no_more_are_told_all_the_same) {
  subscribe(4, "work");
  crowd.attacker->peer->send(published("work", 1'500'000));
  crowd.attacker->peer->finish();
  tell(4);
  EXPECT_EQ(crowd.attacker->peer->take(), R"({"jsonrpc":"2.0","result":4,"id":1})"
                                          "\n");
}

TEST(Shares, a_call_of_all_costs_its_caller_each_provider_that_is_asked) {
  const std::string call =
      R"({"jsonrpc":"2.0","method":"rpc.call_all","params":{"method":"shared","timeout_ms":1},"id":1})";
  EXPECT_GE(serve(call).steps, kWorld.clients);
}

}  // namespace
}  // namespace wirecall::net
