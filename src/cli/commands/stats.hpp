// `wirecall stats`: the numbers that a broker has counted.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace wirecall::cli {

[[nodiscard]] std::unique_ptr<Command> stats_command(CLI::App& parent);

}  // namespace wirecall::cli
