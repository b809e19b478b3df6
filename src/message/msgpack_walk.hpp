// Walks over messages in MessagePack, made for many small values. walk_message() checks one message and remembers where
// the members of its envelope are that somebody asks for, so that nobody looks for them again; end_of() passes over a
// value that has been checked. What is taken and what is not is the same as in codec/msgpack_scan.hpp, which is the
// slow twin that they are tested against.
// Pure functions over memory of the caller.
#pragma once

#include "message/envelope_members.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::message {

/// Whether `message` is one whole value and nothing behind it: complete, too_deep, or else malformed.
[[nodiscard]] ScanStatus walk_message(std::string_view message, std::uint32_t depth_max,
                                      EnvelopeMembers& members) noexcept;

/// The end of the value at `p`, which has been checked.
[[nodiscard]] const char* end_of(const char* p) noexcept;

}  // namespace wirecall::message
