// See session_keys.hpp.
#include "broker/session_keys.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <random>
#include <system_error>

#include "rpc/access.hpp"

namespace wirecall::broker {
namespace {

constexpr std::size_t kDigits = 16;  // of each of the three numbers that a secret consists of

std::string hexadecimal(std::uint64_t number) {
  std::array<char, kDigits> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + kDigits, number, 16).ptr;
  const auto size = static_cast<std::size_t>(end - digits.data());
  return std::string(kDigits - size, '0') + std::string{digits.data(), size};
}

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  void round() noexcept {
    v0 += v1;
    v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  }
  void absorb(std::uint64_t word) noexcept {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

std::uint64_t little_endian(const char* bytes, std::size_t size) noexcept {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < size; ++i) word |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << 8 * i;
  return word;
}

}  // namespace

std::uint64_t sip_hash(std::uint64_t key0, std::uint64_t key1, std::string_view text) noexcept {
  SipState state{key0 ^ 0x736f6d6570736575, key1 ^ 0x646f72616e646f6d, key0 ^ 0x6c7967656e657261,
                 key1 ^ 0x7465646279746573};
  std::size_t at = 0;
  for (; text.size() - at >= 8; at += 8) state.absorb(little_endian(text.data() + at, 8));
  state.absorb(std::uint64_t{text.size() & 0xFF} << 56 | little_endian(text.data() + at, text.size() - at));
  state.v2 ^= 0xFF;
  for (int i = 0; i < 4; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

SessionKeys::SessionKeys() : key_{} {
  std::random_device random;
  for (std::uint64_t& word : key_) word = std::uint64_t{random()} << 32 | random();
}

std::uint64_t SessionKeys::begin(std::chrono::nanoseconds now) noexcept {
  const auto milliseconds = static_cast<std::uint64_t>(std::chrono::floor<std::chrono::milliseconds>(now).count());
  last_ = std::max(last_ + 1, milliseconds << kCountBits);
  return last_;
}

std::chrono::nanoseconds SessionKeys::began(std::uint64_t number) noexcept {
  return std::chrono::milliseconds{static_cast<std::int64_t>(number >> kCountBits)};
}

std::string SessionKeys::secret_of(std::uint64_t number, std::string_view principal) const {
  const std::string begin = hexadecimal(number);
  const std::string text = begin + std::string{principal};
  return begin + hexadecimal(sip_hash(key_[0], key_[1], text)) + hexadecimal(sip_hash(key_[2], key_[3], text));
}

std::optional<std::uint64_t> SessionKeys::find(std::string_view secret, std::string_view principal) const {
  if (secret.size() != 3 * kDigits) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(secret.data(), secret.data() + kDigits, number, 16);
  if (error != std::errc{} || end != secret.data() + kDigits) return std::nullopt;
  if (!rpc::same_secret(secret_of(number, principal), secret)) return std::nullopt;
  return number;
}

}  // namespace wirecall::broker
