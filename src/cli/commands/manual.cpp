// `wirecall man`: the manual page of the command, and `wirecall help`. Made of the texts that --help prints.
#include <algorithm>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "cli/commands/commands.hpp"
#include "cli/files.hpp"

namespace wirecall::cli {

// One line of text; a dot or quote at its begin would be a request to the formatter.
static std::string escaped(std::string_view line) {
  std::string text = line.starts_with('.') || line.starts_with('\'') ? "\\&" : "";
  for (const char c : line) {
    if (c == '\\') {
      text += "\\e";
    } else if (c == '-') {
      text += "\\-";
    } else {
      text += c;
    }
  }
  return text;
}

// Texts of help have their line breaks where they are meant.
static std::string verbatim(std::string_view lines) {
  std::string text = ".nf\n";
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    text += escaped(line) + '\n';
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
  }
  return text + ".fi\n";
}

static std::string flags_text(const CommandText& command) {
  std::string text;
  for (const FlagText& flag : command.flags) {
    std::string names;
    for (const std::string& name : flag.names) {
      if (!names.empty()) names += ", ";
      names += "\\fB" + escaped(name) + "\\fR";
    }
    if (!flag.value.empty()) names += " \\fI" + escaped(flag.value) + "\\fR";
    text += ".TP\n" + names + '\n' + escaped(flag.does) + '\n';
  }
  return text;
}

static std::string footer_without_exit_codes(const CommandText& command) {
  return command.footer.substr(0, command.footer.find(kExitCodes));
}

std::string manual_page(std::span<const CommandText> commands, std::string_view version) {
  std::string text = fmt::format(".TH WIRECALL 1 \"\" \"wirecall {}\" \"User Commands\"\n", version);
  text += ".SH NAME\nwirecall \\- a JSON\\-RPC 2.0 server, client and broker\n.SH SYNOPSIS\n";
  text += ".B wirecall\n.I COMMAND\n.RI [ OPTION ].\\|.\\|.\n.SH OPTIONS\n" + flags_text(commands.front());
  text += ".SH COMMANDS\n";
  for (const CommandText& command : commands.subspan(1)) {
    text += fmt::format(".SS \"{}\"\n{}.\n", escaped(command.usage), escaped(command.does));
    if (const std::string footer = footer_without_exit_codes(command); !footer.empty())
      text += ".PP\n" + verbatim(footer);
    text += flags_text(command);
  }
  text += ".SH EXIT STATUS\n" + verbatim(kExitCodes);
  text +=
      ".SH ENVIRONMENT\n"
      ".TP\n.B WIRECALL_URL\nThe URI of the server, without \\-\\-url and \\-\\-context; several are separated by "
      "commas.\n"
      ".TP\n.B WIRECALL_CONTEXT\nThe context, without any of these.\n"
      ".TP\n.B WIRECALL_TOKEN\nThe token by which the caller authenticates, without \\-\\-token.\n"
      ".TP\n.B NO_COLOR\nIf set, the output has no colours.\n"
      ".SH FILES\n"
      ".TP\n.I $XDG_CONFIG_HOME/wirecall/contexts.json\nThe contexts; ~/.config is used if XDG_CONFIG_HOME is not "
      "set.\n";
  return text;
}

namespace {

class ManCommand final : public Command {
 public:
  explicit ManCommand(CLI::App& parent)
      : Command(parent, {.name = "man",
                         .does = "Print the manual page",
                         .footer = "Example:\n"
                                   "  wirecall man | man -l -\n\n"}) {}

 private:
  int run() override {
    const std::string version = app().get_parent()->version();
    return print(manual_page(command_texts(*app().get_parent()), version.substr(version.rfind(' ') + 1)));
  }
};

class HelpCommand final : public Command {
 public:
  explicit HelpCommand(CLI::App& parent)
      : Command(parent, {.name = "help",
                         .does = "Print the help of one command, or the list of all",
                         .usage = "[COMMAND]",
                         .args = Positionals::arguments}) {}

 private:
  int run() override {
    const CLI::App* const parent = app().get_parent();
    if (args().empty())
      return print(parent->get_formatter()->make_help(parent, "wirecall", CLI::AppFormatMode::Normal));
    if (args().size() > 1) refuse_unexpected(app(), {args()[1]});
    std::vector<std::string> names;
    for (const CLI::App* command : parent->get_subcommands(nullptr)) {
      if (command->get_name() == args()[0]) return print(command->help("wirecall"));
      names.push_back(command->get_name());
    }
    throw UsageError{unknown_command(args()[0], names)};
  }
};

}  // namespace

std::unique_ptr<Command> man_command(CLI::App& parent) { return std::make_unique<ManCommand>(parent); }
std::unique_ptr<Command> help_command(CLI::App& parent) { return std::make_unique<HelpCommand>(parent); }

}  // namespace wirecall::cli
