// Handlers that call their caller back: what is sent, what comes of each way in which such a call ends, and how far
// calls within calls may go.
#include "rpc/peer_calls.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <string>
#include <tuple>
#include <vector>

#include "tests/rpc/peer.hpp"
#include "wirecall/caller.hpp"
#include "wirecall/registry.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::cancelled;
using test::error_reply;
using test::internal_error;
using test::notification;
using test::request;
using test::result_reply;

struct Edit {
  std::string label;
  int line;
};

std::string asked(std::string_view method, std::string_view params, int hops, int timeout_ms, int id) {
  std::string text = R"({"jsonrpc":"2.0","method":")" + std::string{method} + '"';
  if (!params.empty()) text.append(R"(,"params":)").append(params);
  return text + R"(,"hops":)" + std::to_string(hops) + R"(,"timeout_ms":)" + std::to_string(timeout_ms) +
         R"(,"id":"h)" + std::to_string(id) + "\"}";
}
std::string lost() {
  return error_reply(-32001, "Provider lost",
                     R"({"reason":"the caller has gone","origin":"local","delivered":"maybe"})");
}

class PeerCalls : public testing::Test {
 protected:
  PeerCalls() {
    registry.method("twice", [](Context context, int n) -> Task<int> {
      co_return 2 * co_await Caller{context}.call<int>("get", n, "x");
    });
    registry.method("edit", [](Context context) -> Task<void> {
      const Edit edit{"a", 7};  // with a name: GCC 12 destroys twice what is made within a co_await in braces
      co_await Caller{context}.call_with("apply", edit);
      co_await Caller{context}.call("done");
    });
    registry.method("tell", [](Context context, int n) -> Task<void> {
      Caller{context}.notify("told", n);
      Caller{context}.notify_with("told", Edit{"b", n});
      co_return;
    });
    registry.method("plain", [](const Context& context) { Caller{context}.notify("told"); });
  }
  // Gives the dispatcher a response.
  static bool answer(test::Peer& peer, std::string_view text) {
    const test::PaddedText frame{text};
    Received message;
    EXPECT_EQ(read_message(frame.view(), {}, true, message).status, ScanStatus::complete);
    EXPECT_EQ(message.kind, MessageKind::response);
    return peer.dispatcher.response(message);
  }

  Registry registry;
};

