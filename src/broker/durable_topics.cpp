// See durable_topics.hpp.
#include "broker/durable_topics.hpp"

#include "broker/durable_consumer.hpp"
#include "broker/durable_params.hpp"
#include "broker/outgoing.hpp"
#include "message/own_error.hpp"

namespace wirecall::broker {

using rpc::ReservedParams;

constexpr std::array<std::string_view, 5> kPublishNames{"topic", "params", "retain", "durable", "msg_id"};

// Of notifications that wait for the disk, beyond which others are not kept.
constexpr std::size_t kUnsafeBytesMax = std::size_t{64} << 20U;

struct PublishedRow {
  std::uint64_t seq;
  std::optional<bool> duplicate;
};

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

}  // namespace wirecall::broker
