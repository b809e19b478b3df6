// The process that takes over, where the old one is stopped, dies, or goes on meanwhile.
#include <array>
#include <filesystem>
#include <gtest/gtest.h>
#include <optional>
#include <signal.h>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/restart/restart_channel.hpp"
#include "cli/restart/restart_protocol.hpp"
#include "tests/cli/process.hpp"
#include "tests/cli/restarts.hpp"
#include "tests/server/engines.hpp"
#include "transport/endpoint_socket.hpp"
#include "transport/setup.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::cli {
namespace {

/// A server that is taken over from, step by step, in the process of the test.
class OldServer {
 public:
  OldServer(const std::string& path, const std::string& endpoint)
      : restarts_(transport::listen_on_path(Endpoint{"unix://" + path}, path)),
        served_(transport::listen_on(Endpoint{endpoint})) {
    ::fcntl(restarts_.descriptor, F_SETFL, ::fcntl(restarts_.descriptor, F_GETFL) & ~O_NONBLOCK);
  }
  OldServer(OldServer&&) = delete;
  ~OldServer() {
    ::close(restarts_.descriptor);
    ::close(served_.descriptor);
  }

  /// Another process has come up when this returns, and waits for the state of this one, of that id.
  void await_ready(pid_t pid = getpid()) {
    channel_.emplace(runtime::Descriptor{::accept4(restarts_.descriptor, nullptr, nullptr, SOCK_CLOEXEC)});
    static_cast<void>(channel_->receive(kTime, kRestartBytesMax));
    const std::array<runtime::Descriptor, 1> all{runtime::Descriptor{::dup(served_.descriptor)}};
    channel_->send(
        to_json(RestartSockets{
            .restart = kRestartVersion, .pid = pid, .uris = {served_.endpoint.uri()}, .path = {}, .error = {}}),
        kTime, all);
    const auto ready = from_json<RestartReady>(channel_->receive(kTime, kRestartBytesMax).text);
    EXPECT_TRUE(ready && ready->error.empty());
  }
  void hang_up() { channel_.reset(); }
  void go() { channel_->send(to_json(RestartGo{.go = true}), kTime); }
  RestartPrepared hand_over(std::string_view state = kState) {
    channel_->send(state, kTime);
    return *from_json<RestartPrepared>(channel_->receive(kTime, kRestartBytesMax).text);
  }
  /// What the first that waits to be accepted has sent; empty where nobody waits.
  [[nodiscard]] std::string accepted() const {
    const runtime::Descriptor socket{::accept4(served_.descriptor, nullptr, nullptr, SOCK_CLOEXEC)};
    std::array<char, 256> text;
    const ssize_t bytes = recv(socket.get(), text.data(), text.size(), 0);
    return {text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
  }

 private:
  static constexpr std::chrono::milliseconds kTime{30000};
  static constexpr std::string_view kState =
      R"({"session_key":[1,2,3,4],"session_last":1,"kicked":[],"retained":[],"methods":[],"topics":[]})";

  transport::BoundSocket restarts_;
  transport::BoundSocket served_;
  std::optional<RestartChannel> channel_;
};

TEST_F(Restart, one_that_is_told_to_stop_before_it_has_taken_over_does_not) {
  make_runtime_folder();
  OldServer old{path(), folder_.socket()};
  Process other{serve({"--replace"})};
  old.await_ready();
  other.signal(SIGTERM);
  const RestartPrepared said = old.hand_over();
  EXPECT_FALSE(said.prepared);
  EXPECT_NE(said.error.find("has been told to stop"), std::string::npos) << said.error;
  EXPECT_EQ(other.wait(), 3);
}

TEST_F(Restart, one_that_takes_over_serves_in_place_of_an_old_process_that_nobody_finds_any_more) {
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  waitpid(gone, nullptr, 0);
  make_runtime_folder();
  OldServer old{path(), folder_.socket()};
  Process other{serve({"--replace"})};
  old.await_ready(gone);
  old.hang_up();
  const std::string log = other.read_error_until("Methods:");
  ASSERT_NE(log.find("this process serves in place of one that has died"), std::string::npos) << log;
  EXPECT_TRUE(is_served());
}

/// A process may open so many descriptors more while this lives.
class Spare {
 public:
  Spare(pid_t pid, rlim_t descriptors) : pid_(pid) {
    const std::filesystem::path all{"/proc/" + std::to_string(pid) + "/fd"};
    rlim_t limit = 0;
    for (rlim_t left = descriptors + 1; left != 0; ++limit)
      left -= std::filesystem::is_symlink(all / std::to_string(limit)) ? 0 : 1;
    prlimit(pid, RLIMIT_NOFILE, nullptr, &before_);
    const rlimit now{.rlim_cur = limit - 1, .rlim_max = before_.rlim_max};
    EXPECT_EQ(prlimit(pid, RLIMIT_NOFILE, &now, nullptr), 0);
  }
  Spare(Spare&&) = delete;
  ~Spare() { prlimit(pid_, RLIMIT_NOFILE, &before_, nullptr); }

