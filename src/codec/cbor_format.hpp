// The bytes of CBOR (RFC 8949): how the head of a value is read and written, with the tags in front of it. Of tags, 0
// to 3 have a meaning, and two of our own that stand for extensions; all others are passed over. What is written is in
// preferred serialization (section 4.1), of definite length. At the end Format, by which what all binary encodings
// share is made for this one.
// Pure functions over memory of the caller.
#pragma once

#include <string_view>

#include "codec/binary_head.hpp"
#include "codec/codec_arena.hpp"

namespace wirecall::cbor {

using codec::Head;
using codec::kIndefinite;
using codec::Type;

/// The first three bits of a head.
enum class Major : std::uint8_t { positive, negative, binary, string, array, map, tag, other };

/// The largest head of a value that is written: a tag of 32 bits, and a size of 64.
inline constexpr std::size_t kHeadBytesMax = 14;
/// More in front of one value are refused, as too deep.
inline constexpr std::size_t kTagsMax = 16;
/// In front of a string: a time of RFC 3339, the tag 0.
inline constexpr char kTimeTag = '\xC0';
/// In front of bytes: an extension, whose type is the last of its four bytes.
inline constexpr std::uint64_t kExtensionTag = 0x7763'0000;
/// A message begins with it: the tag 55799, which says that this is CBOR, and means nothing (section 3.4.6).
inline constexpr std::string_view kMessageTag = "\xD9\xD9\xF7";

inline constexpr unsigned char kBreak = 0xFF;
inline constexpr unsigned char kInfo = 0x1F;  ///< of a first byte, what is not its Major
inline constexpr unsigned char kInfoIndefinite = 31;

/// Whether a tag of that number is not passed over. A timestamp has tags of its own, and so no extension's.
[[nodiscard]] constexpr bool has_meaning(std::uint64_t tag) noexcept {
  return tag < 4 || (tag >= kExtensionTag && tag < kExtensionTag + 0xFF);
}

[[nodiscard]] inline unsigned char byte_at(const char* p) noexcept { return static_cast<unsigned char>(*p); }
[[nodiscard]] inline Major major_of(unsigned char first) noexcept { return static_cast<Major>(first >> 5); }
[[nodiscard]] inline bool is_break(const char* p) noexcept { return byte_at(p) == kBreak; }

/// How many bytes of a number follow a first byte, whose `info` is that: 0, 1, 2, 4 or 8.
[[nodiscard]] constexpr std::size_t argument_bytes(unsigned info) noexcept {
  return info < 24 || info > 27 ? 0 : std::size_t{1} << (info - 24);
}

/// The number in a head at `p`, of whatever kind, with a first byte that is not of indefinite length.
[[nodiscard]] inline std::uint64_t argument_at(const char* p) noexcept {
  const unsigned info = byte_at(p) & kInfo;
  if (info < 24) return info;
  switch (info) {
    case 24: return byte_at(p + 1);
    case 25: return codec::load_big_endian<std::uint16_t>(p + 1);
    case 26: return codec::load_big_endian<std::uint32_t>(p + 1);
    default: return codec::load_big_endian<std::uint64_t>(p + 1);
  }
}

/// Why a value has no form here.
enum class NoForm : std::uint8_t { integer_beyond, simple, time, bignum, extension };

/// The head of a value with tags in front of it.
[[nodiscard]] Head read_tagged_head(const char* p) noexcept;
/// The bits of a float that is the half float of these.
[[nodiscard]] std::uint32_t float_of_half(std::uint16_t half) noexcept;
/// The end of the value at `p`, which has been validated.
[[nodiscard]] const char* skip_value(const char* p) noexcept;

/// The head at `p`, of a value that has been validated: its tags are part of it.
[[nodiscard]] inline Head read_head(const char* p) noexcept {
  constexpr Type kTypes[] = {Type::positive, Type::negative, Type::binary, Type::string, Type::array, Type::map};
  const unsigned char first = byte_at(p);
  const unsigned info = first & kInfo;
  const Major major = major_of(first);
  if (major == Major::tag) [[unlikely]]
    return read_tagged_head(p);
  if (major == Major::other) {
    const auto head = [&](Type type, std::uint64_t value) {
      return Head{.type = type, .bytes = static_cast<std::uint32_t>(1 + argument_bytes(info)), .value = value};
    };
    switch (info) {
      case 20:
      case 21: return head(Type::boolean, info & 1U);
      case 22:
      case 23: return head(Type::nil, 0);  // null, undefined
      case 25: return head(Type::float32, float_of_half(static_cast<std::uint16_t>(argument_at(p))));
      case 26: return head(Type::float32, argument_at(p));
      case 27: return head(Type::float64, argument_at(p));
      default: {
        Head simple = head(Type::no_form, static_cast<std::uint64_t>(NoForm::simple));
        simple.irregular = true;
        return simple;
      }
    }
  }
  Head head{.type = kTypes[first >> 5]};
  if (info < 24) {
    head.value = info;
  } else if (info == kInfoIndefinite) {
    head.value = kIndefinite;
    head.irregular = true;
  } else {
    head.value = argument_at(p);
    head.bytes = static_cast<std::uint32_t>(1 + argument_bytes(info));
  }
  if (major == Major::negative) {
    const bool fits = head.value <= static_cast<std::uint64_t>(INT64_MAX);
    head.irregular = !fits;
    if (!fits) head.type = Type::no_form;
    head.value = fits ? ~head.value : static_cast<std::uint64_t>(NoForm::integer_beyond);
  }
  return head;
}

// Writing: each writes at most kHeadBytesMax bytes at `to`, in the shortest form, and returns where they end.

inline char* write_argument(char* to, Major major, std::uint64_t value) noexcept {
  const unsigned first = static_cast<unsigned>(major) << 5;
  if (value < 24) {
    *to = static_cast<char>(first | value);
    return to + 1;
  }
  const unsigned power = value <= 0xFF ? 0 : value <= 0xFFFF ? 1 : value <= 0xFFFF'FFFF ? 2 : 3;
  *to++ = static_cast<char>(first | (24 + power));
  switch (power) {
    case 0: *to = static_cast<char>(value); return to + 1;
    case 1: return codec::store_big_endian(to, static_cast<std::uint16_t>(value));
    case 2: return codec::store_big_endian(to, static_cast<std::uint32_t>(value));
    default: return codec::store_big_endian(to, value);
  }
}

/// The half, single or double that is the same number and shortest.
char* write_float(char* to, double value) noexcept;

// ---- for what binary encodings share ----

struct Format {
  static constexpr std::string_view kIntegerBeyond = "an integer is beyond 64 bits, which CBOR does not carry here";
  static constexpr std::string_view kNumberBeyond =
      "a number is beyond the range of a double, which CBOR cannot express";
  static constexpr std::string_view kSizeBeyond = "a value is too large";
  static constexpr std::uint64_t kSizeMax = kIndefinite - 1;
  static constexpr std::size_t kHeadBytesMax = cbor::kHeadBytesMax;
  static constexpr char kNil = '\xF6';
  static constexpr char kFalse = '\xF4';
  static constexpr char kTrue = '\xF5';
  static constexpr unsigned char kShortString = 0x60;
  static constexpr std::size_t kShortStringMax = 23;
  static constexpr unsigned char kShortMap = 0xA0;
  static constexpr unsigned char kShortArray = 0x80;
  static constexpr std::size_t kShortCountMax = 23;
  static constexpr unsigned char kSmallIntegerEnd = 24;
  static constexpr unsigned char kFloat64 = 0xFB;

