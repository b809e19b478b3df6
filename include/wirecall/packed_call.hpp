// call_packed: calls a function that both sides know from one header with packed params, for a packed result:
//
//     double m = wirecall::call_packed<math::mean>(client, values);
//
// It reaches methods that are packed (packing.hpp), in every encoding and through brokers; in Protocol Buffers,
// MessagePack and CBOR as bytes, in JSON as base64. All else is as Client::call of a function (docs/typed.md).
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "wirecall/client.hpp"
#include "wirecall/packed.hpp"
#include "wirecall/packing.hpp"

namespace wirecall {
namespace detail {

template <class T>
struct PackedResult {
  using type = Packed<T>;
  static T take(type result) { return std::move(result.value); }
};
template <>
struct PackedResult<void> {
  using type = Packed<std::monostate>;
  static void take(const type&) {}
};

/// The whole params, which are packed as one value. It refers to what it is made of.
template <class... A>
struct PackedParams {
  /// Which the callee's has to be: see OutgoingCall::set_layout.
  [[nodiscard]] static std::string_view layout() { return layout_of<std::tuple<A...>>().text(); }

  std::tuple<const A&...> values;
};
template <class... A>
inline constexpr bool is_packed_params<PackedParams<A...>> = true;
template <class... A>
[[nodiscard]] PackedParams<A...> packed_params(const A&... arguments) {
  return {{arguments...}};
}

}  // namespace detail

template <class... A>
struct Adapt<detail::PackedParams<A...>> {
  static void encode(Writer& writer, const detail::PackedParams<A...>& params) {
    detail::write_packed(writer, detail::layout_of<std::tuple<A...>>(), [&](detail::PackedOutput& output) {
      if constexpr (sizeof...(A) == 0) {
        output.number(std::uint8_t{0});
      } else {
        std::apply([&](const A&... argument) { (detail::pack(output, argument), ...); }, params.values);
      }
    });
  }
};

/// A Request, whose result is Packed<R>, or Packed<std::monostate> where the function returns nothing. A callee of
/// another layout answers -32602, whose data has its "layout"; the caller's is added as "own".
template <auto Function, class... Args>
[[nodiscard]] auto request_packed(Client& client, Args&&... args) {
  using Shared = detail::SharedFunction<Function>;
  static_assert(!Shared::kGivesBack, "wirecall: a parameter that comes back is not packed; return a struct");
  using Result = typename detail::PackedResult<typename Shared::Result>::type;
  if constexpr (!Shared::kGivesBack && detail::check_call<Function, Args&&...>()) {
    return Shared::write(
        [&client](const auto&... written) {
          return client.request<Result>(method_name<Function>(), detail::packed_params(written...));
        },
        std::forward<Args>(args)...);
  }
}

/// The same, for its result. Throws as Client::call.
template <auto Function, class... Args>
typename detail::SharedFunction<Function>::Result call_packed(Client& client, Args&&... args) {
  using Result = detail::PackedResult<typename detail::SharedFunction<Function>::Result>;
  return Result::take(request_packed<Function>(client, std::forward<Args>(args)...).call());
}

}  // namespace wirecall
