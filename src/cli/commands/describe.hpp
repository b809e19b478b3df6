// `wirecall describe`: what a method is called with and returns.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace wirecall::cli {

[[nodiscard]] std::unique_ptr<Command> describe_command(CLI::App& parent);

}  // namespace wirecall::cli
