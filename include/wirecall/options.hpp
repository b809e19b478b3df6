// Options of a server and of a client. The defaults are right for most; limits on a peer are in limits.hpp. Values,
// read once when the server or client is made; Server::set_limits and Server::set_log_level change some while it runs.
//
// An option has the same name in C++ (a member), in JSON (a key, Options::from_json) and on the command line (a flag);
// but max_message_size, call_timeout_ms, keepalive_timeout_ms and registration_timeout_ms, which are members of Limits
// here, stand at the top level in JSON.
// docs/options.md lists them with unit, default and range; the table behind them is src/options/rows.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "wirecall/codec.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/engine.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/log.hpp"
#include "wirecall/principal.hpp"
#include "wirecall/transport.hpp"

namespace wirecall {

/// Whether a server asks its clients for certificates.
enum class ClientAuth : std::uint8_t { none, optional, required };

/// How a server speaks TLS (docs/tls.md). Without a certificate it does not.
struct TlsOptions {
  /// Paths of PEM files: a certificate and its chain each. The first that has the name which a client asks for is
  /// shown; for all other names the first.
  std::vector<std::string> cert;
  /// Paths of the private keys in PEM, without passphrases: as many as `cert`, in the same order.
  std::vector<std::string> key;
  /// Whether the server makes a certificate for localhost and the name of this machine, where `cert` is empty. For
  /// development: nobody vouches for it, and it is another one at each start.
  bool self_signed = false;
  ClientAuth client_auth = ClientAuth::none;
  /// The path of a PEM file: the authorities whose client certificates are accepted.
  std::string client_ca;
  /// The path of a PEM file: a revocation list of each of these authorities; empty for none.
  std::string client_crl;

  /// Whether there is a certificate, or one is made.
  [[nodiscard]] bool on() const noexcept { return self_signed || !cert.empty(); }
};

/// How a client speaks TLS: at endpoints of tls://, https:// and wss://.
struct ClientTlsOptions {
  /// The paths of a certificate with its chain and of its private key, in PEM, which are shown to a server that asks
  /// for them; empty for none.
  std::string client_cert;
  std::string client_key;
  /// The server's certificate itself, instead of an authority's word for it: "sha256:" and its fingerprint, 64
  /// hexadecimal digits; empty for none.
  std::string pin;
  /// Whether any server is accepted, whoever it is. For development: anybody on the way reads and changes everything.
  bool no_verify = false;
};

/// When what a broker's durable store answers is safe: `always` has synced it to the disk, and it outlives a loss of
/// power; `everysec` has written it, and it outlives the process, but a loss of power may take the last second.
enum class Fsync : std::uint8_t { always, everysec };

/// Topics of which a broker keeps all events, and for how long. 0 for no limit. What is beyond one goes, oldest first.
struct DurableTopic {
  std::string pattern;  ///< words between dots, of which * stands for one and > at the end for the rest
  std::uint64_t max_age_ms = 0;
  std::uint64_t max_bytes = 0;  ///< of all events of the pattern, 64 for each among them
  std::uint64_t max_count = 0;
};

/// What a broker keeps beyond its process (docs/durable.md).
struct DurableOptions {
  /// The folder of the store, which is made where it is not there, or "jetstream" for that of the cluster, in NATS's
  /// JetStream; empty for no store.
  std::string path;
  Fsync fsync = Fsync::always;
  std::vector<DurableTopic> topics;
  /// Milliseconds for which a msg_id is remembered.
  std::uint32_t dedup_ms = 120'000;
  /// Milliseconds for which the result of a job is kept.
  std::uint32_t result_ms = 3'600'000;
  /// Jobs in one queue that are not done, and results, at most. More is -32005.
  std::size_t queue_count = 1'000'000;
  /// Bytes of the params of jobs in one queue that are not done. More is -32005.
  std::size_t queue_bytes = 1024 * 1024 * 1024;
  /// The same of the jobs of one principal, in all queues. More is -32005.
  std::size_t principal_bytes = 256 * 1024 * 1024;
  /// Jobs of one principal that are not done, in all queues. More is -32005.
  std::size_t principal_jobs = 1'000'000;
  /// Events that one principal has published and that are kept, of all topics, and bytes of them as in
  /// DurableTopic::max_bytes. More is -32005; 0 for no limit but those of the topics.
  std::size_t principal_events = 0;
  std::size_t principal_event_bytes = 0;
  /// In JetStream, on how many nats-servers of a cluster each stream is kept.
  std::uint32_t replicas = 1;
};

/// How a broker joins others, on this machine and others, by a bus (docs/cluster.md). Without a URL it is alone.
struct ClusterOptions {
  /// Where the bus is: one or more URLs of NATS servers, separated by commas, as "nats://nats.example:4222".
  std::string url;
  /// The brokers of one realm on one bus know each other. 1 to 63 letters, digits, `-` and `_`.
  std::string realm = "default";
  /// This broker's name, which no other broker of the realm has; likewise. Empty for the name of the machine.
  std::string node;
  /// The path of a credentials file (JWT and seed) that is shown to the bus; empty for none.
  std::string credentials;
  /// The path of the seed file of an nkey, and its public key, which are shown to the bus; both empty for none.
  std::string nkey_seed;
  std::string nkey;
  /// Paths of PEM files: the authorities that vouch for the bus, a certificate that is shown to it, and its key. With
  /// any of them, and at tls:// URLs, TLS is spoken.
  std::string ca;
  std::string cert;
  std::string key;
  /// The name of the principal as whom clients of the bus that are no brokers call methods; "anonymous" where there are
  /// no principals. Empty for nobody: they are refused.
  std::string plain_principal;
  /// Topics, and patterns of topics, whose events such clients are told as well.
  std::vector<std::string> plain_topics;

