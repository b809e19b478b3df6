// By what the results of a cached method are told apart: its arguments as decoded, so that their order, white space,
// defaults and encoding make no difference. Thread: the loop's.
#pragma once

#include <tuple>
#include <type_traits>

#include "wirecall/detail/bind.hpp"

namespace wirecall::detail {

/// Writes the arguments of the call, one behind the other. False where they are none of the method's, or are too long
/// to be decoded twice, or the writer has failed.
using WriteCacheKey = bool (*)(Call& call, Writer& writer);

template <class S>
bool write_cache_key(Call& call, Writer& writer) {
  typename S::Arguments arguments{};
  if (!S::kAllSent || !take_kept(call.message(), call.method(), arguments)) {
    if (call.params().size() >= kLongParams) return false;
    if (!decode_arguments(call.params(), call.method(), call.param_readers(), arguments)) return false;
  }
  std::apply([&writer](const auto&... argument) { (encode(writer, argument), ...); }, arguments);
  return !writer.failed();
}

template <class S>
consteval WriteCacheKey cache_key_of_shape() {
  static_assert(!S::kTakesContext,
                "wirecall: a cached result is for every caller, so its function cannot take a Context, which is one "
                "caller's; take what the result depends on as a parameter");
  static_assert(!is_stream<typename S::Result>, "wirecall: the results of a stream are not cached");
  static_assert(!S::kTakesInput,
                "wirecall: a cached result depends on params alone, so its function takes no InputStream");
  return &write_cache_key<S>;
}

template <class F>
struct CacheKeyOf {
  static constexpr WriteCacheKey value = cache_key_of_shape<typename ShapeOf<typename FunctionType<F>::type>::type>();
};
template <class F>
struct CacheKeyOf<Blocking<F>> : CacheKeyOf<F> {};

/// Null for what somebody has bound in another way: its key is made of its params, without their types.
template <>
struct CacheKeyOf<Binding> {
  static constexpr WriteCacheKey value = nullptr;
};

}  // namespace wirecall::detail
