// What a user sees who asks for what cannot be: misuse.cpp must fail to compile with every message it lists. A compiler
// that is not installed is skipped.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/compiler.hpp"

namespace wirecall {
namespace {

TEST(Misuse, FailsToCompileWithMessagesThatTellTheCure) {
  EXPECT_EQ(test::unsaid("tests/codec/misuse.cpp", 10), std::vector<std::string>{});
}

}  // namespace
}  // namespace wirecall
