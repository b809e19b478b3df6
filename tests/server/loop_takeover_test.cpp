// Handlers that do not return: what others get meanwhile, and what becomes of the handlers' own calls when they do.
// A handler is let go by the test, never by time.
#include "server/loop_takeover.hpp"

#include <atomic>
#include <future>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/server/loop_takeover_fixture.hpp"

namespace wirecall::net {
namespace {

TEST_F(LoopTakeoverTest, OthersAreServedWhileAHandlerDoesNotReturn) {
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  RawPeer quick{*endpoint};
  expect_served(quick, 1);
  slow.send(call("block", "[7]", 1));
  gate.await_inside(1);
  for (int i = 0; i < 100; ++i) expect_served(quick, i);
  gate.open();
  EXPECT_EQ(slow.line(), result("7", 1));
  expect_served(slow, 2);
}

TEST_F(LoopTakeoverTest, ManyHandlersMayBeOffTheLoopAtOnceAndReturnInAnyOrder) {
  const RunningServer running{server};
  std::vector<RawPeer> slow;
  for (int i = 0; i < 8; ++i) {
    slow.emplace_back(*endpoint);
    slow.back().send(call("block", "[" + std::to_string(i) + "]", i));
    gate.await_inside(i + 1);
  }
  RawPeer quick{*endpoint};
  expect_served(quick, 1);
  gate.open();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(slow[static_cast<std::size_t>(i)].line(), result(std::to_string(i), i));
  gate.close();
  // The threads are used again.
  slow[0].send(call("block", "[9]", 9));
  gate.await_inside(1);
  expect_served(quick, 2);
  gate.open();
  EXPECT_EQ(slow[0].line(), result("9", 9));
}

// All but the first are read in one turn, and lose the loop one after the other in it; each may read from its frame
// until it is let go, when those before it have gone.
TEST_F(LoopTakeoverTest, HandlersOfOneTurnKeepTheirFramesApart) {
  std::vector<Gate> gates(6);
  server.method("echo_from", [&gates](std::size_t gate_number, std::string_view text) {
    gates[gate_number].wait();
    return std::string{text};
  });
  const RunningServer running{server};
  std::vector<RawPeer> peers;
  for (std::size_t i = 0; i < gates.size(); ++i) peers.emplace_back(*endpoint);
  for (std::size_t i = 0; i < gates.size(); ++i) {
    const std::string text(200, static_cast<char>('a' + i));
    peers[i].send(call("echo_from", "[" + std::to_string(i) + ",\"" + text + "\"]", static_cast<int>(i)));
    if (i == 0) gates[0].await_inside(1);
  }
  for (std::size_t i = 0; i < gates.size(); ++i) gates[i].await_inside(1);
  for (std::size_t i = 0; i < gates.size(); ++i) {
    gates[i].open();
    EXPECT_EQ(peers[i].line(), result('"' + std::string(200, static_cast<char>('a' + i)) + '"', static_cast<int>(i)));
    peers[i].close();
  }
}

TEST_F(LoopTakeoverTest, LaterCallsOfTheSameConnectionAreServed) {
  const RunningServer running{server};
  RawPeer peer{*endpoint};
  std::string all;
  for (int i = 0; i < 4; ++i) all += call("block", "[0]", i) + call("add", "[1,2]", 10 + i);
  peer.send(all + call("add", "[1,2]", 20).substr(0, 30));
  std::set<std::string> got;
  for (int i = 0; i < 4; ++i) got.insert(peer.line());
  EXPECT_EQ(got, (std::set{result("3", 10), result("3", 11), result("3", 12), result("3", 13)}));
  peer.send(call("add", "[1,2]", 20).substr(30));
  EXPECT_EQ(peer.line(), result("3", 20));
  gate.open();
  got.clear();
  for (int i = 0; i < 4; ++i) got.insert(peer.line());
  EXPECT_EQ(got, (std::set{result("0", 0), result("0", 1), result("0", 2), result("0", 3)}));
  expect_served(peer, 21);
}

TEST_F(LoopTakeoverTest, WhatAHandlerBorrowsStaysWhileItIsOffTheLoop) {
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  RawPeer quick{*endpoint};
  slow.send(call("echo_late", R"(["\u0061 plain","other"])", 1));
  gate.await_inside(1);
  const std::string noise(2000, 'n');
  for (int i = 0; i < 50; ++i) {
    quick.send(R"({"jsonrpc":"2.0","method":"\u0061dd","params":[1,2],"x":")" + noise +
               R"(","id":1})"
               "\n");
    EXPECT_EQ(quick.line(), result("3", 1));
  }
  RawPeer raw{*endpoint};
  raw.send(call("raw_late", R"([{"a":[1,2,3]}])", 2));
  gate.await_inside(2);
  for (int i = 0; i < 50; ++i) expect_served(quick, i);
  gate.open();
  EXPECT_EQ(slow.line(), result(R"("a plainother")", 1));
  EXPECT_EQ(raw.line(), result(R"({"a":[1,2,3]})", 2));
}

