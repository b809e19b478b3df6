// The validating JSON scanner: one pass over the bytes of a value that finds its end and refuses everything that
// RFC 8259 does, invalid UTF-8 and lone surrogates included. It decodes nothing (JsonReader does) and allocates
// nothing.
//
// Contract with the caller: behind the text kPaddingBytes are readable and the first of them is zero. A zero byte is
// valid nowhere in JSON, so it ends every loop without a bounds check. Each function takes the place where its token
// begins and returns the position behind it, or null after setting `bad` to the first byte with which no JSON text can
// continue. That byte may be the zero behind the text: then the text is incomplete, not wrong.
#pragma once

#include <cstring>

#include "base/ascii.hpp"
#include "codec/json_escapes.hpp"
#include "codec/scan_ops.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::json {

/// Validates the first value in `text`; leading white space is allowed. `offset` counts from the start of `text`.
[[nodiscard]] Scan scan(std::string_view text, std::uint32_t depth_max) noexcept;
/// The same without SIMD, to compare with.
[[nodiscard]] Scan scan_scalar(std::string_view text, std::uint32_t depth_max) noexcept;

template <class Ops>
class Scanner {
 public:
  explicit Scanner(std::uint32_t depth_max) noexcept : depth_max_(depth_max) {}

  /// Where and why the last function that returned null gave up.
  const char* bad = nullptr;
  bool too_deep = false;

  [[nodiscard, gnu::always_inline]] static const char* skip_space(const char* p) noexcept {
    if (*p == ' ') ++p;  // one blank behind a colon or comma is common
    if (static_cast<unsigned char>(*p) > ' ') [[likely]]
      return p;
    return skip_more_space(p);
  }

  /// `p` is behind the opening quote. `escaped` is set, never cleared, when the string holds a backslash.
  [[nodiscard, gnu::always_inline]] const char* string(const char* p, bool& escaped) noexcept {
    p = Ops::find_special(p);
    if (*p == '"') [[likely]]
      return p + 1;
    return string_rest(p, escaped);
  }

  [[nodiscard, gnu::always_inline]] const char* number(const char* p) noexcept {
    if (*p == '-') ++p;
    const char* const digits = p;
    p = Ops::skip_digits(p);
    if (p == digits) [[unlikely]]
      return fail(p);
    if (*digits == '0') p = digits + 1;  // what follows a leading zero is not part of the number
    if (*p == '.' || (*p | 0x20) == 'e') [[unlikely]]
      return fraction(p);
    return p;
  }

  /// One value of any kind, `depth` levels of arrays and objects already being open around it.
  [[nodiscard]] const char* value(const char* p, std::uint32_t depth) noexcept {
    return *p == '[' || *p == '{' ? container(p, depth) : scalar(p);
  }

  /// Params within an object that are one to `count_max` integers from 0 to 999,999,999, which is what most are: in an
  /// array, or in an object under names without escapes, which go to `names`. Their number goes to `count`. Null, and
  /// nothing said, when they are anything else.
  template <bool kNamed, class Span>
  [[nodiscard, gnu::always_inline]] const char* short_integers(const char* p, std::uint32_t* out, Span* names,
                                                               std::size_t count_max, std::uint8_t& count) noexcept {
    if (depth_max_ < 2) [[unlikely]]
      return nullptr;
    for (std::size_t i = 0; i < count_max;) {
      if (*++p == ' ') ++p;
      if constexpr (kNamed) {
        if (*p != '"') return nullptr;
        const char* const name = p + 1;
        p = Ops::find_special(name);
        if (*p != '"' || p[1] != ':') return nullptr;
        names[i] = {name, static_cast<std::size_t>(p - name)};
        p += 2;
        if (*p == ' ') ++p;
      }
      const char* const digits = p;
      std::uint32_t value = static_cast<unsigned char>(*p) - std::uint32_t{'0'};
      if (value > 9) return nullptr;
      ++p;
      if (value != 0) {
        for (std::uint32_t digit; (digit = static_cast<unsigned char>(*p) - std::uint32_t{'0'}) <= 9; ++p)
          value = value * 10 + digit;
      }
      if (p - digits > 9) return nullptr;
      out[i++] = value;
      if (*p == (kNamed ? '}' : ']')) {
        count = static_cast<std::uint8_t>(i);
        return p + 1;
      }
      if (*p != ',') return nullptr;
    }
    return nullptr;
  }

  const char* fail(const char* at) noexcept {
    bad = at;
    return nullptr;
  }
  const char* fail_deep(const char* at) noexcept {
    too_deep = true;
    return fail(at);
  }

 private:
  [[gnu::noinline]] static const char* skip_more_space(const char* p) noexcept {
    while (is_space(*p)) ++p;
    return p;
  }

  const char* word(const char* p, const char* expected, std::size_t size) noexcept {
    if (std::memcmp(p, expected, size) == 0) [[likely]]
      return p + size;
    while (*p == *expected) ++p, ++expected;
    return fail(p);
  }

  // The rest of a string from its first byte that needs a look.
  [[gnu::noinline]] const char* string_rest(const char* p, bool& escaped) noexcept {
    for (;;) {
      if (*p == '\\') {
        escaped = true;
        p = escape(p);
      } else if (static_cast<unsigned char>(*p) >= 0x80) {
        p = utf8(p);
      } else {
        return fail(p);
      }
      if (p == nullptr) return nullptr;
      p = Ops::find_special(p);
      if (*p == '"') return p + 1;
    }
  }

