// Router: the broker of one loop. It knows the peers of the loop's connections, and joins the parts by which they
// provide methods for each other, call these, and publish. Dispatchers ask it by its peers (rpc/broker.hpp), the
// broker's own methods ask its parts (methods.cpp), and it sends by the peers' sinks. Each part knows those above it
// only. One thread (the loop's). Implements docs/broker.md.
#pragma once

#include <functional>

#include "broker/announcer.hpp"
#include "broker/answers.hpp"
#include "broker/call_all.hpp"
#include "broker/call_ledger.hpp"
#include "broker/context.hpp"
#include "broker/departures.hpp"
#include "broker/durable_topics.hpp"
#include "broker/event_bus.hpp"
#include "broker/event_delivery.hpp"
#include "broker/exclusive_leases.hpp"
#include "broker/fan_outs.hpp"
#include "broker/inputs.hpp"
#include "broker/inventory.hpp"
#include "broker/linked_broker.hpp"
#include "broker/method_table.hpp"
#include "broker/peer_table.hpp"
#include "broker/registrar.hpp"
#include "broker/relay.hpp"
#include "broker/request_writer.hpp"
#include "broker/retained_sender.hpp"
#include "broker/sessions.hpp"
#include "broker/streams.hpp"
#include "broker/subscription_relay.hpp"
#include "broker/subscriptions.hpp"
#include "broker/tap_feed.hpp"
#include "broker/work_queues.hpp"
#include "rpc/broker.hpp"
#include "rpc/dispatcher.hpp"
#include "wirecall/bytes.hpp"

namespace wirecall::broker {

/// Drops what is sent to a peer whose connection has gone, as long as work of that peer is left.
class NullSink final : public rpc::MessageSink {
 public:
  Buffer& open_message() override { return text_; }
  void close_message() override { text_.release(); }
  void discard_message() noexcept override { text_.release(); }

 private:
  Buffer text_;
};

class Router final : public rpc::Broker {
 public:
  /// All referred to outlive it. `own` are the methods of the process itself, whose names nobody else may have.
  /// `store` is null where nothing outlives the process.
  Router(const Registry& own, const Limits& limits, rpc::LoopContext& loop_context, const Settings& settings = {},
         std::unique_ptr<durable::Store> store = nullptr);
  ~Router() override;

  [[nodiscard]] rpc::JoinedPeer attach_peer(rpc::MessageSink& sink, std::shared_ptr<rpc::PeerLoad> load) override;
  [[nodiscard]] bool next_method(std::string_view after, const Principal* asker,
                                 rpc::DescribedMethod& method) const override {
    return inventory_.next_method(after, asker, method);
  }
  void drain() noexcept override {
    draining_ = true;
    durable_topics_.drain();
    work_queues_.drain();
    if (context_.realm) context_.realm->drain();
  }
  [[nodiscard]] bool settle() noexcept override;
  [[nodiscard]] std::string hand_over() override;
  void replaced() noexcept override;
  void stay() noexcept override;
  void open_store() override;
  void link_to_successor(rpc::BrokerPeer& link) override;
  void nobody_left() noexcept override;
  void take_over(std::string_view state, rpc::BrokerPeer& link) override;
  [[nodiscard]] std::string_view degraded() const noexcept override {
    return context_.realm && context_.realm->is_degraded() ? "the other brokers cannot be reached" : std::string_view{};
  }
  [[nodiscard]] bool busy() const noexcept override { return context_.realm && context_.realm->busy(); }
  [[nodiscard]] std::unique_ptr<rpc::Rendering> metrics(rpc::Asker asker) const override {
    return inventory_.tell_metrics(std::move(asker));
  }
  [[nodiscard]] rpc::RetainedPosition retained_position() override;
  [[nodiscard]] Subscriptions& topics() noexcept { return context_.topics; }
  using OpenStore = std::move_only_function<std::unique_ptr<durable::Store>()>;
  /// It is given no store yet, but opens one that way when it takes over.
  void open_store_by(OpenStore open) { open_ = std::move(open); }
  /// The broker belongs to a cluster from now on. Once.
  void join(std::unique_ptr<Realm> realm) { context_.realm = std::move(realm); }
  void count_by(std::function<Stats()> counters) override { inventory_.count_by(std::move(counters)); }
  [[nodiscard]] bool is_draining() const noexcept { return draining_; }
  /// Another process has taken over.
  [[nodiscard]] bool is_replaced() const noexcept { return replaced_; }
  /// It has, and events still go there and come from there.
  [[nodiscard]] bool is_linked_to_successor() const noexcept {
    return !draining_ && std::ranges::any_of(links_, [](const auto& link) { return !link->is_predecessor(); });
  }
  /// The peer is asked nothing new; false while calls wait for it.
  [[nodiscard]] bool release(Peer& peer) noexcept;

