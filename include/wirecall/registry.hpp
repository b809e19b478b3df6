// Registry: the methods a program offers, each a plain function under a name. It can be served by a Server, put under
// any other transport, or called directly: text in, text out.
// Filled by one thread before it is served; then it is not changed, and any number of threads may serve from it.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "wirecall/access.hpp"
#include "wirecall/call.hpp"
#include "wirecall/detail/bind.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/log.hpp"
#include "wirecall/middleware.hpp"

namespace wirecall {

/// A parameter's name, and what documents or completes it.
class Param {
 public:
  Param(const char* name) : name_(name) {}             // NOLINT: implicit, so that lists of names read as such
  Param(std::string name) : name_(std::move(name)) {}  // NOLINT

  Param& doc(std::string text) & {
    doc_ = std::move(text);
    return *this;
  }
  Param&& doc(std::string text) && { return std::move(doc(std::move(text))); }
  /// The value where a caller gives none; it is encoded now and decoded as the parameter's type in each such call.
  template <class T>
  Param& otherwise(const T& value) & {
    set_default(to_json(value));
    return *this;
  }
  template <class T>
  Param&& otherwise(const T& value) && {
    return std::move(otherwise(value));
  }

  /// What the function itself takes where a caller gives none, as JSON text, for documents alone.
  Param& shown_default(std::string json) & {
    shown_default_ = std::move(json);
    return *this;
  }
  Param&& shown_default(std::string json) && { return std::move(shown_default(std::move(json))); }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& doc() const noexcept { return doc_; }
  /// The default for documents; empty for none.
  [[nodiscard]] std::string_view shown_default() const noexcept {
    return shown_default_.empty() ? default_json() : std::string_view{shown_default_};
  }
  /// The default as JSON text, padded for readers; empty for none.
  [[nodiscard]] std::string_view default_json() const noexcept { return {default_.data(), default_bytes_}; }

 private:
  void set_default(std::string json);

  std::string name_;
  std::string doc_;
  std::string default_;
  std::size_t default_bytes_ = 0;
  std::string shown_default_;
};

/// The two methods and the notification of a subscription, as in Ethereum's API: eth_subscribe, eth_unsubscribe,
/// eth_subscription.
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
  /// Declares that calling it changes nothing: then it may be called by GET as well.
  Method& safe() & {
    safe_ = true;
    return *this;
  }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& summary() const noexcept { return summary_; }
  [[nodiscard]] bool is_safe() const noexcept { return safe_; }
  /// Its place among its registry's methods; the largest size_t for one that is in none.
  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  [[nodiscard]] const std::vector<Param>& params() const noexcept { return params_; }
  /// Of a method that subscribes (Registry::subscription); null of all others.
  [[nodiscard]] const SubscriptionNames* subscription() const noexcept { return subscription_.get(); }
  /// What the function takes and returns (detail/bind.hpp).
  [[nodiscard]] const detail::Signature& signature() const noexcept { return *binding_.signature; }
  void invoke(Call& call) const { binding_.invoke(binding_.callable.get(), call); }

 private:
  friend class Registry;

  std::string name_;
  std::string summary_;
  std::vector<Param> params_;
  detail::Binding binding_;
  std::unique_ptr<const SubscriptionNames> subscription_;
  bool safe_ = false;
  std::size_t index_ = ~std::size_t{0};
};

class Registry {
 public:
  Registry();
  ~Registry();
  Registry(Registry&&) noexcept;
  Registry& operator=(Registry&&) noexcept;

  /// Offers `callable` (a function, lambda or functor; of several overloads, one named with wirecall::overload) as
  /// `name`. `params` names its parameters in order, Context and Rest left out; those without a name are arg0, arg1, …
  /// Throws Error -32007 for a name that is taken, std::invalid_argument for one that is reserved or malformed.
  template <class F>
  Method& method(std::string name, F&& callable, std::vector<Param> params = {}) {
    return add(std::move(name), std::move(params), detail::bind(std::forward<F>(callable)));
  }
  /// Offers a member function of `object`, which outlives the registry.
  template <class M, class C>
    requires std::is_member_function_pointer_v<M>
  Method& method(std::string name, M member, C& object, std::vector<Param> params = {}) {
    return add(std::move(name), std::move(params), detail::bind_member(member, object));
  }
  /// Offers a coroutine that returns a Stream as something to subscribe to. A call of `names.subscribe` with the
  /// coroutine's arguments is answered with an id, a string, and each value that it then yields is the notification
  /// `names.notification` with the params {"subscription": id, "result": value}. `names.unsubscribe`, a method which
  /// several subscriptions may share, ends it. So does the end of the connection, and either requests stop of the
  /// coroutine. What it throws before it first waits or yields is the answer; what it throws later is one more
  /// notification, with "error" in place of "result". It waits while its caller takes too little. Limits::subscriptions
  /// bounds a connection's. By HTTP POST, -32600. Returns the method that subscribes. Throws as `method`.
  template <class F>
  Method& subscription(SubscriptionNames names, F&& stream_function, std::vector<Param> params = {}) {
    return add_subscription(std::move(names), std::move(params),
                            detail::bind_subscription(std::forward<F>(stream_function)));
  }
  /// The same of what somebody has bound in another way.
  Method& add_subscription(SubscriptionNames names, std::vector<Param> params, detail::Binding binding);
  /// Offers what somebody has bound in another way than `method` does, as a package for another language has. Throws as
  /// `method`.
  Method& add(std::string name, std::vector<Param> params, detail::Binding binding);
  /// Offers that method no longer; false when there is none. Calls of it that are in progress end as they would.
  bool remove(std::string_view name);
  /// Adds a middleware around every call; the first added is the outermost (middleware.hpp).
  void use(Middleware middleware);

  /// The method of that name, or null.
  [[nodiscard]] const Method* find(std::string_view name) const noexcept;
  /// The name nearest to one that is not there, for people who mistyped it; empty when none is near.
  /// With a principal, of those that it may call.
  [[nodiscard]] std::string_view nearest(std::string_view name, const Principal* principal = nullptr) const noexcept;
  /// All methods in the order in which they were added.
  [[nodiscard]] const std::vector<std::unique_ptr<Method>>& methods() const noexcept;
  [[nodiscard]] const std::vector<Middleware>& middleware() const noexcept;

  /// Serves one message or batch without any socket: `out` becomes the reply, empty when none is due. A handler that
  /// does not finish at once cannot be waited for here: it is asked to stop, which a task answers -32800, and what goes
  /// on waiting is answered -32603. Throws std::bad_alloc when there is no memory for the reply.
  /// Not thread-safe: the scratch memory of one registry serves one thread at a time. Re-entrant.
  void handle(std::string_view text, Buffer& out);
  void handle(std::string_view text, std::string& out);
  [[nodiscard]] std::string handle(std::string_view text);
  /// The same for text that already has kPaddingBytes readable behind it, the first of them zero: saves a copy.
  void handle_padded(std::string_view text, Buffer& out);
  /// Limits and log for handle(); a Server has its own. Throws std::invalid_argument for limits that cannot be.
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

/// Says that a callable blocks: waits for files, locks, other programs, or computes for long. A server runs it on one
/// of Options::blocking_threads threads then, several calls at a time if there are several, so it has to be
/// thread-safe, and so has what decodes and encodes its types (Adapt); where there are no such threads
/// (Registry::handle, methods of a client) it is called as any other.
/// server.method("digest", wirecall::blocking(digest), {"path"}).
template <class F>
[[nodiscard]] detail::Blocking<std::decay_t<F>> blocking(F&& callable) {
  return {std::forward<F>(callable)};
}

}  // namespace wirecall
