// Servers over real sockets, with ports of the system's choice: what peers see of them when others misbehave, and when
// they stop.
#include "wirecall/server.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <gtest/gtest.h>
#include <optional>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/connection/peer.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

std::string request(int id) {
  return R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":)" + std::to_string(id) + "}\n";
}
std::string answer(int id) { return R"({"jsonrpc":"2.0","result":19,"id":)" + std::to_string(id) + "}"; }

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) ++count;
  return count;
}

// Its method `hold` waits until `release` is called, which answers how many it released.
class TestServer {
 public:
  explicit TestServer(Options options = short_drain()) : server(std::move(options)) {
    server.method("subtract", [](int a, int b) { return a - b; }, {"minuend", "subtrahend"});
    server.method("big", [](std::size_t bytes) { return std::string(bytes, 'x'); });
    server.method("hold", &TestServer::hold, *this);
    server.method("release", [this] {
      auto held = std::exchange(held_, {});
      for (Completion<int>& call : held) call.set(1);
      return held.size();
    });
    server.method("held", [this] { return held_.size(); });
    server.method("given_up", [this] { return given_up_; });
    endpoint.emplace(server.listen("tcp://127.0.0.1:0"));
  }

  // No test has to wait long for a call that nobody ends.
  static Options short_drain() {
    Options options;
    options.drain_ms = 500;
    return options;
  }

  Task<int> hold() {
    Completion<int> answer;
    held_.push_back(answer);
    try {
      co_return co_await answer;
    } catch (const Cancelled&) {
      ++given_up_;
      throw;
    }
  }

  Server server;
  std::optional<Endpoint> endpoint;

 private:
  std::vector<Completion<int>> held_;
  int given_up_ = 0;
};

TEST(Server, serves_a_route_of_the_program) {
  TestServer test;
  test.server.route("GET", "/mine", [](const HttpRequest& request) {
    return HttpResponse{.body = std::string{request.query} + "\n", .content_type = "text/x-mine"};
  });
  EXPECT_THROW(test.server.route("GET", "/metrics", nullptr), std::invalid_argument);
  const RunningServer running{test.server};
  RawPeer peer{*test.endpoint};
  ASSERT_TRUE(peer.send("GET /mine?a=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  for (const auto* line : {"HTTP/1.1 200 OK\r", "Content-Type: text/x-mine\r", "Content-Length: 4\r", "\r", "a=1"}) {
    EXPECT_EQ(peer.line(), line);
  }
}

TEST(Server, answers_calls_of_several_connections_and_listeners) {
  TestServer test;
  const Endpoint second = test.server.listen("tcp://localhost:0");
  const RunningServer running{test.server};
  RawPeer a{*test.endpoint};
  RawPeer b{second};
  a.send(request(1));
  b.send(request(2));
  EXPECT_EQ(a.line(), answer(1));
  EXPECT_EQ(b.line(), answer(2));
}

TEST(Server, pipelined_calls_are_answered_in_order) {
  TestServer test;
  const RunningServer running{test.server};
  RawPeer peer{*test.endpoint};
  std::string all;
  for (int i = 0; i < 1000; ++i) all += request(i);
  peer.send(all);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(peer.line(), answer(i));
}

TEST(Server, a_call_may_come_one_byte_at_a_time) {
  TestServer test;
  const RunningServer running{test.server};
  RawPeer peer{*test.endpoint};
  for (const char byte : request(1)) peer.send({&byte, 1});
  EXPECT_EQ(peer.line(), answer(1));
}

TEST(Server, bad_json_of_one_client_brings_it_nothing_of_another) {
  TestServer test;
  const RunningServer running{test.server};
  RawPeer good{*test.endpoint};
  RawPeer bad{*test.endpoint};
  for (int i = 0; i < 20; ++i) {
    good.send(request(1000 + i));
    bad.send("[]\n{\"jsonrpc\":\"2.0\",\"method\":\"subtract\",\"params\":[1,\n");
    EXPECT_EQ(good.line(), answer(1000 + i));
    bad.close();
    bad = RawPeer{*test.endpoint};
  }
  bad.send("{\"id\":1,}\n");
  EXPECT_EQ(bad.line(), R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null})");
}

TEST(Server, a_line_without_end_is_answered_and_closed) {
  Options options;
  options.limits.max_message_size = 1 << 20;
  TestServer test{std::move(options)};
  const RunningServer running{test.server};
  RawPeer peer{*test.endpoint};
  peer.send(R"({"jsonrpc":"2.0","method":")");
  const std::string part(1 << 16, 'a');
  for (int i = 0; i < 17; ++i) peer.send(part);
  EXPECT_NE(peer.line().find(R"("code":-32006)"), std::string::npos);
  EXPECT_TRUE(peer.ended());
}

