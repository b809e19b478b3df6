// Text that another wrote, made fit for a terminal or a log: it stays on its line and steers nothing. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace wirecall {

/// Bytes of the character that `text` begins with, if it is valid UTF-8 and neither a control nor a
/// format character nor a separator of lines; else 0.
[[nodiscard]] std::size_t printable_bytes(std::string_view text) noexcept;

/// The text with \xNN in place of each byte that is not part of such a character.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace wirecall
