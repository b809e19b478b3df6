// The typed edge of dispatch: turns a callable into an untyped Binding that decodes params into its argument tuple,
// calls it, and encodes what it returns. Everything that does not need the types is compiled (src/rpc/params.cpp).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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
#include "wirecall/detail/signature.hpp"

namespace wirecall::detail {

/// To decode so many bytes, and to do what is to be done with what they hold, may take so long that the loop had better
/// not wait for it.
inline constexpr std::size_t kLongParams = 256 * 1024;

/// Decodes positional or named params, defaults filled in, into `arguments` (one pointer each, in order). False after
/// a failure, which `readers.reader` tells. Any thread.
bool decode_params(std::string_view params, const Method& method, ParamReaders& readers, void* const* arguments);
/// Whether packed params are unpacked for that method.
[[nodiscard]] bool has_packing(const Method& method) noexcept;
/// Unpacks the params of a call whose message says that they are packed, for a method with a packing. False where they
/// do not fit: the call has been answered then.
bool unpack_params(Call& call, void* const* arguments);
/// Puts the integers that `message` has by name in the order of the method's parameters. False when they are not just
/// these.
bool order_by_name(const Received& message, const Method& method, std::uint32_t* values) noexcept;
/// Writes the member "out": the arguments that come back, by their names. `arguments` as above.
void write_out(Writer& writer, const Method& method, const void* const* arguments);
/// Readers of its own over a copy of the params, for handlers that outlive the frame.
struct OwnedParams {
  OwnedParams(std::string_view params, const Codec& codec);
  OwnedParams(OwnedParams&&) = delete;
  ~OwnedParams();
  ParamReaders readers;
  Buffer text;
};

/// After so many items a stream that never waits gives other calls of its thread a turn.
inline constexpr std::size_t kItemsPerTurn = 256;

/// What a callable has returned, and what it has made of the arguments that come back.
template <class S, class T>
struct Outcome {
  const Method& method;
  const typename S::Arguments& arguments;
  const T& result;
};
/// What the caller is told: where no argument comes back, the result alone.
template <class S, class T>
decltype(auto) outcome_of(const Method& method, const typename S::Arguments& arguments, const T& result) {
  if constexpr (S::kGivesBack) {
    return Outcome<S, T>{method, arguments, result};
  } else {
    return (result);
  }
}

template <class T>
void write_result(Writer& writer, const T& value) {
  if constexpr (std::is_same_v<T, StreamResult>) {
    value.items->write_result(writer);
  } else if (!writer.packs(&value, TypeInfoOf<T>::value)) {
    encode(writer, value);
  }
}
template <class S, class T>
void write_result(Writer& writer, const Outcome<S, T>& outcome) {
  writer.begin_object(2);
  writer.key("return");
  write_result(writer, outcome.result);
  std::apply(
      [&](const auto&... argument) {
        const void* pointers[sizeof...(argument)];
        const void** next = pointers;
        const auto add = [&next]<class A>(const A& given) {
          if constexpr (!is_input<A>) *next++ = &given;
        };
        (add(argument), ...);
        write_out(writer, outcome.method, pointers);
      },
      outcome.arguments);
  writer.end_object();
}

template <class Sink, class T>
void answer_error(Sink& sink, const T& error) {
  static_assert(std::is_convertible_v<const T&, Error>,
                "a handler that returns std::expected must have wirecall::Error as its error type");
  sink.error(as_answer(error));
}

/// Answers `sink` (a Call, a ReplySink or an OffLoopReply) with what the callable returned.
template <class Sink, class T>
void answer(Sink& sink, const T& value) {
  if constexpr (kIsOf<T, std::expected>) {
    if (!value) return answer_error(sink, value.error());
    if constexpr (std::is_void_v<typename T::value_type>) {
      answer(sink, std::monostate{});
    } else {
      answer(sink, *value);
    }
  } else if constexpr (std::is_same_v<Sink, Call> && kKind<T> == Kind::integer && std::is_signed_v<T>) {
    sink.integer_result(value);
  } else {
    if (Writer* writer = sink.begin_result()) write_result(*writer, value);
    sink.end_result();
  }
}
template <class Sink, class S, class T>
void answer(Sink& sink, const Outcome<S, T>& outcome) {
  if constexpr (kIsOf<T, std::expected>) {
    if (!outcome.result) return answer_error(sink, outcome.result.error());
    if constexpr (std::is_void_v<typename T::value_type>) {
      answer(sink, Outcome<S, std::monostate>{outcome.method, outcome.arguments, std::monostate{}});
    } else {
      answer(sink, Outcome<S, typename T::value_type>{outcome.method, outcome.arguments, *outcome.result});
    }
  } else {
    if (Writer* writer = sink.begin_result()) write_result(*writer, outcome);
    sink.end_result();
  }
}

template <class S, class F, class C>
decltype(auto) apply(F& function, C&& context, typename S::Arguments& arguments) {
  if constexpr (S::kTakesContext) {
    return S::apply(function, arguments, std::forward<C>(context));
  } else {
    return S::apply(function, arguments);
  }
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

/// What is decoded of `arguments`, in their order.
template <class Arguments>
[[gnu::always_inline]] inline std::array<void*, std::tuple_size_v<Arguments> + 1> pointers_to(Arguments& arguments) {
  std::array<void*, std::tuple_size_v<Arguments> + 1> pointers = {};
  std::apply(
      [&pointers](auto&... argument) {
        [[maybe_unused]] void** next = pointers.data();
        [[maybe_unused]] const auto add = [&next]<class A>(A& decoded) {
          if constexpr (!is_input<A>) *next++ = &decoded;
        };
        (add(argument), ...);
      },
      arguments);
  return pointers;
}

template <class Arguments>
[[gnu::noinline]] bool decode_arguments(std::string_view params, const Method& method, ParamReaders& readers,
                                        Arguments& arguments) {
  return decode_params(params, method, readers, pointers_to(arguments).data());
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
    if (readers.reader->take_own_form()) reply.use_own_form(call.method);
    scope.enter_phase(WatchdogSlot::kHandler);
    const auto& result = value_of<S>(function, std::move(context), arguments);
    scope.enter_phase(WatchdogSlot::kAround);
    answer(reply, outcome_of<S>(call.method, arguments, result));
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
template <class Result, class T, class O>
[[gnu::noinline]] void answer_late(Call& call, WatchdogScope scope, T& result, const O& outcome) {
  OffLoopReply reply{call};
  scope.enter_phase(WatchdogSlot::kAround);
  answer(reply, outcome);
  if constexpr (std::is_object_v<Result> && !std::is_const_v<Result> && std::is_move_constructible_v<Result>)
      [[maybe_unused]]
    const Result destroyed{std::move(result)};
  scope.close();
  reply.give(call);
}

template <class S, class F>
void invoke_sync(void* callable, Call& call) {
  typename S::Arguments arguments{};
  if (!S::kAllSent || !take_kept(call.message(), call.method(), arguments)) {
    if (call.params().size() >= kLongParams) [[unlikely]]
      return invoke_long<S, F>(callable, call);
    if (call.message().params_packed && has_packing(call.method())) {
      if (!unpack_params(call, pointers_to(arguments).data())) return;
    } else {
      ParamReaders& readers = call.param_readers();
      if (!decode_arguments(call.params(), call.method(), readers, arguments))
        return call.invalid_params(*readers.reader);
      if (readers.reader->take_own_form()) [[unlikely]]
        call.use_own_form();
    }
  }
  auto context = context_of<S>(call);
  WatchdogScope scope{call.watchdog_slot(), call.method(), &call};
  auto&& result = value_of<S>(*static_cast<F*>(callable), std::move(context), arguments);
  const auto& outcome = outcome_of<S>(call.method(), arguments, result);
  if (scope.may_be_late()) [[unlikely]]
    return answer_late<typename S::Result>(call, std::move(scope), result, outcome);
  scope.close();
  answer(call, outcome);
}

// ---- handlers that wait ----

/// What a waiting call keeps alive: its params' text and the arguments decoded from it, to which its coroutine refers.
template <class S>
struct DecodedCall {
  explicit DecodedCall(const Call& call) : params(call.params(), call.codec()) {}
  [[nodiscard]] bool decode(const Method& method) {
    return decode_arguments(params.text.view(), method, params.readers, arguments);
  }

  OwnedParams params;
  typename S::Arguments arguments{};
};

/// Adds what the stream yields to `items`, which `sink` owns: a call's Items themselves, or a subscription's EventSink.
template <class Sink, class T>
auto pass_on(Stream<T> stream, std::shared_ptr<Sink> sink, Items& items, Scheduler* scheduler)
    -> Task<std::conditional_t<std::is_same_v<Sink, Items>, StreamResult, void>> {
  std::size_t count = 0;
  while (std::optional<T> item = co_await stream.next()) {
    if constexpr (std::is_same_v<Sink, EventSink>) {
      if (count == 0) co_await sink->answered();
    }
    co_await items.until_writable();
    items.add(*item);
    if (++count % kItemsPerTurn == 0 && scheduler != nullptr)
      co_await sleep_for(*scheduler, std::chrono::nanoseconds{0});
  }
  if constexpr (std::is_same_v<Sink, Items>) co_return StreamResult{std::move(sink)};
}

/// The method whose parameters' names the answer has; nothing where it has none.
template <class S>
struct MethodOf {
  explicit MethodOf(const Method&) noexcept {}
};
template <class S>
  requires S::kGivesBack
struct MethodOf<S> {
  explicit MethodOf(const Method& method) noexcept : value(&method) {}
  const Method* value;
};

template <class S>
struct AsyncState : DecodedCall<S> {
  explicit AsyncState(const Call& of) : DecodedCall<S>(of), method(of.method()) {}

  template <class Sink, class T>
  void answer_with(Sink& to, const T& result) const {
    if constexpr (S::kGivesBack) {
      answer(to, Outcome<S, T>{*method.value, this->arguments, result});
    } else {
      answer(to, result);
    }
  }

  [[no_unique_address]] MethodOf<S> method;
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
        state.answer_with(sink, std::monostate{});
      } else {
        state.answer_with(sink, *result);
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

template <class... A>
void give_input(std::tuple<A...>& arguments, std::shared_ptr<Input> input) {
  const auto give = [&input]<class T>(T& argument) {
    if constexpr (is_input<T>) argument = T{std::move(input)};
  };
  std::apply([&give](A&... argument) { (give(argument), ...); }, arguments);
}

template <class S, class F>
void invoke_async(void* callable, Call& call) {
  // Before the loop may be lost: it takes with the call what belongs to it.
  [[maybe_unused]] std::shared_ptr<Items> items;
  if constexpr (is_stream<typename S::Result>) items = call.items();
  [[maybe_unused]] std::shared_ptr<Input> input;
  if constexpr (S::kTakesInput) input = call.input();
  static_cast<void>(call.bounds());  // its time is counted from here
  auto context = context_of<S>(call);
  const void* const handled = call_of(context);
  std::unique_ptr<AsyncState<S>> owned;
  bool decoded = false;
  {
    const WatchdogScope scope{call.params().size() >= kLongParams ? call.watchdog_slot() : nullptr, call.method(),
                              &call, WatchdogSlot::kAround};
    owned = std::make_unique<AsyncState<S>>(call);
    decoded = owned->decode(call.method());
  }
  AsyncState<S>& state = *owned;
  if (!decoded) return call.invalid_params(*state.params.readers.reader);
  if (state.params.readers.reader->take_own_form()) call.use_own_form();
  if constexpr (S::kTakesInput) give_input(state.arguments, std::move(input));
  std::stop_token stop = call.stop_token();
  [[maybe_unused]] Scheduler* const scheduler = call.scheduler();
  const auto make_task = [&]() {
    const HandlerScope handler{handled};
    const WatchdogScope scope{call.watchdog_slot(), call.method(), nullptr, WatchdogSlot::kKeepsLoop};
    auto made = detail::apply<S>(*static_cast<F*>(callable), std::move(context), state.arguments);
    if constexpr (is_stream<typename S::Result>) {
      return pass_on(std::move(made), items, *items, scheduler);
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
  state.sink.keeps(call.params().size());
}

// ---- subscriptions ----

template <class S>
struct SubscriptionState : DecodedCall<S> {
  using DecodedCall<S>::DecodedCall;

  bool answered = false;  // the call: what is thrown from then on is told by an event
};

template <class S, class F>
void invoke_subscription(void* callable, Call& call) {
  const std::shared_ptr<EventSink> sink = call.subscribe();
  if (!sink) return;
  const auto state = std::make_shared<SubscriptionState<S>>(call);
  if (!state->decode(call.method())) return call.invalid_params(*state->params.readers.reader);
  const std::stop_token stop = sink->context().stop_token();
  const void* const handled = call_of(sink->context());
  std::exception_ptr refusal;
  const auto make_task = [&] {
    const HandlerScope handler{handled};
    return pass_on(detail::apply<S>(*static_cast<F*>(callable), Context{sink->context()}, state->arguments), sink,
                   sink->items(), sink->context().scheduler());
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
  static constexpr Signature kSignature{{S::kArguments.data(), S::kArgumentCount},
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
  ReplySink sink = call.detach();
  sink.keeps(params.size());
  pool->run([callable, &codec, &method, reply = std::move(reply), params = std::move(params),
             context = std::move(context), sink = std::move(sink)]() mutable -> BlockingPool::Job {
    WatchdogScope unwatched{nullptr, method, nullptr};
    run_off_loop<S>(*static_cast<F*>(callable), context, {params.view(), codec, method}, unwatched, reply);
    return [reply = std::move(reply), sink = std::move(sink)]() mutable { reply.give(sink); };
  });
}

template <class Signed, class F>
Binding binding_of(F callable, Invoke invoke) {
  return {
      {new F(std::move(callable)), [](void* stored) { delete static_cast<F*>(stored); }}, invoke, &Signed::kSignature};
}

/// What somebody has bound in another way, as a package for another language does.
inline Binding bind(Binding binding) { return binding; }
inline Binding bind_subscription(Binding binding) { return binding; }

template <class F>
Binding bind(Blocking<F> blocking) {
  using S = typename ShapeOf<typename FunctionType<F>::type>::type;
  static_assert(!is_task<typename S::Result> && !is_stream<typename S::Result>,
                "wirecall: a coroutine waits without blocking its thread; offer it without wirecall::blocking");
  return binding_of<S>(std::move(blocking.function), &invoke_blocking<S, F>);
}

template <class F>
  requires(!kIsOf<std::decay_t<F>, Blocking>)
Binding bind(F&& callable) {
  using Stored = std::decay_t<F>;
  using S = typename ShapeOf<typename FunctionType<Stored>::type>::type;
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
  static_assert(!S::kTakesInput, "wirecall: a subscription is answered at once, so it takes no InputStream");
  static_assert(!S::kGivesBack,
                "wirecall: a subscription is answered before its function has run, so no parameter can come back; take "
                "it by value or by const reference");
  return binding_of<SubscriptionSignature<S>>(Stored(std::forward<F>(callable)), &invoke_subscription<S, Stored>);
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
