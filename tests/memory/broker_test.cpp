// A broker whose memory fails at the N-th request, for every N until none is made any more: once, or for a while.
// Clients provide methods, call each other's, stream, gather, publish, subscribe and ask for what there is. Each call
// ends once, at its caller, with its own result or an error, or its caller's connection ends; events come in order, and
// what is missing of them is told or has cost the connection; and those who come when there is memory again are served
// as ever. That nothing leaks and nothing is used that has gone, AddressSanitizer sees.
#include <algorithm>
#include <array>
#include <cstddef>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sanitizers.hpp"
#include "broker/router.hpp"
#include "broker_server/broker_factory.hpp"
#include "http/browser_access.hpp"
#include "server/serving_loop.hpp"
#include "tests/memory/failing_memory.hpp"
#include "tests/memory/spared_backend.hpp"
#include "tests/runtime/simulated_backend.hpp"
#include "wirecall/log.hpp"

namespace wirecall::net {
namespace {

using memory::Failing;
using memory::FailingMemory;
using memory::Spared;
using memory::SparedBackend;
using nlohmann::json;
using runtime::SimulatedPeer;

std::string request(const json& id, std::string_view method, const json& params, json more = json::object()) {
  more["jsonrpc"] = "2.0";
  more["method"] = method;
  if (!params.is_null()) more["params"] = params;
  if (!id.is_null()) more["id"] = id;
  return more.dump();
}

// One connection, seen from the client's side.
class Peer {
 public:
  explicit Peer(ServingLoop& serving, SparedBackend& backend) {
    auto [descriptor, peer] = backend.simulated.pair();
    descriptor_ = descriptor;
    peer_ = std::move(peer);
    serving_ = &serving;
  }
  Peer(Peer&&) = delete;
  virtual ~Peer() = default;

  void open() {
    const std::uint64_t before = serving_->stats().connections_refused;
    serving_->open(transport::PendingConnection{descriptor_});
    refused_ = serving_->stats().connections_refused != before;
  }
  void say(const std::string& message) { send(message + "\n"); }
  void send(std::string_view bytes) { peer_->send(bytes); }
  /// Looks at what has come.
  void process_received() {
    received_ += peer_->take();
    process_received(received_);
  }
  void finish() { peer_->finish(); }
  [[nodiscard]] bool closed() const { return refused_ || peer_->closed; }

 private:
  // Whole messages, but of HTTP.
  virtual void process_received(std::string& received) {
    for (std::size_t end; (end = received.find('\n')) != std::string::npos; received.erase(0, end + 1)) {
      const json message = json::parse(received.substr(0, end), nullptr, false);
      ASSERT_FALSE(message.is_discarded()) << received.substr(0, end);
      if (message.is_array()) {
        for (const json& element : message) heard(element);
      } else {
        heard(message);
      }
    }
  }
  virtual void heard(const json& message) = 0;

  ServingLoop* serving_;
  int descriptor_;
  std::shared_ptr<SimulatedPeer> peer_;
  std::string received_;
  bool refused_ = false;
};

// Answers each call with its first param, streams of them with as many items as they have credit for.
class Provider final : public Peer {
 public:
  Provider(ServingLoop& serving, SparedBackend& backend, std::string name)
      : Peer(serving, backend), name_(std::move(name)) {}

  void begin() {
    say(request("h", "rpc.hello", {{"name", name_}}));
    say(request("r", "rpc.register",
                {{"methods",
                  {{{"method", "work"}, {"summary", std::string(300, 's')}},
                   {{"method", "one"}, {"policy", "hash:a"}, {"concurrency", 1}, {"queue", 5}},
                   {{"method", "silent"}},
                   {{"method", "count"}},
                   {{"method", "deep.>"}}}}}));
  }
  [[nodiscard]] bool ready() const { return registered_; }