TEST(Server, after_a_half_close_everything_is_answered_and_then_closed) {
  TestServer test;
  const RunningServer running{test.server};
  RawPeer held{*test.endpoint};
  held.send(R"({"jsonrpc":"2.0","method":"hold","id":1})" + request(2));
  held.finish();
  EXPECT_EQ(held.line(), answer(2));
  RawPeer other{*test.endpoint};
  other.send(R"({"jsonrpc":"2.0","method":"release","id":1})");
  EXPECT_EQ(other.line(), R"({"jsonrpc":"2.0","result":1,"id":1})");
  EXPECT_EQ(held.line(), R"({"jsonrpc":"2.0","result":1,"id":1})");
  EXPECT_TRUE(held.ended());
}

TEST(Server, a_reset_after_a_half_close_ends_the_calls_that_were_still_running) {
  TestServer test;
  const RunningServer running{test.server};
  RawPeer peer{*test.endpoint};
  peer.send(R"({"jsonrpc":"2.0","method":"hold","id":1})" + request(2));
  EXPECT_EQ(peer.line(), answer(2));
  peer.finish();
  RawPeer other{*test.endpoint};
  other.send(request(3));  // in between, the end may be seen
  EXPECT_EQ(other.line(), answer(3));
  peer.reset();
  std::string line;
  for (int i = 0; i < 100'000 && line != R"({"jsonrpc":"2.0","result":1,"id":4})"; ++i) {
    other.send(R"({"jsonrpc":"2.0","method":"given_up","id":4})");
    line = other.line();
  }
  EXPECT_EQ(line, R"({"jsonrpc":"2.0","result":1,"id":4})");
}

TEST(Server, resets_at_any_time_cost_nobody_else_anything) {
  TestServer test;
  const RunningServer running{test.server};
  RawPeer steady{*test.endpoint};
  for (int i = 0; i < 50; ++i) {
    RawPeer peer{*test.endpoint};
    switch (i % 4) {
      case 0:  // before anything
        break;
      case 1:  // in a request
        peer.send("{\"jsonrpc\":");
        break;
      case 2:  // in a reply
        peer.send(R"({"jsonrpc":"2.0","method":"big","params":[10000000],"id":1})");
        break;
      default:  // while a call runs
        peer.send(R"({"jsonrpc":"2.0","method":"hold","id":1})");
        break;
    }
    peer.reset();
    steady.send(request(i));
    ASSERT_EQ(steady.line(), answer(i));
  }
}

TEST(Server, a_client_that_does_not_read_slows_no_other) {
  Options options;
  options.limits.soft_output = 100'000;
  TestServer test{std::move(options)};
  const RunningServer running{test.server};
  RawPeer silent{*test.endpoint};
  std::string calls;
  for (int i = 0; i < 200; ++i) calls += R"({"jsonrpc":"2.0","method":"big","params":[500000],"id":1})";
  silent.send(calls);
  RawPeer other{*test.endpoint};
  for (int i = 0; i < 100; ++i) {
    other.send(request(i));
    ASSERT_EQ(other.line(), answer(i));
  }
  // When it reads after all, everything is there.
  for (int i = 0; i < 200; ++i) ASSERT_GT(silent.line().size(), 500'000U);
}

TEST(Server, connections_that_come_and_go_leave_nothing_behind) {
  TestServer test;
  const RunningServer running{test.server};
  {
    RawPeer first{*test.endpoint};
    first.send(request(0));
    first.line();
  }
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 500; ++i) {
    RawPeer peer{*test.endpoint};
    peer.send(request(i));
    if (i % 2 == 0) {
      ASSERT_EQ(peer.line(), answer(i));
    }
    if (i % 3 == 0) peer.reset();
  }
  // The server has seen the end of those before once it has served one that came after.
  std::size_t after = 0;
  for (int i = 0; i < 100; ++i) {
    {
      RawPeer last{*test.endpoint};
      last.send(request(0));
      last.finish();
      last.all();
    }
    after = open_descriptors();
    if (after <= before + 1) break;
  }
  EXPECT_LE(after, before + 1);
}

TEST(Server, stopping_answers_what_runs_and_refuses_what_comes) {
  TestServer test;
  RunningServer running{test.server};
  RawPeer peer{*test.endpoint};
  peer.send(R"({"jsonrpc":"2.0","method":"hold","id":1})" + request(2));
  EXPECT_EQ(peer.line(), answer(2));
  test.server.stop();
  // Until the server has heard of it calls are answered; from then on they are refused.
  std::string line;
  int id = 3;
  do {
    peer.send(request(id));
    line = peer.line();
  } while (line == answer(id++));
  EXPECT_NE(line.find(R"("code":-32009)"), std::string::npos) << line;
  EXPECT_NE(line.find(R"("delivered":"no")"), std::string::npos) << line;
}

