// Batched functions that give each call a stream of its own, on clocks and threads that the test moves, and of a real
// server and broker.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <expected>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/batching/batched_method.hpp"
#include "tests/connection/peer.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::cancelled;
using test::error_reply;
using test::internal_error;
using test::invalid_params;
using test::request;
using test::result_reply;
using test::timed_out;

class BatchedStreams : public BatchedMethod {
 protected:
  static Stream<int> count(int n) {
    for (int i = 0; i < n; ++i) co_yield i;
  }
  static std::string stream_request(std::string_view method, std::string_view params, int credit, int id,
                                    std::string_view more = {}) {
    return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} +
           R"(,"stream":)" + std::to_string(credit) + std::string{more} + R"(,"id":)" + std::to_string(id) + "}";
  }
  static std::string grant(int more, int id) {
    return test::notification("rpc.credit", R"({"id":)" + std::to_string(id) + R"(,"n":)" + std::to_string(more) + "}");
  }
  static std::string item(int id, int sequence, std::string_view value) {
    return R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":)" + std::to_string(id) + R"(,"seq":)" +
           std::to_string(sequence) + R"(,"value":)" + std::string{value} + "}}";
  }
  static std::string done(int id) { return result_reply("null", std::to_string(id)); }
  template <class... Lines>
  static std::string lines(const std::string& first, const Lines&... more) {
    return (first + ... + ("\n" + more));
  }

  /// Each call counts up to its number; notes each batch.
  void add_count(BatchOptions options) {
    registry.method("count",
                    batched(
                        [this](const std::vector<int>& numbers) {
                          batches.push_back(numbers);
                          std::vector<Stream<int>> streams;
                          for (const int number : numbers) streams.push_back(count(number));
                          return streams;
                        },
                        std::move(options)),
                    {"n"});
  }
  /// Each call's stream waits for 10 ms before each item.
  void add_ticks(BatchOptions options = {}) {
    registry.method("ticks",
                    batched(
                        [this](std::vector<Context> contexts, const std::vector<int>& numbers) {
                          batches.push_back(numbers);
                          std::vector<Stream<int>> streams;
                          for (std::size_t i = 0; i != numbers.size(); ++i)
                            streams.push_back(tick(contexts[i], numbers[i], alive));
                          return streams;
                        },
                        std::move(options)),
                    {"n"});
  }
  Stream<int> tick(Context context, int n, [[maybe_unused]] std::shared_ptr<int> held) {
    ++begun;
    for (int i = 0; i < n; ++i) {
      co_await sleep_for(context, 10ms);
      co_yield i;
    }
  }
  [[nodiscard]] long streams_alive() const { return alive.use_count() - 1; }
  void advance(std::chrono::nanoseconds time) {
    scheduler.advance(time);
    settle();
  }

  std::shared_ptr<int> alive = std::make_shared<int>();  // each stream of ticks holds it
  int begun = 0;                                         // of those
};

TEST_F(BatchedStreams, give_each_call_its_own_items_before_its_answer) {
  add_count({.size = 8});
  Peer other{*this};
  peer->send(stream_request("count", "[2]", 10, 1));
  other.send(stream_request("count", R"({"n":1})", 10, 1));
  peer->send(stream_request("count", "[0]", 10, 2));
  settle();
  EXPECT_EQ(batches, (Batches{{2, 1, 0}})) << "the function is called once";
  EXPECT_EQ(received(), lines(item(1, 0, "0"), item(1, 1, "1"), done(1), done(2)));
  EXPECT_EQ(other.sink.take(), lines(item(1, 0, "0"), done(1)));
  EXPECT_EQ(peer->dispatcher.in_flight(), 0U);
}

TEST_F(BatchedStreams, never_run_in_turn_however_quick_the_function_is) {
  add_count({.size = 8});
  loop.services.watchdog_slot = &watchdog_slot;
  for (int i = 0; i != 40; ++i) {
    peer->send(stream_request("count", "[1]", 10, 1));
    EXPECT_TRUE(inbox->posted.empty());
    settle();
    EXPECT_EQ(received(), lines(item(1, 0, "0"), done(1)));
  }
}

