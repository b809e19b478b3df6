// The members of an envelope as they nearly always are, for the walks over messages in MessagePack and CBOR
// (msgpack_walk.hpp, cbor_walk.hpp): JSON-RPC's names, known by comparing eight bytes, a method of plain ASCII, params
// that are a few small integers. Whatever is unusual is left to the walks.
// Pure functions over memory of the caller.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "message/envelope_members.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::message {

/// The most bytes that a name of JSON-RPC and its head have.
inline constexpr std::size_t kKnownKeyBytesMax = 8;

struct KnownKey {
  Member member = Member::id;
  std::uint8_t bytes = 0;  ///< of the name and its head; 0 for a name that is none of these
};

/// A name and its head as the first eight bytes of a member.
struct KeyWord {
  std::uint64_t word;
  std::uint64_t mask;
};
template <class Format>
consteval KeyWord key_word(std::string_view name) {
  std::array<unsigned char, 8> bytes{static_cast<unsigned char>(Format::kShortString | name.size())};
  std::array<unsigned char, 8> mask{0xFF};
  for (std::size_t i = 0; i < name.size(); ++i) {
    bytes[i + 1] = static_cast<unsigned char>(name[i]);
    mask[i + 1] = 0xFF;
  }
  return {std::bit_cast<std::uint64_t>(bytes), std::bit_cast<std::uint64_t>(mask)};
}

/// The name of JSON-RPC at `p`, where eight bytes can be read.
template <class Format>
[[nodiscard, gnu::always_inline]] inline KnownKey known_key(const char* p) noexcept {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  constexpr KeyWord kJsonrpc = key_word<Format>("jsonrpc");
  constexpr KeyWord kMethod = key_word<Format>("method");
  constexpr KeyWord kParams = key_word<Format>("params");
  constexpr KeyWord kId = key_word<Format>("id");
  constexpr KeyWord kResult = key_word<Format>("result");
  if (word == kJsonrpc.word) return {Member::jsonrpc, 8};
  if ((word & kId.mask) == kId.word) return {Member::id, 3};
  word &= kMethod.mask;  // the others are as long
  if (word == kMethod.word) return {Member::method, 7};
  if (word == kParams.word) return {Member::params, 7};
  if (word == kResult.word) return {Member::result, 7};
  return {};
}

/// Whether eight bytes are ASCII of which JSON escapes none.
[[nodiscard]] inline bool is_plain_ascii(std::uint64_t word) noexcept {
  constexpr std::uint64_t kEachByte = 0x0101'0101'0101'0101;
  constexpr std::uint64_t kEachHighBit = 0x8080'8080'8080'8080;
  const std::uint64_t quote = word ^ (kEachByte * '"');
  const std::uint64_t backslash = word ^ (kEachByte * '\\');
  const std::uint64_t low = (word - kEachByte * 0x20) | (quote - kEachByte) | (backslash - kEachByte);
  return ((low | word) & kEachHighBit) == 0;
}
/// Whether `size` bytes at `p` are; eight in front of them can be read.
[[nodiscard]] inline bool is_plain_ascii(const char* p, std::size_t size) noexcept {
  constexpr std::uint64_t kBlanks = 0x2020'2020'2020'2020;
  std::uint64_t word;
  for (; size >= 8; size -= 8, p += 8) {
    std::memcpy(&word, p, sizeof word);
    if (!is_plain_ascii(word)) return false;
  }
  if (size == 0) return true;
  const std::size_t others = 8 * (8 - size);  // bits
  std::memcpy(&word, p + size - 8, sizeof word);
  if constexpr (std::endian::native == std::endian::little) {
    return is_plain_ascii(word >> others | kBlanks << (64 - others));
  } else {
    return is_plain_ascii(word << others | kBlanks >> (64 - others));
  }
}

/// An array of at most kIntegersKept integers from 0 to 999,999,999, which `kept` (EnvelopeMembers or Received) keeps.
/// False: something else, and `p` is where it was.
template <class Format, class Kept>
[[nodiscard]] inline bool pass_integers(const char*& p, const char* end, Kept& kept) noexcept {
  constexpr std::uint64_t kIntegerMax = 999'999'999;
  const std::size_t count = static_cast<unsigned char>(*p) - std::size_t{Format::kShortArray};
  if (count > kIntegersKept) return false;
  const char* at = p + 1;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t value = 0;
    if (at == end) return false;
    const std::size_t bytes = Format::unsigned_at(at, end, value);
    if (bytes == 0 || value > kIntegerMax) return false;
    kept.integers[i] = static_cast<std::uint32_t>(value);
    at += bytes;
  }
  kept.integer_count = static_cast<std::uint8_t>(count);
  p = at;
  return true;
}

/// Passes one member of JSON-RPC, and remembers it. `pass` passes over any value. False where it is another member, or
/// where there are too few bytes to tell: nothing has been passed then.
template <class Format, class Pass>
[[nodiscard, gnu::always_inline]] inline bool pass_known_member(const char*& p, const char* const end,
                                                                std::uint32_t levels, EnvelopeMembers& members,
                                                                ScanStatus& status, const Pass& pass) noexcept {
  constexpr std::array<unsigned char, 3> kId{Format::kShortString | 2, 'i', 'd'};
  constexpr std::array<unsigned char, 4> kVersion{Format::kShortString | 3, '2', '.', '0'};
  const auto left = static_cast<std::size_t>(end - p);
  KnownKey key;
  if (left > kKnownKeyBytesMax + sizeof kVersion) {
    key = known_key<Format>(p);
  } else if (left > kId.size() && std::memcmp(p, kId.data(), kId.size()) == 0) {  // the last, most often
    key.bytes = kId.size();
  }
  if (key.bytes == 0) return false;
  const char* const name = p + 1;
  const char* const value = p + key.bytes;
  p = value;
  bool is_usual = true;
  status = ScanStatus::complete;
  if (key.member == Member::jsonrpc) {
    is_usual = std::memcmp(value, kVersion.data(), sizeof kVersion) == 0;
    if (is_usual) p += sizeof kVersion;
  } else if (key.member == Member::method) {
    const std::size_t size = static_cast<unsigned char>(*value) - std::size_t{Format::kShortString};
    is_usual = size <= Format::kShortStringMax && size < static_cast<std::size_t>(end - value) &&
               is_plain_ascii(value + 1, size);
    if (is_usual) p += 1 + size;
  } else if (key.member == Member::params && levels != 0 && pass_integers<Format>(p, end, members)) {
  } else {
    status = pass(p);
  }
  if (!is_usual) {
    status = pass(p);
    members.add_unusual();
  }
  members.add_known(key.member, {name, key.bytes - std::size_t{1}}, {value, static_cast<std::size_t>(p - value)});
  return true;
}

}  // namespace wirecall::message
