// SHA-1 (RFC 3174), of short texts: what the handshake of WebSocket is answered with. It hides nothing and proves
// nothing there; whoever needs a hash for that takes another one. Pure.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace wirecall {

namespace detail {

inline void add_sha1_block(std::array<std::uint32_t, 5>& hash, std::string_view block) noexcept {
  std::array<std::uint32_t, 80> words{};
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 4; ++j) words[i] = words[i] << 8 | static_cast<unsigned char>(block[4 * i + j]);
  }
  for (std::size_t i = 16; i < words.size(); ++i)
    words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  auto [a, b, c, d, e] = hash;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::uint32_t mixed = b ^ c ^ d;
    std::uint32_t constant = 0xCA62C1D6;
    if (i < 20) {
      mixed = (b & c) | (~b & d);
      constant = 0x5A827999;
    } else if (i < 40) {
      constant = 0x6ED9EBA1;
    } else if (i < 60) {
      mixed = (b & c) | (b & d) | (c & d);
      constant = 0x8F1BBCDC;
    }
    const std::uint32_t next = std::rotl(a, 5) + mixed + e + words[i] + constant;
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  hash = {hash[0] + a, hash[1] + b, hash[2] + c, hash[3] + d, hash[4] + e};
}

}  // namespace detail

[[nodiscard]] inline std::array<std::byte, 20> sha1(std::string_view text) {
  constexpr std::size_t kBlockBytes = 64;
  std::string padded{text};
  padded.push_back('\x80');
  padded.append((2 * kBlockBytes - 8 - padded.size() % kBlockBytes) % kBlockBytes, '\0');
  for (int shift = 56; shift >= 0; shift -= 8)
    padded.push_back(static_cast<char>(static_cast<std::uint64_t>(text.size()) * 8 >> shift));
  std::array<std::uint32_t, 5> hash{0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  for (std::size_t at = 0; at < padded.size(); at += kBlockBytes)
    detail::add_sha1_block(hash, std::string_view{padded}.substr(at, kBlockBytes));
  std::array<std::byte, 20> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(hash[i / 4] >> (24 - 8 * (i % 4)));
  return bytes;
}

}  // namespace wirecall
