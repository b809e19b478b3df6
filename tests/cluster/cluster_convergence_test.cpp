// How long many brokers take until all know what all provide, and what they send each other for it: by virtual time, in
// which a message takes 40 to 240 us and processing none; what that takes is measured apart.
// WIRECALL_CONVERGENCE="NODES METHODS" measures that size and prints a line of JSON (convergence.py); METHODS are those
// of all nodes together.
#include <cstdlib>
#include <ctime>
#include <gtest/gtest.h>
#include <iostream>
#include <sstream>

#include "tests/cluster/cluster_world.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

// One thing that happens, until all know it.
struct Happening {
  double ms = 0;                ///< by virtual time
  std::uint64_t messages = 0;   ///< that were published
  std::uint64_t bytes = 0;      ///< of these
  std::uint64_t delivered = 0;  ///< to subscribers: a heartbeat goes to all
  double processor_ms = 0;      ///< of all nodes together, and of the simulation
};

struct Measured {
  std::size_t nodes;
  std::size_t methods;
  Happening begin;    ///< all nodes begin at one moment, each with its methods
  Happening second;   ///< in which nothing happens
  Happening method;   ///< a client registers one more
  Happening restart;  ///< one node ends and begins anew, with its methods
  Happening death;    ///< a node is killed
};

class Convergence {
 public:
  Convergence(std::size_t nodes, std::size_t methods) : each_(methods / nodes) {
    network_.delay_more = 200us;
    members_.resize(nodes);
  }
  Convergence(Convergence&&) = delete;

  Measured run() {
    Measured measured{.nodes = members_.size(),
                      .methods = members_.size() * each_,
                      .begin = {},
                      .second = {},
                      .method = {},
                      .restart = {},
                      .death = {}};
    const std::size_t all = measured.methods;
    measured.begin = until_known(
        [&] {
          for (std::size_t at = 0; at != members_.size(); ++at) start(at);
        },
        all);
    scheduler_.advance(3s);
    measured.second = happening([&] { scheduler_.advance(1s); });
    scheduler_.advance(to_quiet());
    measured.method = until_known([&] { members_[0].provider->provide("one.more"); }, all + 1);
    measured.restart = until_known(
        [&] {
          stop(1);
          start(1);
        },
        all + 1);
    scheduler_.advance(3s);
    measured.death = until_known(
        [&] {
          members_[2].broker->bus->become(cluster::Bus::State::disconnected);
          dead_ = 2;
        },
        all + 1 - each_);
    return measured;
  }

 private:
  struct Member {
    std::unique_ptr<BrokerNode> broker;
    std::unique_ptr<NodeClient> provider;
  };

  void start(std::size_t at) {
    Member& one = members_[at];
    one.broker = std::make_unique<BrokerNode>(network_, scheduler_, "n" + std::to_string(at), ++epoch_ << 32);
    one.provider = std::make_unique<NodeClient>(*one.broker);
    std::string methods;
    for (std::size_t i = 0; i != each_; ++i) {
      methods += (i == 0 ? "" : ",") + std::string{R"({"method":"service)"} + std::to_string(at) + ".method" +
                 std::to_string(i) + R"(","summary":"What it does, in a few words."})";
    }
    const std::string answer = one.provider->ask(request("rpc.register", R"({"methods":[)" + methods + "]}"));
    EXPECT_TRUE(answer.contains("\"result\"")) << answer.substr(0, 200);
  }
  void stop(std::size_t at) {
    members_[at].provider->leave();
    members_[at] = {};
  }
  // Until a moment between two ticks and heartbeats.
  [[nodiscard]] std::chrono::nanoseconds to_quiet() const { return 1s - scheduler_.now() % 1s + 10ms; }
  [[nodiscard]] bool all_know(std::size_t methods) const {
    for (std::size_t at = 0; at != members_.size(); ++at) {
      if (at != dead_ && members_[at].broker->router.methods().size() != methods) return false;
    }
    return true;
  }
  template <class Act>
  Happening happening(const Act& act) {
    const auto began = scheduler_.now();
    const std::uint64_t messages = network_.published;
    const std::uint64_t bytes = network_.published_bytes;
    const std::uint64_t delivered = network_.delivered;
    const std::clock_t processor = std::clock();
    act();
    return {.ms = std::chrono::duration<double, std::milli>(scheduler_.now() - began).count(),
            .messages = network_.published - messages,
            .bytes = network_.published_bytes - bytes,
            .delivered = network_.delivered - delivered,
            .processor_ms = 1000.0 * static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC};
  }
  template <class Act>
  Happening until_known(const Act& act, std::size_t methods) {
    return happening([&] {
      constexpr auto kStep = 100us;
      constexpr auto kMost = 10s;
      act();
      for (auto waited = 0us; waited < kMost; waited += kStep) {
        scheduler_.advance(kStep);
        if (all_know(methods)) return;
      }
      ADD_FAILURE() << "not all know all methods after 10 s";
    });
  }

  const std::size_t each_;  // methods of a node
  VirtualScheduler scheduler_;
  SimulatedNetwork network_{scheduler_, 1};
  std::vector<Member> members_;
  std::uint64_t epoch_ = 0;
  std::size_t dead_ = ~std::size_t{0};
};

TEST(ClusterConvergence, AllKnowAllAndTheTrafficIsWhatItHasToBe) {
  std::size_t nodes = 8;
  std::size_t methods = 80;
  const char* const size = std::getenv("WIRECALL_CONVERGENCE");
  if (size != nullptr) std::istringstream{size} >> nodes >> methods;
  ASSERT_TRUE(nodes >= 3 && methods >= nodes) << "NODES of 3 or more, METHODS of as many or more";
  const Measured measured = Convergence{nodes, methods}.run();
  if (size != nullptr) std::cout << to_json(measured) << std::endl;
  const std::uint64_t others = nodes - 1;
  EXPECT_LE(measured.begin.ms, 1000);
  EXPECT_LE(measured.restart.ms, 1000);
  EXPECT_LE(measured.method.ms, 2);
  EXPECT_LE(measured.death.ms, 3500);
  EXPECT_EQ(measured.method.messages, others) << "each node is told once";
  EXPECT_EQ(measured.second.messages, nodes) << "heartbeats alone";
  EXPECT_EQ(measured.second.delivered, nodes * nodes);
  // Sessions, and what both sides have to say.
  EXPECT_LE(measured.begin.messages, 10 * nodes * others);
  EXPECT_LE(measured.begin.delivered, 12 * nodes * others);
  EXPECT_LE(measured.restart.messages, 20 * others);
  EXPECT_LE(measured.restart.delivered, 20 * others);
}

}  // namespace
}  // namespace wirecall::test
