// See linked_broker.hpp.
#include "broker/linked_broker.hpp"

#include "base/dotted_name.hpp"
#include "broker/outgoing.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::broker {

LinkedBroker::LinkedBroker(BrokerContext& context, EventBus& events, Registrar& registrar, Peer& peer, bool predecessor)
    : context_(&context), events_(&events), registrar_(&registrar), peer_(&peer), predecessor_(predecessor) {
  context.links.push_back(this);
  context.topics.watch_all(this);
  peer.linked = this;
  peer.topics.elsewhere = &there_;
}

LinkedBroker::~LinkedBroker() {
  if (pending_) context_->loop.stop(*this);
  context_->loop.stop(return_timer_);
  peer_->linked = nullptr;
  peer_->topics.elsewhere = nullptr;
  context_->topics.unwatch(this);
  std::erase(context_->links, this);
}

// ---- what is subscribed to ----

std::vector<LinkedTopic> LinkedBroker::topics(const BrokerContext& context, const Subscriber* but) {
  std::vector<LinkedTopic> all;
  for (const std::string& pattern : context.topics.patterns()) {
    const TopicGroups::mapped_type groups = context.topics.groups_of(pattern, but);
    if (!groups.empty() && !is_reserved(pattern))
      all.push_back({.topic = pattern, .groups = {groups.begin(), groups.end()}});
  }
  return all;
}

void LinkedBroker::told(const std::vector<LinkedTopic>& topics, std::set<std::string> methods) {
  for (const LinkedTopic& one : topics) told_[one.topic] = {one.groups.begin(), one.groups.end()};
  methods_told_ = std::move(methods);
}

void LinkedBroker::take(LinkedTopic topic) {
  Subscriptions& topics = context_->topics;
  if (!is_pattern(topic.topic) || is_reserved(topic.topic)) return;
  if (topic.groups.empty()) {
    there_.erase(topic.topic);
    topics.unsubscribe(peer_->topics, topic.topic);
    return;
  }
  if (!topics.has(peer_->topics, topic.topic)) {
    if (!topics.admits(peer_->topics, topic.topic)) return;
    topics.subscribe(peer_->topics, topic.topic, {});
  }
  there_[std::move(topic.topic)] = {topic.groups.begin(), topic.groups.end()};
}

void LinkedBroker::subscription_changed(std::string_view pattern, std::string_view group) noexcept {
  static_cast<void>(group);
  if (is_reserved(pattern)) return;
  try {
    changed_.emplace(pattern);
  } catch (const std::bad_alloc&) {
    all_changed_ = true;
  }
  tell_later();
}

void LinkedBroker::tell_later() noexcept {
  if (pending_ || context_->loop.scheduler == nullptr) return;
  if_memory_allows([this] {
    context_->loop.scheduler->start(*this, std::chrono::nanoseconds{0});
    pending_ = true;
  });
}

void LinkedBroker::expired() try {
  pending_ = false;
  if (all_changed_) {
    for (const std::string& pattern : context_->topics.patterns()) changed_.insert(pattern);
    for (const auto& [pattern, groups] : told_) changed_.insert(pattern);
    const Route* route = nullptr;
    for (std::string_view after; (route = context_->methods.next(after)) != nullptr; after = route->name())
      changed_methods_.insert(route->name());
    changed_methods_.insert(methods_told_.begin(), methods_told_.end());
    for (const auto& [name, method] : methods_there_) changed_methods_.insert(name);
    all_changed_ = false;
  }
  tell_topics();
  while (!changed_methods_.empty()) {
    const auto changed = changed_methods_.extract(changed_methods_.begin());  // that may be announced anew
    if (predecessor_) {
      tell_method(changed.value());
    } else {
      provide_what_is_there(changed.value());
      tell_gone(changed.value());
    }
  }
} catch (const std::bad_alloc&) {
  all_changed_ = true;
  tell_later();
}

void LinkedBroker::tell_subscriptions() noexcept {
  if (!changed_.empty()) if_memory_allows([this] { tell_topics(); });
}

