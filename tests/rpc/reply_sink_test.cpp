// Answers that come later: handlers that are tasks, streams that are gathered, and ReplySink itself. Each call has
// one outcome, whoever is late, gone or destroyed.
#include <chrono>
#include <expected>
#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/rpc/peer.hpp"
#include "wirecall/registry.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using test::error_reply;
using test::internal_error;
using test::notification;
using test::Peer;
using test::request;
using test::result_reply;
using test::too_large;

std::string cancelled(std::string_view id = "1") {
  return error_reply(-32800, "Cancelled", R"({"reason":"the call was stopped","origin":"local","delivered":"maybe"})",
                     id);
}

// ---- tasks ----

struct Noted {
  int* destroyed;
  explicit Noted(int* count) : destroyed(count) {}
  Noted(Noted&&) = delete;
  ~Noted() { ++*destroyed; }
};

class Tasks : public testing::Test {
 protected:
  Tasks() {
    registry.method("sleep",
                    [](const Context& context, int ms) -> Task<int> {
                      co_await sleep_for(context, std::chrono::milliseconds{ms});
                      co_return ms;
                    },
                    {"ms"});
    registry.method("wait", [this](std::string text) -> Task<std::string> {
      const Noted noted{&destroyed};
      co_return text + co_await completion;
    });
    registry.method("view", [this](std::string_view text, const std::string& other) -> Task<std::string> {
      co_await completion;
      co_return std::string{text} + other;
    });
  }

  Registry registry;
  Completion<std::string> completion;
  int destroyed = 0;
};

TEST_F(Tasks, ThatFinishAtOnceAreAnsweredAtOnce) {
  registry.method("now", [](int n) -> Task<int> { co_return n; });
  registry.method("nothing", []() -> Task<void> { co_return; });
  registry.method("throws", []() -> Task<int> {
    throw Error{5, "x", "[1]"};
    co_return 1;
  });
  registry.method("raises", []() -> Task<int> {
    throw std::runtime_error("x");
    co_return 1;
  });
  registry.method("expected", [](bool fine) -> Task<std::expected<int, Error>> {
    if (fine) co_return 1;
    co_return std::unexpected(Error{6, "y", "not json"});
  });
  Peer peer{registry};
  EXPECT_EQ(peer.ask(request("now", "[5]")), result_reply("5"));
  EXPECT_EQ(peer.ask(request("nothing")), result_reply("null"));
  EXPECT_EQ(peer.ask(request("throws")), error_reply(5, "x", "[1]"));
  EXPECT_EQ(peer.ask(request("raises")), internal_error());
  EXPECT_EQ(peer.ask(request("expected", "[true]")), result_reply("1"));
  EXPECT_EQ(peer.ask(request("expected", "[false]")), error_reply(6, "y"));
  EXPECT_EQ(peer.ask(request("now", R"(["x"])")),
            test::invalid_params(R"({"loc":["arg0"],"expected":"integer","got":"\"x\""})"));
  EXPECT_EQ(peer.ask(notification("now", "[5]")), "");
  EXPECT_EQ(registry.handle(request("now", "[5]")), result_reply("5"));
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
}

TEST_F(Tasks, ThatWaitAreAnsweredInTheOrderInWhichTheyFinish) {
  Peer peer{registry};
  peer.send(R"({"jsonrpc":"2.0","method":"sleep","params":[20],"id":"slow"})");
  peer.send(R"({"jsonrpc":"2.0","method":"sleep","params":{"ms":10},"id":1e3})");
  EXPECT_EQ(peer.dispatcher.in_flight(), 2U);
  peer.advance(9ms);
  EXPECT_EQ(peer.received(), "");
  peer.advance(1ms);
  EXPECT_EQ(peer.received(), result_reply("10", "1e3"));
  peer.advance(10ms);
  EXPECT_EQ(peer.received(), result_reply("20", "\"slow\""));
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
}

TEST_F(Tasks, KeepTheirParamsWhileTheyWait) {
  Peer peer{registry};
  peer.send(request("view", R"(["esc\u0061ped","plain"])"));
  static_cast<void>(peer.ask(request("view", R"([1])")));
  completion.set("");
  EXPECT_EQ(peer.received(), result_reply(R"("escapedplain")"));
}