TEST_F(LoopTakeoverTest, AMessageThatCameInPiecesStaysWhileItsHandlerIsOffTheLoop) {
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  const std::string text = call("echo_late", R"(["first","second"])", 1);
  for (const char byte : text.substr(0, text.size() - 1)) slow.send({&byte, 1});
  gate.await_inside(1);
  slow.send("\n" + call("add", "[1,2]", 2));
  EXPECT_EQ(slow.line(), result("3", 2));
  gate.open();
  EXPECT_EQ(slow.line(), result(R"("firstsecond")", 1));
}

TEST_F(LoopTakeoverTest, WhatFollowsAMessageOfKnownLengthIsUnharmed) {
  const auto framed = [](std::string body) {
    body.pop_back();
    return "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  };
  const RunningServer running{server};
  RawPeer peer{*endpoint};
  peer.send(framed(call("block", "[5]", 1)) + framed(call("add", "[1,2]", 2)) + framed(call("add", "[1,2]", 3)));
  peer.finish();
  gate.await_inside(1);
  RawPeer quick{*endpoint};
  expect_served(quick, 1);
  gate.open();
  const std::string all = peer.all();
  EXPECT_NE(all.find(result("5", 1)), all.npos);
  EXPECT_NE(all.find(result("3", 2)), all.npos);
  EXPECT_NE(all.find(result("3", 3)), all.npos);
}

TEST_F(LoopTakeoverTest, OfHttpTheResponsesKeepTheirOrder) {
  const auto post = [](std::string body) {
    body.pop_back();
    return "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
           body;
  };
  const RunningServer running{server};
  RawPeer peer{*endpoint};
  RawPeer quick{*endpoint};
  peer.send(post(call("add", "[1,1]", 1)) + post(call("block", "[5]", 2)) + post(call("add", "[1,2]", 3)) +
            post(call("block", "[6]", 4)) + post(call("add", "[1,3]", 5)));
  gate.await_inside(1);
  expect_served(quick, 1);
  peer.finish();
  expect_served(quick, 2);
  gate.open();
  const std::string all = peer.all();
  std::size_t at = 0;
  for (const std::string& reply : {result("2", 1), result("5", 2), result("3", 3), result("6", 4), result("4", 5)}) {
    at = all.find(reply, at);
    ASSERT_NE(at, all.npos) << reply << " in " << all;
  }
}

TEST_F(LoopTakeoverTest, ABatchWaitsForItsHandlersAndNobodyElseDoes) {
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  RawPeer quick{*endpoint};
  std::string batch = "[" + call("add", "[1,1]", 1) + "," + call("block", "[2]", 2) + "," + call("block", "[3]", 3) +
                      "," + call("add", "[2,2]", 4) + "]";
  std::erase(batch, '\n');
  slow.send(batch + "\n");
  gate.await_inside(1);
  for (int i = 0; i < 20; ++i) expect_served(quick, i);
  // An array that a batch of another connection would overwrite.
  quick.send("[" + call("add", "[5,5]", 1) + "," + call("add", "[6,6]", 2) + "]\n");
  EXPECT_EQ(quick.line(), "[" + result("10", 1) + "," + result("12", 2) + "]");
  gate.open();
  EXPECT_EQ(slow.line(),
            "[" + result("2", 1) + "," + result("2", 2) + "," + result("3", 3) + "," + result("4", 4) + "]");
}

TEST_F(LoopTakeoverTest, TheRestOfABatchAndWhatIsBehindItIsServedWhileAHandlerIsOffTheLoop) {
  std::atomic<int> seen{0};
  server.method("digit", [&](int value) { return seen = 10 * seen + value; });
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  std::string batch =
      "[" + call("block", "[1]", 1) + "," + call("digit", "[2]", 2) + "," + call("digit", "[3]", 3) + "]";
  std::erase(batch, '\n');
  slow.send(batch + "\n" + call("digit", "[4]", 4));
  EXPECT_EQ(slow.line(), result("234", 4)) << "in the order in which they were sent";
  gate.open();
  EXPECT_EQ(slow.line(), "[" + result("1", 1) + "," + result("2", 2) + "," + result("23", 3) + "]");
}

// The second handler of the batch loses the loop when no connection is being looked at: the last that was has gone.
TEST_F(LoopTakeoverTest, ABatchThatReturnsMayLoseTheLoopAgain) {
  Gate second;
  server.method("block_again", [&](int value) {
    second.wait();
    return value;
  });
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  RawPeer quick{*endpoint};
  std::string batch = "[" + call("block", "[1]", 1) + "," + call("block_again", "[2]", 2) + "]";
  std::erase(batch, '\n');
  slow.send(batch + "\n");
  gate.await_inside(1);
  RawPeer gone{*endpoint};
  expect_served(gone, 1);
  gone.finish();
  EXPECT_TRUE(gone.ended());
  gate.open();
  second.await_inside(1);
  expect_served(quick, 1);
  second.open();
  EXPECT_EQ(slow.line(), "[" + result("1", 1) + "," + result("2", 2) + "]");
}

TEST_F(LoopTakeoverTest, ConnectionsThatEndMeanwhileAreClosed) {
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  slow.send(call("block", "[1]", 1));
  gate.await_inside(1);
  RawPeer quick{*endpoint};
  expect_served(quick, 1);
  quick.finish();
  EXPECT_TRUE(quick.at_end());
  // On the connection that it came with, too.
  RawPeer first{*endpoint};
  first.send(call("block", "[2]", 2));
  gate.await_inside(2);
  RawPeer other{*endpoint};
  expect_served(other, 2);
  gate.open();
  EXPECT_EQ(first.line(), result("2", 2));
  expect_served(first, 3);
  first.finish();
  EXPECT_TRUE(first.at_end());
}

TEST_F(LoopTakeoverTest, AnHttpHeadThatCameInPiecesIsServedOnce) {
  server
      .method("block_safely",
              [this](int value) {
                gate.wait();
                return value;
              })
      .safe();
  const RunningServer running{server};
  RawPeer quick{*endpoint};
  RawPeer peer{*endpoint};
  peer.send("GET /rpc/block_safely?arg0=7 HT");
  expect_served(quick, 1);
  peer.send("TP/1.1\r\nHost: localhost\r\n\r\n");
  gate.await_inside(1);
  peer.finish();
  for (int i = 2; i < 5; ++i) expect_served(quick, i);
  gate.open();
  const std::string all = peer.all();
  EXPECT_EQ(all.rfind("HTTP/1.1 200 OK\r\n", 0), 0U) << all;
  EXPECT_EQ(all.find("HTTP/1.1", 1), all.npos) << all;
}

TEST_F(LoopTakeoverTest, AConnectionMayEndWhileItsHandlerIsOffTheLoop) {
  const RunningServer running{server};
  RawPeer quick{*endpoint};
  {
    RawPeer slow{*endpoint};
    slow.send(call("block", "[1]", 1));
    gate.await_inside(1);
    slow.reset();
  }
  for (int i = 0; i < 50; ++i) expect_served(quick, i);
  gate.open();
  for (int i = 0; i < 50; ++i) expect_served(quick, i);
}

TEST_F(LoopTakeoverTest, AHalfClosedConnectionIsAnsweredByAHandlerThatReturns) {
  const RunningServer running{server};
  RawPeer quick{*endpoint};
  RawPeer slow{*endpoint};
  slow.send(call("block", "[1]", 1) + call("on_notify", "[1]", 0).erase(45, 0));
  slow.finish();
  gate.await_inside(1);
  expect_served(quick, 1);
  gate.open();
  EXPECT_NE(slow.all().find(result("1", 1)), std::string::npos);
}

TEST_F(LoopTakeoverTest, ExceptionsOfAHandlerThatReturnsAreAnswered) {
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  RawPeer quick{*endpoint};
  slow.send(call("throw_late", "[1]", 1));
  gate.await_inside(1);
  expect_served(quick, 1);
  gate.open();
  EXPECT_EQ(slow.line(), R"({"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error"},"id":1})");
}

TEST_F(LoopTakeoverTest, AServerThatStopsWaitsForItsHandlersAndAnswersThem) {
  RunningServer running{server};
  RawPeer slow{*endpoint};
  slow.send(call("block", "[1]", 1));
  gate.await_inside(1);
  RawPeer quick{*endpoint};
  expect_served(quick, 1);
  server.stop();
  gate.open();
  EXPECT_EQ(slow.line(), result("1", 1));
  running.join();
  EXPECT_EQ(running.end, RunEnd::drained);
}

// What somebody answers in place of a handler that is off the loop; `code` is the error's.
std::string error(int code, std::string_view message, std::string_view data, int id) {
  std::string text = R"({"jsonrpc":"2.0","error":{"code":)" + std::to_string(code) + R"(,"message":")";
  text.append(message).append("\"").append(R"(,"data":)").append(data);
  return text + R"(},"id":)" + std::to_string(id) + "}";
}
constexpr std::string_view kNotInTime =
    R"({"reason":"the call was not answered in time","origin":"local","delivered":"maybe"})";

