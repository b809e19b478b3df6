// The masks of WebSocket frames (RFC 6455 section 5.3): putting one on, or taking it off, in place and by words; and
// where a client has its own from. Values; one thread.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace wirecall::framing {

/// Masks `bytes`, or takes the mask off. Four bytes in memory are the mask, of which the first is for the first byte.
/// Returns whether none of them has its high bit set then: so they are ASCII.
inline bool apply_mask(std::span<char> bytes, std::uint32_t mask) noexcept {
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  using Block [[gnu::vector_size(16)]] = std::uint64_t;  // of SIMD where there is any
  const std::uint64_t wide = mask | static_cast<std::uint64_t>(mask) << 32;
  char* p = bytes.data();
  std::size_t left = bytes.size();
  const Block wider = {wide, wide};
  Block all = {0, 0};
  for (; left >= 16; p += 16, left -= 16) {
    Block block;
    std::memcpy(&block, p, sizeof block);
    block ^= wider;
    std::memcpy(p, &block, sizeof block);
    all |= block;
  }
  std::uint64_t seen = all[0] | all[1];
  if (left >= 8) {
    std::uint64_t word;
    std::memcpy(&word, p, sizeof word);
    word ^= wide;
    std::memcpy(p, &word, sizeof word);
    seen |= word;
    p += 8;
    left -= 8;
  }
  if ((left & 4) != 0) {
    std::uint32_t value;
    std::memcpy(&value, p, sizeof value);
    value ^= mask;
    std::memcpy(p, &value, sizeof value);
    seen |= value;
    p += 4;
  }
  char last[4];
  std::memcpy(last, &mask, sizeof last);
  for (std::size_t i = 0; i < (left & 3); ++i) {
    p[i] = static_cast<char>(p[i] ^ last[i]);
    seen |= static_cast<unsigned char>(p[i]);
  }
  return (seen & kHighBits) == 0;
}

/// The mask as it goes on behind so many bytes.
[[nodiscard]] constexpr std::uint32_t mask_behind(std::uint32_t mask, std::size_t bytes) noexcept {
  const int bits = static_cast<int>(bytes % 4) * 8;
  return std::endian::native == std::endian::little ? std::rotr(mask, bits) : std::rotl(mask, bits);
}

/// Masks that nobody can guess, as a client has to take: else what it sends could be made to look like something else
/// to those between (RFC 6455 section 10.3). The system is asked once for many.
class WebSocketMasks {
 public:
  std::uint32_t next();

 private:
  std::array<std::uint32_t, 64> masks_;
  std::size_t left_ = 0;
};

}  // namespace wirecall::framing
