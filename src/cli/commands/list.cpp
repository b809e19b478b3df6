// `wirecall ls`, `wirecall clients` and `wirecall stats`: a broker's methods, clients and counters, as tables.
#include <algorithm>
#include <fmt/core.h>

#include "base/dotted_name.hpp"
#include "cli/commands/commands.hpp"
#include "cli/files.hpp"
#include "cli/terminal.hpp"
#include "cli/view/broker_stats.hpp"
#include "cli/view/members.hpp"
#include "cli/view/table.hpp"
#include "wirecall/value.hpp"

namespace wirecall::cli {
namespace {

std::string count_of(const Value& object, std::string_view name) { return count_text(number_of(object, name)); }

std::chrono::milliseconds ms_of(const Value& object, std::string_view name) {
  return std::chrono::milliseconds{static_cast<std::int64_t>(number_of(object, name))};
}

// A table without rows would look like an answer.
int print_table(const Table& table, const std::string& if_empty) {
  if (!table.empty()) return print(table.text());
  print_note(if_empty);
  return kSuccess;
}

class LsCommand final : public Command {
 public:
  explicit LsCommand(CLI::App& parent)
      : Command(parent,
                {.name = "ls",
                 .does = "List the methods that can be called",
                 .usage = "[PATTERN]",
                 .footer = "IN FLIGHT counts the calls at a provider, WAITING those that wait at the broker for "
                           "one.\n\n"
                           "Examples:\n"
                           "  wirecall ls\n"
                           "  wirecall ls 'gpu.>' --json\n\n"}) {
    add_value("PATTERN", pattern_, "", "Words between dots; * stands for any word, > at the end for all further ones");
    app().add_flag("--json", json_, "Print the array that rpc.methods answers");
    add_target_flags();
  }

 private:
  int run() override {
    if (!pattern_.empty()) require_pattern(pattern_, "pattern");
    return with_result(target(), "rpc.methods", [this](const std::string& result) { return list(result); });
  }

  int list(const std::string& result) const {
    if (json_ && pattern_.empty()) return print(result + '\n');
    Value listed = Value::parse(result).value_or(Value{});
    Value::Array methods = elements_of(&listed);
    std::erase_if(methods, [this](const Value& method) {
      return !pattern_.empty() && !matches(pattern_, text_of(method, "name"));
    });
    if (json_) return print(Value{std::move(methods)}.dump() + '\n');
    Table table{{"METHOD", "POLICY", ">PROVIDERS", ">IN FLIGHT", ">WAITING", "SUMMARY"}};
    for (const Value& method : methods) {
      table.add({text_of(method, "name"), text_of(method, "policy"), count_of(method, "providers"),
                 count_of(method, "in_flight"), count_of(method, "waiting"), text_of(method, "summary")});
    }
    return print_table(table, pattern_.empty() ? "there are no methods" : "there is no method " + pattern_);
  }

  std::string pattern_;
  bool json_ = false;
};

// "websocket", or "websocket TLSv1.3".
std::string protocol_of(const Value& client) {
  const std::string tls = text_of(client, "tls");
  return text_of(client, "protocol") + (tls.empty() ? "" : ' ' + tls);
}

class ClientsCommand final : public Command {
 public:
  explicit ClientsCommand(CLI::App& parent)
      : Command(parent,
                {.name = "clients",
                 .does = "List the clients of a broker",
                 .footer = "Lists the connections that have a name (--client-id), provide or subscribe. IN FLIGHT "
                           "counts the calls\nthat they have made; SILENT is the time since their last byte.\n\n"
                           "Examples:\n"
                           "  wirecall clients\n"
                           "  wirecall clients --json\n\n"}) {
    app().add_flag("--json", json_, "Print the array that rpc.clients answers");
    add_target_flags();
  }

 private:
  int run() override {
    return with_result(target(), "rpc.clients", [this](const std::string& result) { return list(result); });
  }

  int list(const std::string& result) const {
    if (json_) return print(result + '\n');
    const Value listed = Value::parse(result).value_or(Value{});
    Table table{{"CLIENT", ">METHODS", ">SUBSCRIPTIONS", ">IN FLIGHT", ">CONNECTED", ">SILENT", ">RECEIVED", ">SENT",
                 "BY", "FROM"}};
    for (const Value& client : elements_of(&listed)) {
      std::string name = text_of(client, "name");
      table.add({name.empty() ? "-" : std::move(name), count_of(client, "methods"), count_of(client, "subscriptions"),
                 count_of(client, "in_flight"), duration_text(ms_of(client, "connected_ms")),
                 duration_text(ms_of(client, "silent_ms")), bytes_text(number_of(client, "bytes_in")),
                 bytes_text(number_of(client, "bytes_out")), protocol_of(client), text_of(client, "source")});
    }
    return print_table(table, "no client has a name, provides or subscribes");
  }

  bool json_ = false;
};

// Kinds of errors that there were none of are left out.
std::string tables(const BrokerStats& stats) {
  std::string text = fmt::format("up {}\n\n", duration_text(stats.uptime));
  Table counters{{"COUNTER", ">VALUE"}};
  for (const auto& [name, value] : stats.counters) {
    if (value != 0 || !is_error_counter(name)) counters.add({name, count_text(value)});
  }
  text += counters.text();
  const bool any_batched = any_is_batched(stats.methods);
  std::vector<std::string> columns{"METHOD",   ">CALLS", ">ERRORS", ">PROVIDERS", ">IN FLIGHT",
                                   ">WAITING", ">P50",   ">P90",    ">P99",       ">MAX"};
  if (any_batched) columns.emplace_back(">CALLS/BATCH");
  Table methods{std::move(columns)};
  for (const MethodStats& method : stats.methods) {
    std::vector<std::string> row{method.name,
                                 count_text(method.calls),
                                 count_text(method.errors),
                                 count_text(method.providers),
                                 count_text(method.in_flight),
                                 count_text(method.waiting),
                                 latency_text(method.p50_us, method),
                                 latency_text(method.p90_us, method),
                                 latency_text(method.p99_us, method),
                                 latency_text(method.max_us, method)};
    if (any_batched) row.push_back(calls_in_batch_text(method));
    methods.add(std::move(row));
  }
  return methods.empty() ? text : text + '\n' + methods.text();
}

class StatsCommand final : public Command {
 public:
  explicit StatsCommand(CLI::App& parent)
      : Command(parent,
                {.name = "stats",
                 .does = "Print the counters and latencies of a broker",
                 .footer = "For each method that a client provides: its calls since the first registration, and "
                           "the latency of\nits providers, the time in the queue included. wirecall top shows "
                           "them live.\n\n"
                           "Examples:\n"
                           "  wirecall stats\n"
                           "  wirecall stats --json\n\n"}) {
    app().add_flag("--json", json_, "Print the object that rpc.stats answers");
    add_target_flags();
  }

 private:
  int run() override {
    return with_result(target(), "rpc.stats", [this](const std::string& result) {
      return print(json_ ? result + '\n' : tables(BrokerStats::parse(result)));
    });
  }

  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> ls_command(CLI::App& parent) { return std::make_unique<LsCommand>(parent); }
std::unique_ptr<Command> clients_command(CLI::App& parent) { return std::make_unique<ClientsCommand>(parent); }
std::unique_ptr<Command> stats_command(CLI::App& parent) { return std::make_unique<StatsCommand>(parent); }

}  // namespace wirecall::cli
