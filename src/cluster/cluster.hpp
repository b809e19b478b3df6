// Cluster: this broker among the others of its realm. It tells them each second that it is there, knows who else is,
// and joins the router with each of them by a Node. A node that says nothing for kSilence, or to whose subject nobody
// subscribes, has gone; while calls are pending at one it is pinged every kTick. Where another process takes a node's
// place, the session with the one before goes on beside that with the new one, until it is of no use any more.
// Owned by the Router. One thread. Pure: the bus brings what there is. Implements docs/cluster.md.
#pragma once

#include <unordered_set>

#include "cluster/node.hpp"
#include "cluster/plain_clients.hpp"

namespace wirecall::cluster {

struct ClusterSettings {
  std::string realm;        ///< a word (subjects.hpp)
  std::string node;         ///< likewise
  std::uint64_t epoch = 0;  ///< not 0, and not one that a node of this name has had before
  PlainSettings plain = {};
};

class Cluster final : public broker::Realm, private Timer, private broker::SubscriptionWatcher {
 public:
  static constexpr std::chrono::milliseconds kTick{250};
  static constexpr std::chrono::seconds kSilence{3};
  /// The same of a node at which calls are pending, which so answers a ping each kTick: with what a tick and a turn may
  /// take, these end within 3.5 s.
  static constexpr std::chrono::milliseconds kSilenceOfPinged{2750};
  static constexpr std::size_t kNodesMax = 1024;
  /// Processes that have been the same node; beyond, the session with the oldest ends.
  static constexpr std::size_t kDepartingMax = 8;

  /// All referred to outlive it.
  Cluster(const rpc::BrokerHost& host, broker::Router& router, std::unique_ptr<Bus> bus, ClusterSettings settings);
  ~Cluster() override;

  void provided_changed(std::string_view method) noexcept override;
  void retained_changed(std::string_view topic, bool gone) noexcept override;
  void client_changed(std::string_view name) noexcept override;
  [[nodiscard]] const Method* find_absent(const broker::Peer& caller, std::string_view name) noexcept override;
  void each_absent(std::string_view method, const Absent& told) const override;
  [[nodiscard]] std::string_view node() const noexcept override { return context_.own; }
  [[nodiscard]] std::shared_ptr<rpc::Rendering> tell(rpc::Asker asker) const override;
  [[nodiscard]] bool is_degraded() const noexcept override;
  void drain() noexcept override;
  void replaced() noexcept override;
  void expect_methods(std::vector<std::string> names) noexcept override;
  [[nodiscard]] bool busy() const noexcept override;

  [[nodiscard]] const Node* find(std::string_view node) const noexcept;
  /// The first by name that is behind `after`; null for none.
  [[nodiscard]] const Node* next(std::string_view after) const noexcept;
  /// Sessions with processes that have been nodes.
  [[nodiscard]] std::size_t departing() const noexcept { return departing_.size(); }
  /// What rpc.cluster says of this node, with an empty list of others.
  [[nodiscard]] std::string tell_own() const;
  [[nodiscard]] const RetainedReplica& retained() const noexcept { return retained_; }
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept { return context_.now(); }

 private:
  // Has the nodes flushed that want it.
  class FlushTimer final : public Timer {
   public:
    explicit FlushTimer(Cluster& cluster) noexcept : cluster_(&cluster) {}
    void expired() override { cluster_->flush(); }

   private:
    Cluster* cluster_;
  };

  void expired() override;
  void subscription_changed(std::string_view pattern, std::string_view group) noexcept override;
  void wants_flush() noexcept;
  void flush();
  void tell_changes();
  void tell_changed_clients();
  void tell_changed_topics();
  void tell_changed_methods();
  void admit_withheld();
  void tell_retained();
  [[nodiscard]] bool is_settled() const noexcept { return now() - retained_.changed_at() > std::chrono::seconds{1}; }
  void bus_changed();
  void take_heartbeat(const BusMessage& message);
  void take_frame(const BusMessage& message, bool to_process);
  void take_leave(Node& node, const Frame& frame);
  void take_gone(const BusMessage& message);
  [[nodiscard]] Node* node_of(std::string_view name);
  [[nodiscard]] Node* node_of(const Frame& frame);
  [[nodiscard]] Node* find_departing(std::string_view node, std::uint64_t epoch) const noexcept;
  void forget(std::string_view name, std::string_view why);
  void replace(Node& node, std::string_view what);
  void end_last(Node& node, std::string_view why);
  void end_oldest_of(std::string_view name);
  void supersede(std::string_view node, std::string_view method);
  void erase_ended() noexcept;
  void leave_subject_of_node() noexcept;
  template <class F>
  void each_session(const F& act) const {
    for (const auto& [name, node] : nodes_) act(*node);
    for (const auto& node : departing_) act(*node);
  }
  void forget_all() noexcept;
  [[nodiscard]] bool knows_others() const noexcept;
  void excuse_silence();
  void send_heartbeat() noexcept { send_heartbeat({}); }
  void send_heartbeat(std::string_view to) noexcept;
  [[nodiscard]] std::uint32_t load() const noexcept;
  [[nodiscard]] bool is_silenced() const noexcept;

  const std::string realm_;
  std::unique_ptr<Bus> bus_;
  RetainedReplica retained_;
  NodeContext context_;
  const Method moved_;
  const Method unreachable_;
  const Method lost_;
  PlainClients plain_;
  std::set<std::string, std::less<>> admissible_;  // methods that may not have to be withheld any more
  std::map<std::string, std::unique_ptr<Node>, std::less<>> nodes_;
  std::vector<std::unique_ptr<Node>> departing_;                  // processes that have been these, the oldest first
  std::set<std::pair<std::string, std::string>> topics_changed_;  // subscriptions: pattern and group
  std::set<std::string, std::less<>> retained_changed_;           // topics
  std::set<std::string, std::less<>> clients_changed_;            // names
  std::unordered_set<std::string> changed_;                       // methods that the others have to be told of
  bool all_changed_ = false;                                      // there was no memory to say which
  FlushTimer flush_timer_{*this};
  bool flush_pending_ = false;
  int ticks_ = 0;
  bool listens_as_node_ = true;
  std::chrono::nanoseconds replaced_at_{0};
  MethodNames expected_;  // methods of nodes that are about to say that they have them
  std::chrono::nanoseconds expected_until_{0};
  std::chrono::nanoseconds ticked_at_{0};
  std::chrono::nanoseconds connected_at_{0};  // since when the bus is connected, or this has begun
  std::chrono::nanoseconds rival_heard_{-1};  // another node has our name; negative for never
  std::uint64_t rival_ = 0;                   // its epoch
};

}  // namespace wirecall::cluster
