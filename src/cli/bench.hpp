// `wirecall bench`: loads a server with calls of one method and prints how many it answered and how long they took.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace wirecall::cli {

struct BenchOptions {
  std::string method;
  std::vector<std::string> words;  ///< its arguments, as arguments.hpp understands them
  std::vector<std::string> urls;   ///< at least one; the first that can be connected to is loaded
  std::uint32_t connections = 1;
  std::uint32_t pipeline = 1;
  std::chrono::milliseconds duration{10'000};
  std::chrono::milliseconds warm_up{300};  ///< before it, not measured
  double rate = 0;                         ///< calls a second; 0 for as many as the server answers
  bool json = false;                       ///< one JSON object instead of a table
  std::string hdr_path;                    ///< where the distribution is written; empty for nowhere
};

/// Loads, prints, and returns the exit status.
int bench(const BenchOptions& options);

/// A time for people, with three digits: "812 ns", "12.3 us", "4.56 ms", "1.20 s".
[[nodiscard]] std::string time_text(double ns);

}  // namespace wirecall::cli
