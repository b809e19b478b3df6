// StormModel: what is due to the peers of the broker's storm (broker_storm.hpp): it reads what they have received, and
// lists whatever contradicts it. One thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/storm_peer.hpp"

namespace fuzz {

/// Faults injected between the broker and its peers, to check that the model notices them.
enum class StormFault : std::uint8_t { none, loses, doubles, swaps, breaks_lines };

class StormModel {
 public:
  static constexpr std::array<const char*, 6> kTopics{"news.a", "news.b", "news.a.b", "other", "news.c.d", "other.x"};

  using Peers = std::vector<std::unique_ptr<StormPeer>>;
  /// `peers` outlive it.
  StormModel(Peers& peers, StormFault fault) : peers_(peers), fault_(fault) {}

  void read_all() {
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      StormPeer& peer = *peers_[i];
      peer.received += peer.wire->take();
      if (fault_ == StormFault::breaks_lines && peer.framing == StormFraming::lines && peer.received.size() > 40 &&
          ++faulty_ % 5 == 0) {
        peer.received.insert(10, "\n");
      }
      read(peer, *this);
      // A connection that the broker closes ends its calls; other tests check when it may close one.
      if (peer.wire->closed && !std::exchange(peer.closed, true)) trace(peer, "->", "closed");
      if (peer.closed && !peer.abandoned && !peer.finished) abandon(peer);
    }
  }

  void receive(StormPeer& peer, const json& message, const std::string& text) {
    trace(peer, "->", is_binary(peer.framing) ? message.dump() : text);
    if (message.is_discarded()) return fault_at(peer, "received what is no message: " + text.substr(0, 200));
    if (message.is_array()) {
      if (message.empty()) fault_at(peer, "received an empty array");
      for (const json& one : message) receive_one(peer, one);
    } else {
      receive_one(peer, message);
    }
  }

  void note_missing(const StormPeer& peer) {
    for (const auto& [id, call] : peer.calls)
      fault_at(peer, "has closed in order, and its call " + id + " has no outcome");
  }
  void fault_at(const StormPeer& peer, const std::string& what) {
    faults.push_back("peer " + std::to_string(peer.number) + ", framing " +
                     std::to_string(static_cast<int>(peer.framing)) + ": " + what);
  }

  std::vector<std::string> faults;
  std::size_t results = 0;
  std::size_t errors = 0;
  std::size_t events = 0;
  std::size_t items = 0;

 private:
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
      ++errors;
      if (!message["error"].value("code", json{}).is_number_integer())
        fault_at(peer, "an error without code: " + message.dump());
    } else {
      ++results;
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
      ++items;
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
    ++events;
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

  Peers& peers_;
  StormFault fault_;
  std::size_t faulty_ = 0;
};

}  // namespace fuzz
