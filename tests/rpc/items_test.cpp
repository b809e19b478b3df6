// Streams of results to a caller who wants them as they come: in order, with credit, within the room there is, ended by
// every way in which a call ends; and gathered for everybody else.
#include "rpc/items.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/rpc/instruction_count.hpp"
#include "tests/rpc/peer.hpp"
#include "wirecall/registry.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::cancelled;
using test::error_reply;
using test::internal_error;
using test::invalid_params;
using test::notification;
using test::Peer;
using test::request;
using test::result_reply;
using test::timed_out;

Stream<int> count(int n) {
  for (int i = 0; i < n; ++i) co_yield i;
}
Stream<int> ticks(Context context, int n, int ms) {
  for (int i = 0; i < n; ++i) {
    co_await sleep_for(context, std::chrono::milliseconds{ms});
    co_yield i;
  }
}
Stream<std::string> texts(std::vector<std::string> given) {
  for (std::string& text : given) co_yield std::move(text);
}
Stream<int> fails_after(int n) {
  for (int i = 0; i < n; ++i) co_yield i;
  throw Error{7, "broken"};
}

std::string stream_request(std::string_view method, std::string_view params, std::string_view credit,
                           std::string_view id = "1", std::string_view more = {}) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} +
         R"(,"stream":)" + std::string{credit} + std::string{more} +
         (id.empty() ? std::string{} : ",\"id\":" + std::string{id}) + "}";
}
std::string grant(std::string_view more, std::string_view id = "1") {
  return notification("rpc.credit", R"({"id":)" + std::string{id} + R"(,"n":)" + std::string{more} + "}");
}
std::string item(int sequence, std::string_view value, std::string_view id = "1") {
  return R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":)" + std::string{id} + R"(,"seq":)" +
         std::to_string(sequence) + R"(,"value":)" + std::string{value} + "}}";
}
std::string progress(std::string_view token, std::string_view value) {
  return R"({"jsonrpc":"2.0","method":"$/progress","params":{"token":)" + std::string{token} + R"(,"value":)" +
         std::string{value} + "}}";
}
std::string items(int from, int to, std::string_view id = "1") {
  std::string lines;
  for (int i = from; i < to; ++i) lines += item(i, std::to_string(i), id) + (i + 1 < to ? "\n" : "");
  return lines;
}

class Items : public testing::Test {
 protected:
  Items() {
    registry.method("count", count, {"n"});
    registry.method("ticks", ticks, {"n", "ms"});
    registry.method("texts", texts, {"texts"});
    registry.method("fails_after", fails_after, {"n"});
    registry.method("plain", [](int n) { return n; }, {"n"});
    registry.method("watched", [this](int n) -> Stream<int> {
      struct Guard {
        int& ended;
        ~Guard() { ++ended; }
      } guard{ended};
      for (int i = 0; i < n; ++i) {
        made = i + 1;
        co_yield i;
      }
    });
  }

  Registry registry;
  int made = 0;
  int ended = 0;
};

TEST_F(Items, ComeBeforeTheResponse) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(stream_request("count", "[3]", "10")), items(0, 3) + "\n" + result_reply("null"));
  EXPECT_EQ(peer.ask(stream_request("count", "[0]", "1")), result_reply("null"));
  EXPECT_EQ(peer.ask(stream_request("texts", R"([["a\"b","c"]])", "2", R"("x\u0061")")),
            item(0, R"("a\"b")", R"("x\u0061")") + "\n" + item(1, "\"c\"", R"("x\u0061")") + "\n" +
                result_reply("null", R"("x\u0061")"));
  EXPECT_EQ(peer.ask(stream_request("count", "[1]", "1", "null")),
            item(0, "0", "null") + "\n" + result_reply("null", "null"));
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
  EXPECT_EQ(peer.scheduler.running(), 0U);
}

TEST_F(Items, ComeAsTheyAreMade) {
  Peer peer{registry};
  peer.send(stream_request("ticks", "[2,10]", "10"));
  EXPECT_EQ(peer.received(), "");
  peer.advance(10ms);
  EXPECT_EQ(peer.received(), item(0, "0"));
  peer.advance(10ms);
  EXPECT_EQ(peer.received(), item(1, "1") + "\n" + result_reply("null"));
}

