// `wirecall top`: a live view of what a broker does, on a terminal.
#include <algorithm>

#include "cli/commands/commands.hpp"
#include "cli/terminal.hpp"
#include "cli/view/broker_stats.hpp"
#include "cli/view/screen.hpp"
#include "cli/view/top_view.hpp"

namespace wirecall::cli {
namespace {

constexpr std::string_view kMethod = "rpc.stats";

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class TopCommand final : public Command {
 public:
  explicit TopCommand(CLI::App& parent)
      : Command(parent,
                {.name = "top",
                 .does = "Show the calls and methods of a broker live",
                 .footer = "Rates are of the last interval; latencies are since the first registration of a method. "
                           "q or\nCtrl-C quits.\n\n"
                           "Examples:\n"
                           "  wirecall top\n"
                           "  wirecall top --interval 250ms --url tcp://127.0.0.1:9000\n\n"}) {
    add_duration("--interval", interval_, "Time between two updates (default: 1s)");
    add_target_flags("Timeout for connecting, and for each answer, as 200ms or 1.5s (default: 1s)");
  }

 private:
  int run() override;
  [[nodiscard]] int show(RawClient& caller, const StopAtSignal& signal, BrokerSamples& observed,
                         std::optional<Error>& refusal);

  Duration interval_{1000};
  milliseconds timeout_{1000};
};

void take(BrokerSamples& observed, std::string_view answer) {
  observed.before = std::exchange(observed.now, BrokerStats::parse(answer));
  // Of a broker that was started anew nothing is known before.
  if (observed.before.uptime > observed.now.uptime) observed.before = observed.now;
  observed.trouble.clear();
}

/// Asks once more. An answer that is an error is the end; what is no answer may be one the next time.
std::optional<Error> observe(detail::OutgoingCall call, BrokerSamples& observed) {
  call.keep_response();
  detail::Answer answer = call.wait();
  if (answer.ok()) {
    take(observed, answer.result());
  } else if (call.response().empty()) {
    observed.trouble = answer.error().message();
  } else {
    return answer.error();
  }
  return {};
}

// Until the end, or what cannot be shown: then `refusal` says why.
int TopCommand::show(RawClient& caller, const StopAtSignal& signal, BrokerSamples& observed,
                     std::optional<Error>& refusal) {
  const Screen screen;
  const std::stop_callback wake{signal.token(), [&screen] { screen.wake(); }};
  const auto ask = [&] {
    detail::OutgoingCall call = caller.call(kMethod, {}, signal.token());
    call.set_timeout(timeout_);
    return call;
  };
  for (;;) {
    const auto due = steady_clock::now() + *interval_;
    Screen::Event event = Screen::Event::woken;
    do {
      if (event == Screen::Event::woken && !screen.draw(top_lines(observed, screen.size()))) return kRpcError;
      const auto left = std::chrono::ceil<milliseconds>(due - steady_clock::now());
      char key = 0;
      event = screen.wait(std::max(left, milliseconds{0}), key);
      if (signal.came()) return signal.status();
      const bool quits = event == Screen::Event::key && (key == 'q' || key == 'Q');
      if (quits || event == Screen::Event::closed) return kSuccess;
    } while (event != Screen::Event::time_up);
    refusal = observe(ask(), observed);
    if (signal.came()) return signal.status();
    if (refusal) return exit_of_answer(*refusal);
  }
}

int TopCommand::run() {
  if (!Screen::possible()) {
    throw UsageError{"top needs a terminal as stdout; wirecall stats prints the numbers once"};
  }
  const Target where = target();
  timeout_ = where.timeout.value_or(timeout_);
  return with_server(where, [this](RawClient& caller, TimeLeft) -> int {
    const StopAtSignal signal;
    detail::OutgoingCall call = caller.call(kMethod, {}, signal.token());
    call.set_timeout(timeout_);
    const auto first = result_of(caller, kMethod, std::move(call), signal);
    if (!first) return first.error();
    BrokerSamples observed;
    observed.url = caller.url();
    take(observed, *first);
    observed.before = observed.now;
    std::optional<Error> refusal;
    const int status = show(caller, signal, observed, refusal);
    if (refusal) print_error(explained(caller, kMethod, *refusal));
    return status;
  });
}

}  // namespace

std::unique_ptr<Command> top_command(CLI::App& parent) { return std::make_unique<TopCommand>(parent); }

}  // namespace wirecall::cli
