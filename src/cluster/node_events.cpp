// See node.hpp: names of a node's clients, to what they subscribe, events, and what is retained.
#include "base/dotted_name.hpp"
#include "cluster/hexadecimal.hpp"
#include "cluster/node.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::cluster {

using std::chrono::nanoseconds;

namespace {

// Of one node, as kSubscriptionsMax.
constexpr std::size_t kGroupsMax = 1000;
constexpr std::size_t kClientsMax = 100'000;

struct AboutMethod {
  std::optional<std::string> method;
};

// The method that an event of the other broker's own is about, of which those alone are told who may call it; empty for
// an event about none, and nothing for one that should name a method, and does not.
std::optional<std::string> method_announced(const Received& event) {
  if (event.method() != "rpc.method.registered" && event.method() != "rpc.method.unregistered") return std::string{};
  if (event.params().empty()) return std::nullopt;
  const auto about = from_json<AboutMethod>(event.params());
  return about && about->method && !about->method->empty() ? about->method : std::nullopt;
}

}  // namespace

// The peer that subscribes for those of the node's clients that are in that group, or in none, and publishes for the
// node to those of ours.
broker::Peer& Node::events_of(std::string_view group) {
  auto found = events_.find(group);
  if (found == events_.end()) found = events_.emplace(std::string{group}, make_events_side(group)).first;
  return static_cast<broker::Peer&>(*found->second->dispatcher.join_broker());
}

std::unique_ptr<Node::Side> Node::make_events_side(std::string_view group) {
  auto side = std::make_unique<Side>(*this, RecordKind::event, std::string{group});
  auto& made = static_cast<broker::Peer&>(*side->dispatcher.join_broker());
  made.node = this;
  made.of_node = true;
  made.topics.of_node = true;
  made.topics.group = group;
  if (group.empty()) made.retained_reader = &told_numbers_;
  return side;
}

// The same where it publishes only: of groups in which it has nobody nothing is kept.
broker::Peer& Node::publisher_for(std::string_view group) {
  if (group.empty() || events_.contains(group)) return events_of(group);
  if (publishes_ == nullptr) publishes_ = make_events_side(group);
  auto& peer = static_cast<broker::Peer&>(*publishes_->dispatcher.join_broker());
  peer.topics.group = group;
  return peer;
}

void Node::take_clients(std::string_view json) {
  const auto news = from_json<ClientNews>(json);
  if (!news) return refuse_news("clients");
  for (const std::string& name : news->gone) clients_.erase(name);
  for (const std::string& name : news->set) {
    if (name.empty() || name.size() > kNameBytesMax) continue;
    if (clients_.size() >= kClientsMax) return refuse("it has more clients with names than calls may be addressed to");
    clients_.insert(name);
  }
}

void Node::take_topics(std::string_view json) {
  broker::Subscriptions& topics = context_->router.topics();
  const auto take = [&](std::string_view pattern, std::string_view group, bool there) {
    if (there && (subscriptions_ >= kSubscriptionsMax || (events_.size() >= kGroupsMax && !events_.contains(group))))
      return refuse("it has more subscriptions or groups than are told of events");
    if (!there && !events_.contains(group)) return;
    broker::Peer& peer = events_of(group);
    if (!there) {
      if (topics.unsubscribe(peer.topics, pattern)) --subscriptions_;
      if (peer.topics.count() == 0 && !group.empty()) events_.erase(events_.find(group));
    } else if (topics.admits(peer.topics, pattern) && !topics.has(peer.topics, pattern)) {
      topics.subscribe(peer.topics, pattern, {.group = group, .echo = false});
      ++subscriptions_;
    }
  };
  if (!read_topic_news(json, context_->host.loop_context.codecs.codec, take)) refuse_news("topics");
}

void Node::take_event(std::string_view group, const Received& message) {
  if (message.kind != MessageKind::notification || message.method_escaped || !is_name(message.method())) return;
  if (message.method() == "rpc.lagged") return static_cast<void>(++events_lost_);
  const std::optional<std::string> about = method_announced(message);
  if (!about) return;
  Buffer text{message.text};
  context_->router.events().deliver(
      &publisher_for(group),
      {.topic = message.method(), .text = text.view(), .params = message.params(), .method = *about, .owned = &text});
}

// ---- what is retained ----

void Node::tell_retained(std::string_view topic) {
  if (!link_.is_open() || !context_->retained.knows(topic)) return;
  const std::optional<std::uint64_t> number = context_->router.events().retained().number_of(topic);
  const bool told = number && told_.contains(*number);
  tell(RecordKind::retained, [&](Buffer& out) { context_->retained.write(topic, told, out); });
}

// As much as may wait for the node.
void Node::tell_more_retained() {
  constexpr std::size_t kTopicsATurn = 1024;
  for (std::size_t i = 0; link_.is_open(); ++i) {
    const std::string* const topic = context_->retained.next(*retained_after_);
    if (topic == nullptr) return retained_after_.reset();
    if (i == kTopicsATurn || link_.waiting_bytes() > context_->host.limits.soft_output / 4) return context_->flush();
    retained_after_ = *topic;
    tell_retained(*topic);
  }
}

void Node::compare_retained(std::uint64_t digest) {
  retained_there_.reset();
  if (digest == context_->retained.digest() || !link_.is_open()) return;
  const nanoseconds now = context_->now();
  RetainedAsked& asked = context_->retained_asked;
  if (!asked.is_over(now)) {
    retained_there_ = digest;  // what comes now may be the same: `tick` looks again
    return;
  }
  asked = {.node = this, .since = now, .last = now};
  tell(RecordKind::retained, [](Buffer& out) { out.append(ask_for_retained()); });
}

void Node::take_retained(std::string_view text) {
  const std::optional<RetainedText> read = read_retained(text);
  if (!read) return refuse_news("retained events");
  const RetainedHead& head = read->head;
  if (head.digest) return compare_retained(read_hexadecimal(*head.digest).value_or(0));
  if (head.ask) {
    retained_after_ = "";
    return context_->flush();
  }
  if (context_->retained_asked.node == this) context_->retained_asked.last = context_->now();
  // The event is one of that topic: it is read as any message of a node's.
  if (!read->event.empty()) {
    Buffer padded{read->event};
    Arrived event;
    const ReadStatus status = this->read(padded.padded(), widest(), event);
    const Received& message = event.received;
    if (status != ReadStatus::done || message.kind != MessageKind::notification || message.method_escaped ||
        !head.topic || message.method() != *head.topic)
      return refuse_news("retained events");
  }
  switch (context_->retained.take(head, read->event, context_->now())) {
    case RetainedReplica::Taken::malformed: return refuse_news("retained events");
    case RetainedReplica::Taken::known: return;
    case RetainedReplica::Taken::outdone: return context_->retained_outdone(*head.topic);
    case RetainedReplica::Taken::newer:
      if (!head.gone && !head.told) deliver_retained(*head.topic, read->event);
      return;
  }
}

// To those of our clients that subscribe to it, of which the node may not have known.
void Node::deliver_retained(std::string_view topic, std::string_view event) {
  Buffer text{event};
  Arrived read;
  if (this->read(text.padded(), widest(), read) != ReadStatus::done) return;
  restore(read);
  const Received& message = read.received;
  const auto number = context_->router.events().retained().number_of(topic);
  context_->router.events().deliver(&events_of(""), {.topic = topic,
                                                     .text = text.view(),
                                                     .params = message.params(),
                                                     .owned = &text,
                                                     .retained = number.value_or(0)});
}

}  // namespace wirecall::cluster
