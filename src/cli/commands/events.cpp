// `wirecall sub` and `wirecall tap`: a line for each event that comes, or for each call that passes.
#include <fmt/core.h>
#include <map>

#include "base/dotted_name.hpp"
#include "base/printable.hpp"
#include "cli/commands/commands.hpp"
#include "cli/files.hpp"
#include "cli/long_running.hpp"
#include "cli/terminal.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/subscription.hpp"
#include "wirecall/value.hpp"

namespace wirecall::cli {
namespace {

/// Prints what comes under a pattern, until so much has come or a signal.
class EventsCommand : public Command {
 protected:
  using Command::Command;

  /// `things`: what it prints.
  void add_event_flags(const std::string& things, const std::string& json_help, const std::string& timeout_help) {
    add_count("--count", count_, "Exit after N " + things);
    app().add_flag("--json", json_, json_help);
    add_target_flags(timeout_help);
  }
  /// `name`: of what the pattern is. Begins by `subscribe`, and prints a line for each event.
  [[nodiscard]] int print_events(std::string_view name, const std::string& what, LaggedFunction lagged,
                                 const std::function<Subscription(Client&, EventFunction)>& subscribe);

  std::string pattern_;
  bool json_ = false;

 private:
  [[nodiscard]] virtual std::string line_of(const Event& event) const = 0;
  /// An event has not been printed, and will not be.
  virtual void not_printed() const {}

  std::uint64_t count_ = 0;
};

int EventsCommand::print_events(std::string_view name, const std::string& what, LaggedFunction lagged,
                                const std::function<Subscription(Client&, EventFunction)>& subscribe) {
  require_pattern(pattern_, name);
  LongRunning command{target()};
  std::uint64_t printed = 0;
  command.client().on_lagged(std::move(lagged));
  const Subscription subscription = subscribe(command.client(), [&](const Event& event) {
    if (count_ != 0 && printed == count_) return not_printed();
    if (const int status = print(line_of(event) + '\n'); status != kSuccess) {
      command.end(status);
      return not_printed();
    }
    if (++printed == count_) command.end(kSuccess);
  });
  return command.stay(what + pattern_);
}

class SubCommand final : public EventsCommand {
 public:
  explicit SubCommand(CLI::App& parent)
      : EventsCommand(
            parent,
            {.name = "sub",
             .does = "Print the events of a topic as they come",
             .usage = "TOPIC",
             .footer = "Prints a line for each event: its value as JSON; with wildcards in TOPIC, its topic before the "
                       "value.\n"
                       "A line on stderr says when the subscription has begun. After a lost connection it subscribes "
                       "again;\nevents published meanwhile are lost.\n\n"
                       "Examples:\n"
                       "  wirecall sub 'sensors.*.temp'\n"
                       "  wirecall sub news --last --count 1\n"
                       "  wirecall sub '>' --json\n"
                       "  wirecall sub 'orders.>' --durable billing --start first\n\n"}) {
    add_argument("TOPIC", pattern_, "Words between dots; * stands for any word, > at the end for all further ones");
    add_value("--group", options_.group, "NAME",
              "The name of a group of clients: each event goes to one of its members");
    app().add_flag("--last", options_.last, "Print the retained value of each topic first (wirecall pub --retain)");
    add_value("--durable", options_.durable, "NAME",
              "The name of a consumer: the broker keeps each event for it until it has been printed (docs/durable.md)");
    add_value("--start", options_.start, "WHERE",
              "With --durable, where a new consumer begins: first, new or the seq of an event (default: new)");
    add_duration("--ack-wait", ack_wait_,
                 "With --durable: an event that was not printed in that time is sent again (default: 30s)");
    add_count("--max-deliver", options_.max_deliver,
              "With --durable: so often an event is sent at most; 0 for no limit (default: 5)", 0);
    add_count("--max-in-flight", options_.max_in_flight,
              "With --durable: the most events on their way to all who have joined the consumer (default: 64)");
    add_event_flags("events", R"(Print each event as {"topic":…,"value":…})",
                    "Timeout for connecting and subscribing together, as 200ms or 1.5s");
  }

 private:
  int run() override {
    const auto lagged = [](std::string_view topic, std::uint64_t dropped) {
      print_error(fmt::format("{} events of {} were dropped: they come faster than they are read", dropped, topic));
    };
    const std::string what = options_.durable.empty() ? "subscribed to " : options_.durable + " has joined ";
    return print_events("topic", what, lagged, [this](Client& client, EventFunction print) {
      if (ack_wait_) options_.ack_wait_ms = static_cast<std::uint32_t>(ack_wait_->count());
      return client.subscribe(pattern_, options_, std::move(print));
    });
  }
  // A consumer is given the event again.
  void not_printed() const override {
    if (!options_.durable.empty()) throw Error{ErrorCode::cancelled};
  }
  // The value without the white space that it may have been sent with, lines among it.
  [[nodiscard]] std::string line_of(const Event& event) const override {
    const std::string value = to_json(Raw{event.value_json()});
    if (json_) return fmt::format("{{\"topic\":{},\"value\":{}}}", to_json(event.topic), value);
    return has_wildcard(pattern_) ? fmt::format("{} {}", printable(event.topic), value) : value;
  }

