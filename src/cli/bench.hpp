// `wirecall bench`: loads a server with calls of one method and prints how many it answered and how long they took.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/command.hpp"

namespace wirecall::cli {

[[nodiscard]] std::unique_ptr<Command> bench_command(CLI::App& parent);

/// A time for people, with three digits: "812 ns", "12.3 us", "4.56 ms", "1.20 s".
[[nodiscard]] std::string time_text(double ns);

}  // namespace wirecall::cli
