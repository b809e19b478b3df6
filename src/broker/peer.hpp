// Peer: one connection as the router knows it: its name, what it provides, and the calls it has made that others
// work on. Owned by the connection's dispatcher. One thread.
#pragma once

#include <limits>

#include "broker/method_subscriptions.hpp"
#include "broker/realm.hpp"
#include "broker/relayed_calls.hpp"
#include "broker/retained.hpp"
#include "broker/subscriptions.hpp"
#include "rpc/broker.hpp"
#include "rpc/dispatcher.hpp"

namespace wirecall::broker {

class LinkedBroker;
class Router;
struct Provider;

/// Events of one topic that a peer has lost, since it took too little.
struct Lag {
  std::string topic;
  std::uint64_t dropped = 0;
};

class Peer final : public rpc::BrokerPeer {
 public:
  enum class State : std::uint8_t {
    open,
    ended,  ///< says nothing any more
    left,   ///< its connection has gone, too: the router owns it
  };

  Peer(Router& router, rpc::MessageSink& sink, std::shared_ptr<rpc::PeerLoad> load);
  Peer(Peer&&) = delete;
  void leave() noexcept override;

  [[nodiscard]] const Method* find(std::string_view name, const Received& message) override;
  [[nodiscard]] std::string_view nearest(std::string_view name) const override;
  [[nodiscard]] const rpc::ReservedMethod* find_reserved(std::string_view name) const noexcept override;
  void identify(const Principal* shown) noexcept override { principal = shown; }
  [[nodiscard]] const std::string& name_given() const noexcept override { return name; }
  rpc::HelloResult hello(std::string_view name, std::string_view resume) override;
  [[nodiscard]] bool takes_encoded(const Received& message) const noexcept override;
  [[nodiscard]] bool response(const Received& message) override;
  [[nodiscard]] bool awaits_responses() const noexcept override { return !provides.empty() || consumers != 0; }
  [[nodiscard]] bool provides_any() const noexcept override { return !provides.empty(); }
  [[nodiscard]] bool subscribes_any() const noexcept override {
    return linked != nullptr || topics.count() != 0 || method_subscriptions != 0 || consumers != 0 || taps;
  }
  void notified(const Received& message, std::string_view name) override;
  void tapped(Call& call, std::string_view name) override;
  void refused(std::string_view method, EncodedText params, const Error& error) noexcept override;
  void not_granted(std::string_view method) noexcept override;
  void on_writable() override;
  [[nodiscard]] std::shared_ptr<rpc::Rendering> take_answer() noexcept override;
  void reserved_answered() override;
  std::size_t cancel(std::string_view id_json) override;
  bool grant(std::string_view id_json, std::uint64_t more) override;
  [[nodiscard]] std::size_t in_flight() const noexcept override { return calls_made; }
  bool shed_call() noexcept override;
  void end_calls(const Error& error) noexcept override;
  void limit_calls(std::size_t kept, std::chrono::nanoseconds until, const Error& error) noexcept override;
  [[nodiscard]] bool release() noexcept override;
  [[nodiscard]] bool is_replaced() const noexcept override;
  void peer_ended() noexcept override;