void LinkedBroker::tell_topics() {
  while (!changed_.empty()) {
    const std::string& pattern = *changed_.begin();
    TopicGroups::mapped_type groups = context_->topics.groups_of(pattern, &peer_->topics);
    const auto known = told_.find(pattern);
    const bool same = known == told_.end() ? groups.empty() : known->second == groups;
    if (!same) {
      const Buffer text = rpc::event_of(
          "rpc.linked.topics", to_json(LinkedTopic{.topic = pattern, .groups = {groups.begin(), groups.end()}}));
      append_message(peer_->sink(), [&text](Buffer& out) { out.append(text.view()); });
      told_[pattern] = std::move(groups);
      if (told_[pattern].empty()) told_.erase(pattern);
    }
    changed_.erase(changed_.begin());
  }
}

// ---- what is provided ----

LinkedMethod LinkedMethod::of(const Route& route) {
  const Description& description = route.description;
  return {.name = route.name(),
          .summary = description.summary,
          .params_schema = description.params_schema,
          .result_schema = description.result_schema,
          .input_schema = description.input_schema,
          .safe = description.safe};
}

Registration LinkedMethod::registration() && {
  Registration registration;
  registration.name = std::move(name);
  registration.description = {.summary = std::move(summary),
                              .params_schema = std::move(params_schema),
                              .result_schema = std::move(result_schema),
                              .input_schema = std::move(input_schema),
                              .safe = safe,
                              .subscription = {},
                              .unsubscribes = false};
  return registration;
}

void LinkedBroker::provided_changed(std::string_view method) noexcept {
  try {
    changed_methods_.emplace(method);
  } catch (const std::bad_alloc&) {
    all_changed_ = true;
  }
  tell_later();
}

// Subscriptions are not relayed from one broker to the other, and what other nodes provide they say themselves.
void LinkedBroker::tell_method(const std::string& name) {
  const Route* const route = context_->methods.find_registered(name);
  const bool provided = is_provided_here(route) && !route->description.subscription && !route->description.unsubscribes;
  if (provided == methods_told_.contains(name)) return;
  LinkedMethod method;
  if (provided)
    method = LinkedMethod::of(*route);
  else
    method.name = name;
  method.provided = provided;
  const Buffer text = rpc::event_of("rpc.linked.method", to_json(method));
  if (provided) methods_told_.insert(name);
  append_message(peer_->sink(), [&text](Buffer& out) { out.append(text.view()); });
  if (!provided) methods_told_.erase(name);
}

bool LinkedBroker::is_provided_here(const Route* route) const noexcept {
  return route != nullptr && std::ranges::any_of(route->providers(), [this](const auto& one) {
           return !one->ended && !one->at_node && one->peer != peer_;
         });
}

void LinkedBroker::expect(const std::string& method) noexcept {
  // Without memory whoever calls it there meanwhile is told that nobody provides it.
  if_memory_allows([&] { expected_.insert(method); });
}

// Whoever has provided it has left without being asked to, and so for good.
void LinkedBroker::tell_gone(const std::string& name) {
  if (!methods_told_.contains(name) || expected_.contains(name) ||
      is_provided_here(context_->methods.find_registered(name)))
    return;
  LinkedMethod method;
  method.name = name;
  method.provided = false;
  const Buffer text = rpc::event_of("rpc.linked.method", to_json(method));
  append_message(peer_->sink(), [&text](Buffer& out) { out.append(text.view()); });
  methods_told_.erase(name);
}

void LinkedBroker::take(LinkedMethod method) {
  if (is_reserved(method.name)) return;
  const std::string name = method.name;
  if (predecessor_) {
    if (method.provided) return;
    static_cast<void>(registrar_->unregister(*peer_, name));
    return close_if_done();
  }
  if (!method.provided) {
    methods_there_.erase(name);
    static_cast<void>(registrar_->unregister(*peer_, name));
    return;
  }
  methods_there_[name] = std::move(method);
  provide_what_is_there(name);
}

