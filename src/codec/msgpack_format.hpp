// The bytes of MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md): how the head of a value is read
// and written. Nothing here looks at contents. At the end Format, by which what all binary encodings share is made for
// this one.
// Pure functions over memory of the caller.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "codec/binary_head.hpp"
#include "codec/codec_arena.hpp"

namespace wirecall::msgpack {

using codec::Head;
using codec::load_big_endian;
using codec::real;
using codec::store_big_endian;
using codec::Type;

/// The largest head: 64 bits behind a first byte.
inline constexpr std::size_t kHeadBytesMax = 9;

/// From 0xc0 on: nil, never used, false, true, bin, ext, float, uint, int, fixext, str, array, map.
inline constexpr std::array<std::uint8_t, 32> kHeadBytes{1, 0, 1, 1, 2, 3, 5, 3, 4, 6, 5, 9, 2, 3, 5, 9,
                                                         2, 3, 5, 9, 2, 2, 2, 2, 2, 2, 3, 5, 3, 5, 3, 5};

/// The bytes of the head that begins with `first`, or 0 for the one byte that begins none.
[[nodiscard]] constexpr std::size_t head_bytes(unsigned char first) noexcept {
  return first < 0xC0 || first >= 0xE0 ? 1 : kHeadBytes[first - 0xC0];
}

/// The head at `p`, all of whose bytes can be read and whose first is not 0xc1.
[[nodiscard]] inline Head read_head(const char* p) noexcept {
  const auto first = static_cast<unsigned char>(*p);
  const auto u8 = [&] { return std::uint64_t{static_cast<unsigned char>(p[1])}; };
  const auto u16 = [&] { return std::uint64_t{load_big_endian<std::uint16_t>(p + 1)}; };
  const auto u32 = [&] { return std::uint64_t{load_big_endian<std::uint32_t>(p + 1)}; };
  const auto u64 = [&] { return load_big_endian<std::uint64_t>(p + 1); };
  const auto head = [&](Type type, std::uint64_t value) {
    return Head{.type = type, .bytes = static_cast<std::uint32_t>(head_bytes(first)), .value = value};
  };
  const auto extension = [&](std::uint64_t size) {
    Head out = head(Type::extension, size);
    out.extension = static_cast<std::int8_t>(p[out.bytes - 1]);
    return out;
  };
  const auto integer = [&](std::int64_t value) {
    return head(value < 0 ? Type::negative : Type::positive, static_cast<std::uint64_t>(value));
  };
  if (first < 0x80) return head(Type::positive, first);
  if (first < 0x90) return head(Type::map, first & 0x0FU);
  if (first < 0xA0) return head(Type::array, first & 0x0FU);
  if (first < 0xC0) return head(Type::string, first & 0x1FU);
  if (first >= 0xE0) return integer(static_cast<std::int8_t>(first));
  switch (first) {
    case 0xC2:
    case 0xC3: return head(Type::boolean, first & 1U);
    case 0xC4: return head(Type::binary, u8());
    case 0xC5: return head(Type::binary, u16());
    case 0xC6: return head(Type::binary, u32());
    case 0xC7: return extension(u8());
    case 0xC8: return extension(u16());
    case 0xC9: return extension(u32());
    case 0xCA: return head(Type::float32, u32());
    case 0xCB: return head(Type::float64, u64());
    case 0xCC: return head(Type::positive, u8());
    case 0xCD: return head(Type::positive, u16());
    case 0xCE: return head(Type::positive, u32());
    case 0xCF: return head(Type::positive, u64());
    case 0xD0: return integer(static_cast<std::int8_t>(u8()));
    case 0xD1: return integer(static_cast<std::int16_t>(u16()));
    case 0xD2: return integer(static_cast<std::int32_t>(u32()));
    case 0xD3: return integer(static_cast<std::int64_t>(u64()));
    case 0xD4:
    case 0xD5:
    case 0xD6:
    case 0xD7:
    case 0xD8: return extension(std::uint64_t{1} << (first - 0xD4U));
    case 0xD9: return head(Type::string, u8());
    case 0xDA: return head(Type::string, u16());
    case 0xDB: return head(Type::string, u32());
    case 0xDC: return head(Type::array, u16());
    case 0xDD: return head(Type::array, u32());
    case 0xDE: return head(Type::map, u16());
    case 0xDF: return head(Type::map, u32());
    default: return head(Type::nil, 0);
  }
}

/// How much of what follows a head is its value's own content, not counting what an array or map holds.
[[nodiscard]] inline std::uint64_t content_bytes(const Head& head) noexcept {
  return head.type == Type::string || head.type == Type::binary || head.type == Type::extension ? head.value : 0;
}
/// How many values an array or map holds, keys included; 0 for others.
[[nodiscard]] inline std::uint64_t values_within(const Head& head) noexcept {
  if (head.type == Type::array) return head.value;
  return head.type == Type::map ? head.value * 2 : 0;
}

/// What a value is that consists of its first byte alone.
enum class OneByte : std::uint8_t {
  no,
  scalar,           ///< a small integer, nil, a boolean or the empty string
  empty_container,  ///< an array or map
};
inline constexpr std::array<OneByte, 256> kOneByte = [] {
  std::array<OneByte, 256> kinds{};
  for (std::size_t first = 0; first < kinds.size(); ++first) {
    const bool is_scalar = first < 0x80 || first == 0xA0 || first == 0xC0 || first == 0xC2 || first == 0xC3;
    const bool is_empty = first == 0x80 || first == 0x90;
    kinds[first] = is_scalar || first >= 0xE0 ? OneByte::scalar : is_empty ? OneByte::empty_container : OneByte::no;
  }
  return kinds;
}();

/// How many of the next `count` values, from `p` on, have one byte each; as many bytes as that can be read. Where no
/// array or map may begin, `last` is OneByte::scalar.
[[nodiscard]] inline std::uint64_t one_byte_values(const char* p, std::uint64_t count,
                                                   OneByte last = OneByte::empty_container) noexcept {
  constexpr std::uint64_t kHighBits = 0x8080'8080'8080'8080;
  std::uint64_t at = 0;
  while (at != count) {
    if (count - at >= 8) {
      std::uint64_t word;
      std::memcpy(&word, p + at, sizeof word);
      if ((word & kHighBits) == 0) {  // small integers from 0 on
        at += 8;
        continue;
      }
    }
    const OneByte kind = kOneByte[static_cast<unsigned char>(p[at])];
    if (kind == OneByte::no || kind > last) break;
    ++at;
  }
  return at;
}

/// The end of the value at `p`, which has been validated.
[[nodiscard]] inline const char* skip_value(const char* p) noexcept {
  for (std::uint64_t left = 1;;) {
    const Head head = read_head(p);
    p += head.bytes + content_bytes(head);
    left += values_within(head) - 1;
    if (left == 0) return p;
    const std::uint64_t passed = one_byte_values(p, left);
    p += passed;
    left -= passed;
    if (left == 0) return p;
  }
}

// Writing: each writes at most kHeadBytesMax bytes at `to`, in the shortest form, and returns where they end.

inline char* write_unsigned(char* to, std::uint64_t value) noexcept {
  if (value < 0x80) {
    *to = static_cast<char>(value);
    return to + 1;
  }
  if (value <= 0xFF) {
    *to = '\xCC';
    to[1] = static_cast<char>(value);
    return to + 2;
  }
  if (value <= 0xFFFF) {
    *to = '\xCD';
    return store_big_endian(to + 1, static_cast<std::uint16_t>(value));
  }
  *to = value <= 0xFFFF'FFFF ? '\xCE' : '\xCF';
  return value <= 0xFFFF'FFFF ? store_big_endian(to + 1, static_cast<std::uint32_t>(value))
                              : store_big_endian(to + 1, value);
}

inline char* write_integer(char* to, std::int64_t value) noexcept {
  if (value >= 0) return write_unsigned(to, static_cast<std::uint64_t>(value));
  if (value >= -32) {
    *to = static_cast<char>(value);
    return to + 1;
  }
  if (value >= INT8_MIN) {
    *to = '\xD0';
    to[1] = static_cast<char>(value);
    return to + 2;
  }
  if (value >= INT16_MIN) {
    *to = '\xD1';
    return store_big_endian(to + 1, static_cast<std::uint16_t>(value));
  }
  *to = value >= INT32_MIN ? '\xD2' : '\xD3';
  return value >= INT32_MIN ? store_big_endian(to + 1, static_cast<std::uint32_t>(value))
                            : store_big_endian(to + 1, static_cast<std::uint64_t>(value));
}

inline char* write_float64(char* to, double value) noexcept {
  *to = '\xCB';
  return store_big_endian(to + 1, std::bit_cast<std::uint64_t>(value));
}

inline char* write_float32(char* to, float value) noexcept {
  *to = '\xCA';
  return store_big_endian(to + 1, std::bit_cast<std::uint32_t>(value));
}

/// The first bytes of the forms of one type: a size within the first byte, up to `fixed_max`; of 8 bits, where there is
/// such a form; of 16 and of 32.
struct SizeForms {
  unsigned char fixed;
  unsigned char fixed_max;
  unsigned char one_byte;  ///< 0 for none
  unsigned char two_bytes;
  unsigned char four_bytes;
};
inline constexpr SizeForms kStringForms{0xA0, 31, 0xD9, 0xDA, 0xDB};
inline constexpr SizeForms kArrayForms{0x90, 15, 0, 0xDC, 0xDD};
inline constexpr SizeForms kMapForms{0x80, 15, 0, 0xDE, 0xDF};
inline constexpr SizeForms kBinaryForms{0, 0, 0xC4, 0xC5, 0xC6};
inline constexpr SizeForms kExtensionForms{0, 0, 0xC7, 0xC8, 0xC9};

inline char* write_size(char* to, const SizeForms& forms, std::uint32_t size) noexcept {
  if (forms.fixed != 0 && size <= forms.fixed_max) {
    *to = static_cast<char>(forms.fixed | size);
    return to + 1;
  }
  if (forms.one_byte != 0 && size <= 0xFF) {
    *to = static_cast<char>(forms.one_byte);
    to[1] = static_cast<char>(size);
    return to + 2;
  }
  *to = static_cast<char>(size <= 0xFFFF ? forms.two_bytes : forms.four_bytes);
  return size <= 0xFFFF ? store_big_endian(to + 1, static_cast<std::uint16_t>(size)) : store_big_endian(to + 1, size);
}

inline char* write_extension_head(char* to, std::int8_t type, std::uint32_t size) noexcept {
  if (size <= 16 && size != 0 && (size & (size - 1)) == 0) {  // 1, 2, 4, 8 or 16
    *to++ = static_cast<char>(0xD4 + std::countr_zero(size));
  } else {
    to = write_size(to, kExtensionForms, size);
  }
  *to = static_cast<char>(type);
  return to + 1;
}

// ---- for what binary encodings share ----

struct Format {
  static constexpr std::string_view kIntegerBeyond = "an integer is beyond 64 bits, which MessagePack cannot express";
  static constexpr std::string_view kNumberBeyond =
      "a number is beyond the range of a double, which MessagePack cannot express";
  static constexpr std::string_view kSizeBeyond =
      "a value has more than 4294967295 bytes or elements, which MessagePack cannot express";
  static constexpr std::uint64_t kSizeMax = UINT32_MAX;
  static constexpr std::size_t kHeadBytesMax = msgpack::kHeadBytesMax;
  static constexpr char kNil = '\xC0';
  static constexpr char kFalse = '\xC2';
  static constexpr char kTrue = '\xC3';
  static constexpr unsigned char kShortString = 0xA0;  ///< with its size, up to 23
  static constexpr std::size_t kShortStringMax = 31;
  static constexpr unsigned char kShortMap = 0x80;    ///< likewise, up to 15
  static constexpr unsigned char kShortArray = 0x90;  ///< likewise
  static constexpr std::size_t kShortCountMax = 15;   ///< of either
  static constexpr unsigned char kSmallIntegerEnd = 0x80;
  static constexpr unsigned char kFloat64 = 0xCB;

