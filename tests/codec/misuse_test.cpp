// What a user sees who asks for what cannot be: misuse.cpp must fail to compile with every message it lists. Needs the
// compiler at run time and is skipped where there is none.
#include <gtest/gtest.h>
#include <string>

#include "tests/compiler.hpp"

namespace wirecall {
namespace {

TEST(Misuse, FailsToCompileWithMessagesThatTellTheCure) {
  if (!test::is_installed("c++")) GTEST_SKIP() << "no compiler here";
  const std::string file = "tests/codec/misuse.cpp";
  const test::Compiled compiled = test::check_syntax("c++", file);
  EXPECT_NE(compiled.status, 0);
  const std::vector<std::string> messages = test::expected_messages(file);
  for (const std::string& message : messages) EXPECT_NE(compiled.output.find(message), std::string::npos) << message;
  EXPECT_FALSE(messages.empty());
}

}  // namespace
}  // namespace wirecall
