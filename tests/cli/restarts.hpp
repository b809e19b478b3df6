// What the tests of restarts share: a server that others take over from one after the other, clients that call all the
// time, and those that know only JSON-RPC.
#pragma once

#include <array>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <future>
#include <gtest/gtest.h>
#include <signal.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/sanitizers.hpp"
#include "cli/restart/restart_channel.hpp"
#include "cli/restart/restart_path.hpp"
#include "cli/restart/restart_protocol.hpp"
#include "tests/cli/process.hpp"
#include "tests/server/engines.hpp"
#include "tests/server/folder.hpp"
#include "tests/transport/certificates.hpp"
#include "wirecall/client.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::cli {

/// A server, and those that take over from it one after the other, each started by the one before: all print to the
/// stderr of the first.
class Restarted {
 public:
  explicit Restarted(std::vector<std::string> words) : first_(std::move(words)), pid_(first_.id()) {}
  Restarted(Restarted&&) = delete;
  ~Restarted() {
    if (pid_ != first_.id()) kill(pid_, SIGKILL);
  }

  /// Another process has taken over when this returns.
  void restart() {
    kill(pid_, SIGUSR2);
    const std::string word = "another process has taken over";
    first_.read_error_until("this process has taken over", ++restarts_);
    const std::string told = first_.read_error_until(word, restarts_);
    const std::size_t at = told.rfind(word);
    ASSERT_NE(at, std::string::npos) << told;
    const std::string log = first_.read_error_line(at);
    const std::size_t number = log.find("pid=");
    ASSERT_NE(number, std::string::npos) << log;
    std::from_chars(log.data() + number + 4, log.data() + log.size(), pid_);
  }
  /// The last of them ends, and all others have.
  std::string end() {
    kill(pid_, SIGTERM);
    return first_.rest_of_error();
  }
  Process& first() { return first_; }
  pid_t pid() const { return pid_; }

 private:
  Process first_;
  pid_t pid_;
  int restarts_ = 0;
};

/// Clients of all kinds that call all the time.
class Load {
 public:
  explicit Load(const std::vector<std::string>& urls, std::string method = "subtract", std::string provider = {})
      : method_(std::move(method)), provider_(std::move(provider)) {
    for (const std::string& url : urls) {
      threads_.emplace_back([this, url] {
        while (!over_.load()) {
          Client client{url, options_of(url)};
          call(client, url + ", a new client");
        }
      });
      threads_.emplace_back([this, url] {
        ClientOptions options = options_of(url);
        options.client_id = "steady";
        Client client{url, options};
        while (!over_.load()) call(client, url + ", one client");
      });
    }
  }
  Load(Load&&) = delete;
  ~Load() { end(); }
  void end() {
    over_.store(true);
    threads_.clear();
  }
  int calls() const { return calls_.load(); }
  /// So many more calls are answered when this returns.
  void go_on(int calls) const {
    for (const int until = calls_.load() + calls; calls_.load() < until;) std::this_thread::yield();
  }

 private:
  [[nodiscard]] ClientOptions options_of(const std::string& url) const {
    ClientOptions options;
    if (!provider_.empty()) options.wait_ms = 20'000;  // who is named is not there for a moment
    const bool tls = url.starts_with("tls:") || url.starts_with("https:") || url.starts_with("wss:");
    if (tls) options.cafile = transport::usual_certificates().cafile;
    return options;
  }
  void call(Client& client, const std::string& what) {
    try {
      const int difference = client.request<int>(method_, 5, 3).to(provider_).call();
      if (difference != 2) ADD_FAILURE() << what;
    } catch (const Error& error) {
      ADD_FAILURE() << what << ": " << error.what();
    }
    ++calls_;
  }

  const std::string method_;
  const std::string provider_;
  std::atomic<bool> over_{false};
  std::atomic<int> calls_{0};
  std::vector<std::jthread> threads_;
};

/// A folder in which --replace finds servers.
class Restart : public testing::Test {
 protected:
  Restart() { setenv("XDG_RUNTIME_DIR", folder_.path.c_str(), 1); }
  ~Restart() override { unsetenv("XDG_RUNTIME_DIR"); }

