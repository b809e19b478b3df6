// The part of Router (router.hpp) that is about events: who is told of one, what is kept of it for later, and what
// becomes of those that a slow subscriber has no room for.
#include <algorithm>
#include <chrono>
#include <limits>
#include <new>
#include <ranges>
#include <span>
#include <utility>

#include "base/decimal.hpp"
#include "base/dotted_name.hpp"
#include "broker/outgoing.hpp"
#include "broker/router.hpp"
#include "message/msgpack_reply.hpp"
#include "message/own_error.hpp"
#include "message/transcoder.hpp"
#include "rpc/access.hpp"
#include "rpc/event_text.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::broker {

using std::chrono::nanoseconds;

namespace {

// Of a connection's share (rpc::Share).
constexpr std::size_t kMatchesInStep = 8;
constexpr std::size_t kMembersInStep = 32;

// For events that are lost whose topic is not known.
constexpr std::string_view kAllTopics = ">";

}  // namespace

void Router::subscribe(Peer& peer, std::string_view pattern, const SubscriptionOptions& options) {
  if (peer.ended) {
    throw message::make(
        {.code = ErrorCode::conflict, .reason = "the connection has ended its side", .delivered = "no"});
  }
  if (!rpc::may_subscribe(peer.principal, pattern)) throw forbidden();
  if (!subscriptions_.has(peer, pattern)) require_subscribable(peer, pattern, options);
  subscriptions_.subscribe(peer, pattern, options);
  peer.took_part = true;
}

// Throws where the subscription, which is a new one, would go beyond a limit.
void Router::require_subscribable(const Peer& peer, std::string_view pattern,
                                  const SubscriptionOptions& options) const {
  const auto refuse = [](std::string_view reason, std::string_view limit) {
    throw message::make({.code = ErrorCode::limit_exceeded, .reason = reason, .delivered = "no", .limit = limit});
  };
  if (peer.subscription_count() >= limits_->subscriptions)
    refuse("too many subscriptions of this connection", "subscriptions");
  if (peer.subscription_bytes() + Subscriptions::cost(pattern, options) > limits_->subscription_bytes)
    refuse("the subscriptions of this connection hold too many bytes", "subscription_bytes");
  if (!subscriptions_.admits(peer, pattern))
    refuse("too many patterns of more than 6 words have their wildcards in places of their own", "subscription_steps");
}

bool Router::unsubscribe(Peer& peer, std::string_view pattern) noexcept {
  if (peer.retained) {
    if (const auto found = peer.retained->due.find(pattern); found != peer.retained->due.end())
      peer.retained->due.erase(found);
  }
  return subscriptions_.unsubscribe(peer, pattern);
}

// ---- what is retained ----

// They follow the answer to the subscription.
void Router::request_retained(Peer& peer, std::string pattern) {
  if (!peer.retained) peer.retained = std::make_unique<RetainedRequests>();
  peer.retained->asked = std::move(pattern);
}

// A pattern whose topics are still being sent is not begun anew.
void Router::send_retained(Peer& peer) {
  RetainedRequests& requests = *peer.retained;
  requests.due.try_emplace(std::exchange(requests.asked, {}));
  if (!requests.queued) send_more_retained(peer);
}

// As much as the peer takes and the turn has steps for; the rest when there is room again, or in a later turn.
void Router::send_more_retained(Peer& peer) {
  if (loop_context_->scheduler == nullptr) {
    std::size_t steps = std::numeric_limits<std::size_t>::max();
    static_cast<void>(walk_retained(peer, steps));
    return;
  }
  const std::size_t given = std::min(walk_steps_left_, kWalkStepsAtOnce);
  std::size_t steps = given;
  const bool waits = walk_retained(peer, steps);
  walk_steps_left_ -= given - steps;
  if (waits) {
    retained_queue_.push_back(&peer);
    peer.retained->queued = true;
  } else if (peer.takes_events()) {
    tell_lag(peer);
  }
  refill_later();
}

