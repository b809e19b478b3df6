// Template bodies of packing: what packed_layout.hpp describes is written here, and read in unpack.hpp.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/detail/packed_layout.hpp"
#include "wirecall/detail/type_info.hpp"

namespace wirecall::detail {

/// A number in the order of its bytes on the wire, the lowest first; the same back.
template <class T>
[[nodiscard]] constexpr T in_wire_order(T value) noexcept {
  if constexpr (std::endian::native == std::endian::little || sizeof(T) == 1) {
    return value;
  } else if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    return std::bit_cast<T>(std::byteswap(std::bit_cast<Bits>(value)));
  } else {
    return std::byteswap(value);
  }
}

/// Numbers whose array is the same bytes in memory and on the wire.
template <class T>
inline constexpr bool kIsCopied =
    (kKind<T> == Kind::integer || kKind<T> == Kind::number) && std::endian::native == std::endian::little;

/// A number of elements in base 128, the lowest seven bits first.
inline constexpr std::size_t kCountBytesMax = 10;

[[nodiscard]] bool is_enumerator(std::span<const EnumEntry> entries, std::int64_t value) noexcept;

class PackedOutput {
 public:
  /// Writes the layout's hash.
  PackedOutput(Buffer& out, const Layout& layout) : out_(out), begin_(out.size()) { number(layout.hash()); }
  PackedOutput(PackedOutput&&) = delete;
  ~PackedOutput() {
    if (!finished_) out_.truncate(begin_);
  }

  template <class T>
  void number(T value) {
    const T wire = in_wire_order(value);
    std::memcpy(out_.reserve(sizeof wire), &wire, sizeof wire);
    out_.grow(sizeof wire);
  }
  void count(std::size_t count) {
    if (count < 0x80) [[likely]]
      return out_.push_back(static_cast<char>(count));
    long_count(count);
  }
  void copy(const void* data, std::size_t bytes) { out_.append({static_cast<const char*>(data), bytes}); }
  void string(std::string_view utf8);
  template <class T>
  void adapted(const T& value) {
    static_assert(requires { Adapt<T>::encode(writer(), value); }, "wirecall: Adapt<T> has no encode");
    Adapt<T>::encode(begin_adapted(), value);
    end_adapted();
  }
  /// The first reason is kept.
  void fail(std::string_view why) {
    if (failure_.empty()) failure_ = why;
  }
  /// Throws what has failed.
  void finish();

 private:
  void long_count(std::size_t count);
  Writer& writer();
  Writer& begin_adapted();
  void end_adapted();

  Buffer& out_;
  std::size_t begin_;
  bool finished_ = false;
  std::string failure_;
  std::unique_ptr<Writer> writer_;
  Buffer adapted_;
};

/// Writes as one value what `pack` packs by that layout. Throws as append_packed.
template <class Pack>
void write_packed(Writer& writer, const Layout& layout, const Pack& pack) {
  // Of a large value the memory is given back, also after a throw.
  struct Scratch {
    explicit Scratch(Buffer& memory) : bytes(memory) { bytes.clear(); }
    Scratch(Scratch&&) = delete;
    ~Scratch() {
      constexpr std::size_t kKeptBytesMax = std::size_t{1} << 20;
      if (bytes.capacity() > kKeptBytesMax) bytes.release();
    }
    Buffer& bytes;
  };
  const Scratch scratch{writer.scratch()};
  PackedOutput output{scratch.bytes, layout};
  pack(output);
  output.finish();
  writer.extension(kPackedExtension, std::as_bytes(std::span{scratch.bytes.view()}));
}

/// How a function's result is packed.
struct ResultPacking {
  const TypeInfo* type;
  const Layout& (*layout)();
  void (*pack)(PackedOutput& out, const void* result);
  std::uint8_t integer_bytes;  ///< of a signed integer; else 0
};

/// A result that is a signed integer, packed.
class PackedInteger {
 public:
  static constexpr std::size_t kBytesMax = 2 * sizeof(std::uint64_t);

  PackedInteger(const ResultPacking& packing, std::int64_t result)
      : size_(sizeof(std::uint64_t) + packing.integer_bytes) {
    const std::uint64_t hash = in_wire_order(packing.layout().hash());
    const std::int64_t wire = in_wire_order(result);  // of which a narrower one has the first bytes
    std::memcpy(bytes_, &hash, sizeof hash);
    std::memcpy(bytes_ + sizeof hash, &wire, sizeof wire);
  }
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_, size_}; }

 private:
  char bytes_[kBytesMax];
  std::size_t size_;
};

