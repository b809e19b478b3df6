// InputSource: where a client's call takes the stream from that it sends towards its handler, one item at a time and no
// sooner than the server has room for it. Not for users: Request::input and ResultStream::input make it.
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "wirecall/codec.hpp"
#include "wirecall/detail/executor.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/stream.hpp"
#include "wirecall/task.hpp"

namespace wirecall::detail {

/// What a source has of its client: the thread that drives.
class InputDriver {
 public:
  [[nodiscard]] virtual TaskScope& tasks() = 0;
  [[nodiscard]] virtual const std::shared_ptr<Executor>& executor() = 0;
  /// Does it on that thread: now where this is that one, else soon.
  virtual void run(std::shared_ptr<Executor::Continuation> work) noexcept = 0;
  /// To be called on that thread, at most once: the source is asked again.
  [[nodiscard]] virtual std::function<void()> waker() = 0;

 protected:
  ~InputDriver() = default;
};

class InputSource {
 public:
  InputSource() = default;
  InputSource(InputSource&&) = delete;
  virtual ~InputSource() = default;  ///< any thread; the driver is there

  enum class Next : std::uint8_t {
    item,  ///< has been encoded
    end,   ///< it is not asked again
    none,  ///< not yet: the waker will be called
  };
  /// On the thread that drives. May throw.
  [[nodiscard]] virtual Next next(Writer& writer, InputDriver& driver) = 0;
  /// Whether `next` may block its thread, which sends nothing meanwhile: then it is called only once the item before
  /// has been sent. Of one that does not block, items are sent together. On the thread that drives.
  [[nodiscard]] virtual bool may_block() noexcept { return true; }
};

/// Ranges whose elements are there: a container's, or numbers. Any other range may wait for the one that it makes.
template <class R>
inline constexpr bool kNeverBlocks =
    std::ranges::forward_range<R> && std::is_lvalue_reference_v<std::ranges::range_reference_t<R>> &&
    (!std::ranges::view<R> || std::ranges::contiguous_range<R>);
template <class W, class B>
inline constexpr bool kNeverBlocks<std::ranges::iota_view<W, B>> = std::is_arithmetic_v<W>;

template <class R>
class RangeSource final : public InputSource {
 public:
  explicit RangeSource(R range) : range_(std::move(range)) {}

  Next next(Writer& writer, InputDriver&) override {
    // The one before is left only now: a range that makes its elements as they are asked for makes none ahead.
    if (!at_) {
      at_.emplace(std::ranges::begin(range_));
    } else {
      ++*at_;
    }
    if (*at_ == std::ranges::end(range_)) return Next::end;
    encode(writer, **at_);
    return Next::item;
  }
  [[nodiscard]] bool may_block() noexcept override { return !kNeverBlocks<R>; }

 private:
  R range_;
  std::optional<std::ranges::iterator_t<R>> at_;
};

/// A function that returns a std::optional: empty at the end.
template <class F>
concept ItemFunction = requires(F& function) {
  { function() } -> std::same_as<std::optional<typename std::invoke_result_t<F&>::value_type>>;
};

template <ItemFunction F>
class FunctionSource final : public InputSource {
 public:
  explicit FunctionSource(F function) : function_(std::move(function)) {}

  Next next(Writer& writer, InputDriver&) override {
    const auto item = function_();
    if (!item) return Next::end;
    encode(writer, *item);
    return Next::item;
  }

 private:
  F function_;
};

/// A coroutine that yields the items, and may wait between them.
template <class T>
class StreamSource final : public InputSource {
 public:
  explicit StreamSource(Stream<T> stream) : state_(std::make_shared<State>()) { state_->stream = std::move(stream); }
  ~StreamSource() override {
    if (driver_ != nullptr) driver_->run(std::move(state_));
  }

  Next next(Writer& writer, InputDriver& driver) override {
    State& state = *state_;
    if (!state.pulls && !state.item && !state.ended && !state.error) {
      driver_ = &driver;
      state.pulls = true;
      driver.tasks().start(pull(state_), state.stop.get_token(),
                           [of = state_, wake = driver.waker()](const TaskResult<void>&) {
                             of->pulls = false;
                             if (std::exchange(of->awaited, false)) wake();
                           });
    }
    if (state.pulls) {
      state.awaited = true;
      return Next::none;
    }
    if (state.error) std::rethrow_exception(std::exchange(state.error, nullptr));
    if (!state.item) return Next::end;
    encode(writer, *state.item);
    state.item.reset();
    return Next::item;
  }
  // It waits by the loop.
  [[nodiscard]] bool may_block() noexcept override { return false; }

 private:
  // The stream's own thread is the one that drives, where a request to stop is made.
  struct State final : Executor::Continuation {
    void resume() noexcept override {
      awaited = false;
      stop.request_stop();
    }

    Stream<T> stream;
    std::stop_source stop;
    std::optional<T> item;
    std::exception_ptr error;
    bool ended = false;
    bool pulls = false;
    bool awaited = false;
  };

  static Task<void> pull(std::shared_ptr<State> state) {
    try {
      state->item = co_await state->stream.next();
      state->ended = !state->item;
    } catch (...) {
      state->error = std::current_exception();
    }
  }

  std::shared_ptr<State> state_;
  InputDriver* driver_ = nullptr;  // once it has been asked
};

template <class T>
inline constexpr bool kIsStream = false;
template <class T>
inline constexpr bool kIsStream<Stream<T>> = true;

template <class S>
std::unique_ptr<InputSource> input_source(S&& source) {
  using Stored = std::decay_t<S>;
  static_assert(
      kIsStream<Stored> || std::ranges::input_range<Stored> || ItemFunction<Stored>,
      "wirecall: an input is a range, a Stream, or a function that returns a std::optional, empty at the end");
  if constexpr (kIsStream<Stored>) {
    return std::make_unique<StreamSource<typename Stored::value_type>>(std::forward<S>(source));
  } else if constexpr (std::ranges::input_range<Stored>) {
    return std::make_unique<RangeSource<Stored>>(std::forward<S>(source));
  } else {
    return std::make_unique<FunctionSource<Stored>>(std::forward<S>(source));
  }
}

}  // namespace wirecall::detail
