// A call of a function that both sides know from one header: what it takes and returns, whether the arguments of a call
// fit, and as what they are written. Not for users.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "wirecall/detail/outputs.hpp"
#include "wirecall/detail/signature.hpp"
#include "wirecall/function_name.hpp"
#include "wirecall/request_with_outputs.hpp"

namespace wirecall::detail {

/// As what an argument is written: by its value, or as the variable that is to be written.
template <class P>
struct WrittenAs {
  using type = typename Parameter<P>::Value;
};
template <class T>
  requires(!std::is_const_v<T>)
struct WrittenAs<T&> {
  using type = std::reference_wrapper<T>;
};
template <class T>
struct WrittenAs<Out<T>> {
  using type = Out<T>;
};
template <class T>
struct WrittenAs<const Out<T>&> : WrittenAs<Out<T>> {};

/// A result owns what it holds, since the answer is gone when a call returns.
template <class T>
struct OwnedResult {
  using type = T;
};
template <>
struct OwnedResult<std::string_view> {
  using type = std::string;
};
template <>
struct OwnedResult<const char*> {
  using type = std::string;
};

template <class R>
struct ItemOf {
  using type = void;
};
template <class T>
struct ItemOf<Stream<T>> {
  using type = T;
};

template <class F>
struct SharedSignature;
template <class R, class... P>
struct SharedSignature<R(P...)> {
  using Result = typename OwnedResult<std::remove_cvref_t<typename ResultOf<std::remove_cvref_t<R>>::type>>::type;
  using Item = typename ItemOf<std::remove_cvref_t<R>>::type;
  static constexpr std::size_t kCount = sizeof...(P);
  static constexpr bool kGivesBack = (Parameter<P>::kComesBack || ...);
  using Request = RequestOf<Result, typename WrittenAs<P>::type...>;
  using Decoded = DecodedOf<Result, typename WrittenAs<P>::type...>;

  template <class... Args>
  static constexpr bool kReferencesBind = (... && (!Parameter<P>::kComesBack || std::is_convertible_v<Args, P>));
  template <class... Args>
  static constexpr bool kConverts = (... && std::is_convertible_v<Args, P>);

  /// Calls `take` with the arguments as they are written.
  template <class Take, class... Args>
  static decltype(auto) write(Take take, Args&&... args) {
    return take(written<P>(std::forward<Args>(args))...);
  }

 private:
  template <class Parameter, class A>
  static decltype(auto) written(A&& argument) {
    using As = typename WrittenAs<Parameter>::type;
    if constexpr (std::is_same_v<std::remove_cvref_t<A>, As>) {
      return static_cast<const As&>(argument);
    } else if constexpr (std::is_lvalue_reference_v<Parameter> &&
                         std::is_same_v<As, std::reference_wrapper<std::remove_reference_t<Parameter>>>) {
      return As{static_cast<Parameter>(argument)};
    } else {
      return static_cast<As>(std::forward<A>(argument));
    }
  }
};
template <class R, class C, class... P>
  requires std::is_same_v<std::remove_cvref_t<C>, Context>
struct SharedSignature<R(C, P...)> : SharedSignature<R(P...)> {};

/// The function type without its InputStream, which a call gives by `input` and not as an argument.
template <class R, class Kept, class... P>
struct WithoutInput;
template <class R, class... Kept>
struct WithoutInput<R, std::tuple<Kept...>> {
  using type = R(Kept...);
};
template <class R, class... Kept, class P, class... Further>
struct WithoutInput<R, std::tuple<Kept...>, P, Further...>
    : WithoutInput<R, std::conditional_t<is_input<std::remove_cvref_t<P>>, std::tuple<Kept...>, std::tuple<Kept..., P>>,
                   Further...> {};
template <class F>
struct CalledAs;
template <class R, class... P>
struct CalledAs<R(P...)> : WithoutInput<R, std::tuple<>, P...> {};

struct NoSignature {
  using Result = void;
  using Item = void;
  using Request = wirecall::Request<void>;
  using Decoded = void;
  static constexpr bool kGivesBack = false;
};
template <auto Function>
consteval auto shared_signature() {
  if constexpr (kIsFunction<Function>) {
    return std::type_identity<
        SharedSignature<typename CalledAs<typename FunctionType<decltype(Function)>::type>::type>>{};
  } else {
    return std::type_identity<NoSignature>{};
  }
}
template <auto Function>
using SharedFunction = typename decltype(shared_signature<Function>())::type;

/// Whether such arguments fit; does not compile where they do not, and says why.
template <auto Function, class... Args>
consteval bool check_call() {
  using S = SharedFunction<Function>;
  if constexpr (!kIsFunction<Function> || !kHasMethodName<Function>) {
    return check_function<Function>();
  } else if constexpr (sizeof...(Args) != S::kCount) {
    static_assert(sizeof...(Args) == S::kCount,
                  "wirecall: the function takes another number of arguments than this call gives (a Context is the "
                  "server's to give, and default arguments are not known here)");
    return false;
  } else if constexpr (!S::template kReferencesBind<Args...>) {
    static_assert(
        S::template kReferencesBind<Args...>,
        "wirecall: a parameter taken by non-const reference or as Out comes back, so its argument is a variable "
        "of just its type: no temporary, no constant, and nothing that is converted");
    return false;
  } else {
    static_assert(S::template kConverts<Args...>,
                  "wirecall: an argument of this call does not convert to the type of its parameter");
    return S::template kConverts<Args...>;
  }
}

}  // namespace wirecall::detail