  /// Of bytes that have not been validated, up to `end`, at least one: how many the integer at `p` has, if it is one of
  /// 32 bits from 0 on; else 0.
  [[gnu::always_inline]] static std::size_t unsigned_at(const char* p, const char* end, std::uint64_t& value) noexcept {
    const auto first = static_cast<unsigned char>(*p);
    if (first < 0x80) {
      value = first;
      return 1;
    }
    const std::size_t bytes = first >= 0xCC && first <= 0xCE ? std::size_t{1} << (first - 0xCC) : 0;
    if (bytes == 0 || static_cast<std::size_t>(end - p) <= bytes) return 0;
    value = bytes == 1   ? static_cast<unsigned char>(p[1])
            : bytes == 2 ? load_big_endian<std::uint16_t>(p + 1)
                         : load_big_endian<std::uint32_t>(p + 1);
    return 1 + bytes;
  }

  /// What an extension of that type holds which is the one element of an array, and has at most 255 bytes; empty where
  /// something else is at `p`, which need not have been validated.
  static std::string_view only_extension(const char* p, const char* end, std::int8_t type) noexcept {
    const auto left = static_cast<std::size_t>(end - p);
    if (left < 4 || static_cast<unsigned char>(p[0]) != kShortArray + 1) return {};
    const auto form = static_cast<unsigned char>(p[1]);
    const bool has_size = form == 0xC7;
    std::size_t size = has_size ? static_cast<unsigned char>(p[2]) : 0;
    if (form >= 0xD4 && form <= 0xD8) size = std::size_t{1} << (form - 0xD4);
    const std::size_t head = has_size ? 4 : 3;
    if (size > left - head || static_cast<std::int8_t>(p[head - 1]) != type) return {};
    return {p + head, size};
  }

