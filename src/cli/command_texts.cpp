#include "cli/command_texts.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace wirecall::cli {

// Those that the help names: of "a text: one of one, two, hash:PARAM (default: one)" one and two, or of true|false.
static std::vector<std::string> values_of(std::string_view value_name, std::string_view does) {
  if (value_name == "true|false") return {"true", "false"};
  std::vector<std::string> values;
  constexpr std::string_view kBegin = ": one of ";
  const std::size_t begin = does.find(kBegin);
  if (begin == std::string_view::npos) return values;
  does.remove_prefix(begin + kBegin.size());
  for (std::string_view rest = does.substr(0, does.find(" (")); !rest.empty();) {
    const std::string_view value = rest.substr(0, rest.find(", "));
    if (value.find(':') == std::string_view::npos) values.emplace_back(value);
    rest.remove_prefix(std::min(value.size() + 2, rest.size()));
  }
  return values;
}

static std::vector<FlagText> flags_of(const CLI::App& command) {
  std::vector<FlagText> flags;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->nonpositional() || option->get_group().empty()) continue;
    FlagText flag{.names = {}, .value = {}, .does = option->get_description(), .values = {}};
    for (const std::string& name : option->get_snames()) flag.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) flag.names.push_back("--" + name);
    if (option->get_items_expected_max() != 0) {
      const std::string type = option->get_type_name();
      flag.value = type.empty() ? "VALUE" : type;
      flag.values = values_of(flag.value, flag.does);
    }
    flags.push_back(std::move(flag));
  }
  return flags;
}

// The words in small letters that the alternatives of a usage begin with: ls and add of "[ls | add NAME] [OPTIONS]".
static std::vector<std::string> choices_of(std::string_view usage) {
  std::vector<std::string> choices;
  if (usage.find(" | ") == std::string_view::npos) return choices;
  while (!usage.empty()) {
    std::string_view choice = usage.substr(0, usage.find(" | "));
    usage.remove_prefix(std::min(choice.size() + 3, usage.size()));
    if (choice.starts_with('[')) choice.remove_prefix(1);
    const auto is_small = [](unsigned char c) { return std::islower(c) != 0; };
    const auto end = static_cast<std::size_t>(std::ranges::find_if_not(choice, is_small) - choice.begin());
    if (end != 0 && (end == choice.size() || choice[end] == ' ' || choice[end] == ']'))
      choices.emplace_back(choice.substr(0, end));
  }
  return choices;
}

static CommandText text_of(const CLI::App& command, const std::string& name) {
  CommandText text{.name = command.get_name(),
                   .does = command.get_description(),
                   .usage = {},
                   .footer = command.get_footer(),
                   .flags = flags_of(command),
                   .choices = {}};
  const std::string help = command.get_formatter()->make_help(&command, name, CLI::AppFormatMode::Normal);
  constexpr std::string_view kUsage = "Usage: ";
  const std::size_t begin = help.find(kUsage) + kUsage.size();
  text.usage = help.substr(begin, help.find('\n', begin) - begin);
  if (text.usage.find("FILE.py") != std::string::npos) text.file_suffix = ".py";
  return text;
}

std::vector<CommandText> command_texts(const CLI::App& app) {
  std::vector<CommandText> texts{text_of(app, app.get_name())};
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    CommandText text = text_of(*command, app.get_name() + ' ' + command->get_name());
    text.choices =
        choices_of(std::string_view{text.usage}.substr(app.get_name().size() + command->get_name().size() + 2));
    texts.front().choices.push_back(text.name);
    texts.push_back(std::move(text));
  }
  for (CommandText& text : texts) {
    if (text.usage.find("[COMMAND]") != std::string::npos) text.choices = texts.front().choices;
  }
  return texts;
}

}  // namespace wirecall::cli
