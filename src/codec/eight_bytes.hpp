// Eight bytes of text at a time, in one integer: what the searches without SIMD are made of. Pure.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace wirecall::json {

inline constexpr std::uint64_t kOnes = 0x0101010101010101;
inline constexpr std::uint64_t kHighBits = 0x8080808080808080;

/// The eight bytes at `p`, the first of them lowest whatever the machine.
inline std::uint64_t load8(const char* p) noexcept {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = std::byteswap(word);
  return word;
}

/// The high bit of each byte that is less than `bound`, which is at most 0x80. The lowest mark is right; a borrow may
/// also mark bytes above it.
constexpr std::uint64_t below(std::uint64_t word, unsigned char bound) noexcept {
  return (word - kOnes * bound) & ~word & kHighBits;
}
/// The same of each byte that equals `c`.
constexpr std::uint64_t equal(std::uint64_t word, char c) noexcept {
  return below(word ^ (kOnes * static_cast<unsigned char>(c)), 1);
}
/// How many bytes stand before the first one marked in `marks`, which is not 0.
constexpr int first_marked(std::uint64_t marks) noexcept { return std::countr_zero(marks) / 8; }

}  // namespace wirecall::json
