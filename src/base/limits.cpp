#include <stdexcept>

#include "base/limit_rows.hpp"

namespace wirecall {
namespace {

constexpr std::uint64_t kBytesMax = 0xFFFF'FFFF;  // what a length of 32 bits can say
constexpr std::uint64_t kCountMax = 1'000'000'000;
constexpr std::uint64_t kMsMax = 0xFFFF'FFFF;  // 49 days

constexpr LimitRow kRows[] = {
    {"max_message_size", "bytes", 1, kBytesMax, "One message or batch, in either direction",
     "-32006 with data.limit \"max_message_size\", and close; by HTTP 413 and close", &Limits::max_message_size},
    {"limits.batch", "elements", 1, kCountMax, "Elements of one batch",
     "-32600 with data.limit \"batch\" for each id; a client does not send it: -32006", &Limits::batch},
    {"limits.depth", "levels", 1, kDepthMax, "Arrays and objects nested within each other",
     "-32700 with data.limit \"depth\"", &Limits::depth},
    {"limits.in_flight", "calls", 1, kCountMax, "Calls of one connection that are being worked on at once",
     "-32005 with data.limit \"in_flight\"", &Limits::in_flight},
    {"limits.rate", "calls a second", 0, kCountMax,
     "Requests and notifications of one connection, those in batches each; 0 for any number",
     "-32005 with data.limit \"rate\" and data.retry_after_ms; a notification is dropped", &Limits::rate, true},
    {"limits.principal_rate", "calls a second", 0, kCountMax,
     "The same of all connections of one principal, or else of one address or user; 0 for any number",
     "-32005 with data.limit \"principal_rate\" and data.retry_after_ms; a notification is dropped",
     &Limits::principal_rate, true},
    {"limits.principal_calls", "calls", 1, kCountMax,
     "Calls that all connections of one principal, or else of one address or user, wait for together",
     "-32005 with data.limit \"principal_calls\" for the last call of the connection with the most",
     &Limits::principal_calls, true},
    {"limits.hops", "calls", 0, 1000, "Calls made within calls, one within another", "-32005 with data.limit \"hops\"",
     &Limits::hops},
    {"limits.methods", "methods", 0, kCountMax, "Methods that one connection provides through a broker",
     "-32005 with data.limit \"methods\"", &Limits::methods, true},
    {"limits.subscriptions", "subscriptions", 0, kCountMax,
     "Topics and patterns that one connection subscribes to; as many subscriptions to methods",
     "-32005 with data.limit \"subscriptions\"", &Limits::subscriptions, true},
    {"limits.subscription_bytes", "bytes", 0, kBytesMax,
     "What the subscriptions of one connection hold: their patterns and groups, and 256 bytes for each",
     "-32005 with data.limit \"subscription_bytes\"", &Limits::subscription_bytes, true},
    {"limits.retained_bytes", "bytes", 0, kBytesMax, "All events that a broker retains",
     "-32005 with data.limit \"retained_bytes\"", &Limits::retained_bytes, true},
    {"limits.principal_retained_bytes", "bytes", 0, kBytesMax,
     "Those of them that one principal, or else one address or user, has published",
     "-32005 with data.limit \"principal_retained_bytes\"", &Limits::principal_retained_bytes, true},
    {"limits.unidentified_bytes", "bytes", 65'536, kBytesMax,
     "What all connections of a thread hold that have not said who they are, where that is asked",
     "the one that holds most is closed", &Limits::unidentified_bytes, true},
    {"limits.principal_bytes", "bytes", 65'536, kBytesMax,
     "What all connections of one principal, or else of one address or user, hold of messages and answers",
     "the one that holds most is cut", &Limits::principal_bytes, true},
    {"limits.half_closed_calls", "calls", 0, kCountMax,
     "Calls of a thread that wait for callers that have ended their side",
     "-32005 with data.limit \"half_closed_calls\"", &Limits::half_closed_calls, true},
    {"limits.half_closed_ms", "ms", 0, kMsMax, "Time that a call goes on whose caller has ended its side", "-32002",
     &Limits::half_closed_ms, true},
    {"limits.soft_output", "bytes", 1, kBytesMax, "Output waiting on one connection",
     "it is not read until it has taken most of it", &Limits::soft_output},
    {"limits.hard_output", "bytes", 1, kBytesMax,
     "Output already waiting on one connection when more is to be sent, and calls of one that wait at a broker",
     "it is cut, calls are -32005 with data.limit \"hard_output\"", &Limits::hard_output},
    {"limits.connections", "connections", 1, kCountMax, "Connections open at once, of all threads together",
     "closed as soon as accepted", &Limits::connections, true},
    {"limits.header_bytes", "bytes", 256, 1 << 24, "The head of an HTTP or Content-Length message",
     "431, or -32700, and close; a client's call fails", &Limits::header_bytes},
    {"limits.header_timeout_ms", "ms", 1, kMsMax,
     "Time in which a connection says what it speaks, and in which a head of HTTP, a header or a length is complete",
     "408 by HTTP, and close", &Limits::header_timeout_ms, true},
    {"keepalive_timeout_ms", "ms", 0, kMsMax,
     "Time that a connection may be idle, or take nothing of what waits for it; 0 for ever", "closed",
     &Limits::keepalive_timeout_ms, true},
    {"registration_timeout_ms", "ms", 0, kMsMax,
     "Time in which a connection has to say who it is, by rpc.hello, where that is asked; 0 for ever", "closed",
     &Limits::registration_timeout_ms, true},
    {"call_timeout_ms", "ms", 1, kMsMax, "Time that a call may take, and the most that its timeout_ms may ask for",
     "-32002", &Limits::call_timeout_ms},
};

}  // namespace

std::span<const LimitRow> limit_rows() noexcept { return kRows; }

std::uint64_t limit_value(const LimitRow& row, const Limits& limits) noexcept {
  return std::visit([&](auto member) { return static_cast<std::uint64_t>(limits.*member); }, row.member);
}

std::string conflict_of(const Limits& limits) {
  if (limits.soft_output <= limits.hard_output) return {};
  return out_of_range("limits.soft_output", std::to_string(limits.soft_output),
                      "no more than limits.hard_output, which is " + std::to_string(limits.hard_output));
}

std::string number_range(std::uint64_t min, std::uint64_t max, std::string_view unit) {
  std::string range = "a number from " + std::to_string(min) + " to " + std::to_string(max);
  if (!unit.empty()) range.append(" (").append(unit).append(")");
  return range;
}

std::string out_of_range(std::string_view name, std::string_view value, const std::string& range) {
  return std::string{name}.append(" is ").append(value).append(": give ").append(range);
}

void require_valid(const Limits& limits) {
  for (const LimitRow& row : kRows) {
    const std::uint64_t value = limit_value(row, limits);
    if (value >= row.min && value <= row.max) continue;
    throw std::invalid_argument{
        out_of_range(row.name, std::to_string(value), number_range(row.min, row.max, row.unit))};
  }
  if (const std::string conflict = conflict_of(limits); !conflict.empty()) throw std::invalid_argument{conflict};
}

}  // namespace wirecall