void Router::refill_later() {
  if (walks_ || (retained_queue_.empty() && walk_steps_left_ == kWalkSteps)) return;
  loop_context_->scheduler->start(walking_, nanoseconds{0});
  walks_ = true;
}

// Each in its turn, so that one who has asked for much does not keep the others waiting.
void Router::walk_on() noexcept {
  walks_ = false;
  walk_steps_left_ = kWalkSteps;
  if_memory_allows([&] {
    while (!retained_queue_.empty() && walk_steps_left_ != 0) {
      Peer& peer = *retained_queue_.front();
      retained_queue_.pop_front();
      peer.retained->queued = false;
      send_more_retained(peer);
    }
  });
  if_memory_allows([&] { refill_later(); });
}

// Takes what it needs off `steps`. True when it could go on with more of them.
bool Router::walk_retained(Peer& peer, std::size_t& steps) {
  RetainedRequests& requests = *peer.retained;
  const std::size_t before = steps;
  requests.backpressured = false;
  bool out_of_steps = false;
  while (!requests.due.empty() && !out_of_steps) {
    auto& [pattern, next] = *requests.due.begin();
    bool full = false;
    const bool all = retained_.walk(pattern, next, steps, [&](std::string_view topic, std::string_view text) {
      rpc::MessageSink& sink = peer.sink();
      full = sink.is_overfull() || (sink.waiting_bytes() != 0 && !sink.has_budget_for(text.size()));
      if (!full) send_kept_event(peer, topic, text);
      return !full;
    });
    requests.backpressured = full;
    if (full) break;
    out_of_steps = !all;
    if (all) requests.due.erase(requests.due.begin());
  }
  event_steps_ += before - steps;
  if (out_of_steps) return true;
  if (!requests.due.empty()) return false;
  // Live events follow.
  const std::unique_ptr<const RetainedRequests> done = std::move(peer.retained);
  for (const std::string& text : done->held) send_kept_event(peer, kAllTopics, text);
  return false;
}

// It is kept as it was published.
void Router::send_kept_event(Peer& peer, std::string_view topic, std::string_view kept) {
  rpc::EventText event{kept, *loop_context_, *limits_};
  if (event.send_to(peer.sink()) == rpc::EventText::SendResult::no_budget) drop_for_budget(peer, topic);
}

void Router::forget_retained(Peer& peer) noexcept {
  if (peer.retained && peer.retained->queued) std::erase(retained_queue_, &peer);
  peer.retained.reset();
}

// Whether the topic's retained event, as it is then, is still to be sent to the peer; of many patterns as far as the
// first few say.
bool Router::is_to_be_walked(const Peer& peer, std::string_view topic) noexcept {
  return std::ranges::any_of(peer.retained->due | std::views::take(kPatternsLookedAt),
                             [&](const auto& wish) { return topic >= wish.second && matches(wish.first, topic); });
}

// Keeps an event for later, as far as there is room.
bool Router::hold_event(Peer& peer, std::string_view text) {
  RetainedRequests& requests = *peer.retained;
  if (requests.held_bytes + text.size() + sizeof(std::string) > RetainedRequests::kHeldBytesMax) return false;
  requests.held.emplace_back(text);
  requests.held_bytes += text.size() + sizeof(std::string);
  return true;
}

// ---- what is published ----

