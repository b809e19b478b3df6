// The typed edge of batches: what one call of a batched function takes and returns, how it is decoded, and how the
// calls that leave together become the arguments of one call of the function. A call that is answered by a stream of
// its own has the Shape of a function that returns one.
#pragma once

#include <cstddef>
#include <expected>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "wirecall/batch_options.hpp"
#include "wirecall/detail/batcher.hpp"
#include "wirecall/detail/bind.hpp"
#include "wirecall/detail/detached_context.hpp"
#include "wirecall/detail/items.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/stream.hpp"

namespace wirecall::detail {

// ---- one call of it ----

/// Of a parameter of the function: what one call gives for it, what a batch has of it, and as what it is passed.
template <class P>
struct BatchParameter {
  static_assert(sizeof(P) == 0,
                "wirecall: a batched function takes std::vector<T>, const std::vector<T>& or std::span<const T> of its "
                "calls' arguments, or wirecall::Shared<T> of what they have in common");
};
template <class T>
struct BatchParameter<std::vector<T>> {
  using Element = T;
  using Column = std::vector<T>;
  static constexpr bool kShared = false;
  static std::vector<T>&& pass(Column& column) noexcept { return std::move(column); }
};
template <class T>
struct BatchParameter<const std::vector<T>&> {
  using Element = T;
  using Column = std::vector<T>;
  static constexpr bool kShared = false;
  static const std::vector<T>& pass(Column& column) noexcept { return column; }
};
template <class T>
struct BatchParameter<std::span<const T>> {
  using Element = T;
  using Column = std::vector<T>;
  static constexpr bool kShared = false;
  static_assert(!std::is_same_v<T, bool>, "wirecall: a vector of bool is no array of them: take std::vector<bool>");
  static std::span<const T> pass(Column& column) noexcept {
    if constexpr (!std::is_same_v<T, bool>) return column;
  }
};
template <class T>
struct BatchParameter<Shared<T>> {
  using Element = T;
  using Column = Shared<T>;
  static constexpr bool kShared = true;
  static Shared<T>&& pass(Column& column) noexcept { return std::move(column); }
};
template <class T>
struct BatchParameter<const Shared<T>&> : BatchParameter<Shared<T>> {};

template <class R>
struct BatchResult {
  static_assert(
      sizeof(R) == 0,
      "wirecall: a batched function returns a std::vector of its calls' results, or of a wirecall::Stream for "
      "each of them, or void; or a wirecall::Task of one of these");
};
template <class T>
struct BatchResult<std::vector<T>> {
  static_assert(!is_task<T>,
                "wirecall: a batched function that waits returns one Task of a std::vector, and no vector of Tasks");
  using Element = T;
};
template <class T, class E>
struct BatchResult<std::vector<std::expected<Stream<T>, E>>> {
  using Element = Stream<T>;
};
template <>
struct BatchResult<void> {
  using Element = void;
};
template <class T>
struct BatchResult<Task<T>> : BatchResult<T> {};

template <class P>
inline constexpr bool is_batch_of_contexts = false;
template <>
inline constexpr bool is_batch_of_contexts<std::vector<Context>> = true;
template <>
inline constexpr bool is_batch_of_contexts<const std::vector<Context>&> = true;
template <>
inline constexpr bool is_batch_of_contexts<std::span<const Context>> = true;

/// What is known of the function R(P...), without its contexts.
template <class R, bool kWithContexts, class... P>
struct BatchTypes {
  using Result = typename BatchResult<R>::Element;
  using Columns = std::tuple<typename BatchParameter<P>::Column...>;
  /// One call's.
  using One = Shape<Result, typename BatchParameter<P>::Element...>;
  static constexpr bool kContexts = kWithContexts;
  static constexpr bool kWaits = is_task<R>;
  static constexpr bool kStreams = is_stream<Result>;

