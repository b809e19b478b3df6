// Registry: the methods of a program, each a C++ function under a name. A Server serves it; or any other
// transport calls `handle`, which takes the text of a message and returns the text of the reply.
// Thread: one thread fills it before it is served. Then it does not change, and any number of threads serve from it.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "wirecall/cache.hpp"
#include "wirecall/call.hpp"
#include "wirecall/detail/bind.hpp"
#include "wirecall/detail/cache_key.hpp"
#include "wirecall/function_name.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/log.hpp"
#include "wirecall/middleware.hpp"
#include "wirecall/principal.hpp"

namespace wirecall {

namespace detail {
struct Packing;
}

/// A parameter: its name, its documentation, its default.
class Param {
 public:
  Param(const char* name) : name_(name) {}             // NOLINT: implicit, so that lists of names read as such
  Param(std::string name) : name_(std::move(name)) {}  // NOLINT

  Param& description(std::string text) & {
    description_ = std::move(text);
    return *this;
  }
  Param&& description(std::string text) && { return std::move(description(std::move(text))); }
  /// The default value. It is encoded now, and decoded as the parameter's type in each call that leaves it out.
  template <class T>
  Param& default_value(const T& value) & {
    set_default(to_json(value));
    return *this;
  }
  template <class T>
  Param&& default_value(const T& value) && {
    return std::move(default_value(value));
  }

  /// The default that documents show, as JSON text, where the function itself has one. It is not used in calls.
  Param& shown_default(std::string json) & {
    shown_default_ = std::move(json);
    return *this;
  }
  Param&& shown_default(std::string json) && { return std::move(shown_default(std::move(json))); }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& description() const noexcept { return description_; }
  /// The default that documents show; empty for none.
  [[nodiscard]] std::string_view shown_default() const noexcept {
    return shown_default_.empty() ? default_json() : std::string_view{shown_default_};
  }
  /// The default as JSON text, padded for readers; empty for none.
  [[nodiscard]] std::string_view default_json() const noexcept { return {default_.data(), default_bytes_}; }

 private:
  void set_default(std::string json);

  std::string name_;
  std::string description_;
  std::string default_;
  std::size_t default_bytes_ = 0;
  std::string shown_default_;
};

/// How a method is offered whose results are kept: server.method("fib", fib, {.params = {"n"}, .cache = {.entries =
/// 10'000, .ttl = 1min}}).
struct MethodOptions {
  std::vector<Param> params = {};
  CacheOptions cache;
};

/// The names of a subscription's two methods and of its notification, as in Ethereum's API: eth_subscribe,
/// eth_unsubscribe, eth_subscription.
struct SubscriptionNames {
  std::string subscribe;
  std::string unsubscribe;
  std::string notification;
};

/// One method: its name, its parameters, and the function behind it.
class Method {
 public:
  Method(std::string name, std::vector<Param> params, detail::Binding binding);

  Method& summary(std::string text) & {
    summary_ = std::move(text);
    return *this;
  }
  /// Declares that the method changes nothing, so that it may be called by HTTP GET as well.
  Method& safe() & {
    safe_ = true;
    return *this;
  }
  /// Has it take packed params, too (packing.hpp), and answer such calls with a packed result. Throws
  /// std::invalid_argument where `packing` is another function's, and of a method whose results are kept.
  Method& packed(const detail::Packing& packing) &;
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& summary() const noexcept { return summary_; }
  [[nodiscard]] bool is_safe() const noexcept { return safe_; }
  /// Its index among its registry's methods; the largest size_t where it is in none.
  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  [[nodiscard]] const std::vector<Param>& params() const noexcept { return params_; }
  /// The names, for a method made by Registry::subscription; null for all others.
  [[nodiscard]] const SubscriptionNames* subscription() const noexcept { return subscription_.get(); }
  /// The types of the function's parameters and result (detail/bind.hpp).
  [[nodiscard]] const detail::Signature& signature() const noexcept { return *binding_.signature; }
  /// Whether its results are kept for equal calls.
  [[nodiscard]] bool keeps_results() const noexcept { return keeps_results_; }
  /// How many calls at once are of use to it; 0 for any number.
  [[nodiscard]] std::uint32_t concurrency() const noexcept { return binding_.concurrency; }
  /// Its batches (detail/batch_counts.hpp); null where it is called for each call.
  [[nodiscard]] detail::BatchCounts* batches() const noexcept { return binding_.batches.get(); }
  /// Null where nothing is packed.
  [[nodiscard]] const detail::Packing* packing() const noexcept { return packing_; }
  void invoke(Call& call) const { binding_.invoke(binding_.callable.get(), call); }

