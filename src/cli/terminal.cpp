// See terminal.hpp.
#include "cli/terminal.hpp"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "base/printable.hpp"

namespace wirecall::cli {

static bool colour() {
  static const bool wanted = on_terminal() && std::getenv("NO_COLOR") == nullptr;
  return wanted;
}

static std::string styled(std::string_view code, std::string_view text) {
  return colour() ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string{text};
}

bool on_terminal() { return isatty(STDERR_FILENO) == 1; }
bool prints_to_terminal() { return isatty(STDOUT_FILENO) == 1; }

std::string bold(std::string_view text) { return styled("1", text); }
std::string dim(std::string_view text) { return styled("2", text); }

void print_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void print_error(std::string_view text) {
  // The library says as well who it is.
  constexpr std::string_view kLibrary = "wirecall: ";
  if (text.starts_with(kLibrary)) text.remove_prefix(kLibrary.size());
  print_stderr(fmt::format("{}: {}\n", bold("wirecall"), printable(text)));
}
void print_note(std::string_view text) { print_error(text); }

void occupy_standard_descriptors() {
  // Opened the wrong way round, so that whoever reads or writes there is told as before.
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace wirecall::cli