std::size_t Router::publish(Peer& publisher, std::string_view topic, const EncodedValue& given, bool retain) {
  const std::string_view params = given.text;
  if (!rpc::may_publish(publisher.principal, topic)) throw forbidden();
  if (retain && params.empty()) {
    retained_.clear(topic);
    return 0;
  }
  Buffer text = given.msgpack ? rpc::msgpack_event_of(topic, params) : rpc::event_of(topic, params);
  if (text.size() > limits_->max_message_size) {
    throw message::make({.code = ErrorCode::too_large,
                         .reason = "the event is larger than a message may be",
                         .delivered = "no",
                         .limit = "max_message_size"});
  }
  if (retain) {
    const auto& account = publisher.load().calls.account();
    const Retained::By by{.owner = account ? std::string_view{account->name} : std::string_view{},
                          .client = publisher.name};
    std::size_t evicted = 0;
    const Retained::Kept kept = retained_.keep(topic, text.view(), by, evicted);
    if (evicted != 0) publisher.sink().charge(evicted);
    if (kept != Retained::Kept::yes) {
      const bool all = kept == Retained::Kept::full;
      throw message::make({.code = ErrorCode::limit_exceeded,
                           .reason = all ? "there is no room to retain the event"
                                         : "this principal, address or user retains too many bytes",
                           .delivered = "no",
                           .limit = all ? "retained_bytes" : "principal_retained_bytes"});
    }
  }
  if (retain) retaining_ = topic;
  const Delivered delivered =
      deliver_event(&publisher, {.topic = topic, .text = text.view(), .params = params, .owned = &text});
  retaining_ = {};
  if (delivered.later != nullptr) published_ = delivered.later->answer;
  return delivered.count;
}

void Router::notified(Peer& publisher, std::string_view name, const Received& message) {
  ++event_;
  if ((subscriptions_.empty() && taps_.empty()) || is_reserved(name) || !is_name(name)) return;
  if (!rpc::may_publish(publisher.principal, name)) return;
  const std::string_view params = message.has(Member::params) ? message[Member::params] : std::string_view{};
  const std::string from = from_of(publisher);
  if (!message.has(Member::to) && !message.has(Member::from) && from.empty()) {
    deliver_event(&publisher, {.topic = name, .text = message.text, .params = params});
    return;
  }
  Buffer text;
  if (message.msgpack) {
    const std::string_view name_json = from.empty() ? std::string_view{} : value_of_from(from);
    message::append_msgpack_request(text, message.text, {.id = 0, .from_json = name_json},
                                    loop_context_->codecs.transcoder());
  } else {
    append_addressed(text, message, from);
  }
  deliver_event(&publisher, {.topic = name, .text = text.view(), .params = params, .owned = &text});
}

Router::Delivered Router::deliver_event(Peer* publisher, const NewEvent& event) {
  ++loop_context_->stats.events;
  const std::span<Subscriber* const> chosen = subscriptions_.choose_for(
      event.topic, publisher, [](Subscriber& one) { return static_cast<Peer&>(one).takes_events(); });
  const std::size_t bytes = event.text.size();
  Delivered delivered;
  if (!FanOut::fits_turn(chosen.size(), bytes) || (!fan_outs_.empty() && !chosen.empty() && is_being_told(event.topic)))
      [[unlikely]]
    delivered.later = begin_fan_out(publisher, event, chosen);
  // An event for many costs whoever publishes it more of a turn than its message.
  if (delivered.later == nullptr) [[likely]] {
    delivered.count = tell_at_once(event, chosen);
    delivered.cost = cost_of_deliveries(chosen.size(), bytes);
  } else {
    delivered.count = delivered.later->recipients.size();
    delivered.cost = chosen.size() / kMembersInStep;
  }
  event_steps_ += subscriptions_.last_steps();
  delivered.cost += subscriptions_.last_steps() / kMatchesInStep + subscriptions_.last_members() / kMembersInStep;
  if (publisher != nullptr && delivered.cost != 0) publisher->sink().charge(delivered.cost);
  if (!taps_.empty()) [[unlikely]]
    tap_event(publisher, event.topic, {.text = event.params, .msgpack = message::is_msgpack(event.text.front())},
              delivered.count);
  return delivered;
}

