// A server and a client over a connection that is no descriptor (tests/transport/memory_stream.hpp): the client's
// dialer makes it, and the server's loop is handed the other end by the thread that dialled.
#include "transport/pending_connection.hpp"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/core.hpp"
#include "server/serving_loop.hpp"
#include "tests/client/access.hpp"
#include "tests/transport/memory_stream.hpp"
#include "wirecall/client.hpp"

namespace wirecall::net {
namespace {

using transport::PendingConnection;

// Serves on a thread of its own, and with another one that receives and sends where that is asked for.
class MemoryServer {
 public:
  explicit MemoryServer(bool io_thread) {
    registry_.method("subtract", [](int a, int b) { return a - b; });
    registry_.method("echo", [](std::string text) { return text; });
    serving_.emplace(runtime::make_epoll_backend(), shared_);
    if (io_thread) {
      transport::IoThread& io = serving_->add_io_thread(runtime::make_epoll_backend());
      io_loop_ = &io.loop();
      io_thread_ = std::jthread{[this, &io] { io.run([this] { return io_over_.load(); }); }};
    }
    thread_ = std::jthread{[this] { serving_->run([this] { return over_.load(); }, [] { return false; }); }};
  }
  MemoryServer(MemoryServer&&) = delete;
  ~MemoryServer() {
    over_ = true;
    serving_->loop().wake();
    thread_.join();
    if (io_loop_ == nullptr) return;
    io_over_ = true;
    io_loop_->wake();
    io_thread_.join();
  }

  [[nodiscard]] Client client() {
    ClientSeams seams;
    seams.dial = [this](const Endpoint&, std::chrono::milliseconds) {
      auto [theirs, ours] = transport::memory_pair();
      serving_->serve_elsewhere(std::move(ours));
      return std::move(theirs);
    };
    return detail::ClientAccess::client(
        std::make_shared<ClientCore>(std::vector{Endpoint{"inproc://memory"}}, ClientOptions{}, std::move(seams)));
  }
  [[nodiscard]] Stats stats() const { return serving_->stats(); }

 private:
  Options options_;
  Registry registry_;
  HttpSettings http_;
  ServerShared shared_{.options = options_, .registry = registry_, .http = http_};
  std::optional<ServingLoop> serving_;
  Loop* io_loop_ = nullptr;
  std::atomic<bool> over_ = false;
  std::atomic<bool> io_over_ = false;
  std::jthread io_thread_;
  std::jthread thread_;
};

class MemoryConnections : public testing::TestWithParam<bool> {};

TEST_P(MemoryConnections, a_client_calls_a_server_through_them) {
  MemoryServer server{GetParam()};
  for (int i = 0; i < 4; ++i) {
    Client client = server.client();
    EXPECT_EQ(client.request<int>("subtract", 42, 23).call(), 19);
    const std::string large(1 << 20, 'x');
    EXPECT_EQ(client.request<std::string>("echo", large).call(), large);
  }
  EXPECT_EQ(server.stats().connections_accepted, 4);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutAnIoThread, MemoryConnections, testing::Bool());

}  // namespace
}  // namespace wirecall::net
