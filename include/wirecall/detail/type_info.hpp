// Sorts C++ types into kinds (kind_of) and makes the constant TypeInfo of each. decode.hpp and encode.hpp follow the
// same kinds, so a type means the same in all three.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "wirecall/detail/aggregate.hpp"
#include "wirecall/detail/enum_names.hpp"
#include "wirecall/schema.hpp"

namespace wirecall::detail {

enum class Kind : std::uint8_t {
  adapted,
  null,
  boolean,
  integer,
  number,
  string,  ///< std::string, string_view, const char*
  bytes,
  enumeration,
  optional,  ///< std::optional, unique_ptr, shared_ptr
  variant,
  duration,
  time,
  array,  ///< std::array, T[N]
  tuple,
  map,
  sequence,
  aggregate,
  unknown,
};

// ---- which templates a type comes from ----

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T, class D>
inline constexpr bool kIsOptional<std::unique_ptr<T, D>> = true;
template <class T>
inline constexpr bool kIsOptional<std::shared_ptr<T>> = true;

template <class T>
inline constexpr bool kIsVariant = false;
template <class... T>
inline constexpr bool kIsVariant<std::variant<T...>> = true;

template <class T>
inline constexpr bool kIsDuration = false;
template <class R, class P>
inline constexpr bool kIsDuration<std::chrono::duration<R, P>> = true;

template <class T>
inline constexpr bool kIsSystemTime = false;
template <class D>
inline constexpr bool kIsSystemTime<std::chrono::time_point<std::chrono::system_clock, D>> = true;

template <class T>
inline constexpr bool kIsArray = false;
template <class T, std::size_t N>
inline constexpr bool kIsArray<std::array<T, N>> = true;
template <class T, std::size_t N>
inline constexpr bool kIsArray<T[N]> = true;

template <class T>
inline constexpr bool kIsBytes = false;
template <class A>
inline constexpr bool kIsBytes<std::vector<std::byte, A>> = true;
template <std::size_t N>
inline constexpr bool kIsBytes<std::array<std::byte, N>> = true;
template <std::size_t E>
inline constexpr bool kIsBytes<std::span<const std::byte, E>> = true;
template <std::size_t E>
inline constexpr bool kIsBytes<std::span<std::byte, E>> = true;

template <class T>
concept Adapted = requires(Reader& reader, T& out) { Adapt<T>::decode(reader, out); } ||
                  requires(Writer& writer, const T& value) { Adapt<T>::encode(writer, value); };

template <class T>
inline constexpr bool kIsCharacter =
    std::is_same_v<T, char> || std::is_same_v<T, wchar_t> || std::is_same_v<T, char8_t> ||
    std::is_same_v<T, char16_t> || std::is_same_v<T, char32_t>;

template <class T>
concept Range = requires(const T& range) {
  typename T::value_type;
  range.begin() != range.end();
  range.size();
};

template <class T>
consteval Kind kind_of() {
  if constexpr (Adapted<T>) {
    return Kind::adapted;
  } else if constexpr (std::is_arithmetic_v<T>) {
    if constexpr (std::is_same_v<T, bool>) return Kind::boolean;
    if constexpr (kIsCharacter<T> || std::is_same_v<T, long double>) return Kind::unknown;
    return std::is_integral_v<T> ? Kind::integer : Kind::number;
  } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view> ||
                       std::is_same_v<T, const char*>) {
    return Kind::string;
  } else if constexpr (std::is_enum_v<T>) {
    return std::is_same_v<T, std::byte> ? Kind::unknown : Kind::enumeration;
  } else if constexpr (kIsArray<T>) {
    return kIsBytes<T> ? Kind::bytes : Kind::array;
  } else if constexpr (std::is_same_v<T, std::monostate> || std::is_same_v<T, std::nullptr_t>) {
    return Kind::null;
  } else if constexpr (!std::is_class_v<T>) {
    return Kind::unknown;
  } else if constexpr (kIsOptional<T>) {
    return Kind::optional;
  } else if constexpr (kIsVariant<T>) {
    return Kind::variant;
  } else if constexpr (kIsBytes<T>) {
    return Kind::bytes;
  } else if constexpr (Range<T>) {
    return requires { typename T::mapped_type; } ? Kind::map : Kind::sequence;
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    return Kind::tuple;
  } else if constexpr (kIsDuration<T>) {
    return Kind::duration;
  } else if constexpr (kIsSystemTime<T>) {
    return Kind::time;
  } else if constexpr (kIsAggregate<T>) {
    return Kind::aggregate;
  } else {
    return Kind::unknown;
  }
}

