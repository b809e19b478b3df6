// A broker started as a user starts it, for tests of the commands that are its clients.
#pragma once

#include <arpa/inet.h>
#include <cstdint>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "tests/cli/process.hpp"
#include "wirecall/server.hpp"

namespace wirecall::cli {

class BrokerTool : public testing::Test {
 protected:
  BrokerTool() : BrokerTool(std::vector<std::string>{}) {}
  explicit BrokerTool(std::vector<std::string> flags) : server_(serve(std::move(flags))) {}

  /// Runs a command to its end.
  Ended run(std::vector<std::string> words) const { return cli::run(std::move(words), url_); }
  /// The stderr, or else the stdout, of a command that ends with exit status 0.
  std::string output(std::vector<std::string> words) const {
    const Ended ended = run(std::move(words));
    EXPECT_EQ(ended.status, 0);
    return ended.error.empty() ? ended.output : ended.error;
  }

  static std::vector<std::string> serve(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"serve", "--port", "0"});
    return flags;
  }

  Process server_;
  std::uint16_t port_ = port_of(server_);
  std::string url_ = "tcp://127.0.0.1:" + std::to_string(port_);
};

/// A command that keeps running; it is ready when it prints `ready` on stderr.
class Staying : public Process {
 public:
  Staying(std::vector<std::string> words, const std::string& url, std::string_view ready)
      : Process(std::move(words), url) {
    EXPECT_NE(read_error_until(ready).find(ready), std::string::npos) << read_error_until(ready);
  }
};

/// Accepts connections, and sends nothing.
class SilentServer {
 public:
  SilentServer() : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(descriptor_, 8), 0);
    EXPECT_EQ(getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  SilentServer(SilentServer&&) = delete;
  ~SilentServer() { close(descriptor_); }

  [[nodiscard]] std::string url() const { return "tcp://127.0.0.1:" + std::to_string(port_); }

 private:
  int descriptor_;
  std::uint16_t port_ = 0;
};

/// A server that is no broker.
class PlainServer {
 public:
  PlainServer() : endpoint_(server_.listen("tcp://127.0.0.1:0")), thread_([this] { server_.run(); }) {}
  PlainServer(PlainServer&&) = delete;
  ~PlainServer() {
    server_.stop();
    thread_.join();
  }

  [[nodiscard]] std::string url() const { return endpoint_.uri(); }

 private:
  Server server_;
  Endpoint endpoint_;
  std::thread thread_;
};

}  // namespace wirecall::cli
