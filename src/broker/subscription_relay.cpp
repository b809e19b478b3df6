// See subscription_relay.hpp.
#include "broker/subscription_relay.hpp"

#include "base/random_id.hpp"
#include "broker/outgoing.hpp"
#include "message/call_text.hpp"
#include "message/error_text.hpp"
#include "message/own_error.hpp"

namespace wirecall::broker {

// Of the request by which a provider is told that a subscription has ended; nobody waits for its response.
constexpr std::string_view kUnsubscribeId = R"("rpc.unsubscribe")";

// A provider's id in the one form in which it is compared, JSON; empty for what is none.
static std::string comparable_id(const rpc::RawValue& sent) {
  if (sent.kind == ValueKind::number) return std::string{sent.text};
  if (sent.kind != ValueKind::string) return {};
  return to_json(from_json<std::string>(sent.text).value());
}

// The same of one in some encoding.
static std::string comparable_id(const rpc::RawValue& sent, Encoding encoding) {
  if (encoding == Encoding::json) return comparable_id(sent);
  if (sent.kind != ValueKind::number && sent.kind != ValueKind::string) return {};
  const std::unique_ptr<Reader> reader = message::codec_of(encoding).values().reader();
  reader->reset(sent.text);
  std::string_view json;
  return reader->read_json(json) ? comparable_id({.text = json, .kind = sent.kind}) : std::string{};
}

// The notification `name` with `params` in which the subscription's id is another.
static Buffer event_with_id(rpc::LoopCodecs& codecs, std::string_view name, EncodedText params,
                            std::string_view sent_id, std::string_view id) {
  const auto at = static_cast<std::size_t>(sent_id.data() - params.text.data());
  const std::string_view before = params.text.substr(0, at);
  const std::string_view behind = params.text.substr(at + sent_id.size());
  if (params.encoding != Encoding::json) {
    Buffer text = rpc::event_of(codecs, name, {before, params.encoding});
    codecs.native(params.encoding).append_value(text, Buffer{to_json(id)}.padded());
    text.append(behind);
    return text;
  }
  Buffer text;
  message::begin_call(text, to_json(name), before);
  text.append(to_json(id));
  text.append(behind);
  text.push_back('}');
  return text;
}

bool SubscriptionRelay::unsubscribed(Peer& provider, const Received& message) noexcept {
  if (message.id() != kUnsubscribeId) return false;
  if (provider.source) provider.source->end_unsubscribing();
  return true;
}

bool SubscriptionRelay::has_room(const Route& route, Call& call) {
  const auto refuse = [&](const Error& error) {
    context_->refuse(call, route.name(), error);
    return false;
  };
  if (call.is_notification()) {
    call.end_result();  // nobody would learn the id
    return false;
  }
  if (call.context().caller_link() == nullptr) {
    return refuse(Error::with_data(ErrorCode::invalid_request, R"({"reason":"needs_connection"})"));
  }
  if (caller_of(call).method_subscriptions >= context_->limits.subscriptions) return refuse(too_many_subscriptions());
  call.on_reply([](const Outcome&) {});  // so it is answered by a sink, behind which events may wait
  return true;
}

void SubscriptionRelay::begin(SlotNumber slot, const Received& message, Provider& provider) {
  RelayExtras& extras = *calls_[slot].extras;
  ReplySink sink = std::move(extras.sink);
  const Subscribing subscribing = std::move(extras.subscribing);
  calls_.forget(slot);
  Reader& reader = *context_->loop.codecs.readers_of(message.encoding).reader;
  reader.reset(message[Member::result]);
  const rpc::RawValue sent = rpc::take_raw(reader);
  const std::string provider_id = comparable_id(sent, message.encoding);
  if (provider_id.empty()) return sink.error(context_->errors.malformed);
  const SubscriptionNames& names = *provider.route->description.subscription;
  Peer& caller = *subscribing.caller;
  if (caller.has_ended() || provider.ended || caller.method_subscriptions >= context_->limits.subscriptions) {
    send_unsubscribe(*provider.peer, names.unsubscribe, provider_id, caller.principal_name());
    return sink.error(caller.method_subscriptions >= context_->limits.subscriptions ? too_many_subscriptions()
                                                                                    : context_->errors.maybe_delivered);
  }
  SubscriptionSource& source = *provider.peer->source;
  if (!caller.subscribed) caller.subscribed = std::make_shared<SubscriptionPeer>(&caller);
  if (!source.side) source.side = std::make_shared<SubscriptionPeer>(provider.peer);
  if (!provider.subscribing) provider.subscribing = std::make_shared<SubscriptionMethod>(source.side, names);
  // One that is about to be ended makes way for another of its id, which an unsubscribe would end.
  MethodSubscription* const former = table_.find_of_provider(*source.side, provider_id);
  if (former != nullptr && (former->method->ended || former->caller->peer == nullptr)) tell_of_lost(take_out(*former));
  const MethodSubscription* const added =
      table_.add({.id = random_id(),
                  .provider_id = provider_id,
                  .principal = std::string{provider.at_node ? caller.principal_name() : std::string_view{}},
                  .caller = caller.subscribed,
                  .method = provider.subscribing,
                  .link = subscribing.link});
  // The id is that of the other one, which an unsubscribe would end.
  if (added == nullptr) return sink.error(context_->errors.same_subscription);
  ++caller.method_subscriptions;
  caller.took_part = true;
  if (Writer* const writer = sink.begin_result()) writer->string(added->id);
  sink.end_result();
  send_early_events(source, *added);
}

void SubscriptionRelay::end_unwanted(const Provider& provider, const Received& message) noexcept {
  if (!message.has(Member::result) || message.fault != Fault::none) return;
  if_memory_allows([&] {
    Reader& reader = *context_->loop.codecs.readers.reader;
    reader.reset(message[Member::result]);
    const std::string id = comparable_id(rpc::take_raw(reader));
    if (!id.empty()) send_unsubscribe(*provider.peer, provider.route->description.subscription->unsubscribe, id);
  });
}

// Another node is sent a notification, as of the caller's principal: it has no two subscriptions of one id.
void SubscriptionRelay::send_unsubscribe(const Peer& provider, std::string_view method, std::string_view provider_id,
                                         std::string_view principal) {
  if (!provider.of_node) provider.source->begin_unsubscribing(provider_id);
  if (provider.node != nullptr && !principal.empty()) provider.node->begin_call({.principal = principal});
  append_message(provider.sink(), [&](Buffer& out) {
    message::begin_call(out, to_json(method), "[");
    out.append(provider_id);
    out.push_back(']');
    if (!provider.of_node) {
      out.append(R"(,"id":)");
      out.append(kUnsubscribeId);
    }
    out.push_back('}');
  });
}

MethodSubscription SubscriptionRelay::take_out(MethodSubscription& subscription) noexcept {
  if (Peer* const caller = subscription.caller->peer) --caller->method_subscriptions;
  return table_.remove(subscription);
}

void SubscriptionRelay::unsubscribe(const Route& route, Call& call) {
  static constexpr std::array<std::string_view, 1> kNames{"subscription"};
  Buffer json;
  Received plain = call.message();
  if (!plain.is_json()) {
    if (const std::optional<Error> why = writer_->read_as_json({plain.text, plain.encoding}, json, plain))
      return context_->refuse(call, route.name(), *why);
  }
  const rpc::ReservedParams params{*context_->loop.codecs.readers.reader, plain.params(), kNames};
  const std::optional<std::string> id = params.as<std::string>(0);
  if (!id) params.refuse("subscription", params.find(0), "string");
  const Peer& caller = caller_of(call);
  MethodSubscription* const found = caller.subscribed ? table_.find_of_caller(*caller.subscribed, *id) : nullptr;
  const bool ends = found != nullptr && found->method->names.unsubscribe == route.name();
  if (call.message().has(Member::to)) [[unlikely]] {
    // What `to` names has to be the subscription's provider.
    const Peer* const provider = ends ? found->method->provider->peer : nullptr;
    const std::string name = from_json<std::string>(plain[Member::to]).value_or(std::string{});
    const bool there = provider != nullptr && provider->node != nullptr && provider->node->has_client(name);
    if (provider == nullptr || name.empty() || (provider->name != name && !there))
      return context_->refuse(call, route.name(), context_->errors.not_there);
  }
  if (ends) {
    const MethodSubscription ended = take_out(*found);
    if (const Peer* const provider = ended.method->provider->peer)
      send_unsubscribe(*provider, ended.method->names.unsubscribe, ended.provider_id, ended.principal);
  }
  if (Writer* const writer = call.begin_result()) writer->boolean(ends);
  call.end_result();
}

// With the caller's id, and to that alone: an event of a subscription that is not there, or no longer, goes to nobody.
bool SubscriptionRelay::event(Peer& provider, std::string_view name, const Received& message) {
  SubscriptionSource& source = *provider.source;
  if (!source.notifications.contains(name)) return false;
  context_->notification.begin_withheld();
  std::size_t delivered = 0;
  const std::string_view params = message.params();
  if (const std::optional<rpc::RawValue> sent = subscription_in({params, message.encoding})) {
    const std::string id = comparable_id(*sent, message.encoding);
    const MethodSubscription* const found = source.side ? table_.find_of_provider(*source.side, id) : nullptr;
    const bool wanted = found != nullptr && !found->method->ended && found->caller->peer != nullptr;
    if (wanted && found->method->names.notification == name) {
      delivered = send_event(*found, {params, message.encoding}, sent->text) ? 1 : 0;
    } else if (found == nullptr && source.asked != 0 && !id.empty() && !source.is_unsubscribing(id)) {
      keep_early_event(source, {.notification = std::string{name},
                                .provider_id = id,
                                .params = std::string{params},
                                .encoding = message.encoding,
                                .id_at = static_cast<std::size_t>(sent->text.data() - params.data()),
                                .id_bytes = sent->text.size()});
    }
  }
  if (!tap_feed_->empty()) [[unlikely]]
    tap_feed_->event(&provider, name, {.text = params, .encoding = message.encoding}, delivered);
  return true;
}

// What `params` name as their subscription; nothing where they name none, or two.
std::optional<rpc::RawValue> SubscriptionRelay::subscription_in(EncodedText params) {
  if (params.empty()) return std::nullopt;
  Reader& reader = *context_->loop.codecs.readers_of(params.encoding).reader;
  reader.reset(params.text);
  if (reader.kind() != ValueKind::object) return std::nullopt;
  std::optional<rpc::RawValue> sent;
  static_cast<void>(reader.begin_object());
  for (std::string_view member; reader.next_member(member);) {
    if (member != "subscription") {
      static_cast<void>(reader.skip());
      continue;
    }
    if (sent) return std::nullopt;
    sent = rpc::take_raw(reader);
  }
  return sent;
}

// Its caller is there. Returns whether it has been sent, or is behind the answer.
bool SubscriptionRelay::send_event(const MethodSubscription& subscription, EncodedText params, std::string_view id) {
  const std::string& name = subscription.method->names.notification;
  Peer& caller = *subscription.caller->peer;
  if (!caller.takes_events()) {
    drop_event(*context_, caller, name);
    return false;
  }
  const Buffer text = event_with_id(context_->loop.codecs, name, params, id, subscription.id);
  if (!caller.sink().has_budget_for(text.size())) {
    drop_for_budget(*context_, caller, name);
    return false;
  }
  ++context_->loop.stats.events;
  try {
    subscription.link->send_behind_answer(text.view());
    tell_lag(caller);
  } catch (const Error&) {
    drop_event(*context_, caller, name);  // too many wait for the answer
    return false;
  }
  ++context_->loop.stats.events_delivered;
  return true;
}

// ---- events that come before the answer ----

void SubscriptionRelay::keep_early_event(SubscriptionSource& source, EarlyEvent event) {
  const std::size_t bytes = event.bytes();
  if (source.early_bytes + bytes > SubscriptionSource::kEarlyBytesMax) {
    ++context_->loop.stats.events_dropped;
    return source.lose_early(event.notification, event.provider_id);
  }
  source.early.push_back(std::move(event));
  source.early_bytes += bytes;
}

// And how many there were beyond those that have been kept.
void SubscriptionRelay::send_early_events(SubscriptionSource& source, const MethodSubscription& subscription) {
  const std::string& notification = subscription.method->names.notification;
  for (auto event = source.early.begin(); event != source.early.end();) {
    if (event->provider_id != subscription.provider_id || event->notification != notification) {
      ++event;
      continue;
    }
    const EarlyEvent sent = std::move(*event);
    source.early_bytes -= sent.bytes();
    event = source.early.erase(event);
    const std::string_view params = sent.params;
    send_event(subscription, {params, sent.encoding}, params.substr(sent.id_at, sent.id_bytes));
  }
  const std::uint64_t lost = source.take_early_losses(notification, subscription.provider_id);
  if (lost == 0) return;
  try {
    subscription.link->send_behind_answer(lagged(notification, lost).view());
  } catch (const Error&) {
    count_lag(*subscription.caller->peer, notification, lost);  // too many wait for the answer
  }
}

// ---- subscriptions that end otherwise ----

// Its provider provides it no more: its caller is told by one last event, and the provider to end it.
void SubscriptionRelay::lose(MethodSubscription& subscription) noexcept {
  const MethodSubscription ended = take_out(subscription);
  if (const Peer* const provider = ended.method->provider->peer)
    if_memory_allows(
        [&] { send_unsubscribe(*provider, ended.method->names.unsubscribe, ended.provider_id, ended.principal); });
  tell_of_lost(ended);
}

void SubscriptionRelay::tell_of_lost(const MethodSubscription& lost) noexcept {
  if (lost.caller->peer == nullptr || !lost.method->ended) return;
  try {
    lost.link->send_behind_answer(R"({"jsonrpc":"2.0","method":)" + to_json(lost.method->names.notification) +
                                  R"(,"params":{"subscription":)" + to_json(lost.id) + R"(,"error":)" +
                                  message::error_text(context_->errors.maybe_delivered) + "}}");
  } catch (const std::exception&) {
    // As an event that is lost.
  }
}

void SubscriptionRelay::end_method(Provider& provider) noexcept {
  const std::shared_ptr<SubscriptionMethod> method = std::move(provider.subscribing);
  if (!method) return;
  method->ended = true;
  end({.caller = nullptr, .method = method});
}

void SubscriptionRelay::end_all_of(Peer& peer) noexcept {
  if (peer.source && peer.source->side) peer.source->side->peer = nullptr;
  const std::shared_ptr<SubscriptionPeer> caller = std::move(peer.subscribed);
  if (!caller) return;
  caller->peer = nullptr;
  peer.method_subscriptions = 0;
  end({.caller = caller, .method = nullptr});
}

// So many in this turn as it has time for, and the others in later ones.
void SubscriptionRelay::end(EndedSubscriptions ended) noexcept {
  const bool done = end_some(ended, budget_.steps());
  bool goes_on = false;
  if_memory_allows([&] {
    if (!done) ended_.push_back(ended);
    goes_on = budget_.resume_later(!ended_.empty());
  });
  std::size_t all = TurnBudget::kAll;
  if (!goes_on) static_cast<void>(end_some(ended, all));
}

// Takes what it needs off `steps`. Whether there is none left.
bool SubscriptionRelay::end_some(const EndedSubscriptions& ended, std::size_t& steps) noexcept {
  while (MethodSubscription* const one = table_.any_of(ended)) {
    if (steps == 0) return false;
    --steps;
    lose(*one);
  }
  return true;
}

void SubscriptionRelay::end_more() noexcept {
  while (!ended_.empty() && end_some(ended_.front(), budget_.steps())) ended_.pop_front();
  budget_.resume_later(!ended_.empty());
}

}  // namespace wirecall::broker
