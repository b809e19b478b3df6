// UTF-8 a character at a time, for what is written, and what is known of characters beyond ASCII: which of them are
// white space, and which are not shown but change how others are, as those do that turn the direction of text. The
// scanner checks whole runs of what is read by itself, and says where they go wrong. Pure.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace wirecall {

/// How many bytes the character at `p` has, or 0 where what stands there is not UTF-8 (RFC 3629 section 4: no overlong
/// forms, no surrogates, nothing above U+10FFFF). Nothing at or behind `end` is read; `p` is before it.
[[gnu::always_inline]] inline std::size_t character_bytes(const char* p, const char* end) noexcept {
  const auto byte = [&](std::ptrdiff_t i) -> unsigned { return i < end - p ? static_cast<unsigned char>(p[i]) : 0; };
  const auto follows = [&](std::ptrdiff_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = first == 0xED ? 0x9F : 0xBF;
    return byte(1) >= low && byte(1) <= high && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = first == 0xF4 ? 0x8F : 0xBF;
    return byte(1) >= low && byte(1) <= high && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

/// The first character from `p` on that is not UTF-8, or `end`.
[[nodiscard]] inline const char* find_no_utf8(const char* p, const char* end) noexcept {
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  const char* const begin = p;
  while (p != end) {
    std::uint64_t word = 0;
    while (end - p >= 8 && (std::memcpy(&word, p, 8), (word & kHighBits) == 0)) p += 8;
    if (p == end) break;
    // The last eight bytes, some of which have been looked at.
    if (end - p < 8 && end - begin >= 8 && (std::memcpy(&word, end - 8, 8), (word & kHighBits) == 0)) return end;
    const std::size_t bytes = character_bytes(p, end);
    if (bytes == 0) break;
    p += bytes;
  }
  return p;
}

/// Whether the `size` bytes at `p` are UTF-8; quick for up to 16 that are ASCII. All in front of `readable_end` can be
/// read.
[[nodiscard, gnu::always_inline]] inline bool is_utf8(const char* p, std::size_t size,
                                                      const char* readable_end) noexcept {
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  std::uint64_t word = 0;
  if (size > 8 && size <= 16) {
    std::uint64_t last = 0;
    std::memcpy(&word, p, sizeof word);
    std::memcpy(&last, p + size - sizeof last, sizeof last);
    if (((word | last) & kHighBits) == 0) return true;
  } else if (size <= 8 && readable_end - p >= 8) {
    if (size == 0) return true;
    std::memcpy(&word, p, sizeof word);
    const std::size_t others = 8 * (8 - size);  // bits
    word = std::endian::native == std::endian::little ? word << others : word >> others;
    if ((word & kHighBits) == 0) return true;
  }
  return find_no_utf8(p, p + size) == p + size;
}

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
