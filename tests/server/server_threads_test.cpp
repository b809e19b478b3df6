// Servers of several threads, on each engine, and over each kind of endpoint: who serves whom, that all of them drain
// and end, and how a server on standard input ends. Handlers wait for what the test does, never for time.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <sched.h>
#include <set>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "tests/connection/peer.hpp"
#include "tests/server/engines.hpp"
#include "tests/server/folder.hpp"
#include "wirecall/caller.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

using std::chrono::milliseconds;

std::string this_thread() { return std::to_string(static_cast<long>(::gettid())); }

std::string call(std::string_view method, int id) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","id":)" + std::to_string(id) + "}\n";
}
std::string result(std::string_view value, int id) {
  return R"({"jsonrpc":"2.0","result":)" + std::string{value} + R"(,"id":)" + std::to_string(id) + "}";
}

// Waits within its loop until somebody sets `flag`.
Task<void> until(Context context, const std::atomic<bool>& flag) {
  while (!flag) co_await sleep_for(context, milliseconds{1});
}

// Connections that are open at the same time: those of a socket file are handed to one thread after the other.
std::vector<RawPeer> peers_of(const Endpoint& endpoint, int count) {
  std::vector<RawPeer> peers;
  for (int i = 0; i < count; ++i) peers.emplace_back(endpoint);
  return peers;
}

// The threads that answer their calls.
std::set<std::string> servers_of(std::vector<RawPeer>& peers) {
  std::set<std::string> seen;
  for (RawPeer& peer : peers) {
    peer.send(call("thread", 1));
    seen.insert(peer.line());
  }
  return seen;
}

int descriptors_of(std::string_view kind) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone).string().find(kind) != std::string::npos) ++count;
  }
  return count;
}

TEST_P(EngineTest, each_thread_has_a_loop_of_the_engine_that_was_asked_for) {
  const bool uring = GetParam() == Engine::uring;
  const int rings = descriptors_of("io_uring");
  const int polls = descriptors_of("eventpoll");
  const Server server{options(3)};
  EXPECT_EQ(descriptors_of("io_uring") - rings, uring ? 3 : 0);
  EXPECT_EQ(descriptors_of("eventpoll") - polls, uring ? 0 : 3);
}

TEST_P(EngineTest, several_threads_serve_one_port) {
  Server server{options(3)};
  server.method("thread", this_thread);
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  // The system chooses by the client's port; that it should choose one of three 64 times is not to be expected.
  std::vector<RawPeer> peers = peers_of(endpoint, 64);
  const std::size_t seen = servers_of(peers).size();
  EXPECT_GE(seen, 2U);
  EXPECT_LE(seen, 3U);
}

// What the handler knows of its caller: pid, uid and gid.
std::optional<std::vector<std::int64_t>> peer_of(const Context& context) {
  const auto& peer = context.peer_credentials();
  if (!peer) return std::nullopt;
  return std::vector<std::int64_t>{peer->pid, peer->uid, peer->gid};
}

TEST_P(EngineTest, handlers_know_who_calls_by_a_socket_file_and_by_no_port) {
  const Folder folder;
  Server server{options(1)};
  server.method("who", [](Context context) { return peer_of(context); });
  server.method("who_waits",
                [](Context context) -> Task<std::optional<std::vector<std::int64_t>>> { co_return peer_of(context); });
  const Endpoint file = server.listen(folder.socket());
  const Endpoint port = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  const std::string us =
      "[" + std::to_string(::getpid()) + "," + std::to_string(::geteuid()) + "," + std::to_string(::getegid()) + "]";
  for (const auto& [endpoint, who] : {std::pair{file, us}, std::pair{port, std::string{"null"}}}) {
    RawPeer text{endpoint};
    RawPeer http{endpoint};
    for (const std::string method : {"who", "who_waits", "who"}) {
      const std::string request = R"({"jsonrpc":"2.0","method":")" + method + R"(","id":1})";
      const std::string answer = R"({"jsonrpc":"2.0","result":)" + who + R"(,"id":1})";
      text.send(request);
      EXPECT_EQ(text.line(), answer);
      http.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(request.size()) + "\r\n\r\n" +
                request);
      while (http.line().size() > 1) {
      }
      EXPECT_EQ(http.take(answer.size()), answer);
    }
  }
}

