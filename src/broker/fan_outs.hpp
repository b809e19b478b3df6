// FanOuts: events for many, and large ones, that are told over several turns. Who is told is decided when an event is
// published; who leaves or unsubscribes before his turn comes is not. Until all have been told, nothing more that the
// publisher sends is looked at, so that nothing of its own overtakes the event. What another node sends cannot be held:
// each of its events that comes meanwhile waits here behind the one before. One thread.
#pragma once

#include <list>
#include <new>
#include <set>
#include <unordered_map>

#include "broker/context.hpp"
#include "broker/event_delivery.hpp"
#include "broker/peer_table.hpp"
#include "broker/subscriptions.hpp"
#include "broker/turn_budget.hpp"
#include "rpc/accounts.hpp"
#include "rpc/event_text.hpp"
#include "rpc/memory_budget.hpp"
#include "rpc/rendering.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::broker {

/// What rpc.publish is answered with once all have been told.
class DeliveredCount final : public rpc::Rendering {
 public:
  std::size_t count = 0;

 private:
  bool write_piece() override {
    text_.append(std::to_string(count));
    return false;
  }
};

class FanOut final : private rpc::MemoryConsumer {
 public:
  /// Bytes that one turn sends of all of them together; what goes beyond is taken off later turns.
  static constexpr std::size_t kBytesInTurn = 1024 * 1024;
  /// A delivery costs as much as so many bytes, however short it is: for the most part, a send.
  static constexpr std::size_t kBytesOfDelivery = 2048;

  /// Whether so many are told of an event in one turn.
  [[nodiscard]] static bool fits_turn(std::size_t count, std::size_t bytes) noexcept {
    return count * (bytes + kBytesOfDelivery) <= kBytesInTurn;
  }

  /// One who is to be told.
  struct Recipient {
    std::uint64_t peer;   ///< Peer::number
    std::uint64_t ended;  ///< Subscriber::ended when the event was published
  };

  /// All referred to outlive it. `of_account` holds the bytes; null for nobody.
  FanOut(std::string_view of_topic, Buffer&& event_text, std::shared_ptr<rpc::Account> of_account,
         rpc::LoopContext& loop_context, const Limits& limits)
      : topic(of_topic),
        text(std::move(event_text)),
        event(text.view(), loop_context, limits),
        account_(std::move(of_account)),
        limits_(&limits) {}
  FanOut(FanOut&&) = delete;

  /// What it holds may have changed. It may have to give way at once; without memory it counts as it did.
  void weigh() noexcept try {
    if (!account_ || evicted_) return;
    const std::size_t bytes = text.size() + event.forms_bytes() + recipients.capacity() * sizeof(Recipient);
    account_->buffers.hold(*this, bytes, limits_->principal_bytes);
  } catch (const std::bad_alloc&) {
  }
  [[nodiscard]] bool is_evicted() const noexcept { return evicted_; }
  [[nodiscard]] bool is_done() const noexcept { return waits == 0 && at == recipients.size(); }

  const std::string topic;
  const Buffer text;
  rpc::EventText event;
  std::vector<Recipient> recipients;
  std::size_t at = 0;                      ///< the first of them that has not been told
  std::uint64_t number = 0;                ///< Subscriptions::last_event
  std::uint64_t retained = 0;              ///< its number (NewEvent::retained)
  bool of_node = false;                    ///< it was published at another node:
  const RemoteNode* node = nullptr;        ///< at this one; null for a bus's own clients
  std::size_t bytes_of_node = 0;           ///< that it counts among those of other nodes
  int waits = 0;                           ///< for so many events that it must not overtake
  FanOut* follower = nullptr;              ///< of the same topic, that waits for this one; null for none
  FanOut* follower_of_node = nullptr;      ///< the same where both were published at one other node
  std::list<FanOut>::iterator self{};      ///< in whichever list has it
  std::shared_ptr<DeliveredCount> answer;  ///< counts those who have been told; null for an event of the broker's own
  std::shared_ptr<void> input;             ///< the publisher's (MessageSink::hold_input); likewise

 private:
  // Perhaps while somebody is told.
  void evict() override { evicted_ = true; }

  std::shared_ptr<rpc::Account> account_;
  const Limits* limits_;
  bool evicted_ = false;
};

/// An event that is published now.
struct NewEvent {
  std::string_view topic;
  std::string_view text;         ///< the notification
  std::string_view params;       ///< its params, as they were published; empty for none
  std::string_view method = {};  ///< it is for those who may call that; empty for all
  Buffer* owned = nullptr;       ///< has the text, and may lose it
  std::uint64_t retained = 0;    ///< the number under which its topic retains it; 0 for none
};

class FanOuts {
 public:
  /// All referred to outlive it.
  explicit FanOuts(BrokerContext& context)
      : context_(&context), budget_(context.loop.scheduler, FanOut::kBytesInTurn, [this] { resume(); }) {}

  /// Null where they are to be told at once: there are no later turns, the publisher's input cannot be held, or there
  /// is no memory.
  [[nodiscard]] const FanOut* begin(Peer* publisher, const NewEvent& event,
                                    std::span<Subscriber* const> chosen) noexcept;
  /// Whether an event of the topic is still being told: the next one, whoever publishes it, must not overtake it, or
  /// some would be left with the older of two.
  [[nodiscard]] bool is_being_told(std::string_view topic) const noexcept {
    return !list_.empty() && last_of_topic_.contains(topic);
  }
  /// Whether an event that was published at the same other node still is, which the next one must not overtake.
  [[nodiscard]] bool is_telling_of_node(const Peer* publisher) const noexcept;
  /// Whether those of other nodes hold so much that one more of so many bytes, which had to wait, is lost.
  [[nodiscard]] bool is_full_for(const Peer* publisher, std::size_t bytes, std::size_t recipients) const noexcept;
  /// The smallest number of retained events that are still being told; 0 for none.
  [[nodiscard]] std::uint64_t first_retained() const noexcept { return retained_.empty() ? 0 : *retained_.begin(); }
  /// Whether one of the broker's own is, which the others must not overtake.
  [[nodiscard]] bool is_announcing() const noexcept { return announced_ != nullptr; }

 private:
  void follow_same_topic(FanOut& begun);
  void follow_of_node(FanOut& begun, const RemoteNode* node) noexcept;
  void end(const FanOut& done) noexcept;
  void stop_waiting(FanOut* follower) noexcept;
  void tell_rest(FanOut& fan_out);
  [[nodiscard]] Peer* find_recipient(const FanOut& fan_out, const FanOut::Recipient& recipient) noexcept;
  void resume() noexcept;
  void work_off() noexcept;

  BrokerContext* context_;
  std::list<FanOut> list_;                                       // they take turns
  std::list<FanOut> waiting_;                                    // FanOut::waits
  std::unordered_map<std::string_view, FanOut*> last_of_topic_;  // of each topic, the one that was published last
  std::set<std::uint64_t> retained_;                             // FanOut::retained of all that have one
  std::unordered_map<const RemoteNode*, FanOut*> last_of_node_;  // of those published at each other node; null for none
  std::size_t bytes_of_nodes_ = 0;                               // that these hold
  const FanOut* announced_ = nullptr;                            // of the broker's own; null for none
  TurnBudget budget_;                                            // in bytes
};

}  // namespace wirecall::broker
