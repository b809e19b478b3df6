// Brokers that come, go, are replaced, are cut off from each other and lose messages, by a seed: each call ends once,
// at its own caller, with its own answer; no provider is asked twice, and none of a call whose error says that none
// was, which also holds of each outcome of one that is asked of all; and when all is quiet, all know the same methods
// and retained events, calls succeed, and nothing is left of what was. WIRECALL_SEED runs that seed alone,
// WIRECALL_SEEDS so many of them, WIRECALL_LARGE=1 those of 100 nodes as well.
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
    std::size_t at = 0;  // which node it is
    Outcomes::Caller client = 0;
    std::unique_ptr<BrokerNode> broker;
    std::unique_ptr<NodeClient> provider;
    std::unique_ptr<NodeClient> caller;
    std::vector<std::string> asked;  // what the provider has not answered yet
  };

  std::size_t chance(std::size_t of) { return static_cast<std::size_t>(random_() % of); }
  [[nodiscard]] static std::string method_of(std::size_t node) { return "m" + std::to_string(node % 3); }

  void start(std::size_t at) {
    Member& one = members_[at];
    one.at = at;
    one.client = ++clients_;
    one.broker = std::make_unique<BrokerNode>(network_, scheduler_, "n" + std::to_string(at), ++epoch_ << 32);
    one.caller = std::make_unique<NodeClient>(*one.broker);
    one.provider = std::make_unique<NodeClient>(*one.broker);
    std::string methods = R"({"method":")" + method_of(at) + "\"}";
    for (std::size_t i = 0; i != size_.methods; ++i)
      methods += R"(,{"method":"own)" + std::to_string(at) + "_" + std::to_string(i) + "\"}";
    const std::string answer = one.provider->ask(request("rpc.register", R"({"methods":[)" + methods + "]}"));
    if (answer.find("result") == std::string::npos) fault_ += answer;
  }
  void stop(Member& one) {
    if (!one.broker) return;
    take_all();
    one.provider->leave();
    one.caller->leave();
    outcomes_.left(one.client);
    one = {};
  }
  // By another process. The clients stay with the one before, for a while.
  void replace(std::size_t at) {
    Member& one = members_[at];
    if (!one.broker) return;
    replaced_.push_back(std::exchange(one, {}));
    BrokerNode& before = *replaced_.back().broker;
    const bool is_heard_first = chance(2) == 0;  // the one that has taken over
    if (!is_heard_first) before.router.replaced();
    start(at);
    if (is_heard_first) before.router.replaced();
  }
  void end_replaced() {
    if (replaced_.empty()) return;
    const std::size_t at = chance(replaced_.size());
    if (chance(3) == 0) replaced_[at].broker->bus->become(cluster::Bus::State::disconnected);  // it is killed
    stop(replaced_[at]);
    replaced_.erase(replaced_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void answer_all() {
    for (Member& one : members_) answer(one);
    for (Member& one : replaced_) answer(one);
  }

  void step() {
    const std::size_t at = chance(members_.size());
    Member& one = members_[at];
    switch (chance(27)) {
      case 0: stop(one); break;
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
      case 12: replace(at); break;
      case 13: end_replaced(); break;
      case 14:
        if (!replaced_.empty()) call(replaced_[chance(replaced_.size())]);
        break;
      default:
        if (one.broker) call(one);
        scheduler_.advance(std::chrono::microseconds{chance(3000)});
        break;
    }
    take_all();
    if (members_[at].broker && chance(3) != 0) answer(members_[at]);
    if (!replaced_.empty() && chance(3) != 0) answer(replaced_[chance(replaced_.size())]);
  }

  void call(Member& one) {
    const std::string id = std::to_string(++call_);
    const std::uint64_t nonce = nonces_[id] = outcomes_.made(one.client, id);
    const std::string params = "[" + std::to_string(nonce) + "]";
    const std::string method = method_of(chance(members_.size()));
    if (chance(4) != 0) return one.caller->send(request(method, params, id));
    of_all_.insert(nonce);
    one.caller->send(request("rpc.call_all", R"({"method":")" + method + R"(","params":)" + params + "}", id));
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
  void answer(Member& one) {
    for (const std::string& text : std::exchange(one.asked, {})) {
      const std::size_t begin = text.find("\"params\":[") + 10;
      one.provider->send(result_reply(text.substr(begin, text.find(']', begin) - begin), id_of(text)));
    }
  }
  // What has come to the clients of all brokers: first what providers were asked.
  void take_all() {
    for (auto* const all : {&members_, &replaced_}) {
      for (Member& one : *all) take_requests(one);
    }
    for (auto* const all : {&members_, &replaced_}) {
      for (Member& one : *all) take_ends(one);
    }
  }
  // Whom a call may have asked: any provider, or, of one that is asked of all, that of one node.
  [[nodiscard]] std::pair<std::uint64_t, std::size_t> asked_key(std::uint64_t nonce, std::size_t at) const {
    return {nonce, of_all_.contains(nonce) ? at : members_.size()};
  }
  void take_requests(Member& one) {
    if (!one.broker) return;
    for (const std::string& text : std::exchange(one.provider->sink.messages, {})) {
      if (text.find("\"method\":\"m") == std::string::npos) continue;
      one.asked.push_back(text);
      if (!asked_.insert(asked_key(nonce_of(text), one.at)).second) fault_ += "asked twice: " + text + "; ";
    }
  }
  void take_ends(Member& one) {
    if (!one.broker) return;
    for (const std::string& text : std::exchange(one.caller->sink.messages, {})) {
      const std::uint64_t nonce = nonces_.at(id_of(text));
      const std::size_t result = text.find("\"result\":");
      if (of_all_.contains(nonce) && result != std::string::npos) {
        take_outcomes(one.at, text, nonce);
        outcomes_.answered(one.client, id_of(text), nonce);
        continue;
      }
      if (result != std::string::npos) {
        outcomes_.answered(one.client, id_of(text), std::stoull(text.substr(result + 9)));
        continue;
      }
      const bool surely_not = text.find(R"("delivered":"maybe")") == std::string::npos;
      if (const auto asked = asked_.lower_bound({nonce, 0});
          surely_not && asked != asked_.end() && asked->first == nonce)
        fault_ += "a provider was asked: " + text + "; ";
      outcomes_.refused(one.client, id_of(text));
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
      answer_all();
      if (i == 20) {
        while (!replaced_.empty()) end_replaced();
      }
    }
    require_agreement();
    const std::size_t errors = outcomes_.errors();
    for (std::size_t at = 0; at != members_.size(); ++at) {
      for (int i = 0; i != 6; ++i) call(members_[at]);
    }
    for (int i = 0; i != 10; ++i) {
      scheduler_.advance(10ms);
      take_all();
      answer_all();
    }
    if (outcomes_.errors() != errors) fault_ += std::to_string(outcomes_.errors() - errors) + " calls failed at rest; ";
    outcomes_.close();
    for (const Member& one : members_) {
      if (one.broker->router.relayed_calls().in_use() != 0 || one.broker->cluster->busy()) fault_ += "calls are left; ";
      if (one.broker->cluster->departing() != 0) fault_ += "sessions with processes are left that have gone; ";
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
  std::vector<Member> replaced_;
  Outcomes::Caller clients_ = 0;
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
