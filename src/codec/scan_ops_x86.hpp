// The scanner's byte searches with SSE2, which every x86-64 has, and with AVX2 for long strings where the machine has
// it. The only file that assumes x86; scan_ops.hpp says what each function promises.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <immintrin.h>

namespace wirecall::json {

struct SimdOps {
  static constexpr int kBlockBytes = 16;
  static constexpr int kShortBlocks = 3;

  [[gnu::always_inline]] static const char* find_special(const char* p) noexcept {
    const std::uint32_t special = special_of(p);
    return special != 0 ? p + first(special) : find_special_beyond(p + kBlockBytes);
  }
  static const char* skip_digits(const char* p) noexcept {
    for (;; p += kBlockBytes) {
      const __m128i value = _mm_sub_epi8(load(p), _mm_set1_epi8('0'));
      const __m128i digit = _mm_cmpeq_epi8(_mm_min_epu8(value, _mm_set1_epi8(9)), value);
      const auto other = static_cast<std::uint32_t>(_mm_movemask_epi8(digit)) ^ 0xFFFFU;
      if (other != 0) [[likely]]
        return p + first(other);
    }
  }
  static std::uint32_t special_of(const char* p) noexcept {
    const __m128i block = load(p);
    // The sign bits tell: of the byte itself beyond ASCII, and of the byte less 0x20 for a control byte.
    const __m128i low = _mm_or_si128(_mm_sub_epi8(block, _mm_set1_epi8(0x20)), block);
    const __m128i quote = _mm_cmpeq_epi8(block, _mm_set1_epi8('"'));
    const __m128i backslash = _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'));
    return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_or_si128(low, _mm_or_si128(quote, backslash))));
  }
  // For what is still plain after the first block.
  [[gnu::noinline]] static const char* find_special_beyond(const char* p) noexcept {
    for (int block = 0; block < kShortBlocks; ++block, p += kBlockBytes) {
      if (const std::uint32_t special = special_of(p); special != 0) return p + std::countr_zero(special);
    }
    static const bool has_avx2 = __builtin_cpu_supports("avx2");
    if (has_avx2) return find_special_avx2(p);
    for (;; p += kBlockBytes) {
      if (const std::uint32_t special = special_of(p); special != 0) return p + std::countr_zero(special);
    }
  }
  [[gnu::target("avx2")]] static const char* find_special_avx2(const char* p) noexcept {
    for (;; p += 32) {
      const __m256i block = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
      const __m256i low = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), block);
      const __m256i quote = _mm256_cmpeq_epi8(block, _mm256_set1_epi8('"'));
      const __m256i backslash = _mm256_cmpeq_epi8(block, _mm256_set1_epi8('\\'));
      const __m256i special = _mm256_or_si256(low, _mm256_or_si256(quote, backslash));
      if (const auto mask = static_cast<std::uint32_t>(_mm256_movemask_epi8(special)); mask != 0)
        return p + std::countr_zero(mask);
    }
  }

 private:
  // The lowest set bit's number; `mask` is not 0. Unsigned, which saves the compiler a sign extension.
  static std::size_t first(std::uint32_t mask) noexcept { return static_cast<unsigned>(__builtin_ctz(mask)); }
  static __m128i load(const char* p) noexcept { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
};

}  // namespace wirecall::json