TEST_F(Items, PauseAtCreditZeroUntilMoreIsGiven) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(stream_request("watched", "[6]", "2")), items(0, 2));
  EXPECT_EQ(made, 3) << "one is made ahead, to know whether there is one";
  EXPECT_EQ(peer.ask(grant("1")), item(2, "2"));
  EXPECT_EQ(peer.ask(grant("2")), items(3, 5));
  EXPECT_EQ(peer.ask(grant("1")), item(5, "5") + "\n" + result_reply("null")) << "the end needs no credit";
  EXPECT_EQ(peer.ask(grant("1")), "");
  EXPECT_EQ(ended, 1);
}

TEST_F(Items, CreditAddsUpAndNeverOverflows) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(stream_request("ticks", "[3,10]", "1")), "");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(peer.ask(grant("9223372036854775807")), "");
  peer.advance(30ms);
  EXPECT_EQ(peer.received(), items(0, 3) + "\n" + result_reply("null"));
}

TEST_F(Items, CreditIsAtMostTheLargestSignedNumber) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(stream_request("count", "[3]", "9223372036854775807")), items(0, 3) + "\n" + result_reply("null"));
  EXPECT_EQ(peer.ask(stream_request("count", "[3]", "1")), item(0, "0"));
  EXPECT_EQ(peer.ask(grant("9223372036854775807")), items(1, 3) + "\n" + result_reply("null"));
  for (const std::string_view beyond : {"9223372036854775808", "18446744073709551615", "18446744073709551617"}) {
    EXPECT_EQ(peer.ask(stream_request("count", "[3]", beyond)), test::invalid_request("1")) << beyond;
  }
}

TEST_F(Items, ManySmallCreditsAreWorthTheirSum) {
  constexpr int kCredits = 1000;
  Peer peer{registry};
  EXPECT_EQ(peer.ask(stream_request("ticks", "[2000,1]", "1")), "");
  for (int i = 0; i < kCredits; ++i) EXPECT_EQ(peer.ask(grant("1")), "");
  peer.advance(2000ms);
  EXPECT_EQ(peer.received(), items(0, 1 + kCredits));
  EXPECT_EQ(peer.ask(grant("1")), item(1 + kCredits, std::to_string(1 + kCredits)));
}

// A message of forty bytes must not cost a step for each of the calls that its sender has in flight, or of the items
// that it speaks of.
TEST_F(Items, CreditCostsTheSameHoweverManyCallsShareItsIdAndHoweverMuchItIs) {
  if (!test::kCountsInstructions) GTEST_SKIP() << "instructions cannot be counted in this build";
  const auto cost = [this](int calls, const std::string& call, const std::string& credit) {
    Limits limits;
    limits.in_flight = 10'000;
    Peer peer{registry, limits};
    for (int i = 0; i < calls; ++i) peer.send(call);
    peer.send(credit);  // lazily bound functions are bound
    return test::count_instructions([&] { peer.send(credit); });
  };
  const std::string much = grant("9223372036854775807");
  const std::string stream = stream_request("ticks", "[9,1000]", "1");
  for (const std::string& call : {stream, request("ticks", "[9,1000]")}) {
    const auto of_few = cost(4, call, much);
    // 1,024 times as many, in a tree that is ten steps deeper.
    EXPECT_LT(cost(4096, call, much), of_few + of_few / 2) << call;
  }
  // Nineteen digits are read, and not one.
  EXPECT_LT(cost(1, stream, much), 2 * cost(1, stream, grant("1")));
}

TEST_F(Items, OfCallsThatShareAnIdTheFirstInFlightGetsTheCredit) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(stream_request("count", "[2]", "1")), item(0, "0"));
  EXPECT_EQ(peer.ask(stream_request("texts", R"([["a","b"]])", "1")), item(0, R"("a")"));
  EXPECT_EQ(peer.ask(request("rpc.credit", "[1,1]", "3")),
            item(1, "1") + "\n" + result_reply("null") + "\n" + result_reply("1", "3"));
  EXPECT_EQ(peer.ask(grant("1")), item(1, R"("b")") + "\n" + result_reply("null"));
}