TEST_F(Tasks, CountTheirParamsAmongWhatTheConnectionHoldsUntilTheyAreAnswered) {
  registry.method("late", [](const Context& context, std::string text) -> Task<std::size_t> {
    co_await sleep_for(context, 10ms);
    co_return text.size();
  });
  Peer peer{registry};
  const std::string params = R"([")" + std::string(5000, 'x') + R"("])";
  peer.send(request("late", params));
  EXPECT_EQ(peer.dispatcher.held_bytes(), params.size());
  peer.send(R"({"jsonrpc":"2.0","method":"late","params":)" + params + R"(,"id":")" + std::string(2000, 'i') + R"("})");
  EXPECT_EQ(peer.dispatcher.held_bytes(), 2 * params.size() + 2002) << "and a long id";
  peer.send(request("late", R"(["short"])"));
  EXPECT_EQ(peer.dispatcher.held_bytes(), 2 * params.size() + 2002);
  peer.advance(10ms);
  EXPECT_EQ(peer.dispatcher.held_bytes(), 0U);
}

TEST_F(Tasks, KeepADefaultWhileTheyWait) {
  registry.method("first",
                  [this](std::string_view text) -> Task<std::string> {
                    co_await completion;
                    co_return std::string{text};
                  },
                  {Param("text").default_value("one\n"s)});
  registry.method("second", [](std::string_view text) { return std::string{text}; },
                  {Param("text").default_value("two\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t"s)});
  Peer peer{registry};
  peer.send(request("first"));
  for (int i = 0; i < 3; ++i) static_cast<void>(peer.ask(request("second")));
  completion.set("");
  EXPECT_EQ(peer.received(), result_reply(R"("one\n")"));
}

TEST_F(Tasks, OfNotificationsAreSilent) {
  Peer peer{registry};
  peer.send(notification("wait", R"(["x"])"));
  EXPECT_EQ(peer.dispatcher.in_flight(), 1U);
  completion.set("y");
  EXPECT_EQ(peer.received(), "");
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
  EXPECT_EQ(destroyed, 1);
}

TEST_F(Tasks, ThatAreStoppedAreAnsweredCancelled) {
  Peer peer{registry};
  peer.send(request("wait", R"(["x"])"));
  peer.dispatcher.ask_to_stop();
  EXPECT_EQ(peer.received(), cancelled());
  EXPECT_EQ(destroyed, 1);
  completion.set("late");
  EXPECT_EQ(peer.received(), "");
}

TEST_F(Tasks, WhosePeerHasGoneAreStoppedAndNotAnswered) {
  Peer peer{registry};
  peer.send(request("wait", R"(["x"])"));
  peer.send(request("sleep", "[10]"));
  peer.dispatcher.abandon();
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(peer.scheduler.running(), 0U);
  completion.set("late");
  EXPECT_EQ(peer.received(), "");
}

TEST_F(Tasks, GoWithTheirDispatcher) {
  {
    Peer peer{registry};
    peer.send(request("wait", R"(["x"])"));
  }
  EXPECT_EQ(destroyed, 1);
  completion.set("late");
}

TEST_F(Tasks, ThatIgnoreAStopAreStillAnswered) {
  registry.method("stubborn", [this]() -> Task<std::string> {
    try {
      co_await completion;
    } catch (const Cancelled&) {
    }
    co_return "finished all the same";
  });
  Peer peer{registry};
  peer.send(request("stubborn"));
  peer.dispatcher.ask_to_stop();
  EXPECT_EQ(peer.received(), result_reply("\"finished all the same\""));
}

TEST_F(Tasks, ResultThatCannotBeEncodedIsAnInternalError) {
  Peer peer{registry};
  peer.send(request("wait", R"(["x"])"));
  completion.set("\xFF");
  EXPECT_EQ(peer.received(), internal_error());
  EXPECT_EQ(peer.log.size(), 1U);
}

