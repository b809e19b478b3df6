// `wirecall call`: one call, its result on stdout.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace wirecall::cli {

struct CallOptions {
  std::string method;
  std::vector<std::string> words;  ///< its arguments, as arguments.hpp understands them
  std::vector<std::string> urls;   ///< at least one; the first that can be connected to is called
  std::optional<std::chrono::milliseconds> timeout;
  bool raw = false;  ///< prints the whole response instead of its result
};

/// Calls, prints, and returns the exit status.
int call(const CallOptions& options);

}  // namespace wirecall::cli
