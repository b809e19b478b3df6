// UTF-8 a character at a time, for what is written. The scanner checks whole runs of what is read by itself, and says
// where they go wrong. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

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
  while (p != end) {
    std::uint64_t word = 0;
    while (end - p >= 8 && (std::memcpy(&word, p, 8), (word & kHighBits) == 0)) p += 8;
    if (p == end) break;
    const std::size_t bytes = character_bytes(p, end);
    if (bytes == 0) break;
    p += bytes;
  }
  return p;
}

}  // namespace wirecall
