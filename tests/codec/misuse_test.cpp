// What a user sees who asks for what cannot be: misuse.cpp must fail to compile with every message it lists. Needs the
// compiler at run time and is skipped where there is none.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace {

namespace fs = std::filesystem;

const fs::path kFile = fs::path{WIRECALL_SOURCE} / "tests/codec/misuse.cpp";
const fs::path kInclude = fs::path{WIRECALL_SOURCE} / "include";

struct Outcome {
  int status;
  std::string output;
};

Outcome run(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, {}};
  std::string output;
  std::array<char, 4096> piece;
  while (const std::size_t size = std::fread(piece.data(), 1, piece.size(), pipe)) output.append(piece.data(), size);
  return {pclose(pipe), output};
}

TEST(Misuse, FailsToCompileWithMessagesThatTellTheCure) {
  if (run("c++ --version").status != 0) GTEST_SKIP() << "no compiler here";
  const Outcome outcome = run("c++ -std=c++23 -fsyntax-only -I'" + kInclude.string() + "' '" + kFile.string() + "'");
  EXPECT_NE(outcome.status, 0);
  int messages = 0;
  std::ifstream file{kFile};
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view kMark = "// expect: ";
    if (!line.starts_with(kMark)) continue;
    ++messages;
    EXPECT_NE(outcome.output.find(line.substr(kMark.size())), std::string::npos) << line;
  }
  EXPECT_GT(messages, 0);
}

}  // namespace
