// `wirecall bench`: loads a server with calls of one method and prints how many it answered and how long they took.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace wirecall::cli {

[[nodiscard]] std::unique_ptr<Command> bench_command(CLI::App& parent);

}  // namespace wirecall::cli