  template <class F, class... First>
  static decltype(auto) apply(F& function, Columns& columns, First&&... first) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) -> decltype(auto) {
      return function(std::forward<First>(first)..., BatchParameter<P>::pass(std::get<I>(columns))...);
    }(std::index_sequence_for<P...>{});
  }
  /// What calls with equal values of the shared parameters have in common, and no others: their encoding.
  static std::string group_of(const typename One::Arguments& arguments) {
    std::string group;
    for_each(arguments, [&group]<class Parameter, class T>(std::type_identity<Parameter>, const T& argument) {
      if constexpr (Parameter::kShared) {
        const std::vector<std::byte> bytes = to_msgpack(argument);
        group.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      }
    });
    return group;
  }
  /// How many elements the first of its arguments has that is an array; 1 where none is.
  static std::size_t rows_of(const typename One::Arguments& arguments) {
    std::size_t rows = 1;
    bool found = false;
    for_each(arguments, [&]<class Parameter, class T>(std::type_identity<Parameter>, const T& argument) {
      if constexpr (!Parameter::kShared && kKind<T> == Kind::sequence && requires { argument.size(); }) {
        if (!std::exchange(found, true)) rows = argument.size();
      }
    });
    return rows;
  }
  static void append(Columns& columns, typename One::Arguments& arguments) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      [[maybe_unused]] const auto add = [&]<class T>(auto& column, T& argument) {
        if constexpr (requires { column.push_back(std::move(argument)); }) {
          column.push_back(std::move(argument));
        } else {
          column.value = std::move(argument);
        }
      };
      (add(std::get<I>(columns), std::get<I>(arguments)), ...);
    }(std::index_sequence_for<P...>{});
  }

 private:
  template <class Use>
  static void for_each(const typename One::Arguments& arguments, const Use& use) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (use(std::type_identity<BatchParameter<P>>{}, std::get<I>(arguments)), ...);
    }(std::index_sequence_for<P...>{});
  }
};

template <class F>
struct BatchTypesOf;
template <class R, class... P>
struct BatchTypesOf<R(P...)> {
  using type = BatchTypes<R, false, P...>;
};
template <class R, class C, class... P>
  requires is_batch_of_contexts<C>
struct BatchTypesOf<R(C, P...)> {
  using type = BatchTypes<R, true, P...>;
};

template <class B>
struct BatchedArguments : DecodedCall<typename B::One> {
  using DecodedCall<typename B::One>::DecodedCall;

  Context context;
  // Of a call that is answered by a stream: where its items go, and by whose timers.
  std::shared_ptr<Items> items;
  Scheduler* scheduler = nullptr;
};

// ---- the function ----

template <class B, class F>
class TypedBatchFunction final : public BatchFunction {
 public:
  explicit TypedBatchFunction(F function) : function_(std::move(function)) {}

  [[nodiscard]] bool waits() const noexcept override { return B::kWaits; }
  [[nodiscard]] bool gives_streams() const noexcept override { return B::kStreams; }
  void run(Batch batch) noexcept override {
    if constexpr (!B::kWaits) {
      try {
        Gathered gathered{batch, nullptr};
        if constexpr (std::is_void_v<typename B::Result>) {
          gathered.call(function_);
          answer_all(batch);
        } else {
          answer_each(batch, gathered.call(function_));
        }
      } catch (...) {
        fail_batch(batch);
      }
    }
  }
  [[nodiscard]] Task<void> start(StartedBatch started) override {
    if constexpr (B::kWaits) {
      const Batch batch = started.batch;
      try {
        Gathered gathered{batch, started.scheduler};
        if constexpr (std::is_void_v<typename B::Result>) {
          co_await gathered.call(function_);
          answer_all(batch);
        } else {
          answer_each(batch, co_await gathered.call(function_));
        }
      } catch (...) {
        fail_batch(batch);
      }
    }
    co_return;
  }

 private:
  struct Gathered {
    Gathered(Batch batch, Scheduler* scheduler) {
      for (BatchEntry* const entry : batch) {
        BatchedArguments<B>& one = arguments_of(*entry);
        B::append(columns, one.arguments);
        if constexpr (B::kContexts) {
          // A stream runs on its own call's loop, whichever has the function.
          contexts.push_back(detached_context(one.context, B::kStreams ? one.scheduler : scheduler));
        }
      }
    }
    decltype(auto) call(F& function) {
      if constexpr (B::kContexts) {
        return B::apply(function, columns, std::move(contexts));
      } else {
        return B::apply(function, columns);
      }
    }

