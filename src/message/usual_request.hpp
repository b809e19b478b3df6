// A request as it nearly always is, read in the one pass that checks it: JSON-RPC's four members, each at most once and
// in any order, a method of plain ASCII that is not wirecall's own, an id that is a number of 32 bits or a short string
// of plain ASCII. Whatever else comes is left to the walks and to NativeTranscoder::read (binary_walk.hpp,
// transcoder.hpp), which read these requests alike.
// Pure functions over memory of the caller.
#pragma once

#include "base/decimal.hpp"
#include "base/dotted_name.hpp"
#include "message/binary_walk.hpp"
#include "message/envelope_text.hpp"
#include "wirecall/message.hpp"

namespace wirecall::message {

/// Eight bytes from `p` on, those that are not in front of `end` as zeros; at least one is, and eight in front of `end`
/// can be read.
[[nodiscard, gnu::always_inline]] inline std::uint64_t load_until(const char* p, const char* end) noexcept {
  const auto left = static_cast<std::size_t>(end - p);
  std::uint64_t word;
  std::memcpy(&word, left >= sizeof word ? p : end - sizeof word, sizeof word);
  if (left >= sizeof word) [[likely]]
    return word;
  const std::size_t others = 8 * (sizeof word - left);  // bits
  return std::endian::native == std::endian::little ? word >> others : word << others;
}

/// Whether `size` bytes at `p`, which are in front of `end`, are ASCII of which JSON escapes none; eight in front of
/// `end` can be read.
[[nodiscard]] inline bool is_plain_ascii(const char* p, std::size_t size, const char* end) noexcept {
  if (size >= 8) return is_plain_ascii(p, size);
  if (size == 0) return true;
  constexpr std::uint64_t kBlanks = 0x2020'2020'2020'2020;
  const std::size_t others = 8 * (8 - size);  // bits
  const std::uint64_t word = load_until(p, end);
  return is_plain_ascii(std::endian::native == std::endian::little ? word << others | kBlanks >> (64 - others)
                                                                   : word >> others | kBlanks << (64 - others));
}

/// Writes the id at `p`, of which there is a byte at least, as JSON. 0 bytes where it is another than most are.
template <class Format>
[[nodiscard, gnu::always_inline]] inline std::size_t read_id(const char*& p, const char* end, IdText& text) noexcept {
  std::uint64_t number = 0;
  if (const std::size_t bytes = Format::unsigned_at(p, end, number); bytes != 0) [[likely]] {
    p += bytes;
    return static_cast<std::size_t>(write_decimal(text.data(), number) - text.data());
  }
  static_assert(Format::kShortStringMax + 2 <= std::tuple_size_v<IdText>);
  const std::size_t size = static_cast<unsigned char>(*p) - std::size_t{Format::kShortString};
  const bool is_plain =
      size <= Format::kShortStringMax && size < static_cast<std::size_t>(end - p) && is_plain_ascii(p + 1, size, end);
  if (!is_plain) return 0;
  text[0] = '"';
  std::memcpy(text.data() + 1, p + 1, size);
  text[size + 1] = '"';
  p += 1 + size;
  return size + 2;
}

/// Passes over params that are one packed value, of up to 255 bytes; false where they are something else.
template <class Format>
[[nodiscard, gnu::always_inline]] inline bool pass_packed(const char*& p, const char* end, Received& out) noexcept {
  const std::string_view packed = Format::only_extension(p, end, kPackedExtension);
  if (packed.empty()) return false;
  out.params_packed = true;
  out.packed = {packed.data(), packed.size()};
  p = packed.data() + packed.size();
  return true;
}

/// Reads `message`, which begins behind what tells its encoding, into `out`; `id` is what that has of it. `pass` passes
/// over a value and checks it, if it is an array or map, and else returns false. False where the message is something
/// else, or none at all: then `out` means nothing.
template <class Format, class Pass>
[[nodiscard, gnu::always_inline]] inline bool read_usual_request(std::string_view message, IdText& id, Received& out,
                                                                 const Pass& pass) noexcept {
  constexpr std::array<unsigned char, 4> kVersion{Format::kShortString | 3, '2', '.', '0'};
  constexpr KeyWord kJsonrpc = key_word<Format>("jsonrpc");
  constexpr KeyWord kMethod = key_word<Format>("method");
  constexpr KeyWord kParams = key_word<Format>("params");
  constexpr KeyWord kId = key_word<Format>("id");
  constexpr std::size_t kBytesMin = 21;  // {"jsonrpc":"2.0","method":""}
  if (message.size() < kBytesMin) return false;
  const char* p = message.data();
  const char* const end = p + message.size();
  std::size_t count = static_cast<unsigned char>(*p++) - std::size_t{Format::kShortMap};
  if (count > 4) return false;
  std::uint32_t present = 0;
  out.integer_count = 0;
  out.params_packed = false;
  const auto add = [&](Member member, const char* data, std::size_t size) {
    out.spans[static_cast<std::size_t>(member)] = {data, size};
    const bool is_new = (present & bit_of(member)) == 0;
    present |= bit_of(member);
    return is_new;
  };
  // Of which there is at least the head.
  const auto read_method = [&]() __attribute__((always_inline)) {
    const std::size_t size = static_cast<unsigned char>(*p) - std::size_t{Format::kShortString};
    if (size > Format::kShortStringMax || size >= static_cast<std::size_t>(end - p)) return false;
    const std::string_view name{p + 1, size};
    p += 1 + size;
    // Received::method() is what is between its quotes, of which nobody sees any where nothing is escaped.
    return is_plain_ascii(name.data(), size) && !is_reserved(name) && add(Member::method, name.data() - 1, size + 2);
  };
  // Nearly all begin with these two.
  constexpr std::string_view kBegin = EnvelopeText<Format, "jsonrpc", "2.0", "method">::view;
  static_assert(kBegin.size() + 2 == kBytesMin);
  if (count >= 2 && std::memcmp(p, kBegin.data(), kBegin.size()) == 0) [[likely]] {
    p += kBegin.size();
    count -= 2;
    static_cast<void>(add(Member::jsonrpc, "\"2.0\"", 5));
    if (!read_method()) return false;
  }
  for (; count != 0; --count) {
    const auto left = static_cast<std::size_t>(end - p);
    if (left < 4) return false;  // which the shortest has
    const std::uint64_t word = load_until(p, end);
    bool is_usual = true;
    if ((word & kId.mask) == kId.word) {
      p += 3;
      const std::size_t size = read_id<Format>(p, end, id);
      is_usual = size != 0 && add(Member::id, id.data(), size);
    } else if (left < 8) {
      return false;
    } else if ((word & kParams.mask) == kParams.word) {
      p += 7;
      const char* const params = p;
      is_usual = (pass_integers<Format>(p, end, out) || pass_packed<Format>(p, end, out) || pass(p)) &&
                 add(Member::params, params, static_cast<std::size_t>(p - params));
    } else if ((word & kMethod.mask) == kMethod.word) {
      p += 7;
      is_usual = read_method();
    } else if (word == kJsonrpc.word) {
      if (left < 8 + sizeof kVersion || std::memcmp(p + 8, kVersion.data(), sizeof kVersion) != 0) return false;
      is_usual = add(Member::jsonrpc, "\"2.0\"", 5);
      p += 8 + sizeof kVersion;
    } else {
      return false;
    }
    if (!is_usual) return false;
  }
  constexpr std::uint32_t kRequest = bit_of(Member::jsonrpc) | bit_of(Member::method);
  if (p != end || (present & kRequest) != kRequest) return false;
  out.kind = (present & bit_of(Member::id)) != 0 ? MessageKind::request : MessageKind::notification;
  out.fault = Fault::none;
  out.method_escaped = false;
  out.integers_named = false;
  out.present = present;
  out.batch_size = 0;
  return true;
}

}  // namespace wirecall::message
