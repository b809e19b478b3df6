// A server that may have few descriptors, as a user starts it, on each engine: whom it serves when there are none left,
// what that costs it, and that it accepts again. tests/server/descriptors_test.cpp has what else needs them.
#include <chrono>
#include <ctime>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <vector>

#include "base/sanitizers.hpp"
#include "tests/cli/metrics.hpp"
#include "tests/cli/process.hpp"
#include "tests/connection/peer.hpp"
#include "wirecall/endpoint.hpp"

namespace wirecall::cli {
namespace {

using net::RawPeer;

/// What is started while it is there may have so many descriptors.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t descriptors) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit low{.rlim_cur = descriptors, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &low);
  }
  DescriptorLimit(DescriptorLimit&&) = delete;
  ~DescriptorLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

std::string request(int id) {
  return R"({"jsonrpc":"2.0","method":"sum","params":[1,2],"id":)" + std::to_string(id) + "}\n";
}
std::string answer(int id) { return R"({"jsonrpc":"2.0","result":3,"id":)" + std::to_string(id) + "}"; }

class FewDescriptors : public testing::TestWithParam<std::string> {
 protected:
  static constexpr int kDescriptors = 60;

  void SetUp() override {
    // It needs a pipe for each class of an object that it meets for the first time, and takes it for another without.
    if (kAddressSanitizer) GTEST_SKIP() << kSanitizerNeedsDescriptors;
  }
  std::chrono::nanoseconds processor_time() {
    clockid_t clock{};
    EXPECT_EQ(clock_getcpuclockid(server_.id(), &clock), 0);
    timespec time{};
    EXPECT_EQ(clock_gettime(clock, &time), 0);
    return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
  }

  static Process serve() {
    const DescriptorLimit limit{kDescriptors};
    return Process{{"serve", "--demo", "--port", "0", "--engine", GetParam()}};
  }

  Process server_ = serve();
  const Endpoint endpoint_{"tcp://127.0.0.1:" + std::to_string(port_of(server_))};
};

TEST_P(FewDescriptors, are_waited_for_at_rest_while_others_are_served_and_then_everybody_is) {
  using Clock = std::chrono::steady_clock;
  RawPeer steady{endpoint_};
  RawPeer other{endpoint_};
  steady.send(request(0));
  ASSERT_EQ(steady.line(), answer(0));
  ASSERT_GT(metric(other, "wirecall_loop_turns_total"), 0);

  std::vector<RawPeer> peers;
  for (int id = 0; id < 2 * kDescriptors; ++id) {
    peers.emplace_back(endpoint_);
    peers.back().send(request(id));
  }
  const std::string_view warning = "no connections are accepted for a moment";
  ASSERT_NE(server_.read_error_until(warning).find(warning), std::string::npos);
  const long open = metric(other, "wirecall_connections_open");
  EXPECT_LT(open, kDescriptors);
  for (int id = 0; id < 100; ++id) {
    steady.send(request(id));
    ASSERT_EQ(steady.line(), answer(id));
  }

  // Nobody says anything for a while: so long it tries ten times a second, with a turn to try and one to wait.
  const auto begun = Clock::now();
  const auto used = processor_time();
  const long turns = metric(other, "wirecall_loop_turns_total");
  EXPECT_EQ(poll(nullptr, 0, 500), 0);
  const auto tries = (Clock::now() - begun) / std::chrono::milliseconds{100} + 1;
  EXPECT_LE(metric(other, "wirecall_loop_turns_total") - turns, 3 * tries + 5);
  EXPECT_LT(processor_time() - used, (Clock::now() - begun) / 5);
  EXPECT_EQ(metric(other, "wirecall_connections_open"), open);

  // Each that is answered leaves, and makes room for one of those that wait.
  for (std::size_t i = 0; i < peers.size(); ++i) {
    ASSERT_EQ(peers[i].line(), answer(static_cast<int>(i)));
    peers[i].close();
  }
  const std::string_view relief = "connections are accepted again";
  EXPECT_NE(server_.read_error_until(relief).find(relief), std::string::npos);
  RawPeer late{endpoint_};
  late.send(request(1));
  EXPECT_EQ(late.line(), answer(1));
  steady.send(request(2));
  EXPECT_EQ(steady.line(), answer(2));
  server_.signal(SIGTERM);
  EXPECT_EQ(server_.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Engines, FewDescriptors, testing::Values("epoll", "uring"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace wirecall::cli