TEST_F(BatchedStreams, go_as_fast_as_their_own_callers_take_them) {
  add_count({.size = 8});
  peer->send(stream_request("count", "[3]", 1, 1));
  peer->send(stream_request("count", "[2]", 9, 2));
  settle();
  EXPECT_EQ(received(), lines(item(1, 0, "0"), item(2, 0, "0"), item(2, 1, "1"), done(2)));
  peer->send(grant(1, 1));
  EXPECT_EQ(received(), item(1, 1, "1"));
  peer->send(grant(1, 1));
  EXPECT_EQ(received(), lines(item(1, 2, "2"), done(1)));
}

TEST_F(BatchedStreams, credit_that_comes_before_the_function_has_run_counts) {
  add_count({.size = 8});
  peer->send(stream_request("count", "[3]", 1, 1));
  peer->send(grant(9, 1));
  settle();
  EXPECT_EQ(received(), lines(item(1, 0, "0"), item(1, 1, "1"), item(1, 2, "2"), done(1)));
}

TEST_F(BatchedStreams, another_batch_runs_while_they_do) {
  add_ticks({.size = 1});
  peer->send(stream_request("ticks", "[1]", 9, 1));
  settle();
  peer->send(stream_request("ticks", "[1]", 9, 2));
  settle();
  EXPECT_EQ(batches, (Batches{{1}, {1}}));
  EXPECT_EQ(streams_alive(), 2);
  advance(10ms);
  EXPECT_EQ(received(), lines(item(1, 0, "0"), done(1), item(2, 0, "0"), done(2)));
  EXPECT_EQ(streams_alive(), 0);
}

TEST_F(BatchedStreams, are_one_array_where_no_items_are_asked_for) {
  add_count({.size = 8});
  peer->call("count", "[3]", 1);
  peer->send("[" + request("count", "[2]", "2") + "," + stream_request("count", "[1]", 9, 3) + "," +
             test::notification("count", "[5]") + "]");
  settle();
  EXPECT_EQ(batches, (Batches{{3, 2, 1, 5}}));
  EXPECT_EQ(received(), lines(result_reply("[0,1,2]", "1"),
                              "[" + result_reply("[0,1]", "2") + "," + result_reply("[0]", "3") + "]"));
}

TEST_F(BatchedStreams, send_progress_to_whom_asks_for_it) {
  add_count({.size = 8});
  peer->call("count", R"({"n":1,"partialResultToken":"t"})", 1);
  settle();
  EXPECT_EQ(received(), lines(R"({"jsonrpc":"2.0","method":"$/progress","params":{"token":"t","value":0}})", done(1)));
}

TEST_F(BatchedStreams, a_cancelled_call_is_in_no_batch) {
  add_count({.size = 8, .wait = 1s});
  peer->send(stream_request("count", "[1]", 9, 1));
  peer->send(stream_request("count", "[2]", 9, 2));
  peer->cancel(1);
  EXPECT_EQ(received(), cancelled("1"));
  advance(1s);
  EXPECT_EQ(batches, (Batches{{2}}));
  EXPECT_EQ(received(), lines(item(2, 0, "0"), item(2, 1, "1"), done(2)));
}

TEST_F(BatchedStreams, the_stream_of_a_call_that_is_cancelled_while_the_function_runs_never_begins) {
  add_ticks();
  peer->send(stream_request("ticks", "[1]", 9, 1));
  peer->send(stream_request("ticks", "[1]", 9, 2));
  scheduler.advance(0ns);
  pool.run_all();
  peer->cancel(1);
  settle();
  EXPECT_EQ(streams_alive(), 1);
  EXPECT_EQ(begun, 1);
  advance(10ms);
  EXPECT_EQ(received(), lines(cancelled("1"), item(2, 0, "0"), done(2)));
}

TEST_F(BatchedStreams, a_caller_that_cancels_ends_its_own_alone) {
  add_ticks();
  peer->send(stream_request("ticks", "[2]", 9, 1));
  peer->send(stream_request("ticks", "[2]", 9, 2));
  settle();
  advance(10ms);
  EXPECT_EQ(received(), lines(item(1, 0, "0"), item(2, 0, "0")));
  EXPECT_EQ(streams_alive(), 2);
  peer->cancel(1);
  EXPECT_EQ(streams_alive(), 1) << "its frame has gone";
  advance(10ms);
  EXPECT_EQ(received(), lines(cancelled("1"), item(2, 1, "1"), done(2)));
  EXPECT_EQ(streams_alive(), 0);
}

