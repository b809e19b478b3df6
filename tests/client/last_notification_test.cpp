// What a client has sent last is served, by each scheme, though the client goes at once: also where its handler takes
// longer than that.
#include <chrono>
#include <gtest/gtest.h>
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

class LastNotification : public testing::TestWithParam<const char*> {};

TEST_P(LastNotification, is_served_to_its_end) {
  Options options;
  options.tls.cert = {transport::usual_certificates().server_files.certificate};
  options.tls.key = {transport::usual_certificates().server_files.key};
  Broker broker{options};
  std::counting_semaphore<> done{0};
  broker.method("slow", [&](Context context) -> Task<void> {
    co_await sleep_for(context, 400ms);  // longer than a client waits
    done.release();
  });
  const std::string tcp = broker.listen("tcp://127.0.0.1:0").uri();
  const RunningServer running{broker};
  ClientOptions trusting;
  trusting.cafile = transport::usual_certificates().cafile;
  Client{GetParam() + tcp.substr(3), trusting}.notify("slow");
  EXPECT_TRUE(done.try_acquire_for(kWatchdog));
}

INSTANTIATE_TEST_SUITE_P(Schemes, LastNotification, testing::Values("tcp", "tls", "http", "https", "ws", "wss"),
                         [](const auto& param) { return std::string{param.param}; });

}  // namespace
}  // namespace wirecall::net
