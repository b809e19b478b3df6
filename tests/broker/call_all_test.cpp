// rpc.call_all: one call of all providers of a method, and what it is answered.
#include <chrono>
#include <cstddef>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/broker/world.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::cancel_notification;
using test::cancelled;
using test::Client;
using test::error_reply;
using test::id_of;
using test::request;
using test::result_reply;
using test::timed_out;
using test::World;

constexpr std::string_view kTimedOut =
    R"({"error":{"code":-32002,"message":"Timeout","data":{"reason":"the call was not answered in time","origin":"local","delivered":"maybe"}}})";
constexpr std::string_view kLost =
    R"({"error":{"code":-32001,"message":"Provider lost","data":{"reason":"the provider has gone","origin":"local","delivered":"maybe"}}})";

class CallAll : public testing::Test {
 protected:
  CallAll() { static_cast<void>(a.ask(request("rpc.hello", R"({"name":"a \"1\""})"))); }

  void provided(std::string_view terms = {}) {
    a.provide("version", terms);
    b.provide("version", terms);
  }
  void call(std::string_view params = R"({"method":"version"})", std::string_view id = "\"all\"") {
    caller.send(request("rpc.call_all", params, id));
  }
  /// Answers the one request that the client has.
  static void answer(Client& client, std::string_view json) {
    client.send(result_reply(json, id_of(client.received())));
  }
  [[nodiscard]] static std::string outcomes(std::string_view all) {
    return result_reply("[" + std::string{all} + "]", "\"all\"");
  }

  World world;
  Client a{world};
  Client b{world};
  Client caller{world};
};

TEST_F(CallAll, without_a_provider_the_call_counts_as_undelivered) {
  call();
  static_cast<void>(caller.received());
  EXPECT_EQ(caller.ask(request("rpc.undelivered", "", "1")), result_reply("1", "1"));
}

TEST_F(CallAll, each_provider_is_asked_and_the_outcomes_come_in_the_order_of_registering) {
  provided();
  call(R"({"method":"version","params":{"short":true}})");
  EXPECT_EQ(a.received(), request("version", R"({"short":true})", "0"));
  const std::string asked = b.received();
  EXPECT_EQ(asked, request("version", R"({"short":true})", "1"));
  b.send(error_reply(-32000, "no", R"({"origin":"local","x":1})", id_of(asked)));
  EXPECT_EQ(caller.received(), "");
  a.send(result_reply(R"({ "v": 1.50 })", "0"));
  EXPECT_EQ(
      caller.received(),
      outcomes(
          R"({"client":"a \"1\"","result":{ "v": 1.50 }},{"error":{"code":-32000,"message":"no","data":{"x":1}}})"));
  EXPECT_EQ(world.router.relayed_calls().in_use(), 0u);
  EXPECT_EQ(caller.dispatcher->in_flight(), 0u);
}

TEST_F(CallAll, each_that_is_asked_counts_as_a_call_in_flight) {
  World few{Limits{.in_flight = 4}};
  Client one{few};
  Client two{few};
  Client busy{few};
  for (Client* provider : {&one, &two}) provider->provide("version");
  busy.send(request("rpc.call_all", R"(["version"])", "1"));
  EXPECT_NE(busy.ask(request("rpc.call_all", R"(["version"])", "2")).find(R"("limit":"in_flight")"), std::string::npos);
  for (Client* provider : {&one, &two}) answer(*provider, "1");
  EXPECT_EQ(busy.received(), result_reply(R"([{"result":1},{"result":1}])", "1"));
  busy.send(request("rpc.call_all", R"(["version"])", "3"));
  EXPECT_NE(one.received(), "");
  two.leave();
  busy.leave();
  EXPECT_EQ(few.router.relayed_calls().in_use(), 0U);
}

TEST_F(CallAll, time_is_any_number_and_none_of_it_asks_nobody) {
  provided();
  call(R"({"method":"version","timeout_ms":0})");
  EXPECT_NE(caller.received().find(R"("code":-32002)"), std::string::npos);
  EXPECT_EQ(a.received() + b.received(), "");
  call(R"({"method":"version","timeout_ms":0.5})");
  EXPECT_NE(a.received().find(R"("timeout_ms":1,)"), std::string::npos);
  call(R"({"method":"version","timeout_ms":-1})", "2");
  EXPECT_NE(caller.received().find(R"({"loc":["timeout_ms"],"expected":"number from 0","got":"-1"})"),
            std::string::npos);
}

TEST_F(CallAll, who_unregisters_or_comes_later_is_not_asked) {
  provided();
  EXPECT_EQ(a.ask(request("rpc.unregister", R"({"method":"version"})")), result_reply("1"));
  call();
  EXPECT_EQ(a.received(), "");
  Client late{world};
  late.provide("version");
  EXPECT_EQ(late.received(), "");
  answer(b, "2");
  EXPECT_EQ(caller.received(), outcomes(R"({"result":2})"));
}

TEST_F(CallAll, one_that_does_not_answer_in_time_has_that_for_its_outcome) {
  provided();
  call(R"({"method":"version","timeout_ms":500})");
  EXPECT_EQ(a.received(), R"({"jsonrpc":"2.0","method":"version","timeout_ms":500,"id":0})");
  answer(b, "2");
  world.advance(490ms);
  EXPECT_EQ(caller.received(), "");
  world.advance(15ms);
  EXPECT_EQ(a.received(), cancel_notification("0"));
  EXPECT_EQ(caller.received(),
            outcomes(R"({"client":"a \"1\"",)" + std::string{kTimedOut.substr(1)} + R"(,{"result":2})"));
  a.send(result_reply("1", "0"));
  EXPECT_EQ(a.dropped, 1u);
}

TEST_F(CallAll, the_time_of_the_call_itself_leaves_some_for_the_answer) {
  provided();
  caller.send(R"({"jsonrpc":"2.0","method":"rpc.call_all","params":["version"],"timeout_ms":1000,"id":"all"})");
  EXPECT_EQ(a.received(), R"({"jsonrpc":"2.0","method":"version","timeout_ms":950,"id":0})");
  answer(b, "2");
  world.advance(960ms);
  EXPECT_EQ(caller.received(),
            outcomes(R"({"client":"a \"1\"",)" + std::string{kTimedOut.substr(1)} + R"(,{"result":2})"));
}

TEST_F(CallAll, one_that_goes_has_that_for_its_outcome) {
  provided();
  call();
  b.leave();
  answer(a, "1");
  EXPECT_EQ(caller.received(), outcomes(R"({"client":"a \"1\"","result":1},)" + std::string{kLost}));
}

TEST_F(CallAll, one_that_takes_so_many_at_once_is_asked_when_it_is_free_and_nobody_else_in_its_place) {
  provided(R"(,"concurrency":1,"queue":1)");
  Client other{world};
  other.send(request("version", {}, "7"));  // goes to a
  const std::string busy = a.received();
  call();
  EXPECT_EQ(a.received(), "");
  answer(b, "2");
  EXPECT_EQ(b.received(), "") << "what is for another provider";
  call(R"({"method":"version"})", "\"second\"");
  answer(b, "3");
  EXPECT_EQ(
      caller.received(),
      result_reply(
          R"([{"client":"a \"1\"","error":{"code":-32005,"message":"Limit exceeded","data":{"reason":"too many calls wait for the provider","origin":"local","delivered":"no","limit":"queue"}}},{"result":3}])",
          "\"second\""));
  a.send(result_reply("0", id_of(busy)));
  EXPECT_EQ(other.received(), result_reply("0", "7"));
  answer(a, "1");
  EXPECT_EQ(caller.received(), outcomes(R"({"client":"a \"1\"","result":1},{"result":2})"));
}

TEST_F(CallAll, a_caller_that_cancels_or_goes_ends_them_all) {
  provided(R"(,"concurrency":1)");
  call();
  const std::string to_a = id_of(a.received());
  b.send(result_reply("2", id_of(b.received())));
  EXPECT_EQ(caller.ask(request("rpc.cancel", R"({"id":"all"})")), cancelled("\"all\"") + "\n" + result_reply("1"));
  EXPECT_EQ(a.received(), cancel_notification(to_a));
  EXPECT_EQ(b.received(), "");
  call();
  EXPECT_EQ(a.received(), "") << "busy with the one that was given up";
  const std::string to_b = id_of(b.received());
  caller.leave();
  a.send(result_reply("1", to_a));
  EXPECT_EQ(a.received(), "") << "the one that waited went with its caller";
  EXPECT_EQ(b.received(), cancel_notification(to_b));
  EXPECT_EQ(world.router.relayed_calls().in_use(), 1u) << "b is at work";
}

TEST_F(CallAll, a_provider_that_goes_has_not_kept_what_ended_with_the_caller) {
  provided(R"(,"concurrency":1)");
  call();
  caller.leave();
  a.leave();
  b.leave();
  EXPECT_EQ(world.router.relayed_calls().in_use(), 0u);
}

TEST_F(CallAll, a_token_for_progress_goes_nowhere) {
  provided();
  call(R"({"method":"version","params":{"partialResultToken":"t","x":1}})");
  EXPECT_EQ(a.received(), request("version", R"({"x":1})", "0"));
}

// So many that it takes several turns to ask them.
class CallMany : public testing::Test {
 protected:
  static constexpr int kMany = 300;
  static constexpr int kShare = 128;

