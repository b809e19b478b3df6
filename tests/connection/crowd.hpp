// Crowd: a broker that has many methods, topics and clients, with one connection that sends and a bystander that pings,
// on a simulated loop; Cost: what it takes to serve what is sent, in steps, bytes, comparisons and turns.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/router.hpp"
#include "cluster/cluster.hpp"
#include "connection/channel.hpp"
#include "connection/protocol_detector.hpp"
#include "http/protocols.hpp"
#include "tests/memory/failing_memory.hpp"
#include "tests/runtime/simulated_backend.hpp"
#include "transport/socket.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::net {

/// Comparisons of integers so far, in code that is compiled with -fsanitize=fuzzer-no-link; 0 elsewhere.
inline std::uint64_t comparisons = 0;

inline constexpr std::int64_t kShareSteps = 2048;
// What one message may cost beyond what was left of the share.
inline constexpr std::int64_t kMessageStepsMax = 600;
inline constexpr std::size_t kTurnBytesMax = 6 * 1024 * 1024;
// An answer grows in a buffer that doubles.
inline constexpr std::size_t kTurnRequestedMax = 4 * kTurnBytesMax;
inline constexpr std::uint64_t kTurnComparisonsMax = 3'000'000;
inline constexpr double kGrowthMax = 2.3;
inline constexpr double kFewComparisons = 100'000;
inline constexpr int kTurnsMax = 200'000;
// The simulated system lets bytes wait for a turn, or cuts them, as its seed says.
inline constexpr int kTurnsOfPing = 5;

// What there is at the broker besides who sends.
struct World {
  int methods;  // of one provider
  int topics;   // retained
  int clients;  // each provides "shared", and subscribes alone, within one group with all others, and in one of its own
  int patterns;  // with wildcards in places of their own
  int named;     // further clients, that have no more than a name
  int nodes;     // other brokers of its cluster
};
inline constexpr World kWorld{.methods = 400, .topics = 500, .clients = 20, .patterns = 32, .named = 20, .nodes = 200};
inline constexpr World kLargerWorld{
    .methods = 800, .topics = 1000, .clients = 80, .patterns = 64, .named = 800, .nodes = 800};

inline std::string text_of(int number) { return std::to_string(number); }

