// `wirecall man`: the manual page of the command, and `wirecall help`. Made of the texts that --help prints.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "cli/command.hpp"
#include "cli/command_texts.hpp"

namespace wirecall::cli {

/// As man(7) wants it.
[[nodiscard]] std::string manual_page(std::span<const CommandText> commands, std::string_view version);

std::unique_ptr<Command> man_command(CLI::App& parent);
std::unique_ptr<Command> help_command(CLI::App& parent);

}  // namespace wirecall::cli
