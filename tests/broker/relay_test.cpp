// What a broker carries between a caller and a provider: the bytes, and what becomes of a call.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <string>

#include "base/sanitizers.hpp"
#include "broker/answers.hpp"
#include "tests/broker/world.hpp"
#include "tests/rpc/instruction_count.hpp"
#include "wirecall/middleware.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::cancel_notification;
using test::cancelled;
using test::Client;
using test::error_reply;
using test::id_of;
using test::notification;
using test::provider_lost;
using test::request;
using test::result_reply;
using test::timed_out;
using test::World;

class Relay : public testing::Test {
 protected:
  World world;
  Client provider{world};
  Client caller{world};
};

// In Protocol Buffers an id of 13 digits has 6 bytes, and a null answer to it 11.
TEST(Answers, with_ids_that_are_longer_as_json_than_their_message_are_not_too_large) {
  constexpr std::string_view kId = "1258291200000";
  Received answer{};
  answer.present = bit_of(Member::id);
  answer.text = std::string_view{"\x1a\x00\x3a\x07\x18??????", 11};
  answer.spans[static_cast<std::size_t>(Member::id)] = {kId.data(), kId.size()};
  EXPECT_FALSE(broker::is_too_large_with_id(answer, 1, 1000));
  EXPECT_FALSE(broker::is_too_large_with_id(answer, 1002, 1000));
  EXPECT_TRUE(broker::is_too_large_with_id(answer, 1003, 1000));
}

TEST_F(Relay, a_request_reaches_its_provider_as_it_was_written_but_for_its_id) {
  provider.provide("add");
  caller.send(
      "{ \"params\" : [1,\n2.50], \"id\":\"a b\\\"\" ,\"jsonrpc\":\"2.0\", \"method\":\"add\", \"x\":{\"id\":7} }");
  EXPECT_EQ(provider.received(),
            "{ \"params\" : [1,\n2.50], \"id\":0 ,\"jsonrpc\":\"2.0\", \"method\":\"add\", \"x\":{\"id\":7} }");
  provider.send(R"({"id": 0 , "result" : {"id":0}, "jsonrpc":"2.0"})");
  EXPECT_EQ(caller.received(), R"({"id": "a b\"" , "result" : {"id":0}, "jsonrpc":"2.0"})");
}

TEST_F(Relay, an_id_of_every_kind_comes_back_as_it_was_sent) {
  provider.provide("add");
  for (const std::string id : {"1", "null", "1.50", "-0", "18446744073709551616", R"("")", R"("\u0041\"")", "1e3"}) {
    caller.send(request("add", {}, id));
    const std::string asked = id_of(provider.received());
    provider.send(result_reply("true", asked));
    EXPECT_EQ(caller.received(), result_reply("true", id));
  }
  const std::string longest = '"' + std::string(kIdBytesMax - 2, 'i') + '"';
  caller.send(request("add", {}, longest));
  provider.send(result_reply("1", id_of(provider.received())));
  EXPECT_EQ(caller.received(), result_reply("1", longest));
}

TEST_F(Relay, what_a_client_says_of_who_it_is_and_whom_it_means_stays_behind) {
  EXPECT_NE(provider.ask(request("rpc.hello", R"({"name":"worker"})")), "");
  provider.provide("add");
  caller.send(R"({"from":"root","jsonrpc":"2.0","to":"worker","method":"add","id":1})");
  EXPECT_EQ(provider.received(), R"({"jsonrpc":"2.0","method":"add","id":0})");
  caller.send(R"({"jsonrpc":"2.0","method":"add","id":1,"to":"worker" , "from":{"a":"b"} })");
  EXPECT_EQ(provider.received(), R"({"jsonrpc":"2.0","method":"add","id":1})");
  caller.send(R"({"jsonrpc":"2.0","method":"add","f\u0072om":"root"})");
  EXPECT_EQ(provider.received(), R"({"jsonrpc":"2.0","method":"add"})");
}

