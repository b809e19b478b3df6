// `wirecall cluster`: the brokers of a realm, as one of them knows the others; once, or live.
#include <fmt/core.h>

#include "cli/commands/commands.hpp"
#include "cli/files.hpp"
#include "cli/terminal.hpp"
#include "cli/view/members.hpp"
#include "cli/view/screen.hpp"
#include "cli/view/table.hpp"
#include "wirecall/value.hpp"

namespace wirecall::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::string_view kMethod = "rpc.cluster";
constexpr milliseconds kInterval{1000};

// What rpc.cluster has answered, for people.
std::string shown(std::string_view result) {
  const Value cluster = Value::parse(result).value_or(Value{});
  std::string text = fmt::format("node {} of realm {}, {}\n", text_of(cluster, "node"), text_of(cluster, "realm"),
                                 text_of(cluster, "state"));
  if (const Value* const bus = cluster.find("bus")) {
    text += fmt::format("bus {}, {}", text_of(*bus, "url"), text_of(*bus, "state"));
    if (const std::string failure = text_of(*bus, "failure"); !failure.empty()) text += ": " + failure;
    text += "\n\n";
  }
  Table table{
      {"NODE", "STATE", "EPOCH", ">METHODS", ">LOAD", ">SENT", ">HERE", ">LATENCY", ">SILENT", ">LAGGED", ">LOST"}};
  for (const Value& node : elements_of(cluster.find("nodes"))) {
    const double latency = number_of(node, "latency_us");
    table.add({text_of(node, "node"), text_of(node, "state"), text_of(node, "epoch").substr(8),
               count_text(number_of(node, "methods")), count_text(number_of(node, "load")),
               count_text(number_of(node, "calls_sent")), count_text(number_of(node, "calls_here")),
               latency == 0 ? "-" : time_text(latency * 1000),
               duration_text(milliseconds{static_cast<std::int64_t>(number_of(node, "silent_ms"))}),
               count_text(number_of(node, "events_lost")), count_text(number_of(node, "sessions_lost"))});
  }
  return text + (table.empty() ? "no other node is known\n" : table.text());
}

class ClusterCommand final : public Command {
 public:
  explicit ClusterCommand(CLI::App& parent)
      : Command(parent, {.name = "cluster",
                         .does = "List the brokers that are one with this one",
                         .footer = "LOAD counts the calls in progress at a node, SENT those that this one has sent it, "
                                   "HERE its own that\nare in progress here; LATENCY is from here to there and back. "
                                   "LAGGED counts the events that it could\nnot send here, LOST the sessions that have "
                                   "ended.\n\n"
                                   "Examples:\n"
                                   "  wirecall cluster\n"
                                   "  wirecall cluster --watch\n"
                                   "  wirecall cluster --json\n\n"}) {
    CLI::Option* const json = app().add_flag("--json", json_, "Print the object that rpc.cluster answers");
    app().add_flag("--watch", watch_, "Show them live, each second; q or Ctrl-C quits")->excludes(json);
    add_target_flags();
  }

 private:
  int run() override {
    if (watch_) return watch();
    return with_result(target(), kMethod,
                       [this](const std::string& result) { return print(json_ ? result + '\n' : shown(result)); });
  }

  [[nodiscard]] int watch();
  [[nodiscard]] int show(RawClient& caller, const StopAtSignal& signal, std::string text);

  bool json_ = false;
  bool watch_ = false;
};

// Until the end; what is no answer is shown in place of one.
int ClusterCommand::show(RawClient& caller, const StopAtSignal& signal, std::string text) {
  const Screen screen;
  const std::stop_callback wake{signal.token(), [&screen] { screen.wake(); }};
  for (;;) {
    const auto due = steady_clock::now() + kInterval;
    Screen::Event event = Screen::Event::woken;
    do {
      std::vector<ScreenLine> lines;
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        lines.push_back({.text = text.substr(at, end - at)});
        at = end + 1;
      }
      if (event == Screen::Event::woken && !screen.draw(lines)) return kRpcError;
      const auto left = std::chrono::ceil<milliseconds>(due - steady_clock::now());
      char key = 0;
      event = screen.wait(std::max(left, milliseconds{0}), key);
      if (signal.came()) return signal.status();
      const bool quits = event == Screen::Event::key && (key == 'q' || key == 'Q');
      if (quits || event == Screen::Event::closed) return kSuccess;
    } while (event != Screen::Event::time_up);
    detail::OutgoingCall call = caller.call(kMethod, {}, signal.token());
    call.set_timeout(kInterval);
    detail::Answer answer = call.wait();
    if (signal.came()) return signal.status();
    text = answer.ok() ? shown(answer.result()) : answer.error().message() + '\n';
  }
}

int ClusterCommand::watch() {
  if (!Screen::possible()) throw UsageError{"--watch needs a terminal as stdout; without it they are shown once"};
  const Target where = target();
  return with_server(where, [this](RawClient& caller, TimeLeft) -> int {
    const StopAtSignal signal;
    detail::OutgoingCall call = caller.call(kMethod, {}, signal.token());
    call.set_timeout(kInterval);
    const auto first = result_of(caller, kMethod, std::move(call), signal);
    if (!first) return first.error();
    return show(caller, signal, shown(*first));
  });
}

}  // namespace

std::unique_ptr<Command> cluster_command(CLI::App& parent) { return std::make_unique<ClusterCommand>(parent); }

}  // namespace wirecall::cli