  [[nodiscard]] bool on() const noexcept { return !url.empty(); }
};

struct Options {
  /// The server's name in the documents that describe it: the title of its OpenRPC document.
  std::string name = "wirecall";
  /// Where Server::listen() listens, as URIs; where there are none, TCP at `host` and `port`.
  std::vector<std::string> listen;
  std::string host = "127.0.0.1";
  /// A TCP port; 0 lets the system choose one.
  std::uint16_t port = kDefaultPort;

  /// Threads, each with its own loop and connections. 0 for one per processor.
  std::uint32_t thread_count = 1;
  /// Processors that the threads are pinned to, in turn; none when empty.
  std::vector<std::uint32_t> cpu_affinity;
  Engine engine = Engine::automatic;
  /// Microseconds for which a loop that has nothing to do looks again and again before it sleeps, up to 1 s. Calls that
  /// come in that time are served sooner, by what it costs to wake a thread; the processor is busy meanwhile, so each
  /// thread needs one of its own (docs/transports.md). 0 for sleeping at once.
  std::uint32_t spin_us = 0;
  /// The most threads of the pool that runs handlers marked by wirecall::blocking; started on demand. 0 for no pool:
  /// such handlers run on the thread of the loop, like any other.
  std::uint32_t blocking_threads = 16;

  Limits limits;
  /// Milliseconds that calls in progress have to end when the server stops.
  std::uint32_t drain_ms = 5000;
  /// Milliseconds after which another thread takes over the loop of a handler that has not returned, and serves the
  /// other calls. 0 for never.
  std::uint32_t takeover_ms = 20;
  /// The most handlers of one loop that run on after a takeover, each on its own thread. One more blocks the loop, and
  /// the log says so.
  std::uint32_t takeover_threads = 256;
  /// Milliseconds after which a handler that has not returned is named in the log. 0 for never.
  std::uint32_t slow_handler_ms = 50;

  /// The text that ends every reply, and is accepted between received messages. Its first byte that is not white space
  /// must not begin a JSON value.
  std::string delimiter = "\n";
  /// The HTTP status that answers a notification: 200, 202 or 204.
  std::uint16_t http_notification_status = 204;
  /// Values of the Host header that an HTTP request may have besides loopback and the bound address, as "example.com"
  /// or "example.com:8545".
  std::vector<std::string> allow_hosts;
  /// Web origins whose pages may call, as "https://example.com"; "null" for pages without an origin.
  std::vector<std::string> allow_origins;

  TlsOptions tls;
  /// Whether clients on other machines may connect without TLS as well, where the server speaks TLS.
  bool allow_plain = false;

  /// Whether messages of WebSockets are compressed where the client offers it (permessage-deflate).
  bool websocket_deflate = false;

  /// Whether each connection by TCP begins with a PROXY header (version 1 or 2), which names the client behind the
  /// proxy. Only those that connect from `proxy_from` are believed, and all others closed; a server that has none of
  /// these does not start.
  bool proxy_protocol = false;
  /// Addresses and networks of the proxies, as "10.0.0.7", "10.0.0.0/8" or "fd00::/8".
  std::vector<std::string> proxy_from;

  /// The principals besides those of principals_file. Without any, nobody has to authenticate, and everybody may do
  /// everything. Not in JSON.
  std::vector<Principal> principals;
  /// The path of a JSON file of principals (docs/access.md); empty for none. Read when the server is made.
  std::string principals_file;
  /// Whether a broker tells providers the name of the caller, by the member `from`.
  bool disclose_callers = false;
  /// What a broker keeps on disk.
  DurableOptions durable;

  /// With which others a broker is one. A plain server has none.
  ClusterOptions cluster;

