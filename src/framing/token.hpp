// Classes of bytes in header fields (RFC 9110 section 5.6), for the framings that have such fields. Bytes and tables,
// no grammar.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/ascii.hpp"

namespace wirecall::framing {

namespace detail {

inline constexpr std::uint8_t kToken = 1;      // tchar: what names and methods consist of
inline constexpr std::uint8_t kFieldText = 2;  // what may stand in a field's value: field-vchar, SP and HTAB
inline constexpr std::uint8_t kTarget = 4;     // what may stand in a request's target: visible, and no byte over 126

inline constexpr std::array<std::uint8_t, 256> kByteClasses = [] {
  std::array<std::uint8_t, 256> classes{};
  for (int c = 0; c < 256; ++c) {
    const bool visible = c > 0x20 && c < 0x7F;
    const bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    const bool token = letter || (visible && std::string_view{"!#$%&'*+-.^_`|~"}.contains(static_cast<char>(c)));
    const bool text = c == ' ' || c == '\t' || visible || c >= 0x80;
    classes[static_cast<std::size_t>(c)] =
        static_cast<std::uint8_t>((token ? kToken : 0) | (text ? kFieldText : 0) | (visible ? kTarget : 0));
  }
  return classes;
}();

inline bool is_of(char c, std::uint8_t classes) noexcept {
  return (kByteClasses[static_cast<unsigned char>(c)] & classes) != 0;
}

}  // namespace detail

/// Of a Content-Length: above every limit, and still far from wrapping around.
inline constexpr std::size_t kLengthMax = std::size_t{1} << 60;

inline bool is_token(char c) noexcept { return detail::is_of(c, detail::kToken); }
inline bool is_field_text(char c) noexcept { return detail::is_of(c, detail::kFieldText); }
inline bool is_target(char c) noexcept { return detail::is_of(c, detail::kTarget); }
inline char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

/// -1 for what is none.
inline int hex_digit(char c) noexcept {
  if (is_digit(c)) return c - '0';
  const char letter = lower(c);
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/// Whether `text` is `lower_case` in any case of its letters.
inline bool same_word(std::string_view text, std::string_view lower_case) noexcept {
  if (text.size() != lower_case.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (lower(text[i]) != lower_case[i]) return false;
  }
  return true;
}

}  // namespace wirecall::framing
