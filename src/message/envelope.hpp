// read_message over either set of scanner operations: the native one behind wirecall::read_message, and the scalar
// twin with which tests compare it.
#pragma once

#include "wirecall/message.hpp"

namespace wirecall::message {

[[nodiscard]] Scan read_message_scalar(std::string_view text, const Limits& limits, bool whole, Received& out) noexcept;

}  // namespace wirecall::message