TEST_F(LoopTakeoverTest, TheTimeOfACallIsUpWhileItsHandlerIsOffTheLoop) {
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  slow.send(R"({"jsonrpc":"2.0","method":"block","params":[1],"timeout_ms":50,"id":1})"
            "\n");
  gate.await_inside(1);
  EXPECT_EQ(slow.line(), error(-32002, "Timeout", kNotInTime, 1));
  expect_served(slow, 2);
  // What it answers when it returns is dropped, and the next call of the same id gets its own.
  gate.open();
  slow.send(call("block", "[2]", 1));
  EXPECT_EQ(slow.line(), result("2", 1));
}

TEST_F(LoopTakeoverTest, ACallCanBeCancelledWhileItsHandlerIsOffTheLoop) {
  std::promise<bool> asked_to_stop;
  server.method("block_until_asked", [&](const Context& context, int value) {
    gate.wait();
    asked_to_stop.set_value(context.stop_token().stop_requested());
    return value;
  });
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  RawPeer quick{*endpoint};
  slow.send(call("block_until_asked", "[1]", 1));
  gate.await_inside(1);
  expect_served(quick, 1);
  slow.send(R"({"jsonrpc":"2.0","method":"rpc.cancel","params":{"id":1}})"
            "\n");
  constexpr std::string_view kStopped = R"({"reason":"the call was stopped","origin":"local","delivered":"maybe"})";
  EXPECT_EQ(slow.line(), error(-32800, "Cancelled", kStopped, 1));
  gate.open();
  expect_served(slow, 2);
  EXPECT_TRUE(asked_to_stop.get_future().get());
}