TEST_F(Tasks, ResultOverTheSizeLimitIsTooLarge) {
  Limits limits;
  limits.max_message_size = 400;
  Peer peer{registry, limits};
  peer.send(request("wait", R"([""])"));
  completion.set(std::string(400, 'x'));
  EXPECT_EQ(peer.received(), too_large("the reply is"));
}

TEST_F(Tasks, OverTheInFlightLimitAreRefusedUntilOneFinishes) {
  Limits limits;
  limits.in_flight = 2;
  Peer peer{registry, limits};
  peer.send(request("sleep", "[10]"));
  peer.send(notification("sleep", "[20]"));
  const std::string refused = error_reply(-32005, "Limit exceeded",
                                          R"({"reason":"too many calls of this connection are in flight",)"
                                          R"("origin":"local","delivered":"no","limit":"in_flight"})");
  EXPECT_EQ(peer.ask(request("sleep", "[1]")), refused);
  EXPECT_EQ(peer.ask(notification("sleep", "[1]")), "");
  peer.advance(10ms);
  EXPECT_EQ(peer.received(), result_reply("10"));
  peer.send(request("sleep", "[1]"));
  peer.advance(1ms);
  EXPECT_EQ(peer.received(), result_reply("1"));
}

TEST_F(Tasks, WhenDrainingNewRequestsAreRefusedAndOldOnesFinish) {
  Peer peer{registry};
  peer.send(request("sleep", "[10]"));
  peer.dispatcher.drain();
  EXPECT_EQ(
      peer.ask(request("sleep", "[1]")),
      error_reply(-32009, "Draining", R"({"reason":"the server is shutting down","origin":"local","delivered":"no"})"));
  EXPECT_EQ(peer.ask(notification("sleep", "[1]")), "");
  EXPECT_EQ(peer.dispatcher.in_flight(), 1U);
  peer.advance(10ms);
  EXPECT_EQ(peer.received(), result_reply("10"));
}

TEST_F(Tasks, UnderARegistryAloneAreStoppedAndAnsweredOnce) {
  EXPECT_EQ(registry.handle(request("wait", R"(["x"])")), cancelled());
  EXPECT_EQ(registry.handle("[" + request("wait", R"(["x"])") + "," + request("wait", "[1]") + "]"),
            "[" + cancelled() + "," + test::invalid_params(R"({"loc":["arg0"],"expected":"string","got":"1"})") + "]");
  EXPECT_EQ(registry.handle(notification("wait", R"(["x"])")), "");
  EXPECT_EQ(destroyed, 3);
  const std::string no_timers = registry.handle(request("sleep", "[10]"));
  EXPECT_TRUE(no_timers.starts_with(R"({"jsonrpc":"2.0","error":{"code":-32000,)")) << no_timers;
}

TEST_F(Tasks, ThatWaitForNothingThatCanBeStoppedAreAnInternalErrorUnderARegistryAlone) {
  struct Forever {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    void await_resume() const noexcept {}
  };
  registry.method("forever", [this]() -> Task<int> {
    const Noted noted{&destroyed};
    co_await Forever{};
    co_return 1;
  });
  EXPECT_EQ(registry.handle(request("forever")), internal_error());
  EXPECT_EQ(registry.handle("[" + request("forever") + "]"), "[" + internal_error() + "]");
  EXPECT_EQ(destroyed, 2);
}

// ---- streams, gathered ----

TEST_F(Tasks, StreamIsGatheredIntoOneArray) {
  registry.method("count", [](int n) -> Stream<int> {
    for (int i = 0; i < n; ++i) co_yield i;
  });
  registry.method("slow", [](Context context) -> Stream<std::string> {
    co_yield "a";
    co_await sleep_for(context, 10ms);
    co_yield "b";
  });
  Peer peer{registry};
  EXPECT_EQ(peer.ask(request("count", "[3]")), result_reply("[0,1,2]"));
  EXPECT_EQ(peer.ask(request("count", "[0]")), result_reply("[]"));
  EXPECT_EQ(peer.ask(notification("count", "[3]")), "");
  EXPECT_EQ(registry.handle("[" + request("count", "[2]") + "]"), "[" + result_reply("[0,1]") + "]");
  EXPECT_EQ(peer.ask(request("slow")), "");
  peer.advance(10ms);
  EXPECT_EQ(peer.received(), result_reply(R"(["a","b"])"));
}

