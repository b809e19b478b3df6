// One call, one outcome, and none of them at another peer's cost: reply hooks that reach for their own sink, callers
// that go, streams that never end, defaults and texts that do not fit.
#include <chrono>
#include <expected>
#include <gtest/gtest.h>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/rpc/peer.hpp"
#include "wirecall/registry.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::error_reply;
using test::Peer;
using test::request;
using test::result_reply;

Stream<long> endless() {
  for (long i = 0;; ++i) co_yield i;
}

TEST(ReplyHook, MayDestroyTheSinkThatAnswers) {
  Registry registry;
  std::map<int, ReplySink> kept;
  registry.method("later", [] {});
  registry.use([&kept](Call& call, const Next&) { kept.emplace(7, call.detach()); });
  Peer peer{registry};
  peer.send(request("later"));
  ASSERT_EQ(peer.dispatcher.in_flight(), 1U);
  kept.at(7).error(Error{6, "answer"});
  kept.clear();
  EXPECT_EQ(peer.received(), error_reply(6, "answer"));
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
}

TEST(ReplyHook, ThatErasesOrAnswersItsOwnSinkChangesNothing) {
  for (const bool erase : {true, false}) {
    Registry registry;
    std::map<int, ReplySink> kept;
    int hooks = 0;
    registry.method("later", [] {});
    registry.use([&](Call& call, const Next&) {
      call.on_reply([&](const Outcome& outcome) {
        ++hooks;
        EXPECT_EQ(outcome.code, 6);
        if (erase) {
          kept.erase(7);
        } else {
          kept.at(7).error(Error{8, "again"});
        }
      });
      kept.emplace(7, call.detach());
    });
    Peer peer{registry};
    for (int i = 0; i < 3; ++i) {
      kept.clear();
      peer.send(request("later"));
      ASSERT_EQ(peer.dispatcher.in_flight(), 1U);
      kept.at(7).error(Error{6, "answer"});
      EXPECT_EQ(peer.received(), error_reply(6, "answer"));
      EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
    }
    EXPECT_EQ(hooks, 3);
  }
}

TEST(ReplyHook, IsCalledOnceWhenTheCallerHasGone) {
  Registry registry;
  std::vector<int> outcomes;
  registry.method("wait", [](Context context) -> Task<void> { co_await sleep_for(context, 1h); });
  registry.use([&outcomes](Call& call, const Next& next) {
    call.on_reply([&outcomes](const Outcome& outcome) { outcomes.push_back(outcome.code); });
    next(call);
  });
  Peer peer{registry};
  peer.send(request("wait"));
  peer.send(request("wait"));
  peer.dispatcher.abandon();
  EXPECT_EQ(outcomes, (std::vector<int>{-32800, -32800}));
  peer.advance(2h);
  EXPECT_EQ(outcomes.size(), 2U);
  EXPECT_EQ(peer.received(), "");
}

TEST(ReplySink, DetachedFromABegunResultLeavesNothingOfIt) {
  Registry registry;
  registry.method("half", [] {});
  registry.use([](Call& call, const Next&) {
    call.begin_result()->json("[1,2");
    ReplySink sink = call.detach();
    sink.error(Error{-1, "later"});
  });
  Peer peer{registry};
  EXPECT_EQ(peer.ask("[" + request("half") + "]"), "[" + error_reply(-1, "later") + "]");
  EXPECT_EQ(peer.ask(request("half")), error_reply(-1, "later"));
}

TEST(ReplySink, EndedWithoutABeginningAnswersInternalError) {
  Registry registry;
  registry.method("none", [] {});
  bool detach = false;
  registry.use([&detach](Call& call, const Next&) {
    if (!detach) return call.end_result();
    ReplySink sink = call.detach();
    sink.end_result();
  });
  Peer peer{registry};
  for (const bool later : {false, true}) {
    detach = later;
    EXPECT_EQ(peer.ask(request("none")), error_reply(-32603, "Internal error"));
    EXPECT_EQ(peer.ask("[" + request("none") + "]"), "[" + error_reply(-32603, "Internal error") + "]");
  }
}