  [[gnu::always_inline]] const char* scalar(const char* p) noexcept {
    if (*p == '"') {
      bool escaped = false;
      return string(p + 1, escaped);
    }
    if (*p <= '9') return number(p);  // which refuses what is none
    return literal(p);
  }

  // What follows a number's integer part.
  [[gnu::noinline]] const char* fraction(const char* p) noexcept {
    if (*p == '.') {
      const char* digits = ++p;
      p = Ops::skip_digits(p);
      if (p == digits) return fail(p);
    }
    if (*p == 'e' || *p == 'E') {
      ++p;
      if (*p == '+' || *p == '-') ++p;
      const char* digits = p;
      p = Ops::skip_digits(p);
      if (p == digits) return fail(p);
    }
    return p;
  }

  [[gnu::noinline]] const char* literal(const char* p) noexcept {
    switch (*p) {
      case 't': return word(p, "true", 4);
      case 'f': return word(p, "false", 5);
      case 'n': return word(p, "null", 4);
      default: return fail(p);
    }
  }

  // An array or object with all it holds, without recursion: one bit a level says what is open around the innermost.
  [[gnu::noinline]] const char* container(const char* p, std::uint32_t depth) noexcept {
    std::uint64_t outer_is_object[kDepthMax / 64 + 1];  // bit i: what level i is; set when level i + 1 opens
    std::uint32_t level = depth;
    bool in_object = false;
    for (;;) {
      // A value begins at p.
      if (*p == '[' || *p == '{') {
        if (level >= depth_max_) [[unlikely]]
          return fail_deep(p);
        if (level != depth) {
          std::uint64_t& word = outer_is_object[level / 64];
          const std::uint64_t bit = std::uint64_t{1} << level % 64;
          if (level % 64 == 0 || level == depth + 1) word = 0;  // the first bit of this word that is set
          word = in_object ? word | bit : word & ~bit;
        }
        in_object = *p == '{';
        ++level;
        p = skip_space(p + 1);
        if (*p != (in_object ? '}' : ']')) {
          if (in_object) {
            p = key(p);
            if (p == nullptr) return nullptr;
          }
          continue;
        }
      } else {
        p = scalar(p);
        if (p == nullptr) return nullptr;
        p = skip_space(p);
      }
      // A value ended, and p is at what follows it.
      for (;;) {
        if (*p == ',') {
          p = skip_space(p + 1);
          if (in_object) {
            p = key(p);
            if (p == nullptr) return nullptr;
          }
          break;
        }
        if (*p != (in_object ? '}' : ']')) [[unlikely]]
          return fail(p);
        ++p;
        if (--level == depth) return p;
        in_object = (outer_is_object[level / 64] >> level % 64) & 1;
        p = skip_space(p);
      }
    }
  }

  // A member's name with its colon; returns where the member's value begins.
  const char* key(const char* p) noexcept {
    if (*p != '"') return fail(p);
    bool escaped = false;
    p = string(p + 1, escaped);
    if (p == nullptr) return nullptr;
    p = skip_space(p);
    if (*p != ':') return fail(p);
    return skip_space(p + 1);
  }

  static int hex(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  }

  // `p` is at the backslash.
  const char* escape(const char* p) noexcept {
    if (kByteOfLetter[static_cast<unsigned char>(p[1])] != 0) return p + 2;
    if (p[1] != 'u') return fail(p + 1);
    p += 2;
    const int first = hex(p[0]);
    if (first < 0) return fail(p);
    const int second = hex(p[1]);
    if (second < 0 || (first == 0xD && second >= 0xC)) return fail(p + 1);  // the second half of a pair, alone
    if (hex(p[2]) < 0) return fail(p + 2);
    if (hex(p[3]) < 0) return fail(p + 3);
    if (first != 0xD || second < 0x8) return p + 4;
    // The first half of a pair: the second must follow.
    p += 4;
    if (p[0] != '\\') return fail(p);
    if (p[1] != 'u') return fail(p + 1);
    if (hex(p[2]) != 0xD) return fail(p + 2);
    if (hex(p[3]) < 0xC) return fail(p + 3);
    if (hex(p[4]) < 0) return fail(p + 4);
    if (hex(p[5]) < 0) return fail(p + 5);
    return p + 6;
  }

  // A run of characters beyond ASCII (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF).
  const char* utf8(const char* text) noexcept {
    const auto* p = reinterpret_cast<const unsigned char*>(text);
    const auto at = [](const unsigned char* byte) { return reinterpret_cast<const char*>(byte); };
    do {
      const unsigned char lead = *p;
      unsigned char low = 0x80;
      unsigned char high = 0xBF;
      int more;
      if (lead >= 0xC2 && lead <= 0xDF) {
        more = 1;
      } else if (lead >= 0xE0 && lead <= 0xEF) {
        more = 2;
        if (lead == 0xE0) low = 0xA0;
        if (lead == 0xED) high = 0x9F;
      } else if (lead >= 0xF0 && lead <= 0xF4) {
        more = 3;
        if (lead == 0xF0) low = 0x90;
        if (lead == 0xF4) high = 0x8F;
      } else {
        return fail(at(p));
      }
      ++p;
      if (*p < low || *p > high) return fail(at(p));
      ++p;
      for (; more > 1; --more, ++p) {
        if (*p < 0x80 || *p > 0xBF) return fail(at(p));
      }
    } while (*p >= 0x80);
    return at(p);
  }

  std::uint32_t depth_max_;
};

}  // namespace wirecall::json
