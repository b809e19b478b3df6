// Refuses limits that cannot be: the scanner relies on them.
#include "wirecall/limits.hpp"

#include <stdexcept>
#include <string>

namespace wirecall {

void require_valid(const Limits& limits) {
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
  require(limits.header_timeout_ms >= 1, "header_timeout_ms", limits.header_timeout_ms, "at least 1 millisecond");
}

}  // namespace wirecall
