// What Ctrl-C and SIGTERM do to a command that has begun something: real processes against a server that says at
// /metrics what it is busy with.
#include "cli/interrupt.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cli/metrics.hpp"
#include "tests/cli/process.hpp"
#include "tests/connection/peer.hpp"
#include "wirecall/endpoint.hpp"

namespace wirecall::cli {
namespace {

class InterruptTest : public testing::TestWithParam<int> {
 protected:
  /// Waits until one of the server's numbers is as large as that, or there is no server any more.
  void wait_until_at_least(std::string_view name, long least) {
    for (long number = 0; number >= 0 && number < least; number = metric(metrics_, name)) std::this_thread::yield();
  }
  void wait_until_none(std::string_view name) {
    while (metric(metrics_, name) > 0) std::this_thread::yield();
  }
  [[nodiscard]] int status() const { return 128 + GetParam(); }
  [[nodiscard]] static std::string name() { return GetParam() == SIGINT ? "SIGINT" : "SIGTERM"; }
  void expect_given_up(std::vector<std::string> words, const std::string& url);

  Process server_{{"serve", "--demo", "--port", "0"}};
  std::string endpoint_ = "127.0.0.1:" + std::to_string(port_of(server_));
  std::string url_ = "tcp://" + endpoint_;
  net::RawPeer metrics_{Endpoint{url_}};
};

void InterruptTest::expect_given_up(std::vector<std::string> words, const std::string& url) {
  Process call{std::move(words), url};
  wait_until_at_least("wirecall_calls_in_flight", 1);
  call.signal(GetParam());
  EXPECT_EQ(call.wait(), status());
  EXPECT_EQ(call.rest_of_output(), "");
  EXPECT_EQ(call.rest_of_error(), "wirecall: " + name() + " came: the call was given up\n");
}

TEST_P(InterruptTest, a_call_is_given_up_and_the_server_told) {
  for (const std::string flag : {"--raw", "--stream", "--timeout=1h"}) {
    expect_given_up({"call", "sleep", "3000000", "--call-timeout-ms=3000000", flag}, url_);
    wait_until_none("wirecall_calls_in_flight");  // or it would take an hour
  }
}

TEST_P(InterruptTest, a_call_by_http_is_given_up) {
  expect_given_up({"call", "sleep", "3000000", "--timeout", "1h"}, "http://" + endpoint_);
}

TEST_P(InterruptTest, a_stream_that_has_begun_is_given_up) {
  Process call{{"call", "count", "1000000000000", "--stream"}, url_};
  wait_until_at_least("wirecall_stream_items_total", 1000);
  call.signal(GetParam());
  EXPECT_TRUE(call.rest_of_output().starts_with("0\n1\n2\n"));
  EXPECT_EQ(call.wait(), status());
  EXPECT_EQ(call.rest_of_error(), "wirecall: " + name() + " came: the call was given up\n");
  wait_until_none("wirecall_calls_in_flight");
}

TEST_P(InterruptTest, bench_prints_what_it_has) {
  Process bench{{"bench", "subtract", "42", "23", "-z", "1h", "--warm-up", "1ms", "--json"}, url_};
  wait_until_at_least("wirecall_calls_total", 1000);
  bench.signal(GetParam());
  const auto json = nlohmann::json::parse(bench.rest_of_output());
  EXPECT_GT(json.at("seconds"), 0);
  EXPECT_EQ(json.at("unanswered"), 0);
  EXPECT_EQ(bench.wait(), status());
  EXPECT_EQ(bench.rest_of_error(), "wirecall: " + name() + ": these are the results until then\n");
}

INSTANTIATE_TEST_SUITE_P(Signals, InterruptTest, testing::Values(SIGINT, SIGTERM),
                         [](const auto& info) { return info.param == SIGINT ? "Interrupt" : "Terminate"; });

TEST(Interrupt, the_first_signal_is_noted_and_the_second_ends_the_process) {
  EXPECT_EXIT(
      {
        const Interrupt interrupt;
        if (interrupt.signal() != 0) _exit(1);
        raise(SIGTERM);
        interrupt.wait();
        if (interrupt.signal() != SIGTERM || interrupt.status() != 143) _exit(2);
        raise(SIGTERM);
        _exit(3);
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST(Interrupt, what_signals_did_before_is_restored_and_waiting_may_end_without_one) {
  struct sigaction before{};
  sigaction(SIGINT, nullptr, &before);
  {
    const Interrupt interrupt;
    interrupt.release();
    interrupt.wait();
    EXPECT_EQ(interrupt.signal(), 0);
  }
  struct sigaction after{};
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
}

}  // namespace
}  // namespace wirecall::cli
