// `wirecall ls` and `wirecall clients`: what a broker has, as tables.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace wirecall::cli {

[[nodiscard]] std::unique_ptr<Command> ls_command(CLI::App& parent);
[[nodiscard]] std::unique_ptr<Command> clients_command(CLI::App& parent);

}  // namespace wirecall::cli
