// The meaning of a JSON number's text: exact 64-bit integers, correctly rounded doubles, and how to tell the cases
// apart that neither holds. The text is trusted to be a number as RFC 8259 section 6 writes it; any length costs
// linear time. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wirecall::codec {

enum class Integrality : std::uint8_t {
  exact,         ///< the value is an integer and held exactly
  out_of_range,  ///< the value is an integer beyond 64 bits
  fractional,    ///< the value is no integer
};

/// 1.0, 1e3 and 10.00e2 are integers, -0 is 0; 1.5 and 1e-400 are not.
[[nodiscard]] Integrality parse_integer(std::string_view text, std::int64_t& out) noexcept;
[[nodiscard]] Integrality parse_integer(std::string_view text, std::uint64_t& out) noexcept;

/// The nearest double; a magnitude too small for one gives a signed zero. False when it is too large.
[[nodiscard]] bool parse_double(std::string_view text, double& out) noexcept;
[[nodiscard]] bool parse_float(std::string_view text, float& out) noexcept;

/// Whether the shortest text of `value` has the very digits of `text`, so that the double stands for the text.
[[nodiscard]] bool same_digits(std::string_view text, double value) noexcept;

/// Whether two texts stand for the same number, however they write it.
[[nodiscard]] bool same_number(std::string_view a, std::string_view b) noexcept;

// What was expected, in the words of a failure to decode.
template <class Integer>
[[nodiscard]] std::string integer_words(Integer min, Integer max) {
  return "integer from " + std::to_string(min) + " to " + std::to_string(max);
}
inline constexpr std::string_view kDoubleWords = "number from -1.7976931348623157e308 to 1.7976931348623157e308";

/// The end of the number that begins at `p`; what follows it must not look like its continuation.
[[nodiscard]] inline const char* number_end(const char* p) noexcept {
  while ((*p >= '0' && *p <= '9') || *p == '.' || *p == '-' || *p == '+' || *p == 'e' || *p == 'E') ++p;
  return p;
}

}  // namespace wirecall::codec