TEST_F(PeerCalls, AreAnsweredAndThenTheirHandlersGoOn) {
  test::Peer peer{registry};
  EXPECT_EQ(peer.ask(request("twice", "[4]")), asked("get", R"([4,"x"])", 1, 30'000, 1));
  EXPECT_TRUE(peer.dispatcher.awaits_responses());
  EXPECT_TRUE(answer(peer, result_reply("21", R"("h1")")));
  EXPECT_EQ(peer.received(), result_reply("42"));
  EXPECT_FALSE(peer.dispatcher.awaits_responses());
  EXPECT_EQ(peer.scheduler.running(), 0U);
  EXPECT_FALSE(answer(peer, result_reply("21", R"("h1")"))) << "once only";
}

TEST_F(PeerCalls, TakeParamsByNameAndNone) {
  test::Peer peer{registry};
  EXPECT_EQ(peer.ask(request("edit")), asked("apply", R"({"label":"a","line":7})", 1, 30'000, 1));
  EXPECT_TRUE(answer(peer, result_reply("null", R"("h1")")));
  EXPECT_EQ(peer.received(), asked("done", "", 1, 30'000, 2));
  EXPECT_TRUE(answer(peer, result_reply("[1]", R"("h2")")));
  EXPECT_EQ(peer.received(), result_reply("null"));
}

TEST_F(PeerCalls, NotifyAtOnce) {
  test::Peer peer{registry};
  EXPECT_EQ(peer.ask(request("tell", "[5]")),
            R"({"jsonrpc":"2.0","method":"told","params":[5],"hops":1})"
            "\n"
            R"({"jsonrpc":"2.0","method":"told","params":{"label":"b","line":5},"hops":1})"
            "\n" +
                result_reply("null"));
}

TEST_F(PeerCalls, ErrorsAreThrown) {
  test::Peer peer{registry};
  for (const auto& [response, reply] : {
           std::tuple{R"({"jsonrpc":"2.0","error":{"code":7,"message":"no","data":[1]},"id":"h1"})",
                      error_reply(7, "no", "[1]")},
           std::tuple{R"({"jsonrpc":"2.0","error":{"message":"no"},"id":"h2"})",
                      error_reply(-32600, "Invalid Request",
                                  R"({"reason":"the response is malformed","origin":"local","delivered":"maybe"})")},
           std::tuple{R"({"jsonrpc":"2.0","error":{"code":7,"message":"no"},"result":1,"id":"h3"})",
                      error_reply(-32600, "Invalid Request",
                                  R"({"reason":"the response is malformed","origin":"local","delivered":"maybe"})")},
       }) {
    static_cast<void>(peer.ask(request("twice", "[4]")));
    EXPECT_TRUE(answer(peer, response));
    EXPECT_EQ(peer.received(), reply);
  }
}

TEST_F(PeerCalls, WhatTheHandlerDidItselfIsThrownToItAndNoBusinessOfItsCallers) {
  std::vector<std::string> caught;
  const auto note = [&caught](const LocalError& error) {
    caught.push_back(std::to_string(error.code()) + " " + error.message() + " " + error.data());
  };
  registry.method("wrong_result", [&note](Context context) -> Task<void> {
    try {
      co_await Caller{context}.call<int>("get");
    } catch (const LocalError& error) {
      note(error);
      throw;
    }
  });
  registry.method("wrong_argument", [&note](Context context) -> Task<void> {
    try {
      co_await Caller{context}.call("get", 0.0 / 0.0);
    } catch (const LocalError& error) {
      note(error);
    }
    Caller{context}.notify("told", 0.0 / 0.0);
  });
  test::Peer peer{registry};
  EXPECT_EQ(peer.ask(request("wrong_result")), asked("get", "", 1, 30'000, 1));
  EXPECT_TRUE(answer(peer, result_reply("\"x\"", R"("h1")")));
  EXPECT_EQ(peer.received(), internal_error());
  EXPECT_EQ(peer.ask(request("wrong_argument")), internal_error());
  const std::string wrong_result =
      R"(the result is not what was asked for: integer {"loc":[],"expected":"integer","got":"\"x\""})";
  const std::string wrong_argument = "a number is NaN or infinite, which JSON cannot express";
  EXPECT_EQ(caught, (std::vector<std::string>{"-32603 " + wrong_result, "-32602 " + wrong_argument + " "}));
  EXPECT_EQ(peer.log, (std::vector<std::string>{"method wrong_result raised: " + wrong_result,
                                                "method wrong_argument raised: " + wrong_argument}));
}

TEST_F(PeerCalls, ErrorsThatNobodyCatchesDoNotSayThatTheHandlerWasNotCalled) {
  // Or its caller would make the call again.
  registry.method("careful", [](Context context) -> Task<std::string> {
    try {
      co_await Caller{context}.call("get");
    } catch (const Error& error) {
      co_return error.data();
    }
    co_return "";
  });
  test::Peer peer{registry};
  const std::string refusal =
      R"({"jsonrpc":"2.0","error":{"code":-32009,"message":"Draining","data":{"origin": "local", "delivered": "no"}},"id":)";
  static_cast<void>(peer.ask(request("twice", "[4]")));
  EXPECT_TRUE(answer(peer, refusal + R"("h1"})"));
  EXPECT_EQ(peer.received(), error_reply(-32009, "Draining", R"({"origin":"local","delivered":"maybe"})"));
  static_cast<void>(peer.ask(request("careful")));
  EXPECT_TRUE(answer(peer, refusal + R"("h2"})"));
  EXPECT_EQ(peer.received(), result_reply(R"("{\"origin\": \"local\", \"delivered\": \"no\"}")"));
}

TEST_F(PeerCalls, OnlyTheirOwnIdsAreTheirs) {
  test::Peer peer{registry};
  static_cast<void>(peer.ask(request("twice", "[4]")));
  for (const std::string_view id : {"1", "\"1\"", "\"h2\"", "\"h\"", "\"h01\"", "\"h1 \"", "\"h1x\"", "null",
                                    "\"h99999999999999999999\"", "\"\\u00681\"", "\"h-1\""})
    EXPECT_FALSE(answer(peer, result_reply("1", id))) << id;
  EXPECT_TRUE(peer.dispatcher.awaits_responses());
}

TEST_F(PeerCalls, AreCancelledWithTheirHandlerAndThePeerIsTold) {
  test::Peer peer{registry};
  static_cast<void>(peer.ask(request("twice", "[4]")));
  EXPECT_EQ(peer.ask(notification("rpc.cancel", "[1]")),
            cancelled() + '\n' + R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"h1"}})");
  EXPECT_FALSE(answer(peer, result_reply("21", R"("h1")")));
  EXPECT_EQ(peer.received(), "");
  EXPECT_EQ(peer.scheduler.running(), 0U);
}

TEST_F(PeerCalls, HaveWhatRemainsOfTheirHandlersTime) {
  registry.method("later", [](Context context) -> Task<int> {
    co_await sleep_for(context, 15ms);
    co_return co_await Caller{context}.call<int>("get");
  });
  test::Peer peer{registry};
  peer.send(R"({"jsonrpc":"2.0","method":"later","timeout_ms":40,"id":1})");
  peer.advance(15ms);
  EXPECT_EQ(peer.received(), asked("get", "", 1, 25, 1));
  peer.advance(25ms);
  const std::string lines = peer.received();
  EXPECT_NE(lines.find(R"("method":"$/cancelRequest","params":{"id":"h1"})"), std::string::npos) << lines;
  EXPECT_NE(lines.find(R"("code":-32002)"), std::string::npos) << lines;
  EXPECT_EQ(peer.dispatcher.in_flight(), 0U);
  EXPECT_EQ(peer.scheduler.running(), 0U);
}

TEST_F(PeerCalls, HopsAreCountedUpToTheLimit) {
  test::Peer peer{registry};
  EXPECT_EQ(peer.ask(R"({"jsonrpc":"2.0","method":"twice","params":[4],"hops":15,"id":1})"),
            asked("get", R"([4,"x"])", 16, 30'000, 1));
  EXPECT_EQ(
      peer.ask(R"({"jsonrpc":"2.0","method":"twice","params":[4],"hops":16,"id":1})"),
      error_reply(-32005, "Limit exceeded",
                  R"({"reason":"too many calls within calls","origin":"local","delivered":"maybe","limit":"hops"})"));
}

TEST_F(PeerCalls, NoMoreWaitThanMayBeInFlight) {
  registry.method("many", [](Context context, int n) -> Task<int> {
    std::vector<Task<int>> calls;
    for (int i = 0; i < n; ++i) calls.push_back(Caller{context}.call<int>("get", i));
    int sum = 0;
    for (const int value : co_await when_all(std::move(calls))) sum += value;
    co_return sum;
  });
  Limits limits;
  limits.in_flight = 2;
  test::Peer peer{registry, limits};
  EXPECT_EQ(peer.ask(request("many", "[2]")),
            asked("get", "[0]", 1, 30'000, 1) + '\n' + asked("get", "[1]", 1, 30'000, 2));
  EXPECT_TRUE(answer(peer, result_reply("5", R"("h2")")));
  EXPECT_TRUE(answer(peer, result_reply("6", R"("h1")")));
  EXPECT_EQ(peer.received(), result_reply("11"));
  // The third fails at once, and the others are given up with it.
  const std::string lines = peer.ask(request("many", "[3]"));
  EXPECT_EQ(lines.substr(lines.rfind('\n') + 1),
            error_reply(-32005, "Limit exceeded",
                        R"({"reason":"too many calls of this connection's caller are in flight","origin":"local",)"
                        R"("delivered":"maybe","limit":"in_flight"})"));
}

TEST_F(PeerCalls, FailWhenThePeerAnswersNoMore) {
  test::Peer peer{registry};
  static_cast<void>(peer.ask(request("twice", "[4]")));
  peer.dispatcher.peer_ended();
  EXPECT_EQ(peer.received(), lost());
  EXPECT_EQ(peer.ask(request("twice", "[4]")), lost()) << "nothing is sent any more";
}

TEST_F(PeerCalls, EndSilentlyWithTheirConnection) {
  int caught = 0;
  registry.method("holds", [&caught](Context context) -> Task<int> {
    const Caller caller{context};
    try {
      co_return co_await caller.call<int>("get");
    } catch (const Error& error) {
      caught = error.code();
    }
    co_return co_await caller.call<int>("get");
  });
  test::Peer peer{registry};
  static_cast<void>(peer.ask(request("holds")));
  peer.dispatcher.abandon();
  EXPECT_EQ(caught, -32800);
  EXPECT_EQ(peer.received(), "");
  EXPECT_EQ(peer.scheduler.running(), 0U);
}

TEST_F(PeerCalls, NeedAConnectionAndACoroutine) {
  const std::string refused =
      error_reply(-32001, "Provider lost",
                  R"({"reason":"the caller cannot be called: it has no connection of its own, or the handler )"
                  R"(is no coroutine","origin":"local","delivered":"maybe"})");
  EXPECT_EQ(registry.handle(request("twice", "[4]")), refused);
  EXPECT_EQ(registry.handle(request("tell", "[4]")), refused);
  test::Peer peer{registry};
  EXPECT_EQ(peer.ask(request("plain")), refused);
}

TEST_F(PeerCalls, OverTheSizeLimitAreNotMade) {
  registry.method("big",
                  [](Context context) -> Task<void> { co_await Caller{context}.call("take", std::string(300, 'x')); });
  Limits limits;
  limits.max_message_size = 300;
  test::Peer peer{registry, limits};
  EXPECT_EQ(peer.ask(request("big")),
            error_reply(-32006, "Too large",
                        R"({"reason":"the request is larger than a message may be","origin":"local",)"
                        R"("delivered":"maybe","limit":"max_message_size"})"));
}

TEST_F(PeerCalls, NotificationsKeepTheLimitsOfCalls) {
  registry.method("big", [](Context context) -> Task<void> {
    Caller{context}.notify("take", std::string(300, 'x'));
    co_return;
  });
  Limits limits;
  limits.max_message_size = 300;
  test::Peer peer{registry, limits};
  EXPECT_EQ(peer.ask(request("big")),
            error_reply(-32006, "Too large",
                        R"({"reason":"the notification is larger than a message may be","origin":"local",)"
                        R"("delivered":"maybe","limit":"max_message_size"})"));
  EXPECT_EQ(
      peer.ask(R"({"jsonrpc":"2.0","method":"tell","params":[4],"hops":16,"id":1})"),
      error_reply(-32005, "Limit exceeded",
                  R"({"reason":"too many calls within calls","origin":"local","delivered":"maybe","limit":"hops"})"));
}

TEST_F(PeerCalls, NotificationsReachAPeerThatSaysNothingMoreItself) {
  test::Peer peer{registry};
  static_cast<void>(peer.ask(request("twice", "[4]")));
  peer.dispatcher.peer_ended();
  EXPECT_EQ(peer.received(), lost());
  const std::string lines = peer.ask(request("tell", "[5]"));
  EXPECT_TRUE(lines.starts_with(R"({"jsonrpc":"2.0","method":"told","params":[5],"hops":1})")) << lines;
}

}  // namespace
}  // namespace wirecall
