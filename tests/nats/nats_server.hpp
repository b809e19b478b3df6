// A nats-server of a test's own, on a port that the system chooses.
#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace wirecall::test {

class NatsServer {
 public:
  /// Whether there is one to begin.
  [[nodiscard]] static bool is_there() {
    for (const char* const path : {"/usr/sbin/nats-server", "/usr/bin/nats-server", "/usr/local/bin/nats-server"}) {
      if (::access(path, X_OK) == 0) return true;
    }
    return false;
  }

  /// `configuration` is that of a file of its own; its paths are whole.
  explicit NatsServer(std::string configuration = {}) : configuration_(std::move(configuration)) { start(); }
  NatsServer(NatsServer&&) = delete;
  ~NatsServer() {
    kill();
    std::filesystem::remove_all(folder_);
  }

  /// Once more, at the same port.
  void start() {
    std::string pattern = (std::filesystem::temp_directory_path() / "wirecall-nats-XXXXXX").string();
    if (folder_.empty()) {
      if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error{"no temporary folder"};
      folder_ = pattern;
    }
    for (const auto& entry : std::filesystem::directory_iterator{folder_}) std::filesystem::remove(entry);
    const std::string configuration = (folder_ / "nats.conf").string();
    std::ofstream{configuration} << configuration_;
    const std::string port = std::to_string(port_);
    process_ = ::fork();
    if (process_ == 0) {
      ::setenv("PATH", "/usr/sbin:/usr/bin:/usr/local/bin", 1);
      if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(127);
      ::execlp("nats-server", "nats-server", "-c", configuration.c_str(), "-a", "127.0.0.1", "-p", port.c_str(),
               "--ports_file_dir", folder_.c_str(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (!read_port()) {
      if (std::chrono::steady_clock::now() > end) throw std::runtime_error{"nats-server does not listen"};
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
  }
  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }
  /// `user` is "name:password"; empty for nobody.
  [[nodiscard]] std::string url(const std::string& user = {}) const {
    return "nats://" + (user.empty() ? "" : user + '@') + "127.0.0.1:" + std::to_string(port_);
  }
  /// Another configuration, from the next start on.
  void configure(std::string configuration) { configuration_ = std::move(configuration); }

 private:
  // {"nats":["nats://127.0.0.1:34567"], …}
  bool read_port() {
    for (const auto& entry : std::filesystem::directory_iterator{folder_}) {
      if (entry.path().extension() != ".ports") continue;
      std::ifstream file{entry.path()};
      const std::string text{std::istreambuf_iterator<char>{file}, {}};
      constexpr std::string_view kAddress = "://127.0.0.1:";
      const std::size_t at = text.find(kAddress);
      if (at == std::string::npos || text.find('}') == std::string::npos) continue;
      port_ = std::stoi(text.substr(at + kAddress.size()));
      return true;
    }
    return false;
  }

  std::string configuration_;
  std::filesystem::path folder_;
  int port_ = -1;
  pid_t process_ = 0;
};

}  // namespace wirecall::test
