// scan(): whether bytes begin with a MessagePack value, and where it ends. All formats of the specification are known;
// strings have to be UTF-8, map keys may be of any type, and what an extension means is not asked. Sizes are believed
// only as far as there are bytes, so one that lies costs nothing.
// A pure function: neither memory nor time beyond the bytes that there are.
#pragma once

#include "wirecall/codec.hpp"

namespace wirecall::msgpack {

/// Reads nothing behind `bytes`. At most kDepthMax levels of arrays and maps.
[[nodiscard]] Scan scan(std::string_view bytes, std::uint32_t depth_max) noexcept;

}  // namespace wirecall::msgpack
