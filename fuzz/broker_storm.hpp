// BrokerStorm: one broker on the simulated backend and its peers, driven by an input of bytes: each byte chooses the
// next action. Peers of all framings call, stream, cancel, register, subscribe, publish, answer, resume, read slowly,
// and close half or all of their connection; principals are reloaded, and the broker drains. It keeps a model of the
// answers due and lists each violation: an answer without a call, or another peer's; an item or event out of order; a
// line that is no JSON value; a call without an outcome; state that the broker keeps after all have gone. One thread.
// fuzz/broker.cpp drives it by libFuzzer, tests/server/broker_storm_test.cpp by seeds.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/router.hpp"
#include "broker_server/broker_factory.hpp"
#include "http/access.hpp"
#include "rpc/access.hpp"
#include "server/serving_loop.hpp"
#include "tests/runtime/simulated_backend.hpp"
#include "wirecall/context.hpp"
#include "wirecall/log.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/stream.hpp"
#include "wirecall/task.hpp"
#include "wirecall/value.hpp"

namespace fuzz {

using nlohmann::json;

/// Choices, byte by byte; 0 when the bytes have run out.
class Choices {
 public:
  explicit Choices(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t first = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return first;
  }
  /// From 0 to below - 1; `below` is 256 at most.
  std::size_t below(std::size_t below) { return below == 0 ? 0 : byte() % below; }
  bool one_in(std::size_t chances) { return below(chances) == chances - 1; }

 private:
  std::span<const std::uint8_t> bytes_;
};

enum class StormFraming : std::uint8_t { lines, headers, lengths, msgpack, http };
constexpr std::size_t kStormFramings = 5;

/// Faults injected between the broker and its peers, to check that the model notices them.
enum class StormFault : std::uint8_t { none, loses, doubles, swaps, breaks_lines };

/// A connection as its peer sees it.
struct StormPeer {
  struct Asked {  // a call of this peer without an outcome
    std::uint64_t nonce = 0;
    bool batch = false;
    bool streamed = false;
    bool cancelled = false;
    std::uint64_t credit = 0;
    std::uint64_t items = 0;
  };
  struct Serving {  // a call sent to this peer
    json id;
    json params;
    std::uint64_t seq = 0;
    bool streamed = false;
    bool may_answer_again = false;
  };

  std::size_t number = 0;
  StormFraming framing = StormFraming::lines;
  std::shared_ptr<wirecall::runtime::SimulatedPeer> wire;
  std::string received;
  std::map<std::string, Asked> calls;  // by id as JSON
  std::vector<Serving> serving;
  std::vector<std::string> patterns;                 // ever subscribed to
  std::map<std::uint64_t, std::uint64_t> event_seq;  // by publisher: the last received live
  std::uint64_t event_number = 0;
  std::string session;
  std::string hello_id;
  bool events = false;  // its HTTP response is a stream of events
  bool named = false;
  bool junk = false;        // has sent what may be refused without an id
  bool garbled = false;     // its bytes may be read as something else, and stay without an answer
  bool may_be_cut = false;  // because of other peers, with an answer or without
  bool finished = false;    // has closed its sending side
  bool closed = false;      // by the broker, and the peer has noticed
  bool abandoned = false;   // reset, or closed by the broker: its calls expect nothing
};

class BrokerStorm {
 public:
  explicit BrokerStorm(std::span<const std::uint8_t> input, StormFault fault = StormFault::none)
      : choices_(input), fault_(fault) {}
  BrokerStorm(BrokerStorm&&) = delete;