// A caller that is told so would make the call again, which has been made.
TEST(Outcome, OfAHandlerThatRanIsNeverThatItDidNot) {
  const Error not_delivered{-32001, "gone", R"({"reason":"the connection is lost", "delivered":"no"})"};
  Registry registry;
  registry.method("throws", [&]() -> int { throw not_delivered; });
  registry.method("returns", [&]() -> std::expected<int, Error> { return std::unexpected{not_delivered}; });
  registry.method("waits", [&]() -> Task<int> {
    throw not_delivered;
    co_return 0;
  });
  for (const std::string method : {"throws", "returns", "waits"}) {
    EXPECT_EQ(registry.handle(R"({"jsonrpc":"2.0","method":")" + method + R"(","id":1})"),
              R"({"jsonrpc":"2.0","error":{"code":-32001,"message":"gone","data":)"
              R"({"reason":"the connection is lost","delivered":"maybe"}},"id":1})")
        << method;
  }
}

TEST(Depth, CountsParamsOfFewNumbersToo) {
  Registry registry;
  registry.method("sum", [](const Rest<int>& numbers) { return numbers.size(); });
  Limits limits;
  const std::string deep = error_reply(-32700, "Parse error", R"({"limit":"depth"})", "null");
  limits.depth = 1;
  registry.set_limits(limits);
  EXPECT_EQ(registry.handle(request("sum", "[1,2]")), deep);
  limits.depth = 2;
  registry.set_limits(limits);
  EXPECT_EQ(registry.handle(request("sum", "[1,2]")), result_reply("2"));
  EXPECT_EQ(registry.handle("[" + request("sum", "[1,2]") + "]"), deep);
  limits.depth = 3;
  registry.set_limits(limits);
  EXPECT_EQ(registry.handle("[" + request("sum", "[1,2]") + "]"), "[" + result_reply("2") + "]");
}

TEST(Gathering, GivesOtherCallsOfTheThreadATurn) {
  Registry registry;
  registry.method("endless", endless);
  registry.method("one", [] { return 1; });
  Peer peer{registry};
  peer.send(request("endless"));
  EXPECT_EQ(peer.dispatcher.in_flight(), 1U);
  EXPECT_EQ(peer.ask(request("one")), result_reply("1"));
  for (int turn = 0; turn < 20'000 && peer.dispatcher.in_flight() != 0; ++turn) peer.advance(1ns);
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
  EXPECT_TRUE(peer.received().starts_with(R"({"jsonrpc":"2.0","error":{"code":-32006)"));
}

TEST(Gathering, OfOnePeerTogetherStaysWithinItsLimit) {
  Registry registry;
  registry.method("endless", endless);
  Limits limits;
  limits.soft_output = limits.hard_output = 20'000;
  Peer peer{registry, limits};
  for (int i = 0; i < 10; ++i) peer.send(request("endless"));
  for (int turn = 0; turn < 1'000 && peer.dispatcher.in_flight() != 0; ++turn) peer.advance(1ns);
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
  std::string replies = peer.received();
  EXPECT_EQ(replies.substr(0, replies.find('\n')),
            error_reply(-32005, "Limit exceeded",
                        R"({"reason":"too many items are being gathered for this connection","origin":"local",)"
                        R"("delivered":"maybe","limit":"hard_output"})"));
}

TEST(Raw, LosesTheWhiteSpaceBetweenItsTokensAlone) {
  Registry registry;
  registry.method("echo", [](Raw value) { return value; }, {"value"});
  EXPECT_EQ(registry.handle(request("echo", "[{\"a\" :\n [1, \t2],\r\n\"b c\":\" \\\" \\\\ \" }]")),
            result_reply(R"({"a":[1,2],"b c":" \" \\ "})"));
  EXPECT_EQ(registry.handle(request("echo", "[ \"plain text of more than eight bytes\" ]")),
            result_reply("\"plain text of more than eight bytes\""));
}

TEST(Registry, DefaultThatIsNotWhatTheParameterTakesIsRefused) {
  Registry registry;
  EXPECT_THROW(registry.method("f", [](int) {}, {Param{"a"}.default_value("nonsense")}), std::invalid_argument);
  EXPECT_EQ(registry.find("f"), nullptr);
}

}  // namespace
}  // namespace wirecall
