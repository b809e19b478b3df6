// See tap_feed.hpp.
#include "broker/tap_feed.hpp"

#include <charconv>

#include "base/utf8.hpp"
#include "broker/outgoing.hpp"
#include "broker/splice.hpp"
#include "message/call_text.hpp"
#include "message/error_text.hpp"

namespace wirecall::broker {

constexpr std::string_view kTopic = "rpc.tap";
// Whoever makes a call pays for its end as well.
constexpr std::size_t kSightsOfCall = 2;

static EncodedText params_of(const Received& message) {
  if (!message.has(Member::params)) return {};
  return {.text = message[Member::params], .encoding = message.encoding};
}

// The beginning of `text`, whole characters of at most so many bytes.
static std::string_view beginning(std::string_view text, std::size_t bytes_max) noexcept {
  if (text.size() <= bytes_max) return text;
  const char* const end = text.data() + bytes_max;
  const char* at = text.data();
  while (at < end) {
    const std::size_t bytes = character_bytes(at, text.data() + text.size());
    if (bytes == 0 || bytes > static_cast<std::size_t>(end - at)) break;
    at += bytes;
  }
  return text.substr(0, static_cast<std::size_t>(at - text.data()));
}

// As much of it as is shown, and a byte more where that is not all.
static std::string json_of(EncodedText value) {
  const std::unique_ptr<Reader> reader = message::codec_of(value.encoding).values().reader();
  reader->reset(value.text);
  return reader->json(TapFeed::kValueShownMax + 1);
}

static std::string name_or_null(std::string_view name) { return name.empty() ? "null" : to_json(name); }

static std::string milliseconds_text(std::chrono::nanoseconds time) {
  std::array<char, 32> text{};
  const double value = std::chrono::duration<double, std::milli>(time).count();
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, 3).ptr};
}

// The texts are shown as they are; empty ones are left out.
struct TapFeed::Record {
  std::string_view kind;
  std::optional<std::uint64_t> id = {};
  std::string_view method;
  std::string_view client = {};                    // null where it is empty
  const rpc::MessageSink* sender = nullptr;        // whose message it is; null where that is not known
  std::optional<std::string_view> provider = {};   // the same
  std::optional<std::size_t> delivered = {};       // to how many
  std::optional<std::chrono::nanoseconds> time{};  // from the request to the response
  std::string_view member = {};                    // the name of `value`
  EncodedText value = {};                          // shown as JSON

  // The notification that shows it.
  [[nodiscard]] std::string text() const;
};

std::string TapFeed::Record::text() const {
  std::string shown;
  message::begin_call(shown, R"("rpc.tap")", R"({"kind":")");
  shown.append(kind).append("\"");
  if (id) shown.append(R"(,"id":)").append(std::to_string(*id));
  shown.append(R"(,"method":)").append(to_json(method));
  shown.append(R"(,"client":)").append(name_or_null(client));
  if (sender != nullptr && !sender->protocol().empty()) {
    shown.append(R"(,"protocol":")").append(sender->protocol()).append("\"");
    if (!sender->tls_version().empty()) shown.append(R"(,"tls":")").append(sender->tls_version()).append("\"");
  }
  if (provider) shown.append(R"(,"provider":)").append(name_or_null(*provider));
  if (delivered) shown.append(R"(,"delivered":)").append(std::to_string(*delivered));
  if (time) shown.append(R"(,"ms":)").append(milliseconds_text(*time));
  if (!value.text.empty()) {
    const bool is_json = value.encoding == Encoding::json;
    const std::string unpacked = is_json ? std::string{} : json_of(value);
    const std::string_view json = is_json ? value.text : unpacked;
    const bool is_small = json.size() <= kValueShownMax;
    // What has no form in JSON, as NaN, is shown by its size alone.
    if (is_small && Value::parse(json, kValueShownMax)) {
      shown.append(",\"").append(member).append("\":").append(json);
    } else {
      if (!is_small) {
        shown.append(",\"").append(member).append(R"(_begin":)");
        shown.append(to_json(beginning(json, kValueShownMax)));
      }
      shown.append(R"(,"bytes":)").append(std::to_string(value.text.size()));
    }
  }
  return shown += "}}";
}

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
  if (peer.has_ended()) throw has_ended();
  const auto known = std::ranges::find(taps_, &peer, &Tap::peer);
  if (known != taps_.end()) {
    known->pattern = pattern;
  } else {
    taps_.push_back({.peer = &peer, .pattern = std::string{pattern}});
  }
  peer.taps = *is_tapped_ = true;
}