TEST_F(Relay, a_timeout_that_a_call_names_goes_on_as_what_is_left_of_it) {
  provider.provide("add", R"(,"concurrency":1)");
  caller.send(request("add", {}, "1"));
  caller.send(R"({"jsonrpc":"2.0","method":"add","timeout_ms":500,"id":2})");
  EXPECT_EQ(provider.received(), request("add", {}, "0"));
  world.advance(120ms);
  provider.send(result_reply("1", "0"));
  EXPECT_EQ(provider.received(), R"({"jsonrpc":"2.0","method":"add","timeout_ms":380,"id":1})");
}

TEST_F(Relay, an_error_loses_what_it_says_of_its_origin_and_nothing_else) {
  provider.provide("add");
  const auto answered = [&](const std::string& before, const std::string& after) {
    caller.send(request("add"));
    const std::string asked = id_of(provider.received());
    provider.send(R"({"jsonrpc":"2.0","error":)" + before + R"(,"id":)" + asked + "}");
    EXPECT_EQ(caller.received(), R"({"jsonrpc":"2.0","error":)" + after + R"(,"id":1})");
    caller.send(request("add"));
    provider.send(R"({"id":)" + id_of(provider.received()) + R"(,"error":)" + before + R"(,"jsonrpc":"2.0"})");
    EXPECT_EQ(caller.received(), R"({"id":1,"error":)" + after + R"(,"jsonrpc":"2.0"})");
  };
  answered(R"({"code":-32002,"message":"m","data":{"origin":"local","reason":"r"}})",
           R"({"code":-32002,"message":"m","data":{"reason":"r"}})");
  answered(R"({"code":1,"message":"m","data":{"a":{"origin":1}, "or\u0069gin" : "local" }})",
           R"({"code":1,"message":"m","data":{"a":{"origin":1}}})");
  answered(R"({"code":1,"message":"m","data":{"origin":"local"}})", R"({"code":1,"message":"m","data":{}})");
  answered(R"({"code":1,"message":"origin","data":["origin"]})", R"({"code":1,"message":"origin","data":["origin"]})");
}

TEST_F(Relay, the_elements_of_a_batch_go_to_providers_one_by_one_and_come_back_in_order) {
  Client other{world};
  provider.provide("add");
  other.provide("mul");
  caller.send("[" + request("add", "[1]", "1") + "," + request("mul", "[2]", R"("two")") + "," + notification("add") +
              "," + request("none", {}, "3") + "]");
  const std::string asked = provider.received();
  EXPECT_EQ(asked, request("add", "[1]", "0") + "\n" + notification("add"));
  EXPECT_EQ(other.received(), request("mul", "[2]", "1"));
  other.send(R"({"result":4,"id":1,"jsonrpc":"2.0"})");
  EXPECT_EQ(caller.received(), "");
  provider.send(result_reply("2", "0"));
  EXPECT_EQ(caller.received(), "[" + result_reply("2") + R"(,{"result":4,"id":"two","jsonrpc":"2.0"},)" +
                                   error_reply(-32601, "Method not found", {}, "3") + "]");
}

TEST_F(Relay, a_caller_without_a_connection_is_answered_as_any_other) {
  provider.provide("add");
  caller.sink->can = {};
  caller.send(request("add", {}, "7"));
  provider.send(result_reply("2", id_of(provider.received())));
  EXPECT_EQ(caller.received(), result_reply("2", "7"));
  caller.send(request("add", {}, "8"));
  EXPECT_NE(provider.received(), "");
  provider.leave();
  EXPECT_EQ(caller.received(), provider_lost("maybe", "8"));
}

TEST_F(Relay, middleware_sees_relayed_calls_and_how_they_end) {
  std::string seen;
  world.registry.use([&](Call& call, const Next& next) {
    seen += call.method().name();
    call.on_reply([&](const Outcome& outcome) { seen += ":" + std::to_string(outcome.code) + " "; });
    next(call);
  });
  provider.provide("add");
  caller.send(request("add"));
  caller.send(request("add", {}, "2"));
  provider.send(result_reply("2", "0"));
  provider.send(error_reply(5, "no", {}, "1"));
  EXPECT_EQ(seen, "addadd:0 :5 ");
}

