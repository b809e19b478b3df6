// `wirecall completion SHELL`: a script by which that shell completes the command's words. Made of the flags that the
// parser has.
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <map>

#include "cli/commands/commands.hpp"
#include "cli/files.hpp"

namespace wirecall::cli {

static std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string result;
  for (const char c : text) {
    if (what.find(c) != std::string_view::npos) {
      result.append(by);
      if (by.ends_with('\\')) result += c;
    } else {
      result += c;
    }
  }
  return result;
}

// Within single quotes, where a quote ends them: a typographic one stands for it.
static std::string in_quotes(std::string_view text) { return "'" + replaced(text, "'", "\u2019") + "'"; }

/// What a flag does, as far as it is shown beside it.
static std::string first_of(const std::string& does) { return does.substr(0, does.find_first_of(";:\n")); }

static std::vector<std::string> words_and_flags(const CommandText& command) {
  std::vector<std::string> all = command.choices;
  for (const FlagText& flag : command.flags) all.insert(all.end(), flag.names.begin(), flag.names.end());
  return all;
}

/// Whether the flag may stand alone, and means true then.
static bool is_truth(const FlagText& flag) { return flag.values == std::vector<std::string>{"true", "false"}; }

static std::vector<std::string> flags_with_value(const CommandText& command) {
  std::vector<std::string> names;
  for (const FlagText& flag : command.flags) {
    if (!flag.value.empty() && !is_truth(flag)) names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  return names;
}

/// Which commands' flags take which words: "call --encoding" and "notify --encoding" of "json msgpack cbor protobuf".
static std::map<std::string, std::vector<std::string>> flags_by_values(std::span<const CommandText> commands) {
  std::map<std::string, std::vector<std::string>> flags;
  for (const CommandText& command : commands) {
    for (const FlagText& flag : command.flags) {
      if (flag.values.empty()) continue;
      for (const std::string& name : flag.names)
        flags[fmt::format("{}", fmt::join(flag.values, " "))].push_back(command.name + ' ' + name);
    }
  }
  return flags;
}

// Where the script offers nothing, bash offers files: for the value of a flag, and for ARGs. It takes --flag=value for
// three words.
std::string bash_completion(std::span<const CommandText> commands) {
  std::string text =
      "# bash completion of wirecall, made by: wirecall completion bash\n"
      "_wirecall() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= values= words= suffix=\n"
      "  [ \"$cur\" = = ] && cur=\n"
      "  [ \"$prev\" = = ] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
      "  [ \"$COMP_CWORD\" -gt 1 ] && command=${COMP_WORDS[1]}\n"
      "  case $command in\n";
  for (const CommandText& command : commands) {
    const bool itself = &command == &commands.front();
    const std::string suffix = command.file_suffix.empty() ? "" : "\n      suffix=" + command.file_suffix;
    text += fmt::format("    {})\n      values=' {} '\n      words='{}'{} ;;\n", itself ? "''" : command.name,
                        fmt::join(flags_with_value(command), " "), fmt::join(words_and_flags(command), " "), suffix);
  }
  text +=
      "  esac\n"
      "  local choices=\n"
      "  case \"$command $prev\" in\n";
  for (const auto& [values, flags] : flags_by_values(commands))
    text += fmt::format("    '{}')\n      choices='{}' ;;\n", fmt::join(flags, "'|'"), values);
  text +=
      "  esac\n"
      "  COMPREPLY=()\n"
      "  case $values in *\" $prev \"*) words=$choices choices= ; [ -z \"$words\" ] && return ; suffix= ;; esac\n"
      "  COMPREPLY=($(compgen -W \"$choices $words\" -- \"$cur\"))\n"
      "  [ -n \"$suffix\" ] && COMPREPLY+=($(compgen -f -X \"!*$suffix\" -- \"$cur\"))\n"
      "  return 0\n"
      "}\n"
      "complete -o default -F _wirecall wirecall\n";
  return text;
}

std::string zsh_completion(std::span<const CommandText> commands) {
  std::string text =
      "#compdef wirecall\n"
      "# zsh completion of wirecall, made by: wirecall completion zsh\n"
      "_wirecall() {\n"
      "  local -a commands\n"
      "  commands=(\n";
  for (const CommandText& command : commands.subspan(1))
    text += fmt::format("    {}\n", in_quotes(command.name + ":" + replaced(command.does, ":", "\\")));
  text +=
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe -t commands command commands\n";
  for (const FlagText& flag : commands.front().flags)
    text += fmt::format("    compadd -- {}\n", fmt::join(flag.names, " "));
  text +=
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $command in\n";
  for (const CommandText& command : commands.subspan(1)) {
    text += fmt::format("    {})\n      _arguments", command.name);
    for (const FlagText& flag : command.flags) {
      for (const std::string& name : flag.names) {
        const std::string does = replaced(first_of(flag.does), "[]:\\", "\\");
        std::string value = flag.value.empty() ? "" : ":" + replaced(flag.value, ":[]\\", "\\") + ":_files";
        if (!flag.values.empty())
          value = fmt::format("{}:{}:({})", is_truth(flag) ? ":" : "", flag.value, fmt::join(flag.values, " "));
        text += fmt::format(" \\\n        {}", in_quotes("*" + name + "[" + does + "]" + value));
      }
    }
    if (!command.choices.empty()) text += fmt::format(" \\\n        '1: :({})'", fmt::join(command.choices, " "));
    const std::string files = command.file_suffix.empty() ? "_files" : "_files -g \"*" + command.file_suffix + '"';
    text += fmt::format(" \\\n        '*: :{}' ;;\n", files);
  }
  text +=
      "  esac\n"
      "}\n"
      "if [ \"$funcstack[1]\" = _wirecall ]; then _wirecall \"$@\"; else compdef _wirecall wirecall; fi\n";
  return text;
}

std::string fish_completion(std::span<const CommandText> commands) {
  std::string text = "# fish completion of wirecall, made by: wirecall completion fish\n";
  const auto add = [&](const std::string& when, std::string_view what, const std::string& does) {
    text += fmt::format("complete -c wirecall -n {}{} -d {}\n", in_quotes(when), what, in_quotes(does));
  };
  for (const CommandText& command : commands) {
    const bool itself = &command == &commands.front();
    const std::string when = itself ? "__fish_use_subcommand" : "__fish_seen_subcommand_from " + command.name;
    if (!itself) add("__fish_use_subcommand", " -f -a " + command.name, command.does);
    if (!itself && !command.choices.empty())
      text += fmt::format("complete -c wirecall -n {} -f -a {}\n", in_quotes(when),
                          in_quotes(fmt::format("{}", fmt::join(command.choices, " "))));
    if (!command.file_suffix.empty())
      text += fmt::format("complete -c wirecall -n {} -k -a '(__fish_complete_suffix {})'\n", in_quotes(when),
                          command.file_suffix);
    for (const FlagText& flag : command.flags) {
      std::string what;
      for (const std::string& name : flag.names)
        what += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!flag.value.empty() && !is_truth(flag)) what += " -r";
      if (!flag.values.empty()) what += fmt::format(" -f -a '{}'", fmt::join(flag.values, " "));
      add(when, what, first_of(flag.does));
    }
  }
  return text;
}

namespace {

class CompletionCommand final : public Command {
 public:
  explicit CompletionCommand(CLI::App& parent)
      : Command(parent, {.name = "completion",
                         .does = "Print a completion script for a shell",
                         .usage = "bash | zsh | fish",
                         .footer = "Examples:\n"
                                   "  source <(wirecall completion bash)\n"
                                   "  wirecall completion zsh > \"${fpath[1]}/_wirecall\"\n"
                                   "  wirecall completion fish > ~/.config/fish/completions/wirecall.fish\n\n",
                         .args = Positionals::arguments}) {}

 private:
  int run() override {
    if (args().size() > 1) refuse_unexpected(app(), {args()[1]});
    const std::vector<CommandText> commands = command_texts(*app().get_parent());
    const std::string shell = args().empty() ? "" : args()[0];
    if (shell == "bash") return print(bash_completion(commands));
    if (shell == "zsh") return print(zsh_completion(commands));
    if (shell == "fish") return print(fish_completion(commands));
    throw UsageError{"for which shell? Say bash, zsh or fish"};
  }
};

}  // namespace

std::unique_ptr<Command> completion_command(CLI::App& parent) { return std::make_unique<CompletionCommand>(parent); }

}  // namespace wirecall::cli
