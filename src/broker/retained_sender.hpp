// RetainedSender: sends peers what is retained of the topics that they have asked for, as much as each takes and the
// turn has steps for; the rest when there is room again, or in a later turn. One thread.
#pragma once

#include <deque>

#include "broker/context.hpp"
#include "broker/event_delivery.hpp"
#include "broker/retained.hpp"
#include "broker/turn_budget.hpp"

namespace wirecall::broker {

class RetainedSender {
 public:
  /// All referred to outlive it.
  RetainedSender(const BrokerContext& context, const Retained& retained)
      : context_(&context), retained_(&retained), budget_(context.loop.scheduler, kSteps, [this] { send_queued(); }) {}

  /// What is retained of topics that `pattern` matches is sent when the subscription has been answered.
  static void request(Peer& peer, std::string pattern);
  /// It has been answered.
  void begin(Peer& peer);
  /// There is room again for what the peer is being sent.
  void resume(Peer& peer) {
    if (peer.is_sent_retained() && !peer.retained->queued) send_more(peer);
  }
  void forget(Peer& peer) noexcept;
  /// Steps that have been spent, since the beginning.
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

 private:
  // Steps (Retained::walk) that one turn spends for all peers together, and for one at a time.
  static constexpr std::size_t kSteps = 1024;
  static constexpr std::size_t kStepsAtOnce = 128;

  void send_more(Peer& peer);
  [[nodiscard]] bool walk(Peer& peer, std::size_t& steps);
  void send_queued() noexcept;

  const BrokerContext* context_;
  const Retained* retained_;
  std::deque<Peer*> queue_;  // who wait for their turn
  TurnBudget budget_;
  std::uint64_t steps_ = 0;
};

}  // namespace wirecall::broker