 private:
  friend class Registry;

  std::string name_;
  std::string summary_;
  std::vector<Param> params_;
  detail::Binding binding_;
  std::unique_ptr<const SubscriptionNames> subscription_;
  const detail::Packing* packing_ = nullptr;
  bool safe_ = false;
  bool keeps_results_ = false;
  std::size_t index_ = ~std::size_t{0};
};

class Registry {
 public:
  Registry();
  ~Registry();
  Registry(Registry&&) noexcept;
  Registry& operator=(Registry&&) noexcept;

  /// Adds `callable` (a function, lambda or functor; wirecall::overload selects one of several overloads) as the method
  /// `name`.
  /// `params` names its parameters in order, without Context and Rest; parameters without a name are arg0, arg1, …
  /// Throws Error -32007 for a name that is taken, std::invalid_argument for a reserved or malformed name.
  template <class F>
  Method& method(std::string name, F&& callable, std::vector<Param> params = {}) {
    return add(std::move(name), std::move(params), detail::bind(std::forward<F>(callable)));
  }
  /// Adds a member function of `object`, which outlives the registry, as the method `name`.
  template <class M, class C>
    requires std::is_member_function_pointer_v<M>
  Method& method(std::string name, M member, C& object, std::vector<Param> params = {}) {
    return add(std::move(name), std::move(params), detail::bind_member(member, object));
  }
  /// Adds a function by its own name, as a shared header has it (docs/typed.md): method<math::mean>({"values"}) is
  /// "math.mean". Throws as `method`. A function without a name that another program can know does not compile.
  template <auto Function>
  Method& method(std::vector<Param> params = {}) {
    constexpr bool kNeedsObject = std::is_member_function_pointer_v<decltype(Function)>;
    static_assert(!kNeedsObject, "wirecall: a member function is served together with its object");
    if constexpr (!kNeedsObject && detail::check_function<Function>())
      return method(std::string{method_name<Function>()}, Function, std::move(params));
  }
  /// Adds a member function of `object`, which outlives the registry: method<&Counter::add>(counter) is "Counter.add".
  template <auto Function, class C>
    requires std::is_member_function_pointer_v<decltype(Function)>
  Method& method(C& object, std::vector<Param> params = {}) {
    if constexpr (detail::check_function<Function>())
      return method(std::string{method_name<Function>()}, Function, object, std::move(params));
  }
  /// Adds `callable` as a method whose results are kept, since they depend on its arguments alone. A call with
  /// arguments that are equal as decoded is answered with what an earlier one came to; of equal calls in progress
  /// `callable` runs once, within Limits::call_timeout_ms, and is asked to stop when all their callers have given up.
  /// Errors are not kept. The types of the parameters have to be encodable. A function that takes a Context, or returns
  /// a Stream, does not compile. Throws as `method`, and std::invalid_argument for bounds that are none, and for a
  /// batched function that gives streams.
  template <class F>
  Method& method(std::string name, F&& callable, MethodOptions options) {
    constexpr detail::WriteCacheKey kKey = detail::CacheKeyOf<std::decay_t<F>>::value;
    return add_cached(std::move(name), std::move(options), detail::bind(std::forward<F>(callable)), kKey);
  }
  template <class M, class C>
    requires std::is_member_function_pointer_v<M>
  Method& method(std::string name, M member, C& object, MethodOptions options) {
    return add_cached(std::move(name), std::move(options), detail::bind_member(member, object),
                      detail::CacheKeyOf<M>::value);
  }
  /// The same of a function, or a member function of `object`, by its own name.
  template <auto Function>
  Method& method(MethodOptions options) {
    if constexpr (detail::check_function<Function>())
      return method(std::string{method_name<Function>()}, Function, std::move(options));
  }
  template <auto Function, class C>
    requires std::is_member_function_pointer_v<decltype(Function)>
  Method& method(C& object, MethodOptions options) {
    if constexpr (detail::check_function<Function>())
      return method(std::string{method_name<Function>()}, Function, object, std::move(options));
  }
  /// Adds a coroutine that returns a Stream as a subscription. A call of `names.subscribe` with the coroutine's
  /// arguments is answered with an id, a string. Each value that the coroutine then yields is sent as the notification
  /// `names.notification` with the params {"subscription": id, "result": value}. A call of `names.unsubscribe`, which
  /// several subscriptions may share, ends it, as does the end of the connection; both request stop of the coroutine.
  /// An error that it throws before it first waits or yields is the answer to the call; a later one is sent as a last
  /// notification, with "error" in place of "result". It is suspended while its caller does not read.
  /// Limits::subscriptions bounds the subscriptions of one connection. By HTTP POST the call is -32600. Returns the
  /// method that subscribes. Throws as `method`, and std::invalid_argument for a batched function.
  template <class F>
  Method& subscription(SubscriptionNames names, F&& stream_function, std::vector<Param> params = {}) {
    return add_subscription(std::move(names), std::move(params),
                            detail::bind_subscription(std::forward<F>(stream_function)));
  }
  /// Adds a subscription whose function the caller has bound itself, as a package for another language does.
  Method& add_subscription(SubscriptionNames names, std::vector<Param> params, detail::Binding binding);
  /// Adds a method whose function the caller has bound itself, as a package for another language does. Throws as
  /// `method`.
  Method& add(std::string name, std::vector<Param> params, detail::Binding binding);
  /// The same of one whose results are kept. A null `write_key` makes keys of the params without their types. The
  /// function must not look at who calls.
  Method& add_cached(std::string name, MethodOptions options, detail::Binding binding,
                     detail::WriteCacheKey write_key = nullptr);
  /// Removes the method of that name; false when there is none. Calls of it that are in progress are still answered.
  bool remove(std::string_view name);
  /// Declares that a method of that name will have been added before the registry is served: Server::listen throws
  /// where one is missing. Declaring it again has no effect.
  void require(std::string name);
  /// The required methods that are missing, in the order in which they were required.
  [[nodiscard]] std::vector<std::string> missing() const;
  /// Adds a middleware around every call; the first added is the outermost (middleware.hpp).
  void use(Middleware middleware);

