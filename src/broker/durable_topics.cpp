// See durable_topics.hpp.
#include "broker/durable_topics.hpp"

#include <charconv>

#include "base/reserve_extra.hpp"
#include "broker/durable_answers.hpp"
#include "broker/durable_consumer.hpp"
#include "broker/outgoing.hpp"
#include "message/own_error.hpp"

namespace wirecall::broker {

using rpc::ReservedParams;

constexpr std::array<std::string_view, 5> kPublishNames{"topic", "params", "retain", "durable", "msg_id"};
constexpr std::array<std::string_view, 9> kSubscribeNames{
    "topic", "last", "group", "echo", "durable", "start", "ack_wait_ms", "max_deliver", "max_in_flight"};
constexpr std::array<std::string_view, 2> kUnsubscribeNames{"topic", "durable"};

// Of notifications that wait for the disk, beyond which others are not kept.
constexpr std::size_t kUnsafeBytesMax = std::size_t{64} << 20U;
constexpr std::size_t kConsumerNameBytesMax = 64;
constexpr std::size_t kConsumersMax = 4096;
constexpr std::uint32_t kReadDefault = 100;
constexpr std::uint32_t kReadMax = 1000;

struct PublishedRow {
  std::uint64_t seq;
  std::optional<bool> duplicate;
};
struct JoinedRow {
  std::string_view consumer;
  std::uint64_t position;
};
struct TopicRow {
  std::string_view pattern;
  std::uint64_t events;
  std::uint64_t bytes;
  std::uint64_t last_seq;
};
struct ConsumerRow {
  std::string_view name;
  std::string_view topic;
  std::uint64_t position;
  std::size_t pending;
  std::size_t members;
  std::uint32_t ack_wait_ms;
  std::uint32_t max_deliver;
  std::uint32_t max_in_flight;
};
struct Listing {
  std::uint64_t last_seq;
  std::vector<TopicRow> topics;
  std::vector<ConsumerRow> consumers;
};
struct EventRow {
  std::uint64_t seq;
  std::int64_t at_ms;
  std::string_view topic;
  std::optional<Raw> params;
};
struct EventRows {
  std::vector<EventRow> events;
  std::uint64_t last;
};

namespace {

// By which answers are known to be those of a consumer: no character of it is written otherwise in JSON.
bool is_consumer_name(std::string_view name) noexcept {
  const auto may_be = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !name.empty() && name.size() <= kConsumerNameBytesMax && std::ranges::all_of(name, may_be);
}

template <std::size_t N>
std::string consumer_name(const ReservedParams<N>& params, std::string_view name, std::size_t at) {
  std::optional<std::string> given = params.template as<std::string>(at);
  if (!given || !is_consumer_name(*given))
    params.refuse(name, params.find(at), "name of 1 to 64 ASCII letters, digits, - and _");
  return *std::move(given);
}

template <std::size_t N>
std::string pattern_of(const ReservedParams<N>& params) {
  std::optional<std::string> topic = params.template as<std::string>(0);
  if (!topic || !is_pattern(*topic))
    params.refuse("topic", params.find(0),
                  "words between dots, of which * stands for one and > at the end for the rest");
  return *std::move(topic);
}

std::optional<std::uint64_t> take_number(std::string_view& text) noexcept {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [read_to, error] = std::from_chars(text.data() + colon + 1, end, number);
  if (error != std::errc{} || read_to != end) return std::nullopt;
  text = text.substr(0, colon);
  return number;
}

Peer& require_connection(Call& call, bool registers) {
  Peer& caller = caller_of(call);
  const rpc::PeerCapabilities can = caller.sink().capabilities();
  if (can.datagrams || (registers && !can.registration))
    throw Error::with_data(ErrorCode::invalid_request, R"({"reason":"needs_connection"})");
  if (registers && caller.has_ended()) throw has_ended();
  return caller;
}

}  // namespace

/// An event on its way to the disk.
struct DurableTopics::Publication {
  ReplySink sink;
  std::string topic;
  std::string params;
  std::uint64_t publisher;  ///< Peer::number
  bool retain;
  std::string owner;   ///< of one that is retained: Retained::By
  std::string client;  ///< likewise
  bool asked;          ///< to be kept; else it is answered as if it had not been
};

DurableTopics::DurableTopics(BrokerContext& context, EventBus& events, durable::Store* store,
                             std::vector<std::string> patterns)
    : context_(&context),
      events_(&events),
      store_(store),
      patterns_(std::move(patterns)),
      publish_(untyped_method<[](DurableTopics& own, Call& call) { own.publish(call); }>("rpc.publish", *this)),
      subscribe_(untyped_method<[](DurableTopics& own, Call& call) { own.subscribe(call); }>("rpc.subscribe", *this)),
      unsubscribe_(
          untyped_method<[](DurableTopics& own, Call& call) { own.unsubscribe(call); }>("rpc.unsubscribe", *this)),
      list_(untyped_method<[](DurableTopics& own, Call& call) { own.list(call); }>("rpc.durable.ls", *this)),
      read_(untyped_method<[](DurableTopics& own, Call& call) { own.read(call); }>("rpc.durable.read", *this)),
      forget_(untyped_method<[](DurableTopics& own, Call& call) { own.forget(call); }>("rpc.durable.forget", *this)) {
  if (store_ != nullptr) open(*store_);
}

void DurableTopics::open(durable::Store& store) {
  store_ = &store;
  last_seq_ = store.last_seq();
  if (store.is_shared()) reads_.read_any_number();
  for (const durable::ConsumerState& state : store.consumers()) consumer_of(state).unload();
}

DurableTopics::~DurableTopics() = default;

durable::Store& DurableTopics::require_store() const {
  if (store_ == nullptr) throw needs_store();
  return *store_;
}

// ---- which messages are for it ----

const Method* DurableTopics::find(std::string_view name, const Received& message) {
  const bool plain = store_ == nullptr;  // then who serves these as ever says so
  if (plain && (name == "rpc.publish" || name == "rpc.subscribe" || name == "rpc.unsubscribe")) return nullptr;
  if (name == "rpc.publish") return is_durable_publish(message) ? &publish_ : nullptr;
  if (name == "rpc.subscribe") return names_consumer(message, 4) ? &subscribe_ : nullptr;
  if (name == "rpc.unsubscribe") return names_consumer(message, 1) ? &unsubscribe_ : nullptr;
  for (const Method* const own : {&list_, &read_, &forget_}) {
    if (own->name() == name) return own;
  }
  return nullptr;
}

bool DurableTopics::keeps(std::string_view topic) const noexcept {
  return std::ranges::any_of(patterns_, [&](const std::string& pattern) { return matches(pattern, topic); });
}

// Whether a name may be among the params, by their bytes: an escape may stand for any.
static bool may_name(std::string_view params, std::string_view name) noexcept {
  return params.starts_with('[') || params.find(name) != std::string_view::npos ||
         params.find('\\') != std::string_view::npos;
}

// Params that are no params are refused by who serves the method as ever.
bool DurableTopics::is_durable_publish(const Received& message) {
  const bool asks = !message.is_json() || may_name(message.params(), "durable");
  if (!asks && patterns_.empty()) [[likely]]
    return false;
  try {
    Reader& reader = *context_->loop.codecs.readers_of(message.encoding).reader;
    const ReservedParams<5> params{reader, message.params(), kPublishNames};
    if (params.value(3) != nullptr && params.as_or_nothing<bool>(3) != false) return true;
    if (patterns_.empty()) return false;
    const auto topic = params.as<std::string>(0);
    return topic && is_name(*topic) && keeps(*topic);
  } catch (const Error&) {
    return false;
  }
}

bool DurableTopics::names_consumer(const Received& message, std::size_t at) {
  if (message.is_json() && !may_name(message.params(), "durable")) return false;
  Reader& reader = *context_->loop.codecs.readers_of(message.encoding).reader;
  try {
    if (at == 1) return ReservedParams<2>{reader, message.params(), kUnsubscribeNames}.value(at) != nullptr;
    return ReservedParams<9>{reader, message.params(), kSubscribeNames}.value(at) != nullptr;
  } catch (const Error&) {
    return false;
  }
}

// ---- publishing ----

void DurableTopics::publish(Call& call) {
  Peer& caller = require_connection(call, false);
  const ReservedParams<5> params{call.reader(), call.params(), kPublishNames};
  const auto topic = params.as<std::string>(0);
  if (!topic || !is_name(*topic) || is_reserved(*topic))
    params.refuse("topic", params.find(0), "words between dots, without white space, * and >; not one of rpc. or $/");
  const bool retain = params.as<bool>(2).value_or(false);
  const bool asked = params.as<bool>(3).value_or(false);
  durable::NewEvent event{.topic = *topic,
                          .params = kept_params(call.reader(), params, 1),
                          .msg_id = msg_id_of(caller, params, 4),
                          .principal = account_of(caller)};
  if (!rpc::may_publish(caller.principal, *topic)) throw forbidden();
  if (!fits_message(event.topic, event.params)) throw message::too_large("the event is larger than a message may be");
  durable::Store& store = require_store();
  if (caller.has_ended() && asked) throw has_ended();
  const Retained::By by = retain ? EventBus::by_of(caller) : Retained::By{};
  Publication publication{.sink = call.detach(),
                          .topic = event.topic,
                          .params = event.params,
                          .publisher = caller.number,
                          .retain = retain,
                          .owner = std::string{by.owner},
                          .client = std::string{by.client},
                          .asked = asked};
  publication.sink.keeps(2 * (event.topic.size() + event.params.size()));
  caller.sink().charge(event.params.size() / rpc::Share::kBytesOfStep + 4);
  store.append(std::move(event), [this, publication = std::move(publication)](
                                     const durable::Outcome<durable::Appended>& outcome) mutable {
    if_memory_allows([&] {
      if (!outcome) return publication.sink.error(error_of(outcome.error()));
      published(publication, *outcome);
    });
  });
}

void DurableTopics::published(Publication& publication, const durable::Appended& appended) {
  if (appended.duplicate) {
    if (!publication.asked) return answer(publication.sink, std::uint64_t{0});
    return answer(publication.sink, PublishedRow{.seq = appended.seq, .duplicate = true});
  }
  if (publication.asked) answer(publication.sink, PublishedRow{.seq = appended.seq, .duplicate = std::nullopt});
  tell_subscribers(context_->peers.find(publication.publisher), publication);
  kept(publication.topic, publication.params, appended.seq);
}

// Those who subscribe without a consumer, as of any event.
void DurableTopics::tell_subscribers(Peer* publisher, Publication& publication) {
  std::size_t count = 0;
  Buffer padded;
  padded.append(publication.params);
  const EncodedText params{.text = padded.padded(), .encoding = Encoding::json};
  try {
    if (publisher != nullptr) {
      count = events_->publish(*publisher, publication.topic, params, publication.retain);
    } else {
      count = events_->publish_of_gone({.owner = publication.owner, .client = publication.client}, publication.topic,
                                       params, publication.retain);
    }
    static_cast<void>(events_->take_answer());
  } catch (const Error& error) {
    context_->log.failed("rpc.publish", publisher, error);
  }
  if (!publication.asked) answer(publication.sink, std::uint64_t{count});
}

void DurableTopics::notified(const Peer& publisher, std::string_view topic, const Received& message) {
  if (store_ == nullptr || patterns_.empty() || is_reserved(topic) || !is_name(topic) || !keeps(topic)) return;
  if (publisher.sink().capabilities().datagrams || !rpc::may_publish(publisher.principal, topic)) return;
  std::string params;
  if (!message.params().empty()) {
    Reader& reader = *context_->loop.codecs.readers_of(message.encoding).reader;
    try {
      params = json_of(reader, "params", {.text = message.params(), .kind = ValueKind::object});
    } catch (const Error& error) {
      return context_->log.failed(topic, &publisher, error);
    }
  }
  keep(std::string{topic}, std::move(params), account_of(publisher));
}

// A consumer is sent it with an id of its own, and a provider with a time.
bool DurableTopics::fits_message(std::string_view name, std::string_view params) const {
  constexpr std::size_t kBytesAround = 256;
  return to_json(name).size() + params.size() + kBytesAround <= context_->limits.max_message_size;
}

void DurableTopics::publish_own(std::string topic, std::string params) {
  if (!is_name(topic)) return;
  Buffer text = rpc::event_of(topic, params);
  events_->deliver(nullptr, {.topic = topic, .text = text.view(), .params = params, .owned = &text});
  if (keeps(topic)) keep(std::move(topic), std::move(params), {});
}

// What nobody waits for.
void DurableTopics::keep(std::string topic, std::string params, std::string account) {
  const std::size_t bytes = topic.size() + params.size();
  if (store_->waiting() > kWaitingMax || unsafe_bytes_ + bytes > kUnsafeBytesMax || !fits_message(topic, params)) {
    ++context_->loop.stats.events_dropped;
    return;
  }
  unsafe_bytes_ += bytes;
  durable::NewEvent event{.topic = topic, .params = params, .principal = std::move(account)};
  store_->append(std::move(event), [this, topic = std::move(topic), params = std::move(params),
                                    bytes](const durable::Outcome<durable::Appended>& outcome) {
    unsafe_bytes_ -= bytes;
    if (!outcome) {
      ++context_->loop.stats.events_dropped;
      return;
    }
    if_memory_allows([&] { kept(topic, params, outcome->seq); });
  });
}

// An event costs the consumers of its topic; that others have passed it is looked at of one after the other.
void DurableTopics::kept(const std::string& topic, const std::string& params, std::uint64_t seq) {
  if (store_->is_shared()) return;  // who reads is given it by the store
  const bool is_next = seq == last_seq_ + 1;
  if (!is_next) std::ranges::for_each(active_, &DurableConsumer::stop_following);
  last_seq_ = std::max(last_seq_, seq);
  if (!is_next) return pump();
  topics_.each(topic, nullptr, [&](Subscriber& one) {
    ++looked_at_;
    static_cast<ConsumerSubscriber&>(one).consumer->offer(topic, params, seq);
  });
  if (active_.empty()) return;
  ++looked_at_;
  active_[seq % active_.size()]->keep_floor_if_far();
}

void DurableTopics::require_followable(const DurableConsumer* consumer, std::string_view pattern) const {
  if (store_->is_shared() || (consumer != nullptr && consumer->members() != 0)) return;
  if (topics_.admits(Subscriber{nullptr}, pattern)) return;
  throw limit_exceeded("too many patterns of more than 6 words have their wildcards in places of their own",
                       "subscription_steps");
}

void DurableTopics::activate(DurableConsumer& consumer) {
  reserve_extra(active_, 1);
  if (!store_->is_shared()) topics_.subscribe(consumer.subscriber, consumer.settings().pattern, {});
  active_.push_back(&consumer);
}

void DurableTopics::deactivate(DurableConsumer& consumer) noexcept {
  topics_.remove_all(consumer.subscriber);
  const auto found = std::ranges::find(active_, &consumer);
  if (found == active_.end()) return;
  *found = active_.back();
  active_.pop_back();
}

// What it is told to by the store would be behind what it does meanwhile.
void DurableTopics::unload_if_alone(DurableConsumer& consumer) {
  if (consumer.members() != 0 || opening_.contains(consumer.settings().name)) return;
  consumer.keep_floor();
  consumer.unload();
  reads_.let();
}

void DurableTopics::pump() {
  for (std::size_t i = 0; i < active_.size(); ++i) active_[i]->pump();
}

void DurableTopics::unblock(Peer& peer) noexcept {
  if (std::ranges::find(unblocked_, &peer) != unblocked_.end()) return;
  if_memory_allows([&] { unblocked_.push_back(&peer); });
}

void DurableTopics::pump_unblocked() {
  while (!unblocked_.empty()) {
    Peer& peer = *unblocked_.back();
    unblocked_.pop_back();
    pump_line(peer);
  }
}

void DurableTopics::pump_line(Peer& peer) {
  for (auto line = lines_.find(&peer); line != lines_.end(); line = lines_.find(&peer)) {
    if (!line->second.empty() && !DurableConsumer::is_free(peer)) return;
    DurableConsumer* const next = line->second.empty() ? nullptr : line->second.front();
    if (next != nullptr) line->second.pop_front();
    if (line->second.empty()) lines_.erase(line);
    if (next != nullptr) next->unblocked(peer);
  }
}

void DurableTopics::leave_line(Peer& peer, const DurableConsumer& consumer) noexcept {
  const auto line = lines_.find(&peer);
  if (line == lines_.end()) return;
  std::erase(line->second, &consumer);
  if (line->second.empty()) lines_.erase(line);
}

// ---- consumers ----

DurableConsumer& DurableTopics::consumer_of(const durable::ConsumerState& state) {
  const auto found = consumers_.find(state.settings.name);
  if (found != consumers_.end() && !found->second->is_unloaded()) {
    found->second->set(state.settings);
    return *found->second;
  }
  auto& consumer = consumers_[state.settings.name];
  consumer = std::make_unique<DurableConsumer>(*this, state);
  return *consumer;
}

void DurableTopics::subscribe(Call& call) {
  Peer& caller = require_connection(call, true);
  const ReservedParams<9> params{call.reader(), call.params(), kSubscribeNames};
  durable::ConsumerSettings settings{.name = consumer_name(params, "durable", 4), .pattern = pattern_of(params)};
  if (params.value(1) != nullptr || params.value(2) != nullptr || params.value(3) != nullptr)
    params.refuse("durable", params.find(4), "no consumer together with last, group or echo");
  settings.principal = account_of(caller);
  settings.after = store_->is_shared() ? durable::kOnlyNew : last_seq_;
  if (params.value(5) != nullptr) {
    const auto word = params.as_or_nothing<std::string>(5);
    const auto seq = params.as_or_nothing<std::uint64_t>(5);
    if (word == "first") {
      settings.after = 0;
    } else if (seq && *seq > 0) {
      settings.after = *seq - 1;
    } else if (word != "new") {
      params.refuse("start", params.find(5), R"("first", "new" or the seq of the first event)");
    }
  }
  constexpr std::uint32_t kDayMs = 86'400'000;
  settings.ack_wait_ms = number_of(params, "ack_wait_ms", 6, settings.ack_wait_ms, 1, kDayMs);
  settings.max_deliver = number_of(params, "max_deliver", 7, settings.max_deliver, 0, 1'000'000);
  settings.max_in_flight = number_of(params, "max_in_flight", 8, settings.max_in_flight, 1, 65'536);
  if (!rpc::may_subscribe(caller.principal, settings.pattern)) throw forbidden();
  durable::Store& store = require_store();
  const std::string name = settings.name;
  const auto known = consumers_.find(name);
  require_followable(known != consumers_.end() ? known->second.get() : nullptr, settings.pattern);
  if (consumers_.size() + opening_.size() >= kConsumersMax && !consumers_.contains(name))
    throw limit_exceeded("there are too many consumers: forget some", "consumers");
  if (caller.consumers >= context_->limits.subscriptions) throw too_many_subscriptions();
  if (forgetting_.contains(name)) throw conflict("the consumer is being forgotten: join it again");
  opening_.insert(name);
  store.open_consumer(std::move(settings), [this, name, number = caller.number, sink = call.detach()](
                                               const durable::Outcome<durable::ConsumerState>& outcome) mutable {
    if (const auto found = opening_.find(name); found != opening_.end()) opening_.erase(found);
    if (Peer* const peer = context_->peers.find(number)) --peer->consumers;
    if_memory_allows([&] {
      if (!outcome) {
        if (const auto found = consumers_.find(name); found != consumers_.end()) unload_if_alone(*found->second);
        return sink.error(error_of(outcome.error()));
      }
      DurableConsumer& consumer = consumer_of(*outcome);
      try {
        require_followable(&consumer, outcome->settings.pattern);
      } catch (const Error& error) {
        unload_if_alone(consumer);
        return sink.error(error);
      }
      answer(sink, JoinedRow{.consumer = outcome->settings.name, .position = outcome->floor});
      Peer* const peer = context_->peers.find(number);
      if (peer == nullptr || peer->has_ended()) return unload_if_alone(consumer);
      peer->took_part = true;
      consumer.join(*peer);
    });
  });
  ++caller.consumers;  // it counts as one that has joined until the store answers
}

void DurableTopics::go_on() {
  draining_ = false;
  pump();
}

bool DurableTopics::at_work() const noexcept { return std::ranges::any_of(active_, &DurableConsumer::at_work); }

void DurableTopics::unsubscribe(Call& call) {
  Peer& caller = require_connection(call, true);
  const ReservedParams<2> params{call.reader(), call.params(), kUnsubscribeNames};
  const auto found = consumers_.find(consumer_name(params, "durable", 1));
  if (found == consumers_.end() || !found->second->part(caller))
    throw message::make(ErrorCode::no_subscription, "this connection has not joined that consumer", "no");
  ReplySink sink = call.detach();
  answer(sink, true);
}

void DurableTopics::leave(Peer& peer) noexcept {
  for (std::size_t i = active_.size(); peer.consumers != 0 && i != 0; --i) active_[i - 1]->lose(peer);
}

void DurableTopics::resume(Peer& peer) {
  if (peer.consumers == 0) return;
  pump_line(peer);
  pump_unblocked();
}

bool DurableTopics::response(const Peer& peer, const Received& message) {
  if (peer.consumers == 0) return false;
  std::string_view id = message.id();
  if (id.size() < 2 || id.front() != '"' || id.back() != '"') return false;
  id = id.substr(1, id.size() - 2);
  const auto delivery = take_number(id);
  const auto seq = delivery ? take_number(id) : std::nullopt;
  if (!seq) return false;
  const auto found = consumers_.find(id);
  if (found == consumers_.end()) return false;
  found->second->answered(peer, *seq, *delivery, message);
  return true;
}

// ---- what there is ----

void DurableTopics::list(Call& call) {
  const ReservedParams<0> params{call.reader(), call.params(), std::array<std::string_view, 0>{}};
  const Peer& caller = require_connection(call, false);
  caller.sink().charge(kStepsOfRead);
  require_store().list_topics(
      reader_of(caller), [this, number = caller.number,
                          sink = call.detach()](durable::Outcome<std::vector<durable::TopicCounts>> outcome) mutable {
        if_memory_allows([&] {
          if (!outcome) return sink.error(error_of(outcome.error()));
          if (store_->is_shared()) return list_shared(number, *std::move(outcome), std::move(sink));
          const Peer* const asker = context_->peers.find(number);
          if (asker == nullptr) return;
          const Principal* const principal = asker->principal;
          Listing listing{.last_seq = last_seq_, .topics = {}, .consumers = {}};
          for (const durable::TopicCounts& topic : *outcome) {
            if (!topic.pattern.empty() && !rpc::may_subscribe(principal, topic.pattern)) continue;
            listing.topics.push_back({topic.pattern, topic.count, topic.bytes, topic.last_seq});
          }
          for (const auto& [name, consumer] : consumers_) {
            const durable::ConsumerSettings& settings = consumer->settings();
            if (!rpc::may_subscribe(principal, settings.pattern)) continue;
            listing.consumers.push_back({name, settings.pattern, consumer->floor(), consumer->pending(),
                                         consumer->members(), settings.ack_wait_ms, settings.max_deliver,
                                         settings.max_in_flight});
          }
          asker->sink().charge(consumers_.size() / kRowsOfStep);
          answer(sink, listing);
        });
      });
}

// Those of all nodes; members are this node's.
void DurableTopics::list_shared(std::uint64_t asker_number, std::vector<durable::TopicCounts> topics, ReplySink sink) {
  store_->list_consumers([this, asker_number, topics = std::move(topics), sink = std::move(sink)](
                             const durable::Outcome<std::vector<durable::ConsumerState>>& outcome) mutable {
    if_memory_allows([&] {
      if (!outcome) return sink.error(error_of(outcome.error()));
      const Peer* const asker = context_->peers.find(asker_number);
      if (asker == nullptr) return;
      const Principal* const principal = asker->principal;
      Listing listing{.last_seq = 0, .topics = {}, .consumers = {}};
      for (const durable::TopicCounts& topic : topics) {
        listing.last_seq = std::max(listing.last_seq, topic.last_seq);
        if (!topic.pattern.empty() && !rpc::may_subscribe(principal, topic.pattern)) continue;
        listing.topics.push_back({topic.pattern, topic.count, topic.bytes, topic.last_seq});
      }
      for (const durable::ConsumerState& state : *outcome) {
        const durable::ConsumerSettings& settings = state.settings;
        if (!rpc::may_subscribe(principal, settings.pattern)) continue;
        const auto known = consumers_.find(settings.name);
        listing.consumers.push_back({settings.name, settings.pattern, state.floor, state.in_flight,
                                     known == consumers_.end() ? 0 : known->second->members(), settings.ack_wait_ms,
                                     settings.max_deliver, settings.max_in_flight});
      }
      asker->sink().charge(outcome->size() / kRowsOfStep);
      answer(sink, listing);
    });
  });
}

void DurableTopics::read(Call& call) {
  constexpr std::array<std::string_view, 3> kNames{"topic", "after", "count"};
  const ReservedParams<3> params{call.reader(), call.params(), kNames};
  const Peer& caller = require_connection(call, false);
  durable::Fetch fetch{.pattern = pattern_of(params),
                       .after = params.as<std::uint64_t>(1).value_or(0),
                       .count = number_of(params, "count", 2, kReadDefault, 1, kReadMax),
                       .bytes = context_->limits.max_message_size / 4,
                       .asker = reader_of(caller)};
  if (!rpc::may_subscribe(caller.principal, fetch.pattern)) throw forbidden();
  caller.sink().charge(kStepsOfRead + fetch.count / kRowsOfStep);
  require_store().fetch(std::move(fetch),
                        [sink = call.detach()](const durable::Outcome<durable::Fetched>& outcome) mutable {
                          if_memory_allows([&] {
                            if (!outcome) return sink.error(error_of(outcome.error()));
                            EventRows rows{.events = {}, .last = outcome->scanned};
                            for (const durable::Event& event : outcome->events) {
                              rows.events.push_back({event.seq, event.at_ms, event.topic, std::nullopt});
                              if (!event.params.empty()) rows.events.back().params.emplace(event.params);
                            }
                            answer(sink, rows);
                          });
                        });
}

void DurableTopics::forget(Call& call) {
  constexpr std::array<std::string_view, 1> kNames{"consumer"};
  const ReservedParams<1> params{call.reader(), call.params(), kNames};
  const Peer& caller = require_connection(call, false);
  std::string name = consumer_name(params, "consumer", 0);
  durable::Store& store = require_store();
  const auto found = consumers_.find(name);
  if (!store.is_shared() && found != consumers_.end() &&
      !rpc::may_subscribe(caller.principal, found->second->settings().pattern))
    throw forbidden();
  if (opening_.contains(name) || (found != consumers_.end() && found->second->members() != 0))
    throw conflict("clients have joined the consumer: it can be forgotten once they have left");
  if (!store.is_shared()) return forget(std::move(name), call.detach());
  // Its topics may be others than this node knows; and nobody joins meanwhile.
  if (!forgetting_.insert(name).second) throw conflict("the consumer is being forgotten");
  store.list_consumers([this, name = std::move(name), number = caller.number, sink = call.detach()](
                           const durable::Outcome<std::vector<durable::ConsumerState>>& outcome) mutable {
    forgetting_.erase(name);
    if_memory_allows([&] {
      if (!outcome) return sink.error(error_of(outcome.error()));
      const Peer* const asker = context_->peers.find(number);
      if (asker == nullptr) return;
      const auto is_named = [&](const durable::ConsumerState& one) { return one.settings.name == name; };
      const auto known = std::ranges::find_if(*outcome, is_named);
      if (known != outcome->end() && !rpc::may_subscribe(asker->principal, known->settings.pattern))
        return sink.error(forbidden());
      forgetting_.insert(name);
      forget(std::move(name), std::move(sink));
    });
  });
}

void DurableTopics::forget(std::string name, ReplySink sink) {
  store_->forget_consumer(name,
                          [this, name, sink = std::move(sink)](const durable::Outcome<durable::Done>& outcome) mutable {
                            forgetting_.erase(name);
                            if_memory_allows([&] {
                              if (!outcome) return sink.error(error_of(outcome.error()));
                              consumers_.erase(name);
                              answer(sink, true);
                            });
                          });
}

}  // namespace wirecall::broker