TEST(Server, stopping_gives_up_calls_that_do_not_end_in_time) {
  Options options;
  options.drain_ms = 20;
  TestServer test{std::move(options)};
  RunningServer running{test.server};
  RawPeer peer{*test.endpoint};
  peer.send(R"({"jsonrpc":"2.0","method":"hold","id":1})" + request(2));
  EXPECT_EQ(peer.line(), answer(2));
  running.stop();
  EXPECT_EQ(running.end, RunEnd::drained);
  EXPECT_EQ(peer.line(),
            R"({"jsonrpc":"2.0","error":{"code":-32009,"message":"Draining","data":{"reason":)"
            R"("the server has shut down before the call was done","origin":"local","delivered":"maybe"}},"id":1})");
  EXPECT_TRUE(peer.ended());
}

TEST(Server, stopping_answers_everything_that_had_arrived_by_then) {
  TestServer test;
  // More than a turn receives; and each connection's share is little enough for the kernel to have it all.
  constexpr int kPeers = 20;
  constexpr int kCalls = 500;
  std::string calls;
  for (int i = 0; i < kCalls; ++i) calls += request(i);
  std::vector<RawPeer> peers;
  for (int i = 0; i < kPeers; ++i) {
    peers.emplace_back(*test.endpoint);
    ASSERT_TRUE(peers.back().send(calls));
  }
  test.server.stop();
  EXPECT_EQ(test.server.run(), RunEnd::drained);
  for (RawPeer& peer : peers) {
    for (int i = 0; i < kCalls; ++i) {
      const std::string line = peer.line();
      ASSERT_TRUE(line == answer(i) || line.find(R"("code":-32009)") != std::string::npos) << i << line;
    }
    EXPECT_TRUE(peer.ended());
  }
}

TEST(Server, stopping_before_running_ends_the_run_at_once) {
  TestServer test;
  test.server.stop();
  EXPECT_EQ(test.server.run(), RunEnd::drained);
}

TEST(Server, that_stops_tells_those_that_have_said_hello) {
  TestServer test;
  RunningServer running{test.server};
  RawPeer named{*test.endpoint};
  RawPeer other{*test.endpoint};
  named.send(R"({"jsonrpc":"2.0","method":"rpc.hello","id":1})");
  EXPECT_NE(named.line().find(R"("server":"wirecall")"), std::string::npos);
  other.send(request(2));
  EXPECT_EQ(other.line(), answer(2));
  running.stop();
  EXPECT_EQ(named.line(), R"({"jsonrpc":"2.0","method":"rpc.draining"})");
  EXPECT_TRUE(named.ended());
  EXPECT_TRUE(other.ended());
}

TEST(Server, what_it_has_sent_arrives_though_it_stops) {
  TestServer test;
  RunningServer running{test.server};
  RawPeer peer{*test.endpoint};
  peer.send(R"({"jsonrpc":"2.0","method":"big","params":[5000000],"id":1})");
  peer.send(request(2));
  std::string first = peer.line();
  running.stop();
  std::string second = peer.line();
  if (first == answer(2)) std::swap(first, second);  // on a slow machine the other handler has lost the loop
  EXPECT_GT(first.size(), 5'000'000U);
  EXPECT_EQ(second, answer(2));
  EXPECT_TRUE(peer.ended());
}

TEST(Server, sigterm_drains_and_the_port_is_free_again_at_once) {
  std::optional<Endpoint> endpoint;
  {
    TestServer test;
    endpoint = test.endpoint;
    RunningServer running{test.server};
    RawPeer peer{*test.endpoint};
    peer.send(request(1));
    EXPECT_EQ(peer.line(), answer(1));  // it runs
    ::kill(::getpid(), SIGTERM);
    running.join();
    EXPECT_EQ(running.end, RunEnd::drained);
    EXPECT_TRUE(peer.ended());
  }
  Server again;
  EXPECT_EQ(again.listen(endpoint->uri()), *endpoint);
}