// Far more elements of an array than any limit lets through.
inline std::string many(std::string_view element) {
  std::string all{element};
  for (int i = 1; i < 400'000; ++i) all.append(",").append(element);
  return all;
}

// One of six words, of which those are wildcards whose bit is set.
inline std::string pattern_of(int number) {
  std::string pattern;
  for (int word = 0; word < 5; ++word) pattern += (number >> word & 1) != 0 ? "*." : "w.";
  return pattern + "k" + text_of(number);
}

// A connection's other end, and what it has been sent.
struct Line {
  std::unique_ptr<Connection> connection;
  std::shared_ptr<runtime::SimulatedPeer> peer;

  [[nodiscard]] const Channel* channel() const { return dynamic_cast<const Channel*>(connection.get()); }
};

// A bus by which nobody is reached, and other nodes are there as the test says.
class SilentBus final : public cluster::Bus {
 public:
  [[nodiscard]] State state() const noexcept override { return State::connected; }
  void on_state(std::function<void()>) override {}
  void subscribe(std::string subject, Handler handler) override {
    subscriptions_.emplace_back(std::move(subject), std::move(handler));
  }
  void subscribe_to_absence(std::string, Handler) override {}
  void subscribe_in_group(std::string, std::string, Handler) override {}
  void unsubscribe(std::string_view) noexcept override {}
  [[nodiscard]] bool publish(std::string_view, std::string_view, std::string_view) noexcept override { return true; }
  [[nodiscard]] std::size_t payload_bytes_max() const noexcept override { return 1 << 20; }
  [[nodiscard]] std::size_t waiting_bytes() const noexcept override { return 0; }
  [[nodiscard]] std::string url() const override { return {}; }
  [[nodiscard]] std::string failure() const override { return {}; }

  void bring(std::string_view subject, std::string_view payload) {
    for (const auto& [name, handler] : subscriptions_) {
      if (name == subject) handler({.subject = subject, .reply = {}, .payload = payload});
    }
  }

 private:
  std::vector<std::pair<std::string, Handler>> subscriptions_;
};

/// A broker with many methods, topics, clients and nodes.
class Crowd : public ConnectionOwner {
 public:
  explicit Crowd(const World& world = kWorld)
      : backend(new runtime::SimulatedBackend{7}), loop(std::unique_ptr<runtime::Backend>{backend}) {
    loop_context.services.broker = &router;
    http.metrics = [this](rpc::Asker asker) { return router.metrics(std::move(asker)); };
    http.openrpc = [this](rpc::LoopContext& own, rpc::Asker asker, std::span<const std::string> urls) {
      return std::make_unique<rpc::OpenRpcDocument>(own, registry, own.services.broker, "", std::move(asker),
                                                    rpc::DocumentOrigin{.urls = urls});
    };
    auto bus = std::make_unique<SilentBus>();
    SilentBus& others = *bus;
    router.join(std::make_unique<cluster::Cluster>(
        rpc::BrokerHost{.registry = registry, .limits = limits, .loop_context = loop_context}, router, std::move(bus),
        cluster::ClusterSettings{.realm = "r", .node = "own", .epoch = 1}));
    for (int i = 0; i < world.nodes; ++i)
      others.bring("wc.r.hb", R"({"node":"node-)" + text_of(i) + R"(","epoch":"2","version":1})");
    Line& provider = connect();
    std::string methods;
    for (int i = 0; i < world.methods; ++i) {
      methods += std::string{i == 0 ? "" : ","} + R"({"method":"service.method_)" + text_of(i) +
                 R"(","summary":"does )" + text_of(i) + R"(","params":[{"name":"x","schema":{"type":"integer"}}]})";
    }
    provider.peer->send(R"({"jsonrpc":"2.0","method":"rpc.register","params":{"methods":[)" + methods + "]}}");
    for (int i = 0; i < world.topics; ++i) {
      provider.peer->send(R"({"jsonrpc":"2.0","method":"rpc.publish","params":{"topic":"a.b.t)" + text_of(i) +
                          R"(","params":{},"retain":true}})");
    }
    for (int i = 0; i < world.patterns; ++i)
      provider.peer->send(R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":")" + pattern_of(i) + "\"}}");
    for (int i = 0; i < world.clients; ++i) {
      connect().peer->send(R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"name":"other"}})"
                           R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"busy"}})"
                           R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"queue","group":"all"}})"
                           R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"busy.groups","group":"g)" +
                           text_of(i) + R"("}}{"jsonrpc":"2.0","method":"rpc.register","params":{"method":"shared"}})");
    }
    for (int i = 0; i < world.named; ++i)
      connect().peer->send(R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"name":"other"}})");
    bystander = &connect();
    attacker = &connect();
    const auto is_read = [](const auto& line) { return line->peer->to_us.empty(); };
    for (int quiet = 0; quiet < 20;) {
      turn();
      quiet = std::ranges::all_of(lines, is_read) ? quiet + 1 : 0;
    }
  }
  ~Crowd() {
    lines.clear();
    loop.turn(std::chrono::milliseconds{0});
  }

  Line& connect() {
    auto [descriptor, peer] = backend->pair();
    auto line = std::make_unique<Line>();
    line->peer = peer;
    line->connection = std::make_unique<ProtocolDetector>(host, protocols,
                                                          std::make_unique<transport::SocketStream>(loop, descriptor));
    lines.push_back(std::move(line));
    return *lines.back();
  }
  void turn() {
    loop.turn(std::chrono::milliseconds{1});
    former.clear();
  }
  void connection_ended(Connection&, CloseReason, int) override {}
  void connection_promoted(Connection& detector, std::unique_ptr<Connection> promoted) override {
    const auto line =
        std::ranges::find(lines, &detector, [](const auto& one) -> Connection* { return one->connection.get(); });
    ASSERT_NE(line, lines.end());
    former.push_back(std::exchange((*line)->connection, std::move(promoted)));
  }

  Limits limits;
  Registry registry;
  runtime::SimulatedBackend* backend;
  Loop loop;
  rpc::LoopContext loop_context{json_codec(), &loop, nullptr};
  broker::Router router{registry, limits, loop_context};
  framing::JsonTextSettings text{limits, "\n"};
  HttpSettings http;
  Protocols protocols{text, http};
  Host host{.loop = loop, .registry = registry, .limits = limits, .loop_context = loop_context, .owner = *this};
  std::vector<std::unique_ptr<Line>> lines;
  std::vector<std::unique_ptr<Connection>> former;
  Line* bystander;
  Line* attacker;
};

