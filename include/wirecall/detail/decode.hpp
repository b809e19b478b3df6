// Template bodies of decode: what has to know the type. The loops over members and elements are compiled once
// (src/codec/reflect.cpp) and call back through DecodeFunction, which keeps programs and compile times small.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "wirecall/codec.hpp"
#include "wirecall/detail/type_info.hpp"
#include "wirecall/schema.hpp"

namespace wirecall::detail {

/// Decodes one value into the object that `out` points to.
using DecodeFunction = bool (*)(Reader& reader, void* out);
/// Whether a member's value keeps to what `about` says of it.
using LimitFunction = bool (*)(const void* value, const About& about);

// ---- compiled, in src/codec/reflect.cpp ----

/// The members of a struct: `at[i]` is where member i goes; `limits` is null or has a function, or null, each.
bool decode_members(Reader& reader, std::span<const MemberInfo> members, const DecodeFunction* decode,
                    const LimitFunction* limits, void* const* at);
/// An array of exactly the tuple's types.
bool decode_tuple(Reader& reader, const TypeInfo& type, const DecodeFunction* decode, void* const* at);
/// An array of exactly type.length elements, `stride` bytes apart.
bool decode_array(Reader& reader, const TypeInfo& type, DecodeFunction decode, std::byte* first, std::size_t stride);
/// Alternatives of a variant: one bit each.
inline constexpr std::size_t kAlternativesMax = 64;
/// The first alternative that fits; `decode[i]` makes alternative i the variant's.
bool decode_alternatives(Reader& reader, const TypeInfo& type, const DecodeFunction* decode, void* variant);
bool decode_enumerator(Reader& reader, const TypeInfo& type, std::span<const EnumEntry> entries, std::int64_t& out);
bool decode_float(Reader& reader, float& out);
/// Seconds since 1970-01-01T00:00:00Z and nanoseconds from 0 to 999,999,999.
bool decode_time(Reader& reader, std::int64_t& seconds, std::int32_t& nanoseconds);
bool decode_sized_bytes(Reader& reader, std::span<std::byte> out);
/// Fails with the type's own words in place of what the reader recorded.
bool fail_as(Reader& reader, const TypeInfo& type);
/// A member's name as an integer; false after recording a failure.
bool key_to_int(Reader& reader, std::string_view name, std::int64_t min, std::int64_t max, std::int64_t& out);
bool key_to_uint(Reader& reader, std::string_view name, std::uint64_t max, std::uint64_t& out);
bool key_to_enumerator(Reader& reader, std::string_view name, const TypeInfo& type, std::span<const EnumEntry> entries,
                       std::int64_t& out);
bool fail_repeated(Reader& reader, std::string_view name);
[[nodiscard]] std::size_t count_characters(std::string_view utf8) noexcept;

// ---- templates ----

template <class T>
bool decode_value(Reader& reader, T& out);

template <class T>
bool decode_erased(Reader& reader, void* out) {
  return decode_value(reader, *static_cast<T*>(out));
}

template <class T>
bool within_limits(const void* object, const About& about) {
  const T& value = *static_cast<const T*>(object);
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value) >= about.minimum && static_cast<double>(value) <= about.maximum;
  } else if constexpr (kIsOptional<T>) {
    return !value || within_limits<std::remove_cvref_t<decltype(*value)>>(&*value, about);
  } else if constexpr (kKind<T> == Kind::duration) {
    const auto count = value.count();
    return within_limits<std::remove_const_t<decltype(count)>>(&count, about);
  } else if constexpr (kKind<T> == Kind::string) {
    const std::size_t length = count_characters(value);
    return length >= about.length_min && length <= about.length_max;
  } else {
    static_assert(
        requires { value.size(); }, "wirecall: Describe<T> limits a member that has neither value nor length");
    return value.size() >= about.length_min && value.size() <= about.length_max;
  }
}

constexpr bool has_limits(const About* about) {
  constexpr About kNothing{.member = {}};
  return about != nullptr && (about->minimum != kNothing.minimum || about->maximum != kNothing.maximum ||
                              about->length_min != kNothing.length_min || about->length_max != kNothing.length_max);
}

template <class T, std::size_t I, class M>
consteval LimitFunction limit_function() {
  if constexpr (has_limits(kMemberInfos<T>[I].about)) return &within_limits<M>;
  return nullptr;
}

template <class T, class List>
struct MemberDecoders;
template <class T, class... M>
struct MemberDecoders<T, TypeList<M...>> {
  static constexpr DecodeFunction decode[sizeof...(M) + 1] = {&decode_erased<M>...};

  template <std::size_t... I>
  static consteval std::array<LimitFunction, sizeof...(M) + 1> make_limits(std::index_sequence<I...>) {
    return {limit_function<T, I, M>()...};
  }
  static constexpr auto limits = make_limits(std::index_sequence_for<M...>{});
};