TEST_F(BatchedStreams, a_caller_that_waits_for_no_more_credit_can_cancel) {
  add_count({.size = 8});
  peer->send(stream_request("count", "[5]", 1, 1));
  settle();
  EXPECT_EQ(received(), item(1, 0, "0"));
  peer->cancel(1);
  EXPECT_EQ(received(), cancelled("1"));
  EXPECT_EQ(peer->dispatcher.in_flight(), 0U);
}

TEST_F(BatchedStreams, deadlines_are_the_calls_own) {
  add_ticks({.size = 8, .wait = 10ms});
  peer->send(stream_request("ticks", "[9]", 99, 1, R"(,"timeout_ms":5)"));
  peer->send(stream_request("ticks", "[9]", 99, 2, R"(,"timeout_ms":25)"));
  peer->send(stream_request("ticks", "[2]", 99, 3));
  advance(5ms);
  EXPECT_EQ(received(), timed_out("1")) << "before the batch has left";
  advance(5ms);
  EXPECT_EQ(batches, (Batches{{9, 2}}));
  advance(10ms);
  EXPECT_EQ(received(), lines(item(2, 0, "0"), item(3, 0, "0")));
  advance(5ms);
  EXPECT_EQ(received(), timed_out("2"));
  EXPECT_EQ(streams_alive(), 1);
  advance(5ms);
  EXPECT_EQ(received(), lines(item(3, 1, "1"), done(3)));
}

TEST_F(BatchedStreams, callers_that_disconnect_leave_the_others) {
  add_ticks();
  auto other = std::make_unique<Peer>(*this);
  auto third = std::make_unique<Peer>(*this);
  other->send(stream_request("ticks", "[9]", 9, 1));
  peer->send(stream_request("ticks", "[1]", 9, 2));
  third->send(stream_request("ticks", "[9]", 9, 1));
  scheduler.advance(0ns);
  pool.run_all();
  third.reset();
  settle();
  EXPECT_EQ(streams_alive(), 2);
  other.reset();
  EXPECT_EQ(streams_alive(), 1);
  advance(10ms);
  EXPECT_EQ(received(), lines(item(2, 0, "0"), done(2)));
}

TEST_F(BatchedStreams, what_one_throws_is_its_own_calls_error) {
  registry.method("fail", batched([](const std::vector<int>& numbers) {
                    const auto stream = [](int number) -> Stream<int> {
                      co_yield number;
                      if (number == 1) throw Error{7, "broken"};
                      if (number == 2) throw std::runtime_error("secret");
                      co_yield 10 * number;
                    };
                    std::vector<Stream<int>> streams;
                    for (const int number : numbers) streams.push_back(stream(number));
                    return streams;
                  }));
  for (int i = 1; i <= 3; ++i) peer->send(stream_request("fail", "[" + std::to_string(i) + "]", 9, i));
  settle();
  EXPECT_EQ(received(), lines(item(1, 0, "1"), error_reply(7, "broken", {}, "1"), item(2, 0, "2"), internal_error("2"),
                              item(3, 0, "3"), item(3, 1, "30"), done(3)));
  ASSERT_EQ(log.size(), 1U);
  EXPECT_NE(log[0].find("secret"), std::string::npos) << log[0];
}

TEST_F(BatchedStreams, an_error_in_place_of_one_is_its_own_calls) {
  registry.method("some", batched([](const std::vector<int>& numbers) {
                    std::vector<std::expected<Stream<int>, Error>> streams;
                    for (const int number : numbers) {
                      if (number < 0) {
                        streams.emplace_back(std::unexpected(Error{7, "negative"}));
                      } else {
                        streams.emplace_back(count(number));
                      }
                    }
                    return streams;
                  }));
  peer->send(stream_request("some", "[1]", 9, 1));
  peer->send(stream_request("some", "[-1]", 9, 2));
  settle();
  EXPECT_EQ(received(), lines(item(1, 0, "0"), done(1), error_reply(7, "negative", {}, "2")));
  EXPECT_TRUE(registry.find("some")->signature().stream);
}