std::size_t Router::tell_at_once(const NewEvent& event, std::span<Subscriber* const> chosen) {
  std::size_t count = 0;
  rpc::EventText text{event.text, *loop_context_, *limits_};
  for (Subscriber* const one : chosen) {
    Peer& peer = static_cast<Peer&>(*one);
    if (!event.method.empty() && !rpc::may_call(peer.principal, event.method)) continue;
    peer.last_event = event_;
    if (send_event(peer, event.topic, text)) ++count;
  }
  loop_context_->stats.events_delivered += count;
  return count;
}

// A peer that takes too little loses events, and learns how many once it has taken most of what waits for it. One that
// is still being sent what is retained has them kept for a while.
bool Router::send_event(Peer& peer, std::string_view topic, rpc::EventText& event) {
  if (!peer.takes_events()) {
    if (peer.is_sent_retained() && !peer.retained->backpressured && !peer.lag && !peer.sink().is_overfull()) {
      try {
        if (topic == retaining_ && is_to_be_walked(peer, topic)) return true;  // it comes in its turn
        if (hold_event(peer, event.original())) return true;
      } catch (const std::bad_alloc&) {
      }
    }
    drop_event(peer, topic);
    return false;
  }
  try {
    tell_lag(peer);
    const rpc::EventText::SendResult sent = event.send_to(peer.sink());
    if (sent == rpc::EventText::SendResult::no_budget) [[unlikely]]
      drop_for_budget(peer, topic);
    return sent == rpc::EventText::SendResult::yes;
  } catch (const std::bad_alloc&) {
    drop_event(peer, topic);
    return false;
  }
}

// Too much waits for its principal's connections, which are not its own alone: so nothing may come by which it would be
// told later.
void Router::drop_for_budget(Peer& peer, std::string_view topic) {
  drop_event(peer, topic);
  if (!peer.congested) tell_lag(peer);
}

void Router::drop_event(Peer& peer, std::string_view topic) {
  ++loop_context_->stats.events_dropped;
  count_lag(peer, topic, 1);
}

void Router::count_lag(Peer& peer, std::string_view topic, std::uint64_t count) {
  static_cast<void>(peer.is_congested());  // then it is told of them once there is room
  // The first entry is for all topics that have no entry of their own.
  if (!peer.lag) peer.lag = std::make_unique<std::vector<Lag>>(1, Lag{.topic = std::string{kAllTopics}, .dropped = 0});
  std::vector<Lag>& lag = *peer.lag;
  auto known = std::ranges::find(lag, topic, &Lag::topic);
  if (known == lag.end() && lag.size() >= kLagTopics) known = lag.begin();
  if (known != lag.end()) {
    known->dropped += count;
    return;
  }
  lag.push_back({.topic = std::string{topic}, .dropped = count});
}

void Router::on_writable(Peer& peer) {
  resume_streams(peer);
  peer.congested = false;
  // From the last on, since one that goes leaves its place to the last.
  for (std::size_t i = peer.provides.size(); i-- != 0;) {
    if (i < peer.provides.size()) free_again(*peer.provides[i]);
  }
  if (peer.is_sent_retained() && !peer.retained->queued) send_more_retained(peer);
  if (!peer.is_sent_retained()) tell_lag(peer);
}

// By which a subscriber is told what it has lost.
Buffer Router::lagged(std::string_view topic, std::uint64_t count) {
  return rpc::event_of("rpc.lagged", R"({"topic":)" + to_json(topic) + R"(,"dropped":)" + std::to_string(count) + "}");
}

// What it has lost, if anything.
void Router::tell_lag(Peer& peer) {
  if (!peer.lag) [[likely]]
    return;
  const std::unique_ptr<const std::vector<Lag>> lag = std::move(peer.lag);
  for (const Lag& one : *lag) {
    if (one.dropped == 0) continue;
    const Buffer text = lagged(one.topic, one.dropped);
    append_message(peer.sink(), [&text](Buffer& out) { out.append(text.view()); });
  }
}

}  // namespace wirecall::broker
