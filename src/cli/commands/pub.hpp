// `wirecall pub`: publishes one event.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace wirecall::cli {

[[nodiscard]] std::unique_ptr<Command> pub_command(CLI::App& parent);

}  // namespace wirecall::cli
