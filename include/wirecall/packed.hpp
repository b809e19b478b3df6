// Packed: the values of a C++ type in the order of their declaration, without names, behind the hash of the type's
// layout. Both sides have the type; one of another layout is refused, and nothing is decoded as what it is not. The
// format is documented in docs/packed.md.
//
// It takes every type that reflect.hpp takes. Beside JSON it holds NaN and infinities, and it is smaller and several
// times faster; it cannot be read by whoever lacks the type.
// Thread: any.
#pragma once

#include <cstddef>
#include <expected>
#include <span>
#include <string_view>
#include <vector>

#include "wirecall/detail/pack.hpp"
#include "wirecall/detail/packed_layout.hpp"
#include "wirecall/detail/unpack.hpp"
#include "wirecall/error.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall {

/// T's layout as text, as "{id:i64,tags:[str]}": equal texts are equal layouts.
template <class T>
[[nodiscard]] std::string_view packed_layout() {
  return detail::layout_of<T>().text();
}

/// Appends the packed value to `out`, which lacks it again after a throw. Throws LocalError -32603 for strings that are
/// not UTF-8, values of an enum without an enumerator, variants without a value, and what an Adapt refuses.
template <class T>
void append_packed(Buffer& out, const T& value) {
  detail::PackedOutput output{out, detail::layout_of<T>()};
  detail::pack(output, value);
  output.finish();
}

/// The packed value. Throws as append_packed.
template <class T>
[[nodiscard]] std::vector<std::byte> to_packed(const T& value) {
  Buffer out;
  append_packed(out, value);
  const auto* const data = reinterpret_cast<const std::byte*>(out.data());
  return {data, data + out.size()};
}

/// Decodes one whole packed value into `out`, which borrows from `bytes` where T does; after false it is valid but
/// unspecified. The error is -32602: {"layout"} with T's where the bytes are of another layout, else {"loc",
/// "expected", "got"} as for JSON. A struct may lack optional members at its end, which a newer version of it has.
template <class T>
[[nodiscard]] std::expected<void, Error> decode_packed(std::span<const std::byte> bytes, T& out,
                                                       std::uint32_t depth_max = Limits{}.depth) {
  detail::PackedInput input{bytes, depth_max};
  if (input.begin(detail::layout_of<T>()) && detail::unpack(input, out) && input.finish()) return {};
  return std::unexpected(detail::packed_error(input.take_failure()));
}

/// The same as a value, which must not borrow.
template <class T>
[[nodiscard]] std::expected<T, Error> from_packed(std::span<const std::byte> bytes,
                                                  std::uint32_t depth_max = Limits{}.depth) {
  static_assert(!detail::kBorrows<T>, "wirecall: this gives a T that outlives the bytes, so it must not borrow");
  std::expected<T, Error> out;
  if (auto decoded = decode_packed(bytes, *out, depth_max); !decoded) out = std::unexpected(std::move(decoded.error()));
  return out;
}

/// A value that is packed wherever it goes in a message. Decoded from a packed one or from its usual form, since not
/// every peer packs.
template <class T>
struct Packed {
  /// As whole params: an error that names the callee's layout gets this as "own".
  [[nodiscard]] static std::string_view layout() { return packed_layout<T>(); }

  T value{};
};

template <class T>
inline constexpr bool detail::is_packed_params<Packed<T>> = true;

template <class T>
struct Adapt<Packed<T>> {
  static bool decode(Reader& reader, Packed<T>& out) {
    static_assert(!detail::kBorrows<T>, "wirecall: a packed value that is decoded must not borrow from its bytes");
    const char* const start = reader.mark();
    std::span<const std::byte> bytes;
    if (!reader.read_own_form(kPackedExtension, bytes)) return wirecall::decode(reader, out.value);
    static_cast<void>(reader.take_own_form());  // a value's form is not the answer's
    detail::PackedInput input{bytes, Limits{}.depth};
    if (input.begin(detail::layout_of<T>()) && detail::unpack(input, out.value) && input.finish()) return true;
    reader.rewind(start);
    return reader.fail(input.take_failure());
  }
  static void encode(Writer& writer, const Packed<T>& packed) {
    detail::write_packed(writer, detail::layout_of<T>(),
                         [&packed](detail::PackedOutput& output) { detail::pack(output, packed.value); });
  }
  static std::string schema() { return json_schema(detail::TypeInfoOf<T>::value); }
};

}  // namespace wirecall
