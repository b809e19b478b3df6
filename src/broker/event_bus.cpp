// See event_bus.hpp.
#include "broker/event_bus.hpp"

#include "broker/linked_broker.hpp"
#include "broker/outgoing.hpp"
#include "message/own_error.hpp"

namespace wirecall::broker {

// Of a connection's share (rpc::Share).
constexpr std::size_t kMatchesInStep = 8;
constexpr std::size_t kMembersInStep = 32;

void EventBus::subscribe(Peer& peer, std::string_view pattern, const SubscriptionOptions& options) {
  if (peer.has_ended()) throw has_ended();
  if (!rpc::may_subscribe(peer.principal, pattern)) throw forbidden();
  if (!context_->topics.has(peer.topics, pattern)) require_subscribable(peer, pattern, options);
  context_->topics.subscribe(peer.topics, pattern, options);
  peer.retained_reader = peer.sink().retained_reader();
  peer.took_part = true;
}

// Throws where the subscription, which is a new one, would go beyond a limit.
void EventBus::require_subscribable(const Peer& peer, std::string_view pattern,
                                    const SubscriptionOptions& options) const {
  if (peer.topics.count() >= context_->limits.subscriptions) throw too_many_subscriptions();
  if (peer.topics.bytes() + Subscriptions::cost(pattern, options) > context_->limits.subscription_bytes)
    throw limit_exceeded("the subscriptions of this connection hold too many bytes", "subscription_bytes");
  if (!context_->topics.admits(peer.topics, pattern)) {
    throw limit_exceeded("too many patterns of more than 6 words have their wildcards in places of their own",
                         "subscription_steps");
  }
}

bool EventBus::unsubscribe(Peer& peer, std::string_view pattern) noexcept {
  if (peer.retained) {
    if (const auto found = peer.retained->due.find(pattern); found != peer.retained->due.end())
      peer.retained->due.erase(found);
  }
  return context_->topics.unsubscribe(peer.topics, pattern);
}

Retained::By EventBus::by_of(const Peer& publisher) noexcept {
  const auto& account = publisher.load().calls.account();
  return {.owner = account ? std::string_view{account->name} : std::string_view{}, .client = publisher.name};
}

std::size_t EventBus::publish(Peer& publisher, std::string_view topic, const EncodedText& given, bool retain) {
  if (!rpc::may_publish(publisher.principal, topic)) throw forbidden();
  return publish_by(&publisher, by_of(publisher), topic, given, retain);
}

std::size_t EventBus::publish_by(Peer* publisher, const Retained::By& by, std::string_view topic,
                                 const EncodedText& given, bool retain) {
  const std::string_view params = given.text;
  if (retain && params.empty()) {
    retained_.clear(topic);
    if (context_->realm) context_->realm->retained_changed(topic, true);
    tell_links(topic, {}, {});
    return 0;
  }
  Buffer text = rpc::event_of(context_->loop.codecs, topic, given);
  if (text.size() > context_->limits.max_message_size) {
    throw message::too_large("the event is larger than a message may be");
  }
  const std::uint64_t number = retain ? keep(publisher, by, topic, text.view()) : 0;
  const Delivered delivered =
      deliver(publisher, {.topic = topic, .text = text.view(), .params = params, .owned = &text, .retained = number});
  if (delivered.later != nullptr) published_ = delivered.later->answer;
  return delivered.count;
}

// Returns its number. Throws where there is no room.
std::uint64_t EventBus::keep(const Peer* publisher, const Retained::By& by, std::string_view topic,
                             std::string_view text) {
  std::size_t evicted = 0;
  const Retained::Kept kept = retained_.keep(topic, text, by, evicted, [this](std::string_view gone) {
    if (context_->realm) context_->realm->retained_changed(gone, true);
  });
  if (evicted != 0 && publisher != nullptr) publisher->sink().charge(evicted);
  if (kept == Retained::Kept::full) throw limit_exceeded("there is no room to retain the event", "retained_bytes");
  if (kept == Retained::Kept::owner_is_full)
    throw limit_exceeded("this principal, address or user retains too many bytes", "principal_retained_bytes");
  if (context_->realm) context_->realm->retained_changed(topic, false);
  tell_links(topic, text, by);
  return retained_.last_number();
}

void EventBus::tell_links(std::string_view topic, std::string_view text, const Retained::By& by) const noexcept {
  for (LinkedBroker* const link : context_->links) link->retain(topic, text, by);
}

void EventBus::notified(Peer& publisher, std::string_view name, const Received& message) {
  context_->notification.begin();
  if (publisher.sink().capabilities().datagrams) return;
  if ((context_->topics.empty() && tap_feed_->empty()) || is_reserved(name) || !is_name(name)) return;
  if (!rpc::may_publish(publisher.principal, name)) return;
  const std::string_view params = message.params();
  const std::string from = context_->from_of(publisher, message);
  if (!message.has(Member::to) && !message.has(Member::from) && from.empty()) {
    deliver(&publisher, {.topic = name, .text = message.text, .params = params});
    return;
  }
  Buffer text;
  append_addressed(context_->loop.codecs, text, message, from);
  deliver(&publisher, {.topic = name, .text = text.view(), .params = params, .owned = &text});
}

Delivered EventBus::deliver(Peer* publisher, const NewEvent& event) {
  ++context_->loop.stats.events;
  for (LinkedBroker* const link : context_->links) link->tell_subscriptions();
  const std::span<Subscriber* const> chosen =
      context_->topics.choose_for(event.topic, publisher != nullptr ? &publisher->topics : nullptr,
                                  [](Subscriber& one) { return one.peer->takes_events(); });
  const std::size_t bytes = event.text.size();
  Delivered delivered;
  const bool follows = fan_outs_->is_being_told(event.topic) || fan_outs_->is_telling_of_node(publisher);
  if (!FanOut::fits_turn(chosen.size(), bytes) || (follows && !chosen.empty())) [[unlikely]] {
    if (follows && fan_outs_->is_full_for(publisher, bytes, chosen.size())) return lose(event, chosen);
    delivered.later = fan_outs_->begin(publisher, event, chosen);
  }
  // An event for many costs whoever publishes it more of a turn than its message.
  if (delivered.later == nullptr) [[likely]] {
    delivered.count = tell_at_once(event, chosen);
    delivered.cost = cost_of_deliveries(chosen.size(), bytes);
  } else {
    delivered.count = delivered.later->recipients.size();
    delivered.cost = chosen.size() / kMembersInStep;
  }
  steps_ += context_->topics.last_steps();
  delivered.cost += context_->topics.last_steps() / kMatchesInStep + context_->topics.last_members() / kMembersInStep;
  if (publisher != nullptr && delivered.cost != 0) publisher->sink().charge(delivered.cost);
  if (!tap_feed_->empty()) [[unlikely]]
    tap_feed_->event(publisher, event.topic,
                     {.text = event.params, .encoding = message::encoding_of(event.text.front())}, delivered.count);
  return delivered;
}

// There is no room for it to wait, and it must not overtake others. Who loses it is told so with his next event.
Delivered EventBus::lose(const NewEvent& event, std::span<Subscriber* const> chosen) {
  for (Subscriber* const one : chosen) {
    if (event.method.empty() || rpc::may_call(one->peer->principal, event.method))
      drop_event(*context_, *one->peer, event.topic, event.retained != 0);
  }
  return {};
}

std::size_t EventBus::tell_at_once(const NewEvent& event, std::span<Subscriber* const> chosen) {
  std::size_t count = 0;
  rpc::EventText text{event.text, context_->loop, context_->limits};
  for (Subscriber* const one : chosen) {
    Peer& peer = *one->peer;
    if (!event.method.empty() && !rpc::may_call(peer.principal, event.method)) continue;
    context_->notification.mark_told(peer);
    if (send_event(*context_, peer, event.topic, text, event.retained)) ++count;
  }
  context_->loop.stats.events_delivered += count;
  return count;
}

}  // namespace wirecall::broker
