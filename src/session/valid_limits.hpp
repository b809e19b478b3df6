// Refuses limits that cannot be, where servers and clients are made: the scanner relies on them.
#pragma once

#include <stdexcept>
#include <string>

#include "wirecall/limits.hpp"

namespace wirecall::session {

/// Throws std::invalid_argument that names the limit, its value and its range.
inline void require_valid(const Limits& limits) {
  const auto require = [](bool valid, const char* name, std::size_t value, const std::string& range) {
    if (!valid) {
      throw std::invalid_argument{std::string{"limits."} + name + " is " + std::to_string(value) + ": give " + range};
    }
  };
  require(limits.depth >= 1 && limits.depth <= kDepthMax, "depth", limits.depth,
          "a number from 1 to " + std::to_string(kDepthMax));
  require(limits.max_message_size >= 1, "max_message_size", limits.max_message_size, "at least 1 byte");
  require(limits.in_flight >= 1, "in_flight", limits.in_flight, "at least 1 call");
  require(limits.soft_output <= limits.hard_output, "soft_output", limits.soft_output,
          "no more than limits.hard_output, which is " + std::to_string(limits.hard_output));
}

}  // namespace wirecall::session
