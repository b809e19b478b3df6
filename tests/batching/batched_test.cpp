// Functions that are called once for many calls, on a clock and threads that the test moves: who is in a batch, and
// what each call of it comes to.
#include "wirecall/batched.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <expected>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/batching/batched_method.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::cancelled;
using test::error_reply;
using test::internal_error;
using test::notification;
using test::request;
using test::result_reply;
using test::timed_out;

TEST_F(BatchedMethod, gathers_the_calls_of_a_turn_and_answers_each) {
  add_double({.size = 8});
  Peer other{*this};
  peer->call("double", "[1]", 1);
  other.call("double", R"({"number":2})", 7);
  peer->call("double", "[3]", 2);
  EXPECT_TRUE(batches.empty());
  settle();
  EXPECT_EQ(batches, (Batches{{1, 2, 3}}));
  EXPECT_EQ(received(), result_reply("2", "1") + "\n" + result_reply("6", "2"));
  EXPECT_EQ(other.sink.take(), result_reply("4", "7"));
}

TEST_F(BatchedMethod, a_full_batch_runs_at_once) {
  add_double({.size = 2, .wait = 1s});
  for (int i = 1; i <= 5; ++i) peer->call("double", "[" + std::to_string(i) + "]", i);
  pool.run_all();
  EXPECT_EQ(batches, (Batches{{1, 2}}));
  EXPECT_TRUE(pool.works.empty());
  inbox->run();
  EXPECT_EQ(pool.works.size(), 1U) << "the next one is behind whatever else waits for a thread";
  pool.run_all();
  EXPECT_EQ(batches, (Batches{{1, 2}, {3, 4}})) << "the fifth waits for others";
  inbox->run();
  EXPECT_EQ(received(), result_reply("2", "1") + "\n" + result_reply("4", "2") + "\n" + result_reply("6", "3") + "\n" +
                            result_reply("8", "4"));
  scheduler.advance(999ms);
  settle();
  EXPECT_EQ(received(), "");
  scheduler.advance(1ms);
  settle();
  EXPECT_EQ(received(), result_reply("10", "5"));
}

TEST_F(BatchedMethod, the_call_that_fills_a_batch_without_being_in_it_waits_no_longer_than_others) {
  registry.method("count", batched(
                               [this](const std::vector<std::vector<int>>& rows) {
                                 batches.emplace_back(1, static_cast<int>(rows.size()));
                                 return std::vector<std::size_t>(rows.size());
                               },
                               {.size = 8, .wait = 1s, .rows = 4}));
  peer->call("count", "[[1,2,3]]", 1);
  peer->call("count", "[[4,5,6]]", 2);
  settle();
  EXPECT_EQ(batches, (Batches{{1}})) << "six rows are more than a batch may have";
  scheduler.advance(1s);
  settle();
  EXPECT_EQ(batches, (Batches{{1}, {1}}));
  // The same where the other one has left by then.
  add_double({.size = 2, .wait = 1s});
  batches.clear();
  peer->call("double", "[1]", 3);
  peer->call("double", "[2]", 4);
  peer->cancel(3);
  settle();
  EXPECT_TRUE(batches.empty());
  scheduler.advance(1s);
  settle();
  EXPECT_EQ(batches, (Batches{{2}}));
}

TEST_F(BatchedMethod, groups_of_one_turn_run_at_once_where_several_may) {
  registry.method("scale", batched([](std::vector<int> numbers, Shared<int>) { return numbers; }, {.concurrent = 3}),
                  {"number", "by"});
  for (int i = 1; i <= 4; ++i) peer->call("scale", "[1," + std::to_string(i) + "]", i);
  scheduler.advance(0ns);
  pool.run_all();
  inbox->run();
  EXPECT_EQ(pool.works.size(), 1U);
  settle();
  EXPECT_EQ(peer->sink.messages.size(), 4U);
}

