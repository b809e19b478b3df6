// Runs a compiler over a file of the tests that must not compile, and tells what it says.
#pragma once

#include <array>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace wirecall::test {

struct Compiled {
  int status;
  std::string output;
};

inline Compiled run_command(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, {}};
  std::string output;
  std::array<char, 4096> piece;
  while (const std::size_t size = std::fread(piece.data(), 1, piece.size(), pipe)) output.append(piece.data(), size);
  return {pclose(pipe), output};
}

[[nodiscard]] inline bool is_installed(const std::string& compiler) {
  return run_command(compiler + " --version").status == 0;
}

/// Reads `file`, and generates nothing. `file` is named from the root of the sources.
inline Compiled check_syntax(const std::string& compiler, const std::string& file, const std::string& flags = {}) {
  const std::string root = WIRECALL_SOURCE;
  return run_command(compiler + " -std=c++23 -fsyntax-only " + flags + " -I'" + root + "/include' -I'" + root + "' '" +
                     root + "/" + file + "'");
}

/// The messages that a file says it is to be refused with, each behind "// expect: ".
inline std::vector<std::string> expected_messages(const std::string& file) {
  std::vector<std::string> messages;
  std::ifstream lines{std::string{WIRECALL_SOURCE} + "/" + file};
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view kMark = "// expect: ";
    if (line.starts_with(kMark)) messages.push_back(line.substr(kMark.size()));
  }
  return messages;
}

/// What each compiler that is installed does not say of `file`, behind the compiler's name; that it refuses the file is
/// part of what it should say. `file` is to list `count` messages.
inline std::vector<std::string> unsaid(const std::string& file, std::size_t count) {
  const std::vector<std::string> messages = expected_messages(file);
  if (messages.size() != count) return {"there are " + std::to_string(messages.size()) + " messages in the file"};
  std::vector<std::string> unsaid;
  for (const std::string compiler : {"g++", "clang++-19"}) {
    if (!is_installed(compiler)) continue;
    const Compiled compiled = check_syntax(compiler, file);
    if (compiled.status == 0) unsaid.push_back(compiler + ": an error");
    for (const std::string& message : messages) {
      if (compiled.output.find(message) == compiled.output.npos) unsaid.push_back(compiler + ": " + message);
    }
  }
  return unsaid;
}

}  // namespace wirecall::test