 private:
  void heard(const json& message) override {
    if (!message.contains("method")) {
      if (message["id"] == "r") registered_ = true;
      return;
    }
    if (message["method"] == "rpc.credit") return count(message["params"]["id"], message["params"]["n"]);
    if (!message.contains("id")) return;
    if (message["method"] == "silent") return;
    if (message["method"] == "rpc.ping") return answer(message["id"], "pong");
    if (message["method"] == "count" && message.contains("stream")) return count(message["id"], message["stream"]);
    const bool any = message.contains("params") && !message["params"].empty();
    answer(message["id"], any ? message["params"][0] : json{});
  }
  void answer(const json& id, const json& result) {
    say(json{{"jsonrpc", "2.0"}, {"id", id}, {"result", result}}.dump());
  }
  void count(const json& id, std::size_t credit) {
    int& sent = sent_[id.dump()];
    for (; credit != 0 && sent < kItems; --credit, ++sent)
      say(request({}, "rpc.item", {{"id", id}, {"seq", sent}, {"value", sent}}));
    if (sent != kItems) return;
    ++sent;
    answer(id, nullptr);
  }

  static constexpr int kItems = 5;
  std::string name_;
  std::map<std::string, int> sent_;
  bool registered_ = false;
};

// Calls, and keeps what becomes of it.
class CallingPeer final : public Peer {
 public:
  using Peer::Peer;

  void begin() {
    const std::string large(5000, 'y');
    call("rpc.hello", {{"name", "caller"}});
    call("work", {7}, 7);
    call("work", {large}, large);
    call("work", {8}, 8, {{"timeout_ms", 5000}, {"hops", 1}, {"from", "somebody"}});
    call("one", {9}, 9);
    call("one", {10}, 10);
    call("one", {11}, 11);
    call("deep.down", {12}, 12);
    call("work", {13}, 13, {{"to", "second"}});
    call("silent", json::array(), {}, {{"timeout_ms", 20}}, -32002);
    call("count", json::array(), nullptr, {{"stream", 2}});
    streams_.insert(last_);
    say(request({}, "rpc.credit", {{"id", last_}, {"n", 9}}));
    call("silent", json::array(), {}, json::object(), -32800);
    say(request({}, "rpc.cancel", {{"id", last_}}));
    say(request({}, "work", {14}));
    std::string batch = "[";
    for (int i = 0; i < 4; ++i) {
      const int id = ++last_;
      due_[id] = i;
      batch += request(id, i == 2 ? "own" : "work", {i}) + ",";
    }
    say(batch + request({}, "work", {4}) + "]");
    call("rpc.call_all", {{"method", "work"}, {"params", {3}}});
    call("rpc.publish", {{"topic", "news.a"}, {"value", large}, {"retain", true}});
    say(request({}, "news.b", {1}));
    call("rpc.subscribe", {{"topic", "news.*"}, {"last", true}, {"echo", true}});
    call("rpc.publish", {{"topic", "news.a"}, {"value", 2}});
    call("wor", json::array(), {}, json::object(), -32601);
    for (const char* const asked : {"rpc.methods", "rpc.clients", "rpc.stats", "rpc.discover"}) call(asked, json());
    call("rpc.unsubscribe", {{"topic", "news.*"}});
    call("rpc.register", {"mine"});
    call("rpc.unregister", {"mine"});
    call("own", {5}, 5);
  }
  [[nodiscard]] bool satisfied() const {
    return std::ranges::all_of(due_, [&](const auto& one) { return replies_.contains(one.first); });
  }
  void expect_true(bool may_fail) const {
    for (const auto& [id, reply] : replies_) {
      const auto due = due_.find(id);
      if (due == due_.end()) {
        ADD_FAILURE() << "nobody has asked: " << reply;
      } else if (reply.contains("error")) {
        const int code = reply["error"]["code"];
        // Providers may have gone, or have never been there.
        static const std::set<int> kForWantOfMemory{-32603, -32001, -32601, -32004, -32005};
        const auto own = errors_.find(id);
        EXPECT_TRUE((own != errors_.end() && own->second == code) || (may_fail && kForWantOfMemory.contains(code)))
            << reply;
      } else {
        EXPECT_TRUE(!errors_.contains(id)) << reply;
        if (due->second) {
          EXPECT_EQ(reply["result"], *due->second);
        }
      }
    }
    for (const auto& [id, items] : items_) {
      EXPECT_TRUE(streams_.contains(id)) << id;
      for (std::size_t i = 0; i < items.size(); ++i) EXPECT_EQ(items[i], i);
    }
  }
  [[nodiscard]] std::string missing() const {
    std::string text = "no reply to";
    for (const auto& [id, due] : due_) {
      if (!replies_.contains(id)) text += ' ' + std::to_string(id);
    }
    return text;
  }

