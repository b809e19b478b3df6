// What is known of characters beyond ASCII: which of them are white space, and which are not shown but change how
// others are, as those do that turn the direction of text. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace wirecall {

/// The character of the `bytes` bytes at `p`, which are one in valid UTF-8.
[[nodiscard]] constexpr char32_t code_point(const char* p, std::size_t bytes) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(p[i])); };
  if (bytes == 1) return byte(0);
  char32_t value = byte(0) & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) value = value << 6 | (byte(i) & 0x3FU);
  return value;
}

/// The property White_Space, but for what is ASCII.
[[nodiscard]] constexpr bool is_wide_space(char32_t c) noexcept {
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

/// Controls beyond ASCII, the separators of lines and paragraphs, and the format characters (category Cf) that are not
/// shown themselves.
[[nodiscard]] constexpr bool is_invisible(char32_t c) noexcept {
  constexpr struct {
    char32_t first;
    char32_t last;
  } kRanges[] = {{0x80, 0x9F},       {0xAD, 0xAD},       {0x61C, 0x61C},    {0x180E, 0x180E}, {0x200B, 0x200F},
                 {0x2028, 0x202E},   {0x2060, 0x206F},   {0xFEFF, 0xFEFF},  {0xFFF9, 0xFFFB}, {0x1BCA0, 0x1BCA3},
                 {0x1D173, 0x1D17A}, {0xE0001, 0xE0001}, {0xE0020, 0xE007F}};
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [c](const auto& range) { return c >= range.first && c <= range.last; });
}

}  // namespace wirecall