  [[nodiscard]] Router& router() const noexcept { return *router_; }
  [[nodiscard]] rpc::MessageSink& sink() const noexcept { return *sink_; }
  [[nodiscard]] rpc::PeerLoad& load() const noexcept { return *load_; }
  [[nodiscard]] const std::shared_ptr<rpc::PeerLoad>& shared_load() const noexcept override { return load_; }
  [[nodiscard]] bool has_ended() const noexcept { return state != State::open; }
  [[nodiscard]] bool has_left() const noexcept { return state == State::left; }
  /// Empty where nobody has to say who he is.
  [[nodiscard]] std::string_view principal_name() const noexcept {
    return principal != nullptr ? std::string_view{principal->name} : std::string_view{};
  }
  /// What it is sent next belongs to a call of `caller`'s.
  void begin_part(const Peer& caller) const noexcept {
    if (node != nullptr) [[unlikely]]
      node->begin_part(caller.principal_name());
  }
  void has_run_out() noexcept { overdue += overdue != std::numeric_limits<std::uint16_t>::max() ? 1 : 0; }
  /// Whether events are sent to it, not dropped. One that has lost some while it was congested loses all until there is
  /// room again.
  [[nodiscard]] bool takes_events() { return !(lag && congested) && !is_sent_retained() && !sink_->is_overfull(); }
  /// Whether what is retained is still being sent, as it takes it.
  [[nodiscard]] bool is_sent_retained() const noexcept {
    return retained != nullptr && (!retained->due.empty() || !retained->held.empty());
  }
  /// Whether so much waits for it that what is not for it alone goes elsewhere, or waits: until there is room again.
  [[nodiscard]] bool is_congested() {
    if (!congested && sink_->is_overfull()) congested = true;
    return congested;
  }

  [[nodiscard]] std::string name_json() const;
  /// Remembers for the log how much it had.
  void keep_last() noexcept;

  // The router's.

  Subscriber topics{this};                  ///< what it subscribes to
  std::uint64_t number = 0;                 ///< larger than those of all connections before it
  std::uint64_t session = 0;                ///< the same once rpc.hello has begun one; else 0
  const Principal* principal = nullptr;     ///< null where nobody has to say who he is
  std::string name;                         ///< empty before rpc.hello has given one
  std::chrono::nanoseconds connected_at{};  ///< when, by Scheduler::now
  rpc::ConnectionCounts counts;             ///< since then
  std::vector<Provider*> provides;
  RelayedCalls::List calls;                ///< that are answered by a message to this peer
  std::uint32_t calls_made = 0;            ///< how many these are
  std::uint32_t streams = 0;               ///< of these, how many are asked for their results as they come
  std::uint32_t method_subscriptions = 0;  ///< to methods, as their caller
  std::uint32_t consumers = 0;             ///< of durable topics, which it has joined, or is about to
  std::size_t consumed_bytes = 0;          ///< of their events that it has been sent and not answered
  CallsById calls_by_id;
  std::shared_ptr<SubscriptionPeer>
      subscribed;                              ///< what its subscriptions to methods know it by; null before the first
  std::unique_ptr<SubscriptionSource> source;  ///< null where it has declared no method to subscribe by
  std::unique_ptr<std::vector<Lag>> lag;       ///< null where nothing was lost
  std::uint64_t last_event = 0;                ///< the last event that was for this peer
  std::unique_ptr<RetainedRequests> retained;  ///< null for nothing
  rpc::RetainedReader* retained_reader = nullptr;  ///< of the sink, once it subscribes; null for none
  RemoteNode* node = nullptr;                      ///< that it speaks for, as long as that is there; null for a client
  LinkedBroker* linked = nullptr;                  ///< that it is the connection to; null for a client
  State state = State::open;
  LostBy lost_by = LostBy::provider;     ///< why its calls end once it has ended
  bool of_node : 1 = false;              ///< it speaks for another broker, or has
  bool taps : 1 = false;                 ///< looks on (TapFeed)
  bool took_part : 1 = false;            ///< has provided, or subscribed to, anything
  bool leaves : 1 = false;               ///< what it leaves undone is being done (Departures)
  bool congested : 1 = false;            ///< until there is room: nothing overtakes what waits
  bool tells_itself : 1 = false;         ///< the other broker tells of its methods, as long as it is there
  bool calls_here : 1 = false;           ///< what it calls is served by this broker's clients alone
  std::uint16_t overdue = 0;             ///< calls that have run out of time there since it has answered any
  std::size_t described_bytes = 0;       ///< of the routes whose first provider it is
  std::uint32_t methods_last = 0;        ///< that it provided until it ended
  std::uint32_t subscriptions_last = 0;  ///< likewise

 private:
  Router* router_;
  rpc::MessageSink* sink_;
  std::shared_ptr<rpc::PeerLoad> load_;
};

}  // namespace wirecall::broker
