// The two byte searches of the scanner, portably, eight bytes at a time: the twin with which the SIMD version
// (scan_ops_x86.hpp) is compared, and what runs on machines without one.
// Both may read up to kPaddingBytes past the first byte they stop at. Pure.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace wirecall::json {

struct ScalarOps {
  /// The first byte at or behind `p` that is a quote, a backslash, a control byte or not ASCII.
  static const char* find_special(const char* p) noexcept {
    for (;; p += 8) {
      const std::uint64_t word = load(p);
      const std::uint64_t special = (word | below(word, 0x20) | equal(word, '"') | equal(word, '\\')) & kHigh;
      if (special != 0) return first(p, special);
    }
  }
  /// The first byte at or behind `p` that is not a decimal digit.
  static const char* skip_digits(const char* p) noexcept {
    while (static_cast<unsigned char>(*p - '0') <= 9) ++p;
    return p;
  }

 private:
  static constexpr std::uint64_t kOnes = 0x0101010101010101;
  static constexpr std::uint64_t kHigh = 0x8080808080808080;

  static std::uint64_t load(const char* p) noexcept {
    std::uint64_t word;
    std::memcpy(&word, p, sizeof word);
    return word;
  }
  // The high bit of each byte that is less than `bound`. A borrow may also mark a byte above a true one, which is why
  // `first` must take the lowest-addressed mark, and why big-endian machines look again byte by byte.
  static constexpr std::uint64_t below(std::uint64_t word, unsigned char bound) noexcept {
    return (word - kOnes * bound) & ~word;
  }
  static constexpr std::uint64_t equal(std::uint64_t word, char c) noexcept {
    return below(word ^ (kOnes * static_cast<unsigned char>(c)), 1);
  }
  static const char* first(const char* p, std::uint64_t marks) noexcept {
    if constexpr (std::endian::native == std::endian::little) {
      return p + std::countr_zero(marks) / 8;
    } else {
      while (static_cast<unsigned char>(*p) >= 0x20 && static_cast<unsigned char>(*p) < 0x80 && *p != '"' && *p != '\\')
        ++p;
      return p;
    }
  }
};

}  // namespace wirecall::json

#if defined(__SSE2__) && !defined(WIRECALL_SCALAR)
#include "codec/scan_ops_x86.hpp"
namespace wirecall::json {
using NativeOps = SimdOps;
}
#else
namespace wirecall::json {
using NativeOps = ScalarOps;
}
#endif