  /// The violations, a line each; empty without any. Call it once.
  const std::vector<std::string>& run() {
    const unsigned seed = choices_.byte();
    const std::uint8_t flags = choices_.byte();
    guarded_ = (flags & 1) != 0;
    wirecall::Options options;
    options.takeover_ms = options.slow_handler_ms = 0;
    options.kick_ms = 0;  // kicked clients may return at once
    options.limits.batch = 5;
    options.limits.subscriptions = 8;
    options.limits.methods = 8;
    options.limits.retained_bytes = 2000;
    if ((flags & 2) != 0) options.limits.soft_output = 3000;
    if ((flags & 4) != 0) options.limits.in_flight = 6;
    if ((flags & 8) != 0) options.limits.max_message_size = 5000;
    options.disclose_callers = (flags & 16) != 0;
    if (is_traced()) {
      options.log_level = wirecall::LogLevel::debug;
      options.log = [](const wirecall::LogRecord& record) {
        std::fprintf(stderr, "%s\n", wirecall::format_log(wirecall::LogFormat::human, record).c_str());
      };
    }
    wirecall::Registry registry;
    add_own(registry);
    const wirecall::session::HttpSettings http;
    wirecall::session::ServerShared shared{.options = options,
                                           .registry = registry,
                                           .http = http,
                                           .make_broker = wirecall::session::broker_factory(options)};
    backend_ = new wirecall::runtime::SimulatedBackend{seed};
    wirecall::session::ServingLoop serving{std::unique_ptr<wirecall::runtime::Backend>{backend_}, shared};
    serving_ = &serving;
    if (guarded_) reload();

    serving.run([this] { return !step(); },
                [this] {
                  read_all();
                  for (auto& peer : peers_) peer->wire->window = std::size_t{1} << 40;
                  return false;
                });
    read_all();
    for (const auto& peer : peers_) {
      if (!peer->wire->closed) fault_at(*peer, "is still open in the end");
      if (!peer->abandoned && !peer->garbled && !peer->may_be_cut) note_missing(*peer);
    }
    const wirecall::Stats stats = serving.stats();
    if (stats.connections_open != 0) faults_.emplace_back("connections are counted as open");
    if (stats.calls_in_flight != 0) faults_.push_back("in flight: " + std::to_string(stats.calls_in_flight));
    const auto& router = static_cast<const wirecall::broker::Router&>(*serving.broker());
    if (router.relayed_calls().in_use() != 0) faults_.emplace_back("relayed calls are left");
    if (router.methods().size() != 0) faults_.emplace_back("provided methods are left");
    if (router.peers().next(0) != nullptr) faults_.emplace_back("peers are left");
    return faults_;
  }
  [[nodiscard]] std::size_t results() const { return results_; }
  [[nodiscard]] std::size_t errors() const { return errors_; }
  [[nodiscard]] std::size_t events() const { return events_; }
  [[nodiscard]] std::size_t items() const { return items_; }

 private:
  static constexpr std::size_t kPeers = 12;
  static constexpr int kSettlingTurns = 400;
  static constexpr int kPartingTurns = 4000;
  static constexpr std::array<const char*, 6> kMethods{"work", "work.b", "gpu.>", "gpu.add", "own.echo", "hold"};
  static constexpr std::array<const char*, 9> kCalled{"work", "work.b",    "gpu.mul",   "gpu.add", "own.echo",
                                                      "hold", "own.later", "own.count", "no.such"};
  static constexpr std::array<const char*, 6> kTopics{"news.a", "news.b", "news.a.b", "other", "news.c.d", "other.x"};
  static constexpr std::array<const char*, 6> kPatterns{"news.a", "news.*", "news.>", ">", "*.a.*", "other"};
  static constexpr std::array<const char*, 3> kNames{"ada", "bob", "worker"};

  static void add_own(wirecall::Registry& registry) {
    using Optional = std::optional<wirecall::Value>;
    registry.method("own.echo", [](std::uint64_t nonce, Optional, Optional) { return nonce; },
                    {"nonce", "pad", "text"});
    registry.method(
        "own.later",
        [](wirecall::Context context, std::uint64_t nonce, Optional, Optional) -> wirecall::Task<std::uint64_t> {
          co_await sleep_for(context, std::chrono::milliseconds{nonce % 100});
          co_return nonce;
        },
        {"nonce", "pad", "text"});
    registry.method("own.count",
                    [](std::uint64_t nonce, Optional, Optional) -> wirecall::Stream<std::uint64_t> {
                      for (int i = 0; i < 4; ++i) co_yield nonce;
                    },
                    {"nonce", "pad", "text"});
  }

  // ---- steps: each returns whether there is another ----

  bool step() {
    if (fault_now()) return false;
    read_all();
    if (!choices_.empty() && !draining_) {
      if (pause_ != 0) {
        --pause_;
      } else {
        act();
      }
      if (draining_) return false;
      if (!pass_time_) backend_->wake();
      pass_time_ = false;
      return true;
    }
    return settle();
  }

  // All peers read again, time passes, and every call that can end must. Then they close their sending side, and all
  // must end.
  bool settle() {
    ++settling_;
    // With many connections hardly a turn is idle, and time passes by itself only in idle turns.
    backend_->take_time(std::chrono::milliseconds{200});
    bool waiting = false;
    bool open = false;
    for (auto& peer : peers_) {
      peer->wire->window = std::size_t{1} << 40;
      if (peer->wire->closed) continue;
      open = true;
      waiting = waiting || (!peer->garbled &&
                            std::ranges::any_of(peer->calls, [](const auto& call) { return !call.second.streamed; }));
    }
    if (!open) return false;
    if (waiting && settling_ < kSettlingTurns) return true;
    for (auto& peer : peers_) {
      if (!peer->finished && !peer->abandoned && !peer->garbled && !peer->may_be_cut && settling_ >= kSettlingTurns) {
        for (const auto& [id, call] : peer->calls) {
          if (!call.streamed) fault_at(*peer, "waits in vain for " + id);
        }
      }
      finish(*peer);
    }
    if (settling_ < kPartingTurns) return true;
    return false;
  }

