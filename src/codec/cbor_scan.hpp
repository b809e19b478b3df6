// scan(): whether bytes begin with a CBOR value that is well-formed (RFC 8949, appendix C), and where it ends. Strings
// have to be UTF-8, each of their chunks too; map keys may be of any type, and what tags mean is not asked. Sizes are
// believed only as far as there are bytes, so one that lies costs nothing.
// Pure functions: neither memory nor time beyond the bytes that there are.
#pragma once

#include "wirecall/codec.hpp"

namespace wirecall::cbor {

/// Reads nothing behind `bytes`. At most kDepthMax levels of arrays and maps, and kTagsMax tags in front of a value.
[[nodiscard]] Scan scan(std::string_view bytes, std::uint32_t depth_max) noexcept;

/// The same from `p` on, which becomes the end of the value, or where something is wrong.
[[nodiscard]] ScanStatus pass_value(const char*& p, const char* end, std::uint32_t depth_max) noexcept;

}  // namespace wirecall::cbor
