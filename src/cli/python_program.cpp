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
#include <vector>

#include "cli/command.hpp"
#include "cli/terminal.hpp"

namespace wirecall::cli {

bool asks_for_python(std::span<char* const> words) {
  return !words.empty() && std::string_view{words.front()} == "serve" &&
         std::ranges::any_of(words.subspan(1), [](std::string_view word) {
           return word.ends_with(".py") || (word.find(".py:") != std::string_view::npos && !word.starts_with('-'));
         });
}

int become_python(std::span<char* const> words) {
  std::string python{"python3"};
  std::error_code failure;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failure);
  const std::string beside = self.parent_path() / "python3";
  if (!failure && ::access(beside.c_str(), X_OK) == 0) python = beside;
  std::string module_flag{"-m"};
  std::string module{"wirecall"};
  std::vector<char*> arguments{python.data(), module_flag.data(), module.data()};
  arguments.insert(arguments.end(), words.begin(), words.end());
  arguments.push_back(nullptr);
  ::execvp(python.c_str(), arguments.data());
  complain(python + " cannot be run: " + std::strerror(errno) + "; install Python 3, and the package with pip");
  return kUsage;
}

}  // namespace wirecall::cli
