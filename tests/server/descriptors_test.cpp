// What becomes of servers and clients when the process has no descriptors left: those who have theirs go on, whoever
// needs one is told which and why, and all goes on when there are some again. tests/cli/descriptors_test.cpp has what
// waiting for them costs.
#include <arpa/inet.h>
#include <atomic>
#include <exception>
#include <filesystem>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/sanitizers.hpp"
#include "tests/connection/peer.hpp"
#include "tests/server/engines.hpp"
#include "tests/server/folder.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {
namespace {

constexpr std::string_view kCure = "ulimit -n";

std::string call(std::string_view method, int id) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","id":)" + std::to_string(id) + "}\n";
}
std::string result(std::string_view value, int id) {
  return R"({"jsonrpc":"2.0","result":)" + std::string{value} + R"(,"id":)" + std::to_string(id) + "}";
}

// The limit is low enough to be reached; from the beginning, since io_uring goes by the limit of when it was asked to
// accept.
class DescriptorsTest : public EngineTest {
 protected:
  DescriptorsTest() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit low = before_;
    low.rlim_cur = 200;
    ::setrlimit(RLIMIT_NOFILE, &low);
  }
  ~DescriptorsTest() override {
    relieve();
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  void SetUp() override {
    EngineTest::SetUp();
    // It needs a pipe for each class of an object that it meets for the first time, and takes it for another without.
    if (kAddressSanitizer) GTEST_SKIP() << "UndefinedBehaviorSanitizer, beside this one, needs descriptors itself";
  }
  void use_up() {
    for (int fd; (fd = ::dup(STDIN_FILENO)) >= 0;) taken_.push_back(fd);
  }
  void relieve() {
    for (const int fd : std::exchange(taken_, {})) ::close(fd);
  }

 private:
  rlimit before_{};
  std::vector<int> taken_;
};

TEST_P(DescriptorsTest, when_there_are_none_left_it_serves_who_is_there_and_accepts_again_later) {
  std::atomic<int> warnings{0};
  Gate gate;
  Options given = options(1);
  given.takeover_ms = Options{}.takeover_ms;
  given.log = [&](const LogRecord& record) {
    warnings += record.level == LogLevel::warning && record.message.find(kCure) != std::string_view::npos;
  };
  Server server{std::move(given)};
  server.method("quick", [] { return 19; });
  server.method("block", [&] {
    gate.wait();
    return 7;
  });
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  RawPeer steady{endpoint};
  RawPeer slow{endpoint};
  steady.send(call("quick", 1));
  ASSERT_EQ(steady.line(), result("19", 1));
  slow.send(call("quick", 1));
  ASSERT_EQ(slow.line(), result("19", 1));

  const int late = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  use_up();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(endpoint.port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(late, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_TRUE(comes_true([&] { return warnings != 0; }));
  for (int id = 0; id < 100; ++id) {
    steady.send(call("quick", id));
    ASSERT_EQ(steady.line(), result("19", id));
  }
  // A loop goes on without a handler that does not come back, also now.
  slow.send(call("block", 2));
  gate.await_inside(1);
  for (int id = 0; id < 100; ++id) {
    steady.send(call("quick", id));
    ASSERT_EQ(steady.line(), result("19", id));
  }
  gate.open();
  EXPECT_EQ(slow.line(), result("7", 2));
  EXPECT_EQ(server.stats().connections_accepted, 2U);

  relieve();
  RawPeer peer{late};
  peer.send(call("quick", 3));
  EXPECT_EQ(peer.line(), result("19", 3));
}

// How the call has failed, or nothing.
std::string failure_of(Client& client) {
  try {
    static_cast<void>(client.call<int>("quick"));
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

TEST_P(DescriptorsTest, when_there_are_none_left_a_client_says_so_and_goes_on_later) {
  const Folder folder;
  Server server{options(1)};
  server.method("quick", [] { return 19; });
  const std::vector<Endpoint> endpoints{server.listen("tcp://127.0.0.1:0"),
                                        server.listen("unix://" + folder.path + "/calls.sock"),
                                        server.listen("inproc://descriptors")};
  const RunningServer running{server};
  for (const Endpoint& endpoint : endpoints) {
    ClientOptions once;
    once.connect_attempts = 1;
    Client impatient{endpoint.uri(), once};
    Client patient{endpoint.uri()};
    Client connected{endpoint.uri()};
    EXPECT_EQ(connected.call<int>("quick"), 19);
    use_up();
    const std::string failure = failure_of(impatient);
    EXPECT_NE(failure.find(kCure), std::string::npos) << failure;
    auto waiting = patient.request<int>("quick").future();
    EXPECT_EQ(connected.call<int>("quick"), 19);
    relieve();
    EXPECT_EQ(waiting.get(), 19);
    EXPECT_EQ(impatient.call<int>("quick"), 19);
  }
}

TEST_P(DescriptorsTest, when_there_are_none_left_nobody_listens_and_nothing_is_left_of_the_attempt) {
  const Folder folder;
  const std::vector<std::string> endpoints{"tcp://127.0.0.1:0", "unix://" + folder.path + "/calls.sock"};
  for (const std::string& endpoint : endpoints) {
    Server server{options(1)};
    server.method("quick", [] { return 19; });
    use_up();
    std::string failure;
    try {
      server.listen(endpoint);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    relieve();
    EXPECT_NE(failure.find(kCure), std::string::npos) << failure;
    EXPECT_TRUE(std::filesystem::is_empty(folder.path));
    const Endpoint listening = server.listen(endpoint);
    const RunningServer running{server};
    RawPeer peer{listening};
    peer.send(call("quick", 1));
    EXPECT_EQ(peer.line(), result("19", 1));
  }
}

TEST_P(DescriptorsTest, when_there_are_none_left_no_server_is_made_and_the_reason_is_given) {
  use_up();
  std::string failure;
  try {
    const Server server{options(1)};
  } catch (const std::exception& error) {
    failure = error.what();
  }
  relieve();
  EXPECT_NE(failure.find("Too many open files"), std::string::npos) << failure;
}

INSTANTIATE_TEST_SUITE_P(Engines, DescriptorsTest, kEachEngine, engine_name);

}  // namespace
}  // namespace wirecall::net
