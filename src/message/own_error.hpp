// Errors that wirecall itself makes with a code of its own: they say why, where, and whether the call was delivered
// (docs/errors.md).
#pragma once

#include <cstdint>

#include "wirecall/error.hpp"

namespace wirecall::message {

/// What the data of an own error says. The words are plain ASCII without quotes.
struct OwnError {
  ErrorCode code;
  std::string_view reason;
  std::string_view delivered;   ///< "no": safe to retry; "maybe": only for idempotent methods
  std::string_view limit = {};  ///< the limit that was exceeded, by its name
  std::string_view origin =
      "local";                       ///< where it was made: here, at another node (remote), or by what joins them (bus)
  std::uint64_t retry_after_ms = 0;  ///< when it is no use to try again before; 0 for no advice
};

/// data: {"reason", "origin", "delivered", "limit"?, "retry_after_ms"?}
[[nodiscard]] Error make(const OwnError& error);
/// The same of an error that no limit caused.
[[nodiscard]] inline Error make(ErrorCode code, std::string_view reason, std::string_view delivered) {
  return make(OwnError{.code = code, .reason = reason, .delivered = delivered});
}
[[nodiscard]] inline Error limit_exceeded(std::string_view reason, std::string_view limit,
                                          std::string_view delivered = "no") {
  return make({.code = ErrorCode::limit_exceeded, .reason = reason, .delivered = delivered, .limit = limit});
}
/// More than Limits::max_message_size.
[[nodiscard]] inline Error too_large(std::string_view reason, std::string_view delivered = "no") {
  return make({.code = ErrorCode::too_large, .reason = reason, .delivered = delivered, .limit = "max_message_size"});
}
/// The same error, with another word of whether the call was delivered; as it is where it says none.
[[nodiscard]] Error with_delivered(const Error& error, std::string_view delivered);

}  // namespace wirecall::message