TEST_F(BatchedMethod, the_first_waits_so_long_and_the_others_go_with_it) {
  add_double({.size = 64, .wait = 2ms});
  peer->call("double", "[1]", 1);
  scheduler.advance(1ms);
  peer->call("double", "[2]", 2);
  scheduler.advance(999us);
  settle();
  EXPECT_TRUE(batches.empty());
  scheduler.advance(1us);
  settle();
  EXPECT_EQ(batches, (Batches{{1, 2}}));
}

TEST_F(BatchedMethod, with_an_adaptive_wait_a_call_that_is_alone_does_not_wait) {
  add_double({.size = 64, .adaptive = true});
  for (int i = 1; i <= 3; ++i) {
    peer->call("double", "[1]", i);
    settle();
    EXPECT_EQ(received(), result_reply("2", std::to_string(i)));
    scheduler.advance(1s);
  }
}

// Callers of a function that takes 2 ms: each calls again some 100 us after it has been answered.
class AnsweredCallers : public BatchedMethod {
 protected:
  AnsweredCallers() {
    registry.method("echo",
                    batched(
                        [this](std::vector<int> callers) {
                          batches.push_back(callers);
                          for (int i = 0; i != 20; ++i) pass();
                          return callers;
                        },
                        {.size = 64, .adaptive = true}),
                    {"caller"});
    for (int caller = 0; caller != 8; ++caller) call_later(caller);
  }

  void pass() {
    scheduler.advance(100us);
    const std::vector<std::pair<int, std::chrono::nanoseconds>> callers = std::exchange(thinking_, {});
    for (const auto& [caller, until] : callers) {
      if (until > scheduler.now()) {
        thinking_.emplace_back(caller, until);
      } else {
        peer->call("echo", "[" + std::to_string(caller) + "]", caller);
      }
    }
  }
  /// So many batches; without `gone`, from its next call on.
  void run(std::size_t count, int gone = -1) {
    batches.clear();
    while (batches.size() < count) {
      pass();
      pool.run_all();
      inbox->run();
      for (const std::string& answer : std::exchange(peer->sink.messages, {})) {
        const int caller = std::stoi(answer.substr(answer.find("\"id\":") + 5));
        if (caller != gone) call_later(caller);
      }
    }
  }
  [[nodiscard]] std::vector<std::size_t> sizes() const {
    std::vector<std::size_t> sizes;
    for (const std::vector<int>& batch : batches) sizes.push_back(batch.size());
    return sizes;
  }

 private:
  void call_later(int caller) { thinking_.emplace_back(caller, scheduler.now() + (1 + caller % 4) * 100us); }

  std::vector<std::pair<int, std::chrono::nanoseconds>> thinking_;
};

TEST_F(AnsweredCallers, leave_together_once_that_has_been_found_to_be_faster) {
  run(10);
  EXPECT_LT(batches.back().size(), 8U);
  run(600);
  run(4);
  EXPECT_EQ(sizes(), (std::vector<std::size_t>{8, 8, 8, 8}));
  run(4, 3);
  EXPECT_EQ(sizes(), (std::vector<std::size_t>{8, 7, 7, 7})) << "who calls no more is waited for once";
  const std::chrono::nanoseconds began = scheduler.now();
  run(10);
  EXPECT_EQ(scheduler.now() - began, 10 * 2400us);
}

TEST_F(AnsweredCallers, who_gives_up_takes_no_timer_along_by_which_others_leave) {
  run(604);
  pass();  // two are there, of which the first has the timer
  peer->cancel(0);
  inbox->run();
  run(2, 0);
  EXPECT_EQ(sizes(), (std::vector<std::size_t>{7, 7}));
}

TEST_F(BatchedMethod, what_waits_leaves_when_no_others_are_to_be_expected) {
  add_double({.size = 64, .wait = 1min});
  registry.end_batch_waits();
  peer->call("double", "[1]", 1);
  peer->call("double", "[2]", 2);
  settle();
  EXPECT_TRUE(batches.empty());
  registry.end_batch_waits();
  settle();
  EXPECT_EQ(batches, (Batches{{1, 2}}));
  EXPECT_EQ(received(), result_reply("2", "1") + "\n" + result_reply("4", "2"));
}

