// `wirecall completion SHELL`: a script by which that shell completes the command's words. Made of the flags that the
// parser has.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <span>
#include <string>

#include "cli/command.hpp"
#include "cli/command_texts.hpp"

namespace wirecall::cli {

[[nodiscard]] std::string bash_completion(std::span<const CommandText> commands);
[[nodiscard]] std::string zsh_completion(std::span<const CommandText> commands);
[[nodiscard]] std::string fish_completion(std::span<const CommandText> commands);

std::unique_ptr<Command> completion_command(CLI::App& parent);

}  // namespace wirecall::cli