// ---- templates ----

template <class T>
void pack(PackedOutput& out, const T& value);

template <class T, std::size_t... I>
void pack_tuple(PackedOutput& out, const T& value, std::index_sequence<I...>) {
  (pack(out, std::get<I>(value)), ...);
  if constexpr (sizeof...(I) == 0) out.number(std::uint8_t{0});
}

template <class V, std::size_t... I>
void pack_variant(PackedOutput& out, const V& value, std::index_sequence<I...>) {
  static_assert(sizeof...(I) <= 64, "wirecall: a variant on the wire has at most 64 alternatives");
  if (value.valueless_by_exception())
    return out.fail("a variant holds nothing, because an exception interrupted its assignment");
  out.number(static_cast<std::uint8_t>(value.index()));
  static_cast<void>(((value.index() == I ? (pack(out, *std::get_if<I>(&value)), true) : false) || ...));
}

template <class T>
void pack_elements(PackedOutput& out, const T& value) {
  using Element = std::remove_cvref_t<decltype(*std::begin(value))>;
  if constexpr (kIsCopied<Element> && requires { std::data(value); }) {
    if (std::size(value) != 0) out.copy(std::data(value), std::size(value) * sizeof(Element));
  } else if constexpr (kKind<Element> == Kind::boolean) {
    for (const bool element : value) pack(out, element);
  } else {
    for (const auto& element : value) pack(out, element);
  }
}

struct PackMembers {
  PackedOutput* out;

  template <class... M>
  void operator()(const M&... member) const {
    (pack(*out, member), ...);
    if constexpr (sizeof...(M) == 0) out->number(std::uint8_t{0});
  }
};

template <class T>
void pack(PackedOutput& out, const T& value) {
  constexpr Kind kind = kKind<T>;
  if constexpr (kind == Kind::adapted) {
    out.adapted(value);
  } else if constexpr (kind == Kind::null) {
    out.number(std::uint8_t{0});
  } else if constexpr (kind == Kind::boolean) {
    out.number(static_cast<std::uint8_t>(value));
  } else if constexpr (kind == Kind::integer || kind == Kind::number) {
    out.number(value);
  } else if constexpr (kind == Kind::string) {
    out.string(value);
  } else if constexpr (kind == Kind::bytes) {
    if constexpr (!kIsArray<T>) out.count(std::size(value));
    if (std::size(value) != 0) out.copy(std::data(value), std::size(value));
    if constexpr (kIsArray<T>) {
      if (std::size(value) == 0) out.number(std::uint8_t{0});
    }
  } else if constexpr (kind == Kind::enumeration) {
    if (!is_enumerator(kEnumEntries<T>, static_cast<std::int64_t>(value)))
      out.fail("an enum holds a value that is none of its enumerators");
    out.number(static_cast<EnumNumber<T>>(value));
  } else if constexpr (kind == Kind::optional) {
    out.number(static_cast<std::uint8_t>(value ? 1 : 0));
    if (value) pack(out, *value);
  } else if constexpr (kind == Kind::variant) {
    pack_variant(out, value, std::make_index_sequence<std::variant_size_v<T>>{});
  } else if constexpr (kind == Kind::duration) {
    out.number(value.count());
  } else if constexpr (kind == Kind::time) {
    out.number(value.time_since_epoch().count());
  } else if constexpr (kind == Kind::array) {
    pack_elements(out, value);
    if constexpr (kArrayLength<T> == 0) out.number(std::uint8_t{0});
  } else if constexpr (kind == Kind::sequence) {
    out.count(std::size(value));
    pack_elements(out, value);
  } else if constexpr (kind == Kind::tuple) {
    pack_tuple(out, value, std::make_index_sequence<std::tuple_size_v<T>>{});
  } else if constexpr (kind == Kind::map) {
    out.count(value.size());
    for (const auto& [key, element] : value) {
      pack(out, key);
      pack(out, element);
    }
  } else if constexpr (kind == Kind::aggregate) {
    visit_members(value, PackMembers{&out});
  } else {
    refuse_unknown<T>();
  }
}

template <class T>
void pack_erased(PackedOutput& out, const void* value) {
  pack(out, *static_cast<const T*>(value));
}

template <class T>
inline constexpr std::uint8_t kIntegerBytes = kKind<T> == Kind::integer && std::is_signed_v<T> ? sizeof(T) : 0;

template <class T>
inline constexpr ResultPacking kResultPacking{&TypeInfoOf<T>::value, &layout_of<T>, &pack_erased<T>, kIntegerBytes<T>};

}  // namespace wirecall::detail
