// Packing: has a method take packed params, and answer those calls with a packed result, beside its usual ones:
//
//     server.method("mean", mean, {"values"}).packed(wirecall::packing(mean));
//     server.method<math::mean>({"values"}).packed(wirecall::packing<math::mean>());
//
// Packed params are one packed value (packed.hpp) of all parameters as a tuple, the only element of the params. What
// the calls look like, and whom they can pass, is in docs/packed.md, "In messages"; packed_call.hpp makes them. Thread:
// any, since all of it is constant.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "wirecall/detail/signature.hpp"
#include "wirecall/packed.hpp"

namespace wirecall::detail {

/// How a function's params and result are packed.
struct Packing {
  const Signature* signature;  ///< of the function
  const Layout& (*params)();
  /// Unpacks into `arguments`; after false `position` is that of the one that failed.
  bool (*unpack)(PackedInput& in, void* const* arguments, std::size_t& position);
  ResultPacking result;
};

template <class... A>
bool unpack_arguments(PackedInput& in, [[maybe_unused]] void* const* arguments,
                      [[maybe_unused]] std::size_t& position) {
  if constexpr (sizeof...(A) == 0) {
    return in.nothing(TypeInfoOf<std::tuple<>>::value);
  } else {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return ((position = I, detail::unpack(in, *static_cast<A*>(arguments[I]))) && ...);
    }(std::index_sequence_for<A...>{});
  }
}

template <class S, class Arguments = typename S::Arguments>
struct PackingOf;
template <class S, class... A>
struct PackingOf<S, std::tuple<A...>> {
  using Result = std::conditional_t<std::is_void_v<typename S::PlainResult>, std::monostate, typename S::PlainResult>;
  static constexpr Packing value{&S::kSignature, &layout_of<std::tuple<A...>>, &unpack_arguments<A...>,
                                 kResultPacking<Result>};
};

template <class... A>
consteval bool has_rest(std::type_identity<std::tuple<A...>>) {
  return (is_rest<A> || ...);
}

template <class T>
inline constexpr bool kIsPackedValue = false;
template <class T>
inline constexpr bool kIsPackedValue<Packed<T>> = true;
/// A protobuf message, of which this header knows no more.
template <class T>
concept HasOwnBytes = requires(T& message) {
  message.GetDescriptor();
  message.SerializePartialAsString();
};
template <class T>
inline constexpr bool kHasOwnForm = kIsPackedValue<T> || HasOwnBytes<T>;
template <class... A>
consteval bool has_own_form(std::type_identity<std::tuple<A...>>) {
  return (kHasOwnForm<A> || ...);
}

/// Whether functions of that shape can be packed; does not compile where they cannot, and says why.
template <class S>
consteval bool check_packing() {
  constexpr bool kOnlyIn = S::kAllSent && !S::kGivesBack;
  constexpr bool kNoItems = !S::kTakesInput && !is_stream<typename S::Result>;
  constexpr bool kFixed = !has_rest(std::type_identity<typename S::Arguments>{});
  constexpr bool kPlain =
      !has_own_form(std::type_identity<typename S::Arguments>{}) && !kHasOwnForm<typename S::PlainResult>;
  static_assert(kPlain,
                "wirecall: a Packed value, or a protobuf message, has a form of its own and is not packed again");
  static_assert(kOnlyIn, "wirecall: a parameter that comes back is not packed; return a struct");
  static_assert(kNoItems, "wirecall: the items of a stream are not packed");
  static_assert(kFixed, "wirecall: Rest takes any number of values, which no layout says; take a vector");
  return kPlain && kOnlyIn && kNoItems && kFixed;
}

template <class F>
using ShapeOfFunction = typename ShapeOf<typename FunctionType<F>::type>::type;

}  // namespace wirecall::detail

namespace wirecall {

/// Of a function, lambda, functor or member function.
template <class F>
[[nodiscard]] constexpr const detail::Packing& packing(const F&) noexcept {
  using Shape = detail::ShapeOfFunction<std::decay_t<F>>;
  if constexpr (detail::check_packing<Shape>()) return detail::PackingOf<Shape>::value;
  std::unreachable();
}
template <auto Function>
[[nodiscard]] constexpr const detail::Packing& packing() noexcept {
  return packing(Function);
}

}  // namespace wirecall
