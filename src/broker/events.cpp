// The part of Exchange (exchange.hpp) that is about events: who is told of one, what is kept of it for later, and what
// becomes of those that a slow subscriber has no room for.
#include <algorithm>
#include <new>
#include <utility>

#include "base/decimal.hpp"
#include "broker/exchange.hpp"
#include "broker/outgoing.hpp"
#include "message/own_error.hpp"
#include "rpc/access.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::broker {
namespace {

// {"jsonrpc":"2.0","method":topic,"params":…}
Buffer event_of(std::string_view topic, std::string_view params) {
  Buffer text{R"({"jsonrpc":"2.0","method":)"};
  text.append(to_json(topic));
  if (!params.empty()) {
    text.append(R"(,"params":)");
    text.append(params);
  }
  text.push_back('}');
  unbreak(text, 0);
  return text;
}

}  // namespace

void Exchange::subscribe(Peer& peer, std::string_view pattern, const SubscribeTerms& terms) {
  if (peer.ended) {
    throw message::make(
        {.code = ErrorCode::conflict, .reason = "the connection has ended its side", .delivered = "no"});
  }
  if (!rpc::may_subscribe(peer.principal, pattern)) throw forbidden();
  if (peer.subscription_count() >= limits_->subscriptions) {
    throw message::make({.code = ErrorCode::limit_exceeded,
                         .reason = "too many subscriptions of this connection",
                         .delivered = "no",
                         .limit = "subscriptions"});
  }
  subscriptions_.subscribe(peer, pattern, terms);
  peer.took_part = true;
}

bool Exchange::unsubscribe(Peer& peer, std::string_view pattern) noexcept {
  if (peer.retained) std::erase_if(peer.retained->due, [&](const auto& wish) { return wish.pattern == pattern; });
  return subscriptions_.unsubscribe(peer, pattern);
}

// They follow the answer to the subscription.
void Exchange::want_retained(Peer& peer, std::string pattern) {
  if (!peer.retained) peer.retained = std::make_unique<RetainedWishes>();
  peer.retained->asked = std::move(pattern);
}

void Exchange::send_retained(Peer& peer) {
  RetainedWishes& wishes = *peer.retained;
  wishes.due.push_back({.pattern = std::exchange(wishes.asked, {}), .next = {}});
  send_more_retained(peer);
}

// As much as the peer takes now; the rest when there is room again.
void Exchange::send_more_retained(Peer& peer) {
  RetainedWishes& wishes = *peer.retained;
  while (!wishes.due.empty()) {
    RetainedWishes::Wish& wish = wishes.due.front();
    const bool all = retained_.each(wish.pattern, wish.next, [&](std::string_view topic, std::string_view text) {
      if (peer.outlet().is_overfull()) {
        wish.next = topic;
        return false;
      }
      append_message(peer.outlet(), [text](Buffer& out) { out.append(text); });
      return true;
    });
    if (!all) return;
    wishes.due.pop_front();
  }
  peer.retained.reset();
}

std::size_t Exchange::publish(Peer& publisher, std::string_view topic, std::string_view params, bool retain) {
  if (!rpc::may_publish(publisher.principal, topic)) throw forbidden();
  if (retain && params.empty()) {
    retained_.clear(topic);
    return 0;
  }
  const Buffer text = event_of(topic, params);
  if (text.size() > limits_->max_message_size) {
    throw message::make({.code = ErrorCode::too_large,
                         .reason = "the event is larger than a message may be",
                         .delivered = "no",
                         .limit = "max_message_size"});
  }
  if (retain && !retained_.keep(topic, text.view())) {
    throw message::make({.code = ErrorCode::limit_exceeded,
                         .reason = "there is no room to retain the event",
                         .delivered = "no",
                         .limit = "retained_bytes"});
  }
  return deliver_event(&publisher, topic, text.view(), params);
}

