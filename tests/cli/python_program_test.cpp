#include "cli/python_program.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace wirecall::cli {
namespace {

bool asks(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return asks_for_python(pointers);
}

TEST(PythonProgram, is_asked_for_by_its_file) {
  EXPECT_TRUE(asks({"serve", "calc.py"}));
  EXPECT_TRUE(asks({"serve", "--workers", "2", "folder/calc.py:app"}));
  EXPECT_FALSE(asks({"serve"}));
  EXPECT_FALSE(asks({"serve", "--demo", "-c", "wirecall.toml"}));
  EXPECT_FALSE(asks({"call", "calc.py"}));
  EXPECT_FALSE(asks({}));
}

}  // namespace
}  // namespace wirecall::cli