  CallMany() {
    for (int i = 0; i < kMany; ++i) {
      providers.push_back(std::make_unique<Client>(world));
      providers.back()->provide("version");
    }
  }
  // How many have been asked since this was called last; each that was answers.
  int answer() {
    int asked = 0;
    for (const auto& provider : providers) {
      const std::string text = provider->sink == nullptr ? "" : provider->received();
      if (text.empty()) continue;
      ++asked;
      provider->send(result_reply("1", id_of(text)));
    }
    return asked;
  }

  World world;
  Client caller{world};
  std::vector<std::unique_ptr<Client>> providers;
};

TEST_F(CallMany, they_are_asked_in_shares) {
  caller.send(request("rpc.call_all", R"(["version"])"));
  int all = 0;
  do {
    const int asked = answer();
    EXPECT_LE(asked, kShare);
    EXPECT_GT(asked + all, 0);
    all += asked;
  } while (world.scheduler.expire_one());
  EXPECT_EQ(all, kMany);
  std::string outcomes = R"({"result":1})";
  for (int i = 1; i < kMany; ++i) outcomes += R"(,{"result":1})";
  EXPECT_EQ(caller.received(), result_reply("[" + outcomes + "]"));
  EXPECT_EQ(caller.dispatcher->in_flight(), 0U);
}

TEST_F(CallMany, who_goes_before_it_is_asked_has_that_for_its_outcome) {
  caller.send(request("rpc.call_all", R"(["version"])"));
  EXPECT_EQ(answer(), kShare);
  providers[kMany - 1]->leave();
  EXPECT_EQ(providers[kMany - 2]->ask(request("rpc.unregister", R"(["version"])")), result_reply("1"));
  Client late{world};
  late.provide("version");
  int asked = 0;
  while (world.scheduler.expire_one()) asked += answer();
  EXPECT_EQ(asked, kMany - kShare - 2);
  EXPECT_EQ(late.received(), "");
  const std::string all = caller.received();
  const std::string lost =
      R"({"error":{"code":-32001,"message":"Provider lost","data":{"reason":"the provider has gone","origin":"local","delivered":"no"}}})";
  EXPECT_TRUE(all.ends_with(R"({"result":1},)" + lost + "," + lost + R"(],"id":1})")) << all;
}

TEST_F(CallMany, a_caller_that_cancels_in_the_middle_asks_no_more) {
  caller.send(request("rpc.call_all", R"(["version"])", "7"));
  EXPECT_EQ(caller.ask(request("rpc.cancel", R"({"id":7})")), cancelled("7") + "\n" + result_reply("1"));
  int told = 0;
  while (world.scheduler.expire_one()) {
  }
  for (const auto& provider : providers) told += provider->received().empty() ? 0 : 1;
  EXPECT_EQ(told, kShare);
  EXPECT_EQ(world.router.relayed_calls().in_use(), 0U);
  EXPECT_EQ(caller.dispatcher->in_flight(), 0U);
}

TEST_F(CallMany, a_caller_that_goes_in_the_middle_asks_no_more) {
  caller.send(request("rpc.call_all", R"(["version"])", "7"));
  EXPECT_EQ(answer(), kShare);
  caller.leave();
  while (world.scheduler.expire_one()) {
  }
  EXPECT_EQ(answer(), 0);
  EXPECT_EQ(world.router.relayed_calls().in_use(), 0U);
}

TEST_F(CallMany, a_broker_may_end_in_the_middle) {
  caller.send(request("rpc.call_all", R"(["version"])", "7"));
  EXPECT_EQ(answer(), kShare);
  caller.leave();
  for (const auto& provider : providers) provider->leave();
}

class CallWithMuch : public CallAll {
 protected:
  CallWithMuch() { provided(); }