TEST_F(BatchedMethod, so_does_what_waits_of_a_method_with_kept_results_and_of_one_that_was_removed) {
  const auto echo = [](std::vector<int> numbers) { return numbers; };
  registry.method("kept", batched(echo, {.wait = 1min}), {.params = {"number"}, .cache = {.entries = 1}});
  registry.method("removed", batched(echo, {.wait = 1min}), {"number"});
  peer->call("kept", "[1]", 1);
  peer->call("removed", "[2]", 2);
  registry.remove("removed");
  settle();
  EXPECT_EQ(received(), "");
  registry.end_batch_waits();
  settle();
  EXPECT_EQ(received(), result_reply("1", "1") + "\n" + result_reply("2", "2"));
}

TEST_F(BatchedMethod, what_comes_while_it_runs_leaves_together_afterwards) {
  add_double({.size = 64});
  peer->call("double", "[1]", 1);
  scheduler.advance(0ns);
  ASSERT_EQ(pool.works.size(), 1U);
  peer->call("double", "[2]", 2);
  scheduler.advance(0ns);
  EXPECT_EQ(pool.works.size(), 1U) << "it runs once at a time";
  settle();
  EXPECT_EQ(batches, (Batches{{1, 2}})) << "it had not begun";
  // From within a run.
  batches.clear();
  registry.method("nested", batched([this](const std::vector<int>& numbers) {
                    batches.push_back(numbers);
                    if (numbers.front() < 3) {
                      peer->call("nested", "[3]", 13);
                      peer->call("nested", "[4]", 14);
                    }
                    return numbers;
                  }));
  peer->call("nested", "[1]", 11);
  settle();
  EXPECT_EQ(batches, (Batches{{1}, {3, 4}}));
}

TEST_F(BatchedMethod, several_batches_run_at_once_where_that_is_said) {
  add_double({.size = 1, .concurrent = 2});
  for (int i = 1; i <= 3; ++i) peer->call("double", "[1]", i);
  EXPECT_EQ(pool.works.size(), 2U);
  settle();
  EXPECT_EQ(batches.size(), 3U);
}

TEST_F(BatchedMethod, elements_of_a_json_rpc_batch_go_together_and_are_answered_as_one) {
  add_double({.size = 8});
  peer->send("[" + request("double", "[1]", "1") + "," + notification("double", "[5]") + "," +
             request("double", "[2]", "2") + "," + request("double", R"(["x"])", "3") + "]");
  EXPECT_EQ(received(), "");
  settle();
  EXPECT_EQ(batches, (Batches{{1, 5, 2}})) << "what does not fit is in no batch";
  const std::string answer = received();
  EXPECT_NE(answer.find(result_reply("2", "1")), std::string::npos) << answer;
  EXPECT_NE(answer.find(result_reply("4", "2")), std::string::npos) << answer;
  EXPECT_NE(answer.find("-32602"), std::string::npos) << answer;
}

TEST_F(BatchedMethod, a_cancelled_call_leaves_and_its_place_is_free) {
  add_double({.size = 3, .wait = 1s});
  peer->call("double", "[1]", 1);
  peer->call("double", "[2]", 2);
  peer->cancel(1);
  EXPECT_EQ(received(), cancelled("1"));
  peer->call("double", "[3]", 3);
  settle();
  EXPECT_TRUE(batches.empty()) << "two wait";
  peer->call("double", "[4]", 4);
  settle();
  EXPECT_EQ(batches, (Batches{{2, 3, 4}}));
}

TEST_F(BatchedMethod, the_others_run_although_the_one_by_whose_timer_they_would_is_cancelled) {
  add_double({.size = 8});
  peer->call("double", "[1]", 1);
  peer->call("double", "[2]", 2);
  peer->cancel(1);
  settle();
  EXPECT_EQ(batches, (Batches{{2}}));
  EXPECT_EQ(received(), cancelled("1") + "\n" + result_reply("4", "2"));
}

