// What a call brings back beside its result: the variables that its arguments refer to. The answer is decoded whole
// before any of them is written, so that none is where it is no answer to the call. Not for users.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "wirecall/codec.hpp"
#include "wirecall/out.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall {
namespace detail {

/// A result and what comes back with it: {"return", "out"}. `T` may be void.
template <class T, class... Ts>
struct Returned {
  std::conditional_t<std::is_void_v<T>, std::monostate, T> value{};
  std::tuple<Ts...> outputs{};
};

template <class... Ts>
using Variables = std::tuple<Ts*...>;

/// Writes the variables, and gives the result alone.
template <class T, class... Ts>
T deliver(Returned<T, Ts...>&& returned, const Variables<Ts...>& variables) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((*std::get<I>(variables) = std::move(std::get<I>(returned.outputs))), ...);
  }(std::index_sequence_for<Ts...>{});
  if constexpr (!std::is_void_v<T>) return std::move(returned.value);
}

/// Decodes the members of an object by their order: a caller does not know the names of parameters. Exactly as many as
/// there are places.
bool decode_in_order(Reader& reader, std::span<const DecodeFunction> decode, void* const* at);

// ---- arguments that are written ----

template <class A>
struct OutputOf {
  static constexpr bool kIs = false;
  static constexpr bool kSent = true;
};
template <class T>
struct OutputOf<std::reference_wrapper<T>> {
  static_assert(!std::is_const_v<T>, "wirecall: nothing can come back into a const variable; give its value");
  static constexpr bool kIs = true;
  static constexpr bool kSent = true;
  static std::tuple<T*> variable(const std::reference_wrapper<T>& argument) noexcept { return {&argument.get()}; }
};
template <class T>
struct OutputOf<Out<T>> {
  static constexpr bool kIs = true;
  static constexpr bool kSent = false;
  static std::tuple<T*> variable(const Out<T>& argument) noexcept { return {&*argument}; }
};

template <class A>
auto variable_of(const A& argument) {
  if constexpr (OutputOf<A>::kIs) {
    return OutputOf<A>::variable(argument);
  } else {
    return std::tuple<>{};
  }
}
/// The variables among the arguments, in order.
template <class... Args>
auto variables_of(const Args&... args) {
  return std::tuple_cat(variable_of(args)...);
}

/// Does not compile where something is to come back.
template <bool kComesBack, class... Args>
consteval void check_notification() {
  static_assert(!kComesBack, "wirecall: a notification has no answer, so nothing can come back into a variable");
}

}  // namespace detail

template <class T, class... Ts>
struct Adapt<detail::Returned<T, Ts...>> {
  static_assert((!detail::kBorrows<Ts> && ...),
                "wirecall: what a variable borrows from an answer is gone with it; let it own, as std::string does");

  static bool decode(Reader& reader, detail::Returned<T, Ts...>& out) {
    if (!reader.begin_object()) return false;
    bool has_return = std::is_void_v<T>;
    bool has_out = false;
    for (std::string_view name; reader.next_member(name);) {
      if ((name == "return" && has_return && !std::is_void_v<T>) || (name == "out" && has_out)) {
        const std::string twice{name};
        reader.fail("one value");
        return reader.failed_at(twice);
      }
      if (name == "return" && !std::is_void_v<T>) {
        if (!wirecall::decode(reader, out.value)) return reader.failed_at("return");
        has_return = true;
      } else if (name == "out") {
        if (!decode_outputs(reader, out.outputs)) return reader.failed_at("out");
        has_out = true;
      } else {
        static_cast<void>(reader.skip());
      }
    }
    return (has_return && has_out) || reader.fail_missing(has_out ? "return" : "out");
  }
  static constexpr std::string_view name = "an object of \"return\" and \"out\"";

 private:
  static bool decode_outputs(Reader& reader, std::tuple<Ts...>& outputs) {
    static constexpr std::array<detail::DecodeFunction, sizeof...(Ts)> kDecode{&detail::decode_erased<Ts>...};
    return std::apply(
        [&](Ts&... output) {
          void* const at[] = {&output...};
          return detail::decode_in_order(reader, kDecode, at);
        },
        outputs);
  }
};

}  // namespace wirecall
