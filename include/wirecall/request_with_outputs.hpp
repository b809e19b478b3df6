// RequestWithOutputs: a Request of which arguments come back: std::ref(x), which is sent, and Out{x}, which is not.
// Client::request makes it for such arguments, and for a function of a shared header that takes references.
//
// The variables are written where the answer is taken: by `call` and `try_call` before they return, by `future` in its
// get(), by a coroutine as it is resumed, on the thread that does so; by `then` before the callback, on the thread that
// drives. They are written all or none: none where the call fails, so never after its timeout, nor where the answer
// does not fit. They outlive the request, and whatever of the four ways takes its answer. Thread: as Request.
#pragma once

#include <chrono>
#include <concepts>
#include <coroutine>
#include <expected>
#include <future>
#include <stop_token>
#include <string_view>
#include <type_traits>
#include <utility>

#include "wirecall/detail/outputs.hpp"
#include "wirecall/request.hpp"

namespace wirecall {

namespace detail {

template <class T, class... Ts>
std::expected<T, Error> deliver(std::expected<Returned<T, Ts...>, Error>&& returned,
                                const Variables<Ts...>& variables) {
  if (!returned) return std::unexpected{std::move(returned.error())};
  if constexpr (std::is_void_v<T>) {
    deliver(std::move(*returned), variables);
    return {};
  } else {
    return deliver(std::move(*returned), variables);
  }
}

template <class T, class... Ts>
class AwaiterWithOutputs {
 public:
  AwaiterWithOutputs(Request<Returned<T, Ts...>> request, Variables<Ts...> variables) noexcept
      : awaiter_(std::move(request).operator co_await()), variables_(variables) {}

  [[nodiscard]] bool await_ready() const noexcept { return awaiter_.await_ready(); }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    return awaiter_.await_suspend(coroutine);
  }
  T await_resume() { return deliver(awaiter_.await_resume(), variables_); }

 private:
  RequestAwaiter<Returned<T, Ts...>> awaiter_;
  Variables<Ts...> variables_;
};

}  // namespace detail

template <class T, class... Ts>
class [[nodiscard]] RequestWithOutputs {
 public:
  RequestWithOutputs(detail::OutgoingCall call, detail::Variables<Ts...> variables) noexcept
      : request_(std::move(call)), variables_(variables) {}

  // As those of Request.

  RequestWithOutputs&& timeout(std::chrono::milliseconds timeout) && {
    static_cast<void>(std::move(request_).timeout(timeout));
    return std::move(*this);
  }
  RequestWithOutputs&& wait(std::chrono::milliseconds wait) && {
    static_cast<void>(std::move(request_).wait(wait));
    return std::move(*this);
  }
  RequestWithOutputs&& idempotent(bool idempotent = true) && {
    static_cast<void>(std::move(request_).idempotent(idempotent));
    return std::move(*this);
  }
  RequestWithOutputs&& stop(std::stop_token stop) && {
    static_cast<void>(std::move(request_).stop(std::move(stop)));
    return std::move(*this);
  }
  RequestWithOutputs&& within(const Context& context) && {
    static_cast<void>(std::move(request_).within(context));
    return std::move(*this);
  }
  RequestWithOutputs&& to(std::string_view provider) && {
    static_cast<void>(std::move(request_).to(provider));
    return std::move(*this);
  }

  template <class Source>
  RequestWithOutputs&& input(Source&& source) && {
    static_cast<void>(std::move(request_).input(std::forward<Source>(source)));
    return std::move(*this);
  }

  T call() && { return detail::deliver(std::move(request_).call(), variables_); }
  [[nodiscard]] std::expected<T, Error> try_call() && {
    return detail::deliver(std::move(request_).try_call(), variables_);
  }
  /// The variables are written on the thread that drives, before the callback is called there.
  template <std::invocable<std::expected<T, Error>> F>
  CallHandle then(F callback) && {
    return std::move(request_).then([callback = std::move(callback), variables = variables_](
                                        std::expected<detail::Returned<T, Ts...>, Error> returned) mutable {
      callback(detail::deliver(std::move(returned), variables));
    });
  }
  /// The call is made at once. The variables are written by get(), on its thread, and not where nobody calls it; so
  /// wait_for and wait_until say std::future_status::deferred.
  [[nodiscard]] std::future<T> future() && {
    return std::async(std::launch::deferred,
                      [returned = std::move(request_).future(), variables = variables_]() mutable {
                        return detail::deliver(returned.get(), variables);
                      });
  }
  [[nodiscard]] detail::AwaiterWithOutputs<T, Ts...> operator co_await() && noexcept {
    return {std::move(request_), variables_};
  }

 private:
  Request<detail::Returned<T, Ts...>> request_;
  detail::Variables<Ts...> variables_;
};

namespace detail {

template <class... Args>
inline constexpr bool kHasOutputs = (OutputOf<Args>::kIs || ...);

template <class T, class Variables>
struct WithVariables;
template <class T, class... Ts>
struct WithVariables<T, std::tuple<Ts*...>> {
  using Decoded = Returned<T, Ts...>;
  using Request = RequestWithOutputs<T, Ts...>;
};

template <bool kOutputs, class T, class... Args>
struct CallOf {
  using Decoded = T;
  using Request = wirecall::Request<T>;
};
template <class T, class... Args>
struct CallOf<true, T, Args...> : WithVariables<T, decltype(variables_of(std::declval<const Args&>()...))> {};

/// The request that brings back a T and what is among the arguments, and as what its answer is decoded.
template <class T, class... Args>
using RequestOf = typename CallOf<kHasOutputs<Args...>, T, Args...>::Request;
template <class T, class... Args>
using DecodedOf = typename CallOf<kHasOutputs<Args...>, T, Args...>::Decoded;

template <class T, class... Args>
RequestOf<T, Args...> make_request(OutgoingCall call, const Args&... args) {
  if constexpr (kHasOutputs<Args...>) {
    return {std::move(call), variables_of(args...)};
  } else {
    return RequestOf<T, Args...>{std::move(call)};
  }
}

}  // namespace detail
}  // namespace wirecall