  void act() {
    switch (choices_.below(28)) {
      case 0:
      case 1:
        return open();
      case 2:
        return hello();
      case 3:
      case 4:
        return register_methods();
      case 5:
        return with_peer([this](StormPeer& peer) {
          if (is_connected(peer)) ask(peer, "rpc.unregister", {{"method", kMethods.at(choices_.below(6))}});
        });
      case 6:
      case 7:
        return subscribe();
      case 8:
        return with_peer([this](StormPeer& peer) {
          if (is_connected(peer)) ask(peer, "rpc.unsubscribe", {{"topic", kPatterns.at(choices_.below(6))}});
        });
      case 9:
      case 10:
      case 11:
        return call();
      case 12:
        return batch();
      case 13:
      case 14:
      case 15:
        return answer();
      case 16:
        return item();
      case 17:
        return credit();
      case 18:
        return cancel();
      case 19:
        return publish();
      case 20:
        return notify();
      case 21:
        return leave();
      case 22:
        return built_in();
      case 23:
        pass_time_ = true;
        return;
      case 24:
        pause_ = static_cast<int>(choices_.below(16));
        return;
      case 25:
        return window();
      case 26:
        return rare();
      default:
        return junk();
    }
  }

  void rare() {
    switch (choices_.below(6)) {
      case 0:
        if (guarded_) reload();
        return;
      case 1:
        if (choices_.one_in(40)) draining_ = true;
        return;
      case 2:
        return listen_to_events();
      case 3:
        if (!choices_.one_in(40)) return;
        // The broker closes connections that have not said enough in that time.
        for (auto& peer : peers_) peer->may_be_cut = true;
        return backend_->take_time(std::chrono::seconds{31});
      default:
        backend_->take_time(std::chrono::milliseconds{choices_.byte()});
    }
  }

  // ---- what peers do ----

  template <class F>
  void with_peer(const F& act) {
    if (peers_.empty()) return;
    StormPeer& peer = *peers_[choices_.below(peers_.size())];
    if (!peer.finished && !peer.abandoned && !peer.wire->closed && !peer.events) act(peer);
  }
  static bool is_connected(const StormPeer& peer) { return peer.framing != StormFraming::http; }

  void open() {
    const auto framing = static_cast<StormFraming>(choices_.below(kStormFramings));
    if (std::ranges::count_if(peers_, [](const auto& peer) { return !peer->wire->closed; }) >=
            static_cast<std::ptrdiff_t>(kPeers) ||
        peers_.size() >= 200) {
      return;
    }
    auto [descriptor, wire] = backend_->pair();
    serving_->open(wirecall::transport::PendingConnection{descriptor});
    auto peer = std::make_unique<StormPeer>();
    peer->number = peers_.size();
    peer->framing = framing;
    peer->wire = std::move(wire);
    peers_.push_back(std::move(peer));
    if (guarded_ && is_connected(*peers_.back())) say_hello(*peers_.back(), json::object());
  }

  void hello() {
    with_peer([this](StormPeer& peer) {
      if (!is_connected(peer)) return;
      json params{{"name", kNames.at(choices_.below(kNames.size()))}};
      peer.named = true;
      if (choices_.one_in(3)) {
        StormPeer& other = *peers_[choices_.below(peers_.size())];
        if (!other.session.empty()) {
          params["resume"] = other.session;
          other.may_be_cut = true;
        }
      }
      say_hello(peer, std::move(params));
    });
  }
  void say_hello(StormPeer& peer, json params) {
    if (guarded_) params["token"] = peer.number % 2 == 0 ? "token-of-ada" : "token-of-bob";
    peer.hello_id = ask(peer, "rpc.hello", std::move(params));
  }

  void register_methods() {
    with_peer([this](StormPeer& peer) {
      if (!is_connected(peer)) return;
      json params{{"method", kMethods.at(choices_.below(6))}};
      const std::size_t terms = choices_.byte();
      if ((terms & 1) != 0) params["concurrency"] = 1 + (terms >> 6);
      if ((terms & 2) != 0) params["idempotent"] = true;
      if ((terms & 4) != 0) params["queue"] = 1;
      if ((terms & 24) == 24) params["policy"] = "round_robin";
      if ((terms & 32) != 0) params["summary"] = "first line\nsecond line";
      ask(peer, "rpc.register", std::move(params));
    });
  }