  /// The method of that name, or null.
  [[nodiscard]] const Method* find(std::string_view name) const noexcept;
  /// Internal. Calls that wait for others, to be in one batch with them, leave now.
  void end_batch_waits() const noexcept;
  /// The name of the method that is most similar to `name`, for "did you mean"; empty when none is similar. With a
  /// principal, only among the methods that it may call.
  [[nodiscard]] std::string_view nearest(std::string_view name, const Principal* principal = nullptr) const noexcept;
  /// All methods in the order in which they were added.
  [[nodiscard]] const std::vector<std::unique_ptr<Method>>& methods() const noexcept;
  [[nodiscard]] const std::vector<Middleware>& middleware() const noexcept;

  /// Serves one message or batch without a socket: `out` becomes the reply, empty when none is due. A handler that
  /// suspends cannot be waited for here: stop is requested of it, and its call fails with cancelled (-32800), or with
  /// internal error (-32603) where it still waits after that. Throws std::bad_alloc when there is no memory for the
  /// reply. Thread: one at a time, since a registry has one scratch memory. Re-entrant.
  void handle(std::string_view text, Buffer& out);
  void handle(std::string_view text, std::string& out);
  [[nodiscard]] std::string handle(std::string_view text);
  /// The same without a copy, for text with kPaddingBytes readable behind it, the first of them zero.
  void handle_padded(std::string_view text, Buffer& out);
  /// Sets limits and log of `handle`; a Server has its own. Throws std::invalid_argument for invalid limits.
  void set_limits(const Limits& limits);
  void set_log(LogSink log);

 private:
  struct Impl;
  static void require_name(std::string_view name);

  std::unique_ptr<Impl> impl_;
};

/// Names one overload: registry.method("abs", wirecall::overload<double(double)>(std::abs)).
template <class Signature>
constexpr Signature* overload(Signature* function) noexcept {
  return function;
}

/// Marks a callable that blocks: it waits for files, locks or other programs, or computes for long. A server, and a
/// client, runs it on a pool of `blocking_threads` threads, several calls at once, so the callable and the Adapt of its
/// types have to be thread-safe. Without such a pool (Registry::handle) it is called as any other callable.
/// server.method("digest", wirecall::blocking(digest), {"path"}).
template <class F>
[[nodiscard]] detail::Blocking<std::decay_t<F>> blocking(F&& callable) {
  return {std::forward<F>(callable)};
}

}  // namespace wirecall
