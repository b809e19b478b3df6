// BrokerStorm: one broker on the simulated backend and its peers, driven by an input of bytes: each byte chooses the
// next action. Peers of all framings call, stream, cancel, register, subscribe, publish, answer, resume, read slowly,
// and close half or all of their connection; principals are reloaded, and the broker drains. Its model
// (storm_model.hpp) keeps the answers due and lists each violation: an answer without a call, or another peer's; an
// item or event out of order; a line that is no JSON value; a call without an outcome; state that the broker keeps
// after all have gone. One thread. fuzz/broker.cpp drives it by libFuzzer, tests/server/broker_storm_test.cpp by seeds.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
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
#include "fuzz/storm_actions.hpp"
#include "fuzz/storm_model.hpp"
#include "fuzz/storm_peer.hpp"
#include "http/browser_access.hpp"
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

class BrokerStorm {
 public:
  explicit BrokerStorm(std::span<const std::uint8_t> input, StormFault fault = StormFault::none)
      : choices_(input), model_(peers_, fault) {}
  BrokerStorm(BrokerStorm&&) = delete;

  /// The violations, a line each; empty without any. Call it once.
  const std::vector<std::string>& run() {
    const unsigned seed = choices_.byte();
    const std::uint8_t flags = choices_.byte();
    guarded_ = actions_.guarded = (flags & 1) != 0;
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
    message_max_ = options.limits.max_message_size;
    if (is_traced()) {
      options.log_level = wirecall::LogLevel::debug;
      options.log = [](const wirecall::LogRecord& record) {
        std::fprintf(stderr, "%s\n", wirecall::format_log(wirecall::LogFormat::human, record).c_str());
      };
    }
    wirecall::Registry registry;
    add_own(registry);
    const wirecall::net::HttpSettings http;
    wirecall::net::ServerShared shared{
        .options = options, .registry = registry, .http = http, .make_broker = wirecall::net::broker_factory(options)};
    backend_ = new wirecall::runtime::SimulatedBackend{seed};
    wirecall::net::ServingLoop serving{std::unique_ptr<wirecall::runtime::Backend>{backend_}, shared};
    serving_ = &serving;
    if (guarded_) reload();

    serving.run([this] { return !step(); },
                [this] {
                  model_.read_all();
                  for (auto& peer : peers_) peer->wire->window = std::size_t{1} << 40;
                  return false;
                });
    model_.read_all();
    for (const auto& peer : peers_) {
      if (!peer->wire->closed) model_.fault_at(*peer, "is still open in the end");
      if (!peer->abandoned && !peer->garbled && !peer->may_be_cut) model_.note_missing(*peer);
    }
    const wirecall::Stats stats = serving.stats();
    if (stats.connections_open != 0) model_.faults.emplace_back("connections are counted as open");
    if (stats.calls_in_flight != 0) model_.faults.push_back("in flight: " + std::to_string(stats.calls_in_flight));
    const auto& router = static_cast<const wirecall::broker::Router&>(*serving.broker());
    if (router.relayed_calls().in_use() != 0) model_.faults.emplace_back("relayed calls are left");
    if (router.methods().size() != 0) model_.faults.emplace_back("provided methods are left");
    if (router.context().peers.next(0) != nullptr) model_.faults.emplace_back("peers are left");
    return model_.faults;
  }
  [[nodiscard]] std::size_t results() const { return model_.results; }
  [[nodiscard]] std::size_t errors() const { return model_.errors; }
  [[nodiscard]] std::size_t events() const { return model_.events; }
  [[nodiscard]] std::size_t items() const { return model_.items; }

 private:
  static constexpr std::size_t kPeers = 12;
  static constexpr int kSettlingTurns = 400;
  static constexpr int kPartingTurns = 4000;
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
    if (model_.faults.size() > 20) return false;
    model_.read_all();
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
          if (!call.streamed) model_.fault_at(*peer, "waits in vain for " + id);
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
      case 1: return open();
      case 2: return actions_.hello();
      case 3:
      case 4: return actions_.register_methods();
      case 5: return actions_.unregister();
      case 6:
      case 7: return actions_.subscribe();
      case 8: return actions_.unsubscribe();
      case 9:
      case 10:
      case 11: return actions_.call();
      case 12: return actions_.batch();
      case 13:
      case 14:
      case 15: return actions_.answer();
      case 16: return actions_.item();
      case 17: return actions_.credit();
      case 18: return actions_.cancel();
      case 19: return actions_.publish();
      case 20: return actions_.notify();
      case 21: return actions_.leave();
      case 22: return actions_.built_in();
      case 23: pass_time_ = true; return;
      case 24: pause_ = static_cast<int>(choices_.below(16)); return;
      case 25: return actions_.window();
      case 26: return rare();
      default: return actions_.junk();
    }
  }

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
    peer->message_max = message_max_;
    if (guarded_) peer->authorization = std::string{"Authorization: Bearer "} + StormActions::token_of(*peer) + "\r\n";
    if (framing == StormFraming::websocket) peer->wire->send(kWebSocketHandshake);
    peers_.push_back(std::move(peer));
    if (guarded_ && StormActions::is_connected(*peers_.back())) actions_.say_hello(*peers_.back(), json::object());
  }

  void rare() {
    switch (choices_.below(6)) {
      case 0:
        if (guarded_) reload();
        return;
      case 1:
        if (choices_.one_in(40)) draining_ = true;
        return;
      case 2: return actions_.listen_to_events();
      case 3:
        if (!choices_.one_in(40)) return;
        // The broker closes connections that have not said enough in that time.
        for (auto& peer : peers_) peer->may_be_cut = true;
        return backend_->take_time(std::chrono::seconds{31});
      default: backend_->take_time(std::chrono::milliseconds{choices_.byte()});
    }
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

  Choices choices_;
  wirecall::runtime::SimulatedBackend* backend_ = nullptr;
  wirecall::net::ServingLoop* serving_ = nullptr;
  StormModel::Peers peers_;
  StormModel model_;
  StormActions actions_{choices_, peers_};
  std::size_t message_max_ = 0;
  std::size_t reloads_ = 0;
  int pause_ = 0;
  int settling_ = 0;
  bool guarded_ = false;
  bool draining_ = false;
  bool pass_time_ = false;
};

}  // namespace fuzz
