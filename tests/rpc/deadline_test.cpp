// How long a call may take, who counts, what is answered when the time is up; and how many calls may be within others.
#include <chrono>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "rpc/call_options.hpp"
#include "tests/rpc/peer.hpp"
#include "wirecall/registry.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::error_reply;
using test::Peer;
using test::result_reply;
using test::timed_out;

std::string request_with(std::string_view member, std::string_view value, std::string_view method = "wait",
                         std::string_view id = "1") {
  std::string text = R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(",")" + std::string{member} + "\":";
  text += value;
  if (!id.empty()) text.append(R"(,"id":)").append(id);
  return text + "}";
}
std::string with_timeout(std::string_view timeout, std::string_view method = "wait", std::string_view id = "1") {
  return request_with("timeout_ms", timeout, method, id);
}
std::string too_late() {
  return error_reply(-32002, "Timeout",
                     R"({"reason":"the time was up before the call began","origin":"local","delivered":"no"})");
}

class Deadline : public testing::Test {
 protected:
  Deadline() {
    registry.method("wait", [this]() -> Task<int> {
      ++begun;
      co_return co_await completion;
    });
    registry.method("now", [this] { return ++begun; });
    registry.method("left", [](const Context& context) {
      return std::chrono::duration<double, std::milli>(context.remaining()).count();
    });
  }

  Registry registry;
  Completion<int> completion;
  int begun = 0;
};

TEST_F(Deadline, IsCountedFromTheRequest) {
  Peer peer{registry};
  peer.send(with_timeout("20"));
  peer.advance(20ms - 1ns);
  EXPECT_EQ(peer.received(), "");
  peer.advance(1ns);
  EXPECT_EQ(peer.received(), timed_out());
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
  completion.set(5);
  EXPECT_EQ(peer.received(), "") << "what comes late is dropped";
}

TEST_F(Deadline, ThatIsMetLeavesNoTimer) {
  Peer peer{registry};
  peer.send(with_timeout("20"));
  completion.set(5);
  EXPECT_EQ(peer.received(), result_reply("5"));
  EXPECT_EQ(peer.scheduler.running(), 0U);
}

TEST_F(Deadline, CostsACallThatIsAnsweredAtOnceNoTimer) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(with_timeout("20", "now")), result_reply("1"));
  EXPECT_EQ(peer.ask(test::request("now")), result_reply("2"));
  EXPECT_EQ(peer.scheduler.started(), 0U);
}

TEST_F(Deadline, OfAnyCallIsCallTimeout) {
  Limits limits;
  limits.call_timeout_ms = 50;
  for (const std::string& text : {test::request("wait"), with_timeout("51"), with_timeout("1e400")}) {
    Peer peer{registry, limits};
    peer.send(text);
    peer.advance(50ms - 1ns);
    EXPECT_EQ(peer.received(), "") << text;
    peer.advance(1ns);
    EXPECT_EQ(peer.received(), timed_out()) << text;
  }
}

TEST_F(Deadline, IsRoundedUpToMilliseconds) {
  for (const std::string_view timeout : {"0.01", "1", "1.0", "1e-400", "10e-1", "0.000001", "0.1e1"}) {
    Peer peer{registry};
    peer.send(with_timeout(timeout));
    peer.advance(1ms - 1ns);
    EXPECT_EQ(peer.received(), "") << timeout;
    peer.advance(1ns);
    EXPECT_EQ(peer.received(), timed_out()) << timeout;
  }
}

TEST_F(Deadline, OfZeroIsNotDelivered) {
  Peer peer{registry};
  for (const std::string_view timeout : {"0", "-0", "0.0", "0e5", "-0.0e-3"})
    EXPECT_EQ(peer.ask(with_timeout(timeout)), too_late()) << timeout;
  EXPECT_EQ(peer.ask(with_timeout("0", "wait", "")), "");
  EXPECT_EQ(begun, 0);
  EXPECT_EQ(registry.handle(with_timeout("0", "now")), too_late());
}

TEST_F(Deadline, CountsTheTimeThatTheRequestHasWaited) {
  Peer peer{registry};
  peer.sink.received_time = peer.scheduler.now() - 15ms;
  EXPECT_EQ(peer.ask(with_timeout("15", "now")), too_late());
  EXPECT_EQ(begun, 0);
  peer.send(with_timeout("20"));
  peer.advance(5ms);
  EXPECT_EQ(peer.received(), timed_out());
}

TEST_F(Deadline, StopsTheHandlerAndAnotherOutcomeDoesNotCount) {
  registry.method("stubborn", [this](Context context) -> Task<int> {
    try {
      co_await completion;
    } catch (const Cancelled&) {
      EXPECT_TRUE(context.cancelled());
      EXPECT_EQ(context.remaining(), 0ns);
    }
    co_return 6;
  });
  Peer peer{registry};
  peer.send(with_timeout("10", "stubborn"));
  peer.advance(10ms);
  EXPECT_EQ(peer.received(), timed_out());
}

