// What the parser knows of every command, as values: names, flags and the texts of their help. Completions and the
// manual page are made of these, so they name what the command takes. Pure; any thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace wirecall::cli {

struct FlagText {
  std::vector<std::string> names;  ///< with their dashes, short ones first
  std::string value;               ///< what stands for its value, as "URI"; empty where it takes none
  std::string does;
  std::vector<std::string> values;  ///< of which it takes one, where these are known
};

struct CommandText {
  std::string name;
  std::string does;
  std::string usage;   ///< "wirecall call METHOD [ARG]... [OPTIONS]"
  std::string footer;  ///< of its help
  std::vector<FlagText> flags;
  std::vector<std::string> choices;  ///< that may stand behind its name, where these are known
  std::string file_suffix = {};      ///< of the files that may stand there, as ".py"; empty for any
};

/// `wirecall` itself comes first, its choices being the names of the commands that follow.
[[nodiscard]] std::vector<CommandText> command_texts(const CLI::App& app);

}  // namespace wirecall::cli