TEST_F(BatchedStreams, an_empty_one_has_no_items) {
  registry.method("none",
                  batched([](const std::vector<int>& numbers) { return std::vector<Stream<int>>(numbers.size()); }));
  peer->send(stream_request("none", "[1]", 9, 1));
  settle();
  EXPECT_EQ(received(), done(1));
}

TEST_F(BatchedStreams, what_the_function_throws_fails_all) {
  registry.method("fail", batched([](const std::vector<int>& numbers) -> std::vector<Stream<int>> {
                    std::vector<Stream<int>> streams;
                    streams.push_back(count(1));
                    if (numbers.front() == 1) throw Error{5, "all of them"};
                    throw std::runtime_error("secret");
                  }));
  peer->send(stream_request("fail", "[1]", 9, 1));
  peer->send(stream_request("fail", "[2]", 9, 2));
  settle();
  EXPECT_EQ(received(), lines(error_reply(5, "all of them", {}, "1"), error_reply(5, "all of them", {}, "2")));
  EXPECT_TRUE(log.empty());
  peer->send(stream_request("fail", "[2]", 9, 1));
  peer->send(stream_request("fail", "[2]", 9, 2));
  settle();
  EXPECT_EQ(received(), lines(internal_error("1"), internal_error("2")));
  EXPECT_EQ(log.size(), 1U) << "once, not for each";
}

TEST_F(BatchedStreams, another_number_of_them_is_an_error_of_all_and_the_log_says_so) {
  registry.method("lose", batched([this](const std::vector<int>& numbers) {
                    std::vector<Stream<int>> streams;
                    for (std::size_t i = 0; i + 1 < numbers.size(); ++i) streams.push_back(tick({}, 1, alive));
                    return streams;
                  }));
  peer->send(stream_request("lose", "[1]", 9, 1));
  peer->send(stream_request("lose", "[2]", 9, 2));
  settle();
  EXPECT_EQ(received(), lines(internal_error("1"), internal_error("2")));
  EXPECT_EQ(streams_alive(), 0);
  ASSERT_EQ(log.size(), 1U);
  EXPECT_NE(log[0].find("a batch of 2 calls has 1 results"), std::string::npos) << log[0];
}

TEST_F(BatchedStreams, params_that_are_wrong_or_too_many_are_refused_alone) {
  add_count({.size = 2, .wait = 1s, .queue = 2});
  peer->send(stream_request("count", R"(["x"])", 9, 1));
  EXPECT_EQ(received(), invalid_params(R"({"loc":["n"],"expected":"integer","got":"\"x\""})"));
  for (int i = 1; i <= 3; ++i) peer->send(stream_request("count", "[1]", 9, i));
  const std::string refused = received();
  EXPECT_NE(refused.find(R"("code":-32005)"), std::string::npos) << refused;
  settle();
  EXPECT_EQ(received(), lines(item(1, 0, "0"), done(1), item(2, 0, "0"), done(2)));
}

TEST_F(BatchedStreams, of_a_function_that_waits_begin_when_it_has_ended) {
  registry.method("later", batched([this](const std::vector<int>& numbers) -> Task<std::vector<Stream<int>>> {
                    co_await sleep_for(scheduler, 5ms);
                    if (numbers.front() == 0) throw Error{9, "late"};
                    std::vector<Stream<int>> streams;
                    for (const int number : numbers) streams.push_back(count(number));
                    co_return streams;
                  }));
  registry.method("some_later", batched([](std::vector<int>) -> Task<std::vector<std::expected<Stream<int>, Error>>> {
                    std::vector<std::expected<Stream<int>, Error>> streams;
                    streams.emplace_back(count(1));
                    streams.emplace_back(std::unexpected(Error{7, "no"}));
                    co_return streams;
                  }));
  peer->send(stream_request("later", "[1]", 9, 1));
  peer->call("later", "[2]", 2);
  settle();
  EXPECT_EQ(received(), "");
  advance(5ms);
  EXPECT_EQ(received(), lines(item(1, 0, "0"), done(1), result_reply("[0,1]", "2")));
  peer->send(stream_request("later", "[0]", 9, 3));
  settle();
  advance(5ms);
  EXPECT_EQ(received(), error_reply(9, "late", {}, "3"));
  peer->send(stream_request("some_later", "[0]", 9, 4));
  peer->send(stream_request("some_later", "[0]", 9, 5));
  settle();
  EXPECT_EQ(received(), lines(item(4, 0, "0"), done(4), error_reply(7, "no", {}, "5")));
}

