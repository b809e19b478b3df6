// The byte searches of the scanner, and that of the reader, portably, eight bytes at a time: the twin with which the
// SIMD version (scan_ops_x86.hpp) is compared, and what runs on machines without one. Each may read up to kPaddingBytes
// past the first byte they stop at. Pure.
#pragma once

#include "codec/eight_bytes.hpp"

namespace wirecall::json {

struct ScalarOps {
  /// The first byte at or behind `p` that is a quote, a backslash, a control byte or not ASCII.
  static const char* find_special(const char* p) noexcept {
    for (;; p += 8) {
      const std::uint64_t word = load8(p);
      const std::uint64_t special = (word & kHighBits) | below(word, 0x20) | equal(word, '"') | equal(word, '\\');
      if (special != 0) return p + first_marked(special);
    }
  }
  /// The first quote or backslash at or behind `p`, of which there is one before the text ends.
  static const char* find_quote_or_backslash(const char* p) noexcept {
    for (;; p += 8) {
      const std::uint64_t word = load8(p);
      if (const std::uint64_t found = equal(word, '"') | equal(word, '\\'); found != 0) return p + first_marked(found);
    }
  }
  /// The first byte at or behind `p` that is not a decimal digit.
  static const char* skip_digits(const char* p) noexcept {
    while (static_cast<unsigned char>(*p - '0') <= 9) ++p;
    return p;
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
