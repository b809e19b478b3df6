// See tap.hpp.
#include "cli/commands/tap.hpp"

#include <cstdint>
#include <fmt/core.h>
#include <map>
#include <stdexcept>
#include <utility>

#include "base/dotted_name.hpp"
#include "base/printable.hpp"
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

class TapCommand final : public Command {
 public:
  explicit TapCommand(CLI::App& parent);

 private:
  int run() override;

  std::string pattern_ = ">";
  std::uint64_t count_ = 0;
  bool json_ = false;
};

TapCommand::TapCommand(CLI::App& parent)
    : Command(parent,
              {.name = "tap",
               .does = "Print calls, their outcomes and events of a broker as they pass",
               .usage = "[PATTERN]",
               .footer = "Each is a line. A call and its reply have the same number; who has no name is -, and what "
                         "the\nbroker's own process serves is asked of \"broker\". Only an admin is shown them. It "
                         "connects again\nby itself; what passes meanwhile is missed.\n\n"
                         "Examples:\n"
                         "  wirecall tap\n"
                         "  wirecall tap 'gpu.*' --json\n\n"}) {
  app()
      .add_option("PATTERN", pattern_,
                  "Methods and topics: words between dots; * stands for any word, > at the end for all further ones. "
                  "All when left out, but for the broker's own events: rpc.>")
      ->type_name("");
  app()
      .add_option("--count", count_, "End after so many lines")
      ->type_name("N")
      ->check(whole_number("count", 1, kCountMax));
  app().add_flag("--json", json_, "Print each as JSON, as the broker sends it");
  add_target_flags("How long to wait in all, to connect and until it is shown, as 200ms or 1.5s");
}

int TapCommand::run() {
  if (!is_pattern(pattern_)) {
    throw UsageError{fmt::format(
        "{} is no pattern: words between dots, any of which may be * and the last one >, without white space",
        pattern_)};
  }
  try {
    LongRunning command{target()};
    std::uint64_t printed = 0;
    command.client().on_lagged([](std::string_view, std::uint64_t dropped) {
      print_error(fmt::format("{} lines are missing: they are not read as fast as they come", dropped));
    });
    const Subscription tap = command.client().tap(pattern_, [&](const Event& event) {
      if (count_ != 0 && printed == count_) return;
      const std::string line = json_ ? to_json(Raw{event.params_json}) : tap_line(event.params_json);
      if (const int status = print(line + '\n'); status != kSuccess) return command.end(status);
      if (++printed == count_) command.end(kSuccess);
    });
    return command.stay("shows what passes under " + pattern_);
  } catch (const std::logic_error& error) {
    throw UsageError{error.what()};
  }
}

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

std::unique_ptr<Command> tap_command(CLI::App& parent) { return std::make_unique<TapCommand>(parent); }

}  // namespace wirecall::cli