  void subscribe() {
    with_peer([this](StormPeer& peer) {
      if (!is_connected(peer)) return;
      const std::string pattern = kPatterns.at(choices_.below(6));
      json params{{"topic", pattern}};
      const std::size_t terms = choices_.byte();
      if ((terms & 1) != 0) params["last"] = true;
      if ((terms & 6) == 6) params["group"] = "g";
      if ((terms & 8) != 0) params["echo"] = true;
      peer.patterns.push_back(pattern);
      ask(peer, "rpc.subscribe", std::move(params));
    });
  }

  json new_call(StormPeer& peer, std::string method, bool in_batch) {
    json request{{"jsonrpc", "2.0"}, {"method", std::move(method)}};
    const std::uint64_t number = ++last_id_;
    request["id"] = number % 3 == 0 ? json(std::to_string(number)) : json(number);
    const std::size_t terms = choices_.byte();
    request["params"] = {{"nonce", number * 7919}};
    if ((terms & 3) == 3) request["params"]["pad"] = std::string((terms >> 2) * 40, 'p');
    if ((terms & 4) != 0) request["params"]["text"] = "a\nb\r\n\x01\u2028{\"id\":1}\n";
    if ((terms & 24) == 8) request["timeout_ms"] = terms;
    if ((terms & 56) == 16) request["to"] = kNames.at(terms % 3);
    StormPeer::Asked asked{.nonce = number * 7919, .batch = in_batch};
    if ((terms & 128) != 0 && !in_batch && is_connected(peer)) {
      asked.streamed = true;
      asked.credit = 1 + terms % 3;
      request["stream"] = asked.credit;
    }
    peer.calls[request["id"].dump()] = asked;
    return request;
  }
  void call() {
    with_peer([this](StormPeer& peer) {
      const json request = new_call(peer, kCalled.at(choices_.below(kCalled.size())), false);
      send(peer, request);
    });
  }
  void batch() {
    with_peer([this](StormPeer& peer) {
      json all = json::array();
      for (std::size_t left = 1 + choices_.below(5); left != 0; --left)
        all.push_back(new_call(peer, kCalled.at(choices_.below(kCalled.size())), true));
      send(peer, all);
    });
  }
  // A request of a method of the broker's own; returns its id as JSON.
  std::string ask(StormPeer& peer, std::string method, json params) {
    const json id = "own" + std::to_string(++last_id_);
    peer.calls[id.dump()] = {};
    send(peer, {{"jsonrpc", "2.0"}, {"method", std::move(method)}, {"params", std::move(params)}, {"id", id}});
    return id.dump();
  }

  json value_for(const StormPeer::Serving& serving) {
    json value{{"nonce", serving.params.is_object() ? serving.params.value("nonce", json{}) : json{}}};
    const std::size_t kind = choices_.byte();
    if ((kind & 1) != 0) value["text"] = "x\ny{\"jsonrpc\":\"2.0\",\"result\":1,\"id\":1}\n";
    if ((kind & 6) == 6) value["pad"] = std::string(kind * 10, 'v');
    if ((kind & 8) != 0) value["list"] = {1, -1, 1.5, nullptr, true, json::object()};
    return value;
  }

  void answer() {
    with_peer([this](StormPeer& peer) {
      if (peer.serving.empty()) return;
      const std::size_t at = choices_.below(peer.serving.size());
      StormPeer::Serving& serving = peer.serving[at];
      if (serving.streamed && serving.seq < 2) return send_item(peer, serving);
      json response{{"jsonrpc", "2.0"}, {"id", serving.id}};
      const std::size_t how = choices_.below(8);
      if (how == 0) {
        response["error"] = {{"code", 7}, {"message", "no\nway"}, {"data", {{"origin", "me"}, {"lines", "a\nb"}}}};
      } else {
        response["result"] = value_for(serving);
      }
      if (how == 1 && !serving.may_answer_again) {
        serving.may_answer_again = true;  // answered twice
      } else {
        peer.serving.erase(peer.serving.begin() + static_cast<std::ptrdiff_t>(at));
      }
      send(peer, response, how > 4);
    });
  }

  void item() {
    with_peer([this](StormPeer& peer) {
      if (peer.serving.empty()) return;
      StormPeer::Serving& serving = peer.serving[choices_.below(peer.serving.size())];
      if (serving.streamed) send_item(peer, serving);
    });
  }
  void send_item(StormPeer& peer, StormPeer::Serving& serving) {
    json params{{"id", serving.id}, {"seq", serving.seq++}, {"value", value_for(serving)}};
    send(peer, {{"jsonrpc", "2.0"}, {"method", "rpc.item"}, {"params", std::move(params)}}, choices_.one_in(2));
  }