TEST_F(LoopTakeoverTest, OfABatchTheTimeOfOneCallMayBeUp) {
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  RawPeer quick{*endpoint};
  std::string batch = "[" + call("add", "[1,1]", 1) +
                      R"(,{"jsonrpc":"2.0","method":"block","params":[2],"timeout_ms":1,"id":2},)" +
                      call("add", "[2,2]", 3) + "]";
  std::erase(batch, '\n');
  slow.send(batch + "\n");
  gate.await_inside(1);
  for (int i = 0; i < 20; ++i) expect_served(quick, i);
  gate.open();
  EXPECT_EQ(slow.line(),
            "[" + result("2", 1) + "," + error(-32002, "Timeout", kNotInTime, 2) + "," + result("4", 3) + "]");
}

TEST_F(LoopTakeoverTest, OfHttpTheTimeOfACallIsUpWhileItsHandlerIsOffTheLoop) {
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  const std::string body = R"({"jsonrpc":"2.0","method":"block","params":[1],"id":1})";
  slow.send("POST /rpc HTTP/1.1\r\nHost: localhost\r\nWirecall-Timeout-Ms: 50\r\nContent-Length: " +
            std::to_string(body.size()) + "\r\n\r\n" + body);
  gate.await_inside(1);
  for (std::string line = "HTTP"; !line.starts_with("Content-Length"); line = slow.line()) ASSERT_FALSE(line.empty());
  const std::string reply = error(-32002, "Timeout", kNotInTime, 1);
  EXPECT_EQ(slow.take(2 + reply.size()), "\r\n" + reply);
  gate.open();
  slow.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string rest = slow.all();
  EXPECT_NE(rest.find("\r\n\r\nok\n"), rest.npos) << rest;
  EXPECT_EQ(rest.find("\"result\""), rest.npos) << rest;
}

