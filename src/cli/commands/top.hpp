// `wirecall top`: a live view of what a broker does, on a terminal.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace wirecall::cli {

[[nodiscard]] std::unique_ptr<Command> top_command(CLI::App& parent);

}  // namespace wirecall::cli
