// What dispatch knows of a C++ function: the types of its parameters and of its result (Signature), told from its type
// at compile time (Shape), and the function behind a pointer that forgets them (Binding).
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "wirecall/context.hpp"
#include "wirecall/input_stream.hpp"
#include "wirecall/out.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/stream.hpp"
#include "wirecall/task.hpp"
#include "wirecall/value.hpp"

namespace wirecall {

class Call;
class Method;

namespace detail {

// ---- what the compiled side knows of a function ----

/// One parameter as decoded from the wire. One that is not sent (Out) is as one that may be left out, has no position,
/// and is decoded from nothing.
struct ArgumentType {
  bool (*decode)(Reader&, void* argument);  ///< for Rest: appends one element
  bool optional;                            ///< may be left out: std::optional
  bool rest;                                ///< takes all positions from here on
  bool (*accepts)(Reader&);                 ///< whether the next value is one
  const TypeInfo* type;                     ///< of Rest: of each element
  std::uint8_t integer_bytes = 0;           ///< of a signed integer, which dispatch then decodes itself
  bool named_only = false;                  ///< no position is for it
  /// Of the last one, to take what is given by a name that is no parameter's; null where such a name is a mistake.
  bool (*decode_other)(Reader&, void* argument, std::string_view name) = nullptr;
  void (*give_back)(Writer&, const void* argument) = nullptr;  ///< of one that comes back: encodes it
  bool sent = true;                                            ///< false for one that only comes back

