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
  /// For what is longer than a few words.
  [[gnu::noinline]] static const char* find_quote_or_backslash(const char* p) noexcept {
    static const bool has_avx2 = __builtin_cpu_supports("avx2");
    return has_avx2 ? find_quote_or_backslash_avx2(p) : ScalarOps::find_quote_or_backslash(p);
  }

 private:
  // The lowest set bit's number; `mask` is not 0. Unsigned, which saves the compiler a sign extension.
  static std::size_t first(std::uint32_t mask) noexcept { return static_cast<unsigned>(__builtin_ctz(mask)); }

  // Two blocks at a time, so that what is long costs little more than its bytes' way into the processor.
  [[gnu::target("avx2")]] static const char* find_special_avx2(const char* p) noexcept {
    for (;; p += 64) {
      const __m256i low = special_avx2(p);
      const __m256i high = special_avx2(p + 32);
      if (const __m256i any = _mm256_or_si256(low, high); _mm256_testz_si256(any, any) == 0)
        return p + first_of(low, high);
    }
  }
  [[gnu::target("avx2")]] static const char* find_quote_or_backslash_avx2(const char* p) noexcept {
    for (;; p += 64) {
      const __m256i low = quote_or_backslash_avx2(p);
      const __m256i high = quote_or_backslash_avx2(p + 32);
      if (const __m256i any = _mm256_or_si256(low, high); _mm256_testz_si256(any, any) == 0)
        return p + first_of(low, high);
    }
  }
  [[gnu::target("avx2")]] static __m256i load_avx2(const char* p) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  [[gnu::target("avx2")]] static __m256i quote_or_backslash_avx2(const char* p) noexcept {
    const __m256i block = load_avx2(p);
    return _mm256_or_si256(_mm256_cmpeq_epi8(block, _mm256_set1_epi8('"')),
                           _mm256_cmpeq_epi8(block, _mm256_set1_epi8('\\')));
  }
  [[gnu::target("avx2")]] static __m256i special_avx2(const char* p) noexcept {
    return _mm256_or_si256(_mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), load_avx2(p)), quote_or_backslash_avx2(p));
  }
  [[gnu::target("avx2")]] static int first_of(__m256i low, __m256i high) noexcept {
    const auto bits = [](int mask) { return std::uint64_t{static_cast<std::uint32_t>(mask)}; };
    return std::countr_zero(bits(_mm256_movemask_epi8(high)) << 32 | bits(_mm256_movemask_epi8(low)));
  }

  static __m128i load(const char* p) noexcept { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
};

}  // namespace wirecall::json
