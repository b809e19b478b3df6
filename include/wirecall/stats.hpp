// Stats: the counters of a server since it was made. Each loop has its own struct, which only its thread writes;
// Server::stats() adds them up. A value. A copy is not one atomic snapshot: two of its numbers may be some calls apart.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace wirecall {

/// A number that one thread changes and any thread reads.
class Counter {
 public:
  Counter() = default;
  Counter(const Counter& other) noexcept : value_(other.value()) {}
  Counter& operator=(const Counter& other) noexcept {
    value_.store(other.value(), std::memory_order_relaxed);
    return *this;
  }

  [[nodiscard]] std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }
  operator std::uint64_t() const noexcept { return value(); }

  // For the writing thread only: no atomic addition, since no other thread writes.
  Counter& operator+=(std::uint64_t n) noexcept {
    value_.store(value() + n, std::memory_order_relaxed);
    return *this;
  }
  Counter& operator-=(std::uint64_t n) noexcept { return *this += std::uint64_t{0} - n; }
  Counter& operator++() noexcept { return *this += 1; }
  Counter& operator--() noexcept { return *this -= 1; }

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct Stats {
  Counter connections_open;  ///< now
  Counter connections_accepted;
  Counter connections_refused;    ///< beyond Limits::connections, or while the system had no descriptors left
  Counter connections_timed_out;  ///< closed: idle, or too slow with their first bytes or a header

  // Connections, by what they have begun to speak; a WebSocket has begun by HTTP.
  Counter protocol_json;
  Counter protocol_content_length;
  Counter protocol_length_prefix;
  Counter protocol_http;
  Counter protocol_websocket;
  Counter protocol_unknown;  ///< or refused

  Counter proxy_headers_refused;  ///< connections that began with no PROXY header that is believed

  Counter tls_1_2_handshakes;      ///< that succeeded
  Counter tls_1_3_handshakes;      ///< the same
  Counter tls_handshakes_resumed;  ///< of both
  Counter tls_handshakes_refused;  ///< that failed, or were too many at once

  Counter datagrams_in;
  Counter datagrams_out;
  Counter datagrams_dropped;    ///< received or to be sent, for want of room or memory
  Counter datagrams_too_large;  ///< for which not even the error was small enough to be sent

  Counter bytes_in;
  Counter bytes_out;
  Counter messages_in;   ///< a batch is one
  Counter messages_out;  ///< a batch of replies is one

  Counter calls;  ///< requests that have reached their method, each element of a batch counted
  Counter notifications;
  Counter calls_in_flight;  ///< now: calls not answered yet, of handlers that are suspended or on another thread

  // Errors answered, by code.
  Counter errors_parse;            ///< -32700
  Counter errors_invalid_request;  ///< -32600
  Counter errors_unknown_method;   ///< -32601
  Counter errors_invalid_params;   ///< -32602
  Counter errors_internal;         ///< -32603
  Counter errors_timeout;          ///< -32002
  Counter errors_limit;            ///< -32005 and -32006
  Counter errors_draining;         ///< -32009
  Counter errors_cancelled;        ///< -32800
  Counter errors_other;            ///< all others: what handlers raise

  Counter calls_relayed;     ///< calls that a broker has sent to a provider
  Counter events;            ///< published
  Counter events_delivered;  ///< per subscriber
  Counter events_dropped;    ///< per subscriber that read too slowly

  // Calls of methods whose results are kept (MethodOptions::cache).
  Counter cache_hits;     ///< answered with a result that was kept
  Counter cache_misses;   ///< for which the method has run
  Counter cache_joined;   ///< that waited for an equal call in progress
  Counter cache_entries;  ///< results that are kept now
  Counter cache_bytes;    ///< that they take now

  Counter responses_dropped;  ///< no call was waiting for them
  Counter slow_peers_closed;  ///< connections closed: over Limits::hard_output, or whose peer took no output
  Counter streams;            ///< calls answered by a stream of results, sent one by one or gathered
  Counter stream_items;       ///< results of streams
  Counter takeovers;          ///< of a loop by another thread, while a handler had not returned (Options::takeover_ms)
  Counter slow_handlers;      ///< handlers that were named in the log
  Counter loop_turns;

  /// Counts an error that is answered.
  void count_error(int code) noexcept;
  Stats& operator+=(const Stats& other) noexcept;
};

/// One counter of Stats, for iteration.
struct StatsField {
  std::string_view name;
  std::string_view kind;  ///< for one of several counters of that name: its label, as "parse_error" of "errors"
  std::string_view doc;
  bool gauge;  ///< true: the number also decreases; false: it only increases
  Counter Stats::* member;
};
[[nodiscard]] std::span<const StatsField> stats_fields() noexcept;

enum class StatsFormat : std::uint8_t {
  human,       ///< a line for each counter that is not zero
  json,        ///< one object
  prometheus,  ///< the text format 0.0.4, names beginning with wirecall_
};
[[nodiscard]] std::string format_stats(StatsFormat format, const Stats& stats);

}  // namespace wirecall