  /// It takes any number of values, and has no name. Those that do come after all that have one.
  [[nodiscard]] bool gathers() const noexcept { return rest || decode_other != nullptr; }
};

struct Signature {
  std::span<const ArgumentType> arguments;
  const TypeInfo* result;
  bool asynchronous = false;        ///< returns a Task or Stream
  bool stream = false;              ///< returns a Stream
  const TypeInfo* event = nullptr;  ///< what a subscription brings; null for what is none
  const TypeInfo* input = nullptr;  ///< of each item of the stream that it takes; null where it takes none
  bool result_has_out = false;      ///< `result` is the whole object of "return" and "out"; no argument gives back
};

/// The param by which the Language Server Protocol asks for results as they come. A stream's handler need not know it.
inline constexpr std::string_view kProgressToken = "partialResultToken";

/// Which parameters a call gave is kept in one word.
inline constexpr std::size_t kParametersMax = 63;

class BatchCounts;
using Invoke = void (*)(void* callable, Call& call);

struct Binding {
  std::unique_ptr<void, void (*)(void*)> callable;
  Invoke invoke;
  const Signature* signature;
  /// How many calls at once are of use to it, which a client that provides it tells its broker; 0 for any number.
  std::uint32_t concurrency = 0;
  /// Of a function that is called once for many calls; null for others.
  std::shared_ptr<BatchCounts> batches{};
};

// ---- what kind of thing a callable returns ----

template <class T, template <class...> class Template>
inline constexpr bool kIsOf = false;
template <template <class...> class Template, class... Args>
inline constexpr bool kIsOf<Template<Args...>, Template> = true;

template <class T>
inline constexpr bool is_task = kIsOf<T, Task>;
template <class T>
inline constexpr bool is_stream = kIsOf<T, Stream>;
template <class T>
inline constexpr bool is_rest = kIsOf<T, Rest>;
template <class T>
inline constexpr bool is_input = kIsOf<T, InputStream>;

template <class... A>
struct InputItemOf {
  using type = void;
};
template <class A, class... Further>
struct InputItemOf<A, Further...> : InputItemOf<Further...> {};
template <class T, class... Further>
struct InputItemOf<InputStream<T>, Further...> {
  using type = T;
};
/// Of each item of an input; null for void.
template <class T>
consteval const TypeInfo* input_type() {
  if constexpr (std::is_void_v<T>) {
    return nullptr;
  } else {
    return &TypeInfoOf<T>::value;
  }
}

template <class T>
struct ResultOf {
  using type = T;
};
template <class T>
struct ResultOf<Task<T>> : ResultOf<T> {};
template <class T, class E>
struct ResultOf<std::expected<T, E>> : ResultOf<T> {};
template <class T>
struct ResultOf<Stream<T>> {
  using type = std::vector<T>;
};

// ---- what it takes ----

template <class A>
bool decode_argument(Reader& reader, void* argument) {
  if constexpr (is_rest<A>) {
    typename A::value_type element{};
    if (!decode(reader, element)) return false;
    static_cast<A*>(argument)->push_back(std::move(element));
    return true;
  } else {
    return decode(reader, *static_cast<A*>(argument));
  }
}

template <class A>
bool accepts_argument(Reader& reader) {
  A argument{};
  return decode_argument<A>(reader, &argument);
}

template <class A>
struct ElementOf {
  using type = A;
};
template <class T>
struct ElementOf<Rest<T>> {
  using type = T;
};

/// A parameter's value, which way it goes, and as what the function takes it.
template <class A>
struct Parameter {
  using Value = std::remove_cvref_t<A>;
  using Passed = Value&&;  // by-value and rvalue parameters may take the argument; it is not used again
  static constexpr bool kSent = true;
  static constexpr bool kComesBack = false;
};
template <class T>
  requires(!std::is_const_v<T>)
struct Parameter<T&> {
  using Value = T;
  using Passed = T&;
  static constexpr bool kSent = true;
  static constexpr bool kComesBack = true;
  static_assert(!is_rest<T>, "wirecall: Rest has no name by which it could come back; take it by value");
};
template <class T>
struct Parameter<Out<T>> {
  using Value = T;
  using Passed = Out<T>;
  static constexpr bool kSent = false;
  static constexpr bool kComesBack = true;
  static_assert(!is_rest<T>, "wirecall: Rest takes positions, and what only comes back has none");
};
template <class T>
struct Parameter<const Out<T>&> : Parameter<Out<T>> {};
template <class T>
struct Parameter<Out<T>&> : Parameter<Out<T>> {};

template <class A>
inline constexpr ArgumentType kArgumentType{&decode_argument<A>,
                                            kIsOf<A, std::optional>,
                                            is_rest<A>,
                                            &accepts_argument<A>,
                                            &TypeInfoOf<typename ElementOf<A>::type>::value,
                                            std::signed_integral<A> ? sizeof(A) : 0};

inline bool decode_unsent(Reader& reader, void*) {
  reader.fail("nothing");
  return false;
}
inline bool accepts_nothing(Reader&) { return false; }

template <class P>
consteval ArgumentType argument_type() {
  using A = typename P::Value;
  ArgumentType type{&decode_unsent, true, false, &accepts_nothing, &TypeInfoOf<A>::value, 0, true};
  if constexpr (P::kSent) type = kArgumentType<A>;
  if constexpr (P::kComesBack) type.give_back = &encode_erased<A>;
  type.sent = P::kSent;
  return type;
}

/// The parameters for which params are sent, in order: all but an InputStream.
template <class... A>
consteval auto argument_types() {
  std::array<ArgumentType, sizeof...(A) + 1> types{};
  [[maybe_unused]] std::size_t count = 0;
  [[maybe_unused]] const auto add = [&]<class P>(std::type_identity<P>) {
    if constexpr (!is_input<typename P::Value>) types[count++] = argument_type<P>();
  };
  (add(std::type_identity<Parameter<A>>{}), ...);
  return types;
}

template <class R, class... A>
struct Shape {
  using Result = R;
  using Arguments = std::tuple<typename Parameter<A>::Value...>;
  static_assert(sizeof...(A) <= kParametersMax, "wirecall: a method takes at most 63 parameters; take a struct");
  static_assert((std::is_default_constructible_v<typename Parameter<A>::Value> && ...),
                "wirecall: a parameter is made first and then decoded into, so its type needs a default constructor");
  static constexpr bool kTakesContext = false;
  static constexpr bool kRestIsLast = [] {
    constexpr bool kRest[] = {is_rest<std::remove_cvref_t<A>>..., false};
    for (std::size_t i = 0; i + 1 < sizeof...(A); ++i) {
      if (kRest[i]) return false;
    }
    return true;
  }();
  static_assert(kRestIsLast, "wirecall: Rest takes all further positions, so it is the last parameter");
  // A coroutine would refer to what is gone as it goes on.
  static_assert((... && (!std::is_reference_v<A> || !kIsOf<std::remove_cvref_t<A>, Out>)),
                "wirecall: Out is itself a reference, and is taken by value");
  static constexpr bool kAllSent = (Parameter<A>::kSent && ...);
  static constexpr bool kGivesBack = (Parameter<A>::kComesBack || ...);
  static constexpr std::size_t kInputs = (std::size_t{is_input<typename Parameter<A>::Value>} + ... + 0);
  static_assert(kInputs <= 1, "wirecall: a call brings one stream, so a method takes one InputStream");
  static_assert((... && (!std::is_reference_v<A> || !is_input<std::remove_cvref_t<A>>)),
                "wirecall: an InputStream is the handler's, and is taken by value");
  static_assert(kInputs == 0 || is_task<R> || is_stream<R>,
                "wirecall: a handler waits for the items of its InputStream, so it is a coroutine: it returns a Task "
                "or a Stream");
  static constexpr bool kTakesInput = kInputs != 0;
  static constexpr std::size_t kArgumentCount = sizeof...(A) - kInputs;
  static constexpr auto kArguments = argument_types<A...>();

