#include <stdexcept>

#include "base/limit_rows.hpp"

namespace wirecall {

constexpr std::uint64_t kBytesMax = 0xFFFF'FFFF;  // what a length of 32 bits can say
constexpr std::uint64_t kCountMax = 1'000'000'000;
constexpr std::uint64_t kMsMax = 0xFFFF'FFFF;  // 49 days

constexpr LimitRow kRows[] = {
    {"max_message_size", "bytes", 1, kBytesMax, "One message or batch, in either direction",
     "closed after -32006 with data.limit \"max_message_size\"; by HTTP after 413", &Limits::max_message_size},
    {"limits.batch", "elements", 1, kCountMax, "Elements of one batch",
     "-32600 with data.limit \"batch\" for each id; a client does not send it: -32006", &Limits::batch},
    {"limits.depth", "levels", 1, kDepthMax, "Arrays and objects nested within each other",
     "-32700 with data.limit \"depth\"", &Limits::depth},
    {"limits.in_flight", "calls", 1, kCountMax, "Calls of one connection in progress at once",
     "-32005 with data.limit \"in_flight\"", &Limits::in_flight},
    {"limits.rate", "calls a second", 0, kCountMax,
     "Requests and notifications of one connection, each element of a batch counted; 0 for any number",
     "-32005 with data.limit \"rate\" and data.retry_after_ms; a notification is dropped", &Limits::rate, true},
    {"limits.principal_rate", "calls a second", 0, kCountMax,
     "Requests and notifications of all connections of one principal, or else of one address or user; 0 for any number",
     "-32005 with data.limit \"principal_rate\" and data.retry_after_ms; a notification is dropped",
     &Limits::principal_rate, true},
    {"limits.principal_calls", "calls", 1, kCountMax,
     "Calls in progress of all connections of one principal, or else of one address or user",
     "-32005 with data.limit \"principal_calls\" for the last call of the connection with the most",
     &Limits::principal_calls, true},
    {"limits.hops", "calls", 0, 1000, "Depth of calls that handlers make within calls",
     "-32005 with data.limit \"hops\"", &Limits::hops},
    {"limits.methods", "methods", 0, kCountMax, "Methods that one connection may provide through a broker",
     "-32005 with data.limit \"methods\"", &Limits::methods, true},
    {"limits.subscriptions", "subscriptions", 0, kCountMax,
     "Topics and patterns that one connection subscribes to; counted apart, also its subscriptions to methods",
     "-32005 with data.limit \"subscriptions\"", &Limits::subscriptions, true},
    {"limits.subscription_bytes", "bytes", 0, kBytesMax,
     "Memory of the subscriptions of one connection: their patterns and groups, and 256 bytes for each",
     "-32005 with data.limit \"subscription_bytes\"", &Limits::subscription_bytes, true},
    {"limits.retained_bytes", "bytes", 0, kBytesMax, "Memory of all events that a broker retains",
     "-32005 with data.limit \"retained_bytes\"", &Limits::retained_bytes, true},
    {"limits.principal_retained_bytes", "bytes", 0, kBytesMax,
     "Memory of the retained events that one principal, or else one address or user, has published",
     "-32005 with data.limit \"principal_retained_bytes\"", &Limits::principal_retained_bytes, true},
    {"limits.unidentified_bytes", "bytes", 65'536, kBytesMax,
     "Memory of all connections of a thread that have to authenticate by rpc.hello and have not yet",
     "the connection that holds most is closed", &Limits::unidentified_bytes, true},
    {"limits.principal_bytes", "bytes", 65'536, kBytesMax,
     "Memory of the messages and answers of all connections of one principal, or else of one address or user, on a "
     "thread",
     "the connection that holds most is closed", &Limits::principal_bytes, true},
    {"limits.half_closed_calls", "calls", 0, kCountMax,
     "Calls in progress on a thread whose callers have closed their sending side, and notifications in progress whose "
     "senders have gone",
     "-32005 with data.limit \"half_closed_calls\"", &Limits::half_closed_calls, true},
    {"limits.half_closed_ms", "ms", 0, kMsMax,
     "Time that a call may take after its caller has closed its sending side, and a notification after its sender has "
     "gone",
     "-32002", &Limits::half_closed_ms, true},
    {"limits.soft_output", "bytes", 1, kBytesMax,
     "Unsent output of one connection at which reading from it pauses, unless it provides methods",
     "not read from until its peer has taken most of the output; events for it are dropped", &Limits::soft_output},
    {"limits.hard_output", "bytes", 1, kBytesMax,
     "Unsent output of one connection; counted apart, at a broker also its waiting calls",
     "closed; a waiting call is -32005 with data.limit \"hard_output\"", &Limits::hard_output},
    {"limits.datagram_reply_bytes", "bytes", 128, 65'507,
     "A reply by UDP, which also has at most three times the bytes of its request",
     "-32006 without data; where even that is too large, nothing", &Limits::datagram_reply_bytes, true},
    {"limits.datagram_calls", "calls", 1, kCountMax,
     "Calls in progress on one thread that have come by UDP; those of one address at most half of what others leave",
     "-32005 with data.limit \"in_flight\"", &Limits::datagram_calls, true},
    {"limits.connections", "connections", 1, kCountMax, "Connections open at once, on all threads together",
     "closed as soon as accepted", &Limits::connections, true},
    {"limits.tls_handshakes", "handshakes", 1, kCountMax,
     "TLS handshakes in progress on one thread; those of one address at most half of what others leave",
     "closed as soon as it begins", &Limits::tls_handshakes, true},
    {"limits.header_bytes", "bytes", 256, 1 << 24,
     "The head of an HTTP message, or the header of a Content-Length message",
     "closed after 431 or -32700; a client closes too, and its call fails", &Limits::header_bytes},
    {"limits.header_timeout_ms", "ms", 1, kMsMax,
     "Time for a new connection to show its protocol, a TLS handshake included, and for an HTTP head, a header or a "
     "length prefix to be complete",
     "closed, by HTTP after 408", &Limits::header_timeout_ms, true},
    {"keepalive_timeout_ms", "ms", 0, kMsMax,
     "Time that a connection may be idle, or its peer take no output; 0 for no limit", "closed",
     &Limits::keepalive_timeout_ms, true},
    {"registration_timeout_ms", "ms", 0, kMsMax,
     "Time that a connection has to authenticate by rpc.hello, where that is required; 0 for no limit", "closed",
     &Limits::registration_timeout_ms, true},
    {"call_timeout_ms", "ms", 1, kMsMax, "Time that a call may take, and the largest timeout_ms that takes effect",
     "-32002", &Limits::call_timeout_ms},
};

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
