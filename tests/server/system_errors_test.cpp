// What becomes of servers and clients when the system refuses a call at its worst moment: for want of descriptors or
// memory, for the sake of one connection, or for no reason at all. Each call that there is refused once, and each time
// one connection at most is lost, the others are answered as ever, and the next ones too.
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <exception>
#include <functional>
#include <future>
#include <gtest/gtest.h>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <netinet/in.h>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <thread>
#include <vector>

#include "tests/connection/peer.hpp"
#include "tests/server/engines.hpp"
#include "tests/server/failing_calls.hpp"
#include "tests/server/folder.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {
namespace {

using test::Failing;
using test::Fault;
using test::let_fail;

std::string echo(std::string_view text, int id) {
  return R"({"jsonrpc":"2.0","method":"echo","params":[")" + std::string{text} + R"("],"id":)" + std::to_string(id) +
         "}\n";
}
std::string echoed(std::string_view text, int id) {
  return R"({"jsonrpc":"2.0","result":")" + std::string{text} + R"(","id":)" + std::to_string(id) + "}";
}

/// A server whose calls can fail.
class RefusedServer {
 public:
  explicit RefusedServer(Options options) {
    options.log = [this](const LogRecord& record) {
      const std::scoped_lock lock{mutex_};
      if (record.level >= LogLevel::info) log_.emplace_back(record.message);
    };
    std::promise<Endpoint> listening;
    thread_ = std::thread{[this, &listening, options = std::move(options)]() mutable {
      Server server{std::move(options)};
      server_ = &server;
      server.method("echo", [](std::string_view text) { return text; });
      const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
      let_fail({SYS_accept4, SYS_recvfrom, SYS_sendto, SYS_epoll_ctl, SYS_io_uring_enter});
      listening.set_value(endpoint);
      server.run();
    }};
    endpoint_.emplace(listening.get_future().get());
  }
  RefusedServer(RefusedServer&&) = delete;
  ~RefusedServer() {
    server_->stop();
    thread_.join();
  }

  [[nodiscard]] const Endpoint& endpoint() const { return *endpoint_; }
  [[nodiscard]] Stats stats() const { return server_->stats(); }
  /// What has been logged since the last time.
  [[nodiscard]] std::vector<std::string> log() {
    const std::scoped_lock lock{mutex_};
    return std::exchange(log_, {});
  }
  /// Whether the peer is served as ever.
  [[nodiscard]] static bool serves(RawPeer& peer, std::string_view text = "?") {
    return peer.send(echo(text, 1)) && peer.line() == echoed(text, 1);
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> log_;
  Server* server_ = nullptr;
  std::optional<Endpoint> endpoint_;
  std::thread thread_;
};

class SystemErrors : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    if (!test::kCallsCanFail) GTEST_SKIP() << "calls cannot be made to fail on this machine";
  }