TEST_F(Tasks, StreamThatFailsIsItsErrorWithoutItems) {
  registry.method("breaks", []() -> Stream<int> {
    co_yield 1;
    throw Error{5, "broken off"};
  });
  registry.method("nan", []() -> Stream<double> {
    co_yield 1;
    co_yield 0.0 / 0.0;
  });
  Peer peer{registry};
  EXPECT_EQ(peer.ask(request("breaks")), error_reply(5, "broken off"));
  EXPECT_EQ(peer.ask(request("nan")), internal_error());
}

TEST_F(Tasks, EndlessStreamEndsAtTheSizeLimit) {
  int yielded = 0;
  registry.method("endless", [&yielded]() -> Stream<std::string> {
    for (;; ++yielded) co_yield std::string(100, 'x');
  });
  Limits limits;
  limits.max_message_size = 1000;
  Peer peer{registry, limits};
  EXPECT_EQ(peer.ask(request("endless")), too_large("the items together are"));
  EXPECT_EQ(yielded, 9) << "nine items of 103 bytes fit; the tenth is the last that is asked for";
}

// ---- the sink itself ----

class Sink : public testing::Test {
 protected:
  Sink() {
    registry.method("later", [](int) {});
    registry.use([this](Call& call, Next) { sinks.push_back(call.detach()); });
  }
  ReplySink& sink(std::size_t i = 0) { return sinks[i]; }
  static void answer(ReplySink& sink, std::string_view text) {
    if (Writer* writer = sink.begin_result()) writer->string(text);
    sink.end_result();
  }

  Registry registry;
  std::vector<ReplySink> sinks;
};

TEST_F(Sink, AnswersLater) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(request("later")), "");
  EXPECT_TRUE(sink().wanted());
  answer(sink(), "x");
  EXPECT_EQ(peer.received(), result_reply("\"x\""));
  EXPECT_FALSE(sink().wanted());
}

TEST_F(Sink, AnswersOnce) {
  Peer peer{registry};
  peer.send(request("later"));
  sink().error(Error{1, "first"});
  sink().error(Error{2, "second"});
  answer(sink(), "third");
  try {
    throw Error{4, "fourth"};
  } catch (...) {
    sink().error_in_flight();
  }
  sinks.clear();
  EXPECT_EQ(peer.received(), error_reply(1, "first"));
}

// Whoever has the params of a call that was cancelled has them still.
TEST_F(Sink, CountsTheParamsThatItKeepsUntilItGoes) {
  Peer peer{registry};
  peer.send(request("later"));
  sink().keeps(5000);
  EXPECT_EQ(peer.dispatcher.held_bytes(), 5000U);
  peer.send(R"({"jsonrpc":"2.0","method":"rpc.cancel","params":[1]})");
  EXPECT_FALSE(sink().wanted());
  EXPECT_EQ(peer.dispatcher.held_bytes(), 5000U);
  sinks.clear();
  EXPECT_EQ(peer.dispatcher.held_bytes(), 0U);
}

TEST_F(Sink, DestroyedUnansweredIsAnInternalError) {
  Peer peer{registry};
  peer.send(request("later"));
  peer.send(notification("later"));
  sinks.clear();
  EXPECT_EQ(peer.received(), internal_error());
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
}

TEST_F(Sink, OverwrittenUnansweredIsAnInternalError) {
  Peer peer{registry};
  peer.send(request("later"));
  sink() = ReplySink{};
  EXPECT_EQ(peer.received(), internal_error());
}

TEST_F(Sink, MovesItsCall) {
  Peer peer{registry};
  peer.send(request("later"));
  ReplySink moved = std::move(sink());
  EXPECT_FALSE(sink().wanted());
  sinks.clear();
  EXPECT_EQ(peer.received(), "");
  answer(moved, "x");
  EXPECT_EQ(peer.received(), result_reply("\"x\""));
}

