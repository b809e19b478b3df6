// `wirecall pub`: publishes one event.
#include <condition_variable>
#include <fmt/core.h>
#include <mutex>

#include "cli/arguments.hpp"
#include "cli/commands/commands.hpp"
#include "cli/files.hpp"
#include "cli/terminal.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Who was started together with this, to subscribe, may take so long to do it.
constexpr milliseconds kWait{250};
constexpr milliseconds kPause{10};

/// False when there is a reason to stop before.
bool pause(std::stop_token stop) {
  std::mutex mutex;
  std::unique_lock lock{mutex};
  std::condition_variable_any never;
  never.wait_for(lock, stop, kPause, [] { return false; });
  return !stop.stop_requested();
}

class PubCommand final : public Command {
 public:
  explicit PubCommand(CLI::App& parent);

 private:
  int run() override;
  [[nodiscard]] std::string publication() const;
  [[nodiscard]] int publish(RawClient& caller, const std::string& params, TimeLeft left, milliseconds wait) const;

  std::string topic_;
  bool retain_ = false;
  bool durable_ = false;
  std::string msg_id_;
  Duration wait_;
};

PubCommand::PubCommand(CLI::App& parent)
    : Command(parent, {.name = "pub",
                       .does = "Publish an event to those who subscribe to its topic",
                       .usage = "TOPIC [ARG | name=value | name:type=value | name=@file]...",
                       .footer = std::string{kArgumentsHelp} +
                                 "One ARG alone is the value, several are an array, named ones an object.\n\n"
                                 "Examples:\n"
                                 "  wirecall pub sensors.roof.temp 21.5\n"
                                 "  wirecall pub door.front state=open by=Ada\n"
                                 "  wirecall pub news 'all is well' --retain\n"
                                 "  wirecall pub news --retain               forgets what is retained\n"
                                 "  wirecall pub orders.new '{\"id\": 1}' --durable --msg-id order-1\n\n",
                       .args = Positionals::arguments}) {
  add_argument("TOPIC", topic_, "Words between dots");
  app().add_flag("--retain", retain_, "The broker keeps the value for clients that subscribe later with --last");
  app().add_flag("--durable", durable_,
                 "Return once the broker's durable store has the event safely, and print its seq (docs/durable.md)");
  add_value("--msg-id", msg_id_, "TEXT", "With --durable: an event of the same topic and id is kept once");
  add_duration("--wait", wait_,
               "How long to retry while nobody subscribes to the topic; 0 for never (default: 250ms, with --retain and "
               "--durable 0)");
  add_target_flags();
}

// The params of rpc.publish.
std::string PubCommand::publication() const {
  const std::string event = require(params_of_event(args(), read_file));
  std::string params = "{\"topic\":" + to_json(topic_);
  if (!event.empty()) params += ",\"params\":" + event;
  if (retain_) params += ",\"retain\":true";
  if (durable_) params += ",\"durable\":true";
  if (!msg_id_.empty()) params += ",\"msg_id\":" + to_json(msg_id_);
  return params + "}";
}

int PubCommand::run() {
  const std::string params = publication();
  const Target server = target();
  if (!msg_id_.empty() && !durable_) throw UsageError{"--msg-id is for events that are kept: say --durable as well"};
  const milliseconds wait = wait_.value_or(retain_ || durable_ ? milliseconds{0} : kWait);
  return with_server(server, [&](RawClient& caller, TimeLeft left) { return publish(caller, params, left, wait); });
}

int PubCommand::publish(RawClient& caller, const std::string& params, TimeLeft left, milliseconds wait) const {
  const StopAtSignal signal;
  const auto until = steady_clock::now() + wait;
  for (;;) {
    constexpr std::string_view kMethod = "rpc.publish";
    detail::OutgoingCall call = caller.call(kMethod, params, signal.token());
    if (left) call.set_timeout(*left);
    const auto reached = result_of(caller, kMethod, std::move(call), signal);
    if (!reached) return reached.error();
    if (durable_) return print(*reached + '\n');
    if (*reached != "0" || retain_) return kSuccess;
    if (steady_clock::now() >= until) break;
    if (!pause(signal.token())) return signal.status();
  }
  print_note(fmt::format("nobody subscribes to {}", topic_));
  return kSuccess;
}

}  // namespace

std::unique_ptr<Command> pub_command(CLI::App& parent) { return std::make_unique<PubCommand>(parent); }

}  // namespace wirecall::cli
