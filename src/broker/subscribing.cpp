// The part of Exchange (exchange.hpp) that is about subscriptions to methods which providers have declared so: ids are
// mapped between caller and provider, events go to that caller alone, and whoever goes ends what the other side has.
// Implements docs/broker.md "Subscriptions to a method".
#include <array>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/random_id.hpp"
#include "broker/exchange.hpp"
#include "broker/outgoing.hpp"
#include "codec/transcode.hpp"
#include "message/error_text.hpp"
#include "message/own_error.hpp"
#include "message/transcoder.hpp"
#include "rpc/event_text.hpp"
#include "rpc/reserved_params.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::broker {
namespace {

// Of the request by which a provider is told that a subscription has ended; nobody waits for its response.
constexpr std::string_view kUnsubscribeId = R"("rpc.unsubscribe")";

// A provider's id in the one form in which it is compared, JSON; empty for what is none.
std::string comparable_id(const rpc::Sent& sent) {
  if (sent.kind == ValueKind::number) return std::string{sent.text};
  if (sent.kind != ValueKind::string) return {};
  return to_json(from_json<std::string>(sent.text).value());
}

// The same of one in MessagePack.
std::string comparable_packed_id(const rpc::Sent& sent) {
  if (sent.kind != ValueKind::number && sent.kind != ValueKind::string) return {};
  Buffer json;
  if (!codec::MsgpackToJson{}(sent.text, json).done()) return {};
  return comparable_id({.text = json.padded(), .kind = sent.kind});
}

// The notification `name` with `params` in which the subscription's id is another.
Buffer event_with_id(std::string_view name, std::string_view params, std::string_view sent_id, std::string_view id) {
  const auto at = static_cast<std::size_t>(sent_id.data() - params.data());
  const std::string_view before = params.substr(0, at);
  const std::string_view behind = params.substr(at + sent_id.size());
  if (message::is_msgpack(params.front())) {
    Buffer text = rpc::packed_event_of(name, before);
    codec::append_string(text, id);
    text.append(behind);
    return text;
  }
  Buffer text{R"({"jsonrpc":"2.0","method":)"};
  text.append(to_json(name));
  text.append(R"(,"params":)");
  text.append(before);
  text.append(to_json(id));
  text.append(behind);
  text.push_back('}');
  return text;
}

Error too_many_subscriptions() {
  return message::make({.code = ErrorCode::limit_exceeded,
                        .reason = "too many subscriptions of this connection",
                        .delivered = "no",
                        .limit = "subscriptions"});
}

}  // namespace

bool Exchange::is_unsubscribed(const Received& message) noexcept { return message.id() == kUnsubscribeId; }

void Exchange::relay_subscribing(Route& route, Call& call) {
  Peer& caller = static_cast<Peer&>(*call.broker_peer());
  if (call.is_notification()) return call.end_result();  // nobody would learn the id
  if (call.context().caller_link() == nullptr) {
    return refuse(call, route,
                  Error{ErrorCode::invalid_request, std::string{message_of(ErrorCode::invalid_request)},
                        R"({"reason":"needs_connection"})"});
  }
  if (caller.method_subscriptions >= limits_->subscriptions) return refuse(call, route, too_many_subscriptions());
  call.on_reply([](const Outcome&) {});  // so it is answered by a sink, behind which events may wait
  relay(route, call);
}

// The provider has answered a call that subscribes with a result.
void Exchange::begin_subscription(SlotNumber slot, const Received& message, Provider& provider) {
  RelayExtras& extras = *calls_[slot].extras;
  ReplySink sink = std::move(extras.sink);
  const Subscribing subscribing = std::move(extras.subscribing);
  forget_call(slot);
  Reader& reader = *workspace_->readers.reader;
  reader.reset(message[Member::result]);
  const std::string provider_id = comparable_id(rpc::take_sent(reader));
  if (provider_id.empty()) return sink.error(errors_.malformed);
  const SubscriptionNames& names = *provider.route->description.subscription;
  Peer& caller = *subscribing.caller;
  if (caller.ended || provider.ended || caller.method_subscriptions >= limits_->subscriptions) {
    send_unsubscribe(*provider.peer, names.unsubscribe, provider_id);
    return sink.error(caller.method_subscriptions >= limits_->subscriptions ? too_many_subscriptions()
                                                                            : errors_.maybe_delivered);
  }
  const MethodSubscription* const added = subscriptions_to_methods_.add({.id = random_id(),
                                                                         .provider_id = provider_id,
                                                                         .caller = &caller,
                                                                         .provider = provider.peer,
                                                                         .names = names,
                                                                         .link = subscribing.link});
  // The id is that of the other one, which an unsubscribe would end.
  if (added == nullptr) return sink.error(errors_.same_subscription);
  ++caller.method_subscriptions;
  ++provider.peer->method_sources;
  caller.took_part = true;
  const std::string id = added->id;
  if (Writer* const writer = sink.begin_result()) writer->string(id);
  sink.end_result();
}