void Exchange::notified(Peer& publisher, std::string_view name, const Received& message) {
  ++event_;
  if ((subscriptions_.empty() && taps_.empty()) || is_reserved(name) || !is_name(name)) return;
  if (!rpc::may_publish(publisher.principal, name)) return;
  const std::string_view params = message.has(Member::params) ? message[Member::params] : std::string_view{};
  const std::string from = from_of(publisher);
  if (!message.has(Member::to) && !message.has(Member::from) && from.empty()) {
    deliver_event(&publisher, name, message.text, params);
    return;
  }
  Buffer text;
  append_addressed(text, message, from);
  deliver_event(&publisher, name, text.view(), params);
}

// Returns how many connections it was queued to. An event about a method is for those who may call that.
std::size_t Exchange::deliver_event(Peer* publisher, std::string_view topic, std::string_view text,
                                    std::string_view params, std::string_view method) {
  std::size_t count = 0;
  ++workspace_->stats.events;
  // Looked at once for all who are told: few texts have line breaks.
  Buffer unbroken;
  if (has_breaks(text)) {
    unbroken.append(text);
    unbreak(unbroken, 0);
  }
  subscriptions_.each(
      topic, publisher,
      [&](Subscriber& subscriber) {
        Peer& peer = static_cast<Peer&>(subscriber);
        if (!method.empty() && !rpc::may_call(peer.principal, method)) return;
        peer.told_of = event_;
        const bool as_line = unbroken.size() != 0 && peer.outlet().takes_lines();
        if (send_event(peer, topic, as_line ? unbroken.view() : text)) ++count;
      },
      [](Subscriber& subscriber) { return static_cast<Peer&>(subscriber).takes_events(); });
  workspace_->stats.events_delivered += count;
  if (!taps_.empty()) [[unlikely]]
    tap_event(publisher, topic, params, count);
  return count;
}

// A peer that takes too little loses events, and learns how many once it has taken most of what waits for it.
bool Exchange::send_event(Peer& peer, std::string_view topic, std::string_view text) {
  if (!peer.takes_events()) {
    drop_event(peer, topic);
    return false;
  }
  Buffer& out = peer.outlet().open_message();
  try {
    out.append(text);
  } catch (const std::bad_alloc&) {
    peer.outlet().discard_message();
    drop_event(peer, topic);
    return false;
  }
  peer.outlet().close_message();
  return true;
}

void Exchange::drop_event(Peer& peer, std::string_view topic) {
  ++workspace_->stats.events_dropped;
  // The first entry is for all topics that find no place of their own.
  if (!peer.lag) peer.lag = std::make_unique<std::vector<Lag>>(1, Lag{.topic = ">", .dropped = 0});
  std::vector<Lag>& lag = *peer.lag;
  auto known = std::ranges::find(lag, topic, &Lag::topic);
  if (known == lag.end() && lag.size() >= kLagTopics) known = lag.begin();
  if (known != lag.end()) {
    ++known->dropped;
    return;
  }
  lag.push_back({.topic = std::string{topic}, .dropped = 1});
}

void Exchange::room(Peer& peer) {
  streams_go_on(peer);
  peer.congested = false;
  for (std::size_t i = 0; i < peer.provides.size(); ++i) free_again(*peer.provides[i]);
  if (peer.is_sent_retained()) send_more_retained(peer);
  if (peer.is_sent_retained()) return;
  const std::unique_ptr<const std::vector<Lag>> lag = std::move(peer.lag);
  if (!lag) return;
  for (const Lag& one : *lag) {
    if (one.dropped == 0) continue;
    const Buffer text = event_of(
        "rpc.lagged", R"({"topic":)" + to_json(one.topic) + R"(,"dropped":)" + std::to_string(one.dropped) + "}");
    append_message(peer.outlet(), [&text](Buffer& out) { out.append(text.view()); });
  }
}

void Exchange::announce(Peer& peer, std::string_view topic, std::string_view method) noexcept {
  if (subscriptions_.empty() && taps_.empty()) return;
  try {
    std::string params = R"({"client":)" + (peer.name.empty() ? std::string{"null"} : to_json(peer.name));
    if (!method.empty()) params += R"(,"method":)" + to_json(method);
    params += '}';
    deliver_event(&peer, topic, event_of(topic, params).view(), params, method);
  } catch (const std::bad_alloc&) {
    // Nobody hears of it: there is no memory to say so either.
  }
}

}  // namespace wirecall::broker
