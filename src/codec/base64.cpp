// Base64, four characters for three bytes at a time; see base64.hpp for what is refused.
#include "codec/base64.hpp"

#include <array>
#include <cstdint>

namespace wirecall::codec {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint32_t kBad = 0x8000'0000;

constexpr std::array<std::uint32_t, 256> kSextets = [] {
  std::array<std::uint32_t, 256> sextets{};
  sextets.fill(kBad);
  for (std::uint32_t i = 0; i < kAlphabet.size(); ++i) sextets[static_cast<unsigned char>(kAlphabet[i])] = i;
  return sextets;
}();

static std::uint32_t sextet(char c) noexcept { return kSextets[static_cast<unsigned char>(c)]; }

char* base64_encode(std::span<const std::byte> data, char* to) noexcept {
  const std::byte* p = data.data();
  std::size_t left = data.size();
  for (; left >= 3; left -= 3, p += 3) {
    const std::uint32_t three = std::to_integer<std::uint32_t>(p[0]) << 16 | std::to_integer<std::uint32_t>(p[1]) << 8 |
                                std::to_integer<std::uint32_t>(p[2]);
    *to++ = kAlphabet[three >> 18];
    *to++ = kAlphabet[three >> 12 & 63];
    *to++ = kAlphabet[three >> 6 & 63];
    *to++ = kAlphabet[three & 63];
  }
  if (left != 0) {
    std::uint32_t three = std::to_integer<std::uint32_t>(p[0]) << 16;
    if (left == 2) three |= std::to_integer<std::uint32_t>(p[1]) << 8;
    *to++ = kAlphabet[three >> 18];
    *to++ = kAlphabet[three >> 12 & 63];
    *to++ = left == 2 ? kAlphabet[three >> 6 & 63] : '=';
    *to++ = '=';
  }
  return to;
}

std::size_t base64_decode(std::string_view text, std::byte* to) noexcept {
  if (text.size() % 4 != 0) return kNotBase64;
  if (text.empty()) return 0;
  std::size_t padding = 0;
  while (padding < 2 && text[text.size() - 1 - padding] == '=') ++padding;

  std::byte* const start = to;
  const char* p = text.data();
  const char* const last = p + text.size() - 4;
  std::uint32_t bad = 0;
  for (; p != last; p += 4) {
    const std::uint32_t three = sextet(p[0]) << 18 | sextet(p[1]) << 12 | sextet(p[2]) << 6 | sextet(p[3]);
    bad |= sextet(p[0]) | sextet(p[1]) | sextet(p[2]) | sextet(p[3]);
    *to++ = static_cast<std::byte>(three >> 16);
    *to++ = static_cast<std::byte>(three >> 8);
    *to++ = static_cast<std::byte>(three);
  }
  const std::uint32_t third = padding == 2 ? 0 : sextet(p[2]);
  const std::uint32_t fourth = padding != 0 ? 0 : sextet(p[3]);
  bad |= sextet(p[0]) | sextet(p[1]) | third | fourth;
  if ((bad & kBad) != 0) return kNotBase64;
  const std::uint32_t three = sextet(p[0]) << 18 | sextet(p[1]) << 12 | third << 6 | fourth;
  // The bits that padding leaves over must be zero, or two texts would mean the same bytes.
  if ((padding == 2 && (three & 0xFFFF) != 0) || (padding == 1 && (three & 0xFF) != 0)) return kNotBase64;
  *to++ = static_cast<std::byte>(three >> 16);
  if (padding < 2) *to++ = static_cast<std::byte>(three >> 8);
  if (padding < 1) *to++ = static_cast<std::byte>(three);
  return static_cast<std::size_t>(to - start);
}

}  // namespace wirecall::codec
