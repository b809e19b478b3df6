// What a user sees who calls a function of a shared header as it cannot be called, by both compilers; and that both
// give functions the same names. A compiler that is not installed is skipped.
#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <string_view>

#include "tests/compiler.hpp"

namespace wirecall {
namespace {

constexpr std::string_view kFile = "tests/client/shared_misuse.cpp";

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

class SharedMisuse : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!test::is_installed(GetParam())) GTEST_SKIP() << GetParam() << " is not here";
  }
};

INSTANTIATE_TEST_SUITE_P(Each, SharedMisuse, testing::Values("g++", "clang++-19"), [](const auto& compiler) {
  return std::string{std::string_view{compiler.param}.starts_with("g") ? "gcc" : "clang"};
});

TEST_P(SharedMisuse, names_are_those_that_the_header_expects) {
  const test::Compiled compiled = test::check_syntax(GetParam(), std::string{kFile}, "-Wall -Wextra");
  EXPECT_EQ(compiled.status, 0) << compiled.output;
  EXPECT_EQ(compiled.output, "");
}

// As many errors as there are cases, and each message as often as it is expected: so each case has its own, and no
// other.
TEST_P(SharedMisuse, is_refused_each_by_one_error_that_says_why) {
  const test::Compiled compiled =
      test::check_syntax(GetParam(), std::string{kFile},
                         std::string{"-w -DWIRECALL_MISUSE "} + (std::string_view{GetParam()}.starts_with("clang")
                                                                     ? "-ferror-limit=0 -fno-caret-diagnostics"
                                                                     : "-fno-diagnostics-show-caret"));
  EXPECT_NE(compiled.status, 0);
  std::map<std::string, std::size_t> expected;
  std::size_t cases = 0;
  for (const std::string& message : test::expected_messages(std::string{kFile})) {
    ++expected[message];
    ++cases;
  }
  for (const auto& [message, times] : expected) EXPECT_EQ(count(compiled.output, message), times) << message;
  EXPECT_GT(cases, 0U);
  EXPECT_EQ(count(compiled.output, " error: "), cases) << compiled.output;
}

}  // namespace
}  // namespace wirecall