 private:
  void call(std::string_view method, const json& params, std::optional<json> result = {},
            const json& more = json::object(), int error = 0) {
    due_[++last_] = std::move(result);
    if (error != 0) errors_[last_] = error;
    say(request(last_, method, params, more));
  }
  void heard(const json& message) override {
    if (message.contains("method")) {
      if (message["method"] == "rpc.item")
        items_[message["params"]["id"]].push_back(message["params"]["seq"].get<std::size_t>());
      return;
    }
    ASSERT_TRUE(message["id"].is_number()) << message;
    EXPECT_TRUE(replies_.emplace(message["id"].get<int>(), message).second) << "twice: " << message;
  }

  int last_ = 0;
  std::map<int, std::optional<json>> due_;  // by id: the result, where it is known
  std::map<int, int> errors_;               // by id: the error that it has to be
  std::set<int> streams_;
  std::map<int, json> replies_;
  std::map<int, std::vector<std::size_t>> items_;
};

// Publishes numbers.
class Publisher final : public Peer {
 public:
  using Peer::Peer;
  void publish() {
    if (published_ < kEvents) say(request({}, "numbers", {published_++}));
  }
  [[nodiscard]] int published() const { return published_; }
  static constexpr int kEvents = 40;

 private:
  void heard(const json& message) override { ADD_FAILURE() << message; }
  int published_ = 0;
};

// Is told of numbers.
class Subscriber final : public Peer {
 public:
  using Peer::Peer;
  void begin() {
    say(request("s", "rpc.subscribe", {{"topic", "numbers"}}));
    say(request("p", "rpc.subscribe", {{"topic", "rpc.client.*"}}));
  }
  [[nodiscard]] bool asked() const { return asked_; }
  [[nodiscard]] const std::vector<int>& numbers() const { return numbers_; }
  [[nodiscard]] std::uint64_t lost() const { return lost_; }

 private:
  void heard(const json& message) override {
    if (!message.contains("method")) {
      if (message["id"] == "s") asked_ = message.contains("result");
      return;
    }
    if (message["method"] == "numbers") numbers_.push_back(message["params"][0]);
    if (message["method"] == "rpc.lagged") lost_ += message["params"]["dropped"].get<std::uint64_t>();
  }

