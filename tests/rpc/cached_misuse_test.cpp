// What a user sees who would keep results that are one caller's: cached_misuse.cpp must fail to compile with every
// message it lists. A compiler that is not installed is skipped.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/compiler.hpp"

namespace wirecall {
namespace {

TEST(CachedMisuse, FailsToCompileWithMessagesThatTellTheCure) {
  EXPECT_EQ(test::unsaid("tests/rpc/cached_misuse.cpp", 2), std::vector<std::string>{});
}

}  // namespace
}  // namespace wirecall
