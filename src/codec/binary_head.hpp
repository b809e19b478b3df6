// The head of a value in a binary encoding: what msgpack_format.hpp and cbor_format.hpp read of it, and so what the
// reader, the writer and the transcoders that both share know of values (binary_reader.hpp, binary_writer.hpp,
// transcode.hpp). A head is the first byte with the type, size or number that follows it; what a string, array, map or
// extension holds comes behind it.
// A value.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "codec/codec_number.hpp"

namespace wirecall::codec {

enum class Type : std::uint8_t {
  nil,
  boolean,   ///< `value` is 0 or 1
  positive,  ///< an integer from 0 on, which is `value`
  negative,  ///< an integer below 0, whose two's complement is `value`
  float32,   ///< `value` is its bits
  float64,   ///< `value` is its bits
  string,    ///< `value` bytes follow; so for the next and for extension
  binary,
  extension,
  array,    ///< `value` elements follow
  map,      ///< `value` keys and values follow
  no_form,  ///< a value that nothing here stands for; `value` says why, by the encoding's own numbers
};

/// The `value` of a string, array or map that says only at its end how long it is.
inline constexpr std::uint64_t kIndefinite = UINT64_MAX;

struct Head {
  Type type = Type::nil;
  std::int8_t extension = 0;  ///< the type's number, of an extension
  bool irregular = false;     ///< the value does not end `value` bytes behind its head
  std::uint32_t bytes = 1;    ///< of the head itself
  std::uint64_t value = 0;
};

[[nodiscard]] inline bool is_integer(const Head& head) noexcept {
  return head.type == Type::positive || head.type == Type::negative;
}
[[nodiscard]] inline bool is_real(const Head& head) noexcept {
  return head.type == Type::float32 || head.type == Type::float64;
}
[[nodiscard]] inline bool is_container(const Head& head) noexcept {
  return head.type == Type::array || head.type == Type::map;
}

/// The number that the bits of a float32 or float64 stand for.
[[nodiscard]] inline double real(const Head& head) noexcept {
  if (head.type == Type::float32) return std::bit_cast<float>(static_cast<std::uint32_t>(head.value));
  return std::bit_cast<double>(head.value);
}

/// Has `out` be the integer of that head, which may be a real number without a fraction, if it is from `min` to `max`;
/// else says what was expected.
template <class Integer>
[[nodiscard]] std::string integer_of(const Head& head, Integer min, Integer max, Integer& out) {
  // Both bounds are exact as doubles, and each double between them is in range.
  constexpr double kFirst = std::is_signed_v<Integer> ? -0x1p63 : 0;
  constexpr double kEnd = std::is_signed_v<Integer> ? 0x1p63 : 0x1p64;
  Integer value = 0;
  bool fits = true;
  if (is_integer(head)) {
    value = static_cast<Integer>(head.value);
    fits = head.type == Type::positive ? std::in_range<Integer>(head.value) : std::is_signed_v<Integer>;
  } else {
    if (!is_real(head)) return "integer";
    const double number = real(head);
    if (number != std::trunc(number)) return "integer";  // NaN, too
    fits = number >= kFirst && number < kEnd;
    if (fits) value = static_cast<Integer>(number);
  }
  if (!fits || value < min || value > max) return integer_words(min, max);
  out = value;
  return {};
}

template <class T>
[[nodiscard]] T load_big_endian(const char* p) noexcept {
  T value;
  std::memcpy(&value, p, sizeof value);
  if constexpr (std::endian::native == std::endian::little) value = std::byteswap(value);
  return value;
}

template <class T>
char* store_big_endian(char* to, T value) noexcept {
  if constexpr (std::endian::native == std::endian::little) value = std::byteswap(value);
  std::memcpy(to, &value, sizeof value);
  return to + sizeof value;
}

}  // namespace wirecall::codec
