// What a user sees whose function cannot be batched: batched_misuse.cpp must fail to compile with every message it
// lists. Skipped where there is no compiler.
#include <gtest/gtest.h>
#include <string>

#include "tests/compiler.hpp"

namespace wirecall {
namespace {

TEST(BatchedMisuse, fails_to_compile_with_messages_that_tell_the_cure) {
  const std::string file = "tests/batching/batched_misuse.cpp";
  const std::vector<std::string> messages = test::expected_messages(file);
  EXPECT_EQ(messages.size(), 3U);
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
