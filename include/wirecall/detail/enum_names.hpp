// EnumTable<E>: the enumerators of E by name and value. Found by asking the compiler to print each value of a range:
// -128 to 255, or what the underlying type holds of it. Beyond it, EnumNames<E> names them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "wirecall/detail/names.hpp"

namespace wirecall {

/// Specialise it for enums whose values lie outside -128 to 255, or whose names on the wire are not those in C++:
///
///     template <> struct wirecall::EnumNames<Status> {
///       static constexpr std::pair<Status, std::string_view> values[] = {{Status::not_found, "not-found"}};
///     };
template <class E>
struct EnumNames {};

namespace detail {

template <class E, E... V>
consteval std::string_view enumerators_text() {
  return __PRETTY_FUNCTION__;
}

// An enum without a fixed underlying type holds only as many bits as its enumerators need. Newer clangs refuse
// constants beyond them, older ones only warn, GCC prints them as numbers.
#if defined(__clang__)
#pragma clang diagnostic push
#if __has_warning("-Wenum-constexpr-conversion")
#pragma clang diagnostic ignored "-Wenum-constexpr-conversion"
#endif
#endif
template <class E, int Value>
concept EnumHolds = requires { typename std::integral_constant<E, static_cast<E>(Value)>; };

template <class E, int Value>
consteval int nearest_held() {
  if constexpr (Value == 0 || EnumHolds<E, Value>) {
    return Value;
  } else {
    return nearest_held<E, Value / 2>();
  }
}

template <class E>
struct EnumFound {
  using Underlying = std::underlying_type_t<E>;
  static constexpr int kSmallest = [] {
    if constexpr (std::is_signed_v<Underlying>) return nearest_held<E, -128>();
    return 0;
  }();
  static constexpr int kLargest = [] {
    constexpr auto kMost = std::numeric_limits<Underlying>::max();
    if constexpr (static_cast<std::uint64_t>(kMost) < 255) {
      return nearest_held<E, static_cast<int>(kMost)>();
    } else {
      return nearest_held<E, 255>();
    }
  }();
  static constexpr std::size_t kRange = static_cast<std::size_t>(kLargest - kSmallest + 1);

  template <std::size_t... I>
  static consteval std::array<std::string_view, kRange> all(std::index_sequence<I...>) {
    return last_names<kRange>(pack_text(enumerators_text<E, static_cast<E>(kSmallest + static_cast<int>(I))...>()));
  }
  static constexpr auto kAll = all(std::make_index_sequence<kRange>{});

  static constexpr bool is_name(std::string_view text) { return !text.empty() && !(text[0] >= '0' && text[0] <= '9'); }
  static constexpr std::pair<std::size_t, std::size_t> kSizes = [] {
    std::pair<std::size_t, std::size_t> sizes;
    for (const std::string_view name : kAll) {
      if (is_name(name)) ++sizes.first, sizes.second += name.size();
    }
    return sizes;
  }();
  static constexpr std::size_t kCount = kSizes.first;

  struct Table {
    NamePool<kCount, kSizes.second> names;
    std::array<std::int64_t, kCount + 1> values{};
  };
  static constexpr Table kTable = [] {
    Table table;
    std::size_t index = 0;
    for (std::size_t i = 0; i < kRange; ++i) {
      if (!is_name(kAll[i])) continue;
      table.values[index] = kSmallest + static_cast<int>(i);
      table.names.add(index++, kAll[i]);
    }
    return table;
  }();
};

#if defined(__clang__)
#pragma clang diagnostic pop
#endif

/// What compiled code needs to know of an enum.
struct EnumEntry {
  std::string_view name;
  std::int64_t value;  ///< of unsigned 64-bit enums the same bits
};

template <class E>
consteval auto make_enum_entries() {
  if constexpr (requires { EnumNames<E>::values; }) {
    std::array<EnumEntry, std::size(EnumNames<E>::values)> entries;
    std::size_t index = 0;
    for (const auto& [value, name] : EnumNames<E>::values) {
      entries[index++] = {name, static_cast<std::int64_t>(value)};
    }
    return entries;
  } else {
    using Found = EnumFound<E>;
    static_assert(Found::kCount != 0,
                  "wirecall: no enumerator between -128 and 255 was found; specialise wirecall::EnumNames");
    std::array<EnumEntry, Found::kCount> entries;
    for (std::size_t i = 0; i < Found::kCount; ++i) entries[i] = {Found::kTable.names[i], Found::kTable.values[i]};
    return entries;
  }
}

template <class E>
inline constexpr auto kEnumEntries = make_enum_entries<E>();

template <class E>
inline constexpr auto kEnumNames = [] {
  std::array<std::string_view, kEnumEntries<E>.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kEnumEntries<E>[i].name;
  return names;
}();

}  // namespace detail
}  // namespace wirecall