TEST(Server, listens_where_its_options_say) {
  Server at_port{R"({"port": 0})"};
  const std::vector<Endpoint> only = at_port.listen();
  ASSERT_EQ(only.size(), 1U);
  EXPECT_EQ(only[0].host(), "127.0.0.1");
  EXPECT_NE(only[0].port(), 0);
  Server at_several{R"({"listen": ["tcp://[::1]:0", "inproc://several"], "port": 1})"};
  const std::vector<Endpoint> endpoints = at_several.listen();
  ASSERT_EQ(endpoints.size(), 2U);
  EXPECT_EQ(endpoints[0].host(), "::1");
  EXPECT_EQ(endpoints[1].uri(), "inproc://several");
  Options options;
  options.host = "::1";
  options.port = 8000;
  EXPECT_EQ(options.listen_uris(), std::vector<std::string>{"tcp://[::1]:8000"});
}

TEST(Server, a_second_signal_ends_at_once) {
  TestServer test;
  RunningServer running{test.server};
  RawPeer peer{*test.endpoint};
  peer.send(R"({"jsonrpc":"2.0","method":"hold","id":1})" + request(2));
  EXPECT_EQ(peer.line(), answer(2));
  ::kill(::getpid(), SIGTERM);
  int id = 3;
  std::string line;
  do {  // until it drains
    peer.send(request(id));
    line = peer.line();
  } while (line == answer(id++));
  ::kill(::getpid(), SIGINT);
  running.join();
  EXPECT_EQ(running.end, RunEnd::interrupted);
}

TEST(Server, a_second_signal_ends_the_process_where_a_handler_does_not_come_back) {
  const auto interrupted_twice = [](std::uint32_t takeover_ms) {
    ::alarm(20);  // ends it in vain
    Options options;
    options.drain_ms = 3'600'000;
    options.takeover_ms = takeover_ms;
    Server server{std::move(options)};
    Gate gate;
    server.method("block", [&gate] { gate.wait(); });
    const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
    RunningServer running{server};
    RawPeer peer{endpoint};
    peer.send(R"({"jsonrpc":"2.0","method":"block","id":1})");
    gate.await_inside(1);
    ::raise(SIGTERM);
    ::raise(SIGTERM);
    running.join();
  };
  for (const std::uint32_t takeover_ms : {20U, 0U})
    EXPECT_EXIT(interrupted_twice(takeover_ms), testing::KilledBySignal(SIGINT), "");
}

TEST(Server, signals_mean_what_they_did_before_once_it_has_stopped) {
  struct sigaction mine{};
  mine.sa_handler = SIG_IGN;
  struct sigaction before{};
  ::sigaction(SIGTERM, &mine, &before);
  {
    TestServer test;
    RunningServer running{test.server};
    RawPeer peer{*test.endpoint};
    peer.send(request(1));
    EXPECT_EQ(peer.line(), answer(1));
  }
  struct sigaction after{};
  ::sigaction(SIGTERM, &before, &after);
  EXPECT_EQ(after.sa_handler, SIG_IGN);
}

TEST(Server, an_endpoint_it_cannot_listen_on_is_told_with_the_cure) {
  TestServer test;
  Server second;
  EXPECT_THROW(second.listen("127.0.0.1"), std::invalid_argument);
  try {
    second.listen(test.endpoint->uri());
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string{error.what()}.find("listen on another port"), std::string::npos) << error.what();
  }
}

TEST(Server, what_it_does_is_counted) {
  TestServer test;
  const RunningServer running{test.server};
  RawPeer peer{*test.endpoint};
  peer.send(request(1) + "\n{]\n");
  EXPECT_EQ(peer.line(), answer(1));
  EXPECT_NE(peer.line().find("-32700"), std::string::npos);
  const Stats stats = test.server.stats();
  EXPECT_EQ(stats.connections_open, 1U);
  EXPECT_EQ(stats.connections_accepted, 1U);
  EXPECT_EQ(stats.calls, 1U);
  EXPECT_EQ(stats.messages_in, 1U);
  EXPECT_EQ(stats.messages_out, 2U);
  EXPECT_EQ(stats.errors_parse, 1U);
  EXPECT_EQ(stats.bytes_in, request(1).size() + 4);
  EXPECT_GT(stats.bytes_out, answer(1).size());
}

TEST(Server, limits_that_cannot_be_are_refused_by_name) {
  for (const std::uint32_t depth : {0U, kDepthMax + 1}) {
    Options options;
    options.limits.depth = depth;
    try {
      const Server server{std::move(options)};
      FAIL();
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string{error.what()}.find("limits.depth"), std::string::npos) << error.what();
    }
  }
}

TEST(Server, replies_end_with_the_delimiter_of_the_options) {
  Options options;
  options.delimiter = "||\n";
  TestServer test{std::move(options)};
  const RunningServer running{test.server};
  RawPeer peer{*test.endpoint};
  peer.send(request(1) + "||" + request(2));
  EXPECT_EQ(peer.line(), answer(1) + "||");
  EXPECT_EQ(peer.line(), answer(2) + "||");
  Options bad;
  bad.delimiter = "{";
  EXPECT_THROW(Server{std::move(bad)}, std::invalid_argument);
}

}  // namespace
}  // namespace wirecall::net
