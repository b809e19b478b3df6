// `wirecall call` and `wirecall notify`: one message, and what comes back on stdout.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace wirecall::cli {

[[nodiscard]] std::unique_ptr<Command> call_command(CLI::App& parent);
[[nodiscard]] std::unique_ptr<Command> notify_command(CLI::App& parent);

}  // namespace wirecall::cli
