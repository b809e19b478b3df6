// What a user sees who asks for what cannot be: each file in misuse/ must fail to compile with the message that its
// first line holds. Needs the compiler at run time and is skipped where there is none.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path{__FILE__}.parent_path() / "misuse";
const fs::path kInclude = fs::path{__FILE__}.parent_path().parent_path().parent_path() / "include";

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

TEST(Misuse, FailsToCompileWithAMessageThatTellsTheCure) {
  if (run("c++ --version").status != 0) GTEST_SKIP() << "no compiler here";
  int files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator{kFolder}) {
    std::string message;
    std::getline(std::ifstream{entry.path()} >> std::ws, message);
    ASSERT_TRUE(message.starts_with("// wirecall: ")) << entry.path();
    message.erase(0, 3);
    const Outcome outcome =
        run("c++ -std=c++23 -fsyntax-only -I'" + kInclude.string() + "' '" + entry.path().string() + "'");
    EXPECT_NE(outcome.status, 0) << entry.path() << " compiles";
    EXPECT_NE(outcome.output.find(message), std::string::npos) << entry.path() << '\n'
                                                               << outcome.output.substr(0, 2000);
    ++files;
  }
  EXPECT_GT(files, 0);
}

}  // namespace
