// Methods whose results are kept: which calls are the same call, who shares a run and who leaves it, and for how long.
#include <algorithm>
#include <array>
#include <chrono>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "message/transcoder.hpp"
#include "tests/rpc/instruction_count.hpp"
#include "tests/rpc/peer.hpp"
#include "wirecall/registry.hpp"

namespace cached {

inline int divisions = 0;
inline void divide(int a, int b, int& quotient, wirecall::Out<int> remainder) {
  ++divisions;
  quotient += a / b;
  *remainder = a % b;
}
struct Counter {
  int count = 0;
  int add(int n) { return count += n; }
};

}  // namespace cached

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::error_reply;
using test::notification;
using test::request;
using test::result_reply;

// Several peers of one loop.
class Loop {
 public:
  explicit Loop(const Registry& registry, const Limits& limits = {})
      : limits_(limits), context(json_codec(), &scheduler, &log_), registry_(registry) {}

  struct Peer {
    Peer(const Registry& registry, const Limits& limits, rpc::LoopContext& context)
        : dispatcher(registry, sink, limits, context), limits_(limits) {}
    void send(std::string_view text) {
      const test::PaddedText frame{text};
      Received message;
      ASSERT_EQ(read_message(frame.view(), limits_, true, message).status, ScanStatus::complete);
      dispatcher.handle(message);
    }
    std::string ask(std::string_view text) {
      send(text);
      return sink.take();
    }
    void cancel(std::string_view id) { send(notification("$/cancelRequest", R"({"id":)" + std::string{id} + "}")); }

    test::RecordingSink sink;
    rpc::Dispatcher dispatcher;

   private:
    const Limits& limits_;
  };
  std::unique_ptr<Peer> peer() { return std::make_unique<Peer>(registry_, limits_, context); }

  test::VirtualScheduler scheduler;

 private:
  Limits limits_;
  LogSink log_ = [](const LogRecord&) {};

 public:
  rpc::LoopContext context;

 private:
  const Registry& registry_;
};

struct Point {
  int x = 0;
  std::optional<int> y;
};

class CachedMethod : public testing::Test {
 protected:
  CacheOptions bounds{.entries = 100};
  Registry registry;
  int runs = 0;
};

TEST_F(CachedMethod, runs_once_for_arguments_that_are_equal_as_decoded) {
  registry.method("add", [this](double a, double b) { return ++runs, a + b; }, {.params = {"a", "b"}, .cache = bounds});
  Loop loop{registry};
  const auto peer = loop.peer();
  for (const char* params : {"[1,2]", "[1.0,2]", " [ 1 , 2.0e0 ] ", R"({"a":1,"b":2})", R"({"b":2, "a":10e-1})"})
    EXPECT_EQ(peer->ask(request("add", params)), result_reply("3")) << params;
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(peer->ask(request("add", "[2,1]")), result_reply("3"));
  EXPECT_EQ(peer->ask(request("add", "[-0.0,2]")), result_reply("2"));
  EXPECT_EQ(peer->ask(request("add", "[0.0,2]")), result_reply("2"));
  EXPECT_EQ(runs, 4);
  EXPECT_EQ(loop.context.stats.cache_hits, 4U);
  EXPECT_EQ(loop.context.stats.cache_misses, 4U);
  EXPECT_EQ(loop.context.stats.cache_entries, 4U);
  EXPECT_GT(loop.context.stats.cache_bytes, 4U * 256U);
  EXPECT_EQ(loop.context.stats.calls, 8U);
}

TEST_F(CachedMethod, fills_in_defaults_before_it_compares) {
  registry.method("add", [this](int a, int b) { return ++runs, a + b; },
                  {.params = {"a", Param("b").default_value(5)}, .cache = bounds});
  registry.method("point", [this](const Point& p) { return ++runs, p.x; }, {.params = {"p"}, .cache = bounds});
  Loop loop{registry};
  const auto peer = loop.peer();
  EXPECT_EQ(peer->ask(request("add", "[1]")), result_reply("6"));
  EXPECT_EQ(peer->ask(request("add", R"({"b":5,"a":1})")), result_reply("6"));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(peer->ask(request("point", R"([{"x":1}])")), result_reply("1"));
  EXPECT_EQ(peer->ask(request("point", R"([{"z":[], "y":null, "x":1}])")), result_reply("1"));
  EXPECT_EQ(runs, 2);
}

