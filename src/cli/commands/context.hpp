// `wirecall context`: gives servers names, and says which one is meant.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace wirecall::cli {

[[nodiscard]] std::unique_ptr<Command> context_command(CLI::App& parent);

}  // namespace wirecall::cli
