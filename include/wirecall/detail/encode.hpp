// Template bodies of encode, the mirror of decode.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "wirecall/codec.hpp"
#include "wirecall/detail/type_info.hpp"
#include "wirecall/schema.hpp"

namespace wirecall::detail {

using EncodeFunction = void (*)(Writer& writer, const void* value);
using EmptyFunction = bool (*)(const void* value);

struct MemberEncoder {
  EncodeFunction encode;
  EmptyFunction is_empty;  ///< null for members that are always written
};

// ---- compiled, in src/codec/reflect.cpp ----

void encode_members(Writer& writer, std::span<const MemberInfo> members, const MemberEncoder* encoders,
                    const void* const* at);
void encode_enumerator(Writer& writer, const TypeInfo& type, std::span<const EnumEntry> entries, std::int64_t value);
/// The enumerator's name; empty, after failing the writer, where there is none.
[[nodiscard]] std::string_view enumerator_name(Writer& writer, const TypeInfo& type, std::span<const EnumEntry> entries,
                                               std::int64_t value);
void encode_key(Writer& writer, std::int64_t key);
void encode_key(Writer& writer, std::uint64_t key);
/// `digits` after the decimal point: 0, 3, 6 or 9.
void encode_time(Writer& writer, std::int64_t seconds, std::int32_t nanoseconds, int digits);

// ---- templates ----

template <class T>
void encode_value(Writer& writer, const T& value);

template <class T>
void encode_erased(Writer& writer, const void* value) {
  encode_value(writer, *static_cast<const T*>(value));
}

template <class T>
bool is_empty_erased(const void* value) {
  return !*static_cast<const T*>(value);
}

template <class M>
consteval EmptyFunction empty_function() {
  if constexpr (kIsOptional<M>) return &is_empty_erased<M>;
  return nullptr;
}

template <class List>
struct MemberEncoders;
template <class... M>
struct MemberEncoders<TypeList<M...>> {
  static constexpr MemberEncoder value[sizeof...(M) + 1] = {{&encode_erased<M>, empty_function<M>()}...};
};

template <class T>
void encode_aggregate(Writer& writer, const T& value) {
  const void* at[kMemberCount<T> + 1];
  visit_members(value, MemberAddresses<const void>{at});
  encode_members(writer, kMemberInfos<T>, MemberEncoders<MemberTypes<T>>::value, at);
}

template <class T, std::size_t... I>
void encode_tuple(Writer& writer, const T& value, std::index_sequence<I...>) {
  writer.begin_array(sizeof...(I));
  (encode_value(writer, std::get<I>(value)), ...);
  writer.end_array();
}

template <class V, std::size_t... I>
void encode_variant(Writer& writer, const V& value, std::index_sequence<I...>) {
  const bool any = ((value.index() == I ? (encode_value(writer, *std::get_if<I>(&value)), true) : false) || ...);
  if (any) return;
  writer.fail("a variant holds nothing, because an exception interrupted its assignment");
  writer.null();
}

template <class T>
void encode_range(Writer& writer, const T& value) {
  writer.begin_array(std::size(value));
  for (const auto& element : value) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(element)>, bool>) {
      writer.boolean(element);
    } else {
      encode_value(writer, element);
    }
  }
  writer.end_array();
}

template <class T>
void encode_map(Writer& writer, const T& value) {
  writer.begin_object(value.size());
  for (const auto& [key, element] : value) {
    using Key = typename T::key_type;
    if constexpr (std::is_enum_v<Key>) {
      writer.key(enumerator_name(writer, TypeInfoOf<Key>::value, kEnumEntries<Key>, static_cast<std::int64_t>(key)));
    } else if constexpr (kKind<Key> == Kind::integer) {
      encode_key(writer, static_cast<std::conditional_t<std::is_signed_v<Key>, std::int64_t, std::uint64_t>>(key));
    } else {
      writer.key(key);
    }
    encode_value(writer, element);
  }
  writer.end_object();
}

template <class T>
void encode_time_point(Writer& writer, const T& value) {
  using Period = typename T::period;
  check_time_unit<typename T::duration>();
  const auto ticks = static_cast<std::int64_t>(value.time_since_epoch().count());
  if constexpr (Period::den == 1) {
    // What does not fit is no year of RFC 3339 either, which encode_time says.
    std::int64_t seconds = 0;
    if (__builtin_mul_overflow(ticks, std::int64_t{Period::num}, &seconds))
      seconds = ticks < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
    encode_time(writer, seconds, 0, 0);
  } else {
    std::int64_t seconds = ticks / Period::den;
    std::int64_t part = ticks % Period::den;
    if (part < 0) {
      part += Period::den;
      --seconds;
    }
    constexpr int digits = Period::den <= 1'000 ? 3 : Period::den <= 1'000'000 ? 6 : 9;
    encode_time(writer, seconds, static_cast<std::int32_t>(part * (1'000'000'000 / Period::den)), digits);
  }
}

template <class T>
void encode_value(Writer& writer, const T& value) {
  constexpr Kind kind = kKind<T>;
  if constexpr (std::is_array_v<T> && std::is_same_v<std::remove_extent_t<T>, char>) {
    writer.string(std::string_view{value});  // a literal
  } else if constexpr (kind == Kind::adapted) {
    static_assert(requires { Adapt<T>::encode(writer, value); }, "wirecall: Adapt<T> has no encode");
    Adapt<T>::encode(writer, value);
  } else if constexpr (kind == Kind::null) {
    writer.null();
  } else if constexpr (kind == Kind::boolean) {
    writer.boolean(value);
  } else if constexpr (kind == Kind::integer) {
    if constexpr (std::is_signed_v<T>) {
      writer.integer(value);
    } else {
      writer.unsigned_integer(value);
    }
  } else if constexpr (kind == Kind::number) {
    writer.number(value);
  } else if constexpr (kind == Kind::string) {
    writer.string(value);
  } else if constexpr (kind == Kind::bytes) {
    writer.bytes(value);
  } else if constexpr (kind == Kind::enumeration) {
    encode_enumerator(writer, TypeInfoOf<T>::value, kEnumEntries<T>, static_cast<std::int64_t>(value));
  } else if constexpr (kind == Kind::optional) {
    if (value) {
      encode_value(writer, *value);
    } else {
      writer.null();
    }
  } else if constexpr (kind == Kind::variant) {
    encode_variant(writer, value, std::make_index_sequence<std::variant_size_v<T>>{});
  } else if constexpr (kind == Kind::duration) {
    encode_value(writer, value.count());
  } else if constexpr (kind == Kind::time) {
    encode_time_point(writer, value);
  } else if constexpr (kind == Kind::array || kind == Kind::sequence) {
    encode_range(writer, value);
  } else if constexpr (kind == Kind::tuple) {
    encode_tuple(writer, value, std::make_index_sequence<std::tuple_size_v<T>>{});
  } else if constexpr (kind == Kind::map) {
    encode_map(writer, value);
  } else if constexpr (kind == Kind::aggregate) {
    encode_aggregate(writer, value);
  } else {
    refuse_unknown<T>();
  }
}

}  // namespace wirecall::detail
