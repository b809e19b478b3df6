// See tap_feed.hpp.
#include "broker/tap_feed.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "broker/clean_response.hpp"
#include "broker/outgoing.hpp"
#include "message/error_text.hpp"
#include "rpc/event_text.hpp"

namespace wirecall::broker {
namespace {

constexpr std::string_view kTopic = "rpc.tap";
// Whoever makes a call pays for its end as well.
constexpr std::size_t kSightsOfCall = 2;

EncodedValue params_of(const Received& message) {
  if (!message.has(Member::params)) return {};
  return {.text = message[Member::params], .msgpack = message.msgpack};
}

}  // namespace

std::string TapFeed::method_of(const Received& message) const {
  std::string_view name = message.method();
  if (message.method_escaped) {
    Reader& reader = *context_->loop.codecs.readers.reader;
    reader.reset(message[Member::method]);
    static_cast<void>(reader.read_string(name));
  }
  return std::string{name};
}

void TapFeed::add(Peer& peer, std::string_view pattern) {
  if (peer.ended) throw has_ended();
  taps_.set(peer, pattern);
  peer.taps = *is_tapped_ = true;
}

bool TapFeed::remove(Peer& peer) noexcept {
  if (!peer.taps) return false;
  peer.taps = false;
  const bool known = taps_.remove(peer);
  WIRECALL_ASSERT(known);
  *is_tapped_ = !taps_.empty();
  return true;
}

// Returns what it costs of a connection's share (rpc::Share).
std::size_t TapFeed::show(const TapRecord& record) {
  if (!taps_.any(record.method)) return 0;
  const std::string text = text_of(record);
  rpc::EventText event{text, context_->loop, context_->limits};
  std::size_t shown = 0;
  taps_.each(record.method, [&](Peer& peer) {
    sender_->send(peer, kTopic, event);
    ++shown;
  });
  return cost_of_deliveries(shown, text.size());
}

void TapFeed::call(std::uint64_t number, const Provider& provider, const TappedRequest& request) noexcept {
  if (!taps_.any(request.method)) return;
  if_memory_allows([&] {
    const TappedCall call = taps_.begin(number, request.method, request.caller.name);
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

void TapFeed::call(std::uint64_t number, const Provider& provider, const Peer& caller,
                   const Received& message) noexcept {
  if_memory_allows([&] {
    const std::string method = method_of(message);
    call(number, provider, {.caller = caller, .method = method, .params = params_of(message)});
  });
}

void TapFeed::notification(const Provider& provider, const Peer& caller, const Received& message) noexcept {
  if_memory_allows([&] {
    const std::string method = method_of(message);
    caller.sink().charge(show({.kind = "notification",
                               .method = method,
                               .client = caller.name,
                               .provider = provider.peer->name,
                               .member = "params",
                               .value = params_of(message)}));
  });
}

void TapFeed::event(const Peer* publisher, std::string_view topic, const EncodedValue& params,
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

void TapFeed::own(Call& call, std::string_view name) noexcept {
  if (context_->own.find(name) != &call.method() || !taps_.any(name)) return;
  if_memory_allows([&] {
    const Peer& caller = caller_of(call);
    const std::string& client = caller.name;
    const EncodedValue params{.text = call.params(), .msgpack = call.message().msgpack};
    if (call.is_notification()) {
      return caller.sink().charge(
          show({.kind = "notification", .method = name, .client = client, .member = "params", .value = params}));
    }
    const TappedCall tapped = taps_.begin({}, name, client);
    call.on_reply([this, tapped, began = context_->now()](const Outcome& outcome) {
      if (taps_.empty()) return;
      TapRecord record{.kind = "reply",
                       .id = tapped.id,
                       .method = tapped.method,
                       .client = tapped.client,
                       .time = context_->now() - began};
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

void TapFeed::end(std::uint64_t number, const RelayedCall& call, std::string_view member,
                  const EncodedValue& value) noexcept {
  if_memory_allows([&] {
    const std::optional<TappedCall> tapped = taps_.end(number);
    if (!tapped) return;
    show({.kind = "reply",
          .id = tapped->id,
          .method = tapped->method,
          .client = tapped->client,
          .provider = call.provider != nullptr ? std::string_view{call.provider->peer->name} : std::string_view{},
          .time = context_->now() - call.began,
          .member = member,
          .value = value});
  });
}

void TapFeed::end(std::uint64_t number, const RelayedCall& call, const Error& error) noexcept {
  if_memory_allows([&] {
    const std::string text = message::error_text(error);
    end(number, call, "error", {.text = text});
  });
}

void TapFeed::response(std::uint64_t number, const RelayedCall& call, const Received& message) noexcept {
  if_memory_allows([&] {
    if (!message.has(Member::error))
      return end(number, call, "result", {.text = message[Member::result], .msgpack = message.msgpack});
    Buffer stripped;
    Reader& reader = *context_->loop.codecs.readers.reader;
    end(number, call, "error", {.text = without_origin(message, reader, stripped).error});
  });
}

}  // namespace wirecall::broker
