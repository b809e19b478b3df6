// Handlers that do not come back: what others get meanwhile, and what becomes of the handlers' own calls when they do.
// A handler is let go by the test, never by time.
#include "session/hand_over.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <functional>
#include <future>
#include <gtest/gtest.h>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/syscall.h>
#include <thread>
#include <utility>
#include <vector>

#include "tests/base/forbid.hpp"
#include "tests/session/peer.hpp"
#include "wirecall/value.hpp"

namespace wirecall::session {
namespace {

std::string call(std::string_view method, std::string_view params, int id) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} + R"(,"id":)" +
         std::to_string(id) + "}\n";
}
std::string result(std::string_view value, int id) {
  return R"({"jsonrpc":"2.0","result":)" + std::string{value} + R"(,"id":)" + std::to_string(id) + "}";
}

class HandOverTest : public testing::Test {
 protected:
  HandOverTest() : server(make_options()) {
    server.method("add", [](int a, int b) { return a + b; });
    add_block(server);
    server.method("echo_late", [this](std::string_view text, std::string_view other) {
      gate.wait();
      return std::string{text} + std::string{other};
    });
    server.method("raw_late", [this](Raw value) {
      gate.wait();
      return Raw{value};
    });
    server.method("throw_late", [this](int) -> int {
      gate.wait();
      throw std::runtime_error{"late"};
    });
    server.method("on_notify", [this](int) {
      gate.wait();
      ++notified;
    });
    endpoint.emplace(server.listen("tcp://127.0.0.1:0"));
  }
  ~HandOverTest() override { gate.open(); }

  Options make_options() {
    Options options;
    options.drain_ms = 500;
    options.log = LogSink{[this](const LogRecord& record) {
      const std::scoped_lock lock{log_mutex};
      std::string line{record.message};
      for (const LogField& field : record.fields) {
        if (const auto* text = std::get_if<std::string_view>(&field.value)) line.append(" ").append(*text);
      }
      log.push_back(std::move(line));
      logged.notify_all();
    }};
    return options;
  }
  // A method that comes back when the gate is open.
  void add_block(Server& to) {
    to.method("block", [this](int value) {
      gate.wait();
      return value;
    });
  }
  // A further server that has such a method, serves, and is called by one peer.
  struct Other {
    Other(HandOverTest& test, Options options) : server(std::move(options)) {
      test.add_block(server);
      place = server.listen("tcp://127.0.0.1:0");
      running.emplace(server);
      slow.emplace(*place);
    }

    Server server;
    std::optional<Endpoint> place;
    std::optional<RunningServer> running;
    std::optional<RawPeer> slow;
  };
  // Which quick calls are answered shows that the loop has been taken from the handlers.
  void expect_served(RawPeer& peer, int id) {
    peer.send(call("add", "[1,2]", id));
    EXPECT_EQ(peer.line(), result("3", id));
  }

  void expect_logged(std::string_view name) {
    std::unique_lock lock{log_mutex};
    EXPECT_TRUE(logged.wait_for(lock, std::chrono::seconds{20}, [&] {
      return std::ranges::any_of(log, [&](const std::string& line) { return line.find(name) != line.npos; });
    }));
  }

  Gate gate;
  std::atomic<int> notified{0};
  std::mutex log_mutex;
  std::condition_variable logged;
  std::vector<std::string> log;
  Server server;
  std::optional<Endpoint> endpoint;
};

