// Errors that wirecall itself makes with a code of its own: they say why, where, and whether the call was delivered
// (docs/errors.md).
#pragma once

#include <string_view>

#include "wirecall/error.hpp"

namespace wirecall::message {

/// What the data of an own error says. The words are plain ASCII without quotes.
struct OwnError {
  ErrorCode code;
  std::string_view reason;
  std::string_view delivered;   ///< "no": safe to retry; "maybe": only for idempotent methods
  std::string_view limit = {};  ///< the limit that was exceeded, by its name
};

/// data: {"reason", "origin":"local", "delivered", "limit"?}
[[nodiscard]] Error make(const OwnError& error);

}  // namespace wirecall::message