TEST_F(BatchedMethod, deadlines_are_the_calls_own) {
  add_double({.size = 8, .wait = 10s});
  peer->send(R"({"jsonrpc":"2.0","method":"double","params":[1],"id":1,"timeout_ms":5})");
  peer->call("double", "[2]", 2);
  scheduler.advance(5ms);
  EXPECT_EQ(received(), timed_out("1"));
  scheduler.advance(10s);
  settle();
  EXPECT_EQ(batches, (Batches{{2}}));
}

TEST_F(BatchedMethod, a_call_that_is_given_up_while_it_runs_is_answered_once) {
  add_double({.size = 2});
  peer->call("double", "[1]", 1);
  peer->call("double", "[2]", 2);
  pool.run_all();
  peer->cancel(1);
  EXPECT_EQ(received(), cancelled("1"));
  settle();
  EXPECT_EQ(received(), result_reply("4", "2"));
}

TEST_F(BatchedMethod, callers_that_disconnect_leave_the_others) {
  add_double({.size = 3, .wait = 1s});
  auto other = std::make_unique<Peer>(*this);
  other->call("double", "[1]", 1);
  peer->call("double", "[2]", 2);
  other.reset();
  scheduler.advance(1s);
  settle();
  EXPECT_EQ(batches, (Batches{{2}}));
  EXPECT_EQ(received(), result_reply("4", "2"));
}

TEST_F(BatchedMethod, only_calls_with_equal_shared_parameters_go_together) {
  std::vector<std::string> runs;
  registry.method("in_language",
                  batched(
                      [&runs](std::span<const std::string> texts, const Shared<std::string>& language) {
                        std::string run = *language + ":";
                        for (const std::string& text : texts) run += " " + text;
                        runs.push_back(run);
                        return std::vector<std::string>(texts.begin(), texts.end());
                      },
                      {.size = 8}),
                  {"text", "language"});
  peer->call("in_language", R"(["a","de"])", 1);
  peer->call("in_language", R"(["b","en"])", 2);
  peer->call("in_language", R"({"language":"de","text":"c"})", 3);
  settle();
  EXPECT_EQ(runs, (std::vector<std::string>{"de: a c", "en: b"}));
}

TEST_F(BatchedMethod, errors_are_those_of_one_or_of_all) {
  registry.method("check", batched([](const std::vector<int>& numbers) {
                    std::vector<std::expected<int, Error>> results;
                    for (const int number : numbers) {
                      if (number == 100) throw Error{5, "all of them"};
                      if (number == 200) throw std::runtime_error("secret");
                      results.emplace_back(number);
                      if (number < 0) results.back() = std::unexpected(Error{7, "negative"});
                    }
                    return results;
                  }));
  peer->call("check", "[1]", 1);
  peer->call("check", "[-1]", 2);
  settle();
  EXPECT_EQ(received(), result_reply("1", "1") + "\n" + error_reply(7, "negative", {}, "2"));
  peer->call("check", "[1]", 1);
  peer->call("check", "[100]", 2);
  settle();
  EXPECT_EQ(received(), error_reply(5, "all of them", {}, "1") + "\n" + error_reply(5, "all of them", {}, "2"));
  EXPECT_TRUE(log.empty());
  peer->call("check", "[200]", 1);
  peer->call("check", "[1]", 2);
  settle();
  EXPECT_EQ(received(), internal_error("1") + "\n" + internal_error("2"));
  ASSERT_EQ(log.size(), 1U) << "once, not for each";
  EXPECT_NE(log[0].find("secret"), std::string::npos) << log[0];
}