TEST_F(Items, CreditIsForAStreamThoughAPlainCallOfItsIdCameFirst) {
  Peer peer{registry};
  peer.send(request("ticks", "[1,10]"));
  EXPECT_EQ(peer.ask(stream_request("count", "[2]", "1")), item(0, "0"));
  EXPECT_EQ(peer.ask(stream_request("texts", R"([["a","b"]])", "1")), item(0, R"("a")"));
  EXPECT_EQ(peer.ask(grant("1")), item(1, "1") + "\n" + result_reply("null"));
  EXPECT_EQ(peer.ask(grant("1")), item(1, R"("b")") + "\n" + result_reply("null"));
  EXPECT_EQ(peer.ask(request("rpc.credit", "[1,1]", "3")), result_reply("0", "3"));
  EXPECT_NE(peer.ask(request("rpc.cancel", "[1]", "3")).find(R"("result":1)"), std::string::npos);
}

TEST_F(Items, CreditIsForTheStreamOfThatId) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(stream_request("count", "[9]", "1", "1")), item(0, "0", "1"));
  EXPECT_EQ(peer.ask(stream_request("count", "[9]", "1", "2")), item(0, "0", "2"));
  EXPECT_EQ(peer.ask(grant("1", "2")), item(1, "1", "2"));
  EXPECT_EQ(peer.ask(request("rpc.credit", R"([1,1])", "3")), item(1, "1", "1") + "\n" + result_reply("1", "3"));
  EXPECT_EQ(peer.ask(request("rpc.credit", R"({"id":7,"n":1})", "3")), result_reply("0", "3"));
  peer.send(request("ticks", "[1,10]", "5"));
  EXPECT_EQ(peer.ask(request("rpc.credit", R"({"id":5,"n":1})", "3")), result_reply("0", "3")) << "no stream";
}

TEST_F(Items, CreditThatIsNoneIsRefused) {
  Peer peer{registry};
  const auto refused = [](std::string_view got) {
    return invalid_params(R"({"loc":["n"],"expected":"integer from 1","got":")" + std::string{got} + "\"}");
  };
  EXPECT_EQ(peer.ask(request("rpc.credit", R"({"id":1})")), refused("nothing"));
  EXPECT_EQ(peer.ask(request("rpc.credit", R"({"id":1,"n":0})")), refused("0"));
  EXPECT_EQ(peer.ask(request("rpc.credit", R"({"id":1,"n":-1})")), refused("-1"));
  EXPECT_EQ(peer.ask(request("rpc.credit", R"({"id":1,"n":null})")), refused("null"));
  EXPECT_EQ(peer.ask(request("rpc.credit", R"({"n":1})")),
            invalid_params(R"({"loc":["id"],"expected":"string, number or null","got":"nothing"})"));
  EXPECT_EQ(peer.ask(notification("rpc.credit", "[]")), "");

  // Nor does it change what there is.
  EXPECT_EQ(peer.ask(stream_request("count", "[2]", "1")), item(0, "0"));
  for (const std::string_view wrong :
       {"0", "-0", "-1", "1.5", "1e-1", "1e30", "1e400", "-9223372036854775809", "9223372036854775808",
        "18446744073709551617", "\"1\"", "null", "true", "[1]", "{}"}) {
    const std::string answer = peer.ask(request("rpc.credit", R"({"id":1,"n":)" + std::string{wrong} + "}", "2"));
    EXPECT_TRUE(answer.starts_with(R"({"jsonrpc":"2.0","error":{"code":-32602)")) << wrong << " " << answer;
    EXPECT_NE(answer.find(R"("loc":["n"])"), answer.npos) << answer;
    EXPECT_EQ(peer.ask(grant(wrong)), "") << wrong;
  }
  EXPECT_EQ(peer.ask(grant("1.0")), item(1, "1") + "\n" + result_reply("null"));
}

