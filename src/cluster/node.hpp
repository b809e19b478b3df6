// Node: another broker of the realm, as this one deals with it. By its link come the calls of its callers, which
// dispatchers of this node serve, one for each principal; and the answers to calls that callers of this node make of
// methods of its clients, which are provided by one peer of our router. So a link is what a connection is to a client,
// and routes, policies, queues, credit, cancelling and limits are the same.
// Owned by the Cluster. One thread.
#pragma once

#include <deque>
#include <map>
#include <set>

#include "broker/outgoing.hpp"
#include "broker/realm.hpp"
#include "broker/router.hpp"
#include "cluster/client_news.hpp"
#include "cluster/heartbeat.hpp"
#include "cluster/method_news.hpp"
#include "cluster/node_link.hpp"
#include "cluster/retained_replica.hpp"
#include "cluster/subjects.hpp"
#include "cluster/topic_news.hpp"
#include "rpc/broker.hpp"
#include "rpc/dispatcher.hpp"
#include "rpc/retained_reader.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::cluster {

class Node;

/// While a message of the bus is handled, for as long as a handler of the process's own may take.
class Reading {
 public:
  explicit Reading(int& count) noexcept : count_(&count) { ++*count_; }
  Reading(Reading&&) = delete;
  ~Reading() { --*count_; }

 private:
  int* count_;
};

/// Who has been asked last for all that it retains. One at a time: what several have is mostly the same.
struct RetainedAsked {
  static constexpr std::chrono::milliseconds kBetween{250};  // since the last that it has said
  static constexpr std::chrono::seconds kLongest{5};

  [[nodiscard]] bool is_over(std::chrono::nanoseconds now) const noexcept {
    return now - last >= kBetween || now - since >= kLongest;
  }

  const Node* node = nullptr;  ///< to be compared, since it may have gone
  std::chrono::nanoseconds since = std::chrono::nanoseconds::min() / 2;
  std::chrono::nanoseconds last = since;
};

using MethodNames = std::set<std::string, std::less<>>;
/// Whether the method is one of these, which may be prefixes.
[[nodiscard]] bool is_among(const MethodNames& names, std::string_view method) noexcept;

/// What the nodes of one cluster share. All referred to outlive them.
struct NodeContext {
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept { return host.loop_context.now(); }
  void log(LogLevel level, std::string_view line) const { host.loop_context.write_log(level, line); }

  const rpc::BrokerHost host;
  broker::Router& router;
  Bus& bus;
  const Subjects subjects;
  const std::string own;      ///< this node's name
  const std::uint64_t epoch;  ///< this node's
  RetainedReplica& retained;
  std::function<void(std::string_view)> retained_outdone;  ///< Taken::outdone, of that topic
  std::function<void()> flush{};                           ///< has Node::flush called in this turn or the next
  /// Where nodes provide a method of that name that is withheld from callers here, it may be known from the next tick
  /// on.
  std::function<void(std::string_view)> may_admit{};
  /// The process that is that node now has told of the method, or, where that is empty, of all that it has: what a
  /// process before it has told of these holds no more.
  std::function<void(std::string_view node, std::string_view method)> supersede{};
  bool replaced = false;       ///< another process is the node: what is under way goes on, and nothing new is begun
  bool draining = false;       ///< the node provides nothing any more
  int absent = 0;              ///< nodes of which methods cannot be called now (Node::lost_by)
  int reading = 0;             ///< handlers of messages of the bus that run: meanwhile nobody is heard
  std::uint64_t sessions = 0;  ///< of links, that have begun
  std::size_t withheld = 0;    ///< methods, of all nodes
  RetainedAsked retained_asked{};
};

class Node final : public broker::RemoteNode, private NodeLink::User {
 public:
  static constexpr std::size_t kNewsBytes = 64 * 1024;  // of methods or topics, after which a record ends

  enum class State : std::uint8_t {
    joining,      ///< it has no session yet
    up,           ///< all its methods are known
    foreign,      ///< it speaks another version
    unreachable,  ///< since the bus is down
  };
  Node(NodeContext& context, std::string name);
  Node(Node&&) = delete;
  ~Node();