TEST_F(CachedMethod, orders_the_members_of_values_and_maps) {
  registry.method("value", [this](const Value& v) { return ++runs, v.size(); }, {.params = {"v"}, .cache = bounds});
  registry.method("map", [this](const std::unordered_map<std::string, Value>& v) { return ++runs, v.size(); },
                  {.params = {"v"}, .cache = bounds});
  Loop loop{registry};
  const auto peer = loop.peer();
  for (const char* method : {"value", "map"}) {
    runs = 0;
    for (const char* params :
         {R"([{"a":1,"b":{"c":[1,2.5],"d":"x"}}])", R"([{"b":{"d":"\u0078", "c":[1,25e-1]},"a":1}])"})
      EXPECT_EQ(peer->ask(request(method, params)), result_reply("2"));
    EXPECT_EQ(runs, 1);
    for (const char* params : {R"([{"a":1,"b":{"c":[2.5,1],"d":"x"}}])", R"([{"a":"1","b":{"c":[1,2.5],"d":"x"}}])",
                               R"([{"a":1,"b":{"c":[1,2.5],"e":"x"}}])", R"([{"a":true,"b":{"c":[1,2.5],"d":"x"}}])",
                               R"([{"a":1.0,"b":{"c":[1,2.5],"d":"x"}}])"})
      EXPECT_EQ(peer->ask(request(method, params)), result_reply("2"));
    EXPECT_EQ(runs, 6);
  }
  runs = 0;
  EXPECT_EQ(peer->ask(request("value", R"([{"a":1,"a":2}])")), result_reply("2"));
  EXPECT_EQ(peer->ask(request("value", R"([{"a":2,"a":1}])")), result_reply("2"));
  EXPECT_EQ(peer->ask(request("value", "[18446744073709551615]")), result_reply("0"));
  EXPECT_EQ(peer->ask(request("value", "[18446744073709551614]")), result_reply("0"));
  EXPECT_EQ(peer->ask(request("value", "[9007199254740993]")), result_reply("0"));
  EXPECT_EQ(peer->ask(request("value", "[9007199254740992.0]")), result_reply("0"));
  EXPECT_EQ(runs, 6);
}

TEST_F(CachedMethod, makes_keys_of_params_alone_where_it_knows_no_types) {
  registry.add_cached("echo", {.params = {"a", Param("b").default_value(5)}, .cache = bounds},
                      detail::bind([this](const Value& a, int b) { return ++runs, Value::array({a, b}); }));
  Loop loop{registry};
  const auto peer = loop.peer();
  for (const char* params : {R"([{"x":1,"y":2}])", R"({"a":{"y":2,"x":1}})", R"({"b":5.0,"a":{"x":1,"y":2}})"})
    EXPECT_EQ(peer->ask(request("echo", params)), result_reply(R"([{"x":1,"y":2},5])"));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(peer->ask(request("echo", "[1,6]")), result_reply("[1,6]"));
  EXPECT_EQ(peer->ask(request("echo", "[1,7]")), result_reply("[1,7]"));
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(peer->ask(request("echo", "[1.0,7]")), result_reply("[1,7]"));  // which a function can tell from 1
  EXPECT_EQ(runs, 4);
}

TEST_F(CachedMethod, without_parameters_has_one_result) {
  registry.method("time", [this] { return ++runs; }, {.cache = bounds});
  Loop loop{registry};
  const auto peer = loop.peer();
  EXPECT_EQ(peer->ask(request("time")), result_reply("1"));
  EXPECT_EQ(peer->ask(request("time", "[]")), result_reply("1"));
  EXPECT_EQ(peer->ask(request("time", "{}", "\"x\"")), result_reply("1", "\"x\""));
}

