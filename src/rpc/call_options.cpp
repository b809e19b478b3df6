#include "rpc/call_options.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

namespace wirecall::rpc {
namespace {

// A number's size, whatever a double can hold: 0 for zero, else 1 + the power of ten of its first digit, or less than 0
// for a number below 1.
long power_of_ten(std::string_view number) noexcept {
  constexpr long kFar = 1'000'000;
  long power = 0;
  bool fraction = false;
  bool begun = false;
  for (std::size_t at = 0; at != number.size(); ++at) {
    const char c = number[at];
    if (c == 'e' || c == 'E') {
      const bool negative = number[++at] == '-';
      if (negative || number[at] == '+') ++at;
      long exponent = 0;
      for (; at != number.size() && exponent < kFar; ++at) exponent = exponent * 10 + (number[at] - '0');
      power += negative ? -exponent : exponent;
      break;
    }
    if (c == '.') {
      fraction = true;
    } else if (c != '-') {
      begun |= c != '0';
      if (begun && !fraction) ++power;
      if (!begun && fraction) --power;
    }
  }
  if (!begun) return 0;
  return power > 0 ? power : power - 1;
}

}  // namespace

std::uint32_t milliseconds_of(std::string_view number) noexcept {
  constexpr std::uint32_t kMax = std::numeric_limits<std::uint32_t>::max();
  constexpr long kDigitsMax = 10;
  const long power = power_of_ten(number);
  if (power == 0) return 0;
  if (power < 0) return 1;
  if (power > kDigitsMax) return kMax;
  double milliseconds = 0;
  std::from_chars(number.data(), number.data() + number.size(), milliseconds);
  return milliseconds >= kMax ? kMax : static_cast<std::uint32_t>(std::ceil(milliseconds));
}

std::optional<std::uint64_t> read_count(const LoopContext& loop_context, std::string_view value) {
  std::uint64_t count = 0;
  loop_context.readers.reader->reset(value);
  if (loop_context.readers.reader->read_uint(std::numeric_limits<std::int64_t>::max(), count)) return count;
  loop_context.readers.reader->clear_failure();
  return {};
}

}  // namespace wirecall::rpc
