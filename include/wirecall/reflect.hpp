// The typed edge: decode and encode for C++ types, driven by what the compiler knows of them.
//
//   bool, integers           booleans; integers, which are checked against the type's range
//   float, double            numbers
//   std::string              strings; std::string_view and const char* too (a decoded view borrows from the frame)
//   enum                     its enumerator's name, for values from -128 to 255 (EnumNames for others)
//   std::optional, pointers  null or the value (unique_ptr, shared_ptr); as a struct's member it may be absent, and an
//                            empty one is not written
//   vector, list, set, ...   arrays; std::array and T[N] of exactly that length
//   map, unordered_map, ...  objects; keys are strings, enums, or integers in decimal
//   tuple, pair              arrays of exactly that length
//   variant                  the first alternative that fits; std::monostate is null
//   vector<std::byte>, ...   {"$bytes":"<base64>"}, in MessagePack and CBOR bytes; span<const std::byte> borrows,
//                            array<std::byte, N> is of that size
//   chrono::duration         the count of its own unit: milliseconds{200} is 200
//   chrono::sys_time         an RFC 3339 string in UTC: "2024-05-06T07:08:09.123Z"
//   aggregates               objects with the members' names. Members come in any order; unknown ones are ignored, so
//                            that peers may evolve; one given twice is refused; one that is missing is refused unless
//                            it is optional (or Describe says so), since whether a default was meant cannot be seen.
//                            Arrays do not stand for structs.
//   Value, Raw               any value (value.hpp)
//   Extension                {"$npy":"<base64>"}, {"$image":"<base64>"}, in MessagePack extensions (value.hpp)
//   anything else            Adapt (schema.hpp)
//
// A failed decode leaves its target in a valid but unspecified state. A variant is decoded as the first alternative
// that fits: alternatives of another kind, and structs whose required members are missing, are skipped; the others are
// tried in turn. The bytes read by failed tries are bounded, so nested variants of similar structs are refused at some
// depth: give each struct a required member that the others have not.
// Thread: the reader's or writer's.
#pragma once

#include <cstddef>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wirecall/detail/decode.hpp"
#include "wirecall/detail/encode.hpp"
#include "wirecall/detail/type_info.hpp"
#include "wirecall/error.hpp"
#include "wirecall/schema.hpp"

namespace wirecall {

/// What T looks like on the wire.
template <class T>
[[nodiscard]] const TypeInfo& type_info() noexcept {
  return detail::TypeInfoOf<T>::value;
}

/// T in the words of an error message, as "array of integer".
template <class T>
[[nodiscard]] std::string type_name() {
  return describe(type_info<T>());
}

template <class T>
void describe_schema(SchemaWriter& out) {
  out.write(type_info<T>());
}

/// Decodes one value from validated text. After false, `reader.failure()` tells why.
template <class T>
bool decode(Reader& reader, T& out) {
  return detail::decode_value(reader, out);
}

/// Encodes one value. What the encoding cannot hold is remembered by the writer.
template <class T>
void encode(Writer& writer, const T& value) {
  detail::encode_value(writer, value);
}

/// The -32602 error that tells a peer of a failed decode: data {"loc", "expected", "got", "did_you_mean"?, "also"?},
/// where `also` has the same of each further value that does not fit.
[[nodiscard]] Error decode_error(const Reader& reader);

namespace detail {
/// Whether a T that is the only argument of a call is its whole params, packed; their layout is T::layout().
template <class T>
inline constexpr bool is_packed_params = false;

/// Validates `text` and decodes it; an error's location is `error`.
bool decode_text(std::string_view text, DecodeFunction decode, void* out, std::uint32_t depth_max, Error& error);
[[nodiscard]] std::string encode_text(EncodeFunction encode, const void* value);
/// The same for another codec.
bool decode_binary(const Codec& codec, std::span<const std::byte> bytes, DecodeFunction decode, void* out,
                   std::uint32_t depth_max, Error& error);
[[nodiscard]] std::vector<std::byte> encode_binary(const Codec& codec, EncodeFunction encode, const void* value);

template <class T>
[[nodiscard]] std::expected<T, Error> from_binary(const Codec& codec, std::span<const std::byte> bytes,
                                                  std::uint32_t depth_max) {
  static_assert(!kBorrows<T>, "wirecall: this gives a T that outlives the bytes, so it must not borrow");
  std::expected<T, Error> out;
  Error error{ErrorCode::parse_error};
  if (!decode_binary(codec, bytes, &decode_erased<T>, &*out, depth_max, error)) {
    out = std::unexpected(std::move(error));
  }
  return out;
}
}  // namespace detail

/// Decodes a whole JSON text: -32700 when it is not one, -32602 when it does not fit T. The text is copied, so T must
/// not borrow from it (no string_view, no Raw, at any depth).
template <class T>
[[nodiscard]] std::expected<T, Error> from_json(std::string_view text, std::uint32_t depth_max = Limits{}.depth) {
  static_assert(!detail::kBorrows<T>, "wirecall: from_json copies the text, so what T borrows would dangle");
  std::expected<T, Error> out;
  Error error{ErrorCode::parse_error};
  if (!detail::decode_text(text, &detail::decode_erased<T>, &*out, depth_max, error)) {
    out = std::unexpected(std::move(error));
  }
  return out;
}

/// The value as compact JSON text. Throws LocalError -32603 for NaN, infinities and strings that are not UTF-8.
template <class T>
[[nodiscard]] std::string to_json(const T& value) {
  return detail::encode_text(&detail::encode_erased<T>, &value);
}

/// Decodes a whole value of MessagePack, as from_json does a JSON text: bin as bytes, timestamps as points in time,
/// keys that are integers as the keys of maps that have such. T must not borrow.
template <class T>
[[nodiscard]] std::expected<T, Error> from_msgpack(std::span<const std::byte> bytes,
                                                   std::uint32_t depth_max = Limits{}.depth) {
  return detail::from_binary<T>(msgpack_codec(), bytes, depth_max);
}

/// The value as MessagePack. Throws LocalError -32603 for strings that are not UTF-8, and for numbers held as text that
/// neither 64 bits nor a double hold.
template <class T>
[[nodiscard]] std::vector<std::byte> to_msgpack(const T& value) {
  return detail::encode_binary(msgpack_codec(), &detail::encode_erased<T>, &value);
}

/// Decodes a whole value of CBOR, as from_msgpack does: the tags 0 and 1 as points in time, 2 and 3 as integers where
/// 64 bits hold them.
template <class T>
[[nodiscard]] std::expected<T, Error> from_cbor(std::span<const std::byte> bytes,
                                                std::uint32_t depth_max = Limits{}.depth) {
  return detail::from_binary<T>(cbor_codec(), bytes, depth_max);
}

/// The value as CBOR, in preferred serialization. Throws as to_msgpack.
template <class T>
[[nodiscard]] std::vector<std::byte> to_cbor(const T& value) {
  return detail::encode_binary(cbor_codec(), &detail::encode_erased<T>, &value);
}

}  // namespace wirecall
