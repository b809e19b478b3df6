// DurableTopics: events that outlive the process, in a durable::Store, and consumers: names under which somebody takes
// the events of a pattern one by one, wherever he left off. A consumer's connection is sent each event as a request
// whose method is the topic; a result acknowledges it, and an error, no answer in time or the loss of the connection
// has it sent again, to whoever has joined the consumer, until it is given up and kept under dead.<consumer>. So an
// event is delivered at least once. The id of such a request is "<consumer>:<seq>:<delivery>".
//
// What is asked for by rpc.publish and rpc.subscribe as ever is none of its business. One thread. Implements
// docs/durable.md.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "broker/consumer_reads.hpp"
#include "broker/context.hpp"
#include "broker/event_bus.hpp"
#include "durable/store.hpp"
#include "wirecall/message.hpp"

namespace wirecall::broker {

class DurableConsumer;

class DurableTopics {
 public:
  /// `store` may be null: then what needs one is refused. `patterns` are those of topics of which all is kept. All
  /// referred to outlive it.
  DurableTopics(BrokerContext& context, EventBus& events, durable::Store* store, std::vector<std::string> patterns);
  DurableTopics(DurableTopics&&) = delete;
  ~DurableTopics();
  /// There is a store now. Once, where there was none.
  void open(durable::Store& store);

  /// The method that serves the message under that reserved name; null where it is none of this.
  [[nodiscard]] const Method* find(std::string_view name, const Received& message);
  /// A notification of a peer's that may publish it: it is kept where its topic is.
  void notified(const Peer& publisher, std::string_view topic, const Received& message);
  /// An event of the broker's own, which is kept where its topic is. One whose topic is too long is not told.
  void publish_own(std::string topic, std::string params);
  /// Whether an event, or a call, with these params is no larger than a message may be, whatever its id.
  [[nodiscard]] bool fits_message(std::string_view name, std::string_view params) const;
  /// Whether the response is to an event that the peer was sent.
  [[nodiscard]] bool response(const Peer& peer, const Received& message);
  /// The peer has gone, or says nothing any more: what it has not answered goes to others.
  void leave(Peer& peer) noexcept;
  /// The peer may be sent more.
  void resume(Peer& peer);
  /// Nothing more is sent, until it goes on.
  void drain() noexcept { draining_ = true; }
  void go_on();
  /// Whether a client has been sent an event that it has not answered.
  [[nodiscard]] bool at_work() const noexcept;
  /// Consumers that were looked at for events that have been kept, since the beginning: for each event those of its
  /// topic, and one more.
  [[nodiscard]] std::uint64_t looked_at() const noexcept { return looked_at_; }

 private:
  friend class DurableConsumer;
  /// Changes that wait for the disk, beyond which what nobody is told of is not asked for any more.
  static constexpr std::size_t kWaitingMax = 65'536;
  using Consumers = std::map<std::string, std::unique_ptr<DurableConsumer>, std::less<>>;

  void publish(Call& call);
  void subscribe(Call& call);
  void unsubscribe(Call& call);
  void list(Call& call);
  void read(Call& call);
  void forget(Call& call);
  void forget(std::string name, ReplySink sink);
  /// The peer of that number joins the consumer, once the store has it.
  void open(durable::ConsumerSettings settings, std::uint64_t joins, ReplySink sink);
  void opened(const durable::ConsumerState& state, std::uint64_t joins, ReplySink& sink);
  void list_shared(std::uint64_t asker_number, std::vector<durable::TopicCounts> topics, ReplySink sink);

  [[nodiscard]] bool is_durable_publish(const Received& message);
  [[nodiscard]] bool names_consumer(const Received& message, std::size_t at);
  [[nodiscard]] bool keeps(std::string_view topic) const noexcept;
  [[nodiscard]] durable::Store& require_store() const;
  struct Publication;
  void published(Publication& publication, const durable::Appended& appended);
  void tell_subscribers(Peer* publisher, Publication& publication);
  void keep(std::string topic, std::string params, std::string account);
  // It has its first member, or none any more.
  void activate(DurableConsumer& consumer);
  void deactivate(DurableConsumer& consumer) noexcept;
  void unload_if_alone(DurableConsumer& consumer);
  /// All that may be sent more.
  void pump();
  /// The connection has answered so much that it may be sent more again: `pump_unblocked` does that.
  void unblock(Peer& peer) noexcept;
  void pump_unblocked();
  /// Those that wait for the peer go on, one after the other, as long as it may be sent more.
  void pump_line(Peer& peer);
  void leave_line(Peer& peer, const DurableConsumer& consumer) noexcept;
  /// Throws where too many shapes of patterns are in use.
  void require_followable(const DurableConsumer* consumer, std::string_view pattern) const;
  void kept(const std::string& topic, const std::string& params, std::uint64_t seq);
  [[nodiscard]] DurableConsumer& consumer_of(const durable::ConsumerState& state);

  BrokerContext* context_;
  EventBus* events_;
  durable::Store* store_;
  const std::vector<std::string> patterns_;
  const Method publish_;
  const Method subscribe_;
  const Method unsubscribe_;
  const Method list_;
  const Method read_;
  const Method forget_;
  ConsumerReads reads_;
  std::multiset<std::string> opening_;    // consumers that the store is asked for
  std::set<std::string> forgetting_;      // consumers of a shared store that it is asked to forget
  std::size_t unsafe_bytes_ = 0;          // of events that nobody is told of, on their way to the disk
  std::vector<DurableConsumer*> active_;  // that have members
  Subscriptions topics_;                  // theirs, where the store is this process's alone
  std::uint64_t looked_at_ = 0;
  std::unordered_map<const Peer*, std::deque<DurableConsumer*>> lines_;  // that wait to send to it, each once
  std::vector<Peer*> unblocked_;
  Consumers consumers_;
  std::uint64_t last_seq_ = 0;  // that is safe
  bool draining_ = false;
};

}  // namespace wirecall::broker
