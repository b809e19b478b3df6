// `wirecall reply`: provides a method that answers by a template.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace wirecall::cli {

[[nodiscard]] std::unique_ptr<Command> reply_command(CLI::App& parent);

}  // namespace wirecall::cli
