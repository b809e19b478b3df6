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
  parse_error = -32700,
  invalid_request = -32600,
  method_not_found = -32601,
  invalid_params = -32602,
  internal_error = -32603,
  server_error = -32000,   ///< raised by a handler without a code
  provider_lost = -32001,  ///< the connection to the peer that was to answer is lost: ConnectionError of a client
  timeout = -32002,
  forbidden = -32003,
  unauthenticated = -32004,
  limit_exceeded = -32005,  ///< a limit or overload: back off
  too_large = -32006,
  conflict = -32007,
  no_subscription = -32008,
  draining = -32009,
  cancelled = -32800,  ///< LSP's RequestCancelled
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