TEST_F(BatchedStreams, run_on_their_own_callers_loop_by_its_timers) {
  test::VirtualScheduler other_scheduler;
  auto other_inbox = std::make_shared<Inbox>();
  rpc::LoopContext other_loop{json_codec(), &other_scheduler, &log_sink};
  other_loop.services.blocking_pool = &pool;
  other_loop.tasks.set_executor(other_inbox);
  const auto streams_of = [this](const std::vector<Context>& contexts) {
    std::vector<Stream<int>> streams;
    for (const Context& context : contexts) streams.push_back(tick(context, 1, nullptr));
    return streams;
  };
  registry.method("plain", batched(streams_of));
  registry.method("waits", batched([streams_of](std::vector<Context> contexts) -> Task<std::vector<Stream<int>>> {
                    co_return streams_of(contexts);
                  }));
  for (const char* const method : {"plain", "waits"}) {
    Peer other{*this, other_loop};
    peer->send(stream_request(method, "[]", 9, 1));
    other.send(stream_request(method, "[]", 9, 2));
    settle();
    other_inbox->run();
    advance(10ms);
    EXPECT_EQ(received(), lines(item(1, 0, "0"), done(1)));
    EXPECT_EQ(other.sink.take(), "");
    other_scheduler.advance(10ms);
    EXPECT_EQ(other.sink.take(), lines(item(2, 0, "0"), done(2)));
  }
}

TEST_F(BatchedStreams, what_a_call_borrows_is_kept_until_its_stream_has_ended) {
  const auto words = [](Context context, std::string_view text) -> Stream<std::string_view> {
    co_yield text.substr(0, 1);
    co_await sleep_for(context, 10ms);
    co_yield text;
  };
  registry.method("read", batched([words](std::vector<Context> contexts, std::span<const std::string_view> texts) {
                    std::vector<Stream<std::string_view>> streams;
                    for (std::size_t i = 0; i != texts.size(); ++i) streams.push_back(words(contexts[i], texts[i]));
                    return streams;
                  }));
  peer->send(stream_request("read", R"(["a text that no string keeps within itself"])", 9, 1));
  peer->send(stream_request("read", R"(["\nescaped, so that the reader has it in memory of its own"])", 9, 2));
  settle();
  EXPECT_EQ(received(), lines(item(1, 0, R"("a")"), item(2, 0, R"("\n")")));
  advance(10ms);
  EXPECT_EQ(received(), lines(item(1, 1, R"("a text that no string keeps within itself")"), done(1),
                              item(2, 1, R"("\nescaped, so that the reader has it in memory of its own")"), done(2)));
}

TEST_F(BatchedStreams, end_with_their_loop) {
  add_ticks();
  peer->send(stream_request("ticks", "[9]", 9, 1));
  peer->send(stream_request("ticks", "[9]", 9, 2));
  settle();
  EXPECT_EQ(streams_alive(), 2);
  // One whose batch has run, and that has not begun.
  peer->send(stream_request("ticks", "[9]", 9, 3));
  scheduler.advance(0ns);
  pool.run_all();
  EXPECT_EQ(streams_alive(), 3);
  peer.reset();
  loop.tasks.destroy_all();
  inbox->posted.clear();
  EXPECT_EQ(streams_alive(), 0);
  EXPECT_EQ(loop.stats.calls_in_flight, 0U);
}

