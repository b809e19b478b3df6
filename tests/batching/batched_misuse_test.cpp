// What a user sees whose function cannot be batched: batched_misuse.cpp must fail to compile with every message that it
// lists. Needs the compiler at run time and is skipped where there is none.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace {

class BatchedMisuse : public testing::Test {
 protected:
  static std::string output_of(const std::string& command, int& status) {
    std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) return {};
    std::string output;
    std::array<char, 4096> piece;
    while (const std::size_t size = std::fread(piece.data(), 1, piece.size(), pipe)) output.append(piece.data(), size);
    status = pclose(pipe);
    return output;
  }
};

TEST_F(BatchedMisuse, fails_to_compile_with_messages_that_tell_the_cure) {
  const std::filesystem::path source{WIRECALL_SOURCE};
  const std::string file = source / "tests/batching/batched_misuse.cpp";
  for (const std::string compiler : {"g++", "clang++-19"}) {
    int status = 0;
    static_cast<void>(output_of(compiler + " --version", status));
    if (status != 0) continue;
    const std::string output = output_of(
        compiler + " -std=c++23 -fsyntax-only -I'" + (source / "include").string() + "' '" + file + "'", status);
    EXPECT_NE(status, 0);
    int messages = 0;
    std::ifstream lines{file};
    for (std::string line; std::getline(lines, line);) {
      constexpr std::string_view kMark = "// expect: ";
      if (!line.starts_with(kMark)) continue;
      ++messages;
      EXPECT_NE(output.find(line.substr(kMark.size())), std::string::npos) << compiler << ": " << line;
    }
    EXPECT_EQ(messages, 3);
  }
}

}  // namespace