TEST_F(BatchedMethod, the_log_is_told_by_one_that_is_still_waited_for) {
  registry.method("fail", batched([](std::vector<int>) -> std::vector<int> { throw std::runtime_error("secret"); }));
  for (int i = 1; i <= 3; ++i) peer->call("fail", "[1]", i);
  scheduler.advance(0ns);
  pool.run_all();
  peer->cancel(1);
  inbox->run();
  EXPECT_EQ(received(), cancelled("1") + "\n" + internal_error("2") + "\n" + internal_error("3"));
  ASSERT_EQ(log.size(), 1U);
  EXPECT_NE(log[0].find("secret"), std::string::npos) << log[0];
}

TEST_F(BatchedMethod, another_number_of_results_is_an_error_of_all_and_the_log_says_so) {
  registry.method("lose", batched([](std::vector<int> numbers) {
                    numbers.pop_back();
                    return numbers;
                  }));
  peer->call("lose", "[1]", 1);
  peer->call("lose", "[2]", 2);
  settle();
  EXPECT_EQ(received(), internal_error("1") + "\n" + internal_error("2"));
  ASSERT_EQ(log.size(), 1U);
  EXPECT_NE(log[0].find("a batch of 2 calls has 1 results"), std::string::npos) << log[0];
}

TEST_F(BatchedMethod, beyond_the_queue_calls_are_refused_with_advice) {
  add_double({.size = 2, .wait = 1s, .queue = 2});
  for (int i = 1; i <= 3; ++i) peer->call("double", "[" + std::to_string(i) + "]", i);
  const std::string refused = received();
  EXPECT_NE(refused.find(R"("code":-32005)"), std::string::npos) << refused;
  EXPECT_NE(refused.find(R"("delivered":"no","limit":"queue","retry_after_ms":1)"), std::string::npos) << refused;
  settle();
  EXPECT_EQ(received(), result_reply("2", "1") + "\n" + result_reply("4", "2"));
}

TEST_F(BatchedMethod, a_call_that_is_more_than_may_wait_is_a_batch_of_its_own) {
  add_double({.size = 8, .bytes = 1, .queue_bytes = 2});
  peer->call("double", "[123456789]", 1);
  settle();
  EXPECT_EQ(received(), result_reply("246913578", "1"));
}

TEST_F(BatchedMethod, rows_are_counted_where_they_are_bounded) {
  std::vector<std::size_t> calls;
  const auto sum = [&calls](const std::vector<std::string>& names, const std::vector<std::vector<int>>& rows) {
    calls.push_back(names.size());
    return std::vector<std::size_t>(rows.size());
  };
  registry.method("sum", batched(sum, {.size = 8, .wait = 1s, .rows = 4}));
  peer->call("sum", R"(["a",[1,2,3]])", 1);
  settle();
  EXPECT_TRUE(calls.empty());
  peer->call("sum", R"(["b",[]])", 2);
  settle();
  EXPECT_EQ(calls, std::vector<std::size_t>{2}) << "the second counts as one row, though it has none";
  peer->call("sum", R"(["c",[1]])", 3);
  settle();
  peer->call("sum", R"(["d",[1,2,3,4,5]])", 4);
  settle();
  EXPECT_EQ(calls, (std::vector<std::size_t>{2, 1, 1})) << "the five are more than fits";
}

TEST_F(BatchedMethod, a_call_of_a_higher_priority_takes_the_place_of_a_lower_one) {
  add_double({.size = 2, .wait = 1s, .queue = 2, .priority = [](const Context& context) {
                return context.id() == "9" ? 1 : 0;
              }});
  for (const int id : {1, 2, 9}) peer->call("double", "[" + std::to_string(id) + "]", id);
  inbox->run();
  EXPECT_NE(received().find(R"("code":-32005)"), std::string::npos);
  settle();
  EXPECT_EQ(batches, (Batches{{9, 1}}));
}