TEST_F(Relay, a_response_counts_once_and_only_from_who_was_asked) {
  Client other{world};
  provider.provide("add");
  other.provide("mul");
  caller.send(request("add"));
  EXPECT_EQ(id_of(provider.received()), "0");
  other.send(result_reply("1", "0"));
  caller.send(result_reply("1", "0"));
  for (const std::string id : {"1", "4194304", "\"0\"", "0.0", "-0", "null", "18446744073709551616"})
    provider.send(result_reply("1", id));
  EXPECT_EQ(caller.received(), "");
  provider.send(result_reply("1", "0"));
  EXPECT_EQ(caller.received(), result_reply("1"));
  provider.send(result_reply("1", "0"));
  EXPECT_EQ(caller.received(), "");
  EXPECT_EQ(provider.dropped, 8u);
  EXPECT_EQ(other.dropped, 1u);
}

TEST_F(Relay, a_late_response_does_not_answer_a_later_call_in_the_same_slot) {
  if (kAddressSanitizer) GTEST_SKIP() << "a million calls take a minute, and request no memory that others do not";
  provider.provide("add");
  caller.send(request("add", {}, "1"));
  const std::string first = id_of(provider.received());
  EXPECT_EQ(caller.ask(request("rpc.cancel", "[1]", "9")), cancelled() + "\n" + result_reply("1", "9"));
  EXPECT_EQ(provider.received(), cancel_notification(first));
  for (int i = 0; i < (1 << 20); ++i) {
    caller.send(request("add", {}, "2"));
    provider.send(result_reply("2", id_of(provider.received())));
  }
  static_cast<void>(caller.received());
  caller.send(request("add", {}, "3"));
  EXPECT_NE(id_of(provider.received()), first);
  provider.send(result_reply("1", first));
  EXPECT_EQ(caller.received(), "");
  EXPECT_EQ(provider.dropped, 1u);
}