  /// Calls `function` with the arguments, after those that are given.
  template <class F, class... First>
  static decltype(auto) apply(F& function, Arguments& arguments, First&&... first) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) -> decltype(auto) {
      return function(std::forward<First>(first)...,
                      static_cast<typename Parameter<A>::Passed>(std::get<I>(arguments))...);
    }(std::index_sequence_for<A...>{});
  }

  using PlainResult = std::remove_cvref_t<typename ResultOf<std::remove_cvref_t<R>>::type>;
  static constexpr Signature kSignature{
      {kArguments.data(), kArgumentCount},
      &TypeInfoOf<std::conditional_t<std::is_void_v<PlainResult>, std::monostate, PlainResult>>::value,
      is_task<R> || is_stream<R>,
      is_stream<R>,
      nullptr,
      input_type<typename InputItemOf<typename Parameter<A>::Value...>::type>()};
};
template <class R, class... A>
struct ContextShape : Shape<R, A...> {
  static constexpr bool kTakesContext = true;
};

// Sorts a function type into parameters and a leading Context.
template <class F>
struct ShapeOf;
template <class R, class... A>
struct ShapeOf<R(A...)> {
  using type = Shape<R, A...>;
};
template <class R, class C, class... A>
  requires std::is_same_v<std::remove_cvref_t<C>, Context>
struct ShapeOf<R(C, A...)> {
  using type = ContextShape<R, A...>;
};

template <class F>
struct FunctionType {
  static_assert(
      requires { &F::operator(); },
      "wirecall: the parameters of a generic lambda or an overloaded functor cannot be told; give them types, "
      "or name one overload with wirecall::overload<R(A...)>(f)");
  using type = typename FunctionType<decltype(&F::operator())>::type;
};
template <class R, bool kNoexcept, class... A>
struct FunctionType<R (*)(A...) noexcept(kNoexcept)> {
  using type = R(A...);
};
template <class C, class R, bool kNoexcept, class... A>
struct FunctionType<R (C::*)(A...) noexcept(kNoexcept)> {
  using type = R(A...);
};
template <class C, class R, bool kNoexcept, class... A>
struct FunctionType<R (C::*)(A...) const noexcept(kNoexcept)> {
  using type = R(A...);
};
template <class C, class R, bool kNoexcept, class... A>
struct FunctionType<R (C::*)(A...) & noexcept(kNoexcept)> {
  using type = R(A...);
};
template <class C, class R, bool kNoexcept, class... A>
struct FunctionType<R (C::*)(A...) const & noexcept(kNoexcept)> {
  using type = R(A...);
};

}  // namespace detail
}  // namespace wirecall
