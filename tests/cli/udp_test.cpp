// The command by UDP: it serves, calls, notifies and loads there, and says what it does not.
#include "transport/udp.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "cli/load/load.hpp"
#include "tests/cli/process.hpp"

namespace wirecall::cli {
namespace {

using namespace std::chrono_literals;

class UdpTool : public testing::Test {
 protected:
  static std::string url_of(Process& server) {
    const std::string banner = server.read_error_until("nc -u");
    const std::size_t at = banner.find("udp://127.0.0.1:");
    EXPECT_NE(at, std::string::npos) << banner;
    return banner.substr(at, banner.find(' ', at) - at);
  }
  static Ended call(std::vector<std::string> words, const std::string& url) {
    words.insert(words.begin(), "call");
    return run(std::move(words), url);
  }

  Process server_{{"serve", "--demo", "--listen", "udp://127.0.0.1:0"}};
  std::string url_ = url_of(server_);
};

TEST_F(UdpTool, calls_and_notifies) {
  EXPECT_EQ(call({"subtract", "42", "23"}, url_).output, "19\n");
  EXPECT_EQ(call({"subtract", "minuend=42", "subtrahend=23", "--idempotent"}, url_).output, "19\n");
  EXPECT_EQ(call({"subtract", "42", "23", "--encoding", "msgpack"}, url_).output, "19\n");
  EXPECT_EQ(run({"notify", "echo", "1"}, url_).status, 0);
  const Ended refused = call({"nothing"}, url_);
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(refused.error.starts_with("error -32601: ")) << refused.error;
}

TEST_F(UdpTool, the_banner_has_lines_to_copy) {
  const std::string banner = server_.read_error_until("nc -u");
  EXPECT_NE(banner.find(url_ + "   "), std::string::npos) << banner;
  EXPECT_NE(banner.find(" call subtract 42 23 --url " + url_ + "\n"), std::string::npos) << banner;
  EXPECT_NE(banner.find("a message a datagram"), std::string::npos) << banner;
}

TEST_F(UdpTool, loads_a_server) {
  const Ended ended =
      run({"bench", "subtract", "42", "23", "-c", "2", "-p", "8", "-z", "200ms", "--warm-up", "10ms", "--json"}, url_);
  EXPECT_EQ(ended.status, 0) << ended.error;
  const auto result = nlohmann::json::parse(ended.output);
  EXPECT_GT(result["calls"], 0);
  EXPECT_EQ(result["errors"], 0);
  EXPECT_EQ(result["unanswered"], 0);
}

TEST_F(UdpTool, what_needs_a_connection_says_so) {
  const std::string instead = " has none: name a server of tcp://, tls://, ws://, wss:// or unix:// by --url\n";
  for (const std::vector<std::string>& words : {std::vector<std::string>{"sub", "news"},
                                                {"pub", "news", "1"},
                                                {"reply", "greet", "hi"},
                                                {"ls"},
                                                {"clients"},
                                                {"stats"},
                                                {"describe", "subtract"},
                                                {"tap"}}) {
    const Ended ended = run(words, url_);
    EXPECT_EQ(ended.status, 2) << words.front();
    EXPECT_EQ(ended.error, "wirecall: " + words.front() + " needs a connection, and " + url_ + instead);
  }
  for (const std::string flag : {"--stream", "--all"}) {
    const Ended ended = call({"count", "3", flag}, url_);
    EXPECT_EQ(ended.status, 2);
    EXPECT_EQ(ended.error, "wirecall: " + flag + " needs a connection, and " + url_ + instead);
  }
  const Ended with_token = call({"subtract", "42", "23", "--token", "secret"}, url_);
  EXPECT_EQ(with_token.status, 3);
  EXPECT_NE(with_token.error.find("a token is not sent by UDP"), std::string::npos) << with_token.error;
}

TEST_F(UdpTool, nobody_there_is_no_connection_and_silence_is_a_timeout) {
  std::string url;
  {
    const auto silent = transport::listen_on_udp(Endpoint{"udp://127.0.0.1:0"}, 1);
    url = silent.front().endpoint.uri();
    EXPECT_EQ(call({"subtract", "42", "23", "--timeout", "50ms"}, url).status, 4);
  }
  const Ended nobody = call({"subtract", "42", "23", "--timeout", "10s"}, url);
  EXPECT_EQ(nobody.status, 3);
  EXPECT_NE(nobody.error.find("Connection refused"), std::string::npos) << nobody.error;
}

TEST(UdpServe, with_principals_needs_methods_that_are_safe) {
  const std::string path = testing::TempDir() + "wirecall-udp-" + std::to_string(::getpid()) + ".json";
  std::ofstream{path} << R"([{"name":"ada","tokens":["secret"],"call":[">"]}])";
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  const Ended ended = run({"serve", "--demo", "--principals-file", path, "--listen", "udp://127.0.0.1:0"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_TRUE(ended.error.starts_with("wirecall: cannot listen on udp://127.0.0.1:0: a datagram cannot show a token"))
      << ended.error;
  std::filesystem::remove(path);
}

TEST(UdpServe, reachable_from_elsewhere_has_to_be_meant) {
  const Ended ended = run({"serve", "--demo", "--listen", "udp://0.0.0.0:0"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.error.find("say --insecure if that is meant"), std::string::npos) << ended.error;
}

// A peer that answers every other datagram.
class Forgetful {
 public:
  Forgetful() : bound_(transport::listen_on_udp(Endpoint{"udp://127.0.0.1:0"}, 1)) {
    thread_ = std::jthread{[this](const std::stop_token& stop) {
      std::string request(2000, '\0');
      while (!stop.stop_requested()) {
        sockaddr_storage from{};
        socklen_t size = sizeof from;
        const int fd = bound_.front().descriptor.get();
        auto* const address = reinterpret_cast<sockaddr*>(&from);
        const ssize_t bytes = ::recvfrom(fd, request.data(), request.size(), 0, address, &size);
        if (bytes < 0) {
          std::this_thread::yield();
          continue;
        }
        if (++received % 2 == 0) continue;
        const std::string text = request.substr(0, static_cast<std::size_t>(bytes));
        const std::string reply = R"({"jsonrpc":"2.0","result":1,)" + text.substr(text.find("\"id\""));
        ::sendto(fd, reply.data(), reply.size(), 0, address, size);
      }
    }};
  }
  [[nodiscard]] const Endpoint& endpoint() const { return bound_.front().endpoint; }

  std::atomic<std::uint64_t> received = 0;

 private:
  std::vector<transport::BoundUdpSocket> bound_;
  std::jthread thread_;
};

TEST(UdpLoad, calls_that_are_lost_are_counted_and_others_take_their_places) {
  const Forgetful server;
  LoadOptions options{.endpoint = server.endpoint(), .method = "any", .params = {}};
  options.connections = 2;
  options.pipeline = 3;
  options.warm_up = 0ms;
  options.duration = 500ms;
  options.patience = 50ms;
  const LoadResult result = run_load(options);
  EXPECT_EQ(result.lost, "");
  EXPECT_EQ(result.errors, 0U);
  EXPECT_GT(result.unanswered, 6U) << "more than there are places: they were free again";
  EXPECT_GT(result.answered, 0U);
}

TEST(UdpLoad, a_call_that_no_datagram_holds_is_refused) {
  LoadOptions options{.endpoint = Endpoint{"udp://127.0.0.1:1"}, .method = "any", .params = {}};
  options.params = "[\"" + std::string(transport::kUdpBytesMax, 'x') + "\"]";
  EXPECT_THROW(static_cast<void>(run_load(options)), std::runtime_error);
}

}  // namespace
}  // namespace wirecall::cli
