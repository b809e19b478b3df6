// Brokers that come, go, are cut off from each other and lose messages, by a seed: each call ends once, at its own
// caller, with its own answer; no provider is asked twice, and none of a call whose error says that none was, which
// also holds of each outcome of one that is asked of all; and when all is quiet, all know the same methods and retained
// events, calls succeed, and nothing is left of what was. WIRECALL_SEED runs that seed alone, WIRECALL_SEEDS so many of
// them, WIRECALL_LARGE=1 those of 100 nodes as well.
#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>
#include <set>

#include "tests/broker/outcomes.hpp"
#include "tests/cluster/cluster_world.hpp"
#include "wirecall/value.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;

struct SimulationSize {
  std::size_t nodes = 5;
  std::size_t methods = 1;  // of one provider, of names of its own besides those that several provide
  int steps = 300;
};

class ClusterSimulation {
 public:
  ClusterSimulation(std::uint64_t seed, const SimulationSize& size)
      : random_(seed), size_(size), network_(scheduler_, seed) {
    network_.delay_more = 200us;
    members_.resize(size.nodes);
    for (std::size_t i = 0; i != size.nodes; ++i) start(i);
  }
  ClusterSimulation(ClusterSimulation&&) = delete;

  void run() {
    for (int i = 0; i != size_.steps; ++i) step();
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
    Member& one = members_[at];
    one.broker = std::make_unique<BrokerNode>(network_, scheduler_, "n" + std::to_string(at), ++epoch_ << 32);
    one.caller = std::make_unique<NodeClient>(*one.broker);
    one.provider = std::make_unique<NodeClient>(*one.broker);
    std::string methods = R"({"method":")" + method_of(at) + "\"}";
    for (std::size_t i = 0; i != size_.methods; ++i)
      methods += R"(,{"method":"own)" + std::to_string(at) + "_" + std::to_string(i) + "\"}";
    const std::string answer = one.provider->ask(request("rpc.register", R"({"methods":[)" + methods + "]}"));
    if (answer.find("result") == std::string::npos) fault_ += answer;
  }
  void stop(std::size_t at) {
    Member& one = members_[at];
    if (!one.broker) return;
    take_all();
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
      case 10:
      case 11:
        if (one.broker) retain(at);
        break;
      default:
        if (one.broker) call(at);
        scheduler_.advance(std::chrono::microseconds{chance(3000)});
        break;
    }
    take_all();
    if (members_[at].broker && chance(3) != 0) answer(at);
  }

  void call(std::size_t at) {
    const std::string id = std::to_string(++call_);
    const std::uint64_t nonce = nonces_[id] = outcomes_.made(at, id);
    const std::string params = "[" + std::to_string(nonce) + "]";
    const std::string method = method_of(chance(members_.size()));
    if (chance(4) != 0) return members_[at].caller->send(request(method, params, id));
    of_all_.insert(nonce);
    members_[at].caller->send(request("rpc.call_all", R"({"method":")" + method + R"(","params":)" + params + "}", id));
  }
  void retain(std::size_t at) {
    const std::string topic = "t" + std::to_string(chance(8));
    const bool deletes = chance(5) == 0;
    if (deletes) deleted_.insert(topic);
    const std::string params = deletes ? "" : R"(,"params":[)" + std::to_string(++call_) + "]";
    NodeClient publisher{*members_[at].broker};
    static_cast<void>(
        publisher.ask(request("rpc.publish", R"({"topic":")" + topic + R"(","retain":true)" + params + "}")));
  }
  static std::uint64_t nonce_of(const std::string& text) {
    return std::stoull(text.substr(text.find("\"params\":[") + 10));
  }
  void answer(std::size_t at) {
    Member& one = members_[at];
    for (const std::string& text : std::exchange(one.asked, {})) {
      const std::size_t begin = text.find("\"params\":[") + 10;
      one.provider->send(result_reply(text.substr(begin, text.find(']', begin) - begin), id_of(text)));
    }
  }
  // What has come to the clients of all brokers: first what providers were asked.
  void take_all() {
    for (std::size_t at = 0; at != members_.size(); ++at) take_requests(at);
    for (std::size_t at = 0; at != members_.size(); ++at) take_ends(at);
  }
  // Whom a call may have asked: any provider, or, of one that is asked of all, that of one node.
  [[nodiscard]] std::pair<std::uint64_t, std::size_t> asked_key(std::uint64_t nonce, std::size_t at) const {
    return {nonce, of_all_.contains(nonce) ? at : members_.size()};
  }
  void take_requests(std::size_t at) {
    Member& one = members_[at];
    if (!one.broker) return;
    for (const std::string& text : std::exchange(one.provider->sink.messages, {})) {
      if (text.find("\"method\":\"m") == std::string::npos) continue;
      one.asked.push_back(text);
      if (!asked_.insert(asked_key(nonce_of(text), at)).second) fault_ += "asked twice: " + text + "; ";
    }
  }
  void take_ends(std::size_t at) {
    if (!members_[at].broker) return;
    for (const std::string& text : std::exchange(members_[at].caller->sink.messages, {})) {
      const std::uint64_t nonce = nonces_.at(id_of(text));
      const std::size_t result = text.find("\"result\":");
      if (of_all_.contains(nonce) && result != std::string::npos) {
        take_outcomes(at, text, nonce);
        outcomes_.answered(at, id_of(text), nonce);
        continue;
      }
      if (result != std::string::npos) {
        outcomes_.answered(at, id_of(text), std::stoull(text.substr(result + 9)));
        continue;
      }
      const bool surely_not = text.find(R"("delivered":"maybe")") == std::string::npos;
      if (const auto asked = asked_.lower_bound({nonce, 0});
          surely_not && asked != asked_.end() && asked->first == nonce)
        fault_ += "a provider was asked: " + text + "; ";
      outcomes_.refused(at, id_of(text));
    }
  }

  // Of each node that was asked there is one.
  void take_outcomes(std::size_t at, const std::string& text, std::uint64_t nonce) {
    const Value answer = *Value::parse(text);
    std::set<std::size_t> nodes;
    for (const Value& outcome : answer.find("result")->as_array()) {
      const Value* const name = outcome.find("node");
      const std::size_t node = name == nullptr ? at : std::stoul(name->as_string().substr(1));
      if (!nodes.insert(node).second) fault_ += "two outcomes of one provider: " + text + "; ";
      const bool asked = asked_.contains({nonce, node});
      if (const Value* const result = outcome.find("result"); result != nullptr) {
        if (!asked || result->dump() != std::to_string(nonce)) fault_ += "not the answer: " + text + "; ";
      } else if (asked && !outcome.dump().contains(R"("delivered":"maybe")")) {
        fault_ += "a provider was asked: " + text + "; ";
      }
    }
  }

  void settle() {
    // What some node has at the end, all have later.
    for (const Member& one : members_) {
      for (int i = 0; one.broker && i != 8; ++i) {
        const std::string topic = "t" + std::to_string(i);
        if (one.broker->router.events().retained().find_event(topic)) had_.insert(topic);
      }
    }
    network_.heal();
    network_.lost_of_million = 0;
    for (std::size_t i = 0; i != members_.size(); ++i) {
      if (!members_[i].broker) start(i);
      members_[i].broker->bus->become(cluster::Bus::State::connected);
    }
    for (int i = 0; i != 50; ++i) {
      scheduler_.advance(100ms);
      take_all();
      for (std::size_t at = 0; at != members_.size(); ++at) answer(at);
    }
    require_agreement();
    const std::size_t errors = outcomes_.errors();
    for (std::size_t at = 0; at != members_.size(); ++at) {
      for (int i = 0; i != 6; ++i) call(at);
    }
    for (int i = 0; i != 10; ++i) {
      scheduler_.advance(10ms);
      take_all();
      for (std::size_t at = 0; at != members_.size(); ++at) answer(at);
    }
    if (outcomes_.errors() != errors) fault_ += std::to_string(outcomes_.errors() - errors) + " calls failed at rest; ";
    outcomes_.close();
    for (const Member& one : members_) {
      if (one.broker->router.relayed_calls().in_use() != 0 || one.broker->cluster->busy()) fault_ += "calls are left; ";
    }
  }

  // All know the same.
  void require_agreement() {
    const std::size_t methods = std::min<std::size_t>(3, size_.nodes) + size_.nodes * size_.methods;
    for (std::size_t at = 0; at != members_.size(); ++at) {
      BrokerNode& broker = *members_[at].broker;
      const std::string name = "n" + std::to_string(at);
      if (broker.router.methods().size() != methods)
        fault_ += name + " knows " + std::to_string(broker.router.methods().size()) + " methods; ";
      if (broker.cluster->retained().digest() != members_[0].broker->cluster->retained().digest())
        fault_ += name + " retains otherwise; ";
      if (broker.cluster->retained().size() > 8) fault_ += name + " remembers more topics than there were; ";
      for (std::size_t of = 0; of != members_.size(); ++of) {
        const Node* const known = broker.cluster->find("n" + std::to_string(of));
        if (of != at && (known == nullptr || known->state() != Node::State::up))
          fault_ += name + " does not know n" + std::to_string(of) + "; ";
      }
      for (const std::string& topic : had_) {
        if (!deleted_.contains(topic) && !broker.router.events().retained().find_event(topic))
          fault_ += name + " has lost what is retained of " + topic + "; ";
      }
    }
  }

  using Node = cluster::Node;

  std::mt19937_64 random_;
  const SimulationSize size_;
  VirtualScheduler scheduler_;
  SimulatedNetwork network_;
  std::vector<Member> members_;
  Outcomes outcomes_;
  std::uint64_t epoch_ = 0;
  std::uint64_t call_ = 0;
  std::map<std::string, std::uint64_t> nonces_;            // of calls, by id
  std::set<std::uint64_t> of_all_;                         // nonces of calls that are asked of all
  std::set<std::pair<std::uint64_t, std::size_t>> asked_;  // by asked_key
  std::set<std::string> deleted_;                          // topics, of which an event was deleted
  std::set<std::string> had_;  // topics of which an event was retained somewhere when all was quiet
  std::string fault_;
};

