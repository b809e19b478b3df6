// compact(): valid JSON text without the white space between its tokens.
#pragma once

#include <string_view>

namespace wirecall::json {

/// Writes valid JSON text to `to`, which has room for all of it and may be where it stands, without the white space
/// outside its strings. Returns the new end. What is not valid JSON comes out as something, within the same room.
/// Nothing that comes out holds a control byte, line breaks among them, whatever `text` is.
char* compact(char* to, std::string_view text) noexcept;

}  // namespace wirecall::json
