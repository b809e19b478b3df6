// The decimal digits of whole numbers, two at a time. Pure.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "wirecall/bytes.hpp"

namespace wirecall {

inline constexpr std::size_t kDecimalDigitsMax = 20;

inline constexpr std::array<char, 200> kTwoDigits = [] {
  std::array<char, 200> digits{};
  for (unsigned i = 0; i < 100; ++i) {
    digits[2 * i] = static_cast<char>('0' + i / 10);
    digits[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return digits;
}();

/// 10, 100, ... by their exponent; of 0 it is 0, as of a number without digits.
inline constexpr std::array<std::uint64_t, kDecimalDigitsMax> kPowersOfTen = [] {
  std::array<std::uint64_t, kDecimalDigitsMax> powers{};
  for (std::size_t i = 1; i < powers.size(); ++i) powers[i] = i == 1 ? 10 : 10 * powers[i - 1];
  return powers;
}();

/// 1 to 20. 1233/4096 is log10(2), just a little too large at no width up to 64.
[[nodiscard]] inline int count_digits(std::uint64_t value) noexcept {
  const int guess = std::bit_width(value | 1) * 1233 >> 12;
  return guess + (value >= kPowersOfTen[static_cast<std::size_t>(guess)] ? 1 : 0);
}

/// Writes at most 20 characters at `to`, and returns their end.
inline char* write_decimal(char* to, std::uint64_t value) noexcept {
  char* const end = to + (value == 0 ? 1 : count_digits(value));
  char* p = end;
  while (value >= 100) {
    p -= 2;
    std::memcpy(p, &kTwoDigits[value % 100 * 2], 2);
    value /= 100;
  }
  if (value >= 10) {
    std::memcpy(p - 2, &kTwoDigits[value * 2], 2);
  } else {
    p[-1] = static_cast<char>('0' + value);
  }
  return end;
}

/// Appends the number's decimal digits.
inline void append_number(Buffer& out, std::uint64_t number) {
  out.set_end(write_decimal(out.reserve(kDecimalDigitsMax), number));
}

}  // namespace wirecall