  bool asked_ = false;
  std::vector<int> numbers_;
  std::uint64_t lost_ = 0;
};

// Calls by HTTP, one call after the other.
class Poster final : public Peer {
 public:
  using Peer::Peer;
  void begin() {
    std::string requests;
    for (const std::string& body :
         {request(1, "work", {1}), request(2, "count", json::array(), {{"stream", 3}}),
          '[' + request(3, "one", {3}) + ',' + request({}, "work", {0}) + ',' + request(4, "own", {4}) + ']'}) {
      requests +=
          "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    }
    send(requests.substr(4) + "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  [[nodiscard]] bool answered() const { return responses_ == 4; }

 private:
  void process_received(std::string& received) override {
    for (std::size_t end; (end = received.find("\r\n\r\n")) != std::string::npos;) {
      const std::size_t length = received.find("Content-Length: ");
      ASSERT_LT(length, end) << received;
      const std::size_t bytes = end + 4 + std::stoul(received.substr(length + 16));
      if (received.size() < bytes) return;
      ++responses_;
      received.erase(0, bytes);
    }
  }
  void heard(const json&) override {}
  int responses_ = 0;
};

// Is told of numbers by HTTP.
class Listener final : public Peer {
 public:
  using Peer::Peer;
  void begin() { send("GET /events?topic=numbers HTTP/1.1\r\nHost: localhost\r\n\r\n"); }
  [[nodiscard]] bool asked() const { return asked_; }
  [[nodiscard]] const std::vector<int>& numbers() const { return numbers_; }

 private:
  void process_received(std::string& received) override {
    asked_ = asked_ || received.starts_with("HTTP/1.1 200");
    for (std::size_t end; (end = received.find('\n')) != std::string::npos; received.erase(0, end + 1)) {
      if (const std::size_t at = received.find("data: "); at < end) {
        const json event = json::parse(received.substr(at + 6, end - at - 6));
        numbers_.push_back(event["params"][0]);
      }
    }
  }
  void heard(const json&) override {}

  bool asked_ = false;
  std::vector<int> numbers_;
};

// All of them at one broker, from when they come until they have what they want, or have been cut.
struct Company {
  Company(ServingLoop& serving, SparedBackend& backend)
      : first(serving, backend, "first"),
        second(serving, backend, "second"),
        caller(serving, backend),
        publisher(serving, backend),
        subscriber(serving, backend),
        poster(serving, backend),
        listener(serving, backend) {}

  void open() {
    for (Peer* peer : peers()) peer->open();
  }
  void act() {
    ++turns;
    if (turns == 1) {
      first.begin();
      second.begin();
      subscriber.begin();
      listener.begin();
      publisher.say(request({}, "numbers.soon", {}));
      caller.say(request({}, "numbers.soon", {}));
      poster.send("POST");
    }
    for (Peer* peer : peers()) peer->process_received();
    const bool provided = (first.ready() || first.closed()) && (second.ready() || second.closed()) &&
                          (subscriber.asked() || subscriber.closed()) && (listener.asked() || listener.closed());
    if (!begun && (provided || turns > kPatience)) {
      begun = true;
      caller.begin();
      poster.begin();
    }
    if (begun && turns % 2 == 0) publisher.publish();
    const bool over = begun && (caller.closed() || caller.satisfied()) && (poster.closed() || poster.answered()) &&
                      (publisher.closed() || publisher.published() == Publisher::kEvents);
    if (over) ++turns_over;
  }
  [[nodiscard]] bool over() const { return turns_over > kTurnsToArrive; }
  std::array<Peer*, 7> peers() { return {&first, &second, &caller, &publisher, &subscriber, &poster, &listener}; }

  static constexpr int kPatience = 100;
  static constexpr int kTurnsToArrive = 10;
  Provider first;
  Provider second;
  CallingPeer caller;
  Publisher publisher;
  Subscriber subscriber;
  Poster poster;
  Listener listener;
  int turns = 0;
  int turns_over = 0;
  bool begun = false;
};

constexpr int kTurnsMax = 3000;
constexpr int kTurnsWithoutTime = 8;
constexpr int kFor = 60;  // turns for which it fails

// Whether the memory still failed.
bool serve(std::size_t number, Failing failing) {
  Options options;
  options.takeover_ms = options.slow_handler_ms = 0;
  options.log_calls_every = 3;
  options.disclose_callers = true;
  options.log = [](const LogRecord& record) { static_cast<void>(format_log(LogFormat::json, record)); };
  Registry registry;
  registry.method("own", [](int a) { return a; }, {"a"});
  const HttpSettings http;
  ServerShared shared{.options = options, .registry = registry, .http = http, .make_broker = broker_factory(options)};
  auto owned = std::make_unique<SparedBackend>(7);
  SparedBackend& backend = *owned;
  ServingLoop serving{std::move(owned), shared};
  Company unlucky{serving, backend};
  Company lucky{serving, backend};
  std::optional<FailingMemory> memory;
  enum class Stage : std::uint8_t { unlucky, leaving, lucky, ending } stage = Stage::unlucky;
  bool failed = false;
  int turns = 0;
  int since = 0;
  const auto leave = [](Company& company) {
    for (Peer* peer : company.peers()) peer->finish();
  };
  const auto gone = [](Company& company) {
    return std::ranges::all_of(company.peers(), [](const Peer* peer) { return peer->closed(); });
  };
  const auto turn = [&]() -> bool {
    // Else simulated time passes where nothing has come; not before all have begun, lest half a request be given up.
    const bool begun = (stage == Stage::unlucky || stage == Stage::leaving ? unlucky : lucky).begun;
    if (!begun || ++turns % kTurnsWithoutTime != 0) serving.loop().wake();
    if (!memory) {
      memory.emplace(number, failing);
      unlucky.open();
      const Spared spared;
      unlucky.act();
      return false;
    }
    const Spared spared;
    if (FailingMemory::has_failed() && ++since == kFor) memory->end();
    Company& company = stage < Stage::lucky ? unlucky : lucky;
    company.act();
    if (company.turns == kTurnsMax) {
      ADD_FAILURE() << "somebody waits: " << company.caller.missing();
      return true;
    }
    switch (stage) {
      case Stage::unlucky:
        if (!company.over() || (FailingMemory::has_failed() && since < kFor)) return false;
        leave(company);
        stage = Stage::leaving;
        return false;
      case Stage::leaving: {
        if (!gone(company)) return false;
        memory->end();
        failed = FailingMemory::has_failed();
        company.caller.expect_true(failed);
        EXPECT_TRUE(failed || company.caller.satisfied()) << company.caller.missing();
        stage = Stage::lucky;
        lucky.open();
        lucky.act();
        return false;
      }
      case Stage::lucky:
        if (!company.over()) return false;
        leave(company);
        stage = Stage::ending;
        return false;
      case Stage::ending: return gone(company);
    }
    return true;
  };
  serving.run(turn, [] { return true; });
  EXPECT_TRUE(lucky.caller.satisfied()) << "the next caller: " << lucky.caller.missing();
  lucky.caller.expect_true(false);
  for (const Company* company : {&unlucky, &lucky}) {
    const Subscriber& subscriber = company->subscriber;
    std::uint64_t gaps = 0;
    for (std::size_t i = 1; i < subscriber.numbers().size(); ++i) {
      EXPECT_GT(subscriber.numbers()[i], subscriber.numbers()[i - 1]);
      gaps += static_cast<std::uint64_t>(subscriber.numbers()[i] - subscriber.numbers()[i - 1] - 1);
    }
    EXPECT_LE(gaps, subscriber.lost()) << json(subscriber.numbers());
    if (company == &lucky) {
      EXPECT_EQ(subscriber.numbers().size(), Publisher::kEvents);
      EXPECT_EQ(company->listener.numbers().size(), Publisher::kEvents);
      EXPECT_TRUE(company->poster.answered());
    }
  }
  const Stats stats = serving.stats();
  EXPECT_EQ(stats.connections_open, 0U);
  EXPECT_EQ(stats.calls_in_flight, 0U);
  const auto& router = static_cast<const broker::Router&>(*serving.broker());
  EXPECT_EQ(router.relayed_calls().in_use(), 0U);
  EXPECT_EQ(router.methods().size(), 0U);
  return failed;
}

class BrokerMemory : public testing::TestWithParam<Failing> {};

TEST_P(BrokerMemory, failing_anywhere_ends_calls_once_and_is_over_with_it) {
  constexpr std::size_t kStep = kAddressSanitizer ? 23 : 1;
  std::size_t number = 1;
  while (serve(number, GetParam()) && !HasFailure()) number += kStep;
  ASSERT_FALSE(HasFailure()) << "the request for memory that failed was number " << number;
  EXPECT_GT(number, 300U) << "the memory that is asked for has to pass through the test";
}

INSTANTIATE_TEST_SUITE_P(Ways, BrokerMemory, testing::Values(Failing::once, Failing::since));

}  // namespace
}  // namespace wirecall::net