// The loop runs what has been posted before its timers.
TEST_F(BatchedMethod, a_call_that_goes_for_another_takes_no_timer_along_by_which_that_one_leaves) {
  int priority = 0;
  registry.method(
      "size",
      batched([](const std::vector<std::string>& texts) { return std::vector<std::size_t>(texts.size(), 1); },
              {.size = 8, .bytes = 1000, .queue_bytes = 1000, .priority = [&](const Context&) { return priority; }}),
      {"text"});
  peer->call("size", "[\"" + std::string(900, 'x') + "\"]", 1);
  priority = 1;
  peer->call("size", "[\"" + std::string(200, 'x') + "\"]", 2);
  inbox->run();
  settle();
  const std::vector<std::string>& answers = peer->sink.messages;
  EXPECT_EQ(std::ranges::count(answers, result_reply("1", "2")), 1);
}

TEST_F(BatchedMethod, each_has_its_context) {
  registry.method("who", batched([](std::vector<Context> contexts, std::vector<int> numbers) {
                    std::vector<std::string> ids;
                    for (std::size_t i = 0; i != numbers.size(); ++i)
                      ids.push_back(contexts[i].id() + ":" + std::to_string(numbers[i]));
                    return ids;
                  }));
  peer->call("who", "[10]", 1);
  peer->call("who", "[20]", 2);
  settle();
  EXPECT_EQ(received(), result_reply(R"("1:10")", "1") + "\n" + result_reply(R"("2:20")", "2"));
}

TEST_F(BatchedMethod, contexts_have_the_timers_of_the_loop_that_the_function_runs_on) {
  std::vector<Scheduler*> schedulers;
  registry.method("plain", batched([&schedulers](std::vector<Context> contexts) {
                    schedulers.push_back(contexts.front().scheduler());
                  }));
  registry.method("waits", batched([&schedulers](std::vector<Context> contexts) -> Task<void> {
                    schedulers.push_back(contexts.front().scheduler());
                    co_return;
                  }));
  peer->call("plain", "[]", 1);
  settle();
  peer->call("waits", "[]", 2);
  settle();
  EXPECT_EQ(schedulers, (std::vector<Scheduler*>{nullptr, &scheduler}));
}

TEST_F(BatchedMethod, coroutines_run_on_the_loop) {
  registry.method("later", batched([this](const std::vector<int>& numbers) -> Task<std::vector<int>> {
                    co_await sleep_for(scheduler, 5ms);
                    batches.push_back(numbers);
                    co_return numbers;
                  }));
  registry.method("fail", batched([this](std::vector<int>) -> Task<void> {
                    co_await sleep_for(scheduler, 5ms);
                    throw Error{9, "late"};
                  }));
  peer->call("later", "[1]", 1);
  peer->call("later", "[2]", 2);
  settle();
  peer->call("later", "[3]", 3);
  scheduler.advance(5ms);
  settle();
  EXPECT_EQ(received(), result_reply("1", "1") + "\n" + result_reply("2", "2"));
  scheduler.advance(5ms);
  settle();
  EXPECT_EQ(received(), result_reply("3", "3"));
  EXPECT_EQ(batches, (Batches{{1, 2}, {3}}));
  peer->call("fail", "[1]", 4);
  settle();
  scheduler.advance(5ms);
  settle();
  EXPECT_EQ(received(), error_reply(9, "late", {}, "4"));
}

TEST_F(BatchedMethod, a_function_of_nothing_answers_null) {
  int seen = 0;
  registry.method("note",
                  batched([&seen](std::vector<std::string_view> texts) { seen += static_cast<int>(texts.size()); }));
  peer->call("note", R"(["a string that is too long to be small"])", 1);
  peer->call("note", R"(["é"])", 2);
  settle();
  EXPECT_EQ(received(), result_reply("null", "1") + "\n" + result_reply("null", "2"));
  EXPECT_EQ(seen, 2);
}

struct Document {
  std::string_view text;
  int page = 0;
};

