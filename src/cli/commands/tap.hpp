// `wirecall tap`: prints what a broker shows an admin: calls, their outcomes and events as they pass.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "cli/command.hpp"

namespace wirecall::cli {

[[nodiscard]] std::unique_ptr<Command> tap_command(CLI::App& parent);

/// A line for people, without its newline, of the params of a rpc.tap.
[[nodiscard]] std::string tap_line(std::string_view params_json);

}  // namespace wirecall::cli