  void heard(const Heartbeat& heartbeat);
  /// A frame of this node's.
  void take(const Frame& frame);
  void flush() {
    tell_more();
    if (retained_after_) tell_more_retained();
    link_.flush();
  }
  /// What has waited for room goes on, once there is some.
  void resume();
  /// Every kTick of the cluster's.
  void tick();
  /// Nobody subscribes to what it is sent, or it has been silent for too long; or, by the bus, nothing can be sent.
  void lose(broker::LostBy by);
  void leave() noexcept { link_.leave(false); }
  /// It leaves, and has got no more of the session than it says.
  void take_leave(const Frame& leave) noexcept { link_.take_leave(leave); }
  /// Another process takes its place: its session, which is open, is the last one of this object. Calls in both
  /// directions go on, its methods until they are superseded; nothing else does. `subject` is that process's.
  void depart(std::string subject) noexcept;
  /// The same where the process of this broker is the one that is replaced.
  void stay_behind();
  /// What the process before this one has provided nobody says to be unknown, before this one has told what it does.
  void expect_methods_of(const Node& former);
  /// NodeContext::supersede, of this node.
  void supersede(std::string_view method);
  [[nodiscard]] bool is_departing() const noexcept { return departing_; }
  /// The last session is over: it may go.
  [[nodiscard]] bool has_ended() const noexcept { return link_.has_ended(); }
  /// Whether it sends to this process, and not to the node; once it is known to.
  [[nodiscard]] bool has_followed() const noexcept { return followed_; }
  void follow() noexcept { followed_ = true; }
  /// Whether another process than the one whose session is open says that it is the node.
  [[nodiscard]] bool is_of_another_process(const Heartbeat& heartbeat) const noexcept {
    return is_open() && heartbeat_.epoch != 0 && heartbeat.epoch != heartbeat_.epoch;
  }
  /// Whether a frame is of the session that is known here, and not of one before it or of another process.
  [[nodiscard]] bool is_present(const Frame& frame) const noexcept { return link_.is_of_session(frame); }
  /// Nothing is said to it any more, by this object.
  void fall_silent() noexcept { link_.fall_silent(); }
  /// It could not be heard for so long, or has not been asked.
  void excuse(std::chrono::nanoseconds time) noexcept { heard_at_ = std::min(heard_at_ + time, context_->now()); }
  /// Whether it must not be destroyed: a handler runs that it has called.
  [[nodiscard]] bool is_in_use() const noexcept { return link_.is_reading(); }
  /// The session, if there is one, tells these.
  void tell_methods(const MethodNewsWriter& news, bool all);
  void tell_topics(const TopicNews& news);
  void tell_clients(const ClientNews& news);
  void tell_retained(std::string_view topic);
  /// A method of its that was withheld here, since others were registered otherwise, is known if it may be now. False
  /// where that is to be tried again in any case: calls of the others are still in progress.
  [[nodiscard]] bool admit_withheld(std::string_view method);
  /// A method of its is not called from here, for now.
  void withhold(broker::Registration registration);
  /// What is told of retained events from now on is no part of what has been told of this turn's.
  void end_retained() noexcept { told_.clear(); }
  /// The node has retained what has that digest: it is asked for it where that is something else than here.
  void compare_retained(std::uint64_t digest);

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] const Heartbeat& last_heartbeat() const noexcept { return heartbeat_; }
  [[nodiscard]] std::chrono::nanoseconds heard_at() const noexcept { return heard_at_; }
  [[nodiscard]] bool is_open() const noexcept { return link_.is_open(); }
  /// Whether calls are pending there, so that it is pinged.
  [[nodiscard]] bool awaits_answers() const noexcept { return unanswered_ != 0; }
  /// What its clients provide, as far as is known.
  [[nodiscard]] const MethodNames& methods() const noexcept { return methods_; }
  /// Whether they provide the method, by that name or by a prefix, as far as is known.
  [[nodiscard]] bool provides(std::string_view method) const noexcept;
  /// Why a method that its clients provide, by that name or (unless `exactly`) by a prefix, cannot be called there now:
  /// where the node is joining, by what it has said before. Nothing for all other methods.
  [[nodiscard]] std::optional<broker::LostBy> lost_by(std::string_view method, bool exactly) const noexcept;
  /// Calls of its callers that are in progress here.
  [[nodiscard]] std::size_t calls_here() const noexcept;
  [[nodiscard]] std::uint64_t calls_sent() const noexcept { return calls_sent_; }
  /// Events that were not sent here, since too much waited.
  [[nodiscard]] std::uint64_t events_lost() const noexcept { return events_lost_; }
  /// Principals for which it makes calls, and groups of its subscribers, those without one among them.
  [[nodiscard]] std::size_t sides() const noexcept { return callers_.size(); }
  [[nodiscard]] std::size_t groups() const noexcept { return events_.size(); }
  [[nodiscard]] std::uint64_t sessions_lost() const noexcept { return sessions_lost_; }

  // broker::RemoteNode

  void begin_call(const CallFacts& facts) noexcept override;
  void begin_part(std::string_view principal) noexcept override { next_part_ = principal; }
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] bool has_client(std::string_view client) const noexcept override { return clients_.contains(client); }
  [[nodiscard]] std::uint32_t load() const noexcept override { return heartbeat_.load; }
  [[nodiscard]] std::chrono::nanoseconds latency() const noexcept override { return latency_; }

 private:
  // Of one node; far more than its clients may have in any use.
  static constexpr std::size_t kMethodsMax = 100'000;
  static constexpr std::size_t kSubscriptionsMax = 100'000;

  // Where messages for the node go: of our callers (call), or for its callers (answer).
  class Sink final : public rpc::MessageSink {
   public:
    Sink(Node& node, RecordKind kind, std::string group) : node_(&node), kind_(kind), group_(std::move(group)) {}

    Buffer& open_message() override;
    void close_message() override {
      node_->link_.end_record();
      if (kind_ == RecordKind::call) node_->remember_call();
    }
    void discard_message() noexcept override {
      node_->link_.discard_record();
      node_->call_written_.reset();
    }
    [[nodiscard]] bool writable() noexcept override { return !is_overfull(); }
    [[nodiscard]] bool is_overfull() noexcept override;
    // But handlers cannot call their callers at another node.
    [[nodiscard]] rpc::PeerCapabilities capabilities() const noexcept override {
      rpc::PeerCapabilities can = rpc::PeerCapabilities::all();
      can.calls_back = false;
      return can;
    }
    [[nodiscard]] std::string peer_source() const override { return "node:" + node_->name_; }
    [[nodiscard]] std::string_view protocol() const noexcept override { return "cluster"; }
    [[nodiscard]] std::size_t waiting_bytes() const noexcept override { return node_->link_.waiting_bytes(); }

   private:
    Node* node_;
    const RecordKind kind_;
    const std::string group_;  // of events
  };
  // Notes which retained events have been sent as events.
  class ToldNumbers final : public rpc::RetainedReader {
   public:
    explicit ToldNumbers(Node& node) noexcept : node_(&node) {}
    [[nodiscard]] std::uint64_t retained_seen() const noexcept override { return 0; }
    void set_retained_number(std::uint64_t number) noexcept override {
      if (number != 0) broker::if_memory_allows([&] { node_->told_.insert(number); });
    }
    void retained_sent() override {}
    void retained_lost() noexcept override {}

   private:
    Node* node_;
  };
  struct Side {
    Side(Node& node, RecordKind kind, std::string group = {})
        : sink(node, kind, std::move(group)),
          dispatcher(node.context_->host.registry, sink, node.limits_, node.context_->host.loop_context) {}

    Sink sink;
    rpc::Dispatcher dispatcher;
  };

  // A message that has come from the node. Refers to the record.
  struct Arrived {
    Received received;
    EncodedText encoded = {};  // as it came, in another encoding than JSON; else empty
    Buffer text = {};          // what is JSON of that
    message::IdText id;        // the same of one that is read as it is
  };
  using ReadStatus = message::Transcoder::Status;
  // What is told next of all that a session begins with.
  enum class Telling : std::uint8_t { clients, own_methods, methods, topics, nothing };

  struct SentCall {
    std::uint64_t number;
    std::uint64_t end;  // of its record, in bytes of the session
  };
  static constexpr std::size_t kSentCallsMax = std::size_t{1} << 18;  // beyond, the oldest may have come

  void renew_limits() noexcept;
  void opened() override;
  void ended(std::uint64_t reached) override;
  void received(const Record& record) override;
  void wants_flush() noexcept override;
  template <class Write>
  void tell(RecordKind kind, const Write& write) noexcept;
  [[nodiscard]] ReadStatus read(std::string_view text, const Limits& limits, Arrived& arrived);
  [[nodiscard]] ReadStatus read_whole(std::string_view text, Encoding encoding, const Limits& limits, Arrived& arrived);
  static void restore(Arrived& arrived);
  [[nodiscard]] bool make_json(Arrived& arrived);
  static void handle(rpc::Dispatcher& dispatcher, const Arrived& arrived, MessageForm form = {});
  [[nodiscard]] Limits widest() const;
  void refuse_message(const Record& record, ReadStatus status);
  [[nodiscard]] std::string id_of_item(const Received& message) const;
  void end_call_here(const std::string& id, const Error& error);
  void tell_sides(const Arrived& arrived);
  void break_own_call(const std::string& id, const Error& error);
  void end_own_call(const std::string& id, const Error& error);
  void take_call(const Record& record, const Arrived& arrived);
  void take_answer(Arrived& arrived);
  [[nodiscard]] bool belongs_to_a_call(const Received& message) const;
  void answer(std::string_view id, const Error& error);
  void take_methods(std::string_view json);
  void take_method(broker::Registration registration);
  void set_method(broker::Registration registration);
  void end_former(const broker::Registration& registration);
  std::optional<broker::Registration> take_withheld(std::string_view method);
  void end_method(std::string_view method);
  [[nodiscard]] bool drop_method(std::string_view method);
  void forget_methods();
  void refuse(const std::string& why);
  void refuse_news(std::string_view what);
  void take_topics(std::string_view json);
  void take_clients(std::string_view json);
  void take_retained(std::string_view text);
  void deliver_retained(std::string_view topic, std::string_view event);
  void tell_more_retained();
  void tell_more() noexcept;
  void tell_more_clients();
  void tell_own_methods();
  void tell_more_methods();
  void tell_all_topics();
  [[nodiscard]] bool has_room_for_news() const noexcept;
  void take_event(std::string_view group, const Received& message);
  [[nodiscard]] broker::Peer& events_of(std::string_view group);
  [[nodiscard]] broker::Peer& publisher_for(std::string_view group);
  [[nodiscard]] std::unique_ptr<Side> make_events_side(std::string_view group);
  void take_pong(const Frame& pong);
  void remember_call();
  void mark_untaken(std::uint64_t reached) noexcept;
  [[nodiscard]] Side* side_of(std::string_view principal);
  void end_revoked() noexcept;
  void drop_idle_sides();
  void refuse_principal(const Received& message);
  void ping() noexcept;
  [[nodiscard]] bool passes_over(RecordKind kind) const noexcept;
  void end_events() noexcept;
  void end_session(broker::LostBy by);
  void become(State state) noexcept;
  void count_absent() noexcept;
  [[nodiscard]] broker::Peer& provider() const {
    return static_cast<broker::Peer&>(*provides_->dispatcher.join_broker());
  }

  NodeContext* context_;
  const std::string name_;
  Limits limits_;  // of its callers: those of connections are kept by the broker that they are connected to
  NodeLink link_;
  State state_ = State::joining;
  Heartbeat heartbeat_;
  std::chrono::nanoseconds heard_at_;
  std::chrono::nanoseconds latency_{0};
  MethodNames methods_;
  MethodNames former_methods_;     // of sessions before, until all of this one's are known
  bool counts_as_absent_ = false;  // in the context
  std::map<std::string, broker::Registration, std::less<>> withheld_;  // that others here provide otherwise
  std::size_t withheld_bytes_ = 0;                                     // by which they are described
  std::set<std::string, std::less<>> clients_;                         // names of its clients
  Telling telling_ = Telling::nothing;
  std::uint64_t told_client_ = 0;   // Peer::number of the last client that the node was told of
  std::string told_method_;         // the last method
  std::unique_ptr<Side> provides_;  // null without a session
  std::map<std::string, std::unique_ptr<Side>, std::less<>> callers_;  // by principal
  std::map<std::string, std::unique_ptr<Side>, std::less<>> events_;   // by group
  std::shared_ptr<const rpc::Authority> authority_;                    // by which all of these are still known
  std::unique_ptr<Side> publishes_;  // for groups in which it has no subscriber; null before the first
  ToldNumbers told_numbers_{*this};
  std::set<std::uint64_t> told_;  // numbers of retained events that were sent as events since the last flush
  std::optional<std::uint64_t>
      retained_there_;  // a digest that is not the one here, as long as it was not asked for that
  std::optional<std::string> retained_after_;  // the topic behind which it is still to be told all; nothing for done
  std::optional<CallFacts> next_call_;
  std::optional<std::string_view> next_part_;  // whose, of what belongs to a call
  std::optional<std::uint64_t> call_written_;  // the number of the one that is being written
  std::deque<SentCall> sent_calls_{};          // that are not known to have come there, the oldest first
  std::uint64_t calls_sent_ = 0;
  std::uint64_t unanswered_ = 0;  // calls sent, about: cancelled ones may be among them
  std::uint64_t sessions_lost_ = 0;
  std::size_t subscriptions_ = 0;  // of its clients, that are told of events
  int refused_ = 0;                // of what it has said in this session
  std::uint64_t events_lost_ = 0;
  bool departing_ = false;
  bool followed_ = false;
  int quiet_ticks_ = 0;    // since it was pinged
  bool overfull_ = false;  // it has been told, and not that there is room again
  broker::LostBy losing_ = broker::LostBy::node;
};

// `write` appends to the record. Without memory for it the session ends, and the next one tells all.
template <class Write>
void Node::tell(RecordKind kind, const Write& write) noexcept {
  try {
    write(link_.begin_record({.kind = kind}));
    link_.end_record();
  } catch (const std::bad_alloc&) {
    link_.discard_record();
    link_.fail();
  }
}

}  // namespace wirecall::cluster
