// `wirecall stats`: the numbers that a broker has counted.
#include <fmt/core.h>

#include "cli/commands/commands.hpp"
#include "cli/files.hpp"
#include "cli/view/broker_stats.hpp"
#include "cli/view/table.hpp"

namespace wirecall::cli {
namespace {

// Kinds of errors that there were none of are left out.
std::string tables(const BrokerStats& stats) {
  std::string text = fmt::format("up {}\n\n", duration_text(stats.uptime));
  Table counters{{"COUNTER", ">VALUE"}};
  for (const auto& [name, value] : stats.counters) {
    if (value != 0 || !is_error_counter(name)) counters.add({name, count_text(value)});
  }
  text += counters.text();
  Table methods{
      {"METHOD", ">CALLS", ">ERRORS", ">PROVIDERS", ">IN FLIGHT", ">WAITING", ">P50", ">P90", ">P99", ">MAX"}};
  for (const MethodStats& method : stats.methods) {
    methods.add({method.name, count_text(method.calls), count_text(method.errors), count_text(method.providers),
                 count_text(method.in_flight), count_text(method.waiting), latency_text(method.p50_us, method),
                 latency_text(method.p90_us, method), latency_text(method.p99_us, method),
                 latency_text(method.max_us, method)});
  }
  return methods.empty() ? text : text + '\n' + methods.text();
}

class StatsCommand final : public Command {
 public:
  explicit StatsCommand(CLI::App& parent)
      : Command(parent, {.name = "stats",
                         .does = "Print the numbers that a broker has counted",
                         .footer = "Of each method that a client provides: its calls since it has been provided, and "
                                   "how long its\nproviders took, the time in the queue included. wirecall top shows "
                                   "them as they change.\n\n"
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

std::unique_ptr<Command> stats_command(CLI::App& parent) { return std::make_unique<StatsCommand>(parent); }

}  // namespace wirecall::cli
