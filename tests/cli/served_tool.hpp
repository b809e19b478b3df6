// Tool: a test with a demo server that the command itself serves.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <utility>
#include <vector>

#include "tests/cli/process.hpp"

namespace wirecall::cli {

/// A demo server on a port of the system's choice, taken from its banner.
class Tool : public testing::Test {
 protected:
  Tool() : Tool(std::vector<std::string>{}) {}
  explicit Tool(const std::vector<std::string>& flags) : server_(serve(flags)) {}

  Ended call(std::vector<std::string> words) {
    words.insert(words.begin(), "call");
    return run(std::move(words), url_);
  }

  static std::vector<std::string> serve(const std::vector<std::string>& flags) {
    std::vector<std::string> words{"serve", "--demo", "--port", "0"};
    words.insert(words.end(), flags.begin(), flags.end());
    return words;
  }

  Process server_;
  std::uint16_t port_ = port_of(server_);
  std::string url_ = "tcp://127.0.0.1:" + std::to_string(port_);
};

/// The exit status of the tool, `words` being for a shell.
inline int status_in_shell(const std::string& words) {
  const int status = std::system(("'" WIRECALL_TOOL_PATH "' " + words).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace wirecall::cli
