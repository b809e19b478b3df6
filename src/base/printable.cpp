#include "base/printable.hpp"

#include <cstdint>

namespace wirecall {

std::size_t printable_bytes(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return 0;
  std::uint32_t character = first & (0xFFU >> (bytes + 1));
  for (const char c : text.substr(1, bytes - 1)) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0U) != 0x80U) return 0;
    character = (character << 6) | (byte & 0x3FU);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0xA0, 0x800, 0x10000};  // U+0080 to U+009F are controls
  const bool surrogate = character >= 0xD800 && character <= 0xDFFF;
  return character >= kSmallest[bytes] && character <= 0x10FFFF && !surrogate ? bytes : 0;
}

std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result;
  while (!text.empty()) {
    std::size_t bytes = printable_bytes(text);
    if (bytes != 0) {
      result += text.substr(0, bytes);
    } else {
      bytes = 1;
      const auto byte = static_cast<unsigned char>(text[0]);
      result += "\\x";
      result += kDigits[byte >> 4];
      result += kDigits[byte & 15U];
    }
    text.remove_prefix(bytes);
  }
  return result;
}

}  // namespace wirecall