TEST_F(BatchedStreams, of_a_function_that_is_at_work_when_the_loop_ends_never_begin) {
  registry.method("leave", batched([this](const std::vector<Context>& contexts) {
                    peer.reset();
                    std::vector<Stream<int>> streams;
                    for (const Context& context : contexts) streams.push_back(tick(context, 9, alive));
                    return streams;
                  }));
  peer->send(stream_request("leave", "[]", 9, 1));
  peer->call("leave", "[]", 2);
  scheduler.advance(0ns);
  pool.run_all();
  EXPECT_EQ(streams_alive(), 2);
  inbox->posted.clear();  // as of a loop that has ended
  EXPECT_EQ(streams_alive(), 0);
  EXPECT_EQ(begun, 0);
}

TEST_F(BatchedStreams, without_a_loop_a_call_is_a_batch_of_its_own) {
  add_count({.size = 8, .wait = 1s});
  registry.method("async", batched([](std::vector<int> numbers) -> Task<std::vector<Stream<int>>> {
                    std::vector<Stream<int>> streams;
                    streams.push_back(count(numbers.front()));
                    co_return streams;
                  }));
  EXPECT_EQ(registry.handle(request("count", "[2]")), result_reply("[0,1]"));
  EXPECT_EQ(registry.handle(request("async", "[2]")), result_reply("[0,1]"));
}

TEST_F(BatchedStreams, without_a_pool_the_function_runs_on_the_loop) {
  loop.services.blocking_pool = nullptr;
  add_count({.size = 2, .wait = 1s});
  peer->send(stream_request("count", "[1]", 9, 1));
  peer->send(stream_request("count", "[1]", 9, 2));
  settle();
  EXPECT_EQ(received(), lines(item(1, 0, "0"), done(1), item(2, 0, "0"), done(2)));
}

TEST_F(BatchedStreams, what_discover_tells_is_that_of_a_function_of_one_stream) {
  add_count({.size = 8});
  registry.method("one", count, {"n"});
  peer->call("rpc.discover", "[]", 1);
  nlohmann::json methods = nlohmann::json::parse(received()).at("result").at("methods");
  const auto described = [&methods](std::string_view name) {
    nlohmann::json method = *std::ranges::find_if(
        methods, [name](const nlohmann::json& one) { return one.at("name").get<std::string>() == name; });
    method.erase("name");
    return method;
  };
  EXPECT_EQ(described("count"), described("one"));
  EXPECT_TRUE(registry.find("count")->signature().stream);
}

TEST_F(BatchedStreams, can_be_neither_kept_nor_subscribed_to) {
  const auto none = [](const std::vector<int>& numbers) { return std::vector<Stream<int>>(numbers.size()); };
  EXPECT_THROW(registry.method("kept", batched(none), MethodOptions{.params = {"n"}, .cache = {.entries = 10}}),
               std::invalid_argument);
  const SubscriptionNames names{.subscribe = "begin", .unsubscribe = "end", .notification = "event"};
  EXPECT_THROW(registry.subscription(names, batched(none)), std::invalid_argument);
  EXPECT_EQ(registry.find("kept"), nullptr);
  EXPECT_EQ(registry.find("begin"), nullptr);
}

// ---- of a real server ----

class BatchedStreamServer : public testing::Test {
 protected:
  static constexpr int kCallers = 4;
  static constexpr int kRounds = 50;

  static Stream<int> count(int n) {
    for (int i = 0; i < n; ++i) co_yield i;
  }
  static std::vector<Stream<int>> counts(const std::vector<int>& numbers) {
    std::vector<Stream<int>> streams;
    for (const int number : numbers) streams.push_back(count(number));
    return streams;
  }
  static Task<std::vector<Stream<int>>> counts_later(std::vector<int> numbers) { co_return counts(numbers); }
  static Stream<int> forever(Context context) {
    for (int i = 0;; ++i) {
      co_yield i;
      co_await sleep_for(context, 1ms);
    }
  }
  static std::vector<Stream<int>> for_ever(std::vector<Context> contexts) {
    std::vector<Stream<int>> streams;
    for (const Context& context : contexts) streams.push_back(forever(context));
    return streams;
  }
  static Options options() {
    Options options;
    options.thread_count = 2;
    return options;
  }
  static void call_all(const std::string& uri, std::string_view method) {
    std::vector<std::jthread> callers;
    for (int caller = 0; caller != kCallers; ++caller) {
      callers.emplace_back([&uri, method, caller] {
        Client client{uri};
        for (int round = 0; round != kRounds; ++round) {
          const int number = (caller + round) % 7;
          auto plain = client.request<std::vector<int>>(method, number).future();
          int next = 0;
          for (const int item : client.stream<int>(method, number + 200)) EXPECT_EQ(item, next++);
          EXPECT_EQ(next, number + 200);
          EXPECT_EQ(plain.get().size(), static_cast<std::size_t>(number));
        }
      });
    }
  }
};

