// The name by which both sides of a shared header know a function: `math::mean` is "math.mean", `&Counter::add` is
// "Counter.add". It is told from the function itself while compiling, the same by GCC and clang.
//
// Inline namespaces are no part of a name. Clang does not tell of them, but GCC writes them as it writes any namespace,
// so a header that is also compiled by GCC declares them (kInlineNamespace). A function template is known by its name
// alone, and overloads have one name: to serve more than one of them, give the others a name (MethodName).
// Thread: any, since all of it is constant.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "wirecall/detail/names.hpp"

namespace wirecall {

/// A text as a template argument.
template <std::size_t N>
struct FixedString {
  // NOLINTNEXTLINE: implicit, so that a literal is one
  consteval FixedString(const char (&text)[N]) {
    for (std::size_t i = 0; i < N; ++i) chars[i] = text[i];
  }
  consteval explicit FixedString(std::string_view text) {
    for (std::size_t i = 0; i + 1 < N; ++i) chars[i] = text[i];
  }
  char chars[N]{};
};

/// Specialise it to give a function the name by which it is called: one of several overloads, an instance of a
/// template, an operator.
///
///     template <>
///     struct wirecall::MethodName<wirecall::overload<double(double)>(math::abs)> {
///       static constexpr std::string_view value = "math.abs_of_double";
///     };
template <auto Function>
struct MethodName {};

/// Specialise it to say that a namespace, written in full, is an inline one, and so no part of the names of functions:
///
///     template <>
///     inline constexpr bool wirecall::kInlineNamespace<"math::v1"> = true;
template <FixedString Namespace>
inline constexpr bool kInlineNamespace = false;

namespace detail {

template <auto Function>
consteval std::string_view printed_function() {
  return __PRETTY_FUNCTION__;
}

/// The function's qualified name as the compiler prints it; the arguments of a template, which only GCC prints, are
/// left out.
template <auto Function>
consteval std::string_view qualified_name() {
  std::string_view text = printed_function<Function>();
  const std::size_t begin = text.find("Function = ") + 11;
  text = text.substr(begin, text.find_first_of(";]", begin) - begin);
  if (text.starts_with('&')) text.remove_prefix(1);
  const std::size_t arguments = text.find('<');
  if (arguments == text.npos || arguments == 0 || !text.ends_with('>')) return text;
  int depth = 0;
  for (std::size_t i = arguments; i < text.size(); ++i) {
    depth += text[i] == '<';
    depth -= text[i] == '>';
    if (depth == 0) return i + 1 == text.size() ? text.substr(0, arguments) : text;
  }
  return text;
}

/// Whether it is made of plain identifiers alone: no lambda, operator, local or unnamed scope, or instance of a class
/// template.
consteval bool is_plain_name(std::string_view qualified) {
  bool in_word = false;
  for (std::size_t i = 0; i < qualified.size(); ++i) {
    if (is_name_byte(qualified[i])) {
      in_word = true;
    } else if (in_word && qualified.substr(i).starts_with("::")) {
      in_word = false;
      ++i;
    } else {
      return false;
    }
  }
  return in_word;
}

/// Whether the namespace or class of `Size` characters with which the name begins is declared an inline namespace.
template <auto Function, std::size_t Size>
consteval bool is_inline_scope() {
  return kInlineNamespace<FixedString<Size + 1>{qualified_name<Function>().substr(0, Size)}>;
}

template <auto Function>
inline constexpr bool kIsFunction = std::is_function_v<std::remove_pointer_t<decltype(Function)>> ||
                                    std::is_member_function_pointer_v<decltype(Function)>;

/// Whether the function has a name that another program can know it by.
template <auto Function>
inline constexpr bool kHasMethodName =
    requires { MethodName<Function>::value; } || is_plain_name(qualified_name<Function>());

template <auto Function>
inline constexpr auto kMethodNamePool = [] {
  constexpr std::string_view qualified = qualified_name<Function>();
  NamePool<1, qualified.size()> pool;
  std::array<char, qualified.size() + 1> name{};
  std::size_t size = 0;
  std::size_t word = 0;  // where it begins in `name`
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto take = [&]<std::size_t At>() {
      if constexpr (qualified.substr(At).starts_with("::")) {
        if constexpr (is_inline_scope<Function, At>()) {
          size = word;
        } else {
          name[size++] = '.';
          word = size;
        }
      } else if constexpr (qualified[At] != ':') {
        name[size++] = qualified[At];
      }
    };
    (take.template operator()<I>(), ...);
  }(std::make_index_sequence<qualified.size()>{});
  pool.add(0, std::string_view{name.data(), size});
  return pool;
}();

}  // namespace detail

/// The name by which `Function`, a function or a member function, is served and called.
template <auto Function>
consteval std::string_view method_name() {
  if constexpr (requires { MethodName<Function>::value; }) {
    return MethodName<Function>::value;
  } else {
    static_assert(
        detail::kHasMethodName<Function>,
        "wirecall: this function has no name that another program can know: it is in an anonymous namespace or "
        "local, a lambda, an operator, or a member of a class template; give it one with wirecall::MethodName");
    return detail::kMethodNamePool<Function>[0];
  }
}

namespace detail {

/// Whether `Function` can be served and called by its name; does not compile where it cannot.
template <auto Function>
consteval bool check_function() {
  static_assert(
      kIsFunction<Function>,
      "wirecall: this is no function or member function; a lambda, or another object, has no name that another "
      "program can know");
  if constexpr (kIsFunction<Function>) {
    static_cast<void>(method_name<Function>());
    return kHasMethodName<Function>;
  } else {
    return false;
  }
}

}  // namespace detail
}  // namespace wirecall
