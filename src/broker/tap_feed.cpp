// The part of Router (router.hpp) that is rpc.tap: what those are sent who look on. Nothing here fails or holds up
// what is looked at: who looks on loses what it has no room for, and without memory nobody is shown anything.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "broker/clean_response.hpp"
#include "broker/outgoing.hpp"
#include "broker/router.hpp"
#include "message/error_text.hpp"
#include "message/own_error.hpp"
#include "rpc/event_text.hpp"

namespace wirecall::broker {
namespace {

constexpr std::string_view kTopic = "rpc.tap";
// Whoever makes a call pays for its end as well.
constexpr std::size_t kSightsOfCall = 2;

std::string method_of(const Received& message, Reader& reader) {
  std::string_view name = message.method();
  if (message.method_escaped) {
    reader.reset(message[Member::method]);
    static_cast<void>(reader.read_string(name));
  }
  return std::string{name};
}

EncodedValue params_of(const Received& message) {
  if (!message.has(Member::params)) return {};
  return {.text = message[Member::params], .msgpack = message.msgpack};
}

}  // namespace

void Router::tap(Peer& peer, std::string_view pattern) {
  if (peer.ended) {
    throw message::make(
        {.code = ErrorCode::conflict, .reason = "the connection has ended its side", .delivered = "no"});
  }
  taps_.set(peer, pattern);
  peer.taps = tapped_ = true;
}

bool Router::untap(Peer& peer) noexcept {
  if (!peer.taps) return false;
  peer.taps = false;
  static_cast<void>(taps_.remove(peer));
  tapped_ = !taps_.empty();
  return true;
}

// Returns what it costs of a connection's share (rpc::Share).
std::size_t Router::show(const TapRecord& record) {
  if (!taps_.any(record.method)) return 0;
  const std::string text = text_of(record);
  rpc::EventText event{text, *loop_context_, *limits_};
  std::size_t shown = 0;
  taps_.each(record.method, [&](Peer& peer) {
    send_event(peer, kTopic, event);
    ++shown;
  });
  return cost_of_deliveries(shown, text.size());
}

void Router::tap_call(SlotNumber slot, const Provider& provider, const TappedRequest& request) noexcept {
  if (!taps_.any(request.method)) return;
  if_memory_allows([&] {
    const TappedCall call = taps_.begin(calls_.number_of(slot), request.method, request.caller.name);
    const std::size_t cost = show({.kind = "call",
                                   .id = call.id,
                                   .method = request.method,
                                   .client = call.client,
                                   .provider = provider.peer->name,
                                   .member = "params",
                                   .value = request.params});
    request.caller.sink().charge(kSightsOfCall * cost);
  });
}

void Router::tap_call(SlotNumber slot, const Peer& caller, const Received& message) noexcept {
  if_memory_allows([&] {
    const std::string method = method_of(message, *loop_context_->codecs.readers.reader);
    tap_call(slot, *calls_[slot].provider, {.caller = caller, .method = method, .params = params_of(message)});
  });
}

void Router::tap_notification(const Provider& provider, const Peer& caller, const Received& message) noexcept {
  if_memory_allows([&] {
    const std::string method = method_of(message, *loop_context_->codecs.readers.reader);
    caller.sink().charge(show({.kind = "notification",
                               .method = method,
                               .client = caller.name,
                               .provider = provider.peer->name,
                               .member = "params",
                               .value = params_of(message)}));
  });
}

void Router::tap_event(const Peer* publisher, std::string_view topic, const EncodedValue& params,
                       std::size_t delivered) noexcept {
  if_memory_allows([&] {
    const std::size_t cost =
        show({.kind = "event",
              .method = topic,
              .client = publisher != nullptr ? std::string_view{publisher->name} : std::string_view{},
              .delivered = delivered,
              .member = "params",
              .value = params});
    if (publisher != nullptr) publisher->sink().charge(cost);
  });
}

void Router::tap_own(Call& call, std::string_view name) noexcept {
  if (own_->find(name) != &call.method() || !taps_.any(name)) return;
  if_memory_allows([&] {
    const Peer& caller = static_cast<Peer&>(*call.broker_peer());
    const std::string& client = caller.name;
    const EncodedValue params{.text = call.params(), .msgpack = call.message().msgpack};
    if (call.is_notification()) {
      return caller.sink().charge(
          show({.kind = "notification", .method = name, .client = client, .member = "params", .value = params}));
    }
    const TappedCall tapped = taps_.begin({}, name, client);
    call.on_reply([this, tapped, began = now()](const Outcome& outcome) {
      if (taps_.empty()) return;
      TapRecord record{
          .kind = "reply", .id = tapped.id, .method = tapped.method, .client = tapped.client, .time = now() - began};
      const std::string error = R"({"code":)" + std::to_string(outcome.code) + "}";
      if (!outcome.ok()) {
        record.member = "error";
        record.value = {.text = error};
      }
      show(record);
    });
    const std::size_t cost =
        show({.kind = "call", .id = tapped.id, .method = name, .client = client, .member = "params", .value = params});
    caller.sink().charge(kSightsOfCall * cost);
  });
}

// The first of several ways in which a call ends that come together tells how it did.
void Router::tap_end(SlotNumber slot, std::string_view member, const EncodedValue& value) noexcept {
  if_memory_allows([&] {
    const std::optional<TappedCall> tapped = taps_.end(calls_.number_of(slot));
    if (!tapped) return;
    const RelayedCall& call = calls_[slot];
    show({.kind = "reply",
          .id = tapped->id,
          .method = tapped->method,
          .client = tapped->client,
          .provider = call.provider != nullptr ? std::string_view{call.provider->peer->name} : std::string_view{},
          .time = now() - call.began,
          .member = member,
          .value = value});
  });
}

void Router::tap_end(SlotNumber slot, const Error& error) noexcept {
  if_memory_allows([&] {
    const std::string text = message::error_text(error);
    tap_end(slot, "error", {.text = text});
  });
}

void Router::tap_response(SlotNumber slot, const Received& message) noexcept {
  const RelayedCall& call = calls_[slot];
  if (call.caller != nullptr && is_too_large(call, message)) return;  // the error that takes its place is shown
  if_memory_allows([&] {
    if (!message.has(Member::error))
      return tap_end(slot, "result", {.text = message[Member::result], .msgpack = message.msgpack});
    Buffer stripped;
    tap_end(slot, "error", {.text = without_origin(message, *loop_context_->codecs.readers.reader, stripped).error});
  });
}

}  // namespace wirecall::broker