TEST_F(BatchedMethod, what_arguments_borrow_is_kept_with_each_call) {
  std::vector<std::string> seen;
  const auto read = [&seen](const std::vector<std::string_view>& views, const std::vector<Document>& documents,
                            const std::vector<std::map<std::string, std::string_view>>& maps,
                            const std::vector<std::pair<std::string_view, int>>& pairs) {
    for (std::size_t i = 0; i != views.size(); ++i) {
      std::string all{views[i]};
      all.append(documents[i].text).append(maps[i].at("m")).append(pairs[i].first);
      seen.push_back(std::move(all));
    }
  };
  registry.method("read", batched(read));
  const auto params = [](const std::string& text) {
    return "[\"" + text + "\",{\"text\":\"" + text + "\",\"page\":1},{\"m\":\"" + text + "\"},[\"" + text + "\",1]]";
  };
  // Escaped strings are decoded into the reader's memory, others are where they came.
  const std::string plain = "a text that no string keeps within itself";
  const std::string long_text(300'000, 'x');
  peer->call("read", params(R"(1\n)" + plain), 1);
  peer->call("read", params("2 " + plain), 2);
  peer->call("read", params(long_text), 3);
  peer->call("read", params(R"(4\n)" + plain), 4);
  settle();
  const auto four = [](const std::string& text) { return text + text + text + text; };
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen[0], four("1\n" + plain));
  EXPECT_EQ(seen[1], four("2 " + plain));
  EXPECT_TRUE(seen[2] == four(long_text));
  EXPECT_EQ(seen[3], four("4\n" + plain));
}

TEST_F(BatchedMethod, of_another_loop_whose_handlers_take_long_nobody_is_dependent) {
  test::VirtualScheduler other_scheduler;
  auto other_inbox = std::make_shared<Inbox>();
  rpc::LoopContext other_loop{json_codec(), &other_scheduler, &log_sink};
  other_loop.services.blocking_pool = &pool;
  other_loop.tasks.set_executor(other_inbox);
  add_double({.size = 8});
  {
    Peer other{*this, other_loop};
    peer->call("double", "[1]", 1);
    other.call("double", "[2]", 2);
    other_scheduler.advance(0ns);
    pool.run_all();
    other_inbox->run();
    EXPECT_EQ(other.sink.take(), result_reply("4", "2"));
  }
  EXPECT_EQ(batches, (Batches{{1, 2}}));
  settle();
  EXPECT_EQ(received(), result_reply("2", "1"));
}

TEST_F(BatchedMethod, the_next_batch_is_started_on_the_loop_of_one_of_its_calls) {
  test::VirtualScheduler other_scheduler;
  auto other_inbox = std::make_shared<Inbox>();
  rpc::LoopContext other_loop{json_codec(), &other_scheduler, &log_sink};
  other_loop.services.blocking_pool = &pool;
  other_loop.tasks.set_executor(other_inbox);
  add_double({.size = 1});
  Peer other{*this, other_loop};
  peer->call("double", "[1]", 1);
  other.call("double", "[2]", 2);
  pool.run_all();
  EXPECT_EQ(batches, (Batches{{1}}));
  other_inbox->run();  // the first one's loop may have ended
  pool.run_all();
  EXPECT_EQ(batches, (Batches{{1}, {2}}));
  other_inbox->run();
  EXPECT_EQ(other.sink.take(), result_reply("4", "2"));
  settle();
}

TEST_F(BatchedMethod, without_a_loop_a_call_is_a_batch_of_its_own) {
  add_double({.size = 8, .wait = 1s});
  registry.method("async", batched([](std::vector<int> numbers) -> Task<std::vector<int>> { co_return numbers; }));
  EXPECT_EQ(registry.handle(request("double", "[4]")), result_reply("8"));
  EXPECT_EQ(registry.handle(request("async", "[4]")), result_reply("4"));
}

TEST_F(BatchedMethod, without_a_pool_it_runs_on_the_loop) {
  loop.services.blocking_pool = nullptr;
  add_double({.size = 2, .wait = 1s});
  peer->call("double", "[1]", 1);
  peer->call("double", "[2]", 2);
  EXPECT_EQ(batches, (Batches{{1, 2}}));
  peer->call("double", "[3]", 3);
  peer->call("double", "[4]", 4);
  EXPECT_EQ(batches, (Batches{{1, 2}, {3, 4}}));
  settle();
  EXPECT_EQ(received(), result_reply("2", "1") + "\n" + result_reply("4", "2") + "\n" + result_reply("6", "3") + "\n" +
                            result_reply("8", "4"));
}

