// The byte order mark of UTF-8, which some systems write before all text: it is skipped once, at the start of a
// connection or of a body (docs/wire.md "Connections"). Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace wirecall::framing {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// How many bytes of `text` are one: 0 or 3.
[[nodiscard]] constexpr std::size_t byte_order_mark_bytes(std::string_view text) noexcept {
  return text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
}

}  // namespace wirecall::framing