  /// The peer's connection has gone; so it goes, in this turn or a later one.
  void forget(Peer& peer) noexcept;
  /// The peer has taken most of what waited for it: its streams go on, and it is told of the events it has lost.
  void on_writable(Peer& peer);
  /// Where what is for a peer goes that has left.
  [[nodiscard]] rpc::MessageSink& null_sink() noexcept { return null_sink_; }

  [[nodiscard]] const BrokerContext& context() const noexcept { return context_; }
  [[nodiscard]] OperationsLog& log() noexcept { return context_.log; }
  [[nodiscard]] const MethodTable& methods() const noexcept { return context_.methods; }
  [[nodiscard]] TapFeed& tap_feed() noexcept { return tap_feed_; }
  [[nodiscard]] EventBus& events() noexcept { return events_; }
  [[nodiscard]] DurableTopics& durable_topics() noexcept { return durable_topics_; }
  [[nodiscard]] WorkQueues& work_queues() noexcept { return work_queues_; }
  [[nodiscard]] ExclusiveLeases& leases() noexcept { return leases_; }
  [[nodiscard]] RetainedSender& retained() noexcept { return retained_; }
  [[nodiscard]] const CallLedger& relayed_calls() const noexcept { return calls_; }
  [[nodiscard]] SubscriptionRelay& subscriptions() noexcept { return subscriptions_; }
  [[nodiscard]] Relay& relay() noexcept { return relay_; }
  [[nodiscard]] Inputs& inputs() noexcept { return inputs_; }
  [[nodiscard]] Streams& streams() noexcept { return streams_; }
  [[nodiscard]] const CallAll& call_all() const noexcept { return call_all_; }
  [[nodiscard]] Departures& departures() noexcept { return departures_; }
  [[nodiscard]] Registrar& registrar() noexcept { return registrar_; }
  [[nodiscard]] Sessions& sessions() noexcept { return sessions_; }
  [[nodiscard]] const Inventory& inventory() const noexcept { return inventory_; }
  /// Steps that have been spent on retained events, and on matching events with patterns, since the beginning.
  [[nodiscard]] std::uint64_t event_steps() const noexcept { return events_.steps() + retained_.steps(); }

 private:
  LinkedBroker& link(Peer& peer, bool predecessor);

  BrokerContext context_;
  std::unique_ptr<durable::Store> store_;  // it tells nobody any more once it has gone
  OpenStore open_;                         // that of a broker that is to take over; null for none
  NullSink null_sink_;
  std::string epoch_;  // of the numbers of what is retained; empty before anybody asks
  bool draining_ = false;
  bool replaced_ = false;
  Inventory inventory_{context_};

  TapFeed tap_feed_{context_, tapped_};
  FanOuts fan_outs_{context_};
  EventBus events_{context_, fan_outs_, tap_feed_};
  RetainedSender retained_{context_, events_.retained()};
  Announcer announcer_{context_, events_, fan_outs_, tap_feed_};
  DurableTopics durable_topics_{context_, events_, store_.get(), context_.settings.durable_patterns};

  CallLedger calls_{context_, [this](SlotNumber slot) { relay_.run_out(slot); }};
  RequestWriter writer_{context_, calls_};
  SubscriptionRelay subscriptions_{context_, calls_, writer_, tap_feed_};
  Answers answers_{context_, calls_, subscriptions_, tap_feed_};
  Relay relay_{context_, {calls_, writer_, answers_, subscriptions_, tap_feed_}};
  Streams streams_{context_, calls_, relay_};
  Inputs inputs_{context_, calls_, relay_};
  CallAll call_all_{context_, calls_, relay_, tap_feed_};

  Departures departures_{{context_, subscriptions_, calls_, relay_, streams_, inputs_, tap_feed_, announcer_}};
  Registrar registrar_{context_, {relay_, subscriptions_}, departures_, announcer_};
  Sessions sessions_{context_, relay_, departures_, announcer_};
  ExclusiveLeases leases_{context_, registrar_, store_.get()};
  WorkQueues work_queues_{context_, durable_topics_, store_.get()};
  std::vector<LinkedTopic> handed_topics_;  // that the broker has been told which takes over
  std::set<std::string> handed_methods_;    // likewise
  std::vector<std::unique_ptr<LinkedBroker>> links_;
};

}  // namespace wirecall::broker
