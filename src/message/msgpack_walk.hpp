// Walks over messages in MessagePack, made for many small values. walk_message() checks one message and remembers where
// the members of its envelope are that somebody asks for, so that nobody looks for them again; end_of() passes over a
// value that has been checked. What is taken and what is not is the same as in codec/msgpack_scan.hpp, which is the
// slow twin that they are tested against.
// Pure functions over memory of the caller.
#pragma once

#include "message/envelope_members.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/message.hpp"

namespace wirecall::message {

/// Whether `message` is one whole value and nothing behind it: complete, too_deep, or else malformed.
[[nodiscard]] ScanStatus walk_message(std::string_view message, std::uint32_t depth_max,
                                      EnvelopeMembers& members) noexcept;

/// Reads and checks a usual request (message/usual_request.hpp), but for `out.text` and `out.encoding`. False where it
/// is anything else: `out` means nothing then.
[[nodiscard]] bool read_msgpack_request(std::string_view message, std::uint32_t depth_max, IdText& id,
                                        Received& out) noexcept;

/// The end of the value at `p`, which has been checked.
[[nodiscard]] const char* end_of(const char* p) noexcept;

}  // namespace wirecall::message
