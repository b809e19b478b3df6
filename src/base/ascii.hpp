// Classes of ASCII characters that formats here share. Pure; other bytes are of none.
#pragma once

#include <string_view>

namespace wirecall {

/// What RFC 8259 calls white space, as HTTP's and the command's inputs do: space, tab, line feed, carriage return.
[[nodiscard]] constexpr bool is_space(char c) noexcept { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
[[nodiscard]] constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool is_hex(char c) noexcept { return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }

/// `text` without the white space at its ends.
[[nodiscard]] constexpr std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace wirecall
