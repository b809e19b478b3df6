// Every limit on what a peer may send, hold or keep waiting, with its unit, its default and the reply that names it.
// The defaults are part of the wire contract (docs/wire.md, "Limits"). The ranges, and the same sentences for --help
// and for docs/options.md, stand in one table, src/base/limits.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wirecall {

/// Bytes of an id, quotes included. A longer one is -32600 with `data.limit:"id"`. Not configurable.
inline constexpr std::size_t kIdBytesMax = 64 * 1024;
/// The largest value `Limits::depth` takes: the scanner keeps one bit a level on its stack.
inline constexpr std::uint32_t kDepthMax = 4096;
/// Unreadable values in a row on one connection before it is closed.
inline constexpr int kSyntaxErrorsInARowMax = 16;
/// White space looked through for a connection's first byte, in bytes.
inline constexpr std::size_t kLeadingSpaceBytesMax = 64;
/// Milliseconds that a call may take where nobody says otherwise: no client need tell a server of them.
inline constexpr std::uint32_t kCallTimeoutMs = 30'000;

struct Limits {
  /// Bytes of one message or batch, in either direction. More is one -32006, `data.limit:"max_message_size"`, and
  /// close; by HTTP 413 and close.
  std::size_t max_message_size = 16 * 1024 * 1024;
  /// Elements of one batch. More is -32600 for each id in it, `data.limit:"batch"`; a client does not send it, -32006.
  std::size_t batch = 1000;
  /// Levels of nested arrays and objects, from 1 to kDepthMax. More is -32700 with `data.limit:"depth"`.
  std::uint32_t depth = 256;
  /// Calls of one connection that are being worked on at once. More is -32005 with `data.limit:"in_flight"`.
  std::size_t in_flight = 4096;
  /// Requests and notifications a second of one connection, those in batches each; as many may come at once after a
  /// second without any. More is -32005 with `data.limit:"rate"` and `data.retry_after_ms`, a notification is dropped.
  /// 0 for any number.
  std::uint32_t rate = 0;
  /// The same of all connections of one principal together; where nobody has to authenticate, or before it has, of
  /// those from one address, or of one user by a unix socket. It outlasts connections, so that a new one brings no new
  /// burst. More is -32005 with `data.limit:"principal_rate"` and `data.retry_after_ms`. 0 for any number.
  std::uint32_t principal_rate = 0;
  /// Calls that all connections of one principal (or source, as for principal_rate) together wait for. Beyond it the
  /// connection with the most gives way: the last of its relayed calls, or else the new one, is -32005 with
  /// `data.limit:"principal_calls"`.
  std::size_t principal_calls = 65'536;
  /// Calls made within calls, one within another. More is -32005 with `data.limit:"hops"`.
  std::uint32_t hops = 16;
  /// Methods that one connection may provide through a broker. More is -32005 with `data.limit:"methods"`.
  std::size_t methods = 4096;
  /// Topics and patterns of one connection; as many subscriptions to methods. More is -32005, `data.limit` this name.
  std::size_t subscriptions = 4096;
  /// Bytes that the subscriptions of one connection hold: the texts of their patterns and groups, and 256 for each.
  /// More is -32005 with `data.limit:"subscription_bytes"`.
  std::size_t subscription_bytes = 2 * 1024 * 1024;
  /// Bytes of all events that a broker retains. One without room is -32005 with `data.limit:"retained_bytes"`.
  std::size_t retained_bytes = 64 * 1024 * 1024;
  /// Bytes of these that one principal (or source, as for principal_rate) has published. More is -32005 with
  /// `data.limit:"principal_retained_bytes"`. Where `retained_bytes` is reached, who has retained most gives way: its
  /// oldest events are forgotten for those of who has less.
  std::size_t principal_retained_bytes = 64 * 1024 * 1024;
  /// Bytes that connections whose peers have not said who they are, where that is asked, may hold together, on each
  /// thread. Beyond it the one that holds most is closed.
  std::size_t unidentified_bytes = 64 * 1024 * 1024;
  /// Bytes of unfinished messages, of batches that are being served and of answers that have not been sent, which all
  /// connections of one principal (or source, as for principal_rate) hold together, on each thread. A connection that
  /// holds no more than 64 KiB does not count. Beyond it the connection that holds most is cut.
  std::size_t principal_bytes = 256 * 1024 * 1024;
  /// Calls that may wait, on each thread, for callers that have ended their side of the connection. One caller keeps
  /// half of what is left of them at most; its other calls are -32005 with `data.limit:"half_closed_calls"`.
  std::size_t half_closed_calls = 16'384;
  /// Milliseconds that calls go on whose caller has ended its side of the connection. Later they are -32002.
  std::uint32_t half_closed_ms = 10'000;
  /// Bytes of output waiting on one connection at which it is no longer read.
  std::size_t soft_output = 4 * 1024 * 1024;
  /// Bytes of output already waiting on one connection, beyond which a further message cuts it.
  std::size_t hard_output = 64 * 1024 * 1024;
  /// Connections open at once, on all threads together. More are closed as soon as they are accepted.
  std::size_t connections = 65'536;
  /// Bytes of the head of an HTTP message or of a Content-Length message. More is 431, or -32700, and close; a client
  /// closes too, and its call fails.
  std::size_t header_bytes = 16 * 1024;
  /// Milliseconds in which a connection has to say what it speaks, and in which a head of HTTP, a Content-Length header
  /// or a length before a message has to be complete. It is closed then, an HTTP one with 408.
  std::uint32_t header_timeout_ms = 10'000;
  /// Milliseconds after which an idle connection is closed: no byte either way, and nothing pending; and one whose peer
  /// takes nothing of what waits for it. 0 for never.
  std::uint32_t keepalive_timeout_ms = 120'000;
  /// Milliseconds in which a connection has to say who it is, by rpc.hello, where that is asked (Options::principals).
  /// It is closed then. 0 for never.
  std::uint32_t registration_timeout_ms = 10'000;
  /// Milliseconds that a call may take, and the most that its own `timeout_ms` may ask for. More is -32002. A client's
  /// are for the calls to methods of its own; those that it makes have ClientOptions::call_timeout_ms.
  std::uint32_t call_timeout_ms = kCallTimeoutMs;
};

/// Throws std::invalid_argument that names the limit, its value and its range. Server, Client and Registry call it.
void require_valid(const Limits& limits);

}  // namespace wirecall
