// StormActions: what the peers of the broker's storm (broker_storm.hpp) do, each chosen by the input's next bytes. One
// thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/storm_model.hpp"
#include "fuzz/storm_peer.hpp"

namespace fuzz {

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

class StormActions {
 public:
  /// Both outlive it.
  StormActions(Choices& choices, StormModel::Peers& peers) : choices_(choices), peers_(peers) {}

  template <class F>
  void with_peer(const F& act) {
    if (peers_.empty()) return;
    StormPeer& peer = *peers_[choices_.below(peers_.size())];
    if (!peer.finished && !peer.abandoned && !peer.wire->closed && !peer.events) act(peer);
  }
  static bool is_connected(const StormPeer& peer) { return peer.framing != StormFraming::http; }

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
  static const char* token_of(const StormPeer& peer) { return peer.number % 2 == 0 ? "token-of-ada" : "token-of-bob"; }
  void say_hello(StormPeer& peer, json params) {
    if (guarded) params["token"] = token_of(peer);
    peer.hello_id = ask(peer, "rpc.hello", std::move(params));
  }

  void unregister() {
    with_peer([this](StormPeer& peer) {
      if (is_connected(peer)) ask(peer, "rpc.unregister", {{"method", kMethods.at(choices_.below(6))}});
    });
  }
  void unsubscribe() {
    with_peer([this](StormPeer& peer) {
      if (is_connected(peer)) ask(peer, "rpc.unsubscribe", {{"topic", kPatterns.at(choices_.below(6))}});
    });
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
      json params{{"topic", StormModel::kTopics.at(choices_.below(6))}};
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
      const std::string name =
          topic ? StormModel::kTopics.at(choices_.below(6)) : kCalled.at(choices_.below(kCalled.size()));
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
                      peer.authorization + "\r\n");
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
      const std::size_t which = choices_.below(5);
      const json id = 1 + choices_.byte();
      // The peer may answer a call that it has received, or that is on the way to it.
      const bool may_be_asked = std::ranges::find(peer.serving, id, &StormPeer::Serving::id) != peer.serving.end() ||
                                peer.wire->window < (std::size_t{1} << 40);
      if (which == 3 && may_be_asked) return;
      peer.junk = peer.may_be_cut = true;
      switch (which) {
        case 0: return send(peer, {{"jsonrpc", "2.0"}, {"id", json::array()}, {"method", "work"}});
        case 1: return send(peer, json::array());
        case 2: return send(peer, json(5));
        case 3: return send(peer, {{"jsonrpc", "2.0"}, {"result", 5}, {"id", id}});
        default:
          peer.garbled = true;
          trace(peer, "<-", "bytes that may belong to what follows");
          peer.wire->send(std::string(1 + choices_.below(4), static_cast<char>(choices_.byte())) + "\n");
      }
    });
  }

  bool guarded = false;  ///< peers have to say who they are

 private:
  static constexpr std::array<const char*, 6> kMethods{"work", "work.b", "gpu.>", "gpu.add", "own.echo", "hold"};
  static constexpr std::array<const char*, 9> kCalled{"work", "work.b",    "gpu.mul",   "gpu.add", "own.echo",
                                                      "hold", "own.later", "own.count", "no.such"};
  static constexpr std::array<const char*, 6> kPatterns{"news.a", "news.*", "news.>", ">", "*.a.*", "other"};
  static constexpr std::array<const char*, 3> kNames{"ada", "bob", "worker"};

  Choices& choices_;
  StormModel::Peers& peers_;
  std::uint64_t last_id_ = 0;
  std::uint64_t last_event_ = 0;
};

}  // namespace fuzz