  /// Peers that come, call twice each, the second time for more than a packet holds, and leave. Returns how many of
  /// them have lost their connection; whatever the others hear is what they should.
  static int broken_of_three(RefusedServer& server) {
    const std::string long_text(20'000, 'y');
    std::vector<RawPeer> peers;
    for (int i = 0; i < 3; ++i) peers.emplace_back(server.endpoint());
    int broken = 0;
    for (RawPeer& peer : peers) peer.send(echo("x", 1));
    std::vector<bool> lost;
    for (RawPeer& peer : peers) {
      const std::string line = peer.line();
      lost.push_back(line.empty());
      EXPECT_TRUE(lost.back() || line == echoed("x", 1)) << line;
    }
    for (RawPeer& peer : peers) peer.send(echo(long_text, 2));
    for (std::size_t i = 0; i < peers.size(); ++i) {
      const std::string line = peers[i].line();
      // One that was cut within a line has not been given the end of it.
      const bool whole = line.size() == echoed(long_text, 2).size();
      EXPECT_TRUE(whole ? !lost[i] && line == echoed(long_text, 2) : peers[i].ended());
      broken += whole ? 0 : 1;
    }
    return broken;
  }

  /// Every one of the calls of that scene in turn meets `fault`.
  static void expect_survived(RefusedServer& server, Fault fault, int broken_max) {
    RawPeer steady{server.endpoint()};
    ASSERT_TRUE(RefusedServer::serves(steady));
    for (fault.skip = 0;; ++fault.skip) {
      SCOPED_TRACE("call " + std::to_string(fault.call) + " number " + std::to_string(fault.skip) + ": " +
                   (fault.error == Fault::kOneByte ? "one byte" : std::strerror(fault.error)));
      int hits = 0;
      int broken = 0;
      {
        const Failing failing{fault};
        broken = broken_of_three(server);
        hits = failing.hits();
      }
      EXPECT_LE(broken, broken_max);
      ASSERT_TRUE(RefusedServer::serves(steady));
      if (!comes_true([&] { return server.stats().connections_open == 1; })) {
        FAIL() << server.stats().connections_open << " connections are open";
      }
      if (hits == 0) break;
      ASSERT_LT(fault.skip, 1000) << "there are always more calls";
    }
    EXPECT_GT(fault.skip, 0) << "call " << fault.call << " is never made";
  }
};

TEST_P(SystemErrors, at_any_call_cost_one_connection_at_most) {
  RefusedServer server{options(1)};
  if (GetParam() == Engine::uring) {
    // All else is done within this one.
    for (const int error : {EINTR, EAGAIN, EBUSY})
      expect_survived(server, {.call = SYS_io_uring_enter, .error = error}, 0);
    return;
  }
  for (const int error : {ENOMEM, ENOBUFS, ECONNRESET, ETIMEDOUT})
    expect_survived(server, {.call = SYS_recvfrom, .error = error}, 1);
  for (const int error : {ENOMEM, ENOBUFS, ECONNRESET, EPIPE})
    expect_survived(server, {.call = SYS_sendto, .error = error}, 1);
  for (const int error : {ENOMEM, ENOSPC}) expect_survived(server, {.call = SYS_epoll_ctl, .error = error}, 1);
  for (const int error : {EMFILE, ENOMEM}) expect_survived(server, {.call = SYS_accept4, .error = error}, 0);
}

TEST_P(SystemErrors, that_are_none_cost_nothing) {
  if (GetParam() == Engine::uring) GTEST_SKIP() << "the kernel deals with them";
  RefusedServer server{options(1)};
  for (const long call : {SYS_recvfrom, SYS_sendto}) {
    for (const int error : {EINTR, EAGAIN, Fault::kOneByte}) {
      expect_survived(server, {.call = call, .error = error}, 0);
      expect_survived(server, {.call = call, .error = error, .times = 50}, 0);
    }
  }
  for (const int error : {EINTR, ECONNABORTED, EPROTO, EPERM, ENETDOWN, EHOSTUNREACH}) {
    expect_survived(server, {.call = SYS_accept4, .error = error}, 0);
    expect_survived(server, {.call = SYS_accept4, .error = error, .times = 100}, 0);
  }
  EXPECT_TRUE(server.log().empty()) << "nobody is told of what concerns one connection";
}

struct Shortage {
  int error;
  std::string_view cure;
};

TEST_P(SystemErrors, that_keep_a_server_from_accepting_are_waited_for_at_rest_and_named_with_their_cure) {
  if (GetParam() == Engine::uring) GTEST_SKIP() << "its accepts are no calls of ours";
  for (const auto& [error, cure] : {Shortage{EMFILE, "ulimit -n"}, Shortage{ENFILE, "sysctl fs.file-max"},
                                    Shortage{ENOBUFS, "memory"}, Shortage{ENOMEM, "memory"}}) {
    SCOPED_TRACE(std::strerror(error));
    constexpr int kFailures = 3;
    constexpr int kCalls = 20;
    RefusedServer server{options(1)};
    RawPeer steady{server.endpoint()};
    ASSERT_TRUE(RefusedServer::serves(steady));
    const auto turns_before = server.stats().loop_turns;
    const Failing failing{{.call = SYS_accept4, .error = error, .times = kFailures}};
    RawPeer late{server.endpoint()};
    late.send(echo("late", 1));
    for (int i = 0; i < kCalls; ++i) ASSERT_TRUE(RefusedServer::serves(steady));
    EXPECT_EQ(late.line(), echoed("late", 1));
    EXPECT_EQ(failing.hits(), kFailures);
    // For each failure one turn that finds it, one that stops listening, and one that begins again.
    EXPECT_LE(server.stats().loop_turns - turns_before, 2U * kCalls + 4U * kFailures + 10U);

    std::vector<std::string> log;
    EXPECT_TRUE(comes_true([&] {
      for (std::string& line : server.log()) log.push_back(std::move(line));
      return log.size() == 2;
    }));
    ASSERT_EQ(log.size(), 2U);
    EXPECT_NE(log[0].find(std::strerror(error)), std::string::npos) << log[0];
    EXPECT_NE(log[0].find(cure), std::string::npos) << log[0];
    EXPECT_EQ(log[1], "connections are accepted again");
  }
}

// Before anybody is there the only watch that is asked for is the listener's.
TEST_P(SystemErrors, that_keep_a_listener_from_being_watched_are_waited_for_and_named_too) {
  if (GetParam() == Engine::uring) GTEST_SKIP() << "it needs no watch";
  for (const auto& [error, cure] : {Shortage{ENOSPC, "sysctl fs.epoll.max_user_watches"}, Shortage{ENOMEM, "memory"}}) {
    SCOPED_TRACE(std::strerror(error));
    constexpr int kFailures = 3;
    const Failing failing{{.call = SYS_epoll_ctl, .error = error, .times = kFailures}};
    RefusedServer server{options(1)};
    RawPeer peer{server.endpoint()};
    EXPECT_TRUE(RefusedServer::serves(peer));
    EXPECT_EQ(failing.hits(), kFailures);
    EXPECT_LE(server.stats().loop_turns, 4U * kFailures + 10U);
    const std::vector<std::string> log = server.log();
    ASSERT_FALSE(log.empty());
    EXPECT_NE(log[0].find(std::strerror(error)), std::string::npos) << log[0];
    EXPECT_NE(log[0].find(cure), std::string::npos) << log[0];
  }
}

/// Does something on a thread whose calls can fail.
void on_a_failing_thread(const std::function<void()>& body) {
  std::thread{[&] {
    let_fail({SYS_socket, SYS_connect, SYS_recvfrom, SYS_sendto, SYS_epoll_ctl, SYS_io_uring_enter});
    body();
  }}.join();
}

// What a call has failed with, or nothing.
std::string failure_of(Client& client) {
  try {
    EXPECT_EQ(client.call<std::string>("echo", "x"), "x");
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

TEST_P(SystemErrors, that_keep_a_client_from_connecting_are_named_with_their_cure_and_waited_for) {
  const Folder folder;
  Server server{options(1)};
  server.method("echo", [](std::string_view text) { return text; });
  const std::vector<Endpoint> endpoints{server.listen("tcp://127.0.0.1:0"),
                                        server.listen("unix://" + folder.path + "/calls.sock")};
  const RunningServer running{server};
  on_a_failing_thread([&] {
    for (const Endpoint& endpoint : endpoints) {
      for (const auto& [error, cure] : {Shortage{EMFILE, "ulimit -n"}, Shortage{ENFILE, "sysctl fs.file-max"},
                                        Shortage{ENOBUFS, "memory"}, Shortage{ENOMEM, "memory"}}) {
        for (const long call : {SYS_socket, SYS_connect}) {
          if (call == SYS_connect && (error == EMFILE || error == ENFILE)) continue;
          SCOPED_TRACE(endpoint.uri() + " " + std::to_string(call) + " " + std::strerror(error));
          ClientOptions once;
          once.connect_attempts = 1;
          Client impatient{endpoint.uri(), once};
          Client patient{endpoint.uri()};
          {
            const Failing failing{{.call = call, .error = error}};
            const std::string failure = failure_of(impatient);
            EXPECT_NE(failure.find(std::strerror(error)), std::string::npos) << failure;
            EXPECT_NE(failure.find(cure), std::string::npos) << failure;
          }
          {
            const Failing failing{{.call = call, .error = error, .times = 2}};
            EXPECT_EQ(failure_of(patient), "");
            EXPECT_EQ(failing.hits(), 2);
          }
          EXPECT_EQ(failure_of(impatient), "");
        }
      }
    }
  });
}

TEST_P(SystemErrors, at_any_call_of_a_client_end_the_calls_of_one_connection_at_most) {
  Server server{options(1)};
  server.method("echo", [](std::string_view text) { return text; });
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  on_a_failing_thread([&] {
    for (const long call : {SYS_recvfrom, SYS_sendto, SYS_epoll_ctl}) {
      for (const int error : {ENOMEM, ENOBUFS, ECONNRESET}) {
        for (Fault fault{.call = call, .error = error};; ++fault.skip) {
          SCOPED_TRACE("call " + std::to_string(call) + " number " + std::to_string(fault.skip) + ": " +
                       std::strerror(error));
          Client client{endpoint.uri()};
          int failed = 0;
          int hits = 0;
          {
            const Failing failing{fault};
            for (int i = 0; i < 3; ++i) failed += failure_of(client).empty() ? 0 : 1;
            // By another way: the thread in the background.
            auto answer = client.request<std::string>("echo", "x").future();
            try {
              EXPECT_EQ(answer.get(), "x");
            } catch (const std::exception&) {
              ++failed;
            }
            hits = failing.hits();
          }
          EXPECT_LE(failed, 1);
          EXPECT_EQ(failure_of(client), "");
          if (hits == 0) break;
          ASSERT_LT(fault.skip, 1000) << "there are always more calls";
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Engines, SystemErrors, kEachEngine, engine_name);

}  // namespace
}  // namespace wirecall::net
