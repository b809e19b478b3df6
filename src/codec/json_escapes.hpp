// The escapes of two characters that JSON strings have (RFC 8259 section 7), as tables for both directions. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace wirecall::json {

constexpr std::array<char, 256> escape_table(std::string_view from, std::string_view to) noexcept {
  std::array<char, 256> table{};
  for (std::size_t i = 0; i < from.size(); ++i) table[static_cast<unsigned char>(from[i])] = to[i];
  return table;
}

inline constexpr std::string_view kEscapeLetters = "\"\\/bfnrt";
inline constexpr std::string_view kEscapedBytes = "\"\\/\b\f\n\r\t";
/// The byte that the character behind a backslash stands for, and the other way round; 0 for none.
inline constexpr std::array<char, 256> kByteOfLetter = escape_table(kEscapeLetters, kEscapedBytes);
inline constexpr std::array<char, 256> kLetterOfByte = escape_table(kEscapedBytes, kEscapeLetters);

}  // namespace wirecall::json
