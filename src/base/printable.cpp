#include "base/printable.hpp"

#include "base/utf8.hpp"

namespace wirecall {

std::size_t printable_bytes(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x20 || first == 0x7F) return 0;
  const std::size_t bytes = character_bytes(text.data(), text.data() + text.size());
  return bytes > 1 && is_invisible(code_point(text.data(), bytes)) ? 0 : bytes;
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