  void credit() {
    with_peer([this](StormPeer& peer) {
      for (auto& [id, call] : peer.calls) {
        if (!call.streamed || choices_.one_in(2)) continue;
        const std::uint64_t more = 1 + choices_.below(4);
        call.credit += more;
        return send(peer,
                    {{"jsonrpc", "2.0"}, {"method", "rpc.credit"}, {"params", {{"id", json::parse(id)}, {"n", more}}}});
      }
    });
  }

  void cancel() {
    with_peer([this](StormPeer& peer) {
      if (peer.calls.empty() || !is_connected(peer)) return;
      auto call = std::next(peer.calls.begin(), static_cast<std::ptrdiff_t>(choices_.below(peer.calls.size())));
      call->second.cancelled = true;
      const json params{{"id", json::parse(call->first)}};
      send(peer,
           {{"jsonrpc", "2.0"}, {"method", choices_.one_in(2) ? "rpc.cancel" : "$/cancelRequest"}, {"params", params}});
    });
  }

  json event_params(const StormPeer& peer, bool retained) {
    json params{{"publisher", peer.number}, {"seq", ++last_event_}, {"text", "one\ntwo\n"}};
    if (retained) params["retained"] = true;
    return params;
  }
  void publish() {
    with_peer([this](StormPeer& peer) {
      json params{{"topic", kTopics.at(choices_.below(6))}};
      const std::size_t how = choices_.below(4);
      if (how != 0) params["params"] = event_params(peer, how != 1);
      if (how != 1) params["retain"] = true;
      ask(peer, "rpc.publish", std::move(params));
    });
  }
  void notify() {
    with_peer([this](StormPeer& peer) {
      if (!is_connected(peer)) return;
      const bool topic = choices_.one_in(2);
      const std::string name = topic ? kTopics.at(choices_.below(6)) : kCalled.at(choices_.below(kCalled.size()));
      send(peer, {{"jsonrpc", "2.0"}, {"method", name}, {"params", event_params(peer, false)}}, choices_.one_in(2));
    });
  }

  void leave() {
    with_peer([this](StormPeer& peer) {
      if (choices_.one_in(2)) return finish(peer);
      trace(peer, "<-", "reset");
      peer.wire->reset();
      abandon(peer);
    });
  }
  static void finish(StormPeer& peer) {
    if (std::exchange(peer.finished, true)) return;
    trace(peer, "<-", "end");
    peer.serving.clear();
    peer.wire->finish();
  }
  static void abandon(StormPeer& peer) {
    peer.abandoned = true;
    peer.calls.clear();
    peer.serving.clear();
  }

  void built_in() {
    static constexpr std::array<const char*, 8> kAsked{"rpc.methods", "rpc.clients",  "rpc.stats",    "rpc.ping",
                                                       "rpc.health",  "rpc.discover", "rpc.call_all", "rpc.tap"};
    with_peer([this](StormPeer& peer) {
      const std::size_t which = choices_.below(9);
      if (which == 8) {
        if (!choices_.one_in(3)) return;
        for (auto& other : peers_) other->may_be_cut = other->may_be_cut || other->named;
        ask(peer, "rpc.kick", {{"client", kNames.at(choices_.below(3))}});
      } else if (which == 7) {
        if (is_connected(peer)) ask(peer, "rpc.tap", {{"pattern", ">"}});
      } else if (which == 6) {
        ask(peer, "rpc.call_all", {{"method", "work"}, {"params", {{"nonce", 1}}}, {"timeout_ms", 200}});
      } else {
        ask(peer, kAsked.at(which), json::object());
      }
    });
  }

  void listen_to_events() {
    with_peer([this](StormPeer& peer) {
      if (peer.framing != StormFraming::http || !peer.calls.empty()) return;
      peer.events = true;
      peer.patterns.emplace_back("news.>");
      const char* const last = choices_.one_in(2) ? "&last=true" : "";
      peer.wire->send("GET /events?topic=news.%3E" + std::string{last} + " HTTP/1.1\r\nHost: localhost\r\n" +
                      authorization(peer) + "\r\n");
    });
  }

  void window() {
    with_peer([this](StormPeer& peer) {
      peer.wire->window = choices_.one_in(2) ? std::size_t{1} << 40 : choices_.byte() * std::size_t{8};
      trace(peer, "<-", "takes " + std::to_string(peer.wire->window) + " bytes");
    });
  }

  // Messages refused without an id, or fatal to the connection: their peer then expects less.
  void junk() {
    with_peer([this](StormPeer& peer) {
      if (!choices_.one_in(4)) return;
      peer.junk = peer.may_be_cut = true;
      switch (choices_.below(5)) {
        case 0:
          return send(peer, {{"jsonrpc", "2.0"}, {"id", json::array()}, {"method", "work"}});
        case 1:
          return send(peer, json::array());
        case 2:
          return send(peer, json(5));
        case 3:
          return send(peer, {{"jsonrpc", "2.0"}, {"result", 5}, {"id", 1 + choices_.byte()}});
        default:
          peer.garbled = true;
          trace(peer, "<-", "bytes that may belong to what follows");
          peer.wire->send(std::string(1 + choices_.below(4), static_cast<char>(choices_.byte())) + "\n");
      }
    });
  }