  // Reading, of what has been validated.
  static Head read_head(const char* p) noexcept { return msgpack::read_head(p); }
  static const char* skip_value(const char* p) noexcept { return msgpack::skip_value(p); }
  static bool is_nil(const char* p) noexcept { return *p == kNil; }
  /// The end of the value at `p`, which is no array or map.
  static const char* behind(const char* p, const Head& head) noexcept {
    return p + head.bytes + msgpack::content_bytes(head);
  }
  /// The same of a number.
  static const char* behind_number(const char* p, const Head& head) noexcept { return p + head.bytes; }
  /// What a string, bytes or an extension holds.
  static std::string_view content(const char* p, const Head& head, codec::Arena&) noexcept {
    return {p + head.bytes, static_cast<std::size_t>(head.value)};
  }
  /// Whether what stands at `p` ends an array or map of indefinite length.
  static bool at_end_mark(const char*) noexcept { return false; }
  /// Whether an array or map has ended, of which `left` elements or members are still to come; else one less.
  static bool at_end(const char*&, std::uint64_t& left) noexcept {
    if (left == 0) return true;
    --left;
    return false;
  }
  /// How many elements or members an array or map has whose first is at `p`.
  static std::uint64_t count(const char*, const Head& head) noexcept { return head.value; }
  /// How many of the next `count` values are integers whose byte is their number.
  static std::uint64_t small_integers(const char* p, std::uint64_t count) noexcept {
    std::uint64_t at = 0;
    while (at != count && static_cast<unsigned char>(p[at]) < 0x80) ++at;
    return at;
  }
  static std::string_view why_no_form(const Head&) noexcept { return {}; }  // of no value

