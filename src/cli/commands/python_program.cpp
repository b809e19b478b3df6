// See python_program.hpp.
#include "cli/commands/python_program.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <unistd.h>

#include "cli/command.hpp"
#include "cli/config/config_reloader.hpp"
#include "cli/terminal.hpp"

namespace wirecall::cli {

bool is_python_program(std::span<char* const> args) {
  return !args.empty() && std::string_view{args.front()} == "serve" &&
         std::ranges::any_of(args.subspan(1), [](std::string_view arg) {
           return arg.ends_with(".py") || (arg.find(".py:") != std::string_view::npos && !arg.starts_with('-'));
         });
}

static bool is_name(std::string_view arg) {
  const auto is_letter = [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto continues = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
  return !arg.empty() && is_letter(arg.front()) && std::ranges::all_of(arg, continues);
}

static bool names_module(std::string_view arg) {
  const std::size_t colon = arg.find(':');
  if (colon != std::string_view::npos && !is_name(arg.substr(colon + 1))) return false;
  std::string path;
  for (std::string_view left = arg.substr(0, colon); !left.empty();) {
    const std::string_view name = left.substr(0, left.find('.'));
    if (!is_name(name) || left.ends_with('.')) return false;
    path.append(path.empty() ? "" : "/").append(name);
    left.remove_prefix(std::min(name.size() + 1, left.size()));
  }
  if (colon != std::string_view::npos || path.find('/') != std::string::npos) return !path.empty();
  std::error_code failure;
  return std::filesystem::exists(path + ".py", failure) || std::filesystem::is_directory(path, failure);
}

// What Python runs: the package's own command, if there is a package.
constexpr const char* kProgram = R"(import sys
try:
    from wirecall.__main__ import main
except ModuleNotFoundError as failure:
    if failure.name != "wirecall":
        raise
    print(f"wirecall: {sys.executable} has no package wirecall, which serves Python programs; run the command of an "
          "environment that has it, as .venv/bin/wirecall serve calc.py. To make one in a copy of the project: "
          "python3 -m venv .venv && .venv/bin/pip install ./python", file=sys.stderr)
    sys.exit(2)
sys.exit(main())
)";

static std::string first_argument(const std::vector<std::string>& unexpected) {
  bool is_value = false;
  for (const std::string& arg : unexpected) {
    if (std::exchange(is_value, arg == "--workers") || arg.starts_with('-')) continue;
    return arg;
  }
  return {};
}

bool asks_for_module(const std::vector<std::string>& unexpected) { return names_module(first_argument(unexpected)); }

std::string missing_module(const std::vector<std::string>& unexpected) {
  // What is wrong with a flag goes first.
  const auto is_unknown = [](std::string_view arg) { return arg.starts_with('-') && !arg.starts_with("--workers"); };
  if (std::ranges::any_of(unexpected, is_unknown)) return {};
  std::string arg = first_argument(unexpected);
  return is_name(arg) && !names_module(arg) ? arg : std::string{};
}

int exec_python(std::span<char* const> args) {
  std::string python{"python3"};
  std::error_code failure;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", failure).parent_path();
  for (const char* const beside : {"python3", "venv/bin/python3"}) {
    const std::string path = folder / beside;
    if (failure || ::access(path.c_str(), X_OK) != 0) continue;
    python = path;
    break;
  }
  std::string flag{"-c"};
  std::string program{kProgram};
  std::vector<char*> arguments{python.data(), flag.data(), program.data()};
  arguments.insert(arguments.end(), args.begin(), args.end());
  arguments.push_back(nullptr);
  block_sighup();  // until the package takes them, for the server
  ::execvp(python.c_str(), arguments.data());
  print_error(python + " cannot be run: " + std::strerror(errno) + "; install Python 3, and the package with pip");
  return kUsage;
}

}  // namespace wirecall::cli