template <class T>
bool decode_aggregate(Reader& reader, T& out) {
  using Decoders = MemberDecoders<T, MemberTypes<T>>;
  void* at[kMemberCount<T> + 1];
  visit_members(out, MemberAddresses<void>{at});
  const LimitFunction* limits = nullptr;
  if constexpr (requires { Describe<T>::members; }) limits = Decoders::limits.data();
  return decode_members(reader, kMemberInfos<T>, Decoders::decode, limits, at);
}

template <class T, std::size_t... I>
bool decode_tuple_of(Reader& reader, T& out, std::index_sequence<I...>) {
  static constexpr DecodeFunction decode[] = {&decode_erased<std::tuple_element_t<I, T>>..., nullptr};
  void* const at[] = {&std::get<I>(out)..., nullptr};
  return decode_tuple(reader, TypeInfoOf<T>::value, decode, at);
}

template <class V, std::size_t I>
bool decode_alternative(Reader& reader, void* variant) {
  return decode_value(reader, static_cast<V*>(variant)->template emplace<I>());
}

template <class V, std::size_t... I>
bool decode_variant(Reader& reader, V& out, std::index_sequence<I...>) {
  static_assert(sizeof...(I) <= kAlternativesMax, "wirecall: a variant on the wire has at most 64 alternatives");
  static constexpr DecodeFunction decode[] = {&decode_alternative<V, I>...};
  return decode_alternatives(reader, TypeInfoOf<V>::value, decode, &out);
}

/// Memory for elements is asked for before they are read only up to so many bytes: a peer may announce more than it
/// has of the right type.
inline constexpr std::size_t kReservedBytesMax = 4096;

template <class T>
bool decode_sequence(Reader& reader, T& out) {
  using Element = typename T::value_type;
  constexpr bool kAppends = requires(Element&& element) { out.push_back(std::move(element)); };
  static_assert(
      kAppends || requires(Element&& element) { out.insert(std::move(element)); },
      "wirecall: a view has no room of its own to decode into; use std::vector");
  if constexpr (requires { out.clear(); }) {
    out.clear();  // and keeps its memory
  } else {
    out = T{};
  }
  if (!reader.begin_array()) return fail_as(reader, TypeInfoOf<T>::value);
  if constexpr (requires { out.reserve(1); } && kAppends) {
    constexpr std::size_t kCountMax = kReservedBytesMax / sizeof(Element);
    if (const std::size_t count = reader.elements_left(); count != 0)
      out.reserve(count < kCountMax ? count : kCountMax);
  }
  for (std::size_t position = 0; reader.next_element(); ++position) {
    if constexpr (requires { out.emplace_back(); } && !std::is_same_v<Element, bool>) {
      if (!decode_value(reader, out.emplace_back())) return reader.failed_at(position);
    } else {
      Element element{};
      if (!decode_value(reader, element)) return reader.failed_at(position);
      if constexpr (kAppends) {
        out.push_back(std::move(element));
      } else {
        out.insert(std::move(element));
      }
    }
  }
  return true;
}

template <class Key>
bool decode_key(Reader& reader, std::string_view name, Key& out) {
  if constexpr (std::is_enum_v<Key>) {
    std::int64_t value = 0;
    if (!key_to_enumerator(reader, name, TypeInfoOf<Key>::value, kEnumEntries<Key>, value)) return false;
    out = static_cast<Key>(value);
  } else if constexpr (kKind<Key> == Kind::integer) {
    if constexpr (std::is_signed_v<Key>) {
      std::int64_t value = 0;
      if (!key_to_int(reader, name, std::numeric_limits<Key>::min(), std::numeric_limits<Key>::max(), value)) {
        return false;
      }
      out = static_cast<Key>(value);
    } else {
      std::uint64_t value = 0;
      if (!key_to_uint(reader, name, std::numeric_limits<Key>::max(), value)) return false;
      out = static_cast<Key>(value);
    }
  } else {
    static_assert(std::is_constructible_v<Key, std::string_view>,
                  "wirecall: the keys of a map on the wire are strings, enums or integers");
    out = Key(name);
  }
  return true;
}

template <class T>
bool decode_map(Reader& reader, T& out) {
  out.clear();
  if (!reader.begin_object()) return fail_as(reader, TypeInfoOf<T>::value);
  std::string_view name;
  while (reader.next_member(name)) {
    typename T::key_type key{};
    if (!decode_key(reader, name, key)) return reader.failed_at(name);
    typename T::mapped_type* value = nullptr;
    if constexpr (requires { out.try_emplace(std::move(key)); }) {
      const auto [entry, is_new] = out.try_emplace(std::move(key));
      if (!is_new) return fail_repeated(reader, name);
      value = &entry->second;
    } else {
      value = &out.emplace(std::move(key), typename T::mapped_type{})->second;
    }
    if (!decode_value(reader, *value)) return reader.failed_at(name);
  }
  return true;
}

