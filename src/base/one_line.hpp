// Line breaks in text that is to be one line: whether there are any, and blanks in their place. In valid JSON text they
// stand between tokens only, where a blank means the same. Pure.
#pragma once

#include <string_view>

namespace wirecall {

/// Whether `text` holds a line feed or a carriage return.
[[nodiscard]] bool has_line_break(std::string_view text) noexcept;

/// Writes a blank in place of each line feed and carriage return from `begin` to `end`.
void make_one_line(char* begin, const char* end) noexcept;

}  // namespace wirecall
