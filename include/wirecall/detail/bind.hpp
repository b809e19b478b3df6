// The typed edge of dispatch: turns a callable into an untyped Binding that decodes params into its argument tuple,
// calls it, and encodes what it returns. Everything that does not need the types is compiled (src/rpc/params.cpp).
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "wirecall/call.hpp"
#include "wirecall/detail/blocking_pool.hpp"
#include "wirecall/detail/event_sink.hpp"
#include "wirecall/detail/items.hpp"
#include "wirecall/detail/off_loop_reply.hpp"
#include "wirecall/detail/param_readers.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/stream.hpp"
#include "wirecall/task.hpp"
#include "wirecall/value.hpp"

namespace wirecall::detail {

// ---- what the compiled side knows of a function ----

/// One parameter as decoded from the wire.
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

  /// It takes any number of values, and has no name. Those that do come after all that have one.
  [[nodiscard]] bool gathers() const noexcept { return rest || decode_other != nullptr; }
};

struct Signature {
  std::span<const ArgumentType> arguments;
  const TypeInfo* result;
  bool asynchronous = false;        ///< returns a Task or Stream
  bool stream = false;              ///< returns a Stream
  const TypeInfo* event = nullptr;  ///< what a subscription brings; null for what is none
};

/// The param by which the Language Server Protocol asks for results as they come. A stream's handler need not know it.
inline constexpr std::string_view kProgressToken = "partialResultToken";

/// Which parameters a call gave is kept in one word.
inline constexpr std::size_t kParametersMax = 63;

using Invoke = void (*)(void* callable, Call& call);

struct Binding {
  std::unique_ptr<void, void (*)(void*)> callable;
  Invoke invoke;
  const Signature* signature;
};

/// To decode so many bytes, and to do what is to be done with what they hold, may take so long that the loop had better
/// not wait for it.
inline constexpr std::size_t kLongParams = 256 * 1024;

/// Decodes positional or named params, defaults filled in, into `arguments` (one pointer each, in order). False after
/// a failure, which `readers.reader` tells. Any thread.
bool decode_params(std::string_view params, const Method& method, ParamReaders& readers, void* const* arguments);
/// Puts the integers that `message` has by name in the order of the method's parameters. False when they are not just
/// these.
bool order_by_name(const Received& message, const Method& method, std::uint32_t* values) noexcept;
/// Readers of its own over a copy of the params, for handlers that outlive the frame.
struct OwnedParams {
  OwnedParams(std::string_view params, const Codec& codec);
  ParamReaders readers;
  Buffer text;
};

// ---- what kind of thing a callable returns ----

template <class T>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<Task<T>> = true;
template <class T>
inline constexpr bool is_stream = false;
template <class T>
inline constexpr bool is_stream<Stream<T>> = true;
template <class T>
inline constexpr bool is_expected = false;
template <class T, class E>
inline constexpr bool is_expected<std::expected<T, E>> = true;
template <class T>
inline constexpr bool is_rest = false;
template <class T>
inline constexpr bool is_rest<Rest<T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

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

/// After so many items a stream that never waits gives other calls of its thread a turn.
inline constexpr std::size_t kItemsPerTurn = 256;

/// What remains to be said once a stream has ended.
struct StreamResult {
  std::shared_ptr<Items> items;
};

/// Answers `sink` (a Call, a ReplySink or an OffLoopReply) with what the callable returned.
template <class Sink, class T>
void answer(Sink& sink, const T& value) {
  if constexpr (is_expected<T>) {
    static_assert(std::is_convertible_v<const typename T::error_type&, Error>,
                  "a handler that returns std::expected must have wirecall::Error as its error type");
    if (!value) return sink.error(as_answer(value.error()));
    if constexpr (std::is_void_v<typename T::value_type>) {
      answer(sink, std::monostate{});
    } else {
      answer(sink, *value);
    }
  } else if constexpr (std::is_same_v<Sink, Call> && kKind<T> == Kind::integer && std::is_signed_v<T>) {
    sink.integer_result(value);
  } else {
    if (Writer* writer = sink.begin_result()) {
      if constexpr (std::is_same_v<T, StreamResult>) {
        value.items->write_result(*writer);
      } else {
        encode(*writer, value);
      }
    }
    sink.end_result();
  }
}

// ---- from a callable to a Binding ----

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