 private:
  pid_t pid_;
  rlimit before_{};
};

TEST_F(Restart, one_that_may_open_no_descriptors_gives_up_in_time_or_serves) {
  if (kAddressSanitizer) GTEST_SKIP() << kSanitizerNeedsDescriptors;
  make_runtime_folder();
  int taken_over = 0;
  for (rlim_t spare = 0; spare < 6; ++spare) {
    OldServer old{path(), folder_.socket()};
    Process other{serve({"--replace"})};
    old.await_ready();
    std::optional<Spare> few{std::in_place, other.id(), spare};
    if (!old.hand_over().prepared) {
      EXPECT_EQ(other.wait(), 3) << spare;
      continue;
    }
    ++taken_over;
    old.go();
    const std::string log = other.read_error_until("Methods:");
    ASSERT_NE(log.find("Methods:"), std::string::npos) << spare << log;
    few.reset();
    EXPECT_TRUE(is_served()) << spare;
    other.signal(SIGTERM);
    EXPECT_EQ(other.wait(), 0) << spare;
  }
  EXPECT_GT(taken_over, 0);
}

TEST_P(RestartEngines, who_waits_to_be_accepted_is_the_old_process_s_where_the_other_gives_up) {
  make_runtime_folder();
  OldServer old{path(), folder_.socket()};
  Process other{serve({"--replace", "--engine", GetParam() == Engine::epoll ? "epoll" : "uring"})};
  old.await_ready();
  const Stock client{folder_.path + "/calls.sock"};
  client.send("a call");
  EXPECT_FALSE(old.hand_over("no state").prepared);
  EXPECT_EQ(other.wait(), 2);
  EXPECT_EQ(old.accepted(), "a call");
}

/// A server that is taken over from, as far as the test has it do so, over which a real one comes.
class Victim {
 public:
  /// In a process of its own, which `dies` after so many of its messages, or goes on but gives up.
  Victim(const std::string& path, const std::string& endpoint, int messages, bool dies) {
    transport::BoundSocket restarts = transport::listen_on_path(Endpoint{"unix://" + path}, path);
    transport::BoundSocket served = transport::listen_on(Endpoint{endpoint});
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      alarm(kSecondsMax);
      try {
        be_replaced(restarts.descriptor, served.descriptor, endpoint, messages);
      } catch (const std::exception&) {
        _exit(1);
      }
      if (dies) _exit(0);
      channel_.reset();
      char byte = 0;
      static_cast<void>(::read(ends[0], &byte, 1));  // until the test ends
      _exit(0);
    }
    ::close(ends[0]);
    wake_ = runtime::Descriptor{ends[1]};
    ::close(restarts.descriptor);
    ::close(served.descriptor);
    restarts.file.keep();
    served.file.keep();
  }
  Victim(Victim&&) = delete;
  ~Victim() {
    kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  static constexpr std::chrono::milliseconds kTime{30000};

  // In the child.
  void be_replaced(int restarts, int served, const std::string& endpoint, int messages) {
    ::fcntl(restarts, F_SETFL, ::fcntl(restarts, F_GETFL) & ~O_NONBLOCK);
    channel_.emplace(runtime::Descriptor{::accept4(restarts, nullptr, nullptr, SOCK_CLOEXEC)});
    static_cast<void>(channel_->receive(kTime, kRestartStateBytesMax));
    if (messages > 0) {
      const std::array<runtime::Descriptor, 1> all{runtime::Descriptor{::dup(served)}};
      channel_->send(to_json(RestartSockets{
                         .restart = kRestartVersion, .pid = getpid(), .uris = {endpoint}, .path = {}, .error = {}}),
                     kTime, all);
    }
    if (messages > 1) {
      static_cast<void>(channel_->receive(kTime, kRestartStateBytesMax));
      channel_->send(R"({"session_key":[1,2,3,4],"session_last":1,"kicked":[],"retained":[],"methods":[],"topics":[]})",
                     kTime);
    }
    if (messages > 2) static_cast<void>(channel_->receive(kTime, kRestartStateBytesMax));
  }

  std::optional<RestartChannel> channel_;
  runtime::Descriptor wake_;
  pid_t pid_;
};

TEST_F(Restart, one_that_takes_over_serves_in_place_of_an_old_process_that_dies_meanwhile) {
  for (const int messages : {1, 2, 3}) {
    make_runtime_folder();
    const Victim victim{path(), folder_.socket(), messages, true};
    Process other{serve({"--replace"})};
    other.read_error_until("Methods:");
    EXPECT_TRUE(is_served()) << messages;
    other.signal(SIGTERM);
    EXPECT_EQ(other.wait(), 0);
    std::filesystem::remove(path());
    std::filesystem::remove(folder_.path + "/calls.sock");
  }
}

TEST_F(Restart, and_ends_where_the_old_process_goes_on) {
  for (const int messages : {0, 1, 2, 3}) {
    make_runtime_folder();
    const Victim victim{path(), folder_.socket(), messages, false};
    Process other{serve({"--replace"})};
    const std::string log = other.rest_of_error();
    EXPECT_EQ(other.wait(), 3) << messages;
    EXPECT_NE(log.find("has given up"), std::string::npos) << log;
    EXPECT_TRUE(std::filesystem::exists(folder_.path + "/calls.sock")) << messages;
    std::filesystem::remove(path());
    std::filesystem::remove(folder_.path + "/calls.sock");
  }
}

}  // namespace
}  // namespace wirecall::cli