TEST_P(EngineTest, methods_of_a_client_know_the_server_of_a_socket_file) {
  const Folder folder;
  Server server{options(1)};
  server.method("ask_who", [](Context context) -> Task<std::optional<std::vector<std::int64_t>>> {
    const Caller caller{context};
    co_return co_await caller.call<std::optional<std::vector<std::int64_t>>>("who");
  });
  const Endpoint file = server.listen(folder.socket());
  const RunningServer running{server};
  Client client{file.uri()};
  client.method("who", [](Context context) { return peer_of(context); });
  const std::vector<std::int64_t> us{::getpid(), ::geteuid(), ::getegid()};
  EXPECT_EQ(client.call<std::optional<std::vector<std::int64_t>>>("ask_who"), us);
}

TEST_P(EngineTest, connections_of_a_socket_file_are_handed_round) {
  const Folder folder;
  Server server{options(3)};
  server.method("thread", this_thread);
  const Endpoint endpoint = server.listen(folder.socket());
  const RunningServer running{server};
  std::vector<RawPeer> peers = peers_of(endpoint, 6);
  EXPECT_EQ(servers_of(peers).size(), 3U);
}

TEST_P(EngineTest, a_server_that_has_stopped_listens_at_the_same_endpoint_and_runs_again) {
  Server server{options(2)};
  server.method("thread", this_thread);
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  for (int i = 0; i < 3; ++i) {
    {
      const RunningServer running{server};
      std::vector<RawPeer> peers = peers_of(endpoint, 4);
      EXPECT_GE(servers_of(peers).size(), 1U);
    }
    EXPECT_EQ(server.listen(endpoint.uri()), endpoint);
  }
}

TEST_P(EngineTest, a_large_value_comes_back_whole) {
  Server server{options(1)};
  server.method("echo", [](std::string text) { return text; });
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  Client client{endpoint.uri()};
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(client.call<std::string>("echo", large), large);
}