template <class T>
inline constexpr Kind kKind = kind_of<T>();

/// The message for types that are of no kind.
template <class T>
consteval void refuse_unknown() {
  static_assert(!kIsCharacter<T>,
                "wirecall: a character type has no JSON form; use std::string, or std::int8_t for a small integer");
  static_assert(kIsCharacter<T> || kKind<T> != Kind::unknown,
                "wirecall: this type cannot be put on the wire: it is no aggregate, container or number; specialise "
                "wirecall::Adapt for it");
}

template <class D>
consteval void check_time_unit() {
  using Period = typename D::period;
  static_assert(std::is_integral_v<typename D::rep> &&
                    (Period::den == 1 || (Period::num == 1 && 1'000'000'000 % Period::den == 0)),
                "wirecall: time points on the wire count whole seconds or decimal parts of them down to nanoseconds");
}

/// Whether a decoded T refers to the text it was decoded from. Looks through one level of optional and containers.
template <class T>
inline constexpr bool kBorrows = requires { Adapt<T>::borrows; };
template <>
inline constexpr bool kBorrows<std::string_view> = true;
template <std::size_t E>
inline constexpr bool kBorrows<std::span<const std::byte, E>> = true;
template <class T>
inline constexpr bool kBorrows<std::optional<T>> = kBorrows<T>;
template <class T, class A>
inline constexpr bool kBorrows<std::vector<T, A>> = kBorrows<T>;

// ---- TypeInfo ----

// A static member that is declared before it is defined, so that the constants of recursive types may refer to each
// other.
template <class T>
struct TypeInfoOf {
  static const TypeInfo value;
};

// Its size is written out because recursive types refer to it while it is being made.
template <class... T>
inline constexpr const TypeInfo* kTypeInfos[sizeof...(T)] = {&TypeInfoOf<T>::value...};

/// Applies to a list of types whatever is done with the types that T is made of.
template <class... T>
struct TypeList {
  static constexpr std::size_t size = sizeof...(T);
};

template <class T>
struct AlternativesOf;
template <class... T>
struct AlternativesOf<std::variant<T...>> {
  static constexpr std::span<const TypeInfo* const> infos{kTypeInfos<T...>};
};

template <class T, std::size_t... I>
consteval std::span<const TypeInfo* const> tuple_infos(std::index_sequence<I...>) {
  if constexpr (sizeof...(I) == 0) {
    return {};
  } else {
    return kTypeInfos<std::remove_cv_t<std::tuple_element_t<I, T>>...>;
  }
}

struct ListTypes {
  template <class... M>
  constexpr TypeList<std::remove_cv_t<M>...> operator()(M&...) const {
    return {};
  }
};

template <class T>
using MemberTypes = decltype(visit_members(std::declval<T&>(), ListTypes{}));

/// Writes where each member is, and null behind the last.
template <class Void>
struct MemberAddresses {
  Void** at;

  template <class... M>
  void operator()(M&... member) const {
    Void** next = at;
    ((*next++ = std::addressof(member)), ...);
    *next = nullptr;
  }
};

/// What Describe says of the member called `name`, or null.
template <class T>
consteval const About* about_member(std::string_view name) {
  if constexpr (requires { Describe<T>::members; }) {
    for (const About& about : Describe<T>::members) {
      if (about.member == name) return &about;
    }
  }
  return nullptr;
}

/// Whether every member that Describe speaks of exists.
template <class T>
consteval bool describes_members() {
  if constexpr (requires { Describe<T>::members; }) {
    for (const About& about : Describe<T>::members) {
      bool found = false;
      for (std::size_t i = 0; i < kMemberCount<T>; ++i) found = found || kMemberNamePool<T>[i] == about.member;
      if (!found) return false;
    }
  }
  return true;
}

template <class T, class... M>
consteval auto make_member_infos(TypeList<M...>) {
  static_assert(describes_members<T>(), "wirecall: Describe<T>::members names a member that T does not have");
  std::array<MemberInfo, sizeof...(M)> infos{MemberInfo{{}, &TypeInfoOf<M>::value, nullptr, !kIsOptional<M>}...};
  for (std::size_t i = 0; i < sizeof...(M); ++i) {
    infos[i].name = kMemberNamePool<T>[i];
    infos[i].about = about_member<T>(infos[i].name);
    if (infos[i].about == nullptr) continue;
    if (!infos[i].about->name.empty()) infos[i].name = infos[i].about->name;
    if (infos[i].about->optional) infos[i].required = false;
  }
  return infos;
}

// Its type is written out because recursive types refer to it while it is being made.
template <class T>
inline constexpr std::array<MemberInfo, kMemberCount<T>> kMemberInfos = make_member_infos<T>(MemberTypes<T>{});

template <class T>
consteval TypeInfo make_type_info() {
  constexpr Kind kind = kKind<T>;
  TypeInfo info;
  if constexpr (kind == Kind::adapted) {
    if constexpr (requires { Adapt<T>::name; }) info.name = Adapt<T>::name;
    if constexpr (requires { Adapt<T>::schema; }) info.schema = &Adapt<T>::schema;
  } else if constexpr (kind == Kind::null) {
    info.kind = TypeKind::null;
  } else if constexpr (kind == Kind::boolean) {
    info.kind = TypeKind::boolean;
  } else if constexpr (kind == Kind::integer) {
    info.kind = TypeKind::integer;
    info.minimum = std::is_signed_v<T> ? static_cast<std::int64_t>(std::numeric_limits<T>::min()) : 0;
    info.maximum = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
  } else if constexpr (kind == Kind::number) {
    info.kind = TypeKind::number;
  } else if constexpr (kind == Kind::string) {
    info.kind = TypeKind::string;
  } else if constexpr (kind == Kind::bytes) {
    info.kind = TypeKind::bytes;
  } else if constexpr (kind == Kind::enumeration) {
    info.kind = TypeKind::enumeration;
    info.name = kTypeNamePool<T>[0];
    info.names = kEnumNames<T>;
  } else if constexpr (kind == Kind::optional) {
    info.kind = TypeKind::optional;
    if constexpr (requires { typename T::element_type; }) {
      info.types = kTypeInfos<typename T::element_type>;
    } else {
      info.types = kTypeInfos<typename T::value_type>;
    }
  } else if constexpr (kind == Kind::variant) {
    info.kind = TypeKind::one_of;
    info.types = AlternativesOf<T>::infos;
  } else if constexpr (kind == Kind::duration) {
    return make_type_info<typename T::rep>();
  } else if constexpr (kind == Kind::time) {
    info.kind = TypeKind::string;
    info.format = "date-time";
  } else if constexpr (kind == Kind::array) {
    info.kind = TypeKind::array;
    if constexpr (std::is_array_v<T>) {
      info.length = std::extent_v<T>;
      info.types = kTypeInfos<std::remove_extent_t<T>>;
    } else {
      info.length = std::tuple_size_v<T>;
      info.types = kTypeInfos<typename T::value_type>;
    }
  } else if constexpr (kind == Kind::sequence) {
    info.kind = TypeKind::array;
    info.types = kTypeInfos<std::remove_cv_t<typename T::value_type>>;
  } else if constexpr (kind == Kind::tuple) {
    info.kind = TypeKind::tuple;
    info.length = std::tuple_size_v<T>;
    info.types = tuple_infos<T>(std::make_index_sequence<std::tuple_size_v<T>>{});
  } else if constexpr (kind == Kind::map) {
    info.kind = TypeKind::map;
    info.types = kTypeInfos<typename T::mapped_type>;
  } else if constexpr (kind == Kind::aggregate) {
    info.kind = TypeKind::object;
    info.name = kTypeNamePool<T>[0];
    info.members = std::span<const MemberInfo>{kMemberInfos<T>};
  } else {
    refuse_unknown<T>();
  }
  if constexpr (requires { Describe<T>::description; }) info.description = Describe<T>::description;
  return info;
}

template <class T>
constinit const TypeInfo TypeInfoOf<T>::value = make_type_info<T>();

}  // namespace wirecall::detail
