// What a client has sent last is served, by each scheme, though the client goes at once.
#include <chrono>
#include <future>
#include <gtest/gtest.h>
#include <optional>
#include <semaphore>
#include <string>
#include <string_view>

#include "tests/client/provided.hpp"
#include "tests/connection/peer.hpp"
#include "tests/transport/certificates.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/client.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;

class LastNotification : public testing::TestWithParam<const char*> {
 protected:
  LastNotification() {
    options_.tls.cert = {transport::usual_certificates().server_files.certificate};
    options_.tls.key = {transport::usual_certificates().server_files.key};
    options_.log_level = LogLevel::debug;
    options_.log = [this](const LogRecord& record) {
      if (record.message == "a connection has ended")
        end_.set_value(std::string{std::get<std::string_view>(record.fields.begin()->value)});
    };
    broker.emplace(options_);
  }
  template <class... Args>
  void notify_and_go(std::string_view method, const Args&... args) {
    const std::string tcp = broker->listen("tcp://127.0.0.1:0").uri();
    running_.emplace(*broker);
    ClientOptions trusting;
    trusting.cafile = transport::usual_certificates().cafile;
    Client{GetParam() + tcp.substr(3), trusting}.notify(method, args...);
  }

  /// Why the connection has ended, to the server.
  std::string end() { return end_.get_future().get(); }

  std::optional<Broker> broker;

 private:
  std::promise<std::string> end_;
  Options options_;
  std::optional<RunningServer> running_;
};

TEST_P(LastNotification, is_served_to_its_end_though_that_takes_longer_than_a_client_waits) {
  std::counting_semaphore<> done{0};
  broker->method("slow", [&](Context context) -> Task<void> {
    co_await sleep_for(context, 400ms);
    done.release();
  });
  notify_and_go("slow");
  EXPECT_TRUE(done.try_acquire_for(kWatchdog));
}

TEST_P(LastNotification, is_received_whole) {
  std::counting_semaphore<> done{0};
  std::size_t received = 0;
  broker->method("keep", [&](const std::string& text) {
    received = text.size();
    done.release();
  });
  const std::string text(8 * 1024 * 1024, 'x');
  notify_and_go("keep", text);
  ASSERT_TRUE(done.try_acquire_for(kWatchdog));
  EXPECT_EQ(received, text.size());
}

TEST_P(LastNotification, is_followed_by_an_end_in_order) {
  broker->method("nothing", [] {});
  notify_and_go("nothing");
  EXPECT_EQ(end(), "finished");
}

INSTANTIATE_TEST_SUITE_P(Schemes, LastNotification, testing::Values("tcp", "tls", "http", "https", "ws", "wss"),
                         [](const auto& param) { return std::string{param.param}; });

}  // namespace
}  // namespace wirecall::net
