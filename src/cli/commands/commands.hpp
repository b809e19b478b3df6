// The subcommands but `serve`: each is made here, and implemented in the file of its name. And what of them is pure,
// for tests.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/command.hpp"
#include "cli/command_texts.hpp"

namespace wirecall::cli {

/// Declares a command's name, flags and help to the parser.
using CommandFactory = std::unique_ptr<Command>(CLI::App& parent);

CommandFactory call_command;        ///< calls a method and prints its result
CommandFactory notify_command;      ///< sends a notification
CommandFactory pub_command;         ///< publishes one event
CommandFactory sub_command;         ///< prints the events of a topic
CommandFactory reply_command;       ///< provides a method that answers by a template
CommandFactory queue_command;       ///< pushes calls that are made later, and tells of them
CommandFactory ls_command;          ///< the methods that can be called
CommandFactory describe_command;    ///< what a method is called with and returns
CommandFactory clients_command;     ///< the clients of a broker
CommandFactory cluster_command;     ///< the brokers that are one with a broker
CommandFactory stats_command;       ///< what a broker has counted
CommandFactory top_command;         ///< a live view of that, on a terminal
CommandFactory tap_command;         ///< what a broker shows an admin: calls, their outcomes and events
CommandFactory bench_command;       ///< loads a server with calls; how many it answered, and how long they took
CommandFactory context_command;     ///< gives servers names
CommandFactory completion_command;  ///< a script by which a shell completes the command's words
CommandFactory man_command;         ///< the manual page
CommandFactory help_command;        ///< the help of a command

/// A line for people, without its newline, of the params of a rpc.tap.
[[nodiscard]] std::string tap_line(std::string_view params_json);
/// The manual page, as man(7) wants it.
[[nodiscard]] std::string manual_page(std::span<const CommandText> commands, std::string_view version);
[[nodiscard]] std::string bash_completion(std::span<const CommandText> commands);
[[nodiscard]] std::string zsh_completion(std::span<const CommandText> commands);
[[nodiscard]] std::string fish_completion(std::span<const CommandText> commands);

}  // namespace wirecall::cli