TEST_F(Items, StreamMustBeAnIntegerFromOne) {
  Peer peer{registry};
  for (const std::string_view wrong : {"0", "-1", "1.5", "\"1\"", "null", "true", "[]", "{}", "1e30"}) {
    EXPECT_EQ(peer.ask(stream_request("count", "[1]", wrong)), test::invalid_request("1")) << wrong;
    EXPECT_EQ(peer.ask(stream_request("plain", "[1]", wrong)), test::invalid_request("1")) << wrong;
    EXPECT_EQ(peer.ask(stream_request("count", "[1]", wrong, "")), "") << wrong;
  }
  EXPECT_EQ(peer.ask(stream_request("count", "[1]", "1.0")), item(0, "0") + "\n" + result_reply("null"));
}

TEST_F(Items, StreamAskedOfWhatIsNoneIsAnsweredAsUsual) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(stream_request("plain", "[5]", "3")), result_reply("5"));
}

TEST_F(Items, AreGatheredWithoutStream) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(request("count", "[3]")), result_reply("[0,1,2]"));
}

TEST_F(Items, AreGatheredInBatchesAndWithoutAConnection) {
  Peer peer{registry};
  const std::string with_token = request("count", R"({"n":2,"partialResultToken":"t"})", "2");
  EXPECT_EQ(peer.ask("[" + stream_request("count", "[3]", "1") + "," + with_token + "]"),
            "[" + result_reply("[0,1,2]") + "," + result_reply("[0,1]", "2") + "]");
  EXPECT_EQ(registry.handle(stream_request("count", "[3]", "1")), result_reply("[0,1,2]"));
  peer.sink.can = {};
  EXPECT_EQ(peer.ask(stream_request("count", "[3]", "1")), result_reply("[0,1,2]"));
  EXPECT_EQ(peer.ask(with_token), result_reply("[0,1]", "2"));
}

TEST_F(Items, OfANotificationGoNowhere) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(stream_request("watched", "[3]", "1", "")), "");
  EXPECT_EQ(ended, 1);
}

TEST_F(Items, AnErrorEndsThemEarly) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(stream_request("fails_after", "[2]", "9")), items(0, 2) + "\n" + error_reply(7, "broken"));
  EXPECT_EQ(peer.ask(stream_request("count", R"(["x"])", "9")),
            invalid_params(R"({"loc":["n"],"expected":"integer","got":"\"x\""})"));
}

TEST_F(Items, ThatCannotBeEncodedEndThemWithNothingHalfSaid) {
  registry.method("bad", []() -> Stream<std::string> {
    co_yield "fine";
    co_yield "\xFF";
  });
  Peer peer{registry};
  EXPECT_EQ(peer.ask(stream_request("bad", "[]", "9")), item(0, "\"fine\"") + "\n" + internal_error());
  EXPECT_EQ(peer.log.size(), 1U);
}

TEST_F(Items, LargerThanAMessageMayBeEndThem) {
  Limits limits;
  limits.max_message_size = 300;
  Peer peer{registry, limits};
  const std::string wide(60, 'x');
  EXPECT_EQ(peer.ask(stream_request("texts", R"([["a",")" + wide + "\"]]", "9")),
            item(0, "\"a\"") + "\n" + item(1, "\"" + wide + "\"") + "\n" + result_reply("null"));
  registry.method("wide", []() -> Stream<std::string> { co_yield std::string(300, 'x'); });
  EXPECT_EQ(peer.ask(stream_request("wide", "[]", "9")),
            error_reply(-32006, "Too large",
                        R"({"reason":"an item is larger than a message may be","origin":"local",)"
                        R"("delivered":"maybe","limit":"max_message_size"})"));
}