TEST_F(CachedMethod, keeps_no_errors) {
  registry.method("div",
                  [this](int a, int b) {
                    ++runs;
                    if (b == 0) throw Error{7, "division by zero", R"({"a":1})"};
                    return a / b;
                  },
                  {.params = {"a", "b"}, .cache = bounds});
  Loop loop{registry};
  const auto peer = loop.peer();
  for (int i = 1; i <= 2; ++i) {
    EXPECT_EQ(peer->ask(request("div", "[1,0]")), error_reply(7, "division by zero", R"({"a":1})"));
    EXPECT_EQ(runs, i);
  }
  EXPECT_EQ(loop.context.stats.errors_other, 2U);
  EXPECT_EQ(peer->ask(request("div", R"(["x",0])")),
            test::invalid_params(R"({"loc":["a"],"expected":"integer","got":"\"x\""})"));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(loop.context.stats.cache_entries, 0U);
}

TEST_F(CachedMethod, forgets_by_the_clock_of_its_loop) {
  registry.method("n", [this](int) { return ++runs; }, {.params = {"n"}, .cache = {.entries = 10, .ttl = 1min}});
  Loop loop{registry};
  const auto peer = loop.peer();
  EXPECT_EQ(peer->ask(request("n", "[1]")), result_reply("1"));
  loop.scheduler.advance(1min - 1ns);
  EXPECT_EQ(peer->ask(request("n", "[1]")), result_reply("1"));
  loop.scheduler.advance(1ns);
  EXPECT_EQ(peer->ask(request("n", "[1]")), result_reply("2"));
}

TEST_F(CachedMethod, serves_batches_and_notifications) {
  registry.method("n", [this](int n) { return ++runs, n; }, {.params = {"n"}, .cache = bounds});
  Loop loop{registry};
  const auto peer = loop.peer();
  EXPECT_EQ(peer->ask("[" + request("n", "[1]", "1") + "," + request("n", "[1]", "2") + "," + notification("n", "[1]") +
                      "," + request("n", "[2]", "3") + "]"),
            "[" + result_reply("1", "1") + "," + result_reply("1", "2") + "," + result_reply("2", "3") + "]");
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(registry.handle(request("n", "[1]")), result_reply("1"));
  EXPECT_EQ(registry.handle(request("n", "[1]")), result_reply("1"));
  EXPECT_EQ(runs, 4);
}

TEST_F(CachedMethod, lets_middleware_see_each_call_once) {
  int before = 0;
  std::vector<int> codes;
  registry.use([&](Call& call, Next next) {
    ++before;
    call.on_reply([&](const Outcome& outcome) { codes.push_back(outcome.code); });
    next(call);
  });
  registry.method("n",
                  [this](int n) {
                    ++runs;
                    if (n < 0) throw Error{7, "negative"};
                    return n;
                  },
                  {.params = {"n"}, .cache = bounds});
  Loop loop{registry};
  const auto peer = loop.peer();
  EXPECT_EQ(peer->ask(request("n", "[1]")), result_reply("1"));
  EXPECT_EQ(peer->ask(request("n", "[1]")), result_reply("1"));
  EXPECT_EQ(peer->ask(request("n", "[-1]")), error_reply(7, "negative"));
  EXPECT_EQ(before, 3);
  EXPECT_EQ(codes, (std::vector{0, 0, 7}));
}

