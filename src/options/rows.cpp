#include "options/rows.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/dotted_name.hpp"
#include "base/edit_distance.hpp"
#include "base/printable.hpp"
#include "base/utf8.hpp"
#include "message/message_codec.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::net {
namespace {

using namespace std::string_view_literals;

// The words of enumerations, in the order of their enumerators.
template <class Enum>
constexpr std::array<std::string_view, 0> kWords{};
template <>
constexpr std::array kWords<Engine>{"auto"sv, "epoll"sv, "uring"sv};
template <>
constexpr std::array kWords<LogLevel>{"debug"sv, "info"sv, "warning"sv, "error"sv};
template <>
constexpr std::array kWords<LogFormat>{"human"sv, "json"sv};
template <>
constexpr std::array kWords<ClientAuth>{"none"sv, "optional"sv, "required"sv};
template <>
constexpr std::array kWords<Fsync>{"always"sv, "everysec"sv};
// The only values of a number.
constexpr std::array kNotificationStatuses{"200"sv, "202"sv, "204"sv};

template <class T>
OptionSlot slot_of(T& member) {
  if constexpr (std::is_enum_v<T>) {
    static_assert(sizeof member == sizeof(std::uint8_t));
    return reinterpret_cast<std::uint8_t*>(&member);
  } else {
    return &member;
  }
}

template <auto Member, class Owner>
OptionSlot member_slot(Owner& options, const OptionRow&) {
  return slot_of(options.*Member);
}

OptionSlot limit_slot(Limits& limits, const OptionRow& row) {
  return std::visit([&](auto member) -> OptionSlot { return &(limits.*member); }, row.limit->member);
}
OptionSlot server_limit(Options& options, const OptionRow& row) { return limit_slot(options.limits, row); }
OptionSlot client_limit(ClientOptions& options, const OptionRow& row) { return limit_slot(options.limits, row); }

/// What a member's type does not say of its option.
struct Traits {
  std::string_view unit = {};
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  std::span<const std::string_view> words = {};
  std::string_view alias = {};
  bool live = false;
};
constexpr std::uint64_t kUint32Max = std::numeric_limits<std::uint32_t>::max();
constexpr Traits kMs{.unit = "ms", .max = kUint32Max};
constexpr Traits kMsFrom1{.unit = "ms", .min = 1, .max = kUint32Max};

template <class T, class Owner>
void add_member(OptionRow& row, T Owner::*, OptionSlot (*slot)(Owner&, const OptionRow&)) {
  if constexpr (std::is_enum_v<T>) row.words = row.words.empty() ? kWords<T> : row.words;
  if constexpr (std::is_same_v<Owner, Options>) {
    row.in_server = slot;
  } else {
    row.in_client = slot;
  }
}

/// An option that these members hold, of Options, ClientOptions or both.
template <auto... Members>
OptionRow row(std::string_view name, std::string_view doc, const Traits& traits = {}) {
  OptionRow row{.name = name,
                .unit = traits.unit,
                .min = traits.min,
                .max = traits.max,
                .words = traits.words,
                .doc = doc,
                .alias = traits.alias,
                .live = traits.live};
  (add_member(row, Members, &member_slot<Members>), ...);
  return row;
}

/// The same of members of Options::tls and of ClientOptions::tls.
template <auto Member>
OptionSlot tls_slot(Options& options, const OptionRow&) {
  return slot_of(options.tls.*Member);
}
template <auto Member>
OptionSlot client_tls_slot(ClientOptions& options, const OptionRow&) {
  return slot_of(options.tls.*Member);
}
template <auto Member>
OptionRow tls_row(std::string_view name, std::string_view doc) {
  using T = std::remove_reference_t<decltype(std::declval<TlsOptions&>().*Member)>;
  OptionRow row{.name = name, .doc = doc, .in_server = &tls_slot<Member>};
  if constexpr (std::is_enum_v<T>) row.words = kWords<T>;
  return row;
}
template <auto Member>
OptionRow client_tls_row(std::string_view name, std::string_view doc) {
  return {.name = name, .doc = doc, .in_client = &client_tls_slot<Member>};
}

/// The same of members of Options::durable.
template <auto Member>
OptionSlot durable_slot(Options& options, const OptionRow&) {
  return slot_of(options.durable.*Member);
}
template <auto Member>
OptionRow durable_row(std::string_view name, std::string_view doc, const Traits& traits = {}) {
  using T = std::remove_reference_t<decltype(std::declval<DurableOptions&>().*Member)>;
  OptionRow row{.name = name,
                .unit = traits.unit,
                .min = traits.min,
                .max = traits.max,
                .doc = doc,
                .in_server = &durable_slot<Member>,
                .alias = traits.alias};
  if constexpr (std::is_enum_v<T>) row.words = kWords<T>;
  return row;
}

/// The same of members of Options::cluster.
template <auto Member>
OptionSlot cluster_slot(Options& options, const OptionRow&) {
  return slot_of(options.cluster.*Member);
}
template <auto Member>
OptionRow cluster_row(std::string_view name, std::string_view doc, std::string_view alias = {}) {
  return {.name = name, .doc = doc, .in_server = &cluster_slot<Member>, .alias = alias};
}

std::vector<OptionRow> make_rows() {
  std::vector<OptionRow> rows{
      row<&Options::name>("name", "The server's name: the title of its OpenRPC document"),
      row<&Options::listen>("listen", "Endpoints to listen on, as URIs; when empty, TCP at host and port"),
      row<&Options::host>("host", "The address to listen on; 0.0.0.0 for all"),
      row<&Options::port>("port", "The TCP port to listen on; 0 lets the system choose", {.max = 65535}),
      row<&Options::thread_count>("thread_count",
                                  "Threads, each with its own loop and connections; 0 for one per processor",
                                  {.unit = "threads", .max = 1024, .alias = "threads"}),
      row<&Options::cpu_affinity>("cpu_affinity", "Processors that the threads are pinned to, in turn; none when empty",
                                  {.max = 4095}),
      row<&Options::engine>(
          "engine",
          "The kernel interface for input and output; auto is io_uring where the kernel allows it, else epoll"),
      row<&Options::spin_us, &ClientOptions::spin_us>(
          "spin_us",
          "Time for which a loop that has nothing to do looks again and again before it sleeps: a shorter wait for a "
          "busy processor; 0 for none",
          {.unit = "us", .max = 1'000'000}),
      row<&Options::blocking_threads, &ClientOptions::blocking_threads>(
          "blocking_threads",
          "The most threads of the pool for handlers marked as blocking, started on "
          "demand; 0 for no pool: such handlers run on the loop",
          {.unit = "threads", .max = 1024}),
      row<&Options::principals_file>(
          "principals_file", "A JSON file of principals and their grants; without one everybody may do everything"),
      row<&Options::disclose_callers>(
          "disclose_callers", "Whether a broker adds the caller's name to calls and notifications, as the member from"),
      durable_row<&DurableOptions::path>("durable.path",
                                         "Folder of a broker's durable topics and queues, made where it is not there, "
                                         "or jetstream: that of the cluster; none when empty",
                                         {.alias = "durable"}),
      durable_row<&DurableOptions::fsync>(
          "durable.fsync",
          "When what the durable store answers is safe: always outlives a loss of power, everysec the process"),
      durable_row<&DurableOptions::topics>(
          "durable.topics",
          "Topics of which all events are kept: a pattern each, with max_age_ms, max_bytes and max_count; 0 for no "
          "limit"),
      durable_row<&DurableOptions::dedup_ms>("durable.dedup_ms", "Time for which a msg_id is remembered", kMs),
      durable_row<&DurableOptions::result_ms>("durable.result_ms", "Time for which the result of a job is kept", kMs),
      durable_row<&DurableOptions::queue_count>("durable.queue_count",
                                                "Jobs of one queue that are not done, and results of it, at most",
                                                {.min = 1, .max = 1'000'000'000}),
      durable_row<&DurableOptions::queue_bytes>("durable.queue_bytes",
                                                "Params of jobs of one queue that are not done, at most",
                                                {.unit = "bytes", .min = 1024, .max = std::uint64_t{1} << 40U}),
      durable_row<&DurableOptions::principal_bytes>("durable.principal_bytes",
                                                    "The same of the jobs of one principal, in all queues",
                                                    {.unit = "bytes", .min = 1024, .max = std::uint64_t{1} << 40U}),
      durable_row<&DurableOptions::principal_jobs>("durable.principal_jobs",
                                                   "Jobs of one principal that are not done, in all queues, at most",
                                                   {.min = 1, .max = 1'000'000'000}),
      durable_row<&DurableOptions::principal_events>(
          "durable.principal_events", "Events of one principal that are kept, at most; 0 for no limit but the topics'",
          {.max = 1'000'000'000}),
      durable_row<&DurableOptions::principal_event_bytes>("durable.principal_event_bytes",
                                                          "Bytes of these, at most; 0 for no limit but the topics'",
                                                          {.unit = "bytes", .max = std::uint64_t{1} << 40U}),
      durable_row<&DurableOptions::replicas>("durable.replicas",
                                             "In JetStream, on how many nats-servers of a cluster each stream is kept",
                                             {.min = 1, .max = 5}),
      cluster_row<&ClusterOptions::url>(
          "cluster.url", "NATS servers, as nats://host:4222, by which brokers are one; none when empty", "cluster"),
      cluster_row<&ClusterOptions::realm>("cluster.realm", "The brokers of one realm know each other", "realm"),
      cluster_row<&ClusterOptions::node>("cluster.node",
                                         "The broker's name in its realm; when empty, that of the machine", "node"),
      cluster_row<&ClusterOptions::credentials>("cluster.credentials",
                                                "Path of the credentials file that is shown to NATS; none when empty"),
      cluster_row<&ClusterOptions::nkey_seed>("cluster.nkey_seed",
                                              "Path of the seed of the nkey that is shown to NATS; none when empty"),
      cluster_row<&ClusterOptions::nkey>("cluster.nkey", "The public key of cluster.nkey_seed"),
      cluster_row<&ClusterOptions::ca>("cluster.ca", "Path of the authorities, in PEM, that vouch for NATS servers"),
      cluster_row<&ClusterOptions::cert>("cluster.cert", "Path of the certificate, in PEM, that is shown to NATS"),
      cluster_row<&ClusterOptions::key>("cluster.key", "Path of its private key, in PEM"),
      cluster_row<&ClusterOptions::plain_principal>("cluster.plain_principal",
                                                    "The principal as whom plain NATS clients call methods; anonymous "
                                                    "where there are none; not served when empty"),
      cluster_row<&ClusterOptions::plain_topics>("cluster.plain_topics",
                                                 "Topics and patterns whose events plain NATS clients are told"),
      tls_row<&TlsOptions::cert>("tls.cert",
                                 "Paths of certificates with their chains, in PEM: the server speaks TLS as well"),
      tls_row<&TlsOptions::key>("tls.key", "Paths of the private keys, in PEM, in the order of tls.cert"),
      tls_row<&TlsOptions::self_signed>("tls.self_signed",
                                        "Whether the server makes a certificate for localhost where tls.cert is empty"),
      tls_row<&TlsOptions::client_auth>("tls.client_auth", "Whether clients show a certificate"),
      tls_row<&TlsOptions::client_ca>("tls.client_ca",
                                      "Path of the authorities, in PEM, whose client certificates are accepted"),
      tls_row<&TlsOptions::client_crl>(
          "tls.client_crl", "Path of the revocation lists, in PEM, of each of these authorities; none when empty"),
      row<&Options::allow_plain>(
          "allow_plain", "Whether clients on other machines may connect without TLS, where the server speaks TLS"),
      row<&ClientOptions::cafile>(
          "cafile", "Path of the authorities, in PEM, that vouch for servers; those of the system when empty"),
      client_tls_row<&ClientTlsOptions::pin>(
          "tls.pin",
          "The certificate of the server instead of an authority's word for it: sha256: and its fingerprint"),
      client_tls_row<&ClientTlsOptions::no_verify>("tls.no_verify",
                                                   "Whether any server is accepted; for development alone"),
      client_tls_row<&ClientTlsOptions::client_cert>(
          "tls.client_cert", "Path of the certificate with its chain, in PEM, that is shown to a server that asks"),
      client_tls_row<&ClientTlsOptions::client_key>("tls.client_key", "Path of its private key, in PEM"),
      row<&ClientOptions::proxy>("proxy",
                                 "The HTTP proxy that connects the client, as http://host:port; none for none; when "
                                 "empty, what the environment says"),
      row<&Options::websocket_deflate, &ClientOptions::websocket_deflate>(
          "websocket_deflate", "Whether messages of WebSockets are compressed where both ends agree"),
      row<&Options::explain_errors>(
          "explain_errors",
          "Whether parse error (-32700) and invalid request (-32600) have their reason in data.reason"),
      row<&ClientOptions::client_id>("client_id", "The client's name, which it sends by rpc.hello; none when empty"),
      row<&ClientOptions::token>(
          "token", "The secret by which the client authenticates, of visible ASCII characters; none when empty"),
      row<&ClientOptions::wait_ms>(
          "wait_ms", "Time for which a call is retried while no client provides its method; 0 for no retries", kMs),
      row<&ClientOptions::connect_timeout_ms>("connect_timeout_ms", "Time that one attempt to connect may take",
                                              kMsFrom1),
      row<&ClientOptions::connect_attempts>(
          "connect_attempts",
          "How many times each endpoint is tried before the calls that wait for a connection fail; 0 for no limit",
          {.max = 1'000'000}),
      row<&ClientOptions::reconnect_min_ms>(
          "reconnect_min_ms",
          "First pause after every endpoint has failed; exponential backoff with jitter doubles it each time",
          kMsFrom1),
      row<&ClientOptions::reconnect_max_ms>("reconnect_max_ms", "The longest such pause", kMsFrom1),
      row<&ClientOptions::connections>("connections",
                                       "The most connections of the client; it opens a further one when all are busy",
                                       {.min = 1, .max = 1024}),
      row<&ClientOptions::encoding>(
          "encoding",
          "The encoding of the client's messages; all but json are sent with a length prefix, by HTTP as "
          "application/msgpack, application/cbor and application/protobuf",
          {.words = message::encoding_names()}),
      row<&Options::drain_ms>("drain_ms", "Time that calls in progress have to end when the server stops", kMs),
      row<&Options::takeover_ms>(
          "takeover_ms",
          "Time after which another thread takes over the loop of a handler that has not returned; 0 for never", kMs),
      row<&Options::takeover_threads>("takeover_threads",
                                      "The most handlers of one loop that run on after a takeover, each on its own "
                                      "thread; one more blocks the loop",
                                      {.min = 1, .max = 65'536}),
      row<&Options::slow_handler_ms>(
          "slow_handler_ms", "Time after which a handler that has not returned is named in the log; 0 for never", kMs),
      row<&Options::delimiter, &ClientOptions::delimiter>(
          "delimiter", "The text that ends every reply, and is accepted between received messages"),
      row<&Options::http_notification_status>("http_notification_status", "The HTTP status that answers a notification",
                                              {.words = kNotificationStatuses}),
      row<&Options::allow_hosts>(
          "allow_hosts",
          "Values of the Host header that an HTTP request may have besides loopback and the bound address"),
      row<&Options::allow_origins>("allow_origins", "Web origins whose pages may call, as https://example.com"),
      row<&Options::proxy_protocol>("proxy_protocol",
                                    "Whether each connection by TCP begins with a PROXY header, of version 1 or 2"),
      row<&Options::proxy_from>(
          "proxy_from", "Addresses and networks, as 10.0.0.0/8, of the proxies whose PROXY headers are believed"),
      row<&Options::log_level, &ClientOptions::log_level>("log_level", "The lowest level that is logged",
                                                          {.live = true}),
      row<&Options::log_format>("log_format", "The format of the command's log: lines for people, or JSON"),
      row<&Options::log_calls_every>("log_calls_every",
                                     "A broker logs one of so many relayed calls, at level debug; 0 for none",
                                     {.unit = "calls", .max = kUint32Max}),
      row<&Options::log_calls>("log_calls", "Whether each call is logged when it is answered, at level info"),
      row<&Options::kick_ms>(
          "kick_ms", "Time for which a client that rpc.kick has disconnected cannot connect again; 0 for none", kMs),
  };
  for (const LimitRow& limit : limit_rows()) {
    rows.push_back({.name = limit.name,
                    .unit = limit.unit,
                    .min = limit.min,
                    .max = limit.max,
                    .doc = limit.doc,
                    .in_server = server_limit,
                    .in_client = limit.of_listeners ? nullptr : client_limit,
                    .limit = &limit,
                    .live = true});
    if (limit.name == "call_timeout_ms") {
      // A client has two: for the calls that it makes, and for those to methods of its own.
      rows.back().in_client = &member_slot<&ClientOptions::call_timeout_ms>;
      OptionRow own = rows.back();
      own.name = "limits.call_timeout_ms";
      own.doc =
          "Time that a call of one of the client's own methods may take, and the largest timeout_ms that takes "
          "effect";
      own.in_server = nullptr;
      own.in_client = client_limit;
      rows.push_back(own);
    }
  }
  return rows;
}

struct Kind {
  bool list;
  bool number;
  bool truth = false;
  bool topics = false;
};

// Told by the member that holds it.
Kind kind_of(const OptionRow& row) {
  Options options;
  ClientOptions client_options;
  const OptionSlot slot = row.in_server != nullptr ? row.in_server(options, row) : row.in_client(client_options, row);
  return std::visit(
      []<class T>(const T*) {
        if constexpr (std::is_same_v<T, std::vector<std::string>>) return Kind{.list = true, .number = false};
        if constexpr (std::is_same_v<T, std::vector<std::uint32_t>>) return Kind{.list = true, .number = true};
        if constexpr (std::is_same_v<T, std::vector<DurableTopic>>)
          return Kind{.list = true, .number = false, .topics = true};
        if constexpr (std::is_same_v<T, bool>) return Kind{.list = false, .number = false, .truth = true};
        return Kind{.list = false, .number = std::is_unsigned_v<T> && !std::is_same_v<T, std::uint8_t>};
      },
      slot);
}

std::string shown(const Value& value) {
  constexpr std::size_t kShownBytesMax = 64;
  std::string text;
  try {
    text = value.dump();
  } catch (const Error&) {
    text = '"' + printable(value.as_string()) + '"';  // not UTF-8
  }
  if (text.size() > kShownBytesMax) text = text.substr(0, kShownBytesMax) + "...";
  return text;
}

// Each reads one kind of value; false when it is none, or out of range.

bool read(const OptionRow&, const Value& value, std::string& out) {
  if (!value.is_string()) return false;
  const std::string_view text = value.as_string();
  // Words of a command line may be any bytes; an option is one that JSON can say.
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    const std::size_t bytes = character_bytes(at, end);
    if (bytes == 0) return false;
    at += bytes;
  }
  out = text;
  return true;
}

bool read(const OptionRow&, const Value& value, bool& out) {
  if (!value.is_bool()) return false;
  out = value.as_bool();
  return true;
}

bool read(const OptionRow& row, const Value& value, std::uint8_t& out) {
  if (!value.is_string()) return false;
  const auto word = std::ranges::find(row.words, value.as_string());
  out = static_cast<std::uint8_t>(word - row.words.begin());
  return word != row.words.end();
}

template <class Number>
  requires std::is_unsigned_v<Number>
bool read(const OptionRow& row, const Value& value, Number& out) {
  if (!value.is_number()) return false;
  std::uint64_t number = 0;
  try {
    number = value.as_uint();
  } catch (const Error&) {
    return false;  // negative, or with a fraction
  }
  out = static_cast<Number>(number);
  if (row.words.empty()) return number >= row.min && number <= row.max;
  return std::ranges::find(row.words, std::to_string(number)) != row.words.end();
}

// A pattern alone, or an object of it and limits.
bool read(const OptionRow&, const Value& value, DurableTopic& out) {
  if (value.is_string()) {
    out.pattern = value.as_string();
    return is_pattern(out.pattern);
  }
  if (!value.is_object()) return false;
  for (const auto& [name, member] : value.as_object()) {
    if (name == "pattern") {
      if (!member.is_string() || !is_pattern(member.as_string())) return false;
      out.pattern = member.as_string();
      continue;
    }
    std::uint64_t* const number = name == "max_age_ms"  ? &out.max_age_ms
                                  : name == "max_bytes" ? &out.max_bytes
                                  : name == "max_count" ? &out.max_count
                                                        : nullptr;
    static const OptionRow kAny{.name = {}, .max = std::uint64_t{1} << 53U};
    if (number == nullptr || !read(kAny, member, *number)) return false;
  }
  return !out.pattern.empty();
}

template <class Element>
bool read(const OptionRow& row, const Value& value, std::vector<Element>& out) {
  if (!value.is_array()) return false;
  for (const Value& element : value.as_array()) {
    if (!read(row, element, out.emplace_back())) return false;
  }
  return true;
}

}  // namespace

std::span<const OptionRow> option_rows() {
  static const std::vector<OptionRow> rows = make_rows();
  return rows;
}

const OptionRow* find_option(std::string_view name) {
  const auto row = std::ranges::find(option_rows(), name, &OptionRow::name);
  return row != option_rows().end() ? &*row : nullptr;
}

std::string range_of(const OptionRow& row) {
  if (!row.words.empty()) {
    std::string range = "one of ";
    for (const std::string_view word : row.words) {
      range += word;
      range += ", ";
    }
    range.resize(range.size() - 2);
    return range;
  }
  const Kind kind = kind_of(row);
  if (kind.truth) return "true or false";
  if (kind.topics)
    return R"(a list of patterns, or of objects as {"pattern": "orders.>", "max_age_ms": 0, "max_bytes": 0, "max_count": 1000})";
  if (!kind.number) return kind.list ? "a list of strings" : "a string";
  return kind.list ? "a list of numbers from " + std::to_string(row.min) + " to " + std::to_string(row.max)
                   : number_range(row.min, row.max, row.unit);
}

static std::string json_of(const std::vector<DurableTopic>& topics) {
  std::string json = "[";
  for (const DurableTopic& topic : topics) {
    const bool limited = (topic.max_age_ms | topic.max_bytes | topic.max_count) != 0;
    json += json.size() == 1 ? "" : ",";
    json += limited ? to_json(topic) : to_json(topic.pattern);
  }
  return json + "]";
}

std::string json_of(const OptionRow& row, const OptionSlot& slot) {
  return std::visit(
      [&](const auto* value) {
        if constexpr (std::is_same_v<decltype(value), const std::vector<DurableTopic>*>) return json_of(*value);
        if constexpr (std::is_same_v<decltype(value), const std::uint8_t*>) {
          return to_json(*value < row.words.size() ? std::string{row.words[*value]} : std::to_string(*value));
        } else {
          return to_json(*value);
        }
      },
      slot);
}

std::expected<void, std::string> assign(const OptionRow& row, const OptionSlot& slot, const Value& value) {
  const bool fits = std::visit(
      [&](auto* target) {
        std::remove_pointer_t<decltype(target)> read_value{};
        if (!read(row, value, read_value)) return false;
        *target = std::move(read_value);
        return true;
      },
      slot);
  if (fits) return {};
  return std::unexpected(out_of_range(row.name, shown(value), range_of(row)));
}

Value value_of_words(const OptionRow& row, std::span<const std::string> words) {
  const Kind kind = kind_of(row);
  const auto one = [&](const std::string& word) {
    std::uint64_t value = 0;
    const char* const end = word.data() + word.size();
    const auto [read_to, error] = std::from_chars(word.data(), end, value);
    if (kind.truth && (word == "true" || word == "false")) return Value{word == "true"};
    if (kind.topics && word.starts_with('{')) return Value::parse(word).value_or(Value{});
    return kind.number && error == std::errc{} && read_to == end ? Value{value} : Value{word};
  };
  if (!kind.list) return one(words.back());
  Value::Array elements;
  for (const std::string& word : words) elements.push_back(one(word));
  return elements;
}

std::string flag_of(const OptionRow& row) {
  std::string flag = "--" + std::string{row.name};
  std::ranges::replace(flag, '_', '-');
  std::ranges::replace(flag, '.', '-');
  return flag;
}

bool is_group(std::string_view name, bool (*is_option)(const OptionRow&)) {
  const std::string prefix = std::string{name} + '.';
  return std::ranges::any_of(option_rows(),
                             [&](const OptionRow& row) { return is_option(row) && row.name.starts_with(prefix); });
}

bool is_truth_flag(std::string_view flag) {
  return std::ranges::any_of(option_rows(),
                             [&](const OptionRow& row) { return flag == flag_of(row) && kind_of(row).truth; });
}

std::string unknown_option(std::string_view name, bool (*is_option)(const OptionRow&)) {
  std::string text = "there is no option " + printable(name.substr(0, kComparedBytesMax));
  if (name.size() > kComparedBytesMax) return text + "...";
  std::vector<std::string_view> names;
  std::string_view below;  // the name without its group is that
  for (const OptionRow& row : option_rows()) {
    if (!is_option(row)) continue;
    names.push_back(row.name);
    if (row.name.ends_with('.' + std::string{name})) below = row.name;
  }
  const std::string_view nearest = !below.empty() ? below : nearest_of(name, names);
  if (!nearest.empty()) text.append("; did you mean ").append(nearest).append("?");
  return text;
}

}  // namespace wirecall::net