TEST_F(Items, CancelStopsThemAtOnce) {
  Peer peer{registry};
  for (const std::string_view params : {"[5]", "[1000000000]"}) {  // waiting for credit, or for its next turn
    ended = 0;
    peer.send(stream_request("watched", params, params == "[5]" ? "2" : "1000000000"));
    static_cast<void>(peer.received());
    EXPECT_EQ(peer.ask(notification("rpc.cancel", "[1]")), cancelled());
    EXPECT_EQ(ended, 1);
    EXPECT_EQ(peer.ask(grant("5")), "");
    peer.advance(1s);
    EXPECT_EQ(peer.received(), "");
    EXPECT_EQ(peer.scheduler.running(), 0U);
  }
}

TEST_F(Items, AfterTheEndOfTheirCallAreNotSentThoughTheStreamGoesOn) {
  Completion<> wake;
  registry.method("stubborn", [&wake]() -> Stream<int> {
    co_yield 0;
    try {
      co_await wake;
    } catch (const Cancelled&) {
    }
    co_yield 1;
  });
  Peer peer{registry};
  EXPECT_EQ(peer.ask(stream_request("stubborn", "[]", "9")), item(0, "0"));
  EXPECT_EQ(peer.ask(notification("rpc.cancel", "[1]")), cancelled());
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
}

TEST_F(Items, TakeTurnsWithOtherCalls) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(stream_request("count", "[1000]", "1000")), items(0, 256));
  EXPECT_EQ(peer.ask(request("plain", "[5]", "2")), result_reply("5", "2"));
  peer.advance(0ns);
  EXPECT_EQ(peer.received(), items(256, 1000) + "\n" + result_reply("null"));
}

TEST_F(Items, RestWhileThereIsNoRoomAndThenGoOnInTurn) {
  Peer peer{registry};
  peer.sink.messages_max = 2;
  EXPECT_EQ(peer.ask(stream_request("count", "[4]", "9", "1")), items(0, 2, "1"));
  EXPECT_EQ(peer.ask(stream_request("count", "[4]", "9", "2")), items(0, 2, "2"));
  peer.dispatcher.on_writable();
  EXPECT_EQ(peer.received(), items(2, 4, "1") + "\n" + result_reply("null", "1"));
  peer.dispatcher.on_writable();
  EXPECT_EQ(peer.received(), items(2, 4, "2") + "\n" + result_reply("null", "2"));
  peer.dispatcher.on_writable();
  EXPECT_EQ(peer.received(), "");
}

TEST_F(Items, ThatRestAreCancelledAndAbandonedLikeOthers) {
  for (const bool gone : {false, true}) {
    ended = 0;
    Peer peer{registry};
    peer.sink.messages_max = 1;
    EXPECT_EQ(peer.ask(stream_request("watched", "[4]", "9", "1")), item(0, "0"));
    EXPECT_EQ(peer.ask(stream_request("watched", "[4]", "9", "2")), item(0, "0", "2"));
    if (gone) {
      peer.dispatcher.abandon();
    } else {
      EXPECT_EQ(peer.ask(notification("rpc.cancel", "[1]")), cancelled());
      peer.dispatcher.on_writable();
      EXPECT_EQ(peer.received(), item(1, "1", "2"));
      peer.dispatcher.stop_calls();
    }
    EXPECT_EQ(ended, 2);
    EXPECT_EQ(peer.scheduler.running(), 0U);
    peer.dispatcher.on_writable();
  }
}

TEST_F(Items, WithoutCreditOrRoomNeedBoth) {
  Peer peer{registry};
  peer.sink.messages_max = 1;
  EXPECT_EQ(peer.ask(stream_request("count", "[9]", "1")), item(0, "0"));
  peer.sink.messages_max = 0;
  EXPECT_EQ(peer.ask(grant("1")), "");
  peer.sink.messages_max = 9;
  peer.dispatcher.on_writable();
  EXPECT_EQ(peer.received(), item(1, "1"));
  peer.dispatcher.on_writable();
  EXPECT_EQ(peer.received(), "");
}