TEST_F(LoopTakeoverTest, AServerThatStopsAnswersForAHandlerThatStaysOffTheLoop) {
  RunningServer running{server};
  RawPeer slow{*endpoint};
  RawPeer posts{*endpoint};
  slow.send(call("block", "[1]", 1));
  gate.await_inside(1);
  const std::string body = R"({"jsonrpc":"2.0","method":"block","params":[1],"id":2})";
  posts.send("POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
             body);
  gate.await_inside(2);
  server.stop();
  constexpr std::string_view kShutDown =
      R"({"reason":"the server has shut down before the call was done","origin":"local","delivered":"maybe"})";
  EXPECT_EQ(slow.line(), error(-32009, "Draining", kShutDown, 1));
  const std::string response = posts.all();
  EXPECT_TRUE(response.ends_with(error(-32009, "Draining", kShutDown, 2))) << response;
  gate.open();
  running.join();
}

// One that runs when the turn has ended, and one that is full, and so runs within the handler of its last call.
TEST_F(LoopTakeoverTest, ABatchOnTheLoopMayLoseIt) {
  std::atomic<std::thread::id> loop_thread;
  std::atomic<std::thread::id> ran_on;
  server.method("loop", [&] { loop_thread = std::this_thread::get_id(); });
  const auto late = [&](std::vector<int> numbers) {
    ran_on = std::this_thread::get_id();
    if (numbers.front() < 0) gate.wait();
    return numbers;
  };
  server.batch_method("late_2", late, {.size = 4});
  server.batch_method("late_4", late, {.size = 4});
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  RawPeer other{*endpoint};
  for (const int count : {2, 4}) {
    const std::string method = "late_" + std::to_string(count);
    do {
      slow.send(call("loop", "[]", 0));
      EXPECT_EQ(slow.line(), result("null", 0));
      slow.send(call(method, "[1]", 1));
      EXPECT_EQ(slow.line(), result("1", 1));
    } while (ran_on.load() != loop_thread.load());
    gate.close();
    std::string calls;
    for (int i = 1; i <= count; ++i) calls += call(method, "[" + std::to_string(-i) + "]", i);
    slow.send(calls);
    gate.await_inside(1);
    for (int i = 0; i < 10; ++i) expect_served(other, i);
    other.send(call(method, "[3]", 4));
    slow.send(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}})"
              "\n");
    const std::string cancelled = slow.line();
    EXPECT_NE(cancelled.find("-32800"), std::string::npos) << cancelled;
    gate.open();
    for (int i = 2; i <= count; ++i) EXPECT_EQ(slow.line(), result(std::to_string(-i), i));
    EXPECT_EQ(other.line(), result("3", 4));
    expect_served(slow, 5);
  }
}

TEST_F(LoopTakeoverTest, AJsonRpcBatchIsAnsweredOnceAlthoughABatchOfItsCallsLosesTheLoop) {
  std::atomic<std::thread::id> loop_thread;
  std::atomic<std::thread::id> ran_on;
  server.method("loop", [&] { loop_thread = std::this_thread::get_id(); });
  server.batch_method("late",
                      [&](std::vector<int> numbers) {
                        ran_on = std::this_thread::get_id();
                        if (numbers.front() < 0) gate.wait();
                        return numbers;
                      },
                      {.size = 4, .bytes = 5});
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  RawPeer other{*endpoint};
  do {
    slow.send(call("loop", "[]", 0));
    EXPECT_EQ(slow.line(), result("null", 0));
    slow.send(call("late", "[1]", 1));
    EXPECT_EQ(slow.line(), result("1", 1));
  } while (ran_on.load() != loop_thread.load());
  // The second is too much for the batch of the first, and so has it run.
  std::string calls =
      "[" + call("late", "[-1]", 2) + "," + call("late", "[5]", 3) + "," + call("add", "[1,2]", 4) + "]";
  std::erase(calls, '\n');
  slow.send(calls + "\n");
  gate.await_inside(1);
  for (int i = 0; i < 10; ++i) expect_served(other, i);
  gate.open();
  EXPECT_EQ(slow.line(), "[" + result("-1", 2) + "," + result("5", 3) + "," + result("3", 4) + "]");
  expect_served(slow, 5);
}

TEST_F(LoopTakeoverTest, AServerCanRunAgain) {
  for (int i = 0; i < 3; ++i) {
    gate.close();
    Other again{*this, {}};
    again.slow->send(call("block", "[1]", 1));
    gate.await_inside(1);
    gate.open();
    EXPECT_EQ(again.slow->line(), result("1", 1));
  }
}

}  // namespace
}  // namespace wirecall::net