// Those who are still here are asked first, so the other process is only where they have gone.
void LinkedBroker::provide_what_is_there(const std::string& name) {
  const auto there = methods_there_.find(name);
  if (there == methods_there_.end()) return;
  std::vector<Registration> one;
  one.push_back(LinkedMethod{there->second}.registration());
  registrar_->register_linked(*peer_, std::move(one));
}

// ---- what is retained ----

void LinkedBroker::retain(std::string_view topic, std::string_view message, const Retained::By& by) noexcept {
  if_memory_allows([&] {
    Buffer json;
    if (!message.empty() && message::encoding_of(message.front()) != Encoding::json) {
      message::Transcoder& transcoder = context_->loop.codecs.transcoder(message::encoding_of(message.front()));
      const auto status = transcoder.to_json(message, context_->limits, json);
      if (!transcoder.take_unrepresentable().empty() || status != message::Transcoder::Status::done) return;
      message = json.view();
    }
    const LinkedValue value{.topic = std::string{topic},
                            .owner = std::string{by.owner},
                            .client = std::string{by.client},
                            .kept = !message.empty()};
    const Buffer text = rpc::event_of("rpc.linked.retain", to_json(value));
    if (message.size() > context_->limits.max_message_size) return;
    append_message(peer_->sink(), [&text](Buffer& out) { out.append(text.view()); });
    if (value.kept) append_message(peer_->sink(), [message](Buffer& out) { out.append(message); });
  });
}

void LinkedBroker::keep(const LinkedValue& value, std::string_view event) {
  const Retained::By by{.owner = value.owner, .client = value.client};
  if (event.empty()) {
    events_->clear_handed(value.topic);
  } else {
    events_->keep_handed(value.topic, event, by);
  }
  for (LinkedBroker* const other : context_->links) {
    if (other != this) other->retain(value.topic, event, by);
  }
}

// ---- the connection ----

bool LinkedBroker::notified(const Received& message, std::string_view name) {
  if (std::exchange(for_provider_, false)) return true;
  if (const auto value = std::exchange(retained_, std::nullopt)) {
    if (name == value->topic) keep(*value, message.text);
    return true;
  }
  if (!is_reserved(name)) return false;
  if (name == "rpc.linked.topics") {
    if (auto topic = from_json<LinkedTopic>(message.params())) take(*std::move(topic));
  } else if (name == "rpc.linked.retain") {
    auto value = from_json<LinkedValue>(message.params());
    if (!value || !is_name(value->topic) || is_reserved(value->topic)) return true;
    if (value->kept)
      retained_ = *std::move(value);
    else
      keep(*value, {});
  } else if (name == "rpc.linked.method") {
    if (auto method = from_json<LinkedMethod>(message.params())) take(*std::move(method));
  } else if (name == "rpc.linked.notify") {
    for_provider_ = true;
  } else if (name == "rpc.linked.alone") {
    alone_ = true;
    close_if_done();
  }
  return true;
}

void LinkedBroker::tell_alone() noexcept {
  if (told_alone_) return;
  if_memory_allows([this] {
    append_message(peer_->sink(), [](Buffer& out) { out.append(R"({"jsonrpc":"2.0","method":"rpc.linked.alone"})"); });
    told_alone_ = true;
  });
}

void LinkedBroker::close_if_done() noexcept {
  if (!alone_) return;
  if (peer_->provides.empty()) return peer_->sink().close();
  wait_for_return();
}

void LinkedBroker::wait_for_return() noexcept {
  if (context_->loop.scheduler == nullptr) return;
  context_->loop.stop(return_timer_);
  // Without memory it waits until the other process ends.
  if_memory_allows([this] { context_->loop.scheduler->start(return_timer_, kReturnTime); });
}

void LinkedBroker::give_up_waiting() try {
  std::vector<std::string> names;
  for (const Provider* one : peer_->provides) names.push_back(one->route->name());
  for (const std::string& name : names) static_cast<void>(registrar_->unregister(*peer_, name));
  close_if_done();
} catch (const std::bad_alloc&) {
  wait_for_return();
}

}  // namespace wirecall::broker
