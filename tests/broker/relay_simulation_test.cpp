// Callers and providers that do what they like, over and over, each time with another seed: they call, alone, in
// batches and without a connection of their own, cancel, ask for streams, register, unregister, answer late, twice and
// what nobody asked, leave and come back, while time passes. What must hold: each call ends once, at its own caller,
// with its own result or an error, and when all is over the broker keeps nothing.
// WIRECALL_SEED=<n> runs one seed alone.
#include <cstdlib>
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/sanitizers.hpp"
#include "tests/broker/outcomes.hpp"
#include "tests/broker/world.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using test::Client;
using test::Outcomes;
using test::World;

constexpr unsigned kSeeds = kAddressSanitizer ? 250 : 1000;

/// How a broker is broken on its way to the callers, to see that it is noticed.
enum class Fault : std::uint8_t { none, loses, doubles, swaps };

class Simulation {
 public:
  explicit Simulation(unsigned seed, Fault fault = Fault::none) : random_(seed), fault_(fault) {
    for (int i = 0; i < 4; ++i) callers_.push_back(std::make_unique<Client>(world_));
    for (std::size_t i = 0; i < 4; ++i) {
      providers_.push_back(std::make_unique<Client>(world_));
      asked_.emplace_back();
    }
    callers_.back()->sink->can = {};  // as by HTTP
  }

  [[nodiscard]] const Outcomes& run() {
    for (int step = 0; step < 300; ++step) {
      act();
      process_received();
    }
    // Whatever is still on its way ends by its time; a stream that waits for credit, once there can be none any more.
    for (const auto& caller : callers_) caller->dispatcher->peer_ended();
    world_.advance(200s);
    process_received();
    outcomes_.close();
    return outcomes_;
  }
  [[nodiscard]] std::size_t kept() {
    for (const auto& provider : providers_) provider->leave();
    return world_.router.relayed_calls().in_use() + world_.router.methods().size();
  }

 private:
  unsigned pick(unsigned below) { return static_cast<unsigned>(random_() % below); }

  void act() {
    const std::size_t who = pick(4);
    switch (pick(12)) {
      case 0:
      case 1:
      case 2:
      case 3: return call(who);
      case 4:
      case 5:
      case 6: return answer(who);
      case 7: return offer(who);
      case 8: return cancel(who);
      case 9: return world_.advance(std::chrono::milliseconds{pick(40)});
      case 10:
        if (pick(6) == 0) leave(who);
        return;
      default: return disturb(who);
    }
  }

  json one_call(std::size_t caller, bool stream_allowed) {
    const std::string id = std::to_string(++last_id_);
    json request{{"jsonrpc", "2.0"}, {"method", pick(8) == 0 ? "w.other" : "work"}, {"id", last_id_}};
    request["params"] = json{{"nonce", outcomes_.made(caller, id)}, {"user", pick(5)}};
    if (pick(4) == 0) request["timeout_ms"] = 5 + pick(60);
    if (stream_allowed && pick(6) == 0) request["stream"] = 1 + pick(3);
    if (pick(10) == 0) request["to"] = pick(2) == 0 ? "nobody" : "worker";
    ids_.push_back({caller, last_id_});
    if (ids_.size() > 20) ids_.pop_front();
    return request;
  }

  void call(std::size_t caller) {
    if (!callers_[caller]->dispatcher) return;
    if (pick(4) == 0) {
      json batch = json::array();
      for (unsigned i = 0; i <= pick(4); ++i) batch.push_back(one_call(caller, false));
      return callers_[caller]->send(batch.dump());
    }
    callers_[caller]->send(one_call(caller, true).dump());
  }

  void answer(std::size_t provider) {
    std::deque<json>& asked = asked_[provider];
    if (asked.empty() || !providers_[provider]->dispatcher) return;
    const std::size_t at = pick(static_cast<unsigned>(asked.size()));
    const json request = asked[at];
    if (request.contains("stream") && pick(2) == 0) {
      const json item{{"id", request["id"]}, {"seq", 0}, {"value", request["params"]["nonce"]}};
      return providers_[provider]->send(json{{"jsonrpc", "2.0"}, {"method", "rpc.item"}, {"params", item}}.dump());
    }
    if (pick(8) != 0) asked.erase(asked.begin() + static_cast<std::ptrdiff_t>(at));  // else it is answered again
    json response{{"jsonrpc", "2.0"}, {"id", request["id"]}};
    if (pick(5) == 0) {
      response["error"] = {{"code", 7}, {"message", "no"}, {"data", {{"origin", "me"}}}};
    } else {
      response["result"] = request["params"]["nonce"];
    }
    providers_[provider]->send(response.dump());
  }

  void offer(std::size_t provider) {
    Client& client = *providers_[provider];
    if (!client.dispatcher) return;
    static const std::vector<std::string> kTerms{"",
                                                 R"(,"concurrency":1)",
                                                 R"(,"concurrency":2,"queue":1,"idempotent":true)",
                                                 R"(,"idempotent":true)",
                                                 R"(,"policy":"hash:user")",
                                                 R"(,"policy":"first","concurrency":1)"};
    switch (pick(4)) {
      case 0: return client.send(test::notification("rpc.unregister", R"(["work"])"));
      case 1:
        client.send(test::notification("rpc.hello", R"(["worker"])"));
        return client.send(test::notification("rpc.register", R"({"method":"w.>"})"));
      default: return client.send(test::notification("rpc.register", R"({"method":"work")" + kTerms[pick(6)] + "}"));
    }
  }

