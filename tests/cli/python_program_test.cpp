#include "cli/commands/python_program.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <vector>

#include "tests/server/folder.hpp"

namespace wirecall::cli {
namespace {

bool asks(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return is_python_program(pointers);
}

TEST(PythonProgram, is_asked_for_by_its_file) {
  EXPECT_TRUE(asks({"serve", "calc.py"}));
  EXPECT_TRUE(asks({"serve", "--workers", "2", "folder/calc.py:app"}));
  EXPECT_FALSE(asks({"serve"}));
  EXPECT_FALSE(asks({"serve", "--demo", "-c", "wirecall.toml"}));
  EXPECT_FALSE(asks({"call", "calc.py"}));
  EXPECT_FALSE(asks({}));
}

TEST(PythonProgram, is_asked_for_by_a_module_s_name) {
  EXPECT_TRUE(asks_for_module({"calc:app"}));
  EXPECT_TRUE(asks_for_module({"--workers", "2", "tools.calc"}));
  EXPECT_FALSE(asks_for_module({"--workers", "2"}));
  for (const char* none :
       {"localhost:8545", "calc", "calc.", "a..b", ":app", "calc:", "8545", "-x", "calc:a.b", "../x"})
    EXPECT_FALSE(asks_for_module({none})) << none;
  const net::Folder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path);
  std::ofstream{"calc.py"};
  std::filesystem::create_directory("tools");
  EXPECT_TRUE(asks_for_module({"calc"}));
  EXPECT_TRUE(asks_for_module({"tools"}));
  std::filesystem::current_path(before);
}

TEST(PythonProgram, a_module_that_there_is_not_is_told_from_what_is_none) {
  EXPECT_EQ(missing_module({"nosuch"}), "nosuch");
  EXPECT_EQ(missing_module({"--workers", "2", "nosuch"}), "nosuch");
  for (const char* none : {"localhost:8545", "8545", "-x", "a.b", "../x", ""}) EXPECT_EQ(missing_module({none}), "");
  EXPECT_EQ(missing_module({"--bogus", "nosuch"}), "");
  EXPECT_EQ(missing_module({}), "");
}

// The command in a folder of its own, with nothing beside it, and a Python that has no packages.
TEST(PythonProgram, without_the_package_it_says_what_to_type) {
  if (std::system("command -v python3 > /dev/null") != 0) GTEST_SKIP() << "there is no python3";
  const net::Folder folder;
  const std::string tool = folder.path + "/wirecall";
  std::filesystem::copy_file(WIRECALL_TOOL_PATH, tool);
  std::filesystem::create_directory(folder.path + "/bin");
  const std::string python = folder.path + "/bin/python3";
  std::ofstream{python} << "#!/bin/sh\nPATH=${PATH#*:}\nexec python3 -I -S \"$@\"\n";
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  for (const std::string program : {"calc.py", "calc:app"}) {
    const std::string said = folder.path + "/said";
    const std::string words = "PATH=\"" + folder.path + "/bin:$PATH\" '" + tool + "' serve " + program + " 2> " + said;
    const int status = std::system(words.c_str());
    EXPECT_EQ(WEXITSTATUS(status), 2);
    std::string line;
    std::getline(std::ifstream{said}, line);
    EXPECT_NE(line.find("has no package wirecall"), std::string::npos) << line;
    EXPECT_NE(line.find("pip install ./python"), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace wirecall::cli
