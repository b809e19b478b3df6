// LinkedBroker: the broker of the process that this one has taken over from, or that has taken over from this one, as
// long as both serve (Router::hand_over). Over the connection between them, which is a peer of each, each tells the
// other what is subscribed to on its side, is sent these events, and is told what is retained anew. The one that has
// taken over tells what its clients provide, which the other's clients call. Nothing that comes from a linked broker
// goes back to it. Owned by the Router; the peer outlives it. One thread.
//
// They speak JSON-RPC, as with anybody. A notification is an event, but for these, and for one behind
// rpc.linked.notify, which is for the provider of its method:
//   rpc.linked.topics {"topic": "orders.>", "groups": ["", "billing"]}   who subscribes to it, "" for those in no group
//   rpc.linked.retain {"topic": …, "owner": …, "client": …, "kept": true}  the next notification is retained, and no
//                                                                          event; with false none is any more
//   rpc.linked.method {"name": "work", "provided": true, …}              a client provides it; with false none does,
//                                                                          and none is on its way to the other side
//   rpc.linked.alone                                                     no client is left on that side
#pragma once

#include <map>
#include <set>

#include "broker/context.hpp"
#include "broker/event_bus.hpp"
#include "broker/registrar.hpp"

namespace wirecall::broker {

/// As a broker tells it.
struct LinkedTopic {
  std::string topic;
  std::vector<std::string> groups;  ///< "" for those in no group; none: nobody subscribes to it any more
};
struct LinkedValue {
  std::string topic;
  std::string owner;
  std::string client;
  bool kept = false;
};

struct LinkedMethod {
  std::string name;
  std::string summary;
  std::string params_schema;
  std::string result_schema;
  std::string input_schema;
  bool safe = false;
  bool provided = true;

  [[nodiscard]] static LinkedMethod of(const Route& route);
  [[nodiscard]] Registration registration() &&;
};

class LinkedBroker final : private SubscriptionWatcher, private Timer {
 public:
  /// That clients which have left the other side for this one have to come, since one has come last.
  static constexpr std::chrono::seconds kReturnTime{3};

  /// All referred to outlive it.
  LinkedBroker(BrokerContext& context, EventBus& events, Registrar& registrar, Peer& peer, bool predecessor);
  ~LinkedBroker();
  LinkedBroker(LinkedBroker&&) = delete;

  [[nodiscard]] Peer& peer() const noexcept { return *peer_; }
  /// This process has taken over from that one.
  [[nodiscard]] bool is_predecessor() const noexcept { return predecessor_; }
  /// All that is subscribed to, by others than `but`.
  [[nodiscard]] static std::vector<LinkedTopic> topics(const BrokerContext& context, const Subscriber* but);
  /// The other side knows these already.
  void told(const std::vector<LinkedTopic>& topics, std::set<std::string> methods);
  /// A client that has provided that method here has been asked to go there.
  void expect(const std::string& method) noexcept;
  /// Throws std::bad_alloc.
  void take(LinkedTopic topic);
  /// A notification that is none of a client's; false for one that is an event.
  [[nodiscard]] bool notified(const Received& message, std::string_view name);
  /// The value of that topic is another one, or none where `message` is empty.
  void retain(std::string_view topic, std::string_view message, const Retained::By& by) noexcept;
  /// The other side is told who subscribes here, before it is sent an event.
  void tell_subscriptions() noexcept;
  /// Somebody on this side provides the method from now on, or no more.
  void provided_changed(std::string_view method) noexcept;
  /// No client is left on this side.
  void tell_alone() noexcept;
  /// The connection ends where neither side needs it any more: no client is left there, and what they have provided is
  /// provided here, or they have not come in time.
  void close_if_done() noexcept;

 private:
  // Those who have not come by then do not come.
  class ReturnTimer final : public Timer {
   public:
    explicit ReturnTimer(LinkedBroker& broker) noexcept : broker_(&broker) {}
    void expired() override { broker_->give_up_waiting(); }

   private:
    LinkedBroker* broker_;
  };

  void subscription_changed(std::string_view pattern, std::string_view group) noexcept override;
  void expired() override;
  void give_up_waiting();
  void wait_for_return() noexcept;
  void tell_later() noexcept;
  void tell_topics();
  void tell_method(const std::string& name);
  void tell_gone(const std::string& name);
  [[nodiscard]] bool is_provided_here(const Route* route) const noexcept;
  void take(LinkedMethod method);
  void provide_what_is_there(const std::string& name);
  void keep(const LinkedValue& value, std::string_view event);

  BrokerContext* context_;
  EventBus* events_;
  Registrar* registrar_;
  Peer* peer_;
  const bool predecessor_;
  TopicGroups there_;                                               // what is subscribed to on the other side
  TopicGroups told_;                                                // what the other side knows of this one
  std::set<std::string> changed_;                                   // patterns that it may have to be told of
  std::map<std::string, LinkedMethod, std::less<>> methods_there_;  // that clients there provide
  std::set<std::string> methods_told_;                              // that the other side knows of
  std::set<std::string> expected_;         // of these: whoever has provided it here is on its way there
  std::set<std::string> changed_methods_;  // that it may have to be told of, or that may be missing here
  bool pending_ = false;                   // it is told in the next turn
  bool all_changed_ = false;               // there was no memory to say which
  bool alone_ = false;                     // no client is left there
  bool told_alone_ = false;
  bool for_provider_ = false;              // the next notification is
  std::optional<LinkedValue> retained_{};  // it is
  ReturnTimer return_timer_{*this};
};

}  // namespace wirecall::broker
