// Client: calls methods of a server over one connection. A call blocks its thread until it is answered, and the thread
// itself does the waiting on the socket: no other thread is involved. Several threads may call at once; then one of
// them waits on the socket for all, and passes that on when it has its own answer. The templates here only encode and
// decode; everything else is compiled (src/session/client.cpp). Thread: any, for all calls; making, moving and
// destroying the client happens while nobody calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "wirecall/codec.hpp"
#include "wirecall/error.hpp"
#include "wirecall/options.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall {

/// The connection could not be made, or was lost before the answer came: -32001.
class ConnectionError : public Error {
 public:
  enum class Delivered { no, maybe };

  ConnectionError(std::string message, Delivered delivered);
  explicit ConnectionError(Error error) : Error(std::move(error)) {}

  /// The server cannot have seen the call: calling again is safe.
  [[nodiscard]] bool safe_to_retry() const noexcept;
};

/// What a server answered, as it came.
struct Response {
  std::string json;                          ///< the whole response
  std::expected<std::string, Error> result;  ///< its result's JSON text, or its error
};

/// An argument by name; made by wirecall::arg("minuend") = 42.
template <class T>
struct NamedArgument {
  std::string_view name;
  T value;  ///< a reference for an lvalue, which is read before the call returns
};

/// Names an argument: client.call<int>("subtract", arg("minuend") = 42, arg("subtrahend") = 23).
class arg {
 public:
  constexpr explicit arg(std::string_view name) noexcept : name_(name) {}
  template <class T>
  constexpr NamedArgument<T> operator=(T&& value) const {
    return {name_, std::forward<T>(value)};
  }

 private:
  std::string_view name_;
};

class Client;

namespace detail {

template <class T>
inline constexpr bool kIsNamed = false;
template <class T>
inline constexpr bool kIsNamed<NamedArgument<T>> = true;

/// One call on its way: its params are written, it is exchanged for a response, and that is read.
class OutgoingCall {
 public:
  OutgoingCall(Client& client, std::string_view method);
  ~OutgoingCall();
  OutgoingCall(OutgoingCall&&) = delete;

  /// Where the params go, as one array or object. Not asked for where there are none.
  [[nodiscard]] Writer& params();
  /// The same for params that are JSON text already, which is validated.
  void set_params(std::string_view json);
  /// Calls, and blocks. False: `error` says why there is no result.
  [[nodiscard]] bool call();
  /// Sends without an id; true when the system has taken all of it.
  [[nodiscard]] bool notify();
  /// Instead of `call`, for the response itself.
  [[nodiscard]] std::expected<Response, Error> call_for_response();
  /// After `call`: the result.
  [[nodiscard]] Reader& result();
  [[nodiscard]] std::string_view result_json() const noexcept;
  /// The result cannot be read as what was asked for; becomes the error.
  void refuse_result(std::string_view type);
  [[nodiscard]] Error& error() noexcept { return *error_; }
  /// Throws it, as ConnectionError when it is one.
  [[noreturn]] void throw_error();

  struct State;

 private:
  explicit OutgoingCall(Client& client);
  bool exchange(bool answer);

  Client* client_;
  State* state_;
  std::optional<Error> error_;
  bool lost_ = false;
};

template <class... Args>
void write_params(OutgoingCall& call, const Args&... args) {
  static_assert((kIsNamed<Args> && ...) || (!kIsNamed<Args> && ...), "name all arguments, or none of them");
  if constexpr (sizeof...(Args) != 0) {
    Writer& writer = call.params();
    if constexpr ((kIsNamed<Args> && ...)) {
      writer.begin_object(sizeof...(Args));
      ((writer.key(args.name), encode(writer, args.value)), ...);
      writer.end_object();
    } else {
      writer.begin_array(sizeof...(Args));
      (encode(writer, args), ...);
      writer.end_array();
    }
  }
}

}  // namespace detail

class Client {
 public:
  /// Connects, to a place such as "tcp://127.0.0.1:8545". Throws ConnectionError with the cause and the cure,
  /// std::invalid_argument for what names no place and for limits that cannot be.
  explicit Client(std::string_view uri, ClientOptions options = {});
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  /// Calls `method` and returns its result. Throws the Error it was answered with; Error -32002 when no answer came in
  /// time, which costs neither the connection nor other calls; ConnectionError when the connection is gone.
  template <class Result = void, class... Args>
  Result call(std::string_view method, const Args&... args) {
    detail::OutgoingCall call{*this, method};
    detail::write_params(call, args...);
    if (!call.call()) call.throw_error();
    if constexpr (!std::is_void_v<Result>) {
      Result result{};
      if (!decode(call.result(), result)) {
        call.refuse_result(type_name<Result>());
        call.throw_error();
      }
      return result;
    }
  }

  /// The same without exceptions.
  template <class Result = void, class... Args>
  [[nodiscard]] std::expected<Result, Error> try_call(std::string_view method, const Args&... args) {
    detail::OutgoingCall call{*this, method};
    detail::write_params(call, args...);
    if (!call.call()) return std::unexpected{std::move(call.error())};
    if constexpr (std::is_void_v<Result>) {
      return {};
    } else {
      std::expected<Result, Error> result;
      if (!decode(call.result(), *result)) {
        call.refuse_result(type_name<Result>());
        result = std::unexpected{std::move(call.error())};
      }
      return result;
    }
  }

  /// Sends a notification: nobody answers it. Returns when the system has taken it.
  template <class... Args>
  void notify(std::string_view method, const Args&... args) {
    detail::OutgoingCall call{*this, method};
    detail::write_params(call, args...);
    if (!call.notify()) call.throw_error();
  }

  /// Calls with params that are JSON text (an array or object; empty for none) and returns the result's JSON text.
  [[nodiscard]] std::expected<std::string, Error> call_raw(std::string_view method, std::string_view params_json);
  /// The same for the whole response. Its errors are the server's; the outer ones are those of this side: no response
  /// came, or none that can be read.
  [[nodiscard]] std::expected<Response, Error> call_for_response(std::string_view method, std::string_view params_json);
  [[nodiscard]] std::expected<void, Error> notify_raw(std::string_view method, std::string_view params_json);

  /// Responses that nobody was waiting for: late, unknown or given twice.
  [[nodiscard]] std::uint64_t responses_dropped() const;

 private:
  friend class detail::OutgoingCall;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wirecall