template <class A>
inline constexpr ArgumentType kArgumentType{&decode_argument<A>,
                                            is_optional<A>,
                                            is_rest<A>,
                                            &accepts_argument<A>,
                                            &TypeInfoOf<typename ElementOf<A>::type>::value,
                                            std::signed_integral<A> ? sizeof(A) : 0};

template <class R, class... A>
struct Shape {
  using Result = R;
  using Arguments = std::tuple<std::remove_cvref_t<A>...>;
  static_assert(sizeof...(A) <= kParametersMax, "wirecall: a method takes at most 63 parameters; take a struct");
  static_assert((std::is_default_constructible_v<std::remove_cvref_t<A>> && ...),
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
  static constexpr bool kOutParameters =
      ((std::is_lvalue_reference_v<A> && !std::is_const_v<std::remove_reference_t<A>>) || ...);
  static constexpr ArgumentType kArguments[sizeof...(A) + 1] = {kArgumentType<std::remove_cvref_t<A>>...};

  using PlainResult = std::remove_cvref_t<typename ResultOf<std::remove_cvref_t<R>>::type>;
  static constexpr Signature kSignature{
      {kArguments, sizeof...(A)},
      &TypeInfoOf<std::conditional_t<std::is_void_v<PlainResult>, std::monostate, PlainResult>>::value,
      is_task<R> || is_stream<R>,
      is_stream<R>};
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

template <class Arguments>
struct ArgumentPointers {
  static constexpr std::size_t kSize = std::tuple_size_v<Arguments>;
  void* pointers[kSize + 1];
  explicit ArgumentPointers(Arguments& arguments) noexcept {
    pointers[kSize] = nullptr;
    fill(arguments, std::make_index_sequence<kSize>{});
  }

 private:
  template <std::size_t... I>
  void fill([[maybe_unused]] Arguments& arguments, std::index_sequence<I...>) noexcept {
    ((pointers[I] = &std::get<I>(arguments)), ...);
  }
};

// By-value and rvalue parameters may take the argument; it is not used again.
template <class S, class F, class C>
decltype(auto) apply(F& function, C&& context, typename S::Arguments& arguments) {
  return std::apply(
      [&](auto&... argument) -> decltype(auto) {
        if constexpr (S::kTakesContext) {
          return function(std::forward<C>(context), std::move(argument)...);
        } else {
          return function(std::move(argument)...);
        }
      },
      arguments);
}

// Whether A takes any integer that Received::integers holds; a float takes the nearest one that it has.
template <class A>
inline constexpr bool kHoldsKept =
    kKind<A> == Kind::number || (kKind<A> == Kind::integer && sizeof(A) >= sizeof(std::uint32_t));

// Takes the integers that were read together with the envelope. False when they are not the arguments.
template <class... A>
[[gnu::always_inline]] inline bool take_kept(const Received& message, const Method& method,
                                             std::tuple<A...>& arguments) {
  constexpr std::size_t kCount = sizeof...(A);
  constexpr bool kRestLast = (is_rest<A> || ...);
  if constexpr (kCount != 0 && kCount <= kIntegersKept && (kHoldsKept<typename ElementOf<A>::type> && ...)) {
    const std::size_t count = message.integer_count;
    if (kRestLast ? count < kCount || message.integers_named : count != kCount) return false;
    std::array<std::uint32_t, kCount> by_name;
    const std::uint32_t* values = message.integers.data();
    if (message.integers_named) {
      if (!order_by_name(message, method, by_name.data())) return false;
      values = by_name.data();
    }
    std::size_t i = 0;
    const auto take = [&]<class T>(T& argument) {
      if constexpr (is_rest<T>) {
        for (; i != count; ++i) argument.push_back(static_cast<typename T::value_type>(values[i]));
      } else {
        argument = static_cast<T>(values[i++]);
      }
    };
    std::apply([&](A&... argument) { (take(argument), ...); }, arguments);
    return true;
  } else {
    return false;
  }
}

template <class Arguments>
[[gnu::noinline]] bool decode_arguments(std::string_view params, const Method& method, ParamReaders& readers,
                                        Arguments& arguments) {
  const ArgumentPointers<Arguments> pointers{arguments};
  return decode_params(params, method, readers, pointers.pointers);
}

struct NoContext {};

template <class S>
auto context_of(Call& call) {
  if constexpr (S::kTakesContext) {
    return call.context();
  } else {
    return NoContext{};
  }
}

/// What HandlerScope knows a call's handler by; null for one that cannot tell others of its call.
[[nodiscard]] inline const void* call_of(const Context& context) noexcept { return context.caller_link().get(); }
[[nodiscard]] inline const void* call_of(const NoContext&) noexcept { return nullptr; }

// What the function returns, or what stands for nothing.
template <class S, class F, class C>
[[gnu::always_inline]] inline decltype(auto) value_of(F& function, C&& context, typename S::Arguments& arguments) {
  if constexpr (std::is_void_v<typename S::Result>) {
    detail::apply<S>(function, std::forward<C>(context), arguments);
    return std::monostate{};
  } else {
    return detail::apply<S>(function, std::forward<C>(context), arguments);
  }
}

// ---- handlers that are called at once ----

/// What of a call can be used without the loop.
struct OffLoopCall {
  std::string_view params;
  const Codec& codec;
  const Method& method;
};

/// Decodes, calls, writes the answer, and destroys what was decoded. Thread: any.
template <class S, class F, class C>
void run_off_loop(F& function, C& context, const OffLoopCall& call, WatchdogScope& scope,
                  OffLoopReply& reply) noexcept {
  try {
    ParamReaders readers{.reader = call.codec.reader(), .defaults = {}};
    typename S::Arguments arguments{};
    if (!decode_arguments(call.params, call.method, readers, arguments))
      return reply.error(decode_error(*readers.reader));
    scope.enter_phase(WatchdogSlot::kHandler);
    const auto& result = value_of<S>(function, std::move(context), arguments);
    scope.enter_phase(WatchdogSlot::kAround);
    answer(reply, result);
  } catch (...) {
    reply.error_in_flight();
  }
}

/// The call of a plain function whose params are long: whatever of it takes long, the loop can go on without it.
template <class S, class F>
[[gnu::noinline]] void invoke_long(void* callable, Call& call) {
  OffLoopReply reply{call};
  auto context = context_of<S>(call);
  {
    WatchdogScope scope{call.watchdog_slot(), call.method(), &call, WatchdogSlot::kAround};
    run_off_loop<S>(*static_cast<F*>(callable), context, {call.params(), call.codec(), call.method()}, scope, reply);
  }
  reply.give(call);
}

/// Of a handler that may have lost the loop: its result is written, and destroyed, before its thread rejoins.
template <class Result, class T>
[[gnu::noinline]] void answer_late(Call& call, WatchdogScope scope, T& result) {
  OffLoopReply reply{call};
  scope.enter_phase(WatchdogSlot::kAround);
  answer(reply, result);
  if constexpr (std::is_object_v<Result> && !std::is_const_v<Result> && std::is_move_constructible_v<Result>)
      [[maybe_unused]]
    const Result destroyed{std::move(result)};
  scope.close();
  reply.give(call);
}

template <class S, class F>
void invoke_sync(void* callable, Call& call) {
  typename S::Arguments arguments{};
  if (!take_kept(call.message(), call.method(), arguments)) {
    if (call.params().size() >= kLongParams) [[unlikely]]
      return invoke_long<S, F>(callable, call);
    ParamReaders& readers = call.param_readers();
    if (!decode_arguments(call.params(), call.method(), readers, arguments))
      return call.invalid_params(*readers.reader);
  }
  auto context = context_of<S>(call);
  WatchdogScope scope{call.watchdog_slot(), call.method(), &call};
  auto&& result = value_of<S>(*static_cast<F*>(callable), std::move(context), arguments);
  if (scope.may_be_late()) [[unlikely]]
    return answer_late<typename S::Result>(call, std::move(scope), result);
  scope.close();
  answer(call, result);
}

// ---- handlers that wait ----

/// What a waiting call keeps alive: its params' text and the arguments decoded from it, to which its coroutine refers.
template <class S>
struct AsyncState {
  AsyncState(std::string_view text, const Codec& codec) : params(text, codec) {}

  OwnedParams params;
  typename S::Arguments arguments{};
  ReplySink sink;
  Call* call = nullptr;      // while invoke_async is on the stack: answers then need no entry in the table
  bool* finished = nullptr;  // on that stack
};

/// Answers with what `result` holds; exceptions, those of encoding included, become errors.
template <class S, class T>
void answer_finished(AsyncState<S>& state, TaskResult<T>& result) {
  const auto with = [&](auto& sink) {
    try {
      if (!result) std::rethrow_exception(result.error());
      if constexpr (std::is_void_v<T>) {
        answer(sink, std::monostate{});
      } else {
        answer(sink, *result);
      }
    } catch (...) {
      sink.error_in_flight();
    }
  };
  if (state.call != nullptr) {
    *state.finished = true;
    with(*state.call);
  } else {
    with(state.sink);
  }
}

template <class T>
Task<StreamResult> pass_on(Stream<T> stream, std::shared_ptr<Items> items, Scheduler* scheduler) {
  std::size_t count = 0;
  while (std::optional<T> item = co_await stream.next()) {
    co_await items->until_writable();
    items->add(*item);
    if (++count % kItemsPerTurn == 0 && scheduler != nullptr)
      co_await sleep_for(*scheduler, std::chrono::nanoseconds{0});
  }
  co_return StreamResult{std::move(items)};
}

template <class S, class F>
void invoke_async(void* callable, Call& call) {
  // Before the loop may be lost: it takes with the call what belongs to it.
  [[maybe_unused]] std::shared_ptr<Items> items;
  if constexpr (is_stream<typename S::Result>) items = call.items();
  static_cast<void>(call.bounds());  // its time is counted from here
  auto context = context_of<S>(call);
  const void* const handled = call_of(context);
  std::unique_ptr<AsyncState<S>> owned;
  bool decoded = false;
  {
    const WatchdogScope scope{call.params().size() >= kLongParams ? call.watchdog_slot() : nullptr, call.method(),
                              &call, WatchdogSlot::kAround};
    owned = std::make_unique<AsyncState<S>>(call.params(), call.codec());
    decoded = decode_arguments(owned->params.text.view(), call.method(), owned->params.readers, owned->arguments);
  }
  AsyncState<S>& state = *owned;
  if (!decoded) return call.invalid_params(*state.params.readers.reader);
  std::stop_token stop = call.stop_token();
  [[maybe_unused]] Scheduler* const scheduler = call.scheduler();
  const auto make_task = [&]() {
    const HandlerScope handler{handled};
    const WatchdogScope scope{call.watchdog_slot(), call.method(), nullptr};
    auto made = detail::apply<S>(*static_cast<F*>(callable), std::move(context), state.arguments);
    if constexpr (is_stream<typename S::Result>) {
      return pass_on(std::move(made), std::move(items), scheduler);
    } else {
      return made;
    }
  };
  bool finished = false;
  state.call = &call;
  state.finished = &finished;
  auto task = make_task();
  using Value = typename decltype(task)::value_type;
  call.tasks().start(
      std::move(task), std::move(stop),
      [owned = std::move(owned)](TaskResult<Value> result) mutable { answer_finished<S, Value>(*owned, result); },
      &call.method(), handled);
  if (finished) return;
  state.call = nullptr;
  state.sink = call.detach();
}

// ---- subscriptions ----

/// What a subscription keeps alive: its params' text, and the arguments to which its coroutine refers.
template <class S>
struct SubscriptionState {
  SubscriptionState(std::string_view text, const Codec& codec) : params(text, codec) {}

  OwnedParams params;
  typename S::Arguments arguments{};
  std::shared_ptr<EventSink> sink;
  bool answered = false;  // the call: what is thrown from then on is told by an event
};

template <class T>
Task<void> pass_on_events(Stream<T> stream, std::shared_ptr<EventSink> sink) {
  std::size_t count = 0;
  while (std::optional<T> item = co_await stream.next()) {
    if (count == 0) co_await sink->answered();
    co_await sink->items().until_writable();
    sink->items().add(*item);
    if (++count % kItemsPerTurn == 0 && sink->context().scheduler() != nullptr)
      co_await sleep_for(*sink->context().scheduler(), std::chrono::nanoseconds{0});
  }
}

template <class S, class F>
void invoke_subscription(void* callable, Call& call) {
  const std::shared_ptr<EventSink> sink = call.subscribe();
  if (!sink) return;
  const auto state = std::make_shared<SubscriptionState<S>>(call.params(), call.codec());
  if (!decode_arguments(state->params.text.view(), call.method(), state->params.readers, state->arguments))
    return call.invalid_params(*state->params.readers.reader);
  const std::stop_token stop = sink->context().stop_token();
  const void* const handled = call_of(sink->context());
  std::exception_ptr refusal;
  const auto make_task = [&] {
    const HandlerScope handler{handled};
    return pass_on_events(detail::apply<S>(*static_cast<F*>(callable), Context{sink->context()}, state->arguments),
                          sink);
  };
  call.tasks().start(
      make_task(), stop,
      [state, sink, &refusal](const TaskResult<void>& result) {
        if (result) return;
        if (state->answered) return sink->fail(result.error());
        refusal = result.error();
      },
      &call.method(), handled);
  if (refusal) std::rethrow_exception(refusal);
  state->answered = true;
  answer(call, sink->id());
}

template <class S>
struct SubscriptionSignature {
  using Event = std::remove_cvref_t<typename ResultOf<std::remove_cvref_t<typename S::Result>>::type>::value_type;
  static constexpr Signature kSignature{{S::kArguments, std::tuple_size_v<typename S::Arguments>},
                                        &TypeInfoOf<std::string>::value,
                                        true,
                                        false,
                                        &TypeInfoOf<Event>::value};
};

// ---- handlers that block ----

/// A callable of which wirecall::blocking says that it blocks.
template <class F>
struct Blocking {
  F function;
};
template <class F>
inline constexpr bool is_blocking = false;
template <class F>
inline constexpr bool is_blocking<Blocking<F>> = true;

template <class S, class F>
void invoke_blocking(void* callable, Call& call) {
  BlockingPool* const pool = call.blocking_pool();
  if (pool == nullptr) return invoke_sync<S, F>(callable, call);
  OffLoopReply reply{call};
  Buffer params{call.params()};
  static_cast<void>(params.padded());
  auto context = context_of<S>(call);
  const Codec& codec = call.codec();
  const Method& method = call.method();
  pool->run([callable, &codec, &method, reply = std::move(reply), params = std::move(params),
             context = std::move(context), sink = call.detach()]() mutable -> BlockingPool::Job {
    WatchdogScope unwatched{nullptr, method, nullptr};
    run_off_loop<S>(*static_cast<F*>(callable), context, {params.view(), codec, method}, unwatched, reply);
    return [reply = std::move(reply), sink = std::move(sink)]() mutable { reply.give(sink); };
  });
}

template <class S, class F>
Binding binding_of(F callable, Invoke invoke) {
  return {{new F(std::move(callable)), [](void* stored) { delete static_cast<F*>(stored); }}, invoke, &S::kSignature};
}

template <class F>
Binding bind(Blocking<F> blocking) {
  using S = typename ShapeOf<typename FunctionType<F>::type>::type;
  static_assert(!is_task<typename S::Result> && !is_stream<typename S::Result>,
                "wirecall: a coroutine waits without blocking its thread; offer it without wirecall::blocking");
  return binding_of<S>(std::move(blocking.function), &invoke_blocking<S, F>);
}

template <class F>
  requires(!is_blocking<std::decay_t<F>>)
Binding bind(F&& callable) {
  using Stored = std::decay_t<F>;
  using S = typename ShapeOf<typename FunctionType<Stored>::type>::type;
  static_assert(!S::kOutParameters,
                "wirecall: a parameter taken by non-const reference would be changed and lost; take it by value or by "
                "const reference and return what changed");
  Invoke invoke;
  if constexpr (is_task<typename S::Result> || is_stream<typename S::Result>) {
    invoke = &invoke_async<S, Stored>;
  } else {
    invoke = &invoke_sync<S, Stored>;
  }
  return binding_of<S>(Stored(std::forward<F>(callable)), invoke);
}

template <class F>
Binding bind_subscription(F&& callable) {
  using Stored = std::decay_t<F>;
  using S = typename ShapeOf<typename FunctionType<Stored>::type>::type;
  static_assert(is_stream<typename S::Result>,
                "wirecall: what can be subscribed to is a coroutine that returns a Stream");
  static_assert(!S::kOutParameters, "wirecall: a parameter taken by non-const reference would be changed and lost");
  return {{new Stored(std::forward<F>(callable)), [](void* stored) { delete static_cast<Stored*>(stored); }},
          &invoke_subscription<S, Stored>,
          &SubscriptionSignature<S>::kSignature};
}

template <class M, class C, class R, class... A>
Binding bind_member_as(std::type_identity<R(A...)>, M member, C& object) {
  return detail::bind(
      [&object, member](A... arguments) -> R { return (object.*member)(std::forward<A>(arguments)...); });
}
template <class M, class C>
Binding bind_member(M member, C& object) {
  return bind_member_as(std::type_identity<typename FunctionType<M>::type>{}, member, object);
}

}  // namespace wirecall::detail
