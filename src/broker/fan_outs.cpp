// See fan_outs.hpp.
#include "broker/fan_outs.hpp"

#include "broker/outgoing.hpp"

namespace wirecall::broker {

// To look at one subscription of who has ended another costs as much as to send so many bytes.
constexpr std::size_t kBytesOfSubscription = 32;

static std::size_t bytes_held(std::size_t text_bytes, std::size_t recipients) noexcept {
  return sizeof(FanOut) + sizeof(DeliveredCount) + text_bytes + recipients * sizeof(FanOut::Recipient);
}

const FanOut* FanOuts::begin(Peer* publisher, const NewEvent& event, std::span<Subscriber* const> chosen) noexcept {
  if (!budget_.has_turns()) return nullptr;
  try {
    last_of_topic_.reserve(last_of_topic_.size() + 1);
    const bool own = is_reserved(event.topic);
    const bool of_node = publisher != nullptr && publisher->of_node;
    std::shared_ptr<void> input = publisher != nullptr && !own && !of_node ? publisher->sink().hold_input() : nullptr;
    if (input == nullptr && !own && !of_node) return nullptr;
    auto answer = own ? nullptr : std::make_shared<DeliveredCount>();
    std::vector<FanOut::Recipient> recipients;
    recipients.reserve(chosen.size());
    Buffer copy = event.owned == nullptr ? Buffer{event.text} : Buffer{};
    if (of_node) last_of_node_.try_emplace(publisher->node, nullptr);
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
    begun.self = std::prev(list_.end());
    if (!own) follow_same_topic(begun);
    if (of_node) follow_of_node(begun, publisher->node);
    if (begun.waits != 0) waiting_.splice(waiting_.end(), list_, begun.self);
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
  auto last = last_of_topic_.extract(begun.topic);
  if (last.empty()) return static_cast<void>(last_of_topic_.emplace(begun.topic, &begun));
  last.mapped()->follower = &begun;
  ++begun.waits;
  last.key() = begun.topic;
  last.mapped() = &begun;
  last_of_topic_.insert(std::move(last));
}

void FanOuts::follow_of_node(FanOut& begun, const RemoteNode* node) noexcept {
  begun.of_node = true;
  begun.node = node;
  begun.bytes_of_node = bytes_held(begun.text.size(), begun.recipients.capacity());
  bytes_of_nodes_ += begun.bytes_of_node;
  FanOut*& last = last_of_node_.find(node)->second;
  if (last != nullptr) {
    last->follower_of_node = &begun;
    ++begun.waits;
  }
  last = &begun;
}

bool FanOuts::is_telling_of_node(const Peer* publisher) const noexcept {
  if (publisher == nullptr || !publisher->of_node || last_of_node_.empty()) return false;
  const auto last = last_of_node_.find(publisher->node);
  return last != last_of_node_.end() && last->second != nullptr;
}

bool FanOuts::is_full_for(const Peer* publisher, std::size_t bytes, std::size_t recipients) const noexcept {
  return publisher != nullptr && publisher->of_node && bytes_of_nodes_ != 0 &&
         bytes_of_nodes_ + bytes_held(bytes, recipients) > context_->limits.hard_output;
}

void FanOuts::end(const FanOut& done) noexcept {
  if (announced_ == &done) announced_ = nullptr;
  if (done.retained != 0) retained_.erase(done.retained);
  stop_waiting(done.follower);
  stop_waiting(done.follower_of_node);
  bytes_of_nodes_ -= done.bytes_of_node;
  if (done.of_node) {
    const auto last_of_node = last_of_node_.find(done.node);
    if (last_of_node->second == &done) last_of_node_.erase(last_of_node);
  }
  const auto last = last_of_topic_.find(done.topic);
  if (last != last_of_topic_.end() && last->second == &done) last_of_topic_.erase(last);
}

void FanOuts::stop_waiting(FanOut* follower) noexcept {
  if (follower != nullptr && --follower->waits == 0) list_.splice(list_.end(), waiting_, follower->self);
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

// As many as the turn has bytes for.
void FanOuts::work_off() noexcept {
  while (!list_.empty() && !budget_.is_spent()) {
    FanOut& first = list_.front();
    if_memory_allows([&] { tell_rest(first); });
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