  // Bob's grants change with each reload, which closes his connections; Ada's do not.
  void reload() {
    ++reloads_;
    for (auto& peer : peers_) peer->may_be_cut = peer->may_be_cut || peer->number % 2 == 1;
    wirecall::Principal ada{.name = "ada",
                            .tokens = {"token-of-ada"},
                            .call = {">"},
                            .provide = {">"},
                            .publish = {">"},
                            .subscribe = {">"},
                            .admin = true};
    wirecall::Principal bob = ada;
    bob.name = "bob";
    bob.tokens = {"token-of-bob"};
    bob.admin = false;
    if (reloads_ % 3 == 0) bob.call = {"work"};
    std::vector<wirecall::Principal> all{ada, bob};
    if (reloads_ % 4 == 2) std::ranges::reverse(all);
    serving_->set_authority(std::make_shared<const wirecall::rpc::Authority>(std::move(all)));
  }

  // ---- what is sent ----

  [[nodiscard]] std::string authorization(const StormPeer& peer) const {
    if (!guarded_) return {};
    return std::string{"Authorization: Bearer "} + (peer.number % 2 == 0 ? "token-of-ada" : "token-of-bob") + "\r\n";
  }
  static std::string behind_length(const std::string& payload) {
    std::string bytes;
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(payload.size() >> shift & 255);
    return bytes + payload;
  }
  /// `pretty`: with line breaks between the tokens, as providers and publishers may write.
  void send(StormPeer& peer, const json& message, bool pretty = false) {
    const std::string text = message.dump(pretty ? 1 : -1);
    trace(peer, "<-", text);
    const std::string length = "Content-Length: " + std::to_string(text.size()) + "\r\n";
    switch (peer.framing) {
      case StormFraming::lines:
        return peer.wire->send(text + "\n");
      case StormFraming::headers:
        return peer.wire->send(length + "\r\n" + text);
      case StormFraming::lengths:
        return peer.wire->send(behind_length(text));
      case StormFraming::msgpack: {
        const std::vector<std::uint8_t> msgpack = json::to_msgpack(message);
        return peer.wire->send(behind_length({msgpack.begin(), msgpack.end()}));
      }
      case StormFraming::http:
        return peer.wire->send("POST /rpc HTTP/1.1\r\nHost: localhost\r\n" + authorization(peer) + length + "\r\n" +
                               text);
    }
  }

  // ---- what is received ----

  void read_all() {
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      StormPeer& peer = *peers_[i];
      peer.received += peer.wire->take();
      if (fault_ == StormFault::breaks_lines && peer.framing == StormFraming::lines && peer.received.size() > 40 &&
          ++faulty_ % 5 == 0) {
        peer.received.insert(10, "\n");
      }
      read(peer);
      // A connection that the broker closes ends its calls; other tests check when it may close one.
      if (peer.wire->closed && !std::exchange(peer.closed, true)) trace(peer, "->", "closed");
      if (peer.closed && !peer.abandoned && !peer.finished) abandon(peer);
    }
  }

