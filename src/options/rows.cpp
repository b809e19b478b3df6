#include "options/rows.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/edit_distance.hpp"
#include "base/printable.hpp"
#include "base/utf8.hpp"
#include "wirecall/error.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::net {
namespace {

using namespace std::string_view_literals;

constexpr std::uint64_t kMsMax = std::numeric_limits<std::uint32_t>::max();

// The words of enumerations, in the order of their enumerators.
constexpr std::array kEngines{"auto"sv, "epoll"sv, "uring"sv};
constexpr std::array kEncodings{"json"sv, "msgpack"sv};
constexpr std::array kLogLevels{"debug"sv, "info"sv, "warning"sv, "error"sv};
constexpr std::array kLogFormats{"human"sv, "json"sv};
// The only values of a number.
constexpr std::array kNotificationStatuses{"200"sv, "202"sv, "204"sv};

template <class T>
OptionSlot slot_of(T& member) {
  if constexpr (std::is_enum_v<T>) {
    static_assert(std::is_same_v<std::underlying_type_t<T>, std::uint8_t>);
    return reinterpret_cast<std::uint8_t*>(&member);
  } else {
    return &member;
  }
}

template <auto Member>
OptionSlot server(Options& options, const OptionRow&) {
  return slot_of(options.*Member);
}
template <auto Member>
OptionSlot client(ClientOptions& options, const OptionRow&) {
  return slot_of(options.*Member);
}

OptionSlot limit_slot(Limits& limits, const OptionRow& row) {
  return std::visit([&](auto member) -> OptionSlot { return &(limits.*member); }, row.limit->member);
}
OptionSlot server_limit(Options& options, const OptionRow& row) { return limit_slot(options.limits, row); }
OptionSlot client_limit(ClientOptions& options, const OptionRow& row) { return limit_slot(options.limits, row); }

std::vector<OptionRow> make_rows() {
  std::vector<OptionRow> rows{
      {.name = "name",
       .doc = "What the server is called, as the title of its OpenRPC document",
       .in_server = server<&Options::name>},
      {.name = "listen",
       .doc = "Where to listen, as URIs; when empty, TCP at host and port",
       .in_server = server<&Options::listen>},
      {.name = "host", .doc = "The address to listen on; 0.0.0.0 for all", .in_server = server<&Options::host>},
      {.name = "port",
       .max = 65535,
       .doc = "The port to listen on; 0 lets the system choose",
       .in_server = server<&Options::port>},
      {.name = "thread_count",
       .unit = "threads",
       .max = 1024,
       .doc = "Threads, each with connections of its own; 0 for one a processor",
       .in_server = server<&Options::thread_count>,
       .alias = "threads"},
      {.name = "cpu_affinity",
       .max = 4095,
       .doc = "Processors that the threads are pinned to, in turn; none when empty",
       .in_server = server<&Options::cpu_affinity>},
      {.name = "engine",
       .words = kEngines,
       .doc = "How to wait for input and output; auto takes io_uring where the kernel allows it",
       .in_server = server<&Options::engine>},
      {.name = "blocking_threads",
       .unit = "threads",
       .max = 1024,
       .doc =
           "Threads for handlers that say they block, made when they are needed; 0 for none: they are called as others",
       .in_server = server<&Options::blocking_threads>},
      {.name = "principals_file",
       .doc = "A JSON file of those who may do something, and what; without one everybody may do everything",
       .in_server = server<&Options::principals_file>},
      {.name = "disclose_callers",
       .doc = "Whether a broker tells providers who calls them, by the member from",
       .in_server = server<&Options::disclose_callers>},
      {.name = "explain_errors",
       .doc = "Whether -32700 and -32600 say why, by data.reason",
       .in_server = server<&Options::explain_errors>},
      {.name = "client_id",
       .doc = "The name by which a client introduces itself with rpc.hello; none when empty",
       .in_client = client<&ClientOptions::client_id>},
      {.name = "token",
       .doc = "What a client shows to a server that asks who it is, of visible ASCII characters; none when empty",
       .in_client = client<&ClientOptions::token>},
      {.name = "wait_ms",
       .unit = "ms",
       .max = kMsMax,
       .doc = "Time for which a call is made again while nobody provides its method; 0 for never",
       .in_client = client<&ClientOptions::wait_ms>},
      {.name = "connect_timeout_ms",
       .unit = "ms",
       .min = 1,
       .max = kMsMax,
       .doc = "Time that an attempt to connect may take",
       .in_client = client<&ClientOptions::connect_timeout_ms>},
      {.name = "connect_attempts",
       .max = 1'000'000,
       .doc = "How often every endpoint is tried before calls that wait for a connection fail; 0 for no limit",
       .in_client = client<&ClientOptions::connect_attempts>},
      {.name = "reconnect_min_ms",
       .unit = "ms",
       .min = 1,
       .max = kMsMax,
       .doc = "Pause after every endpoint has been tried in vain, doubled each time",
       .in_client = client<&ClientOptions::reconnect_min_ms>},
      {.name = "reconnect_max_ms",
       .unit = "ms",
       .min = 1,
       .max = kMsMax,
       .doc = "The longest of these pauses",
       .in_client = client<&ClientOptions::reconnect_max_ms>},
      {.name = "connections",
       .min = 1,
       .max = 1024,
       .doc = "Connections that a client makes at most, a further one when all are busy",
       .in_client = client<&ClientOptions::connections>},
      {.name = "encoding",
       .words = kEncodings,
       .doc = "What a client's messages are written in; msgpack behind their length, or as application/msgpack by HTTP",
       .in_client = client<&ClientOptions::encoding>},
      {.name = "drain_ms",
       .unit = "ms",
       .max = kMsMax,
       .doc = "Time that calls in progress are given to finish when the server stops",
       .in_server = server<&Options::drain_ms>},
      {.name = "takeover_ms",
       .unit = "ms",
       .max = kMsMax,
       .doc = "Time after which another thread takes over the loop of a handler that has not returned; 0 for never",
       .in_server = server<&Options::takeover_ms>},
      {.name = "takeover_threads",
       .min = 1,
       .max = 65'536,
       .doc = "Handlers that may be off one loop at once, each on a thread of its own",
       .in_server = server<&Options::takeover_threads>},
      {.name = "slow_handler_ms",
       .unit = "ms",
       .max = kMsMax,
       .doc = "Time after which a handler that has not come back is named in the log; 0 for never",
       .in_server = server<&Options::slow_handler_ms>},
      {.name = "delimiter",
       .doc = "Ends every reply, and may stand between messages",
       .in_server = server<&Options::delimiter>,
       .in_client = client<&ClientOptions::delimiter>},
      {.name = "http_notification_status",
       .words = kNotificationStatuses,
       .doc = "The status by which HTTP answers a notification",
       .in_server = server<&Options::http_notification_status>},
      {.name = "allow_hosts",
       .doc = "What Host may name in an HTTP request besides loopback and the bound address",
       .in_server = server<&Options::allow_hosts>},
      {.name = "allow_origins",
       .doc = "Origins whose pages may call, as https://example.com",
       .in_server = server<&Options::allow_origins>},
      {.name = "log_level",
       .words = kLogLevels,
       .doc = "The least of what is written to the log",
       .in_server = server<&Options::log_level>,
       .in_client = client<&ClientOptions::log_level>,
       .live = true},
      {.name = "log_format",
       .words = kLogFormats,
       .doc = "How the command writes its log: lines for people, or JSON",
       .in_server = server<&Options::log_format>},
      {.name = "log_calls_every",
       .unit = "calls",
       .max = std::numeric_limits<std::uint32_t>::max(),
       .doc = "Of so many answered calls a broker writes one to its log, at level debug; 0 for none",
       .in_server = server<&Options::log_calls_every>},
      {.name = "log_calls",
       .doc = "Whether each call is written to the log when it is answered, at level info",
       .in_server = server<&Options::log_calls>},
      {.name = "kick_ms",
       .unit = "ms",
       .max = std::numeric_limits<std::uint32_t>::max(),
       .doc = "Time for which a broker does not let in again whom rpc.kick has ended; 0 for not at all",
       .in_server = server<&Options::kick_ms>},
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
      rows.back().in_client = client<&ClientOptions::call_timeout_ms>;
      OptionRow own = rows.back();
      own.name = "limits.call_timeout_ms";
      own.doc = "Time that a call to a method of the client's may take, and the most that its timeout_ms may ask for";
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

bool read(const OptionRow& row, const Value& value, std::string& out) {
  static_cast<void>(row);
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

bool read(const OptionRow& row, const Value& value, bool& out) {
  static_cast<void>(row);
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
  if (!kind.number) return kind.list ? "a list of texts" : "a text";
  return kind.list ? "a list of numbers from " + std::to_string(row.min) + " to " + std::to_string(row.max)
                   : number_range(row.min, row.max, row.unit);
}

std::string json_of(const OptionRow& row, const OptionSlot& slot) {
  return std::visit(
      [&](const auto* value) {
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
  return std::ranges::any_of(option_rows(), [&](const OptionRow& row) {
    if (flag != flag_of(row)) return false;
    Options server;
    ClientOptions client;
    const OptionSlot slot = row.in_server != nullptr ? row.in_server(server, row) : row.in_client(client, row);
    return std::holds_alternative<bool*>(slot);
  });
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
