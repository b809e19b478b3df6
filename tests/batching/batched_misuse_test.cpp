// What a user sees whose function cannot be batched: batched_misuse.cpp must fail to compile with every message it
// lists. A compiler that is not installed is skipped.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/compiler.hpp"

namespace wirecall {
namespace {

TEST(BatchedMisuse, fails_to_compile_with_messages_that_tell_the_cure) {
  EXPECT_EQ(test::unsaid("tests/batching/batched_misuse.cpp", 3), std::vector<std::string>{});
}

}  // namespace
}  // namespace wirecall