  [[nodiscard]] std::vector<std::string> serve(std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"serve", "--demo", "--listen", folder_.socket()};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  [[nodiscard]] std::string path() const { return restart_path(std::vector{Endpoint{folder_.socket()}}); }
  void make_runtime_folder() const {
    std::filesystem::create_directory(folder_.path + "/wirecall");
    std::filesystem::permissions(folder_.path + "/wirecall", std::filesystem::perms::owner_all);
  }
  [[nodiscard]] bool is_served() const {
    Client client{folder_.socket()};
    return client.call<int>("subtract", 5, 3) == 2;
  }

  const net::Folder folder_;
};

/// The socket at that path, with whatever speaks there.
inline runtime::Descriptor connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  runtime::Descriptor socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0) << path;
  return socket;
}

/// A process that takes over, as far as the test has it do so.
class Rival {
 public:
  explicit Rival(const std::string& path) : channel_(connect_to(path)) {}

  void hello() { say(RestartHello{.restart = kRestartVersion, .pid = getpid()}); }
  RestartSockets sockets() {
    received_ = channel_.receive(kTime, kRestartStateBytesMax, kRestartDescriptorsMax);
    return *from_json<RestartSockets>(received_.text);
  }
  void ready() { say(RestartReady{}); }
  void state() { state_ = channel_.receive(kTime, kRestartStateBytesMax); }
  void prepared() { say(RestartPrepared{.error = {}, .prepared = true}); }
  [[nodiscard]] std::size_t descriptors() const { return received_.descriptors.size(); }
  /// The server has given up.
  [[nodiscard]] bool is_refused() {
    try {
      static_cast<void>(channel_.receive(kTime, kRestartStateBytesMax));
    } catch (const RestartError& error) {
      return std::string{error.what()}.contains("has given up");
    }
    return false;
  }

 private:
  static constexpr std::chrono::milliseconds kTime{30000};
  template <class T>
  void say(const T& message) {
    channel_.send(to_json(message), kTime);
  }

  RestartChannel channel_;
  RestartMessage received_;
  RestartMessage state_;
};

/// A connection of a client that knows JSON-RPC alone.
class Stock {
 public:
  explicit Stock(const std::string& path) : socket_(connect_to(path)) {}
  void send(std::string_view text) const {
    EXPECT_EQ(::send(socket_.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }
  /// The next line; empty at the end.
  std::string line() {
    std::array<char, 256> block;
    while (text_.find('\n') == std::string::npos) {
      const ssize_t bytes = recv(socket_.get(), block.data(), block.size(), 0);
      if (bytes <= 0) return {};
      text_.append(block.data(), static_cast<std::size_t>(bytes));
    }
    std::string line = text_.substr(0, text_.find('\n'));
    text_.erase(0, line.size() + 1);
    return line;
  }

 private:
  runtime::Descriptor socket_;
  std::string text_;
};

/// One that provides stock.add, and knows JSON-RPC alone.
class Provider {
 public:
  explicit Provider(const std::string& path) : stock_(path) {
    stock_.send(R"({"jsonrpc":"2.0","method":"rpc.register","params":{"method":"stock.add"},"id":1})");
    EXPECT_NE(stock_.line().find("result"), std::string::npos);
  }
  /// What the client gets for the sum of 1 and 2, which this one is asked for.
  int sum_of(Client& client) {
    std::promise<int> answered;
    client.request<int>("stock.add", 1, 2).then([&](const std::expected<int, Error>& answer) {
      answered.set_value(answer ? *answer : answer.error().code());
    });
    std::future<int> answer = answered.get_future();
    this->answer();
    return answer.get();
  }
  void answer() {
    const std::string asked = stock_.line();
    const std::string_view member = R"("id":)";
    const std::size_t at = asked.find(member);
    ASSERT_NE(at, std::string::npos) << asked;
    EXPECT_NE(asked.find(R"("params":[1,2])"), std::string::npos) << asked;
    const std::string id = asked.substr(at + member.size(), asked.find_first_of(",}", at) - at - member.size());
    stock_.send(R"({"jsonrpc":"2.0","result":3,"id":)" + id + "}");
  }

 private:
  Stock stock_;
};

class RestartEngines : public Restart, public testing::WithParamInterface<Engine> {
 protected:
  void SetUp() override { net::skip_where_refused(GetParam()); }
};

// So long that a test ends before it is over, or not at all.
inline const std::string kDrainForever = "600000";

}  // namespace wirecall::cli
