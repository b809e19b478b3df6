// `wirecall call` and `wirecall notify`: one message, and what comes back on stdout.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "wirecall/options.hpp"

namespace wirecall::cli {

struct CallOptions {
  std::string method;
  std::vector<std::string> words;  ///< its arguments, as arguments.hpp understands them
  std::vector<std::string> urls;   ///< at least one; the first that can be connected to is called
  ClientOptions client;
  std::optional<std::chrono::milliseconds> timeout = {};  ///< in all, connecting included; of a stream, for each item
  bool raw = false;                                       ///< prints the whole response instead of its result
  bool stream = false;                                    ///< prints each result as it comes
};

/// Calls, prints, and returns the exit status.
int call(const CallOptions& options);

/// Sends a notification, which nobody answers; returns the exit status.
int notify(const CallOptions& options);

}  // namespace wirecall::cli