TEST_F(Deadline, OfANotificationStopsItSilently) {
  Peer peer{registry};
  peer.send(with_timeout("10", "wait", ""));
  EXPECT_EQ(peer.dispatcher.in_flight(), 1U);
  peer.advance(10ms);
  EXPECT_EQ(peer.received(), "");
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
}

TEST_F(Deadline, OfABatchsElementIsItsOwn) {
  registry.method("sleep", [](Context context) -> Task<void> { co_await sleep_for(context, 15ms); });
  Peer peer{registry};
  peer.send("[" + with_timeout("10", "sleep", "1") + "," + with_timeout("20", "sleep", "2") + "]");
  peer.advance(10ms);
  EXPECT_EQ(peer.received(), "");
  peer.advance(5ms);
  EXPECT_EQ(peer.received(), "[" + timed_out("1") + "," + result_reply("null", "2") + "]");
}

TEST_F(Deadline, IsKnownToTheHandler) {
  Peer peer{registry};
  EXPECT_EQ(peer.ask(with_timeout("20", "left")), result_reply("20"));
  EXPECT_EQ(peer.ask(test::request("left")), result_reply("30000"));
  peer.sink.received_time = peer.scheduler.now() - 5ms;
  EXPECT_EQ(peer.ask(with_timeout("20", "left")), result_reply("15"));
  registry.method("none", [](const Context& context) {
    return context.deadline() == kNoDeadline && context.remaining() == kNoDeadline && context.scheduler() == nullptr;
  });
  EXPECT_EQ(registry.handle(with_timeout("20", "none")), result_reply("true"));
}

TEST_F(Deadline, TellsReplyHooks) {
  int code = 0;
  registry.use([&](Call& call, const Next& next) {
    call.on_reply([&](const Outcome& outcome) { code = outcome.code; });
    next(call);
  });
  Peer peer{registry};
  peer.send(with_timeout("10"));
  peer.advance(10ms);
  EXPECT_EQ(code, -32002);
}

TEST_F(Deadline, GoesWithItsPeer) {
  {
    Peer peer{registry};
    peer.send(with_timeout("10"));
    peer.dispatcher.abandon();
    EXPECT_EQ(peer.scheduler.running(), 0U);
    peer.advance(1s);
    EXPECT_EQ(peer.received(), "");
  }
}

TEST_F(Deadline, OfAServerThatEndsAnswersDraining) {
  Peer peer{registry};
  peer.send(test::request("wait"));
  peer.dispatcher.drain();
  peer.dispatcher.stop_calls();
  EXPECT_EQ(peer.received(), error_reply(-32009, "Draining",
                                         R"({"reason":"the server has shut down before the call was done",)"
                                         R"("origin":"local","delivered":"maybe"})"));
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
}

TEST(Milliseconds, AreReadFromAnyNumber) {
  constexpr std::uint32_t kMax = std::numeric_limits<std::uint32_t>::max();
  const std::string zeros(400, '0');
  for (const auto& [text, expected] :
       std::vector<std::pair<std::string, std::uint32_t>>{{"0", 0},
                                                          {"-0", 0},
                                                          {"0.000", 0},
                                                          {"0e99999999999999999999", 0},
                                                          {"-0.0E+7", 0},
                                                          {"1", 1},
                                                          {"1.5", 2},
                                                          {"2.000000000000000000000001", 2},
                                                          {"1E-1", 1},
                                                          {"0.9", 1},
                                                          {"10", 10},
                                                          {"1e3", 1000},
                                                          {"1000e-3", 1},
                                                          {"1001e-3", 2},
                                                          {"4294967295", kMax},
                                                          {"4294967294", kMax - 1},
                                                          {"4294967296", kMax},
                                                          {"1e400", kMax},
                                                          {"1e-400", 1},
                                                          {"1e99999999999999999999", kMax},
                                                          {"1e-99999999999999999999", 1},
                                                          {"1" + zeros + "e-400", 1},
                                                          {"1" + zeros + "e-10", kMax},
                                                          {"0." + zeros + "1", 1},
                                                          {"0." + zeros + "1e402", 10}}) {
    EXPECT_EQ(rpc::milliseconds_of(text), expected) << text;
  }
}

TEST_F(Deadline, HopsAreCountedAndBounded) {
  registry.method("hops", [](const Context& context) { return context.hops(); });
  Limits limits;
  limits.hops = 3;
  Peer peer{registry, limits};
  EXPECT_EQ(peer.ask(test::request("hops")), result_reply("0"));
  EXPECT_EQ(peer.ask(request_with("hops", "3", "hops")), result_reply("3"));
  EXPECT_EQ(
      peer.ask(request_with("hops", "4", "hops")),
      error_reply(-32005, "Limit exceeded",
                  R"({"reason":"too many calls within calls","origin":"local","delivered":"no","limit":"hops"})"));
  EXPECT_EQ(peer.ask(request_with("hops", "4", "hops", "")), "");
  for (const std::string_view wrong : {"-1", "\"1\"", "null", "1.5", "1e30", "[]"})
    EXPECT_EQ(peer.ask(request_with("hops", wrong, "hops")), test::invalid_request("1")) << wrong;
}

}  // namespace
}  // namespace wirecall
