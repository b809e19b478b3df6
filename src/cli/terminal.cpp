// See terminal.hpp.
#include "cli/terminal.hpp"

#include <cstdio>
#include <cstdlib>
#include <fmt/core.h>
#include <unistd.h>

#include "base/printable.hpp"

namespace wirecall::cli {

namespace {

bool colour() {
  static const bool wanted = on_terminal() && std::getenv("NO_COLOR") == nullptr;
  return wanted;
}

std::string styled(std::string_view code, std::string_view text) {
  return colour() ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string{text};
}

}  // namespace

bool on_terminal() { return isatty(STDERR_FILENO) == 1; }

std::string bold(std::string_view text) { return styled("1", text); }
std::string dim(std::string_view text) { return styled("2", text); }

void complain(std::string_view text) { fmt::print(stderr, "{}: {}\n", bold("wirecall"), printable(text)); }

}  // namespace wirecall::cli