TEST_P(EngineTest, a_peer_that_reads_late_gets_all_of_much_more_than_the_kernel_holds) {
  constexpr int kCalls = 50;
  Options given = options(1);
  given.limits.soft_output = 100'000;
  Server server{std::move(given)};
  server.method("big", [] { return std::string(500'000, 'x'); });
  server.method("quick", [] { return 1; });
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  std::vector<RawPeer> peers = peers_of(endpoint, 2);
  std::string calls;
  for (int i = 0; i < kCalls; ++i) calls += call("big", i);
  peers[0].send(calls);
  for (int i = 0; i < 10; ++i) {
    peers[1].send(call("quick", i));
    EXPECT_EQ(peers[1].line(), result("1", i));
  }
  const std::string big = '"' + std::string(500'000, 'x') + '"';
  for (int i = 0; i < kCalls; ++i) ASSERT_EQ(peers[0].line(), result(big, i));
}

TEST_P(EngineTest, handlers_that_block_on_every_thread_hold_up_nobody_else) {
  const Folder folder;
  Gate gate;
  Options given = options(2);
  given.takeover_ms = 1;
  Server server{std::move(given)};
  server.method("thread", this_thread);
  server.method("block", [&] {
    gate.wait();
    return 7;
  });
  const Endpoint endpoint = server.listen(folder.socket());
  const RunningServer running{server};
  std::vector<RawPeer> slow = peers_of(endpoint, 2);
  std::vector<RawPeer> quick = peers_of(endpoint, 2);
  for (RawPeer& peer : slow) peer.send(call("block", 1));
  gate.await_inside(2);
  EXPECT_EQ(servers_of(quick).size(), 2U);
  gate.open();
  for (RawPeer& peer : slow) EXPECT_EQ(peer.line(), result("7", 1));
  EXPECT_GE(server.stats().takeovers, 2U);
}

INSTANTIATE_TEST_SUITE_P(Engines, EngineTest, kEachEngine, engine_name);

TEST(ServerThreads, calls_in_progress_on_all_of_them_are_answered_before_the_server_stops) {
  constexpr int kPeers = 6;
  const Folder folder;
  Options options = threads(3);
  options.drain_ms = 60'000;
  std::atomic<int> begun{0};
  std::atomic<bool> released{false};
  Server server{std::move(options)};
  server.method("slow", [&](Context context) -> Task<int> {
    ++begun;
    co_await until(context, released);
    co_return 7;
  });
  server.method("quick", [] { return 1; });
  const Endpoint endpoint = server.listen(folder.socket());
  RunningServer running{server};
  std::vector<RawPeer> peers = peers_of(endpoint, kPeers);
  for (RawPeer& peer : peers) peer.send(call("slow", 1));
  EXPECT_TRUE(comes_true([&] { return begun == kPeers; }));
  server.stop();
  // Each thread has heard of it once it refuses what is new.
  for (RawPeer& peer : peers) {
    std::string line;
    do {
      peer.send(call("quick", 2));
      line = peer.line();
    } while (line == result("1", 2));
    EXPECT_NE(line.find("-32009"), std::string::npos) << line;
  }
  released = true;
  for (RawPeer& peer : peers) {
    EXPECT_EQ(peer.line(), result("7", 1));
    EXPECT_TRUE(peer.ended());
  }
  running.join();
  EXPECT_EQ(running.end, RunEnd::drained);
  EXPECT_FALSE(std::filesystem::exists(folder.path + "/calls.sock"));
}

TEST(ServerThreads, a_second_signal_ends_all_of_them_at_once) {
  const Folder folder;
  Options options = threads(2);
  options.drain_ms = 3'600'000;
  std::atomic<int> begun{0};
  const std::atomic<bool> never{false};
  Server server{std::move(options)};
  server.method("hold", [&](Context context) -> Task<void> {
    ++begun;
    co_await until(context, never);
  });
  const Endpoint endpoint = server.listen(folder.socket());
  RunningServer running{server};
  std::vector<RawPeer> peers = peers_of(endpoint, 2);
  for (RawPeer& peer : peers) peer.send(call("hold", 1));
  EXPECT_TRUE(comes_true([&] { return begun == 2; }));
  ::kill(::getpid(), SIGTERM);
  ::kill(::getpid(), SIGINT);
  running.join();
  EXPECT_EQ(running.end, RunEnd::interrupted);
}

TEST(ServerThreads, a_handler_of_any_of_them_stops_the_server) {
  const Folder folder;
  for (int i = 0; i < 2; ++i) {
    Server server{threads(2)};
    server.method("stop", [&server] { server.stop(); });
    const Endpoint endpoint = server.listen(folder.socket());
    RunningServer running{server};
    std::vector<RawPeer> peers = peers_of(endpoint, 2);
    peers[static_cast<std::size_t>(i)].send(call("stop", 1));
    EXPECT_EQ(peers[static_cast<std::size_t>(i)].line(), result("null", 1));
    running.join();
    EXPECT_EQ(running.end, RunEnd::drained);
  }
}

TEST(ServerThreads, a_handler_that_is_away_from_one_of_them_is_waited_for) {
  const Folder folder;
  Gate gate;
  Options options = threads(2);
  options.takeover_ms = 1;
  options.drain_ms = 60'000;
  Server server{std::move(options)};
  server.method("block", [&] {
    gate.wait();
    return 7;
  });
  const Endpoint endpoint = server.listen(folder.socket());
  RunningServer running{server};
  std::vector<RawPeer> peers = peers_of(endpoint, 2);
  peers[1].send(call("block", 1));
  gate.await_inside(1);
  server.stop();
  EXPECT_TRUE(peers[0].ended());
  gate.open();
  EXPECT_EQ(peers[1].line(), result("7", 1));
  running.join();
  EXPECT_EQ(running.end, RunEnd::drained);
}

TEST(ServerThreads, what_all_of_them_do_is_counted) {
  const Folder folder;
  Server server{threads(3)};
  server.method("thread", this_thread);
  const Endpoint endpoint = server.listen(folder.socket());
  const RunningServer running{server};
  std::vector<RawPeer> peers = peers_of(endpoint, 6);
  EXPECT_EQ(servers_of(peers).size(), 3U);
  const Stats stats = server.stats();
  EXPECT_EQ(stats.connections_open, 6U);
  EXPECT_EQ(stats.connections_accepted, 6U);
  EXPECT_EQ(stats.calls, 6U);
  EXPECT_EQ(stats.messages_in, 6U);
}

TEST(ServerThreads, another_server_on_their_port_is_refused) {
  Server first{threads(2)};
  const Endpoint endpoint = first.listen("tcp://127.0.0.1:0");
  for (const std::uint32_t count : {1U, 2U}) {
    Server second{threads(count)};
    EXPECT_THROW(second.listen(endpoint.uri()), std::runtime_error);
  }
}

TEST(ServerThreads, stay_on_their_processors_and_leave_the_caller_s_thread_as_it_was) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  std::uint32_t processor = 0;
  while (!CPU_ISSET(processor, &before)) ++processor;
  const Folder folder;
  Options options = threads(2);
  options.cpu_affinity = {processor};
  Server server{std::move(options)};
  server.method("processors", [] {
    cpu_set_t set;
    ::sched_getaffinity(0, sizeof set, &set);
    return CPU_COUNT(&set);
  });
  const Endpoint endpoint = server.listen(folder.socket());
  std::vector<RawPeer> peers = peers_of(endpoint, 2);
  std::thread caller{[&] {
    for (RawPeer& peer : peers) {
      peer.send(call("processors", 1));
      EXPECT_EQ(peer.line(), result("1", 1));
    }
    server.stop();
  }};
  server.run();
  caller.join();
  cpu_set_t after;
  ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(ServerThreads, a_processor_that_cannot_be_is_warned_of_and_changes_nothing) {
  Options options = threads(1);
  options.cpu_affinity = {4095};
  std::string said;
  options.log = [&](const LogRecord& record) { said += record.message; };
  Server server{std::move(options)};
  server.stop();
  EXPECT_EQ(server.run(), RunEnd::drained);
  EXPECT_NE(said.find("cpu_affinity: no thread can be kept on processor 4095"), std::string::npos) << said;
}

TEST(ServerPlaces, a_client_of_the_same_process_needs_no_port) {
  Server server;
  server.method("subtract", [](int minuend, int subtrahend) { return minuend - subtrahend; });
  const Endpoint endpoint = server.listen("inproc://calculator");
  const RunningServer running{server};
  Client client{endpoint.uri()};
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
}

// What a server on standard input writes when it is sent `calls` and no more.
std::string answers_of_a_child(std::string_view calls, std::uint32_t thread_count, int runs) {
  int in[2];
  int out[2];
  EXPECT_EQ(::pipe(in), 0);
  EXPECT_EQ(::pipe(out), 0);
  std::fflush(nullptr);  // or the child would say it again
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
    for (const int fd : {in[0], in[1], out[0], out[1]}) ::close(fd);
    {
      std::atomic<bool> second_has_come{false};
      Server server{threads(thread_count)};
      server.method("first", [&](Context context) -> Task<int> {
        co_await until(context, second_has_come);
        std::puts("a print in a handler");
        std::fflush(stdout);
        co_return 1;
      });
      server.method("second", [&] {
        second_has_come = true;
        return 2;
      });
      for (int i = 0; i < runs; ++i) {
        server.listen("stdio:");
        if (server.run() != RunEnd::drained) ::_exit(1);
      }
    }
    ::_exit(0);
  }
  ::close(in[0]);
  ::close(out[1]);
  EXPECT_EQ(::write(in[1], calls.data(), calls.size()), static_cast<ssize_t>(calls.size()));
  ::close(in[1]);
  std::string got;
  char block[4096];
  ssize_t bytes;
  while ((bytes = ::read(out[0], block, sizeof block)) > 0) got.append(block, static_cast<std::size_t>(bytes));
  ::close(out[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return got;
}

TEST(ServerPlaces, a_server_on_standard_input_answers_all_and_ends_with_it) {
  const std::string calls = call("first", 1) + call("second", 2);
  const std::string answers = result("2", 2) + "\n" + result("1", 1) + "\n";
  EXPECT_EQ(answers_of_a_child(calls, 1, 1), answers);
  EXPECT_EQ(answers_of_a_child(calls, 3, 1), answers);
  // A further run finds the end of input.
  EXPECT_EQ(answers_of_a_child(calls, 3, 2), answers);
}

}  // namespace
}  // namespace wirecall::net