/// Ticks of the time point's own unit, rounded down; false when they do not fit.
template <class D>
bool ticks_since_epoch(std::int64_t seconds, std::int32_t nanoseconds, typename D::rep& out) {
  check_time_unit<D>();
  using Period = typename D::period;
  std::int64_t ticks = seconds;
  if constexpr (Period::den == 1) {
    ticks = seconds / Period::num - (seconds % Period::num < 0 ? 1 : 0);
  } else {
    if (__builtin_mul_overflow(ticks, std::int64_t{Period::den}, &ticks)) return false;
    if (__builtin_add_overflow(ticks, nanoseconds / (1'000'000'000 / Period::den), &ticks)) return false;
  }
  out = static_cast<typename D::rep>(ticks);
  return out == ticks;
}

template <class T>
bool decode_value(Reader& reader, T& out) {
  constexpr Kind kind = kKind<T>;
  if constexpr (kind == Kind::adapted) {
    static_assert(requires { Adapt<T>::decode(reader, out); }, "wirecall: Adapt<T> has no decode");
    return Adapt<T>::decode(reader, out);
  } else if constexpr (kind == Kind::null) {
    return reader.read_null() || reader.fail("null");
  } else if constexpr (kind == Kind::boolean) {
    return reader.read_bool(out);
  } else if constexpr (kind == Kind::integer) {
    if constexpr (std::is_signed_v<T>) {
      std::int64_t value;
      if (!reader.read_int(std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), value)) return false;
      out = static_cast<T>(value);
    } else {
      std::uint64_t value;
      if (!reader.read_uint(std::numeric_limits<T>::max(), value)) return false;
      out = static_cast<T>(value);
    }
    return true;
  } else if constexpr (kind == Kind::number) {
    if constexpr (std::is_same_v<T, float>) {
      return decode_float(reader, out);
    } else {
      return reader.read_double(out);
    }
  } else if constexpr (kind == Kind::string) {
    static_assert(!std::is_pointer_v<T>, "wirecall: a pointer to characters can be encoded only; decode std::string");
    std::string_view text;
    if (!reader.read_string(text)) return false;
    out = text;
    return true;
  } else if constexpr (kind == Kind::bytes) {
    std::span<const std::byte> bytes;
    if constexpr (kIsArray<T>) {
      return decode_sized_bytes(reader, out);
    } else if (!reader.read_bytes(bytes)) {
      return false;
    } else if constexpr (std::is_same_v<T, std::span<const std::byte>>) {
      out = bytes;
    } else {
      static_assert(
          requires { out.assign(bytes.begin(), bytes.end()); },
          "wirecall: this view of bytes cannot be decoded; use std::span<const std::byte> or a vector");
      out.assign(bytes.begin(), bytes.end());
    }
    return true;
  } else if constexpr (kind == Kind::enumeration) {
    std::int64_t value = 0;
    if (!decode_enumerator(reader, TypeInfoOf<T>::value, kEnumEntries<T>, value)) return false;
    out = static_cast<T>(value);
    return true;
  } else if constexpr (kind == Kind::optional) {
    if (reader.read_null()) {
      out.reset();
      return true;
    }
    if constexpr (requires { out.emplace(); }) {
      return decode_value(reader, out.emplace());
    } else {
      using Element = typename T::element_type;
      out = T(new Element());
      return decode_value(reader, *out);
    }
  } else if constexpr (kind == Kind::variant) {
    return decode_variant(reader, out, std::make_index_sequence<std::variant_size_v<T>>{});
  } else if constexpr (kind == Kind::duration) {
    typename T::rep count{};
    if (!decode_value(reader, count)) return false;
    out = T{count};
    return true;
  } else if constexpr (kind == Kind::time) {
    std::int64_t seconds;
    std::int32_t nanoseconds;
    const char* const start = reader.mark();
    if (!decode_time(reader, seconds, nanoseconds)) return false;
    typename T::rep ticks{};
    if (!ticks_since_epoch<typename T::duration>(seconds, nanoseconds, ticks)) {
      reader.rewind(start);
      return reader.fail("a date-time that the time point can hold");
    }
    out = T{typename T::duration{ticks}};
    return true;
  } else if constexpr (kind == Kind::array) {
    using Element = std::remove_reference_t<decltype(out[0])>;
    return decode_array(reader, TypeInfoOf<T>::value, &decode_erased<Element>,
                        reinterpret_cast<std::byte*>(std::data(out)), sizeof(Element));
  } else if constexpr (kind == Kind::tuple) {
    return decode_tuple_of(reader, out, std::make_index_sequence<std::tuple_size_v<T>>{});
  } else if constexpr (kind == Kind::map) {
    return decode_map(reader, out);
  } else if constexpr (kind == Kind::sequence) {
    return decode_sequence(reader, out);
  } else if constexpr (kind == Kind::aggregate) {
    return decode_aggregate(reader, out);
  } else {
    refuse_unknown<T>();
    return false;
  }
}

}  // namespace wirecall::detail