TEST_F(Relay, a_malformed_response_ends_the_call) {
  provider.provide("add");
  caller.send(request("add"));
  provider.send(R"({"jsonrpc":"2.0","result":1,"error":{"code":1,"message":"m"},"id":0})");
  const std::string malformed =
      error_reply(-32603, "Internal error", R"({"reason":"the provider's response is malformed"})");
  EXPECT_EQ(caller.received(), malformed);
  for (const std::string error : {"5", "null", "[]", "{}", R"({"code":"x","message":"m"})",
                                  R"({"code":1.5,"message":"m"})", R"({"code":1,"message":2})"}) {
    static_cast<void>(provider.received());
    caller.send(request("add"));
    provider.send(R"({"jsonrpc":"2.0","error":)" + error + R"(,"id":)" + id_of(provider.received()) + "}");
    EXPECT_EQ(caller.received(), malformed) << error;
  }
  static_cast<void>(provider.received());
  caller.send(request("add"));
  provider.send(R"({"jsonrpc":"2.0","error":{"data":1, "code":-9e0},"id":)" + id_of(provider.received()) + "}");
  EXPECT_EQ(caller.received(), R"({"jsonrpc":"2.0","error":{"data":1, "code":-9e0},"id":1})") << "is one";
}

TEST_F(Relay, a_response_that_its_id_makes_too_large_is_an_error) {
  World small{Limits{.max_message_size = 300}};
  Client worker{small};
  Client client{small};
  worker.provide("add");
  const std::string id = '"' + std::string(100, 'i') + '"';
  client.send(request("add", {}, id));
  worker.send(result_reply('"' + std::string(200, 'x') + '"', "0"));
  EXPECT_EQ(client.received(), test::too_large("the reply is", id));
}

// ---- how calls end otherwise ----

TEST_F(Relay, a_call_whose_time_is_up_is_answered_and_its_provider_told) {
  provider.provide("add");
  caller.send(R"({"jsonrpc":"2.0","method":"add","timeout_ms":50,"id":1})");
  static_cast<void>(provider.received());
  world.advance(49ms);
  EXPECT_EQ(caller.received(), "");
  world.advance(10ms);
  EXPECT_EQ(caller.received(), timed_out());
  EXPECT_EQ(provider.received(), cancel_notification("0"));
  provider.send(result_reply("1", "0"));
  EXPECT_EQ(caller.received(), "");
  EXPECT_EQ(world.router.relayed_calls().in_use(), 0u);
}

TEST_F(Relay, timeouts_come_in_their_order_however_far_they_are) {
  provider.provide("add");
  const auto send = [&](int id, int timeout) {
    caller.send(R"({"jsonrpc":"2.0","method":"add","timeout_ms":)" + std::to_string(timeout) + R"(,"id":)" +
                std::to_string(id) + "}");
  };
  World late{Limits{.call_timeout_ms = 200'000}};
  Client worker{late};
  Client client{late};
  worker.provide("add");
  for (const int timeout : {100'000, 8, 40'000, 33'000, 1, 199'999})
    client.send(R"({"jsonrpc":"2.0","method":"add","timeout_ms":)" + std::to_string(timeout) + R"(,"id":)" +
                std::to_string(timeout) + "}");
  int now = 0;
  for (const int timeout : {1, 8, 33'000, 40'000, 100'000, 199'999}) {
    const int before = std::max(timeout - 1, now);
    late.advance(std::chrono::milliseconds{before - now});
    EXPECT_EQ(client.received(), "");
    late.advance(9ms);
    EXPECT_EQ(client.received(), timed_out(std::to_string(timeout)));
    now = before + 9;
  }
  send(1, 5);
  world.advance(10ms);
  EXPECT_EQ(caller.received(), timed_out());
}

TEST_F(Relay, a_caller_that_leaves_gives_its_calls_up) {
  provider.provide("add");
  caller.send(request("add"));
  caller.send("[" + request("add", {}, "2") + "]");
  static_cast<void>(provider.received());
  caller.leave();
  const std::string told = provider.received();
  EXPECT_NE(told.find(cancel_notification("0")), told.npos);
  EXPECT_NE(told.find(cancel_notification("1")), told.npos);
  EXPECT_EQ(world.router.relayed_calls().in_use(), 0u);
  provider.send(result_reply("1", "0"));
  EXPECT_EQ(provider.dropped, 1u);
}

TEST_F(Relay, a_provider_that_leaves_ends_its_calls) {
  provider.provide("add", R"(,"concurrency":1)");
  caller.send(request("add", {}, "1"));
  caller.send(request("add", {}, "2"));
  provider.leave();
  const std::string answers = caller.received();
  EXPECT_NE(answers.find(provider_lost("maybe", "1")), answers.npos);
  EXPECT_NE(answers.find(provider_lost("no", "2")), answers.npos);
  EXPECT_EQ(caller.ask(request("add")), error_reply(-32601, "Method not found"));
  EXPECT_EQ(world.router.relayed_calls().in_use(), 0u);
}

TEST_F(Relay, a_provider_that_says_nothing_more_is_none_but_its_own_calls_run_on) {
  Client other{world};
  provider.provide("add");
  other.provide("mul");
  caller.send(request("add"));
  provider.send(request("mul", {}, "5"));
  static_cast<void>(provider.received());
  provider.dispatcher->peer_ended();
  EXPECT_EQ(caller.received(), provider_lost("maybe"));
  other.send(result_reply("25", id_of(other.received())));
  EXPECT_EQ(provider.received(), result_reply("25", "5"));
}

TEST_F(Relay, an_idempotent_call_is_asked_of_another_provider_once) {
  Client second{world};
  Client third{world};
  for (Client* one : {&provider, &second, &third}) one->provide("add", R"(,"idempotent":true,"policy":"first")");
  caller.send(request("add", "[1]"));
  EXPECT_EQ(provider.received(), request("add", "[1]", "0"));
  provider.leave();
  EXPECT_EQ(second.received(), request("add", "[1]", "0"));
  second.leave();
  EXPECT_EQ(third.received(), "");
  EXPECT_EQ(caller.received(), provider_lost("maybe"));
}

TEST_F(Relay, what_the_second_provider_of_a_call_refuses_may_have_been_done_by_the_first) {
  for (const std::string_view origin : {R"("origin":"local",)", ""}) {
    Client first{world};
    Client second{world};
    for (Client* one : {&first, &second}) one->provide("add", R"(,"idempotent":true,"policy":"first")");
    caller.send(request("add", "[1]"));
    first.leave();
    const std::string head = R"({"reason":"x",)";
    second.send(error_reply(-32005, "Limit exceeded", head + std::string{origin} + R"("delivered":"no"})",
                            id_of(second.received())));
    // Without an origin it is the provider's own word.
    const std::string_view delivered = origin.empty() ? R"("delivered":"no"})" : R"("delivered":"maybe"})";
    EXPECT_EQ(caller.received(), error_reply(-32005, "Limit exceeded", head + std::string{delivered}));
    second.leave();
  }
}

TEST_F(Relay, a_call_that_may_have_been_done_is_not_done_twice) {
  Client second{world};
  provider.provide("add", R"(,"policy":"first")");
  second.provide("add", R"(,"policy":"first")");
  caller.send(request("add"));
  provider.leave();
  EXPECT_EQ(second.received(), "");
  EXPECT_EQ(caller.received(), provider_lost("maybe"));
}

TEST_F(Relay, calls_of_a_connection_are_counted_with_those_that_are_relayed) {
  World small{Limits{.in_flight = 2}};
  Client worker{small};
  Client client{small};
  worker.provide("add");
  for (const std::string id : {"1", "2", "3"}) client.send(request("add", {}, id));
  EXPECT_EQ(client.received(),
            error_reply(-32005, "Limit exceeded",
                        R"({"reason":"too many calls of this connection are in flight","origin":"local",)"
                        R"("delivered":"no","limit":"in_flight"})",
                        "3"));
  worker.send(result_reply("1", "0"));
  EXPECT_EQ(client.received(), result_reply("1", "1"));
  EXPECT_EQ(client.ask(request("add", {}, "4")), "");
}

TEST_F(Relay, cancelling_by_an_id_costs_the_same_among_however_many_calls) {
  if (!test::kCountsInstructions) GTEST_SKIP() << "instructions cannot be counted in this build";
  provider.provide("add");
  const auto cost = [&](int calls) {
    Client many{world};
    for (int i = 0; i < calls; ++i) many.send(request("add", {}, std::to_string(i)));
    const std::string cancelling = notification("rpc.cancel", "[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\"]");
    many.send(cancelling);  // the first one makes the index
    return test::count_instructions([&] { many.send(cancelling); });
  };
  EXPECT_LT(cost(2000), 2 * cost(20));
}

TEST_F(Relay, calls_of_one_id_are_cancelled_together_and_only_streams_are_given_credit) {
  provider.provide("add");
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 30; ++i) caller.send(request("add", {}, i % 3 == 0 ? "7" : std::to_string(100 + i)));
    caller.send(R"({"jsonrpc":"2.0","method":"add","stream":1,"id":7})");
    static_cast<void>(provider.received());
    EXPECT_EQ(caller.ask(request("rpc.credit", R"({"id":7,"n":2})", "1")), result_reply("1"));
    EXPECT_NE(provider.received(), "");
    EXPECT_EQ(caller.ask(request("rpc.credit", R"({"id":101,"n":2})", "1")), result_reply("0"));
    const std::string answers = caller.ask(request("rpc.cancel", "[7]", "1"));
    EXPECT_NE(answers.find(result_reply("11", "1")), std::string::npos) << answers;
    EXPECT_EQ(caller.dispatcher->in_flight(), 20u);
    caller.dispatcher->end_calls(Error{"over"});
    static_cast<void>(caller.received());
  }
}

// ---- streams ----

TEST_F(Relay, items_and_credit_pass_under_each_sides_id) {
  provider.provide("count");
  caller.send(R"({"jsonrpc":"2.0","method":"count","stream":2,"id":"s"})");
  EXPECT_EQ(provider.received(), R"({"jsonrpc":"2.0","method":"count","stream":2,"id":0})");
  provider.send(notification("rpc.item", R"({"id":0,"seq":0,"value":{"id":0}})"));
  EXPECT_EQ(caller.received(), notification("rpc.item", R"({"id":"s","seq":0,"value":{"id":0}})"));
  caller.send(notification("rpc.credit", R"({"id":"s","n":3})"));
  EXPECT_EQ(provider.received(), notification("rpc.credit", R"({"id":0,"n":3})"));
  caller.send(notification("rpc.credit", R"({"id":"other","n":3})"));
  EXPECT_EQ(provider.received(), "");
  provider.send(result_reply("null", "0"));
  EXPECT_EQ(caller.received(), result_reply("null", R"("s")"));
  provider.send(notification("rpc.item", R"({"id":0,"seq":1,"value":1})"));
  EXPECT_EQ(caller.received(), "");
}

TEST_F(Relay, a_stream_in_a_batch_is_gathered_by_its_provider) {
  provider.provide("count");
  caller.send(R"([{"jsonrpc":"2.0","method":"count","stream":2,"id":1}])");
  EXPECT_EQ(provider.received(), R"({"jsonrpc":"2.0","method":"count","id":0})");
}

TEST_F(Relay, the_time_of_a_stream_is_that_between_its_items) {
  World quick{Limits{.call_timeout_ms = 100}};
  Client worker{quick};
  Client client{quick};
  worker.provide("count");
  client.send(R"({"jsonrpc":"2.0","method":"count","stream":9,"id":1})");
  for (int i = 0; i < 5; ++i) {
    quick.advance(80ms);
    worker.send(notification("rpc.item", R"({"id":0,"seq":0,"value":1})"));
    EXPECT_NE(client.received(), "");
  }
  quick.advance(110ms);
  EXPECT_EQ(client.received(), timed_out());
}

TEST_F(Relay, calls_that_run_out_of_time_together_end_over_several_turns) {
  constexpr int kCalls = 1000;
  struct At final : Timer {
    void expired() override { act(); }
    std::function<void()> act;
  } at;
  provider.provide("add");
  world.scheduler.start(at, 12ms);
  for (int i = 0; i < kCalls; ++i)
    caller.send(R"({"jsonrpc":"2.0","method":"add","timeout_ms":10,"id":)" + std::to_string(i) + "}");
  std::ptrdiff_t all = 0;
  // Begun before the broker's own, which are due with it.
  at.act = [&] {
    EXPECT_EQ(caller.received(), "");
    for (int turns = 0; world.scheduler.expire_one(); ++turns) {
      ASSERT_LT(turns, kCalls);
      const std::string told = caller.received();
      const std::ptrdiff_t now = told.empty() ? 0 : std::ranges::count(told, '\n') + 1;
      EXPECT_LE(now, 256);
      all += now;
    }
  };
  world.advance(20ms);
  EXPECT_EQ(all, kCalls);
  EXPECT_EQ(caller.dispatcher->in_flight(), 0U);
}

TEST_F(Relay, a_call_that_names_a_busy_client_waits_for_that_one) {
  Client other{world};
  static_cast<void>(provider.ask(request("rpc.hello", R"({"name":"worker"})")));
  provider.provide("add", R"(,"concurrency":1)");
  other.provide("add", R"(,"concurrency":1)");
  const auto to_worker = [](std::string_view id) {
    return R"({"jsonrpc":"2.0","method":"add","to":"worker","id":)" + std::string{id} + "}";
  };
  caller.send(to_worker("1"));
  caller.send(to_worker("2"));
  caller.send(request("add", {}, "3"));
  caller.send(request("add", {}, "4"));
  const std::string first = id_of(provider.received());
  other.send(result_reply("3", id_of(other.received())));
  other.send(result_reply("4", id_of(other.received())));
  EXPECT_EQ(other.received(), "") << "what is for the worker";
  EXPECT_EQ(caller.received(), result_reply("3", "3") + "\n" + result_reply("4", "4"));
  provider.send(result_reply("1", first));
  provider.send(result_reply("2", id_of(provider.received())));
  EXPECT_EQ(caller.received(), result_reply("1", "1") + "\n" + result_reply("2", "2"));
}

TEST_F(Relay, calls_that_name_a_busy_client_and_others_take_turns) {
  static_cast<void>(provider.ask(request("rpc.hello", R"({"name":"worker"})")));
  provider.provide("add", R"(,"concurrency":1)");
  for (const std::string id : {"0", "1", "2"})
    caller.send(R"({"jsonrpc":"2.0","method":"add","to":"worker","id":)" + id + "}");
  for (const std::string id : {"10", "11"}) caller.send(request("add", {}, id));
  std::string order;
  for (int i = 0; i < 5; ++i) {
    provider.send(result_reply("1", id_of(provider.received())));
    order += id_of(caller.received()) + " ";
  }
  EXPECT_EQ(order, "0 1 10 2 11 ");
}

}  // namespace
}  // namespace wirecall
