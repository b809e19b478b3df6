// The table of numbers, and what is made of it. See stats.hpp.
#include "wirecall/stats.hpp"

#include <algorithm>
#include <iterator>

#include "wirecall/error.hpp"

namespace wirecall {

constexpr std::string_view kCacheDoc = "Calls of methods whose results are kept";
constexpr std::string_view kErrorsDoc = "Errors answered";
constexpr std::string_view kHandshakesDoc = "TLS handshakes that succeeded";
constexpr std::string_view kProtocolsDoc = "Connections that have begun to speak a protocol";

constexpr StatsField kFields[] = {
    {"connections_open", {}, "Connections open now", true, &Stats::connections_open},
    {"connections_accepted", {}, "Connections accepted", false, &Stats::connections_accepted},
    {"connections_refused",
     {},
     "Connections refused: over the limit, or without a free descriptor",
     false,
     &Stats::connections_refused},
    {"connections_timed_out",
     {},
     "Connections closed for being idle or too slow",
     false,
     &Stats::connections_timed_out},
    {"protocols", "json", kProtocolsDoc, false, &Stats::protocol_json},
    {"protocols", "content_length", kProtocolsDoc, false, &Stats::protocol_content_length},
    {"protocols", "length_prefix", kProtocolsDoc, false, &Stats::protocol_length_prefix},
    {"protocols", "http", kProtocolsDoc, false, &Stats::protocol_http},
    {"protocols", "websocket", kProtocolsDoc, false, &Stats::protocol_websocket},
    {"protocols", "unknown", kProtocolsDoc, false, &Stats::protocol_unknown},
    {"proxy_headers_refused",
     {},
     "Connections that began with no PROXY header that is believed",
     false,
     &Stats::proxy_headers_refused},
    {"tls_handshakes", "tls1_2", kHandshakesDoc, false, &Stats::tls_1_2_handshakes},
    {"tls_handshakes", "tls1_3", kHandshakesDoc, false, &Stats::tls_1_3_handshakes},
    {"tls_handshakes_resumed",
     {},
     "TLS handshakes that resumed a session, among these",
     false,
     &Stats::tls_handshakes_resumed},
    {"tls_handshakes_refused",
     {},
     "TLS handshakes that failed, or were too many at once",
     false,
     &Stats::tls_handshakes_refused},
    {"datagrams_in", {}, "Datagrams received", false, &Stats::datagrams_in},
    {"datagrams_out", {}, "Datagrams sent", false, &Stats::datagrams_out},
    {"datagrams_dropped",
     {},
     "Datagrams received or to be sent that were dropped here, mostly for want of room",
     false,
     &Stats::datagrams_dropped},
    {"datagrams_too_large",
     {},
     "Datagrams not answered, since even the error would be too large",
     false,
     &Stats::datagrams_too_large},
    {"bytes_in", {}, "Bytes received", false, &Stats::bytes_in},
    {"bytes_out", {}, "Bytes sent", false, &Stats::bytes_out},
    {"messages_in", {}, "Messages received", false, &Stats::messages_in},
    {"messages_out", {}, "Messages sent", false, &Stats::messages_out},
    {"calls", {}, "Requests that reached their method", false, &Stats::calls},
    {"notifications", {}, "Notifications that reached their method", false, &Stats::notifications},
    {"calls_in_flight", {}, "Calls that wait to be answered now", true, &Stats::calls_in_flight},
    {"errors", "parse_error", kErrorsDoc, false, &Stats::errors_parse},
    {"errors", "invalid_request", kErrorsDoc, false, &Stats::errors_invalid_request},
    {"errors", "method_not_found", kErrorsDoc, false, &Stats::errors_unknown_method},
    {"errors", "invalid_params", kErrorsDoc, false, &Stats::errors_invalid_params},
    {"errors", "internal_error", kErrorsDoc, false, &Stats::errors_internal},
    {"errors", "timeout", kErrorsDoc, false, &Stats::errors_timeout},
    {"errors", "limit", kErrorsDoc, false, &Stats::errors_limit},
    {"errors", "draining", kErrorsDoc, false, &Stats::errors_draining},
    {"errors", "cancelled", kErrorsDoc, false, &Stats::errors_cancelled},
    {"errors", "other", kErrorsDoc, false, &Stats::errors_other},
    {"calls_relayed", {}, "Calls that a broker has sent to a provider", false, &Stats::calls_relayed},
    {"events", {}, "Events published", false, &Stats::events},
    {"events_delivered", {}, "Events queued, each once per subscriber", false, &Stats::events_delivered},
    {"events_dropped",
     {},
     "Events dropped, each once per subscriber that read too slowly",
     false,
     &Stats::events_dropped},
    {"cached_calls", "hit", kCacheDoc, false, &Stats::cache_hits},
    {"cached_calls", "miss", kCacheDoc, false, &Stats::cache_misses},
    {"cached_calls", "joined", kCacheDoc, false, &Stats::cache_joined},
    {"cache_entries", {}, "Results of methods that are kept now", true, &Stats::cache_entries},
    {"cache_bytes", {}, "Bytes of results that are kept now", true, &Stats::cache_bytes},
    {"responses_dropped", {}, "Responses dropped: no call was waiting for them", false, &Stats::responses_dropped},
    {"slow_peers_closed",
     {},
     "Connections closed because their peer read too slowly",
     false,
     &Stats::slow_peers_closed},
    {"streams", {}, "Calls answered by a stream of results", false, &Stats::streams},
    {"stream_items", {}, "Results of streams, sent one by one or gathered", false, &Stats::stream_items},
    {"takeovers",
     {},
     "Takeovers of a loop by another thread, because a handler had not returned",
     false,
     &Stats::takeovers},
    {"slow_handlers", {}, "Handlers slower than slow_handler_ms, named in the log", false, &Stats::slow_handlers},
    {"loop_turns", {}, "Turns of all loops", false, &Stats::loop_turns},
};

// All other codes are errors_other.
constexpr std::pair<ErrorCode, Counter Stats::*> kErrorCounters[] = {
    {ErrorCode::parse_error, &Stats::errors_parse},
    {ErrorCode::invalid_request, &Stats::errors_invalid_request},
    {ErrorCode::method_not_found, &Stats::errors_unknown_method},
    {ErrorCode::invalid_params, &Stats::errors_invalid_params},
    {ErrorCode::internal_error, &Stats::errors_internal},
    {ErrorCode::timeout, &Stats::errors_timeout},
    {ErrorCode::limit_exceeded, &Stats::errors_limit},
    {ErrorCode::too_large, &Stats::errors_limit},
    {ErrorCode::draining, &Stats::errors_draining},
    {ErrorCode::cancelled, &Stats::errors_cancelled},
};

static std::string human(const Stats& stats) {
  constexpr std::size_t kNameBytes = 32;
  std::string text;
  for (const StatsField& field : kFields) {
    const std::uint64_t value = stats.*field.member;
    if (value == 0) continue;
    std::string name{field.name};
    if (!field.kind.empty()) name.append(" (").append(field.kind).append(")");
    name.resize(std::max(name.size() + 1, kNameBytes), ' ');
    text += name + std::to_string(value) + '\n';
  }
  return text;
}

static std::string json_text(const Stats& stats) {
  std::string text = "{";
  std::string_view object;  // the name of the object that is open
  for (const StatsField& field : kFields) {
    if (!object.empty() && object != field.name) text += '}';
    if (text.size() > 1 && !(object == field.name)) text += ',';
    if (!field.kind.empty()) {
      text += object == field.name ? "," : '"' + std::string{field.name} + "\":{";
    }
    object = field.kind.empty() ? std::string_view{} : field.name;
    text += '"' + std::string{field.kind.empty() ? field.name : field.kind} + "\":";
    text += std::to_string(stats.*field.member);
  }
  return text + '}';
}

static std::string prometheus(const Stats& stats) {
  std::string text;
  std::string_view previous;
  for (const StatsField& field : kFields) {
    const std::string name = "wirecall_" + std::string{field.name} + (field.gauge ? "" : "_total");
    if (field.name != previous) {
      text += "# HELP " + name + ' ' + std::string{field.doc} + ".\n";
      text += "# TYPE " + name + (field.gauge ? " gauge\n" : " counter\n");
    }
    previous = field.name;
    text += name;
    if (!field.kind.empty()) text += "{kind=\"" + std::string{field.kind} + "\"}";
    text += ' ' + std::to_string(stats.*field.member) + '\n';
  }
  return text;
}

std::span<const StatsField> stats_fields() noexcept { return kFields; }

void Stats::count_error(int code) noexcept {
  const auto* const known =
      std::ranges::find(kErrorCounters, static_cast<ErrorCode>(code), &std::pair<ErrorCode, Counter Stats::*>::first);
  ++(known != std::end(kErrorCounters) ? this->*known->second : errors_other);
}

Stats& Stats::operator+=(const Stats& other) noexcept {
  for (const StatsField& field : kFields) this->*field.member += other.*field.member;
  return *this;
}

std::string format_stats(StatsFormat format, const Stats& stats) {
  switch (format) {
    case StatsFormat::human: return human(stats);
    case StatsFormat::json: return json_text(stats);
    case StatsFormat::prometheus: return prometheus(stats);
  }
  return {};
}

}  // namespace wirecall
