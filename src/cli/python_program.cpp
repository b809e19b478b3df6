// See python_program.hpp.
#include "cli/python_program.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "cli/command.hpp"
#include "cli/reloading.hpp"
#include "cli/terminal.hpp"

namespace wirecall::cli {

bool asks_for_python(std::span<char* const> words) {
  return !words.empty() && std::string_view{words.front()} == "serve" &&
         std::ranges::any_of(words.subspan(1), [](std::string_view word) {
           return word.ends_with(".py") || (word.find(".py:") != std::string_view::npos && !word.starts_with('-'));
         });
}

namespace {

bool is_name(std::string_view word) {
  const auto is_letter = [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto continues = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
  return !word.empty() && is_letter(word.front()) && std::ranges::all_of(word, continues);
}

bool names_module(std::string_view word) {
  const std::size_t colon = word.find(':');
  if (colon != std::string_view::npos && !is_name(word.substr(colon + 1))) return false;
  std::string path;
  for (std::string_view left = word.substr(0, colon); !left.empty();) {
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

}  // namespace

namespace {

std::string first_argument(const std::vector<std::string>& unexpected) {
  bool is_value = false;
  for (const std::string& word : unexpected) {
    if (std::exchange(is_value, word == "--workers") || word.starts_with('-')) continue;
    return word;
  }
  return {};
}

}  // namespace

bool asks_for_module(const std::vector<std::string>& unexpected) { return names_module(first_argument(unexpected)); }

std::string missing_module(const std::vector<std::string>& unexpected) {
  // What is wrong with a flag goes first.
  const auto is_unknown = [](std::string_view word) { return word.starts_with('-') && !word.starts_with("--workers"); };
  if (std::ranges::any_of(unexpected, is_unknown)) return {};
  std::string word = first_argument(unexpected);
  return is_name(word) && !names_module(word) ? word : std::string{};
}

int become_python(std::span<char* const> words) {
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
  arguments.insert(arguments.end(), words.begin(), words.end());
  arguments.push_back(nullptr);
  hold_hang_ups();  // until the package takes them, for the server
  ::execvp(python.c_str(), arguments.data());
  complain(python + " cannot be run: " + std::strerror(errno) + "; install Python 3, and the package with pip");
  return kUsage;
}

}  // namespace wirecall::cli
