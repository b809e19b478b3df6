// What all commands share: how they end, and how they talk to the person at the terminal. Results go to stdout, all
// else to stderr.
#pragma once

#include <string>
#include <string_view>

namespace wirecall::cli {

/// The exit status of the command (docs/cli.md).
enum Exit : int {
  kSuccess = 0,
  kRpcError = 1,       ///< the call was answered with an error
  kUsage = 2,          ///< the command line cannot be carried out
  kCannotConnect = 3,  ///< or cannot listen, or the connection was lost
  kTimeout = 4,
  kInterrupted = 130,  ///< a second signal; of what ends at the first, see Interrupt::status
};

/// Whether a person sees what is written to stderr.
[[nodiscard]] bool on_terminal();
/// Whether a person sees what is written to stdout.
[[nodiscard]] bool prints_to_terminal();

/// Text for stderr that is coloured only where a terminal shows it and NO_COLOR is not set.
[[nodiscard]] std::string bold(std::string_view text);
[[nodiscard]] std::string dim(std::string_view text);

/// Fills those of descriptors 0 to 2 that are closed, or what is opened next would be taken for them.
void occupy_standard_descriptors();
/// The text on stderr; where that cannot be written, nobody is told.
void print_stderr(std::string_view text);
/// "wirecall: <text>" on stderr, on one line that steers no terminal; a cause and a cure.
void print_error(std::string_view text);
/// The same line, for what is no complaint.
void print_note(std::string_view text);

}  // namespace wirecall::cli