TEST_F(BatchedStreamServer, gathers_the_calls_of_several_loops) {
  Server server{options()};
  server.batch_method("count", counts, {.size = 16, .queue = 1000}, {"n"});
  server.batch_method("later", counts_later, {.size = 16, .wait = 100us, .concurrent = 2, .queue = 1000}, {"n"});
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const net::RunningServer running{server};
  call_all(endpoint.uri(), "count");
  call_all(endpoint.uri(), "later");
}

TEST_F(BatchedStreamServer, survives_callers_that_give_up_and_leave) {
  Server server{options()};
  server.batch_method("for_ever", for_ever, {.size = 4, .wait = 1ms, .queue = 64});
  server.batch_method("count", counts, {.size = 4, .wait = 1ms, .queue = 64}, {"n"});
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const net::RunningServer running{server};
  for (int round = 0; round != kRounds; ++round) {
    Client client{endpoint.uri()};
    std::optional<Client> leaving{std::in_place, endpoint.uri()};
    std::optional<ResultStream<int>> given_up{client.stream<int>("for_ever")};
    std::optional<ResultStream<int>> left{leaving->stream<int>("for_ever")};
    if (round % 2 == 0) {
      EXPECT_EQ(*given_up->begin(), 0);
      EXPECT_EQ(*left->begin(), 0);
    }
    given_up.reset();
    left.reset();
    leaving.reset();
    int items = 0;
    for (const int item : client.stream<int>("count", 5)) EXPECT_EQ(item, items++);
    EXPECT_EQ(items, 5);
  }
}

TEST_F(BatchedStreamServer, ends_while_streams_run) {
  for (int round = 0; round != 10; ++round) {
    Options options = BatchedStreamServer::options();
    options.drain_ms = 1;
    Server server{options};
    std::atomic<int> begun = 0;
    server.batch_method("for_ever",
                        [&begun](std::vector<Context> contexts) {
                          begun += static_cast<int>(contexts.size());
                          return for_ever(std::move(contexts));
                        },
                        {.size = 4, .queue = 64});
    const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
    std::vector<std::jthread> callers;
    {
      const net::RunningServer running{server};
      for (int caller = 0; caller != kCallers; ++caller) {
        callers.emplace_back([uri = endpoint.uri()] {
          try {
            Client client{uri};
            for (const int item : client.stream<int>("for_ever")) EXPECT_GE(item, 0);
            ADD_FAILURE() << "it has no end";
          } catch (const Error&) {
          }
        });
      }
      EXPECT_TRUE(net::comes_true([&begun] { return begun == kCallers; }));
    }
  }
}

TEST_F(BatchedStreamServer, clients_provide_them_at_a_broker) {
  Broker broker;
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  const net::RunningServer running{broker};
  Client provider{endpoint.uri()};
  provider.provide("count", batched(counts, {.size = 8}), {.params = {"n"}});
  provider.provide("later", batched(counts_later, {.size = 8}), {.params = {"n"}});
  provider.connect();
  call_all(endpoint.uri(), "count");
  call_all(endpoint.uri(), "later");
}

TEST_F(BatchedStreamServer, at_a_broker_any_number_of_them_runs_at_once) {
  Broker broker;
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  const net::RunningServer running{broker};
  Client provider{endpoint.uri()};
  provider.provide("for_ever", batched(for_ever, {.size = 1}));
  provider.connect();
  Client client{endpoint.uri()};
  std::vector<ResultStream<int>> streams;
  for (int i = 0; i != 5; ++i) streams.push_back(client.stream<int>("for_ever"));
  for (ResultStream<int>& stream : streams) EXPECT_EQ(*stream.begin(), 0);
}

}  // namespace
}  // namespace wirecall