  // Writing.
  static char* write_unsigned(char* to, std::uint64_t value) noexcept { return msgpack::write_unsigned(to, value); }
  static char* write_integer(char* to, std::int64_t value) noexcept { return msgpack::write_integer(to, value); }
  static char* write_float(char* to, double value) noexcept { return msgpack::write_float64(to, value); }
  static char* write_float(char* to, float value) noexcept { return msgpack::write_float32(to, value); }
  static char* write_string_head(char* to, std::uint64_t size) noexcept { return write_head(to, kStringForms, size); }
  static char* write_binary_head(char* to, std::uint64_t size) noexcept { return write_head(to, kBinaryForms, size); }
  static char* write_array_head(char* to, std::uint64_t size) noexcept { return write_head(to, kArrayForms, size); }
  static char* write_map_head(char* to, std::uint64_t size) noexcept { return write_head(to, kMapForms, size); }
  static char* write_extension_head(char* to, std::int8_t type, std::uint64_t size) noexcept {
    return msgpack::write_extension_head(to, type, static_cast<std::uint32_t>(size));
  }

 private:
  static char* write_head(char* to, const SizeForms& forms, std::uint64_t size) noexcept {
    return write_size(to, forms, static_cast<std::uint32_t>(size));
  }
};

}  // namespace wirecall::msgpack
