// The error catalogue and the exception that carries a JSON-RPC error object through C++.
// One list of codes; docs/errors.md explains each to the author of a client or server.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace wirecall {

/// The codes of JSON-RPC 2.0 section 5.1, and wirecall's own (docs/errors.md).
enum class ErrorCode : int {
  parse_error = -32700,       ///< the message is not JSON, not UTF-8, or nests deeper than Limits::depth
  invalid_request = -32600,   ///< the message is JSON, but no JSON-RPC 2.0 message
  method_not_found = -32601,  ///< the server has no such method, or the caller may not call it
  invalid_params = -32602,    ///< a parameter is missing, unknown or of another type; no handler has run
  internal_error = -32603,    ///< the handler failed, or the encoding cannot hold its result
  server_error = -32000,      ///< the handler threw an Error without a code
  provider_lost = -32001,     ///< the connection to the peer that was to answer is lost: ConnectionError of a client
  timeout = -32002,           ///< the call has exceeded its deadline
  forbidden = -32003,         ///< the caller has no grant for what it requests
  unauthenticated = -32004,   ///< the caller has not authenticated, or its token or session is unknown
  limit_exceeded = -32005,    ///< a limit of the server is reached; `data.limit` names it: retry later
  too_large = -32006,         ///< the message, or the answer, exceeds Limits::max_message_size
  conflict = -32007,          ///< the name is taken, or a provider of the method has another policy
  no_subscription = -32008,   ///< the connection has no such subscription
  draining = -32009,          ///< the server is stopping and starts no new calls
  cancelled = -32800,         ///< the caller has cancelled the call; LSP's RequestCancelled
};

/// The fixed message of a code; empty for a code that is not in the catalogue.
[[nodiscard]] std::string_view message_of(ErrorCode code) noexcept;

/// A JSON-RPC error object. A handler answers with it by throwing it, or returning it in std::expected. A client throws
/// or returns it where a call was answered with an error. `data` is JSON text, empty for none.
class Error : public std::exception {
 public:
  /// An error without a code of its own: -32000.
  explicit Error(std::string message) : Error(ErrorCode::server_error, std::move(message)) {}
  explicit Error(ErrorCode code) : Error(code, std::string{message_of(code)}) {}
  Error(ErrorCode code, std::string message, std::string data_json = {})
      : Error(static_cast<int>(code), std::move(message), std::move(data_json)) {}
  Error(int code, std::string message, std::string data_json = {})
      : code_(code), message_(std::move(message)), data_(std::move(data_json)) {}
  /// With the fixed message of the code.
  [[nodiscard]] static Error with_data(ErrorCode code, std::string data_json) {
    return {code, std::string{message_of(code)}, std::move(data_json)};
  }

  [[nodiscard]] int code() const noexcept { return code_; }
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  [[nodiscard]] const std::string& data() const noexcept { return data_; }
  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }

 private:
  int code_;
  std::string message_;
  std::string data_;
};

/// An Error of this program's own: a value that JSON cannot hold, a Value of another kind than was asked for, a result
/// of another type than was asked for. A handler that throws it has failed: its caller is answered -32603 without the
/// text, which goes to the log.
class LocalError : public Error {
 public:
  using Error::Error;
  explicit LocalError(Error error) : Error(std::move(error)) {}
};

}  // namespace wirecall
