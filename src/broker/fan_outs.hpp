// FanOuts: events for many, and large ones, that are told over several turns. Who is told is decided when an event is
// published; who leaves or unsubscribes before his turn comes is not. Until all have been told, nothing more that the
// publisher sends is looked at, so that nothing of its own overtakes the event. One thread.
#pragma once

#include <cstddef>
#include <list>
#include <span>
#include <string_view>
#include <unordered_map>

#include "broker/context.hpp"
#include "broker/event_sender.hpp"
#include "broker/fan_out.hpp"
#include "broker/peer_table.hpp"
#include "broker/subscriptions.hpp"
#include "broker/turn_budget.hpp"
#include "wirecall/bytes.hpp"

namespace wirecall::broker {

/// An event that is published now.
struct NewEvent {
  std::string_view topic;
  std::string_view text;         ///< the notification
  std::string_view params;       ///< its params, as they were published; empty for none
  std::string_view method = {};  ///< it is for those who may call that; empty for all
  Buffer* owned = nullptr;       ///< has the text, and may lose it
  bool retained = false;         ///< its topic retains it
};

class FanOuts {
 public:
  /// All referred to outlive it.
  FanOuts(BrokerContext& context, const PeerTable& peers, const Subscriptions& subscriptions, EventSender& sender)
      : context_(&context),
        peers_(&peers),
        subscriptions_(&subscriptions),
        sender_(&sender),
        budget_(context.loop.scheduler, FanOut::kBytesInTurn, [this] { resume(); }) {}

  /// Null where they are to be told at once: there are no later turns, the publisher's input cannot be held, or there
  /// is no memory.
  [[nodiscard]] const FanOut* begin(Peer* publisher, const NewEvent& event,
                                    std::span<Subscriber* const> chosen) noexcept;
  /// Whether an event of the topic is still being told: the next one, whoever publishes it, must not overtake it, or
  /// some would be left with the older of two.
  [[nodiscard]] bool is_being_told(std::string_view topic) const noexcept {
    return !list_.empty() && last_of_topic_.contains(topic);
  }
  /// Whether one of the broker's own is, which the others must not overtake.
  [[nodiscard]] bool is_announcing() const noexcept { return announced_ != nullptr; }

 private:
  void follow_same_topic(FanOut& begun);
  void end(const FanOut& done) noexcept;
  void tell_rest(FanOut& fan_out);
  [[nodiscard]] Peer* find_recipient(const FanOut& fan_out, const FanOut::Recipient& recipient) noexcept;
  void resume() noexcept;
  void work_off() noexcept;

  BrokerContext* context_;
  const PeerTable* peers_;
  const Subscriptions* subscriptions_;
  EventSender* sender_;
  std::list<FanOut> list_;                                       // they take turns
  std::unordered_map<std::string_view, FanOut*> last_of_topic_;  // of each topic, the one that was published last
  const FanOut* announced_ = nullptr;                            // of the broker's own; null for none
  TurnBudget budget_;                                            // in bytes
};

}  // namespace wirecall::broker