  SubscribeOptions options_;
  Duration ack_wait_;
};

// The members of an object, each as it was sent.
class Shown {
 public:
  explicit Shown(std::string_view params_json) : text_(params_json) {
    const std::unique_ptr<Reader> reader = json_codec().reader();
    reader->reset(text_.padded());
    if (reader->kind() != ValueKind::object || !reader->begin_object()) return;
    for (std::string_view name; reader->next_member(name);) {
      std::string key{name};
      members_.insert_or_assign(std::move(key), reader->skip());
    }
  }

  [[nodiscard]] bool has(const std::string& name) const { return members_.contains(name); }
  /// A value on one line; empty for none.
  [[nodiscard]] std::string json(const std::string& name) const {
    const auto found = members_.find(name);
    return found == members_.end() ? std::string{} : to_json(Raw{found->second});
  }
  /// A string's text; empty for anything else.
  [[nodiscard]] std::string text(const std::string& name) const {
    return printable(from_json<std::string>(json(name)).value_or(std::string{}));
  }

 private:
  Buffer text_;
  std::map<std::string, std::string_view> members_;
};

std::string or_dash(std::string name) { return name.empty() ? "-" : std::move(name); }

// What was sent or answered, behind a space; empty for nothing.
std::string value_of(const Shown& shown, const std::string& name) {
  if (shown.has(name)) return ' ' + shown.json(name);
  if (!shown.has(name + "_begin")) return {};
  return fmt::format(" {}... ({} bytes)", shown.text(name + "_begin"), shown.json("bytes"));
}

class TapCommand final : public EventsCommand {
 public:
  explicit TapCommand(CLI::App& parent)
      : EventsCommand(
            parent,
            {.name = "tap",
             .does = "Print the calls, outcomes and events of a broker as they happen",
             .usage = "[PATTERN]",
             .footer =
                 "Prints a line for each. A call and its reply have the same number. A client without a name is -; "
                 "the\n"
                 "broker's own process is \"broker\". With principals, this needs an admin's token. After a lost\n"
                 "connection it subscribes again; what happens meanwhile is lost.\n\n"
                 "Examples:\n"
                 "  wirecall tap\n"
                 "  wirecall tap 'gpu.*' --json\n\n"}) {
    pattern_ = ">";
    add_value("PATTERN", pattern_, "",
              "Methods and topics: words between dots; * stands for any word, > at the end for all further ones. "
              "Without it all, except the broker's own events, rpc.>");
    add_event_flags("lines", "Print each as JSON, as the broker sends it",
                    "Timeout for connecting and subscribing together, as 200ms or 1.5s");
  }

 private:
  int run() override {
    const auto lagged = [](std::string_view, std::uint64_t dropped) {
      print_error(fmt::format("{} lines were dropped: they come faster than they are read", dropped));
    };
    return print_events("pattern", "tapping ", lagged,
                        [this](Client& client, EventFunction print) { return client.tap(pattern_, std::move(print)); });
  }
  [[nodiscard]] std::string line_of(const Event& event) const override {
    return json_ ? to_json(Raw{event.params_json}) : tap_line(event.params_json);
  }
};

}  // namespace

std::string tap_line(std::string_view params_json) {
  const Shown shown{params_json};
  const std::string kind = shown.text("kind");
  std::string line = kind;
  if (shown.has("id")) line += " #" + shown.json("id");
  line += ' ' + shown.text("method") + ' ' + or_dash(shown.text("client"));
  if (kind == "event") {
    line += fmt::format(" -> {}", shown.json("delivered"));
  } else {
    line += kind == "reply" ? " <- " : " -> ";
    line += shown.has("provider") ? or_dash(shown.text("provider")) : "broker";
  }
  if (shown.has("ms")) line += fmt::format(" {} ms", shown.json("ms"));
  if (shown.has("error") || shown.has("error_begin")) return line + " error" + value_of(shown, "error");
  return line + value_of(shown, kind == "reply" ? "result" : "params");
}

std::unique_ptr<Command> sub_command(CLI::App& parent) { return std::make_unique<SubCommand>(parent); }
std::unique_ptr<Command> tap_command(CLI::App& parent) { return std::make_unique<TapCommand>(parent); }

}  // namespace wirecall::cli