TEST_F(Items, GoByProgressWhereThereIsAToken) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(request("count", R"({"n":2,"partialResultToken":"t\u0031"})")),
            progress(R"("t\u0031")", "0") + "\n" + progress(R"("t\u0031")", "1") + "\n" + result_reply("null"));
  EXPECT_EQ(peer.ask(request("count", R"({"partialResultToken":7,"n":1})")),
            progress("7", "0") + "\n" + result_reply("null"));
  EXPECT_EQ(peer.ask(request("count", R"({"partialResultToken":null,"n":1})")), result_reply("[0]"));
  EXPECT_EQ(peer.ask(stream_request("count", R"({"n":2,"partialResultToken":"t"})", "9")),
            items(0, 2) + "\n" + result_reply("null"))
      << "stream comes first";
  EXPECT_EQ(peer.ask(request("plain", R"({"n":2,"partialResultToken":"t"})")),
            invalid_params(R"({"loc":["partialResultToken"],"expected":"nothing","got":"\"t\""})"))
      << "what is no stream does not know it";
}

TEST_F(Items, ProgressRestsWhileThereIsNoRoom) {
  Peer peer{registry};
  peer.sink.messages_max = 3;
  peer.send(request("watched", R"({"arg0":1000000000,"partialResultToken":1})"));
  EXPECT_EQ(peer.sink.messages.size(), 3U);
  EXPECT_EQ(made, 4);
  EXPECT_EQ(peer.ask(notification("$/cancelRequest", R"({"id":1})")).substr(3 * progress("1", "0").size() + 3),
            cancelled());
}

TEST_F(Items, CallTimeoutBoundsTheGapsAndNotTheWhole) {
  Limits limits;
  limits.call_timeout_ms = 30;
  Peer peer{registry, limits};
  peer.send(stream_request("ticks", "[5,29]", "9"));
  peer.advance(5 * 29ms);
  EXPECT_EQ(peer.received(), items(0, 5) + "\n" + result_reply("null"));
  EXPECT_EQ(peer.scheduler.running(), 0U);
  peer.send(stream_request("ticks", "[5,31]", "9"));
  peer.advance(30ms);
  EXPECT_EQ(peer.received(), timed_out());
  peer.send(request("ticks", "[5,29]"));
  peer.advance(30ms);
  EXPECT_EQ(peer.received(), timed_out()) << "what is gathered is one answer like any other";
}

TEST_F(Items, GapIsCountedFromTheLastItem) {
  registry.method("stalls", [](Context context) -> Stream<int> {
    co_await sleep_for(context, 20ms);
    co_yield 0;
    co_await sleep_for(context, 1h);
  });
  Limits limits;
  limits.call_timeout_ms = 30;
  Peer peer{registry, limits};
  peer.send(stream_request("stalls", "[]", "9"));
  peer.advance(20ms);
  EXPECT_EQ(peer.received(), item(0, "0"));
  peer.advance(30ms - 1ns);
  EXPECT_EQ(peer.received(), "");
  peer.advance(1ns);
  EXPECT_EQ(peer.received(), timed_out());
}

TEST_F(Items, TimeThatACallerTakesIsNoGap) {
  Limits limits;
  limits.call_timeout_ms = 30;
  Peer peer{registry, limits};
  EXPECT_EQ(peer.ask(stream_request("count", "[3]", "1")), item(0, "0"));
  peer.advance(100ms);
  EXPECT_EQ(peer.received(), "");
  EXPECT_EQ(peer.ask(grant("9")), items(1, 3) + "\n" + result_reply("null"));
}

TEST_F(Items, TimeoutBoundsTheWhole) {
  Limits limits;
  limits.call_timeout_ms = 30;
  Peer peer{registry, limits};
  peer.send(stream_request("ticks", "[9,20]", "9", "1", R"(,"timeout_ms":50)"));
  peer.advance(50ms - 1ns);
  EXPECT_EQ(peer.received(), items(0, 2));
  peer.advance(1ns);
  EXPECT_EQ(peer.received(), timed_out());
  EXPECT_EQ(peer.ask(stream_request("count", "[9]", "1", "1", R"(,"timeout_ms":50)")), item(0, "0"));
  peer.advance(50ms);
  EXPECT_EQ(peer.received(), timed_out()) << "also while it waits for credit";
}

}  // namespace
}  // namespace wirecall
