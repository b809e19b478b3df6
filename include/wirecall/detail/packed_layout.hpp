// The layout of a C++ type in packed form: a text that says all that the bytes do not, and its hash. A layout that has
// been extended by optional members at the end of one struct knows the hashes of what it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "wirecall/detail/type_info.hpp"
#include "wirecall/schema.hpp"

namespace wirecall::detail {

/// A struct that lacks its last members, as peers have it that were built before those came.
struct ShorterStruct {
  const TypeInfo* type = nullptr;
  std::size_t lacking = 0;  ///< members
};

class LayoutText;
using LayoutFunction = void (*)(LayoutText& out);

class LayoutText {
 public:
  explicit LayoutText(ShorterStruct shorter = {}) : shorter_(shorter) {}

  void append(std::string_view text) { text_ += text; }
  /// "i64"; an enum, duration or time point is of such a type.
  void append_number(bool is_floating, bool is_signed, std::size_t bytes);
  /// "<1/1000>"
  void append_period(std::intmax_t numerator, std::intmax_t denominator);
  void append_count(std::size_t count);
  void append_enumerators(std::span<const EnumEntry> entries);
  /// "<a,b>" with the brackets that are given.
  void append_list(char open, std::span<const LayoutFunction> types, char close);
  /// "{name:type,...}"; "#1" for a struct that the second brace has begun.
  void append_struct(const TypeInfo& type, std::span<const LayoutFunction> types);

  [[nodiscard]] std::string& text() noexcept { return text_; }
  /// In the order of their braces.
  [[nodiscard]] std::span<const TypeInfo* const> structs() const noexcept { return structs_; }

 private:
  std::string text_;
  ShorterStruct shorter_;
  std::vector<const TypeInfo*> structs_;
};

/// How many members at the end of a struct may be absent.
[[nodiscard]] constexpr std::size_t optional_at_end(std::span<const MemberInfo> members) noexcept {
  std::size_t count = 0;
  while (count < members.size() && !members[members.size() - 1 - count].required) ++count;
  return count;
}

class Layout {
 public:
  explicit Layout(LayoutFunction append);
  /// One of which no more is known than its text.
  explicit Layout(std::string text);

  [[nodiscard]] std::string_view text() const noexcept { return text_; }
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  /// The struct that is shorter in the layout with that hash; null where it is none of this one's.
  [[nodiscard]] const ShorterStruct* find_older(std::uint64_t hash) const noexcept;

 private:
  struct Older {
    std::uint64_t hash;
    ShorterStruct shorter;
  };

  std::string text_;
  std::uint64_t hash_;
  std::vector<Older> older_;
};

// ---- templates ----

template <class T>
void append_layout(LayoutText& out);

template <class... T>
inline constexpr LayoutFunction kLayoutFunctions[sizeof...(T) + 1] = {&append_layout<T>..., nullptr};

template <class List>
struct LayoutsOf;
template <class... T>
struct LayoutsOf<TypeList<T...>> {
  static constexpr std::span<const LayoutFunction> value{kLayoutFunctions<T...>, sizeof...(T)};
};
template <class... T>
struct LayoutsOf<std::variant<T...>> : LayoutsOf<TypeList<T...>> {};

template <class T, std::size_t... I>
consteval std::span<const LayoutFunction> tuple_layouts(std::index_sequence<I...>) {
  return LayoutsOf<TypeList<std::remove_cv_t<std::tuple_element_t<I, T>>...>>::value;
}

template <class T>
struct OptionalOf {
  using type = typename T::value_type;
};
template <class T>
  requires requires { typename T::element_type; }
struct OptionalOf<T> {
  using type = typename T::element_type;
};

template <class T>
inline constexpr std::size_t kArrayLength = std::tuple_size_v<T>;
template <class T, std::size_t N>
inline constexpr std::size_t kArrayLength<T[N]> = N;

/// What an enum is packed as.
template <class E>
using EnumNumber =
    std::conditional_t<std::is_same_v<std::underlying_type_t<E>, bool>, std::uint8_t, std::underlying_type_t<E>>;

template <class T>
void append_number_layout(LayoutText& out) {
  out.append_number(std::is_floating_point_v<T>, std::is_signed_v<T>, sizeof(T));
}

template <class T>
void append_ticks_layout(LayoutText& out, std::string_view word) {
  out.append(word);
  append_number_layout<typename T::rep>(out);
  out.append_period(T::period::num, T::period::den);
}

template <class T>
void append_layout(LayoutText& out) {
  constexpr Kind kind = kKind<T>;
  if constexpr (kind == Kind::adapted) {
    out.append("any");
  } else if constexpr (kind == Kind::null) {
    out.append("null");
  } else if constexpr (kind == Kind::boolean) {
    out.append("bool");
  } else if constexpr (kind == Kind::integer || kind == Kind::number) {
    append_number_layout<T>(out);
  } else if constexpr (kind == Kind::string) {
    out.append("str");
  } else if constexpr (kind == Kind::bytes) {
    out.append("bytes");
    if constexpr (kIsArray<T>) out.append_count(kArrayLength<T>);
  } else if constexpr (kind == Kind::enumeration) {
    out.append("enum:");
    append_number_layout<EnumNumber<T>>(out);
    out.append_enumerators(kEnumEntries<T>);
  } else if constexpr (kind == Kind::optional) {
    out.append("optional");
    out.append_list('<', LayoutsOf<TypeList<typename OptionalOf<T>::type>>::value, '>');
  } else if constexpr (kind == Kind::variant) {
    out.append("one_of");
    out.append_list('<', LayoutsOf<T>::value, '>');
  } else if constexpr (kind == Kind::duration) {
    append_ticks_layout<T>(out, "duration:");
  } else if constexpr (kind == Kind::time) {
    append_ticks_layout<T>(out, "time:");
  } else if constexpr (kind == Kind::array) {
    using Element = std::remove_cvref_t<decltype(std::declval<T&>()[0])>;
    out.append_list('[', LayoutsOf<TypeList<Element>>::value, ']');
    out.append_count(kArrayLength<T>);
  } else if constexpr (kind == Kind::sequence) {
    out.append_list('[', LayoutsOf<TypeList<std::remove_cv_t<typename T::value_type>>>::value, ']');
  } else if constexpr (kind == Kind::tuple) {
    out.append_list('(', tuple_layouts<T>(std::make_index_sequence<std::tuple_size_v<T>>{}), ')');
  } else if constexpr (kind == Kind::map) {
    out.append("map");
    out.append_list('<', LayoutsOf<TypeList<typename T::key_type, typename T::mapped_type>>::value, '>');
  } else if constexpr (kind == Kind::aggregate) {
    out.append_struct(TypeInfoOf<T>::value, LayoutsOf<MemberTypes<T>>::value);
  } else {
    refuse_unknown<T>();
  }
}

/// Made at its first use.
template <class T>
[[nodiscard]] const Layout& layout_of() {
  static const Layout layout{&append_layout<T>};
  return layout;
}

}  // namespace wirecall::detail