    typename B::Columns columns;
    std::vector<Context> contexts;
  };

  static BatchedArguments<B>& arguments_of(const BatchEntry& entry) noexcept {
    return *static_cast<BatchedArguments<B>*>(entry.arguments.get());
  }
  static void answer_all(Batch batch) {
    for (BatchEntry* const entry : batch) answer(entry->reply, std::monostate{});
  }
  template <class Results>
  static void answer_each(Batch batch, Results&& results) {
    if (results.size() != batch.size()) return fail_batch_count(batch, results.size());
    for (std::size_t i = 0; i != batch.size(); ++i) {
      // One that cannot be encoded is its own call's error.
      try {
        if constexpr (B::kStreams) {
          answer_by(*batch[i], results[i]);
        } else {
          const typename B::Result& result = results[i];
          answer(batch[i]->reply, result);
        }
      } catch (...) {
        batch[i]->reply.error_in_flight();
      }
    }
  }

  template <class T>
  static void answer_by(BatchEntry& entry, Stream<T>& stream) {
    const BatchedArguments<B>& one = arguments_of(entry);
    entry.stream = pass_on(std::move(stream), one.items, *one.items, one.scheduler);
  }
  template <class T, class E>
  static void answer_by(BatchEntry& entry, std::expected<Stream<T>, E>& stream) {
    if (!stream) return answer_error(entry.reply, stream.error());
    answer_by(entry, *stream);
  }

  F function_;
};

template <class B>
struct BatchedMethod {
  std::shared_ptr<Batcher> batcher;
  bool counts_rows;
  std::function<int(const Context&)> priority;

  static void invoke(void* callable, Call& call) {
    const auto& method = *static_cast<BatchedMethod*>(callable);
    // Before the loop may be lost: it takes with the call what belongs to it.
    [[maybe_unused]] std::shared_ptr<Items> items;
    if constexpr (B::kStreams) items = call.items();
    static_cast<void>(call.bounds());  // its time is counted from here
    auto owned = std::make_unique<BatchedArguments<B>>(call);
    bool decoded = false;
    {
      const WatchdogScope scope{call.params().size() >= kLongParams ? call.watchdog_slot() : nullptr, call.method(),
                                &call, WatchdogSlot::kAround};
      decoded = owned->decode(call.method());
    }
    Reader& reader = *owned->params.readers.reader;
    if (!decoded) return call.invalid_params(reader);
    if (reader.take_own_form()) call.use_own_form();
    if constexpr (B::kContexts) owned->context = detached_context(call.context());
    if constexpr (B::kStreams) {
      owned->items = std::move(items);
      owned->scheduler = call.scheduler();
    }
    BatchedAs as{.group = B::group_of(owned->arguments)};
    if (method.counts_rows) as.rows = B::rows_of(owned->arguments);
    if (method.priority) as.priority = method.priority(call.context());
    method.batcher->add(call, {owned.release(), [](void* stored) { delete static_cast<BatchedArguments<B>*>(stored); }},
                        as);
  }
};

template <class F>
Binding bind_batched(F function, BatchOptions options) {
  using B = typename BatchTypesOf<typename FunctionType<F>::type>::type;
  static_assert(!B::One::kGivesBack && !B::One::kTakesInput,
                "wirecall: what a batched function takes does not come back, and is no stream");
  // Streams go on when the function has ended, so that any number of them is of use.
  const std::uint32_t concurrency = B::kStreams ? 0 : calls_of_use(options);
  const bool counts_rows = options.rows != 0;
  std::function<int(const Context&)> priority = std::move(options.priority);
  auto typed = std::make_unique<TypedBatchFunction<B, F>>(std::move(function));
  BatchedMethod<B> method{Batcher::make(std::move(typed), std::move(options)), counts_rows, std::move(priority)};
  const std::shared_ptr<BatchCounts> batches = method.batcher;
  Binding binding = binding_of<typename B::One>(std::move(method), &BatchedMethod<B>::invoke);
  binding.concurrency = concurrency;
  binding.batches = batches;
  return binding;
}

}  // namespace wirecall::detail
