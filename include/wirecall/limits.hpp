// Limits: what a peer may send, hold or keep waiting at most, each with its unit, its default and what follows beyond
// it. "More is -32005" means: the request that exceeds the limit is answered limit exceeded (-32005), and its
// `data.limit` is the member's name. The connection, and what the peer has already, stay. The defaults are part of the
// wire contract (docs/wire.md, "Limits"). The ranges, and the texts of --help and docs/options.md, are in one table,
// src/base/limits.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wirecall {

/// Bytes of an id, quotes included. A longer id is -32600 with `data.limit:"id"`. Not configurable.
inline constexpr std::size_t kIdBytesMax = 64 * 1024;
/// The largest value `Limits::depth` takes: the scanner keeps one bit a level on its stack.
inline constexpr std::uint32_t kDepthMax = 4096;
/// How many unreadable values in a row close a connection.
inline constexpr int kSyntaxErrorsInARowMax = 16;
/// Bytes of white space that a connection may send before its first other byte.
inline constexpr std::size_t kLeadingSpaceBytesMax = 64;
/// Milliseconds that a call may take by default. A client that uses it need not send `timeout_ms`.
inline constexpr std::uint32_t kCallTimeoutMs = 30'000;

struct Limits {
  /// Bytes of one message or batch, in either direction. More is one -32006, `data.limit:"max_message_size"`, and
  /// close; by HTTP 413 and close.
  std::size_t max_message_size = 16 * 1024 * 1024;
  /// Elements of one batch. More is -32600 for each id in it, `data.limit:"batch"`; a client does not send it, -32006.
  std::size_t batch = 1000;
  /// Levels of nested arrays and objects, from 1 to kDepthMax. More is -32700 with `data.limit:"depth"`.
  std::uint32_t depth = 256;
  /// Calls of one connection in progress at once. More is -32005.
  std::size_t in_flight = 4096;
  /// Requests and notifications per second of one connection, each element of a batch counted. After a second without
  /// any, that many may come at once. More is -32005 with `data.retry_after_ms`; a notification is dropped. 0 for any
  /// number.
  std::uint32_t rate = 0;
  /// The same for all connections of one principal together. Connections that have not authenticated, or need not, are
  /// counted by source: one IP address, or one user of a unix socket. The count outlasts connections, so that a new
  /// connection allows no new burst. More is -32005 with `data.retry_after_ms`. 0 for any number.
  std::uint32_t principal_rate = 0;
  /// Calls in progress of all connections of one principal (or source, as for principal_rate). Beyond it the connection
  /// with the most calls loses one: its last relayed call, or else the new call, is -32005.
  std::size_t principal_calls = 65'536;
  /// Depth of calls that handlers make within calls. More is -32005.
  std::uint32_t hops = 16;
  /// Methods that one connection may provide through a broker. More is -32005.
  std::size_t methods = 4096;
  /// Topics and patterns that one connection subscribes to. The same limit applies, with a count of its own, to its
  /// subscriptions to methods. More is -32005.
  std::size_t subscriptions = 4096;
  /// Bytes of the subscriptions of one connection: their patterns and group names, and 256 for each. More is -32005.
  std::size_t subscription_bytes = 2 * 1024 * 1024;
  /// Bytes of all events that a broker retains. More is -32005.
  std::size_t retained_bytes = 64 * 1024 * 1024;
  /// Bytes of retained events that one principal (or source, as for principal_rate) has published. More is -32005. When
  /// `retained_bytes` is reached, the broker deletes the oldest events of the principal with the most to keep a new one
  /// of a principal with less.
  std::size_t principal_retained_bytes = 64 * 1024 * 1024;
  /// Bytes that all connections on one thread hold together before they authenticate by rpc.hello, where
  /// Options::principals requires that. Beyond it the connection that holds most is closed.
  std::size_t unidentified_bytes = 64 * 1024 * 1024;
  /// Bytes that all connections of one principal (or source, as for principal_rate) hold on one thread: incomplete
  /// messages, batches in progress, params of calls that wait, and unsent answers. A connection that holds at most
  /// 64 KiB is not counted. Beyond it the connection that holds most is closed.
  std::size_t principal_bytes = 256 * 1024 * 1024;
  /// Calls in progress on one thread whose callers have closed their sending side (a TCP half-close), and notifications
  /// in progress whose senders have gone. One peer may take at most half of what is left of the limit. More calls are
  /// -32005, more notifications are cancelled.
  std::size_t half_closed_calls = 16'384;
  /// Milliseconds that a call may take after its caller has closed its sending side; then it is -32002. Likewise a
  /// notification after its sender has gone; then it is cancelled.
  std::uint32_t half_closed_ms = 10'000;
  /// Bytes of unsent output on one connection. Beyond it the server drops events for the connection, and does not read
  /// from it, unless it provides methods, until the peer has taken most of the output.
  std::size_t soft_output = 4 * 1024 * 1024;
  /// Bytes of unsent output on one connection. Beyond it the connection is closed. At a broker also bytes of the calls
  /// of one connection that wait for a provider. More is -32005.
  std::size_t hard_output = 64 * 1024 * 1024;
  /// Bytes of a reply by UDP, which in any case has at most three times the bytes of its request, since the source of
  /// that may be forged. More is -32006 without data, and where even that is too much, nothing. What is larger than
  /// the path to the client takes in one piece is sent in several, and lost as a whole.
  std::size_t datagram_reply_bytes = 1200;
  /// Calls in progress on one thread that have come by UDP; those of one address are at most half of what others
  /// leave. More is -32005 with `data.limit:"in_flight"`.
  std::size_t datagram_calls = 4096;
  /// Connections open at once, on all threads together. More are closed as soon as they are accepted.
  std::size_t connections = 65'536;
  /// TLS handshakes in progress on one thread; those of one address (IPv6: of one /64 network) are at most half of what
  /// others leave. One more is closed as soon as it begins.
  std::size_t tls_handshakes = 4096;
  /// Bytes of the head of an HTTP message or of a Content-Length message. More is 431, or -32700, and close; a client
  /// closes too, and its call fails.
  std::size_t header_bytes = 16 * 1024;
  /// Milliseconds that a new connection has to send the bytes that show its protocol, behind a TLS handshake where it
  /// makes one, and a peer to complete an HTTP head, a Content-Length header or a length prefix. Then the connection is
  /// closed; by HTTP with 408.
  std::uint32_t header_timeout_ms = 10'000;
  /// Milliseconds after which a connection is closed that is idle (no byte in either direction, no call in progress),
  /// or whose peer reads nothing of the output that waits for it. 0 for never.
  std::uint32_t keepalive_timeout_ms = 120'000;
  /// Milliseconds that a new connection has to authenticate by rpc.hello, where Options::principals requires that. Then
  /// it is closed. 0 for no limit.
  std::uint32_t registration_timeout_ms = 10'000;
  /// Milliseconds that a call may take, and the largest `timeout_ms` that takes effect. Then the call is -32002. In a
  /// client this bounds calls to the client's own methods; the calls that it makes have ClientOptions::call_timeout_ms.
  std::uint32_t call_timeout_ms = kCallTimeoutMs;
};

/// Throws std::invalid_argument that names the limit, its value and its range. Server, Client and Registry call it.
void require_valid(const Limits& limits);

}  // namespace wirecall
