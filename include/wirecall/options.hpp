// Options of a server and of a client. The defaults are right for most; what is a limit on the peer stands in
// limits.hpp. Plain values, read once when the server or client is made; a server can be given other limits and another
// level of its log while it runs.
//
// Each can be said in C++ (a member), in JSON (a key, Options::from_json) and on the command line (a flag), by the same
// name everywhere; docs/options.md lists them with unit, default and range. The table behind all of it is
// src/session/option_rows.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wirecall/access.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/engine.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/log.hpp"

namespace wirecall {

struct Options {
  /// What the server is called in the documents that describe it, as the title of its OpenRPC document.
  std::string name = "wirecall";
  /// Where Server::listen() listens, as URIs; where there are none, TCP at `host` and `port`.
  std::vector<std::string> listen;
  std::string host = "127.0.0.1";
  /// 0 lets the system choose.
  std::uint16_t port = kDefaultPort;

  /// Threads, each with a loop and connections of its own. 0 for one a processor.
  std::uint32_t thread_count = 1;
  /// Processors that the threads are pinned to, in turn; none when empty.
  std::vector<std::uint32_t> cpu_affinity;
  Engine engine = Engine::automatic;
  /// Threads for all handlers that say they block (wirecall::blocking), made when they are needed. 0 for none: these
  /// handlers are called as all others are.
  std::uint32_t blocking_threads = 16;

  Limits limits;
  /// Milliseconds that calls in progress are given to finish when the server stops.
  std::uint32_t drain_ms = 5000;
  /// Milliseconds after which a handler that has not come back no longer holds up the others of its loop: another
  /// thread goes on with them. 0 for never.
  std::uint32_t hand_over_ms = 20;
  /// Handlers of one loop that may be away from it at once, each on a thread of its own; the next one that does not
  /// come back holds up the loop, and the log says so.
  std::uint32_t hand_over_threads = 256;
  /// Milliseconds after which a handler that has not come back is named in the log. 0 for never.
  std::uint32_t slow_handler_ms = 50;

  /// Ends every reply, and is accepted between the messages received. Its first byte that is not white space must be
  /// one that no JSON value begins with.
  std::string delimiter = "\n";
  /// The status by which HTTP answers a notification: 200, 202 or 204.
  std::uint16_t http_notification_status = 204;
  /// Values of Host that an HTTP request may name besides loopback and the bound address, as "example.com" or
  /// "example.com:8545".
  std::vector<std::string> allow_hosts;
  /// Origins whose pages may call, as "https://example.com"; "null" for pages without one.
  std::vector<std::string> allow_origins;

  /// Who may do what, besides those of principals_file. Where there are none nobody has to authenticate, and everybody
  /// may do everything. Not in JSON.
  std::vector<Principal> principals;
  /// A file of them, as JSON (docs/access.md); none when empty. Read when the server is made.
  std::string principals_file;
  /// Whether a broker tells providers who calls them, by `from`.
  bool disclose_callers = false;

  /// Whether -32700 and -32600 say why in `data.reason`, in a few words (docs/errors.md). Off, they are no more than
  /// the specification's: what is wrong with a message is then told to the log alone, at level debug.
  bool explain_errors = false;
  /// What the log is told, and how the command's own log writes it; a sink of yours has its own format.
  LogLevel log_level = LogLevel::info;
  LogFormat log_format = LogFormat::human;
  /// Of so many calls that a broker's providers have answered one is written to the log, at level debug. 0 for none.
  std::uint32_t log_calls_every = 1000;
  /// Whether each call of a method is written to the log when it is answered, at level info. Costs a call some
  /// microseconds; without it nothing.
  bool log_calls = false;
  /// How long a client that rpc.kick has ended is not let in again under its name or with its session, in
  /// milliseconds. 0 for not at all.
  std::uint32_t kick_ms = 60'000;
  /// Where log records go; nowhere when empty. Not in JSON.
  LogSink log;

  /// The URIs of `listen`, or the one of `host` and `port`.
  [[nodiscard]] std::vector<std::string> listen_uris() const;
  /// Of a JSON object with the names of docs/options.md: R"({"port": 9000, "limits": {"batch": 10}})". Throws
  /// std::invalid_argument for text that is none, and for a key or value that cannot be, with its line and its range.
  [[nodiscard]] static Options from_json(std::string_view json);
};

/// The principals of the options, and of the file that they name. Throws std::invalid_argument, without a token in it,
/// when the file cannot be read, or holds no principals.
[[nodiscard]] std::vector<Principal> principals_of(const Options& options);

/// What a client's messages are written in (docs/wire.md, "MessagePack").
enum class Encoding : std::uint8_t {
  json,
  msgpack,  ///< behind their length, by HTTP as application/msgpack
};

struct ClientOptions {
  /// The name by which the client introduces itself, with rpc.hello as the first message on each connection but by
  /// HTTP; none when empty.
  std::string client_id;
  /// What the client shows to servers that ask who it is (docs/access.md): with rpc.hello, by HTTP as Authorization. 1
  /// to 4096 visible ASCII characters; none when empty.
  std::string token;
  Limits limits;
  /// Milliseconds until a call is given up with -32002; the connection stays usable. Of a stream, the time without an
  /// item.
  std::uint32_t call_timeout_ms = kCallTimeoutMs;
  /// Milliseconds from a call's begin, within its time, for which it is made again while nobody provides its method: as
  /// long as it was certainly not delivered, which servers of other makers do not tell. 0 for never. Request::wait is
  /// for one call. Not by HTTP, and not of a batch. For so long Client::connect tries again as well.
  std::uint32_t wait_ms = 0;
  /// Milliseconds until an attempt to connect is given up.
  std::uint32_t connect_timeout_ms = 10'000;
  /// How often every place is tried before calls that wait for a connection fail; 0 for as often as their own time
  /// allows.
  std::uint32_t connect_attempts = 0;
  /// Milliseconds of pause after every place has been tried in vain: doubled each time up to the maximum, a random part
  /// of up to one half taken off.
  std::uint32_t reconnect_min_ms = 50;
  std::uint32_t reconnect_max_ms = 5'000;
  /// Connections that the client makes at most; a further one when all it has are busy. With more than one, calls may
  /// be served in another order than they were made.
  std::uint32_t connections = 1;
  /// Both the client's messages and the answers. A value that it has no form for is -32602 in params.
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
