// The members of an aggregate: how many, what they are called, where they are. Counted by how many `{}` initialise it
// (each takes exactly one member, arrays too), reached by structured bindings, named by what the compiler prints for
// pointers to them. No macros for the user; up to 40 members, no base classes, no bit-fields.
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "wirecall/detail/names.hpp"

namespace wirecall::detail {

inline constexpr std::size_t kMembersMax = 40;

/// Aggregates of exactly N members.
template <std::size_t N>
struct Members;

/// Whether T can be initialised from N times `{}`, that is, has at least N members.
template <class T, std::size_t N>
struct Takes;

// Initialisers and structured bindings cannot be written for a number of members that is a parameter, so each number
// has a line.
// clang-format off
#define WIRECALL_MEMBERS(N, ...)                                       \
  template <>                                                          \
  struct Members<N> {                                                  \
    template <class T, class F>                                        \
    static constexpr decltype(auto) visit(T& object, F&& function) {   \
      auto& [__VA_ARGS__] = object;                                    \
      return function(__VA_ARGS__);                                    \
    }                                                                  \
  };
#define WIRECALL_TAKES(N, ...)                                         \
  template <class T>                                                   \
  struct Takes<T, N> {                                                 \
    static constexpr bool value = requires { T{__VA_ARGS__}; };        \
  };

WIRECALL_MEMBERS(1, a)
WIRECALL_MEMBERS(2, a, b)
WIRECALL_MEMBERS(3, a, b, c)
WIRECALL_MEMBERS(4, a, b, c, d)
WIRECALL_MEMBERS(5, a, b, c, d, e)
WIRECALL_MEMBERS(6, a, b, c, d, e, f)
WIRECALL_MEMBERS(7, a, b, c, d, e, f, g)
WIRECALL_MEMBERS(8, a, b, c, d, e, f, g, h)
WIRECALL_MEMBERS(9, a, b, c, d, e, f, g, h, i)
WIRECALL_MEMBERS(10, a, b, c, d, e, f, g, h, i, j)
WIRECALL_MEMBERS(11, a, b, c, d, e, f, g, h, i, j, k)
WIRECALL_MEMBERS(12, a, b, c, d, e, f, g, h, i, j, k, l)
WIRECALL_MEMBERS(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
WIRECALL_MEMBERS(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
WIRECALL_MEMBERS(15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
WIRECALL_MEMBERS(16, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
WIRECALL_MEMBERS(17, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q)
WIRECALL_MEMBERS(18, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)
WIRECALL_MEMBERS(19, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s)
WIRECALL_MEMBERS(20, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t)
WIRECALL_MEMBERS(21, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u)
WIRECALL_MEMBERS(22, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v)
WIRECALL_MEMBERS(23, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w)
WIRECALL_MEMBERS(24, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x)
WIRECALL_MEMBERS(25, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y)
WIRECALL_MEMBERS(26, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z)
WIRECALL_MEMBERS(27, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa)
WIRECALL_MEMBERS(28, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab)
WIRECALL_MEMBERS(29, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac)
WIRECALL_MEMBERS(30, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad)
WIRECALL_MEMBERS(31, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae)
WIRECALL_MEMBERS(32, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af)
WIRECALL_MEMBERS(33, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag)
WIRECALL_MEMBERS(34, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag, ah)
WIRECALL_MEMBERS(35, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag, ah, ai)
WIRECALL_MEMBERS(36, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag, ah, ai, aj)
WIRECALL_MEMBERS(37, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak)
WIRECALL_MEMBERS(38, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al)
WIRECALL_MEMBERS(39, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am)
WIRECALL_MEMBERS(40, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an)
WIRECALL_TAKES(1, {})
WIRECALL_TAKES(2, {}, {})
WIRECALL_TAKES(3, {}, {}, {})
WIRECALL_TAKES(4, {}, {}, {}, {})
WIRECALL_TAKES(5, {}, {}, {}, {}, {})
WIRECALL_TAKES(6, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(7, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(8, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(9, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(10, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(11, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(12, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(13, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(14, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(15, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(16, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(17, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(18, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(19, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(20, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(21, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(22, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(23, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(24, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(25, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(26, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(27, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(28, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(29, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(30, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(31, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(32, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(33, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(34, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(35, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(36, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(37, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(38, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(39, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(40, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
WIRECALL_TAKES(41, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
#undef WIRECALL_MEMBERS
#undef WIRECALL_TAKES
// clang-format on

template <>
struct Members<0> {
  template <class T, class F>
  static constexpr decltype(auto) visit(T&, F&& function) {
    return function();
  }
};

/// Converts to a base class of T and to nothing else.
template <class T>
struct AnyBaseOf {
  template <class Base>
    requires(std::is_base_of_v<Base, T> && !std::is_same_v<Base, T>)
  operator Base() const;
};

template <class T>
inline constexpr bool kIsAggregate = std::is_class_v<T> && std::is_aggregate_v<T>;

/// The count lies in [low, high): Takes<low> holds (or low is 0), Takes<high> does not.
template <class T, std::size_t Low, std::size_t High>
consteval std::size_t count_members_between() {
  if constexpr (High - Low == 1) {
    return Low;
  } else {
    constexpr std::size_t middle = (Low + High) / 2;
    if constexpr (Takes<T, middle>::value) {
      return count_members_between<T, middle, High>();
    } else {
      return count_members_between<T, Low, middle>();
    }
  }
}

template <class T>
consteval std::size_t count_members() {
  static_assert(
      !requires { T{AnyBaseOf<T>{}}; },
      "wirecall: structs with base classes are not reflected; hold the base as a member, or specialise "
      "wirecall::Adapt");
  static_assert(
      requires { T{}; },
      "wirecall: a struct with members that need an initialiser (references, types without a default "
      "constructor) is not reflected; specialise wirecall::Adapt");
  // Most structs are small, and each test costs an instantiation.
  if constexpr (!Takes<T, 8>::value) {
    return count_members_between<T, 0, 8>();
  } else {
    static_assert(!Takes<T, kMembersMax + 1>::value,
                  "wirecall: structs of more than 40 members are not reflected; group them into structs, or specialise "
                  "wirecall::Adapt");
    return count_members_between<T, 8, kMembersMax + 1>();
  }
}

template <class T>
inline constexpr std::size_t kMemberCount = count_members<T>();

template <class T, class F>
constexpr decltype(auto) visit_members(T& object, F&& function) {
  return Members<kMemberCount<std::remove_const_t<T>>>::visit(object, std::forward<F>(function));
}

// An object that is declared only: its members have addresses to print, and nothing else is asked of it.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
template <class T>
struct Imaginary {
  T object;
};
template <class T>
extern const Imaginary<T> kImaginary;

template <auto... V>
consteval std::string_view members_text() {
  return __PRETTY_FUNCTION__;
}

template <std::size_t I, class First, class... Rest>
constexpr auto address_of_nth(First& first, Rest&... rest) {
  if constexpr (I == 0) {
    return &first;
  } else {
    return address_of_nth<I - 1>(rest...);
  }
}

template <class T, std::size_t... I>
consteval auto member_names(std::index_sequence<I...>) {
  return last_names<sizeof...(I)>(pack_text(members_text<visit_members(kImaginary<T>.object, [](auto&... member) {
    return address_of_nth<I>(member...);
  })...>()));
}
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

template <class T>
inline constexpr auto kMemberNamePool = [] {
  constexpr std::size_t count = kMemberCount<T>;
  if constexpr (count == 0) {
    return NamePool<0, 0>{};
  } else {
    constexpr auto names = member_names<T>(std::make_index_sequence<count>{});
    constexpr std::size_t chars = [&] {
      std::size_t sum = 0;
      for (const std::string_view name : names) sum += name.size();
      return sum;
    }();
    NamePool<count, chars> pool;
    for (std::size_t i = 0; i < count; ++i) pool.add(i, names[i]);
    return pool;
  }
}();

}  // namespace wirecall::detail