TEST_F(BatchedMethod, coroutines_that_never_wait_leave_the_loop_to_others_between_two_batches) {
  registry.method("at_once", batched(
                                 [this](std::vector<int> numbers) -> Task<std::vector<int>> {
                                   batches.push_back(numbers);
                                   for (int i = 1; numbers.front() == 0 && i <= 3; ++i) peer->call("at_once", "[1]", i);
                                   co_return numbers;
                                 },
                                 {.size = 1}));
  peer->call("at_once", "[0]", 9);
  EXPECT_EQ(batches, (Batches{{0}}));
  settle();
  EXPECT_EQ(batches, (Batches{{0}, {1}, {1}, {1}}));
}

TEST_F(BatchedMethod, work_that_the_pool_drops_leaves_the_function_free) {
  add_double({.size = 1});
  peer->call("double", "[1]", 1);
  pool.works.clear();
  settle();
  EXPECT_EQ(batches, (Batches{{1}})) << "it is started once more";
  peer->call("double", "[2]", 2);
  settle();
  EXPECT_EQ(batches, (Batches{{1}, {2}}));
}

TEST_F(BatchedMethod, it_is_counted_how_many_leave_together_and_how_long_the_first_has_waited) {
  add_double({.size = 4, .wait = 10ms});
  for (int i = 1; i <= 4; ++i) peer->call("double", "[1]", i);
  settle();
  peer->call("double", "[1]", 5);
  scheduler.advance(8ms);
  peer->call("double", "[1]", 6);
  scheduler.advance(2ms);
  settle();
  ASSERT_EQ(batches.size(), 2U);
  const detail::BatchSpreads seen = registry.find("double")->batches()->spreads().value();
  EXPECT_EQ(seen.calls.count, 2U);
  EXPECT_EQ(seen.calls.sum, 6U);
  EXPECT_EQ(seen.calls.max, 4U);
  EXPECT_EQ(seen.waits.count, 2U);
  EXPECT_EQ(std::chrono::nanoseconds{seen.waits.sum}, 10ms);
  registry.method("plain", [] {});
  EXPECT_EQ(registry.find("plain")->batches(), nullptr);
}

TEST_F(BatchedMethod, the_schema_shows_one_call) {
  add_double({.size = 8});
  const Method& method = *registry.find("double");
  ASSERT_EQ(method.signature().arguments.size(), 1U);
  EXPECT_EQ(json_schema(*method.signature().arguments[0].type), json_schema(detail::TypeInfoOf<int>::value));
  EXPECT_EQ(json_schema(*method.signature().result), json_schema(detail::TypeInfoOf<int>::value));
}

TEST(BatchGroups, NumbersThatJsonCannotExpressHaveTheirOwn) {
  using Types = detail::BatchTypesOf<std::vector<int>(std::vector<int>, Shared<double>)>::type;
  const auto of = [](double value) { return Types::group_of({1, {value}}); };
  EXPECT_EQ(of(std::numeric_limits<double>::quiet_NaN()), of(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_NE(of(std::numeric_limits<double>::infinity()), of(1));
}

TEST(BatchOptionsOf, WhatIsOutOfItsRangeIsRefused) {
  const auto echo = [](std::vector<int> numbers) { return numbers; };
  for (const BatchOptions& options :
       {BatchOptions{.size = 0}, BatchOptions{.size = 65'537}, BatchOptions{.wait = -1us}, BatchOptions{.wait = 61s},
        BatchOptions{.bytes = 0}, BatchOptions{.concurrent = 0}, BatchOptions{.size = 8, .queue = 7},
        BatchOptions{.bytes = 100, .queue_bytes = 99}})
    EXPECT_THROW(static_cast<void>(batched(echo, options)), std::invalid_argument);
}

}  // namespace
}  // namespace wirecall
