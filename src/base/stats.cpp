// The table of numbers, and what is made of it. See stats.hpp.
#include "wirecall/stats.hpp"

#include <algorithm>
#include <array>

#include "wirecall/error.hpp"

namespace wirecall {
namespace {

constexpr std::string_view kErrorsDoc = "Errors answered";

constexpr std::array kFields{
    StatsField{"connections_open", {}, "Connections open now", true, &Stats::connections_open},
    StatsField{"connections_accepted", {}, "Connections accepted", false, &Stats::connections_accepted},
    StatsField{"connections_refused",
               {},
               "Connections over the limit, or for which there were no descriptors",
               false,
               &Stats::connections_refused},
    StatsField{"connections_timed_out",
               {},
               "Connections closed for being idle or too slow",
               false,
               &Stats::connections_timed_out},
    StatsField{"bytes_in", {}, "Bytes received", false, &Stats::bytes_in},
    StatsField{"bytes_out", {}, "Bytes sent", false, &Stats::bytes_out},
    StatsField{"messages_in", {}, "Messages received", false, &Stats::messages_in},
    StatsField{"messages_out", {}, "Messages sent", false, &Stats::messages_out},
    StatsField{"calls", {}, "Requests that reached their method", false, &Stats::calls},
    StatsField{"notifications", {}, "Notifications that reached their method", false, &Stats::notifications},
    StatsField{"calls_in_flight", {}, "Calls that wait to be answered now", true, &Stats::calls_in_flight},
    StatsField{"errors", "parse_error", kErrorsDoc, false, &Stats::errors_parse},
    StatsField{"errors", "invalid_request", kErrorsDoc, false, &Stats::errors_invalid_request},
    StatsField{"errors", "method_not_found", kErrorsDoc, false, &Stats::errors_unknown_method},
    StatsField{"errors", "invalid_params", kErrorsDoc, false, &Stats::errors_invalid_params},
    StatsField{"errors", "internal_error", kErrorsDoc, false, &Stats::errors_internal},
    StatsField{"errors", "timeout", kErrorsDoc, false, &Stats::errors_timeout},
    StatsField{"errors", "limit", kErrorsDoc, false, &Stats::errors_limit},
    StatsField{"errors", "draining", kErrorsDoc, false, &Stats::errors_draining},
    StatsField{"errors", "cancelled", kErrorsDoc, false, &Stats::errors_cancelled},
    StatsField{"errors", "other", kErrorsDoc, false, &Stats::errors_other},
    StatsField{"calls_relayed", {}, "Calls sent to a provider of a broker's", false, &Stats::calls_relayed},
    StatsField{"events", {}, "Events published", false, &Stats::events},
    StatsField{"events_delivered", {}, "Events queued for a subscriber each", false, &Stats::events_delivered},
    StatsField{"events_dropped",
               {},
               "Events dropped for a subscriber each that took too little",
               false,
               &Stats::events_dropped},
    StatsField{"responses_dropped", {}, "Responses that nobody was waiting for", false, &Stats::responses_dropped},
    StatsField{
        "slow_peers_cut", {}, "Connections cut because too much output was waiting", false, &Stats::slow_peers_cut},
    StatsField{"streams", {}, "Calls answered by a stream of results", false, &Stats::streams},
    StatsField{"stream_items", {}, "Results of streams, sent one by one or gathered", false, &Stats::stream_items},
    StatsField{"hand_overs",
               {},
               "Loops handed to another thread because a handler did not come back",
               false,
               &Stats::hand_overs},
    StatsField{
        "slow_handlers", {}, "Handlers that were slow enough to be named in the log", false, &Stats::slow_handlers},
    StatsField{"loop_turns", {}, "Turns of all loops", false, &Stats::loop_turns},
};

std::string human(const Stats& stats) {
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

std::string json(const Stats& stats) {
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

std::string prometheus(const Stats& stats) {
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

}  // namespace

std::span<const StatsField> stats_fields() noexcept { return kFields; }

void Stats::count_error(int code) noexcept {
  switch (static_cast<ErrorCode>(code)) {
    case ErrorCode::parse_error:
      ++errors_parse;
      return;
    case ErrorCode::invalid_request:
      ++errors_invalid_request;
      return;
    case ErrorCode::method_not_found:
      ++errors_unknown_method;
      return;
    case ErrorCode::invalid_params:
      ++errors_invalid_params;
      return;
    case ErrorCode::internal_error:
      ++errors_internal;
      return;
    case ErrorCode::timeout:
      ++errors_timeout;
      return;
    case ErrorCode::limit_exceeded:
    case ErrorCode::too_large:
      ++errors_limit;
      return;
    case ErrorCode::draining:
      ++errors_draining;
      return;
    case ErrorCode::cancelled:
      ++errors_cancelled;
      return;
    default:
      ++errors_other;
  }
}

Stats& Stats::operator+=(const Stats& other) noexcept {
  for (const StatsField& field : kFields) this->*field.member += other.*field.member;
  return *this;
}

std::string format_stats(StatsFormat format, const Stats& stats) {
  switch (format) {
    case StatsFormat::human:
      return human(stats);
    case StatsFormat::json:
      return json(stats);
    case StatsFormat::prometheus:
      return prometheus(stats);
  }
  return {};
}

}  // namespace wirecall
