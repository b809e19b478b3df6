// `wirecall sub`: prints the events of a topic as they come.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace wirecall::cli {

[[nodiscard]] std::unique_ptr<Command> sub_command(CLI::App& parent);

}  // namespace wirecall::cli
