// Number texts: a Decimal (digits and a power of ten) decides exactly what is integral and what is in range; doubles
// are left to std::from_chars except for the short ones, where two exact doubles make one correctly rounded one.
#include "codec/codec_number.hpp"

#include <cfloat>
#include <charconv>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "base/ascii.hpp"

namespace wirecall::codec {
namespace {

/// (-1)^negative * digits * 10^exponent; the digits are those of `text` from `first` to `last`, the point skipped,
/// without zeros at either end.
struct Decimal {
  bool negative = false;
  const char* first = nullptr;
  const char* last = nullptr;  ///< one past the last significant digit
  std::int64_t count = 0;      ///< significant digits; 0 for the value zero
  std::int64_t exponent = 0;   ///< of the last significant digit
};

// Exponents beyond this are all alike: no text is long enough to bring such a number back into range.
constexpr std::int64_t kExponentMax = std::int64_t{1} << 50;

Decimal take_apart(std::string_view text) noexcept {
  Decimal out;
  const char* p = text.data();
  const char* const end = p + text.size();
  if (*p == '-') {
    out.negative = true;
    ++p;
  }
  std::int64_t position = 0;  // digits seen
  std::int64_t point = -1;    // how many of them stand before the point
  std::int64_t first_position = 0;
  std::int64_t last_position = 0;  // of the last digit that is not zero
  for (; p != end && (is_digit(*p) || *p == '.'); ++p) {
    if (*p == '.') {
      point = position;
      continue;
    }
    if (*p != '0') {
      if (out.first == nullptr) {
        out.first = p;
        first_position = position;
      }
      out.last = p + 1;
      last_position = position;
    }
    ++position;
  }
  if (point < 0) point = position;
  std::int64_t exponent = 0;
  if (p != end) {
    ++p;  // the letter
    const bool negative = *p == '-';
    if (*p == '-' || *p == '+') ++p;
    for (; p != end; ++p) {
      if (exponent < kExponentMax) exponent = exponent * 10 + (*p - '0');
    }
    if (negative) exponent = -exponent;
  }
  if (out.first != nullptr) {
    out.count = last_position - first_position + 1;
    out.exponent = exponent + point - 1 - last_position;
  }
  return out;
}

/// The magnitude of an integral Decimal; false when it is beyond 64 bits.
bool magnitude(const Decimal& decimal, std::uint64_t& out) noexcept {
  std::uint64_t value = 0;
  if (decimal.count + decimal.exponent > 20) return false;
  for (const char* p = decimal.first; p != decimal.last; ++p) {
    if (*p == '.') continue;
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value)) return false;
    if (__builtin_add_overflow(value, static_cast<std::uint64_t>(*p - '0'), &value)) return false;
  }
  for (std::int64_t i = 0; i < decimal.exponent; ++i) {
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value)) return false;
  }
  out = value;
  return true;
}

bool equal(const Decimal& x, const Decimal& y) noexcept {
  if (x.count != y.count) return false;
  if (x.count == 0) return true;  // -0 is 0
  if (x.negative != y.negative || x.exponent != y.exponent) return false;
  const char* a = x.first;
  const char* b = y.first;
  for (std::int64_t i = 0; i < x.count; ++i, ++a, ++b) {
    if (*a == '.') ++a;
    if (*b == '.') ++b;
    if (*a != *b) return false;
  }
  return true;
}

constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

template <class Float>
bool parse_floating(std::string_view text, Float& out) noexcept {
  Float value{};
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc{}) {
    out = value;
    return true;
  }
  // Out of range, and from_chars does not say on which side.
  const Decimal decimal = take_apart(text);
  if (decimal.count + decimal.exponent > 0) return false;
  out = decimal.negative ? Float{-0.0F} : Float{0};
  return true;
}

template <class Integer>
Integrality parse(std::string_view text, Integer& out) noexcept {
  const Decimal decimal = take_apart(text);
  std::uint64_t value = 0;
  if (decimal.count != 0) {
    if (decimal.exponent < 0) return Integrality::fractional;
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<Integer>::max());
    const std::uint64_t most = !decimal.negative ? kMax : std::is_signed_v<Integer> ? kMax + 1 : 0;
    if (!magnitude(decimal, value) || value > most) return Integrality::out_of_range;
  }
  out = static_cast<Integer>(decimal.negative ? 0 - value : value);
  return Integrality::exact;
}

}  // namespace

Integrality parse_integer(std::string_view text, std::int64_t& out) noexcept { return parse(text, out); }
Integrality parse_integer(std::string_view text, std::uint64_t& out) noexcept { return parse(text, out); }

bool parse_double(std::string_view text, double& out) noexcept {
#if FLT_EVAL_METHOD == 0
  // Up to 15 digits and a power of ten up to 22 are exact as doubles, so one operation on them rounds correctly
  // (W. D. Clinger, "How to read floating point numbers accurately", 1990).
  const char* p = text.data();
  const char* const end = p + text.size();
  const bool negative = *p == '-';
  if (negative) ++p;
  const char* const digits = p;
  std::uint64_t mantissa = 0;
  std::ptrdiff_t fraction = 0;
  if (end - p <= 16) {
    while (p != end && is_digit(*p)) mantissa = mantissa * 10 + static_cast<std::uint64_t>(*p++ - '0');
    if (p != end && *p == '.') {
      const char* const point = ++p;
      while (p != end && is_digit(*p)) mantissa = mantissa * 10 + static_cast<std::uint64_t>(*p++ - '0');
      fraction = p - point;
    }
    if (p == end && p - digits - (fraction != 0 ? 1 : 0) <= 15) {
      const double value = static_cast<double>(mantissa) / kPowersOfTen[fraction];
      out = negative ? -value : value;
      return true;
    }
  }
#endif
  return parse_floating(text, out);
}

bool parse_float(std::string_view text, float& out) noexcept { return parse_floating(text, out); }

bool same_number(std::string_view a, std::string_view b) noexcept { return equal(take_apart(a), take_apart(b)); }

bool same_digits(std::string_view text, double value) noexcept {
  char shortest[32];
  const auto written = std::to_chars(shortest, shortest + sizeof shortest, value, std::chars_format::scientific);
  return same_number(text, {shortest, static_cast<std::size_t>(written.ptr - shortest)});
}

}  // namespace wirecall::codec
