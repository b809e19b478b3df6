// walk_cbor() checks one message in CBOR and remembers where the members of its envelope are that somebody asks for, so
// that nobody looks for them again. What is taken and what is not is the same as in codec/cbor_scan.hpp.
// A pure function over memory of the caller.
#pragma once

#include "message/envelope_members.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/message.hpp"

namespace wirecall::message {

/// Reads and checks a usual request (message/usual_request.hpp), but for `out.text` and `out.encoding`. False where it
/// is anything else: `out` means nothing then.
[[nodiscard]] bool read_cbor_request(std::string_view message, std::uint32_t depth_max, IdText& id,
                                     Received& out) noexcept;

/// Whether `message` is one whole value and nothing behind it: complete, too_deep, or else malformed. An envelope with
/// a name that is no string, or not one of definite length without tags, has `members` that are not all.
[[nodiscard]] ScanStatus walk_cbor(std::string_view message, std::uint32_t depth_max,
                                   EnvelopeMembers& members) noexcept;

}  // namespace wirecall::message