struct Cost {
  std::int64_t steps = 0;
  std::int64_t turn_steps_max = 0;
  std::size_t turn_bytes_max = 0;
  std::size_t turn_requested_max = 0;  // bytes of memory
  std::uint64_t turn_comparisons_max = 0;
  std::uint64_t comparisons = 0;
  int turns = 0;
  int pings = 0;      // that the bystander has been answered
  std::string error;  // the first that a request has been answered with; empty for none
};

// What a connection is sent, of which a part may come in the middle of an answer.
class FirstError {
 public:
  void read(std::string_view sent) {
    if (!found_.empty()) return;
    text_.append(sent);
    constexpr std::string_view kBegin = R"({"jsonrpc":"2.0","error":)";
    const std::size_t at = text_.find(kBegin);
    if (at == std::string::npos) {
      text_.erase(0, text_.size() - std::min(text_.size(), kBegin.size()));
    } else {
      found_ = text_.substr(at, 300);
    }
  }
  [[nodiscard]] const std::string& found() const noexcept { return found_; }

 private:
  std::string text_;
  std::string found_;
};

// What it costs to serve `input`, with a ping from another connection in every turn.
inline Cost serve(Crowd& crowd, const std::string& input) {
  constexpr std::string_view kPing = R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})";
  Cost cost;
  runtime::SimulatedPeer& neighbour = *crowd.bystander->peer;
  crowd.attacker->peer->send(input);
  neighbour.send(kPing);
  FirstError error;
  int quiet = 0;
  for (int i = 0; i < kTurnsMax && quiet < 8; ++i) {
    const std::size_t before = crowd.loop_context.stats.bytes_out;
    const std::size_t requested_before = memory::requested_bytes();
    const std::uint64_t comparisons_before = comparisons;
    crowd.turn();
    const std::uint64_t compared = comparisons - comparisons_before;
    cost.turn_comparisons_max = std::max(cost.turn_comparisons_max, compared);
    cost.comparisons += compared;
    cost.turn_requested_max = std::max(cost.turn_requested_max, memory::requested_bytes() - requested_before);
    const Channel* const channel = crowd.attacker->channel();
    const std::int64_t steps = channel != nullptr ? channel->steps_used() : 0;
    const std::size_t bytes = crowd.loop_context.stats.bytes_out - before;
    cost.steps += steps;
    cost.turn_steps_max = std::max(cost.turn_steps_max, steps);
    cost.turn_bytes_max = std::max(cost.turn_bytes_max, bytes);
    ++cost.turns;
    if (neighbour.take().ends_with('\n')) {
      ++cost.pings;
      neighbour.send(kPing);
    }
    error.read(crowd.attacker->peer->take());
    quiet = crowd.attacker->peer->to_us.empty() && channel != nullptr && steps == 0 ? quiet + 1 : 0;
  }
  EXPECT_EQ(quiet, 8) << "not served in the end";
  cost.error = error.found();
  return cost;
}
inline Cost serve(const std::string& input, const World& world = kWorld) {
  Crowd crowd{world};
  return serve(crowd, input);
}

}  // namespace wirecall::net