void run_seed(std::uint64_t seed, const SimulationSize& size) {
  ClusterSimulation simulation{seed, size};
  simulation.run();
  for (const std::string& mistake : simulation.outcomes().mistakes())
    ADD_FAILURE() << "seed " << seed << ": " << mistake;
  EXPECT_EQ(simulation.fault(), "") << "seed " << seed;
  EXPECT_GT(simulation.outcomes().results(), 0U) << "seed " << seed;
}

std::uint64_t number_in(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(ClusterSimulationTest, EachCallEndsOnceWhateverFails) {
  if (const std::uint64_t seed = number_in("WIRECALL_SEED", 0)) return run_seed(seed, {});
  const std::uint64_t seeds = number_in("WIRECALL_SEEDS", 60);
  for (std::uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) run_seed(seed, {});
}

TEST(ClusterSimulationTest, ManyNodesWithManyMethodsAgreeInTheEnd) {
  run_seed(number_in("WIRECALL_SEED", 1), {.nodes = 12, .methods = 50, .steps = 150});
  if (number_in("WIRECALL_LARGE", 0) == 0) return;
  for (std::uint64_t seed = 1; seed <= 20 && !HasFailure(); ++seed) {
    std::cout << "seed " << seed << std::endl;
    run_seed(seed, {.nodes = 100, .methods = 100, .steps = 300});
  }
}

}  // namespace
}  // namespace wirecall::test
