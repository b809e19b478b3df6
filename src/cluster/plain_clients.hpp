// PlainClients: what a node does for clients of the bus that are no brokers: their calls, the events that they are
// told, and the answers to who looks for services. Owned by the Cluster. One thread. Pure. Implements docs/cluster.md
// "Plain NATS clients".
#pragma once

#include "cluster/plain_calls.hpp"
#include "cluster/plain_events.hpp"
#include "cluster/service_answers.hpp"

namespace wirecall::cluster {

struct PlainSettings {
  std::string principal = {};            ///< as whom they act; empty for nobody: they are refused
  std::vector<std::string> topics = {};  ///< patterns of those of which they are told; valid
};

class PlainClients {
 public:
  /// `context` outlives it.
  PlainClients(NodeContext& context, const PlainSettings& settings, std::string_view realm)
      : calls_(context, settings.principal), events_(context, settings.topics), services_(context, calls_, realm) {}

  /// The process ends: others take what comes from now on.
  void drain() noexcept {
    services_.drain();
    calls_.drain();
  }
  /// Another process has taken over: nothing is served or told from now on.
  void end() noexcept {
    drain();
    events_.end();
  }
  /// Whether this broker serves calls of theirs; at first it does not.
  [[nodiscard]] bool takes_part() const noexcept { return calls_.takes_part(); }
  void bus_lost() noexcept { calls_.abandon(); }
  /// Every kTick of the cluster's: whether it may serve them.
  void tick(bool may_take) {
    calls_.tick(may_take);
    events_.resume();
  }
  /// Whether calls of theirs are in progress.
  [[nodiscard]] bool busy() const noexcept { return calls_.busy(); }

 private:
  PlainCalls calls_;
  PlainEvents events_;
  ServiceAnswers services_;
};

}  // namespace wirecall::cluster
