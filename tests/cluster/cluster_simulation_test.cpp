// Brokers that come, go, are cut off from each other and lose messages, by a seed: each call ends once, at its own
// caller, with its own answer; and when all is quiet, all know the same methods and calls succeed.
#include <cstdlib>
#include <gtest/gtest.h>

#include "tests/broker/outcomes.hpp"
#include "tests/cluster/cluster_world.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

class ClusterSimulation {
 public:
  ClusterSimulation(std::uint64_t seed, std::size_t nodes) : random_(seed), network_(scheduler_, seed) {
    network_.delay_more = 200us;
    for (std::size_t i = 0; i != nodes; ++i) start(i);
  }
  ClusterSimulation(ClusterSimulation&&) = delete;

  void run(int steps) {
    for (int i = 0; i != steps; ++i) step();
    settle();
  }
  [[nodiscard]] const Outcomes& outcomes() const noexcept { return outcomes_; }
  [[nodiscard]] std::string fault() const { return fault_; }

 private:
  struct Member {
    std::unique_ptr<BrokerNode> broker;
    std::unique_ptr<NodeClient> provider;
    std::unique_ptr<NodeClient> caller;
    std::vector<std::string> asked;  // what the provider has not answered yet
  };

  std::size_t chance(std::size_t of) { return static_cast<std::size_t>(random_() % of); }
  [[nodiscard]] static std::string method_of(std::size_t node) { return "m" + std::to_string(node % 3); }

  void start(std::size_t at) {
    if (members_.size() <= at) members_.resize(at + 1);
    Member& one = members_[at];
    one.broker = std::make_unique<BrokerNode>(network_, scheduler_, "n" + std::to_string(at), ++epoch_ << 32);
    one.caller = std::make_unique<NodeClient>(*one.broker);
    one.provider = std::make_unique<NodeClient>(*one.broker);
    one.provider->provide(method_of(at));
    static_cast<void>(one.provider->received());
  }
  void stop(std::size_t at) {
    Member& one = members_[at];
    if (!one.broker) return;
    take(at);
    one.provider->leave();
    one.caller->leave();
    outcomes_.left(at);
    one = {};
  }

  void step() {
    const std::size_t at = chance(members_.size());
    Member& one = members_[at];
    switch (chance(24)) {
      case 0: stop(at); break;
      case 1:
      case 2:
        if (!one.broker) start(at);
        break;
      case 3:
        if (const Member& other = members_[chance(members_.size())]; one.broker && other.broker && &other != &one)
          network_.part(*one.broker->bus, *other.broker->bus);
        break;
      case 4: network_.heal(); break;
      case 5:
        if (one.broker) one.broker->bus->become(cluster::Bus::State::disconnected);
        break;
      case 6:
      case 7:
        if (one.broker) one.broker->bus->become(cluster::Bus::State::connected);
        break;
      case 8: network_.lost_of_million = chance(3) == 0 ? 20'000 : 0; break;
      case 9: scheduler_.advance(std::chrono::milliseconds{chance(2000)}); break;
      default:
        if (one.broker) call(at);
        scheduler_.advance(std::chrono::microseconds{chance(3000)});
        break;
    }
    for (std::size_t i = 0; i != members_.size(); ++i) take(i);
    if (members_[at].broker && chance(3) != 0) answer(at);
  }

  void call(std::size_t at) {
    const std::string id = std::to_string(++call_);
    const std::uint64_t nonce = outcomes_.made(at, id);
    members_[at].caller->send(request(method_of(chance(members_.size())), "[" + std::to_string(nonce) + "]", id));
  }
  void answer(std::size_t at) {
    Member& one = members_[at];
    for (const std::string& text : std::exchange(one.asked, {})) {
      const std::size_t begin = text.find("\"params\":[") + 10;
      one.provider->send(result_reply(text.substr(begin, text.find(']', begin) - begin), id_of(text)));
    }
  }
  // What has come to the clients of a broker.
  void take(std::size_t at) {
    Member& one = members_[at];
    if (!one.broker) return;
    for (const std::string& text : std::exchange(one.provider->sink.messages, {})) {
      if (text.find("\"method\":\"m") != std::string::npos) one.asked.push_back(text);
    }
    for (const std::string& text : std::exchange(one.caller->sink.messages, {})) {
      const std::size_t result = text.find("\"result\":");
      if (result == std::string::npos) {
        outcomes_.refused(at, id_of(text));
      } else {
        outcomes_.answered(at, id_of(text), std::stoull(text.substr(result + 9)));
      }
    }
  }

  void settle() {
    network_.heal();
    network_.lost_of_million = 0;
    for (std::size_t i = 0; i != members_.size(); ++i) {
      if (!members_[i].broker) start(i);
      members_[i].broker->bus->become(cluster::Bus::State::connected);
    }
    for (int i = 0; i != 50; ++i) {
      scheduler_.advance(100ms);
      for (std::size_t at = 0; at != members_.size(); ++at) take(at), answer(at);
    }
    // All is known everywhere, and whatever is called is answered.
    const std::size_t errors = outcomes_.errors();
    for (std::size_t at = 0; at != members_.size(); ++at) {
      for (std::size_t of = 0; of != members_.size(); ++of) {
        const Node* const known = members_[at].broker->cluster->find("n" + std::to_string(of));
        if (of != at && (known == nullptr || known->state() != Node::State::up))
          fault_ += "n" + std::to_string(at) + " does not know n" + std::to_string(of) + "; ";
      }
      for (int i = 0; i != 6; ++i) call(at);
    }
    for (int i = 0; i != 10; ++i) {
      scheduler_.advance(10ms);
      for (std::size_t at = 0; at != members_.size(); ++at) take(at), answer(at);
    }
    if (outcomes_.errors() != errors) fault_ += std::to_string(outcomes_.errors() - errors) + " calls failed at rest; ";
    outcomes_.close();
    for (const Member& one : members_) {
      if (one.broker->router.relayed_calls().in_use() != 0) fault_ += "calls are left; ";
    }
  }

  using Node = cluster::Node;

  std::mt19937_64 random_;
  VirtualScheduler scheduler_;
  SimulatedNetwork network_;
  std::vector<Member> members_;
  Outcomes outcomes_;
  std::uint64_t epoch_ = 0;
  std::uint64_t call_ = 0;
  std::string fault_;
};

void run_seed(std::uint64_t seed, std::size_t nodes, int steps) {
  ClusterSimulation simulation{seed, nodes};
  simulation.run(steps);
  for (const std::string& mistake : simulation.outcomes().mistakes())
    ADD_FAILURE() << "seed " << seed << ": " << mistake;
  EXPECT_EQ(simulation.fault(), "") << "seed " << seed;
  EXPECT_GT(simulation.outcomes().results(), 0U) << "seed " << seed;
}

TEST(ClusterSimulationTest, EachCallEndsOnceWhateverFails) {
  if (const char* const seed = std::getenv("WIRECALL_SEED")) return run_seed(std::strtoull(seed, nullptr, 10), 5, 300);
  for (std::uint64_t seed = 1; seed != 41 && !HasFailure(); ++seed) run_seed(seed, 5, 300);
}

}  // namespace
}  // namespace wirecall::test
