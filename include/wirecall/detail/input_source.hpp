// InputSource: where a client's call takes the stream from that it sends towards its handler, one item at a time and no
// sooner than the server has room for it. Not for users: Request::input and ResultStream::input make it.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>

#include "wirecall/codec.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::detail {

class InputSource {
 public:
  InputSource() = default;
  InputSource(InputSource&&) = delete;
  virtual ~InputSource() = default;

  /// Encodes the next item; false at the end, after which it is not asked again. May throw.
  [[nodiscard]] virtual bool next(Writer& writer) = 0;
};

template <class R>
class RangeSource final : public InputSource {
 public:
  explicit RangeSource(R range) : range_(std::move(range)) {}

  bool next(Writer& writer) override {
    // The one before is left only now: a range that makes its elements as they are asked for makes none ahead.
    if (!at_) {
      at_.emplace(std::ranges::begin(range_));
    } else {
      ++*at_;
    }
    if (*at_ == std::ranges::end(range_)) return false;
    encode(writer, **at_);
    return true;
  }

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

  bool next(Writer& writer) override {
    const auto item = function_();
    if (item) encode(writer, *item);
    return item.has_value();
  }

 private:
  F function_;
};

template <class S>
std::unique_ptr<InputSource> input_source(S&& source) {
  using Stored = std::decay_t<S>;
  static_assert(std::ranges::input_range<Stored> || ItemFunction<Stored>,
                "wirecall: an input is a range, or a function that returns a std::optional, empty at the end");
  if constexpr (std::ranges::input_range<Stored>) {
    return std::make_unique<RangeSource<Stored>>(std::forward<S>(source));
  } else {
    return std::make_unique<FunctionSource<Stored>>(std::forward<S>(source));
  }
}

}  // namespace wirecall::detail
