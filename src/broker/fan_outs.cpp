// See fan_outs.hpp.
#include "broker/fan_outs.hpp"

#include "broker/outgoing.hpp"

namespace wirecall::broker {

// To look at one subscription of who has ended another costs as much as to send so many bytes.
constexpr std::size_t kBytesOfSubscription = 32;

const FanOut* FanOuts::begin(Peer* publisher, const NewEvent& event, std::span<Subscriber* const> chosen) noexcept {
  if (!budget_.has_turns()) return nullptr;
  try {
    last_of_topic_.reserve(last_of_topic_.size() + 1);
    const bool own = is_reserved(event.topic);
    const bool of_node = publisher != nullptr && publisher->of_node;
    if (of_node && node_bytes_ + event.text.size() > context_->limits.hard_output) return nullptr;
    std::shared_ptr<void> input = publisher != nullptr && !own && !of_node ? publisher->sink().hold_input() : nullptr;
    if (input == nullptr && !own && !of_node) return nullptr;
    auto answer = own ? nullptr : std::make_shared<DeliveredCount>();
    std::vector<FanOut::Recipient> recipients;
    recipients.reserve(chosen.size());
    Buffer copy = event.owned == nullptr ? Buffer{event.text} : Buffer{};
    if (!budget_.resume_later(true)) return nullptr;
    const auto account = publisher != nullptr && !own ? publisher->load().calls.account() : nullptr;
    FanOut& begun = list_.emplace_back(event.topic, event.owned == nullptr ? std::move(copy) : std::move(*event.owned),
                                       account, context_->loop, context_->limits);
    begun.number = context_->topics.last_event();
    begun.retained = event.retained;
    begun.answer = std::move(answer);
    begun.input = std::move(input);
    begun.recipients = std::move(recipients);
    if (begun.retained != 0) retained_.insert(retained_.end(), begun.retained);
    if (!own) follow_same_topic(begun);
    if (of_node) follow_of_node(begun);
    for (Subscriber* const one : chosen) {
      Peer& peer = *one->peer;
      if (!event.method.empty() && !rpc::may_call(peer.principal, event.method)) continue;
      context_->notification.mark_told(peer);
      begun.recipients.push_back({.peer = peer.number, .ended = one->ended()});  // there is room
    }
    if (own) announced_ = &begun;
    if (!FanOut::fits_turn(1, begun.text.size()))
      budget_.spend_ahead(begun.text.size());  // which this turn has read already
    begun.weigh();
    return &begun;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void FanOuts::follow_same_topic(FanOut& begun) {
  // The key is the topic of the one that stays longest.
  const auto last = last_of_topic_.find(begun.topic);
  if (last != last_of_topic_.end()) {
    last->second->follower = &begun;
    ++begun.waits;
    last_of_topic_.erase(last);
  }
  last_of_topic_.emplace(begun.topic, &begun);
}

void FanOuts::follow_of_node(FanOut& begun) noexcept {
  begun.of_node = true;
  node_bytes_ += begun.text.size();
  if (last_of_node_ != nullptr) {
    last_of_node_->follower_of_node = &begun;
    ++begun.waits;
  }
  last_of_node_ = &begun;
}

void FanOuts::end(const FanOut& done) noexcept {
  if (announced_ == &done) announced_ = nullptr;
  if (done.retained != 0) retained_.erase(done.retained);
  if (done.follower != nullptr) --done.follower->waits;
  if (done.follower_of_node != nullptr) --done.follower_of_node->waits;
  if (last_of_node_ == &done) last_of_node_ = nullptr;
  if (done.of_node) node_bytes_ -= done.text.size();
  const auto last = last_of_topic_.find(done.topic);
  if (last != last_of_topic_.end() && last->second == &done) last_of_topic_.erase(last);
}

// As long as the turn has any bytes left. One that goes beyond leaves the next ones with fewer: what is large is not
// sent to one after the other in turns that follow each other, or whoever comes meanwhile would wait for two of them.
void FanOuts::tell_rest(FanOut& fan_out) {
  while (!budget_.is_spent() && !fan_out.is_done()) {
    const FanOut::Recipient& recipient = fan_out.recipients[fan_out.at++];
    budget_.spend_ahead(FanOut::kBytesOfDelivery);
    Peer* const peer = find_recipient(fan_out, recipient);
    if (peer == nullptr) continue;
    if (fan_out.is_evicted()) {
      drop_for_budget(*context_, *peer, fan_out.topic, fan_out.retained != 0);
      continue;
    }
    budget_.spend_ahead(fan_out.text.size());
    if (!send_event(*context_, *peer, fan_out.topic, fan_out.event, fan_out.retained)) continue;
    ++context_->loop.stats.events_delivered;
    if (fan_out.answer) ++fan_out.answer->count;
  }
}

// Null for one who has gone, or has unsubscribed.
Peer* FanOuts::find_recipient(const FanOut& fan_out, const FanOut::Recipient& recipient) noexcept {
  Peer* const peer = context_->peers.find(recipient.peer);
  if (peer == nullptr || peer->topics.ended() == recipient.ended) [[likely]]
    return peer;
  budget_.spend_ahead(kBytesOfSubscription * peer->topics.count());
  return Subscriptions::still_has(peer->topics, fan_out.topic, fan_out.number) ? peer : nullptr;
}

void FanOuts::resume() noexcept {
  work_off();
  if (budget_.resume_later(!list_.empty())) return;
  // There is no later turn, and their publishers wait.
  budget_.lift();
  work_off();
}

// As many as the turn has bytes for. Those that wait are behind one that does not.
void FanOuts::work_off() noexcept {
  while (!list_.empty() && !budget_.is_spent()) {
    FanOut& first = list_.front();
    if (first.waits == 0) if_memory_allows([&] { tell_rest(first); });
    if (first.is_done()) {
      end(first);
      list_.pop_front();
    } else {
      first.weigh();
      list_.splice(list_.end(), list_, list_.begin());
    }
  }
}

}  // namespace wirecall::broker