  /// Whether -32700 and -32600 have a short reason in `data.reason` (docs/errors.md). Where false, they are exactly the
  /// specification's errors, and the reason goes to the log only, at level debug.
  bool explain_errors = false;
  /// The lowest level that is logged, and the format of the command's own log; a sink in `log` has its own format.
  LogLevel log_level = LogLevel::info;
  LogFormat log_format = LogFormat::human;
  /// A broker logs one of so many relayed calls, at level debug. 0 for none.
  std::uint32_t log_calls_every = 1000;
  /// Whether each call is logged when it is answered, at level info. Where true, this costs each call some
  /// microseconds.
  bool log_calls = false;
  /// Milliseconds for which a client that rpc.kick has disconnected cannot connect again under its name or session. 0
  /// for none.
  std::uint32_t kick_ms = 60'000;
  /// Where log records go; nowhere when empty. Not in JSON.
  LogSink log;

  /// The URIs of `listen`, or the one of `host` and `port`.
  [[nodiscard]] std::vector<std::string> listen_uris() const;
  /// Reads a JSON object with the names of docs/options.md: R"({"port": 9000, "limits": {"batch": 10}})". Throws
  /// std::invalid_argument for text that is no such object, and, with line and range, for an invalid key or value.
  [[nodiscard]] static Options from_json(std::string_view json);
};

/// The principals of Options::principals and principals_file. Throws std::invalid_argument when the file cannot be read
/// or has no principals; its text contains no token.
[[nodiscard]] std::vector<Principal> principals_of(const Options& options);

struct ClientOptions {
  /// The client's name, which it sends by rpc.hello as the first message on each connection, except by HTTP; empty for
  /// none.
  std::string client_id;
  /// The secret by which the client authenticates (docs/access.md): sent by rpc.hello, by HTTP in the Authorization
  /// header. 1 to 4096 visible ASCII characters; empty for none.
  std::string token;
  /// The path of a PEM file of the authorities that vouch for servers; empty for those of the system.
  std::string cafile;
  ClientTlsOptions tls;
  /// The HTTP proxy that connects the client to its server (CONNECT), as "http://user:password@host:port"; "none" for
  /// none. Empty for what the environment says: http_proxy, https_proxy, all_proxy and no_proxy, which never concern
  /// tcp:// (docs/client.md "Through a proxy"). Not for unix://, inproc:// and udp://.
  std::string proxy;
  /// Whether messages of WebSockets are compressed where the server agrees (permessage-deflate).
  bool websocket_deflate = false;
  Limits limits;
  /// Milliseconds until a call ends with -32002; the connection stays usable. For a stream, the time that its consumer
  /// waits for one item.
  std::uint32_t call_timeout_ms = kCallTimeoutMs;
  /// Milliseconds for which a call is retried while no client provides its method, counted from its start and within
  /// its timeout. It is retried only where the server says that it was not delivered, which servers of other makers do
  /// not say. Client::connect tries for as long as well. 0 for never. Not by HTTP and not for batches. Request::wait
  /// sets it for one call.
  std::uint32_t wait_ms = 0;
  /// Makes the connection to an endpoint in place of the system, by a Transport of the program's own; the endpoint's
  /// scheme says what is spoken over it. It may block for `timeout`, and throws std::runtime_error whose text says why
  /// there is none. Called on any thread, by several at once where there are several connections. Empty for the
  /// system's; not with tls://, https:// and wss://. Not in JSON.
  std::function<std::unique_ptr<Transport>(const Endpoint& endpoint, std::chrono::milliseconds timeout)> connect;
  /// Milliseconds that one attempt to connect may take.
  std::uint32_t connect_timeout_ms = 10'000;
  /// How many times each endpoint is tried before the calls that wait for a connection fail; 0 for no limit but the
  /// calls' own timeouts.
  std::uint32_t connect_attempts = 0;
  /// Milliseconds of the first pause after every endpoint has failed. Each further pause is twice as long, up to
  /// reconnect_max_ms; each is shortened by a random part of up to one half (exponential backoff with jitter).
  std::uint32_t reconnect_min_ms = 50;
  /// Milliseconds of the longest pause.
  std::uint32_t reconnect_max_ms = 5'000;
  /// The most connections of the client; it opens a further one when all are busy. With more than one, calls may be
  /// served in another order than they were made.
  std::uint32_t connections = 1;
  /// Microseconds for which a thread that waits for an answer looks again and again before it sleeps, up to 1 s; as of
  /// Options.
  std::uint32_t spin_us = 0;
  /// As of Options, for methods that the client provides; 0 for no pool: such handlers run on the thread that drives.
  std::uint32_t blocking_threads = 16;
  /// The encoding of the client's messages and of the answers. Params that it cannot represent are -32602.
  Encoding encoding = Encoding::json;
  /// As of Options; of messages in JSON.
  std::string delimiter = "\n";
  LogLevel log_level = LogLevel::info;
  LogSink log;

  /// As of Options.
  [[nodiscard]] static ClientOptions from_json(std::string_view json);
};

/// Throws std::invalid_argument that names the option, its value and its range. Server and Client call it.
void require_valid(const Options& options);
void require_valid(const ClientOptions& options);

}  // namespace wirecall