TEST_F(CachedMethod, stays_within_its_bounds_in_a_flood_of_keys) {
  registry.method("n", [this](const std::string& text) { return ++runs, text; },
                  {.params = {"text"}, .cache = {.entries = 50, .bytes = 30'000}});
  Loop loop{registry};
  const auto peer = loop.peer();
  for (int i = 0; i < 2'000; ++i) {
    static_cast<void>(peer->ask(
        request("n", "[\"" + std::string(static_cast<std::size_t>(i % 700), 'x') + std::to_string(i) + "\"]")));
    ASSERT_LE(loop.context.stats.cache_entries, 50U);
    ASSERT_LE(loop.context.stats.cache_bytes, 30'000U);
  }
  EXPECT_EQ(runs, 2'000);
}

TEST_F(CachedMethod, refuses_bounds_that_are_none) {
  const auto add = [&](CacheOptions options) {
    registry.method("n", [](int n) { return n; }, {.params = {"n"}, .cache = options});
  };
  EXPECT_THROW(add({.entries = 0}), std::invalid_argument);
  EXPECT_THROW(add({.entries = (std::size_t{1} << 24) + 1}), std::invalid_argument);
  EXPECT_THROW(add({.entries = 1, .bytes = 0}), std::invalid_argument);
  EXPECT_THROW(add({.entries = 1, .ttl = -1ms}), std::invalid_argument);
  EXPECT_NO_THROW(add({.entries = 1, .ttl = std::chrono::milliseconds::max()}));
}

TEST_F(CachedMethod, keeps_parameters_that_come_back) {
  cached::divisions = 0;
  registry.method<cached::divide>({.params = {"a", "b", "quotient", "remainder"}, .cache = bounds});
  cached::Counter counter;
  registry.method<&cached::Counter::add>(counter, {.params = {"n"}, .cache = bounds});
  Loop loop{registry};
  const auto peer = loop.peer();
  const std::string name = registry.methods().front()->name();
  for (const char* params : {"[7,2,0]", R"({"quotient":0,"b":2,"a":7})"})
    EXPECT_EQ(peer->ask(request(name, params)), result_reply(R"({"return":null,"out":{"quotient":3,"remainder":1}})"));
  EXPECT_EQ(cached::divisions, 1);
  EXPECT_EQ(peer->ask(request(name, "[7,2,1]")), result_reply(R"({"return":null,"out":{"quotient":4,"remainder":1}})"));
  EXPECT_EQ(cached::divisions, 2);
  const std::string member = registry.methods().back()->name();
  EXPECT_EQ(peer->ask(request(member, "[5]")), result_reply("5"));
  EXPECT_EQ(peer->ask(request(member, "[5]")), result_reply("5"));
  EXPECT_EQ(counter.count, 5);
}

// Replies in MessagePack are read as JSON.
TEST_F(CachedMethod, gives_each_caller_its_own_encoding_of_one_result) {
  registry.method("data",
                  [this](const std::vector<std::byte>& bytes) {
                    ++runs;
                    return std::tuple{bytes, 1.5F, std::string{"x"}, 18446744073709551615U};
                  },
                  {.params = {"bytes"}, .cache = bounds});
  const std::string in_json = result_reply(R"([{"$bytes":"YWJj"},1.5,"x",18446744073709551615])");
  const std::string asked = request("data", R"([{"$bytes":"YWJj"}])");
  for (const bool json_first : {true, false}) {
    runs = 0;
    Loop loop{registry};
    const auto json = loop.peer();
    std::map<Encoding, std::string> answers;
    const auto ask_in = [&](Encoding encoding) {
      const auto peer = loop.peer();
      peer->dispatcher.answer_as(MessageForm::native(encoding));
      Buffer text;
      Buffer answer{peer->ask(asked)};
      EXPECT_EQ(loop.context.codecs.native(encoding).to_json(answer.padded(), Limits{}, text),
                message::Transcoder::Status::done);
      EXPECT_EQ(text.view(), in_json);
      EXPECT_NE(answer.view().find("abc"), std::string_view::npos);
    };
    if (json_first) {
      EXPECT_EQ(json->ask(asked), in_json);
    }
    for (int i = 0; i < 2; ++i) {
      ask_in(Encoding::msgpack);
      ask_in(Encoding::cbor);
    }
    EXPECT_EQ(json->ask(asked), in_json);
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(loop.context.stats.cache_entries, 1U);
  }
}

// ---- equal calls in progress ----

class CachedTask : public CachedMethod {
 protected:
  CachedTask() {
    registry.method("wait",
                    [this](int n) -> Task<int> {
                      ++runs;
                      const Ended noted{&ended};
                      try {
                        co_return n + co_await completions.at(static_cast<std::size_t>(n));
                      } catch (const Cancelled&) {
                        ++stopped;
                        throw;
                      }
                    },
                    {.params = {"n"}, .cache = bounds});
  }
  struct Ended {
    int* count;
    explicit Ended(int* ended) : count(ended) {}
    Ended(Ended&&) = delete;
    ~Ended() { ++*count; }
  };
  std::array<Completion<int>, 4> completions;
  int stopped = 0;
  int ended = 0;  // whether by an answer or not
};

TEST_F(CachedTask, runs_once_for_equal_calls_in_progress) {
  Loop loop{registry};
  const auto one = loop.peer();
  const auto other = loop.peer();
  EXPECT_EQ(one->ask(request("wait", "[1]", "1")), "");
  EXPECT_EQ(one->ask(request("wait", R"({"n":1.0})", "2")), "");
  EXPECT_EQ(other->ask(request("wait", "[1]", "3")), "");
  EXPECT_EQ(other->ask(request("wait", "[2]", "4")), "");
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(loop.context.stats.calls_in_flight, 4U);
  EXPECT_EQ(loop.context.stats.cache_joined, 2U);
  completions[1].set(10);
  EXPECT_EQ(one->sink.take(), result_reply("11", "1") + "\n" + result_reply("11", "2"));
  EXPECT_EQ(other->sink.take(), result_reply("11", "3"));
  EXPECT_EQ(one->ask(request("wait", "[1]", "5")), result_reply("11", "5"));
  EXPECT_EQ(loop.context.stats.calls_in_flight, 1U);
  completions[2].set(20);
  EXPECT_EQ(other->sink.take(), result_reply("22", "4"));
  EXPECT_EQ(loop.context.stats.calls_in_flight, 0U);
  EXPECT_EQ(stopped, 0);
}

TEST_F(CachedTask, gives_its_error_to_all_who_wait_and_runs_anew_then) {
  Loop loop{registry};
  const auto one = loop.peer();
  const auto other = loop.peer();
  one->send(request("wait", "[1]", "1"));
  other->send(request("wait", "[1]", "2"));
  completions[1].fail(std::make_exception_ptr(Error{9, "failed"}));
  EXPECT_EQ(one->sink.take(), error_reply(9, "failed", {}, "1"));
  EXPECT_EQ(other->sink.take(), error_reply(9, "failed", {}, "2"));
  EXPECT_EQ(loop.context.stats.errors_other, 2U);
  one->send(request("wait", "[1]", "3"));
  EXPECT_EQ(runs, 2);
}

TEST_F(CachedTask, goes_on_for_the_others_when_one_gives_up_and_stops_with_the_last) {
  Loop loop{registry};
  const auto one = loop.peer();
  auto other = loop.peer();
  one->send(request("wait", "[1]", "1"));
  other->send(request("wait", "[1]", "2"));
  one->send(request("wait", "[1]", "3"));
  one->cancel("1");
  EXPECT_EQ(one->sink.take(), test::cancelled("1"));
  EXPECT_EQ(stopped, 0);
  other.reset();  // its connection has gone
  EXPECT_EQ(stopped, 0);
  one->cancel("3");
  EXPECT_EQ(one->sink.take(), test::cancelled("3"));
  EXPECT_EQ(stopped, 1);
  EXPECT_EQ(loop.context.stats.calls_in_flight, 0U);
  one->send(request("wait", "[1]", "4"));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(loop.context.stats.cache_entries, 0U);
}

TEST_F(CachedTask, answers_the_second_when_the_first_has_given_up) {
  Loop loop{registry};
  const auto one = loop.peer();
  const auto other = loop.peer();
  one->send(request("wait", "[1]", "1"));
  other->send(request("wait", "[1]", "2"));
  one->cancel("1");
  completions[1].set(1);
  EXPECT_EQ(one->sink.take(), test::cancelled("1"));
  EXPECT_EQ(other->sink.take(), result_reply("2", "2"));
  EXPECT_EQ(one->ask(request("wait", "[1]", "3")), result_reply("2", "3"));
}

TEST_F(CachedTask, a_deadline_is_its_callers_alone) {
  Loop loop{registry};
  const auto one = loop.peer();
  one->send(R"({"jsonrpc":"2.0","method":"wait","params":[1],"id":1,"timeout_ms":10})");
  one->send(request("wait", "[1]", "2"));
  loop.scheduler.advance(10ms);
  EXPECT_EQ(one->sink.take(), test::timed_out("1"));
  completions[1].set(1);
  EXPECT_EQ(one->sink.take(), result_reply("2", "2"));
  EXPECT_EQ(stopped, 0);
}

TEST_F(CachedTask, ends_in_the_time_that_limits_give_a_call) {
  Limits limits;
  limits.call_timeout_ms = 50;
  Loop loop{registry, limits};
  const auto one = loop.peer();
  one->send(request("wait", "[1]", "1"));
  loop.scheduler.advance(50ms);
  EXPECT_EQ(one->sink.take(), test::timed_out("1"));
  EXPECT_EQ(stopped, 1);
  EXPECT_EQ(loop.context.stats.calls_in_flight, 0U);
}

TEST_F(CachedTask, is_still_answered_when_its_caller_is_only_asked_to_stop) {
  Loop loop{registry};
  const auto one = loop.peer();
  Completion<int> never;
  registry.method("polite",
                  [&](int n) -> Task<int> {
                    try {
                      co_await never;
                    } catch (const Cancelled&) {
                    }
                    co_return n;
                  },
                  {.params = {"n"}, .cache = bounds});
  one->send(request("polite", "[5]", "1"));
  one->dispatcher.ask_to_stop();
  EXPECT_EQ(one->sink.take(), result_reply("5", "1"));
}

TEST_F(CachedTask, that_is_given_up_takes_its_callers_place_until_it_has_noticed) {
  struct Deaf {
    std::coroutine_handle<>* waiting;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) const noexcept { *waiting = handle; }
    void await_resume() const noexcept {}
  };
  std::coroutine_handle<> waiting;
  registry.method("deaf",
                  [&](int n) -> Task<int> {
                    co_await Deaf{&waiting};
                    co_return n;
                  },
                  {.params = {"n"}, .cache = bounds});
  Limits limits;
  limits.in_flight = 1;
  Loop loop{registry, limits};
  const auto one = loop.peer();
  one->send(request("deaf", "[1]", "1"));
  one->cancel("1");
  EXPECT_EQ(one->sink.take(), test::cancelled("1"));
  const std::string refused = one->ask(request("deaf", "[2]", "2"));
  EXPECT_NE(refused.find("-32005"), std::string::npos) << refused;
  waiting.resume();
  EXPECT_EQ(one->ask(request("deaf", "[2]", "3")), "");
  waiting.resume();
  EXPECT_EQ(one->sink.take(), result_reply("2", "3"));
}

TEST_F(CachedTask, may_be_in_progress_when_its_peers_and_its_loop_end) {
  {
    Loop loop{registry};
    const auto one = loop.peer();
    one->send(request("wait", "[1]", "1"));
    one->send(request("wait", "[2]", "2"));
    one->cancel("2");
  }
  EXPECT_EQ(ended, 2);
}

TEST_F(CachedTask, in_a_batch_is_answered_in_its_place) {
  Loop loop{registry};
  const auto one = loop.peer();
  one->send("[" + request("wait", "[1]", "1") + "," + request("wait", "[1]", "2") + "]");
  completions[1].set(1);
  EXPECT_EQ(one->sink.take(), "[" + result_reply("2", "1") + "," + result_reply("2", "2") + "]");
  EXPECT_EQ(runs, 1);
}

// Callers that come, give up and go at random, and functions that answer, fail or notice that they are to stop: each
// call has one answer, and the function runs as often as a model says.
TEST_F(CachedMethod, as_many_runs_as_in_a_model_and_one_answer_a_call) {
  struct Run {
    Completion<int> completion;
  };
  std::map<int, std::shared_ptr<Run>> running;
  registry.method("wait",
                  [&](int n) -> Task<int> {
                    ++runs;
                    const auto run = std::make_shared<Run>();
                    running[n] = run;
                    const int value = co_await run->completion;
                    co_return value;
                  },
                  {.params = {"n"}, .cache = {.entries = 2}});
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random{seed};
    SCOPED_TRACE(seed);
    runs = 0;
    running.clear();
    Loop loop{registry};
    std::vector<std::unique_ptr<Loop::Peer>> peers;
    for (int i = 0; i < 3; ++i) peers.push_back(loop.peer());
    std::vector<int> kept;                              // the most recently used in front
    std::map<int, std::map<int, std::size_t>> waiting;  // by argument and id, whose
    int expected_runs = 0;
    int id = 0;
    const auto take = [&](std::size_t peer) { return peers[peer]->sink.take(); };
    for (int step = 0; step < 400; ++step) {
      const int n = static_cast<int>(random() % 4);
      const std::size_t which = random() % peers.size();
      switch (random() % 8) {
        default: {
          ++id;
          peers[which]->send(request("wait", "[" + std::to_string(n) + "]", std::to_string(id)));
          if (const auto at = std::ranges::find(kept, n); at != kept.end()) {
            std::rotate(kept.begin(), at, at + 1);
            ASSERT_EQ(take(which), result_reply(std::to_string(n), std::to_string(id)));
          } else {
            if (waiting[n].empty()) ++expected_runs;
            waiting[n][id] = which;
            ASSERT_EQ(take(which), "");
          }
          break;
        }
        case 5: {
          if (waiting[n].empty()) break;
          const auto [cancelled, owner] =
              *std::next(waiting[n].begin(), static_cast<long>(random() % waiting[n].size()));
          peers[owner]->cancel(std::to_string(cancelled));
          ASSERT_EQ(take(owner), test::cancelled(std::to_string(cancelled)));
          waiting[n].erase(cancelled);
          break;
        }
        case 6: {
          if (waiting[n].empty()) break;
          const bool fails = random() % 2 == 0;
          const auto run = running[n];
          if (fails) {
            run->completion.fail(std::make_exception_ptr(Error{9, "failed"}));
          } else {
            run->completion.set(n);
            kept.insert(kept.begin(), n);
            kept.resize(std::min<std::size_t>(kept.size(), 2));
          }
          std::map<std::size_t, std::string> lines;
          for (const auto& [answered, owner] : waiting[n]) {
            std::string& text = lines[owner];
            if (!text.empty()) text += '\n';
            text += fails ? error_reply(9, "failed", {}, std::to_string(answered))
                          : result_reply(std::to_string(n), std::to_string(answered));
          }
          for (const auto& [owner, text] : lines) ASSERT_EQ(take(owner), text);
          waiting[n].clear();
          break;
        }
        case 7: {
          peers[which] = loop.peer();
          for (auto& [argument, calls] : waiting)
            std::erase_if(calls, [&](const auto& call) { return call.second == which; });
          break;
        }
      }
      ASSERT_EQ(runs, expected_runs) << "step " << step;
      std::size_t in_flight = 0;
      for (const auto& [argument, calls] : waiting) in_flight += calls.size();
      ASSERT_EQ(loop.context.stats.calls_in_flight, in_flight) << "step " << step;
      ASSERT_EQ(loop.context.stats.cache_entries, kept.size()) << "step " << step;
    }
  }
}

TEST_F(CachedMethod, costs_the_methods_beside_it_nothing) {
  if (!test::kCountsInstructions) GTEST_SKIP() << "instructions cannot be counted in this build";
  const auto instructions = [](bool is_cached) {
    Registry registry;
    registry.method("plain", [](int a, int b) { return a - b; });
    const auto beside = [](int n) { return n; };
    if (is_cached) {
      registry.method("beside", beside, {.params = {"n"}, .cache = {.entries = 10}});
    } else {
      registry.method("beside", beside, {"n"});
    }
    const test::PaddedText text{request("plain", "[42,23]")};
    Buffer reply;
    for (int i = 0; i < 3; ++i) registry.handle_padded(text.view(), reply);
    return test::count_instructions([&] { registry.handle_padded(text.view(), reply); });
  };
  constexpr std::uint64_t kMost = 5;
  EXPECT_LE(instructions(true), instructions(false) + kMost);
}

}  // namespace
}  // namespace wirecall
