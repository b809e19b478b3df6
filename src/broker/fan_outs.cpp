// The part of Router (router.hpp) by which an event for many, or a large one, is told over several turns. Who is
// told is decided when it is published; who leaves or unsubscribes before his turn comes is not. Until all have been
// told, nothing more that the publisher sends is looked at, so that nothing of its own overtakes the event.
#include "broker/fan_outs.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "base/dotted_name.hpp"
#include "broker/outgoing.hpp"
#include "broker/router.hpp"
#include "rpc/access.hpp"

namespace wirecall::broker {
namespace {

// To look at one subscription of who has ended another costs as much as to send so many bytes.
constexpr std::size_t kBytesOfSubscription = 32;

}  // namespace

// Null where they are to be told at once: there are no later turns, the publisher's input cannot be held, or there is
// no memory.
FanOut* Router::begin_fan_out(Peer* publisher, const NewEvent& event, std::span<Subscriber* const> chosen) noexcept {
  if (loop_context_->scheduler == nullptr) return nullptr;
  try {
    last_fan_outs_.reserve(last_fan_outs_.size() + 1);
    const bool own = is_reserved(event.topic);
    std::shared_ptr<void> input = publisher != nullptr && !own ? publisher->sink().hold_input() : nullptr;
    if (input == nullptr && !own) return nullptr;
    auto answer = own ? nullptr : std::make_shared<DeliveredCount>();
    std::vector<FanOut::Recipient> recipients;
    recipients.reserve(chosen.size());
    Buffer copy = event.owned == nullptr ? Buffer{event.text} : Buffer{};
    fan_out_later();
    const auto account = publisher != nullptr && !own ? publisher->load().calls.account() : nullptr;
    FanOut& begun =
        fan_outs_.emplace_back(event.topic, event.owned == nullptr ? std::move(copy) : std::move(*event.owned), account,
                               *loop_context_, *limits_);
    begun.number = subscriptions_.last_event();
    begun.retained = event.topic == retaining_;
    begun.answer = std::move(answer);
    begun.input = std::move(input);
    begun.recipients = std::move(recipients);
    if (!own) follow_same_topic(begun);
    for (Subscriber* const one : chosen) {
      Peer& peer = static_cast<Peer&>(*one);
      if (!event.method.empty() && !rpc::may_call(peer.principal, event.method)) continue;
      peer.last_event = event_;
      begun.recipients.push_back({.peer = peer.number, .ended = peer.subscriptions_ended()});  // there is room
    }
    if (own) announced_ = &begun;
    if (!FanOut::fits_turn(1, begun.text.size())) spend(begun.text.size());  // which this turn has read already
    begun.weigh();
    return &begun;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// Whether an event of the topic is still being told: the next one, whoever publishes it, must not overtake it, or some
// would be left with the older of two.
bool Router::is_being_told(std::string_view topic) const noexcept { return last_fan_outs_.contains(topic); }

void Router::follow_same_topic(FanOut& begun) {
  // The key is the topic of the one that stays longest.
  const auto last = last_fan_outs_.find(begun.topic);
  if (last != last_fan_outs_.end()) {
    last->second->follower = &begun;
    begun.waits = true;
    last_fan_outs_.erase(last);
  }
  last_fan_outs_.emplace(begun.topic, &begun);
}

void Router::end_fan_out(const FanOut& done) noexcept {
  if (announced_ == &done) announced_ = nullptr;
  if (done.follower != nullptr) done.follower->waits = false;
  const auto last = last_fan_outs_.find(done.topic);
  if (last != last_fan_outs_.end() && last->second == &done) last_fan_outs_.erase(last);
}

// As long as the turn has any bytes left.
void Router::tell_rest(FanOut& fan_out) {
  retaining_ = fan_out.retained ? std::string_view{fan_out.topic} : std::string_view{};
  while (fan_out_bytes_left_ > 0 && !fan_out.is_done()) {
    const FanOut::Recipient& recipient = fan_out.recipients[fan_out.at++];
    spend(FanOut::kBytesOfDelivery);
    Peer* const peer = find_recipient(fan_out, recipient);
    if (peer == nullptr) continue;
    if (fan_out.is_evicted()) {
      drop_for_budget(*peer, fan_out.topic);
      continue;
    }
    spend(fan_out.text.size());
    if (!send_event(*peer, fan_out.topic, fan_out.event)) continue;
    ++loop_context_->stats.events_delivered;
    if (fan_out.answer) ++fan_out.answer->count;
  }
  retaining_ = {};
}

// Null for one who has gone, or has unsubscribed.
Peer* Router::find_recipient(const FanOut& fan_out, const FanOut::Recipient& recipient) noexcept {
  const auto known = peers_.find(recipient.peer);
  if (known == peers_.end()) return nullptr;
  Peer* const peer = known->second;
  if (peer->subscriptions_ended() == recipient.ended) [[likely]]
    return peer;
  spend(kBytesOfSubscription * peer->subscription_count());
  return Subscriptions::still_has(*peer, fan_out.topic, fan_out.number) ? peer : nullptr;
}

// A turn that goes beyond its bytes leaves the next ones with fewer: what is large is not sent to one after the other
// in turns that follow each other, or whoever comes meanwhile would wait for two of them.
void Router::spend(std::size_t bytes) noexcept { fan_out_bytes_left_ -= static_cast<std::int64_t>(bytes); }

void Router::fan_out_more() noexcept {
  fans_out_ = false;
  fan_out_bytes_left_ = std::min(fan_out_bytes_left_ + FanOut::kBytesInTurn, FanOut::kBytesInTurn);
  fan_out_share();
  if (fan_outs_.empty() && fan_out_bytes_left_ == FanOut::kBytesInTurn) return;
  try {
    fan_out_later();
  } catch (const std::bad_alloc&) {
    // There is no later turn, and their publishers wait.
    fan_out_bytes_left_ = std::numeric_limits<std::int64_t>::max();
    fan_out_share();
  }
}

// As many as the turn has bytes for. Those that wait are behind one that does not.
void Router::fan_out_share() noexcept {
  while (!fan_outs_.empty() && fan_out_bytes_left_ > 0) {
    FanOut& first = fan_outs_.front();
    if (!first.waits) if_memory_allows([&] { tell_rest(first); });
    if (first.is_done()) {
      end_fan_out(first);
      fan_outs_.pop_front();
    } else {
      first.weigh();
      fan_outs_.splice(fan_outs_.end(), fan_outs_, fan_outs_.begin());
    }
  }
}

void Router::fan_out_later() {
  if (fans_out_) return;
  loop_context_->scheduler->start(fanning_out_, std::chrono::nanoseconds{0});
  fans_out_ = true;
}

}  // namespace wirecall::broker