TEST_F(Sink, OfAnotherCallInTheSamePlaceIsNotHit) {
  Peer peer{registry};
  peer.send(request("later"));
  answer(sink(0), "x");
  peer.send(R"({"jsonrpc":"2.0","method":"later","id":2})");
  static_cast<void>(peer.received());
  answer(sink(0), "late");
  sink(0).error(Error{1, "late"});
  EXPECT_EQ(peer.received(), "");
  answer(sink(1), "y");
  EXPECT_EQ(peer.received(), result_reply("\"y\"", "2"));
}

TEST_F(Sink, WhosePeerHasGoneAnswersIntoNothing) {
  Peer peer{registry};
  peer.send(request("later"));
  peer.send(request("later"));
  peer.dispatcher.abandon();
  EXPECT_FALSE(sink(0).wanted());
  EXPECT_EQ(sink(0).begin_result(), nullptr);
  sink(0).end_result();
  sink(1).error(Error{1, "x"});
  sinks.clear();
  EXPECT_EQ(peer.received(), "");
}

TEST_F(Sink, MayOutliveTheDispatcher) {
  {
    Peer peer{registry};
    peer.send(request("later"));
  }
  EXPECT_FALSE(sink().wanted());
  answer(sink(), "x");
  sinks.clear();
}

TEST_F(Sink, OfANotificationWantsNoValue) {
  Peer peer{registry};
  peer.send(notification("later"));
  EXPECT_TRUE(sink().wanted()) << "it has not been answered yet";
  EXPECT_EQ(sink().begin_result(), nullptr);
  sink().end_result();
  EXPECT_FALSE(sink().wanted());
  EXPECT_EQ(peer.received(), "");
}

TEST_F(Sink, BegunResultIsDroppedForAnError) {
  Peer peer{registry};
  peer.send(request("later"));
  sink().begin_result()->string("half");
  sink().error(Error{1, "instead"});
  EXPECT_EQ(peer.received(), error_reply(1, "instead"));
}

TEST_F(Sink, BegunTwiceAnswersWithTheSecond) {
  Peer peer{registry};
  peer.send(request("later"));
  peer.send("[" + request("later") + "]");
  sink(0).begin_result()->string("half");
  answer(sink(0), "whole");
  EXPECT_EQ(peer.received(), result_reply("\"whole\""));
  sink(1).begin_result()->string("half");
  answer(sink(1), "whole");
  EXPECT_EQ(peer.received(), "[" + result_reply("\"whole\"") + "]");
}

TEST_F(Sink, BegunAndDestroyedIsAnInternalError) {
  Peer peer{registry};
  peer.send(request("later"));
  sink().begin_result()->string("half");
  sinks.clear();
  EXPECT_EQ(peer.received(), internal_error());
}

TEST_F(Sink, ErrorDataThatIsNotJsonIsLeftOut) {
  Peer peer{registry};
  peer.send(request("later"));
  sink().error(Error{1, "caf\xE9", "{"});
  EXPECT_EQ(peer.received(), error_reply(1, "caf\xEF\xBF\xBD"));
}

TEST_F(Sink, HeldBeyondARegistrysHandleIsAnInternalErrorAndThenNotWanted) {
  EXPECT_EQ(registry.handle(request("later")), internal_error());
  EXPECT_EQ(registry.handle("[" + request("later") + "," + notification("later") + "]"), "[" + internal_error() + "]");
  EXPECT_EQ(registry.handle(notification("later")), "");
  for (ReplySink& held : sinks) {
    EXPECT_FALSE(held.wanted());
    answer(held, "late");
  }
}

TEST_F(Sink, ThousandsMayWaitAndBeAnsweredInAnyOrder) {
  Peer peer{registry};
  for (int i = 0; i < 4096; ++i) peer.send(R"({"jsonrpc":"2.0","method":"later","id":)" + std::to_string(i) + "}");
  EXPECT_EQ(peer.dispatcher.in_flight(), 4096U);
  for (std::size_t i = 0; i < 4096; ++i) {
    const std::size_t which = i * 1237 % 4096;  // 1237 and 4096 have no common divisor
    answer(sink(which), "x");
    ASSERT_EQ(peer.received(), result_reply("\"x\"", std::to_string(which)));
  }
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
}

}  // namespace
}  // namespace wirecall
