// Comparing names that are mostly short, without a call into the C library. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace wirecall {

template <class Word>
[[gnu::always_inline]] inline bool same_words(const char* a, const char* b, std::size_t size) noexcept {
  Word words[4];
  std::memcpy(&words[0], a, sizeof(Word));
  std::memcpy(&words[1], b, sizeof(Word));
  std::memcpy(&words[2], a + size - sizeof(Word), sizeof(Word));
  std::memcpy(&words[3], b + size - sizeof(Word), sizeof(Word));
  return ((words[0] ^ words[1]) | (words[2] ^ words[3])) == 0;
}

/// a == b for names of 4 to 16 bytes, as two words that may overlap; false for all others.
[[gnu::always_inline]] inline bool same_short_name(std::string_view a, std::string_view b) noexcept {
  const std::size_t size = a.size();
  if (size != b.size() || size - 4 > 12) return false;
  return size >= 8 ? same_words<std::uint64_t>(a.data(), b.data(), size)
                   : same_words<std::uint32_t>(a.data(), b.data(), size);
}

/// a == b.
[[gnu::always_inline]] inline bool same_name(std::string_view a, std::string_view b) noexcept {
  return same_short_name(a, b) || a == b;
}

}  // namespace wirecall
