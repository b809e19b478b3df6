// See sub.hpp.
#include "cli/commands/sub.hpp"

#include <cstdint>
#include <fmt/core.h>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/dotted_name.hpp"
#include "base/printable.hpp"
#include "cli/files.hpp"
#include "cli/long_running.hpp"
#include "cli/terminal.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/subscription.hpp"
#include "wirecall/value.hpp"

namespace wirecall::cli {
namespace {

class SubCommand final : public Command {
 public:
  explicit SubCommand(CLI::App& parent);

 private:
  int run() override;
  [[nodiscard]] std::string line_of(const Event& event) const;

  std::string topic_;
  SubscribeOptions options_;
  std::uint64_t count_ = 0;
  bool json_ = false;
};

SubCommand::SubCommand(CLI::App& parent)
    : Command(parent,
              {.name = "sub",
               .does = "Print the events of a topic as they come",
               .usage = "TOPIC",
               .footer = "Each event is a line: its value, as JSON, behind its topic where TOPIC stands for several. "
                         "When\nit is subscribed a line on stderr says so; events from then on come. It connects "
                         "again by itself;\nwhat is published meanwhile is missed.\n\n"
                         "Examples:\n"
                         "  wirecall sub 'sensors.*.temp'\n"
                         "  wirecall sub news --last --count 1\n"
                         "  wirecall sub '>' --json\n\n"}) {
  app()
      .add_option("TOPIC", topic_, "Words between dots; * stands for any word, > at the end for all further ones")
      ->required()
      ->type_name("");
  app()
      .add_option("--group", options_.group, "Of all who subscribe in one group, one is told of each event")
      ->type_name("NAME");
  app().add_flag("--last", options_.last, "First what was published with --retain, the last value of each topic");
  app()
      .add_option("--count", count_, "End after so many events")
      ->type_name("N")
      ->check(whole_number("count", 1, kCountMax));
  app().add_flag("--json", json_, R"(Print each event as {"topic":…,"value":…})");
  add_target_flags("How long to wait in all, to connect and until it is subscribed, as 200ms or 1.5s");
}

// The value without the white space that it may have been sent with, lines among it.
std::string SubCommand::line_of(const Event& event) const {
  const std::string value = to_json(Raw{event.value_json()});
  if (json_) return fmt::format("{{\"topic\":{},\"value\":{}}}\n", to_json(event.topic), value);
  return has_wildcard(topic_) ? fmt::format("{} {}\n", printable(event.topic), value) : value + '\n';
}

int SubCommand::run() {
  if (!is_pattern(topic_)) {
    throw UsageError{fmt::format(
        "{} is no topic: words between dots, any of which may be * and the last one >, without white space", topic_)};
  }
  try {
    LongRunning command{target()};
    std::uint64_t printed = 0;
    command.client().on_lagged([](std::string_view topic, std::uint64_t dropped) {
      print_error(fmt::format("{} events of {} were dropped: they are not read as fast as they come", dropped, topic));
    });
    const Subscription subscription = command.client().subscribe(topic_, options_, [&](const Event& event) {
      if (count_ != 0 && printed == count_) return;
      if (const int status = print(line_of(event)); status != kSuccess) return command.end(status);
      if (++printed == count_) command.end(kSuccess);
    });
    return command.stay("subscribed to " + topic_);
  } catch (const std::logic_error& error) {
    throw UsageError{error.what()};
  }
}

}  // namespace

std::unique_ptr<Command> sub_command(CLI::App& parent) { return std::make_unique<SubCommand>(parent); }

}  // namespace wirecall::cli