  const std::string params = "[\"" + std::string(std::size_t{1} << 20, 'x') + "\"]";
  const std::string much = R"({"method":"version","params":)" + params + "}";
};

TEST_F(CallWithMuch, providers_are_asked_one_a_turn) {
  call(much);
  EXPECT_EQ(a.received(), request("version", params, "0"));
  EXPECT_EQ(b.received(), "");
  EXPECT_TRUE(world.scheduler.expire_one());
  EXPECT_EQ(b.received(), request("version", params, "1"));
}

TEST_F(CallWithMuch, others_are_not_held_up) {
  Client c{world};
  Client other{world};
  c.provide("version");
  c.provide("quick");
  call(much);
  other.send(request("rpc.call_all", R"(["quick"])"));
  EXPECT_TRUE(world.scheduler.expire_one());
  EXPECT_EQ(c.received(), "");
  EXPECT_TRUE(world.scheduler.expire_one());
  EXPECT_TRUE(c.received().starts_with(request("quick", {}, "2")));
}

TEST(CallAllOfBusyProviders, keeps_the_request_once_for_all_of_them) {
  World world;
  Client caller{world};
  Client other{world};
  std::vector<std::unique_ptr<Client>> providers;
  for (int i = 0; i < 10; ++i) {
    providers.push_back(std::make_unique<Client>(world));
    providers.back()->provide("version", R"(,"concurrency":1)");
    other.send(request("version", {}, std::to_string(i)));
  }
  const std::string params = "[\"" + std::string(std::size_t{1} << 20, 'x') + "\"]";
  caller.send(request("rpc.call_all", R"({"method":"version","params":)" + params + "}"));
  while (world.scheduler.expire_one()) {
  }
  EXPECT_GT(caller.dispatcher->held_bytes(), params.size());
  EXPECT_LT(caller.dispatcher->held_bytes(), params.size() + 1000);
  for (const auto& provider : providers) {
    provider->send(result_reply("1", id_of(provider->received())));
    const std::string asked = provider->received();
    EXPECT_EQ(asked, request("version", params, id_of(asked)));
    provider->send(result_reply("2", id_of(asked)));
  }
  EXPECT_EQ(caller.dispatcher->held_bytes(), 0U);
  EXPECT_TRUE(caller.received().starts_with(R"({"jsonrpc":"2.0","result":[{"result":2},)"));
}

TEST_F(CallAll, in_a_batch_it_is_one_element) {
  provided();
  caller.send("[" + request("rpc.call_all", R"(["version",[1]])", "1") + "," + request("nothing", {}, "2") + "]");
  EXPECT_EQ(a.received(), request("version", "[1]", "0"));
  a.send(result_reply("1", "0"));
  answer(b, "2");
  const std::string all = caller.received();
  EXPECT_TRUE(all.starts_with("[" + result_reply(R"([{"client":"a \"1\"","result":1},{"result":2}])", "1"))) << all;
}

TEST_F(CallAll, outcomes_that_are_too_large_together_are_an_error) {
  World small{Limits{.max_message_size = 1000}};
  Client one{small};
  Client two{small};
  Client asks{small};
  one.provide("version");
  two.provide("version");
  asks.send(request("rpc.call_all", R"(["version"])"));
  answer(one, '"' + std::string(600, 'x') + '"');
  EXPECT_EQ(asks.received(), "");
  answer(two, '"' + std::string(600, 'x') + '"');
  EXPECT_NE(asks.received().find("-32006"), std::string::npos);
}

TEST_F(CallAll, what_is_wrong_is_said) {
  provided();
  const auto ask = [&](std::string_view params) { return caller.ask(request("rpc.call_all", params)); };
  for (const std::string_view wrong : {"[]", "{}", "[1]", R"(["version",1])", R"(["version",[],-1])",
                                       R"(["version",[],1,1])", R"({"method":"version","params":"x"})"})
    EXPECT_NE(ask(wrong).find("-32602"), std::string::npos) << wrong;
  EXPECT_EQ(ask(R"(["versoin"])"), error_reply(-32601, "Method not found", R"({"did_you_mean":"version"})"));
  EXPECT_EQ(ask(R"(["rpc.methods"])"), error_reply(-32601, "Method not found"));
  EXPECT_EQ(a.received() + b.received(), "");
  caller.send(R"({"jsonrpc":"2.0","method":"rpc.call_all","params":["version"]})");
  EXPECT_EQ(a.received() + b.received() + caller.received(), "") << "nobody would learn the outcomes";
}

TEST_F(CallAll, methods_of_the_process_itself_have_no_providers) {
  World own;
  own.registry.method("mine", [] { return 1; });
  Client asks{own};
  EXPECT_NE(asks.ask(request("rpc.call_all", R"(["mine"])")).find("the server itself is the one provider"),
            std::string::npos);
}

}  // namespace
}  // namespace wirecall