  // As of msgpack::Format.
  [[gnu::always_inline]] static std::size_t unsigned_at(const char* p, const char* end, std::uint64_t& value) noexcept {
    const unsigned char first = byte_at(p);
    if (first < 24) {
      value = first;
      return 1;
    }
    if (first > 26 || argument_bytes(first) >= static_cast<std::size_t>(end - p)) return 0;
    value = argument_at(p);
    return 1 + argument_bytes(first);
  }

  static std::string_view only_extension(const char* p, const char* end, std::int8_t type) noexcept {
    const auto left = static_cast<std::size_t>(end - p);
    if (left < 8) return {};
    char head[6];  // of an array, and the tag
    head[0] = static_cast<char>(kShortArray + 1);
    write_argument(head + 1, Major::tag, kExtensionTag | static_cast<std::uint8_t>(type));
    if (std::memcmp(p, head, sizeof head) != 0) return {};
    const unsigned form = byte_at(p + 6) - (static_cast<unsigned>(Major::binary) << 5);
    const std::size_t size = form < 24 ? form : form == 24 ? byte_at(p + 7) : 0;
    const std::size_t bytes = form < 24 ? 7 : 8;
    return size > left - bytes ? std::string_view{} : std::string_view{p + bytes, size};
  }

  // Reading, as of msgpack::Format.
  static Head read_head(const char* p) noexcept { return cbor::read_head(p); }
  static const char* skip_value(const char* p) noexcept { return cbor::skip_value(p); }
  static bool is_nil(const char* p) noexcept { return read_head(p).type == Type::nil; }
  static const char* behind(const char* p, const Head& head) noexcept {
    if (head.irregular) [[unlikely]]
      return cbor::skip_value(p);
    return p + head.bytes +
           (head.type == Type::string || head.type == Type::binary || head.type == Type::extension ? head.value : 0);
  }
  static const char* behind_number(const char* p, const Head& head) noexcept {
    return head.irregular ? cbor::skip_value(p) : p + head.bytes;
  }
  static std::string_view content(const char* p, const Head& head, codec::Arena& arena) {
    if (head.irregular) [[unlikely]]
      return irregular_content(p, head, arena);
    return {p + head.bytes, static_cast<std::size_t>(head.value)};
  }
  static bool at_end_mark(const char* p) noexcept { return is_break(p); }
  static bool at_end(const char*& p, std::uint64_t& left) noexcept {
    if (left == kIndefinite) [[unlikely]] {
      if (!is_break(p)) return false;
      ++p;
      return true;
    }
    if (left == 0) return true;
    --left;
    return false;
  }
  static std::uint64_t count(const char* p, const Head& head) noexcept;
  static std::uint64_t small_integers(const char* p, std::uint64_t count) noexcept {
    std::uint64_t at = 0;
    while (at != count && byte_at(p + at) < 24) ++at;
    return at;
  }
  static std::string_view why_no_form(const Head& head) noexcept;