bool TapFeed::remove(Peer& peer) noexcept {
  if (!peer.taps) return false;
  peer.taps = false;
  const std::size_t removed = std::erase_if(taps_, [&](const Tap& tap) { return tap.peer == &peer; });
  WIRECALL_ASSERT(removed == 1);
  *is_tapped_ = !taps_.empty();
  if (taps_.empty()) calls_.clear();
  return true;
}

// Whether anybody looks on at that name.
bool TapFeed::any(std::string_view name) const noexcept {
  return std::ranges::any_of(taps_, [&](const Tap& tap) { return matches(tap.pattern, name); });
}

TapFeed::TappedCall TapFeed::begin(std::string_view method, std::string_view client) {
  return {.id = ++last_id_, .method = std::string{method}, .client = std::string{client}};
}

// Returns what it costs of a connection's share (rpc::Share).
std::size_t TapFeed::show(const Record& record) {
  if (!any(record.method)) return 0;
  const std::string text = record.text();
  rpc::EventText event{text, context_->loop, context_->limits};
  std::size_t shown = 0;
  for (const Tap& tap : taps_) {
    if (!matches(tap.pattern, record.method)) continue;
    send_event(*context_, *tap.peer, kTopic, event);
    ++shown;
  }
  return cost_of_deliveries(shown, text.size());
}

void TapFeed::call(std::uint64_t number, const Provider& provider, const TappedRequest& request) noexcept {
  if (!any(request.method)) return;
  if_memory_allows([&] {
    const TappedCall call = begin(request.method, request.caller.name);
    calls_.insert_or_assign(number, call);
    const std::size_t cost = show({.kind = "call",
                                   .id = call.id,
                                   .method = request.method,
                                   .client = call.client,
                                   .sender = &request.caller.sink(),
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
                               .sender = &caller.sink(),
                               .provider = provider.peer->name,
                               .member = "params",
                               .value = params_of(message)}));
  });
}

void TapFeed::event(const Peer* publisher, std::string_view topic, const EncodedText& params,
                    std::size_t delivered) noexcept {
  if_memory_allows([&] {
    const std::size_t cost =
        show({.kind = "event",
              .method = topic,
              .client = publisher != nullptr ? std::string_view{publisher->name} : std::string_view{},
              .sender = publisher != nullptr ? &publisher->sink() : nullptr,
              .delivered = delivered,
              .member = "params",
              .value = params});
    if (publisher != nullptr) publisher->sink().charge(cost);
  });
}

void TapFeed::own(Call& call, std::string_view name) noexcept {
  if (context_->own.find(name) != &call.method() || !any(name)) return;
  if_memory_allows([&] {
    const Peer& caller = caller_of(call);
    const std::string& client = caller.name;
    const EncodedText params{.text = call.params(), .encoding = call.message().encoding};
    if (call.is_notification()) {
      return caller.sink().charge(show({.kind = "notification",
                                        .method = name,
                                        .client = client,
                                        .sender = &caller.sink(),
                                        .member = "params",
                                        .value = params}));
    }
    const TappedCall tapped = begin(name, client);
    call.on_reply([this, tapped, began = context_->now()](const Outcome& outcome) {
      if (taps_.empty()) return;
      Record record{.kind = "reply",
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
    const std::size_t cost = show({.kind = "call",
                                   .id = tapped.id,
                                   .method = name,
                                   .client = client,
                                   .sender = &caller.sink(),
                                   .member = "params",
                                   .value = params});
    caller.sink().charge(kSightsOfCall * cost);
  });
}

void TapFeed::end(std::uint64_t number, const RelayedCall& call, std::string_view member,
                  const EncodedText& value) noexcept {
  if_memory_allows([&] {
    const auto node = calls_.extract(number);
    if (!node) return;
    const TappedCall& tapped = node.mapped();
    show({.kind = "reply",
          .id = tapped.id,
          .method = tapped.method,
          .client = tapped.client,
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
      return end(number, call, "result", {.text = message[Member::result], .encoding = message.encoding});
    Buffer stripped;
    Reader& reader = *context_->loop.codecs.readers.reader;
    end(number, call, "error", {.text = without_origin(message, reader, stripped).error});
  });
}

}  // namespace wirecall::broker