  // Takes the next `bytes` received.
  static std::string taken(StormPeer& peer, std::size_t from, std::size_t bytes) {
    std::string text = peer.received.substr(from, bytes);
    peer.received.erase(0, from + bytes);
    return text;
  }
  void read(StormPeer& peer) {
    if (peer.garbled) return peer.received.clear();
    for (;;) {
      switch (peer.framing) {
        case StormFraming::lines: {
          const std::size_t end = peer.received.find('\n');
          if (end == std::string::npos) return;
          const std::string line = taken(peer, 0, end + 1);
          receive(peer, json::parse(line, nullptr, false), line);
          break;
        }
        case StormFraming::headers: {
          static constexpr std::string_view kName = "Content-Length: ";
          const std::size_t end = peer.received.find("\r\n\r\n");
          if (end == std::string::npos) return;
          if (!peer.received.starts_with(kName)) return stop_reading(peer, "header " + peer.received.substr(0, 100));
          const std::size_t bytes = std::strtoull(peer.received.c_str() + kName.size(), nullptr, 10);
          if (peer.received.size() < end + 4 + bytes) return;
          const std::string text = taken(peer, end + 4, bytes);
          receive(peer, json::parse(text, nullptr, false), text);
          break;
        }
        case StormFraming::lengths:
        case StormFraming::msgpack: {
          if (peer.received.size() < 4) return;
          std::size_t bytes = 0;
          for (std::size_t i = 0; i < 4; ++i) bytes = bytes << 8 | static_cast<unsigned char>(peer.received[i]);
          if (bytes > std::size_t{1} << 28) return stop_reading(peer, "a length of " + std::to_string(bytes));
          if (peer.received.size() < 4 + bytes) return;
          const std::string payload = taken(peer, 4, bytes);
          const bool text = payload.starts_with('{') || payload.starts_with('[');
          receive(peer, text ? json::parse(payload, nullptr, false) : json::from_msgpack(payload, true, false),
                  payload);
          break;
        }
        case StormFraming::http:
          if (!read_http(peer)) return;
      }
    }
  }
  bool read_http(StormPeer& peer) {
    if (peer.events && peer.event_number != 0) return read_events(peer);
    const std::size_t end = peer.received.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    const std::string head = peer.received.substr(0, end + 2);
    if (!head.starts_with("HTTP/1.1 ")) {
      stop_reading(peer, "head " + head);
      return false;
    }
    if (head.find("text/event-stream") != std::string::npos) {
      static_cast<void>(taken(peer, 0, end + 4));
      peer.event_number = 1;
      return true;
    }
    const std::size_t at = head.find("Content-Length: ");
    const std::size_t bytes = at == std::string::npos ? 0 : std::strtoull(head.c_str() + at + 16, nullptr, 10);
    if (peer.received.size() < end + 4 + bytes) return false;
    const std::string body = taken(peer, end + 4, bytes);
    const bool is_json = body.starts_with('{') || body.starts_with('[');
    if (is_json) receive(peer, json::parse(body, nullptr, false), body);
    return true;
  }
  bool read_events(StormPeer& peer) {
    const std::size_t end = peer.received.find('\n');
    if (end == std::string::npos) return false;
    std::string line = taken(peer, 0, end + 1);
    line.pop_back();
    if (line.starts_with("data: ")) {
      receive(peer, json::parse(line.substr(6), nullptr, false), line);
    } else if (!line.empty() && !line.starts_with("id: ") && !line.starts_with("event: ") && !line.starts_with(":")) {
      fault_at(peer, "a line that is none of an event stream's: " + line);
    }
    return true;
  }
  void stop_reading(StormPeer& peer, const std::string& why) {
    fault_at(peer, why);
    peer.received.clear();
  }

  // WIRECALL_TRACE in the environment shows the messages.
  static bool is_traced() {
    static const bool kTraced = std::getenv("WIRECALL_TRACE") != nullptr;
    return kTraced;
  }
  static void trace(const StormPeer& peer, const char* way, const std::string& text) {
    if (is_traced())
      std::fprintf(stderr, "%zu/%d %s %s\n", peer.number, static_cast<int>(peer.framing), way, text.c_str());
  }
  void receive(StormPeer& peer, const json& message, const std::string& text) {
    trace(peer, "->", peer.framing == StormFraming::msgpack ? message.dump() : text);
    if (message.is_discarded()) return fault_at(peer, "received what is no message: " + text.substr(0, 200));
    if (message.is_array()) {
      if (message.empty()) fault_at(peer, "received an empty array");
      for (const json& one : message) receive_one(peer, one);
    } else {
      receive_one(peer, message);
    }
  }
  void receive_one(StormPeer& peer, const json& message) {
    if (!message.is_object()) return fault_at(peer, "received " + message.dump());
    if (message.contains("method")) {
      const std::string method = message["method"];
      if (!message.contains("id")) return notified(peer, method, message.value("params", json{}));
      if (method == "rpc.ping") {
        if (!peer.finished) send(peer, {{"jsonrpc", "2.0"}, {"result", "pong"}, {"id", message["id"]}});
        return;
      }
      peer.serving.push_back(
          {.id = message["id"], .params = message.value("params", json{}), .streamed = message.contains("stream")});
      return;
    }
    StormPeer* whom = &peer;
    if (fault_ == StormFault::loses && message["id"].is_number() && ++faulty_ % 2 == 0) return;
    if (fault_ == StormFault::swaps && message["id"].is_number() && ++faulty_ % 5 == 0) {
      whom = peers_[(peer.number + 1) % peers_.size()].get();
    }
    outcome(*whom, message);
    if (fault_ == StormFault::doubles && message["id"].is_number() && ++faulty_ % 5 == 0) outcome(*whom, message);
  }

