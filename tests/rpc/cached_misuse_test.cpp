// What a user sees who would keep results that are one caller's: cached_misuse.cpp must fail to compile with every
// message it lists. Skipped where there is no compiler.
#include <gtest/gtest.h>
#include <string>

#include "tests/compiler.hpp"

namespace wirecall {
namespace {

TEST(CachedMisuse, FailsToCompileWithMessagesThatTellTheCure) {
  const std::string file = "tests/rpc/cached_misuse.cpp";
  const std::vector<std::string> messages = test::expected_messages(file);
  EXPECT_EQ(messages.size(), 2U);
  for (const std::string compiler : {"g++", "clang++-19"}) {
    if (!test::is_installed(compiler)) continue;
    const test::Compiled compiled = test::check_syntax(compiler, file);
    EXPECT_NE(compiled.status, 0);
    for (const std::string& message : messages)
      EXPECT_NE(compiled.output.find(message), std::string::npos) << compiler << ": " << message;
  }
}

}  // namespace
}  // namespace wirecall