  void cancel(std::size_t caller) {
    if (ids_.empty() || !callers_[caller]->dispatcher) return;
    const auto& [whose, id] = ids_[pick(static_cast<unsigned>(ids_.size()))];
    callers_[caller]->send(test::notification("rpc.cancel", "[" + std::to_string(id) + "]"));
    if (pick(2) == 0 && callers_[whose]->dispatcher)
      callers_[whose]->send(test::notification("$/cancelRequest", R"({"id":)" + std::to_string(id) + "}"));
  }

  void leave(std::size_t who) {
    if (pick(2) == 0) {
      process_received();
      outcomes_.left(who);
      callers_[who]->leave();
      callers_[who]->connect();
    } else {
      asked_[who].clear();
      if (pick(3) == 0) return providers_[who]->dispatcher->peer_ended();
      providers_[who]->leave();
      providers_[who]->connect();
    }
  }

  void disturb(std::size_t who) {
    const std::string id = std::to_string(pick(2) == 0 ? pick(10) : (std::uint64_t{pick(50)} << 22) + pick(4));
    const std::string response = test::result_reply("\"stray\"", id);
    Client& client = *(pick(2) == 0 ? callers_[who] : providers_[who]);
    // A provider may hit what it was asked itself: that is its own lie, and none of the broker's.
    if (client.dispatcher && std::ranges::none_of(asked_[who], [&](const json& one) { return one["id"].dump() == id; }))
      client.send(response);
  }

  // Everybody reads what has come.
  void process_received() {
    for (std::size_t i = 0; i < providers_.size(); ++i) {
      if (!providers_[i]->sink) continue;
      std::istringstream lines{providers_[i]->received()};
      for (std::string line; std::getline(lines, line);) {
        const json message = json::parse(line);
        if (message.contains("id") && message.contains("method")) {
          asked_[i].push_back(message);
        } else if (message.value("method", "") == "$/cancelRequest") {
          std::erase_if(asked_[i],
                        [&](const json& one) { return one["id"] == message["params"]["id"] && pick(2) == 0; });
        }
      }
    }
    for (std::size_t i = 0; i < callers_.size(); ++i) {
      std::istringstream lines{callers_[i]->received()};
      for (std::string line; std::getline(lines, line);) {
        json message = json::parse(line);
        if (message.is_array()) {
          for (const json& one : message) take(i, one);
        } else {
          take(i, message);
        }
      }
    }
  }

  void take(std::size_t caller, const json& message) {
    if (message.contains("method")) {
      EXPECT_EQ(message["method"], "rpc.item");
      EXPECT_TRUE(outcomes_.waits(caller, message["params"]["id"].dump())) << message;
      return;
    }
    if (fault_ == Fault::loses && pick(20) == 0) return;
    const int times = fault_ == Fault::doubles && pick(20) == 0 ? 2 : 1;
    for (int i = 0; i < times; ++i) {
      const std::size_t whom = fault_ == Fault::swaps && pick(20) == 0 ? (caller + 1) % 4 : caller;
      const std::string id = message["id"].dump();
      if (message.contains("error")) {
        outcomes_.refused(whom, id);
      } else {
        outcomes_.answered(whom, id, message["result"].is_number() ? message["result"].get<std::uint64_t>() : 0);
      }
    }
  }

  std::mt19937 random_;
  Fault fault_;
  World world_;
  Outcomes outcomes_;
  std::vector<std::unique_ptr<Client>> callers_;
  std::vector<std::unique_ptr<Client>> providers_;
  std::vector<std::deque<json>> asked_;
  std::deque<std::pair<std::size_t, std::uint64_t>> ids_;
  std::uint64_t last_id_ = 0;
};

std::string text_of(const std::vector<std::string>& mistakes) {
  std::string text;
  for (const std::string& one : mistakes) text += one + '\n';
  return text;
}

TEST(RelaySimulation, each_call_ends_once_at_its_own_caller) {
  const char* const only = std::getenv("WIRECALL_SEED");
  const unsigned first = only != nullptr ? static_cast<unsigned>(std::strtoul(only, nullptr, 10)) : 0;
  std::size_t results = 0;
  std::size_t errors = 0;
  for (unsigned seed = first; seed < (only != nullptr ? first + 1 : kSeeds); ++seed) {
    Simulation simulation{seed};
    const Outcomes& outcomes = simulation.run();
    ASSERT_TRUE(outcomes.mistakes().empty()) << "WIRECALL_SEED=" << seed << '\n' << text_of(outcomes.mistakes());
    ASSERT_EQ(simulation.kept(), 0u) << "WIRECALL_SEED=" << seed;
    results += outcomes.results();
    errors += outcomes.errors();
  }
  if (only != nullptr) return;
  // Both ways to end have been gone often, or the actors above do too little.
  EXPECT_GT(results, kSeeds * 10);
  EXPECT_GT(errors, kSeeds * 10);
}

TEST(RelaySimulation, a_broker_that_loses_doubles_or_swaps_answers_is_found_out) {
  for (const Fault fault : {Fault::loses, Fault::doubles, Fault::swaps}) {
    std::size_t found = 0;
    for (unsigned seed = 0; seed < 20; ++seed) {
      Simulation simulation{seed, fault};
      if (!simulation.run().mistakes().empty()) ++found;
    }
    EXPECT_GT(found, 15u);
  }
}

}  // namespace
}  // namespace wirecall