  // Writing.
  static char* write_unsigned(char* to, std::uint64_t value) noexcept {
    return write_argument(to, Major::positive, value);
  }
  static char* write_integer(char* to, std::int64_t value) noexcept {
    return value >= 0 ? write_argument(to, Major::positive, static_cast<std::uint64_t>(value))
                      : write_argument(to, Major::negative, ~static_cast<std::uint64_t>(value));
  }
  static char* write_float(char* to, double value) noexcept { return cbor::write_float(to, value); }
  static char* write_string_head(char* to, std::uint64_t size) noexcept {
    return write_argument(to, Major::string, size);
  }
  static char* write_binary_head(char* to, std::uint64_t size) noexcept {
    return write_argument(to, Major::binary, size);
  }
  static char* write_array_head(char* to, std::uint64_t size) noexcept {
    return write_argument(to, Major::array, size);
  }
  static char* write_map_head(char* to, std::uint64_t size) noexcept { return write_argument(to, Major::map, size); }
  static char* write_extension_head(char* to, std::int8_t type, std::uint64_t size) noexcept {
    to = write_argument(to, Major::tag, kExtensionTag | static_cast<std::uint8_t>(type));
    return write_argument(to, Major::binary, size);
  }

 private:
  static std::string_view irregular_content(const char* p, const Head& head, codec::Arena& arena);
};

}  // namespace wirecall::cbor