TEST_F(HandOverTest, OthersAreServedWhileAHandlerDoesNotComeBack) {
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

TEST_F(HandOverTest, ManyHandlersMayBeAwayAtOnceAndComeBackInAnyOrder) {
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
TEST_F(HandOverTest, HandlersOfOneTurnKeepTheirFramesApart) {
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

TEST_F(HandOverTest, LaterCallsOfTheSameConnectionAreServed) {
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

TEST_F(HandOverTest, WhatAHandlerBorrowsStaysWhileItIsAway) {
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

TEST_F(HandOverTest, AMessageThatCameInPiecesStaysWhileItsHandlerIsAway) {
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

TEST_F(HandOverTest, WhatFollowsAMessageOfKnownLengthIsUnharmed) {
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

TEST_F(HandOverTest, OfHttpTheResponsesKeepTheirOrder) {
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

TEST_F(HandOverTest, ABatchWaitsForItsHandlersAndNobodyElseDoes) {
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

// The second handler of the batch loses the loop when no connection is being looked at: the last that was has gone.
TEST_F(HandOverTest, ABatchThatComesBackMayLoseTheLoopAgain) {
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

TEST_F(HandOverTest, ConnectionsThatEndMeanwhileAreClosed) {
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

TEST_F(HandOverTest, AnHttpHeadThatCameInPiecesIsServedOnce) {
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

TEST_F(HandOverTest, AConnectionMayEndWhileItsHandlerIsAway) {
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

TEST_F(HandOverTest, AHalfClosedConnectionIsAnsweredByAHandlerThatComesBack) {
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

TEST_F(HandOverTest, ExceptionsOfAHandlerThatComesBackAreAnswered) {
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  RawPeer quick{*endpoint};
  slow.send(call("throw_late", "[1]", 1));
  gate.await_inside(1);
  expect_served(quick, 1);
  gate.open();
  EXPECT_EQ(slow.line(), R"({"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error"},"id":1})");
}

TEST_F(HandOverTest, AServerThatStopsWaitsForItsHandlersAndAnswersThem) {
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

// What somebody answers in place of a handler that is away; `code` is the error's.
std::string error(int code, std::string_view message, std::string_view data, int id) {
  std::string text = R"({"jsonrpc":"2.0","error":{"code":)" + std::to_string(code) + R"(,"message":")";
  text.append(message).append("\"").append(R"(,"data":)").append(data);
  return text + R"(},"id":)" + std::to_string(id) + "}";
}
constexpr std::string_view kNotInTime =
    R"({"reason":"the call was not answered in time","origin":"local","delivered":"maybe"})";

TEST_F(HandOverTest, TheTimeOfACallIsUpWhileItsHandlerIsAway) {
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  slow.send(R"({"jsonrpc":"2.0","method":"block","params":[1],"timeout_ms":50,"id":1})"
            "\n");
  gate.await_inside(1);
  EXPECT_EQ(slow.line(), error(-32002, "Timeout", kNotInTime, 1));
  expect_served(slow, 2);
  // What it answers when it comes back is dropped, and the next call of the same id gets its own.
  gate.open();
  slow.send(call("block", "[2]", 1));
  EXPECT_EQ(slow.line(), result("2", 1));
}

TEST_F(HandOverTest, ACallCanBeCancelledWhileItsHandlerIsAway) {
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

TEST_F(HandOverTest, OfABatchTheTimeOfOneCallMayBeUp) {
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

TEST_F(HandOverTest, OfHttpTheTimeOfACallIsUpWhileItsHandlerIsAway) {
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

TEST_F(HandOverTest, AServerThatStopsAnswersForAHandlerThatStaysAway) {
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

TEST_F(HandOverTest, AServerCanRunAgain) {
  for (int i = 0; i < 3; ++i) {
    gate.close();
    Other again{*this, {}};
    again.slow->send(call("block", "[1]", 1));
    gate.await_inside(1);
    gate.open();
    EXPECT_EQ(again.slow->line(), result("1", 1));
  }
}

TEST_F(HandOverTest, AHandlerThatDoesNotComeBackIsLoggedWithItsName) {
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  slow.send(call("block", "[1]", 1));
  expect_logged("block");
  gate.open();
  EXPECT_EQ(slow.line(), result("1", 1));
  EXPECT_EQ(server.stats().slow_handlers, 1U);
  EXPECT_EQ(server.stats().hand_overs, 1U);
  EXPECT_GT(server.stats().loop_turns, 1U);
}

TEST_F(HandOverTest, AHandlerMayBeAllowedToKeepItsLoopAndIsLoggedAllTheSame) {
  Options options = make_options();
  options.hand_over_ms = 0;
  Other patient{*this, std::move(options)};
  patient.slow->send(call("block", "[1]", 1) + call("block", "[2]", 2));
  expect_logged("block");
  gate.open();
  EXPECT_EQ(patient.slow->line(), result("1", 1));
  EXPECT_EQ(patient.slow->line(), result("2", 2));
  EXPECT_GE(patient.server.stats().slow_handlers, 1U);
  EXPECT_EQ(patient.server.stats().hand_overs, 0U);
}

TEST_F(HandOverTest, ACoroutineThatBlocksKeepsItsLoopAndIsLoggedWithItsName) {
  server.method("blocking_task", [this](int value) -> Task<int> {
    gate.wait();
    co_return value;
  });
  const RunningServer running{server};
  RawPeer slow{*endpoint};
  slow.send(call("blocking_task", "[1]", 1));
  expect_logged("blocking_task");
  gate.open();
  EXPECT_EQ(slow.line(), result("1", 1));
  EXPECT_EQ(server.stats().slow_handlers, 1U);
  EXPECT_EQ(server.stats().hand_overs, 0U);
}

TEST_F(HandOverTest, ACoroutineThatBlocksWhenItHasWaitedIsLoggedWithItsName) {
  const auto wait_and_block = [this](const Context& context, int value) -> Task<int> {
    co_await sleep_for(context, std::chrono::milliseconds{1});
    gate.wait();
    co_return value;
  };
  server.method("blocking_later", wait_and_block);
  server.method("blocking_part", [wait_and_block](Context context, int value) -> Task<int> {
    co_return std::get<0>(co_await when_all(wait_and_block(context, value)));
  });
  const RunningServer running{server};
  for (const std::string_view name : {"blocking_later", "blocking_part"}) {
    gate.close();
    RawPeer slow{*endpoint};
    slow.send(call(name, "[1]", 1));
    expect_logged(name);
    gate.open();
    EXPECT_EQ(slow.line(), result("1", 1));
  }
  EXPECT_EQ(server.stats().hand_overs, 0U);
}

TEST_F(HandOverTest, MoreHandlersThanMayBeAwayHoldUpTheirLoopWhichIsLogged) {
  Options options = make_options();
  options.hand_over_threads = 2;
  Other small{*this, std::move(options)};
  small.slow->send(call("block", "[1]", 1) + call("block", "[2]", 2) + call("block", "[3]", 3));
  expect_logged("since hand_over_threads others are away");
  EXPECT_EQ(small.server.stats().hand_overs, 2U);
  gate.open();
  std::vector<std::string> answers{small.slow->line(), small.slow->line(), small.slow->line()};
  std::ranges::sort(answers);
  EXPECT_EQ(answers, (std::vector{result("1", 1), result("2", 2), result("3", 3)}));
}

// What a thread says and does for which the kernel has no membarrier: the warnings of a server that it makes.
std::vector<std::string> warnings_without_fence(int error, const std::function<void(Options&)>& change) {
  std::vector<std::string> warnings;
  std::thread{[&] {
    test::forbid(__NR_membarrier, error);
    Options options;
    options.log = [&](const LogRecord& record) {
      if (record.level == LogLevel::warning) warnings.emplace_back(record.message);
    };
    change(options);
    Server server{std::move(options)};
    server.method("add", [](int a, int b) { return a + b; });
    const Endpoint place = server.listen("tcp://127.0.0.1:0");
    const RunningServer running{server};
    RawPeer peer{place};
    peer.send(call("add", "[1,2]", 1));
    EXPECT_EQ(peer.line(), result("3", 1));
  }}.join();
  return warnings;
}

TEST(HandOver, ThatTheKernelForbidsIsWarnedOfOnceWithTheCauseAndTheCure) {
  struct Case {
    int error;
    std::string_view cause;
    std::string_view cure;
  };
  for (const auto& [error, cause, cure] :
       {Case{EPERM, "Operation not permitted", "likely seccomp, as containers have it: allow it there"},
        Case{ENOSYS, "Function not implemented", "this kernel is built without it, or a filter hides it"},
        Case{EINVAL, "Invalid argument", "this kernel is older than Linux 4.14"}}) {
    const auto warnings = warnings_without_fence(error, [](Options& options) { options.thread_count = 3; });
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_TRUE(warnings[0].starts_with("membarrier refused: ")) << warnings[0];
    EXPECT_NE(warnings[0].find(cause), std::string::npos) << warnings[0];
    EXPECT_NE(warnings[0].find(cure), std::string::npos) << warnings[0];
    EXPECT_NE(warnings[0].find("hand_over_ms"), std::string::npos) << warnings[0];
  }
}

TEST(HandOver, ThatNobodyWantsIsNotMissed) {
  const auto neither = [](Options& options) { options.hand_over_ms = options.slow_handler_ms = 0; };
  EXPECT_TRUE(warnings_without_fence(EPERM, neither).empty());
  const auto only_logged = [](Options& options) { options.hand_over_ms = 0; };
  EXPECT_EQ(warnings_without_fence(EPERM, only_logged).size(), 1U);
  const auto unheard = [](Options& options) { options.log = {}; };
  EXPECT_TRUE(warnings_without_fence(EPERM, unheard).empty());
}

// Then a handler that does not come back keeps its loop, and everything else is as ever.
TEST_F(HandOverTest, WithoutItAHandlerKeepsItsLoopUntilItComesBack) {
  std::thread{[this] {
    test::forbid(__NR_membarrier, EPERM);
    Options options = make_options();
    options.thread_count = 1;
    Other plain{*this, std::move(options)};
    RawPeer quick{*plain.place};
    plain.slow->send(call("block", "[7]", 1));
    gate.await_inside(1);
    quick.send(call("rpc.ping", "[]", 2));
    gate.open();
    EXPECT_EQ(plain.slow->line(), result("7", 1));
    EXPECT_EQ(quick.line(), result("\"pong\"", 2));
    EXPECT_EQ(plain.server.stats().hand_overs, 0U);
  }}.join();
}

}  // namespace
}  // namespace wirecall::session
