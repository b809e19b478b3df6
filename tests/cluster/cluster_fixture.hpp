// Two brokers on a simulated bus, which meet within kMeet: what tests of several begin with.
#pragma once

#include <gtest/gtest.h>

#include "tests/cluster/cluster_world.hpp"

namespace wirecall::test {

class ClusterTest : public testing::Test {
 protected:
  // So long it takes until nodes know each other, and what they provide.
  static constexpr auto kMeet = std::chrono::milliseconds{100};
  static constexpr auto kHop = std::chrono::milliseconds{1};

  void advance(std::chrono::nanoseconds by) { scheduler.advance(by); }
  static std::string remote_error(std::string_view reason, std::string_view delivered,
                                  std::string_view origin = "remote", std::string_view id = "1") {
    return error_reply(-32001, "Provider lost",
                       R"({"reason":")" + std::string{reason} + R"(","origin":")" + std::string{origin} +
                           R"(","delivered":")" + std::string{delivered} + "\"}",
                       id);
  }

  VirtualScheduler scheduler;
  SimulatedNetwork network{scheduler};
  std::unique_ptr<BrokerNode> a = std::make_unique<BrokerNode>(network, scheduler, "a", 0x1000000000);
  std::unique_ptr<BrokerNode> b = std::make_unique<BrokerNode>(network, scheduler, "b", 0x2000000000);
};

}  // namespace wirecall::test