  void outcome(StormPeer& peer, const json& message) {
    if (!message.contains("id") || message.contains("result") == message.contains("error"))
      return fault_at(peer, "received a response that is none: " + message.dump());
    if (peer.abandoned) return;
    const std::string id = message["id"].dump();
    const auto call = peer.calls.find(id);
    // A message over its limit is answered without its id, and the connection closed.
    if (message["id"].is_null() && message.contains("error") && message["error"]["code"] == -32006) {
      peer.may_be_cut = true;
      return;
    }
    if (message["id"].is_null() && (peer.junk || peer.may_be_cut)) return;
    if (call == peer.calls.end()) {
      if (!peer.junk) fault_at(peer, "nobody waits for " + message.dump().substr(0, 300));
      return;
    }
    if (message.contains("error")) {
      ++errors_;
      if (!message["error"].value("code", json{}).is_number_integer())
        fault_at(peer, "an error without code: " + message.dump());
    } else {
      ++results_;
      if (id == peer.hello_id && message["result"].is_object()) peer.session = message["result"].value("session", "");
      if (call->second.nonce != 0) check_nonce(peer, message["result"], call->second.nonce);
    }
    peer.calls.erase(call);
  }
  void check_nonce(StormPeer& peer, const json& result, std::uint64_t nonce) {
    if (result.is_array()) {
      for (const json& one : result) check_nonce(peer, one, nonce);
    } else if (result.is_number() ? result != nonce : result.is_object() && result.value("nonce", json{}) != nonce) {
      fault_at(peer,
               "the answer is to another call: " + result.dump().substr(0, 200) + ", not " + std::to_string(nonce));
    }
  }

  void notified(StormPeer& peer, const std::string& method, const json& params) {
    if (method == "rpc.item") {
      const auto call = peer.calls.find(params["id"].dump());
      if (call == peer.calls.end()) {
        if (!peer.abandoned) fault_at(peer, "an item that nobody waits for: " + params.dump());
        return;
      }
      ++items_;
      StormPeer::Asked& asked = call->second;
      if (params["seq"] != asked.items) fault_at(peer, "item out of order: " + params.dump());
      if (++asked.items > asked.credit) fault_at(peer, "item without credit: " + params.dump());
      return check_nonce(peer, params["value"], asked.nonce);
    }
    if (method == "$/cancelRequest") {
      if (params.contains("id")) std::erase_if(peer.serving, [&](const auto& one) { return one.id == params["id"]; });
      return;
    }
    if (!params.is_object() || !params.contains("publisher")) return;
    const bool topic = std::ranges::find(kTopics, method) != kTopics.end();
    if (topic && std::ranges::none_of(peer.patterns, [&](const std::string& one) { return matches(one, method); }))
      return fault_at(peer, "an event that it has not subscribed to: " + method);
    ++events_;
    if (params.contains("retained")) return;
    std::uint64_t& last = peer.event_seq[params["publisher"].get<std::uint64_t>()];
    if (params["seq"] <= last) fault_at(peer, "an event twice or out of order: " + params.dump());
    last = params["seq"];
  }

  static bool matches(std::string_view pattern, std::string_view topic) {
    for (;;) {
      if (pattern == ">") return !topic.empty();
      const std::string_view word = pattern.substr(0, pattern.find('.'));
      const std::string_view other = topic.substr(0, topic.find('.'));
      if (word != "*" && word != other) return false;
      const bool pattern_ends = word.size() == pattern.size();
      const bool topic_ends = other.size() == topic.size();
      if (pattern_ends || topic_ends) return pattern_ends && topic_ends;
      pattern.remove_prefix(word.size() + 1);
      topic.remove_prefix(other.size() + 1);
    }
  }

  void note_missing(const StormPeer& peer) {
    for (const auto& [id, call] : peer.calls)
      fault_at(peer, "has closed in order, and its call " + id + " has no outcome");
  }
  void fault_at(const StormPeer& peer, const std::string& what) {
    faults_.push_back("peer " + std::to_string(peer.number) + ", framing " +
                      std::to_string(static_cast<int>(peer.framing)) + ": " + what);
  }
  [[nodiscard]] bool fault_now() const { return faults_.size() > 20; }

  Choices choices_;
  StormFault fault_;
  wirecall::runtime::SimulatedBackend* backend_ = nullptr;
  wirecall::session::ServingLoop* serving_ = nullptr;
  std::vector<std::unique_ptr<StormPeer>> peers_;
  std::vector<std::string> faults_;
  std::uint64_t last_id_ = 0;
  std::uint64_t last_event_ = 0;
  std::size_t results_ = 0;
  std::size_t errors_ = 0;
  std::size_t events_ = 0;
  std::size_t items_ = 0;
  std::size_t faulty_ = 0;
  std::size_t reloads_ = 0;
  int pause_ = 0;
  int settling_ = 0;
  bool guarded_ = false;
  bool draining_ = false;
  bool pass_time_ = false;
};

}  // namespace fuzz
