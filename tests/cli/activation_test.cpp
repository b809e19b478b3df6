// Sockets of a service manager: `wirecall serve` listens on those that it is passed, as systemd passes them, and has
// them kept for the process that is started after a crash.
#include <array>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <future>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <string>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "runtime/descriptor.hpp"
#include "tests/server/folder.hpp"
#include "transport/endpoint_socket.hpp"
#include "wirecall/client.hpp"

namespace wirecall::cli {
namespace {

class Activation : public testing::Test {
 protected:
  Activation() {
    setenv("XDG_RUNTIME_DIR", folder_.path.c_str(), 1);
    manager_ = runtime::Descriptor{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    notify_.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(manager_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const timeval limit{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(manager_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~Activation() override {
    unsetenv("XDG_RUNTIME_DIR");
    if (pid_ > 0) end(SIGKILL);
  }

  /// The command, with these as the descriptors from 3 on.
  void start(std::vector<std::string> words, const std::vector<int>& passed, const std::string& names) {
    words.insert(words.begin(), {WIRECALL_TOOL_PATH, "serve", "--demo"});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ != 0) return;
    alarm(60);
    for (std::size_t i = 0; i < passed.size(); ++i) dup2(passed[i], static_cast<int>(100 + i));
    for (std::size_t i = 0; i < passed.size(); ++i) {
      dup2(static_cast<int>(100 + i), static_cast<int>(3 + i));
      close(static_cast<int>(100 + i));
    }
    dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
    setenv("LISTEN_FDS", std::to_string(passed.size()).c_str(), 1);
    setenv("LISTEN_FDNAMES", names.c_str(), 1);
    setenv("NOTIFY_SOCKET", notify_.c_str(), 1);
    if (keeps_) setenv("FDSTORE", "16", 1);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int end(int signal) {
    int status = 0;
    if (signal != 0) kill(pid_, signal);
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  /// The next that the manager is told, and the sockets that come with it.
  std::string heard() {
    std::array<char, 256> text;
    iovec part{.iov_base = text.data(), .iov_len = text.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(16 * sizeof(int))> space{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    const ssize_t bytes = recvmsg(manager_.get(), &message, MSG_CMSG_CLOEXEC);
    const cmsghdr* const control = CMSG_FIRSTHDR(&message);
    if (control != nullptr) {
      kept_.clear();
      const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int number = -1;
        std::memcpy(&number, CMSG_DATA(control) + i * sizeof number, sizeof number);
        kept_.emplace_back(number);
      }
    }
    return {text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
  }
  void await_ready() {
    for (std::string told; (told = heard()) != "READY=1\n";) ASSERT_FALSE(told.empty());
  }

  /// Replaces the process, which may be the successor of one before; returns the one that serves then.
  pid_t replace(pid_t process) {
    kill(process, SIGUSR2);
    std::string main;
    while (!(main = heard()).starts_with("MAINPID=")) {
      if (main.empty()) return -1;
    }
    await_ready();
    return std::stoi(main.substr(std::strlen("MAINPID=")));
  }

  const net::Folder folder_;
  const std::string notify_ = folder_.path + "/notify";
  runtime::Descriptor manager_;
  std::vector<runtime::Descriptor> kept_;
  bool keeps_ = true;
  pid_t pid_ = -1;
};

int call(const std::string& url) { return Client{url}.call<int>("subtract", 5, 3); }

TEST_F(Activation, sockets_that_are_passed_are_the_endpoints_where_the_options_name_none) {
  const auto tcp = transport::listen_on(Endpoint{"tcp://127.0.0.1:0"});
  const auto path = transport::listen_on(Endpoint{folder_.socket()});
  start({}, {tcp.descriptor, path.descriptor}, "tcp:path");
  await_ready();
  EXPECT_EQ(call(tcp.endpoint.uri()), 2);
  EXPECT_EQ(call(folder_.socket()), 2);
  EXPECT_EQ(end(SIGTERM), 0);
  close(tcp.descriptor);
  close(path.descriptor);
}

TEST_F(Activation, sockets_that_are_passed_are_found_by_where_they_are_bound) {
  const auto tcp = transport::listen_on(Endpoint{"tcp://127.0.0.1:0"});
  const std::string named = "tcp://localhost:" + std::to_string(tcp.endpoint.port());
  start({"--listen", named, "--listen", folder_.socket()}, {tcp.descriptor}, "tcp");
  await_ready();
  EXPECT_EQ(call(tcp.endpoint.uri()), 2);
  EXPECT_EQ(call(folder_.socket()), 2);
  EXPECT_EQ(end(SIGTERM), 0);
  close(tcp.descriptor);
}

TEST_F(Activation, one_that_nobody_is_to_serve_and_one_that_is_no_listener_are_refused) {
  const auto tcp = transport::listen_on(Endpoint{"tcp://127.0.0.1:0"});
  start({"--listen", folder_.socket()}, {tcp.descriptor}, "tcp");
  EXPECT_EQ(end(0), 2);
  const runtime::Descriptor idle{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  start({}, {idle.get()}, "tcp");
  EXPECT_EQ(end(0), 2);
  close(tcp.descriptor);
}

TEST_F(Activation, a_crash_loses_no_listener_that_the_manager_keeps) {
  start({"--listen", "tcp://127.0.0.1:0", "--listen", folder_.socket(), "--listen", "shm://calls"}, {}, "");
  await_ready();
  ASSERT_EQ(kept_.size(), 3U);
  EXPECT_EQ(end(SIGKILL), -SIGKILL);
  // Who connects now waits for the process that comes.
  Client waits{folder_.socket()};
  std::vector<int> kept;
  for (const runtime::Descriptor& one : kept_) kept.push_back(one.get());
  start({"--listen", "tcp://127.0.0.1:0", "--listen", folder_.socket(), "--listen", "shm://calls"}, kept,
        "wirecall:wirecall:wirecall");
  EXPECT_EQ(waits.call<int>("subtract", 5, 3), 2);
  EXPECT_EQ(call("shm://calls"), 2);
  await_ready();
  EXPECT_EQ(end(SIGTERM), 0);
}

TEST_F(Activation, a_process_that_follows_one_that_was_told_to_stop_is_found_where_that_listened) {
  start({"--listen", folder_.socket(), "--listen", "shm://calls"}, {}, "");
  await_ready();
  EXPECT_EQ(end(SIGTERM), 0);
  ASSERT_EQ(kept_.size(), 2U);
  start({"--listen", folder_.socket(), "--listen", "shm://calls"}, {kept_[0].get(), kept_[1].get()},
        "wirecall:wirecall");
  EXPECT_EQ(call(folder_.socket()), 2);
  EXPECT_EQ(call("shm://calls"), 2);
  EXPECT_EQ(end(SIGTERM), 0);
}

TEST_F(Activation, sockets_that_are_passed_stay_with_whatever_process_takes_over) {
  const auto tcp = transport::listen_on(Endpoint{"tcp://127.0.0.1:0"});
  const auto path = transport::listen_on(Endpoint{folder_.socket()});
  start({"--drain-ms", "200"}, {tcp.descriptor, path.descriptor}, "tcp:path");
  await_ready();
  const pid_t second = replace(pid_);
  EXPECT_EQ(end(0), 0);
  const pid_t third = replace(second);
  EXPECT_EQ(call(tcp.endpoint.uri()), 2);
  EXPECT_EQ(call(folder_.socket()), 2);
  kill(third, SIGTERM);
  while (heard() != "STOPPING=1\n") {
  }
  close(tcp.descriptor);
  close(path.descriptor);
}

TEST_F(Activation, the_file_of_one_that_is_passed_is_the_manager_s) {
  const auto path = transport::listen_on(Endpoint{folder_.socket()});
  keeps_ = false;
  start({"--listen", folder_.socket(), "--listen", "shm://calls"}, {path.descriptor}, "path");
  await_ready();
  const pid_t second = replace(pid_);
  EXPECT_EQ(end(0), 0);
  kill(second, SIGTERM);
  EXPECT_EQ(heard(), "STOPPING=1\n");
  EXPECT_TRUE(std::filesystem::exists(folder_.path + "/calls.sock"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path + "/wirecall/calls.sock"));
  close(path.descriptor);
}

TEST_F(Activation, the_manager_keeps_none_that_it_passes_anyway) {
  const auto tcp = transport::listen_on(Endpoint{"tcp://127.0.0.1:0"});
  start({"--listen", tcp.endpoint.uri(), "--listen", folder_.socket()}, {tcp.descriptor}, "tcp");
  await_ready();
  EXPECT_EQ(kept_.size(), 1U);
  kept_.clear();
  const pid_t second = replace(pid_);
  EXPECT_EQ(kept_.size(), 1U);
  EXPECT_EQ(end(0), 0);
  kill(second, SIGTERM);
  EXPECT_EQ(heard(), "STOPPING=1\n");
  close(tcp.descriptor);
}

TEST_F(Activation, one_that_was_kept_is_closed_also_where_another_one_is_passed) {
  const auto tcp = transport::listen_on(Endpoint{"tcp://127.0.0.1:0"});
  const auto path = transport::listen_on(Endpoint{folder_.socket()});
  start({}, {tcp.descriptor, path.descriptor}, "wirecall:path");
  await_ready();
  close(tcp.descriptor);
  EXPECT_THROW(Client{tcp.endpoint.uri()}.connect(), ConnectionError);
  EXPECT_EQ(call(folder_.socket()), 2);
  EXPECT_EQ(end(SIGTERM), 0);
  close(path.descriptor);
}

TEST_F(Activation, one_that_was_kept_and_is_not_wanted_any_more_is_closed) {
  const auto tcp = transport::listen_on(Endpoint{"tcp://127.0.0.1:0"});
  start({"--listen", folder_.socket()}, {tcp.descriptor}, "wirecall");
  await_ready();
  close(tcp.descriptor);
  kept_.clear();
  EXPECT_THROW(Client{tcp.endpoint.uri()}.connect(), ConnectionError);
  EXPECT_EQ(call(folder_.socket()), 2);
  EXPECT_EQ(end(SIGTERM), 0);
}

TEST_F(Activation, the_manager_is_told_which_process_is_the_main_one_before_that_says_anything) {
  start({"--listen", folder_.socket()}, {}, "");
  await_ready();
  kill(pid_, SIGUSR2);
  const std::string main = heard();
  ASSERT_TRUE(main.starts_with("MAINPID=")) << main;
  const pid_t successor = std::stoi(main.substr(std::strlen("MAINPID=")));
  EXPECT_NE(successor, pid_);
  kept_.clear();
  await_ready();
  EXPECT_EQ(kept_.size(), 1U);
  EXPECT_EQ(end(0), 0);
  EXPECT_EQ(call(folder_.socket()), 2);
  kill(successor, SIGTERM);
  EXPECT_EQ(heard(), "STOPPING=1\n");
}

TEST_F(Activation, one_that_is_told_to_stop_ends_within_its_time_to_drain) {
  start({"--listen", folder_.socket(), "--drain-ms", "200"}, {}, "");
  await_ready();
  Client client{folder_.socket()};
  std::promise<bool> answered;
  client.request<void>("sleep", 600'000).then([&](const std::expected<void, Error>& answer) {
    answered.set_value(answer.has_value());
  });
  EXPECT_EQ(client.call<int>("subtract", 5, 3), 2);  // behind the other one
  EXPECT_EQ(end(SIGTERM), 0);
  EXPECT_FALSE(answered.get_future().get());
}

}  // namespace
}  // namespace wirecall::cli