// It was given up before the provider answered: what that has begun for it ends.
void Exchange::end_unwanted(const Provider& provider, const Received& message) noexcept {
  if (!message.has(Member::result) || message.fault != Fault::none) return;
  if_memory_allows([&] {
    Reader& reader = *workspace_->readers.reader;
    reader.reset(message[Member::result]);
    const std::string id = comparable_id(rpc::take_sent(reader));
    if (!id.empty()) send_unsubscribe(*provider.peer, provider.route->description.subscription->unsubscribe, id);
  });
}

void Exchange::send_unsubscribe(const Peer& provider, std::string_view method, std::string_view provider_id) {
  append_message(provider.outlet(), [&](Buffer& out) {
    out.append(R"({"jsonrpc":"2.0","method":)");
    out.append(to_json(method));
    out.append(R"(,"params":[)");
    out.append(provider_id);
    out.append(R"(],"id":)");
    out.append(kUnsubscribeId);
    out.push_back('}');
  });
}

MethodSubscription Exchange::take_out(MethodSubscription& subscription) noexcept {
  --subscription.caller->method_subscriptions;
  --subscription.provider->method_sources;
  return subscriptions_to_methods_.remove(subscription);
}

// By its caller.
void Exchange::unsubscribe_method(Route& route, Call& call) {
  static constexpr std::array<std::string_view, 1> kNames{"subscription"};
  Buffer json;
  Received plain = call.message();
  if (plain.packed) {
    if (const std::optional<Error> why = read_as_json(call.message().text, json, plain))
      return refuse(call, route, *why);
  }
  const rpc::ReservedParams params{*workspace_->readers.reader,
                                   plain.has(Member::params) ? plain[Member::params] : std::string_view{}, kNames};
  const std::optional<std::string> id = params.as<std::string>(0);
  if (!id) params.refuse("subscription", params.find(0), "string");
  const Peer& caller = static_cast<Peer&>(*call.broker_peer());
  MethodSubscription* const found = subscriptions_to_methods_.find_of_caller(caller, *id);
  const bool ends = found != nullptr && found->names.unsubscribe == route.name();
  if (ends) {
    const MethodSubscription ended = take_out(*found);
    send_unsubscribe(*ended.provider, ended.names.unsubscribe, ended.provider_id);
  }
  if (Writer* const writer = call.begin_result()) writer->boolean(ends);
  call.end_result();
}

// A notification of a provider's that may be an event of a subscription: with the caller's id, and to that alone.
void Exchange::method_event(const Peer& provider, std::string_view name, const Received& message) {
  if (!message.has(Member::params)) return;
  const std::string_view params = message[Member::params];
  Reader& reader = *workspace_->readers_of(message.packed ? MessageForm::packed : MessageForm::json).reader;
  reader.reset(params);
  if (reader.kind() != ValueKind::object) return;
  std::optional<rpc::Sent> sent;
  static_cast<void>(reader.begin_object());
  for (std::string_view member; reader.next_member(member);) {
    if (member != "subscription") {
      static_cast<void>(reader.skip());
      continue;
    }
    if (sent) return;  // which of the two its caller would read, nobody knows
    sent = rpc::take_sent(reader);
  }
  if (!sent) return;
  const std::string id = message.packed ? comparable_packed_id(*sent) : comparable_id(*sent);
  const MethodSubscription* const found = subscriptions_to_methods_.find_of_provider(provider, id);
  if (found == nullptr || found->names.notification != name) return;
  Peer& caller = *found->caller;
  if (!caller.takes_events()) return drop_event(caller, name);
  const Buffer text = event_with_id(name, params, sent->text, found->id);
  ++workspace_->stats.events;
  try {
    found->link->send_behind_answer(text.view());
    ++workspace_->stats.events_delivered;
  } catch (const Error&) {
    drop_event(caller, name);  // too many wait for the answer
  }
}

// Its provider provides it no more: its caller is told by one last event.
void Exchange::lose_subscription(MethodSubscription& subscription) noexcept {
  const MethodSubscription ended = take_out(subscription);
  try {
    ended.link->send_behind_answer(R"({"jsonrpc":"2.0","method":)" + to_json(ended.names.notification) +
                                   R"(,"params":{"subscription":)" + to_json(ended.id) + R"(,"error":)" +
                                   message::error_text(errors_.maybe_delivered) + "}}");
  } catch (const std::exception&) {
    // As an event that is lost.
  }
}

void Exchange::lose_subscriptions_by(const Peer& provider, std::string_view subscribe) noexcept {
  while (MethodSubscription* const one = subscriptions_to_methods_.any_by(provider, subscribe)) {
    if_memory_allows([&] { send_unsubscribe(provider, one->names.unsubscribe, one->provider_id); });
    lose_subscription(*one);
  }
}

void Exchange::end_subscriptions_of(const Peer& peer) noexcept {
  while (MethodSubscription* const one = subscriptions_to_methods_.any_of_provider(peer)) lose_subscription(*one);
  while (MethodSubscription* const one = subscriptions_to_methods_.any_of_caller(peer)) {
    const MethodSubscription ended = take_out(*one);
    if_memory_allows([&] { send_unsubscribe(*ended.provider, ended.names.unsubscribe, ended.provider_id); });
  }
}

}  // namespace wirecall::broker
