// Reading the error object of a response.
#pragma once

#include "wirecall/codec.hpp"
#include "wirecall/error.hpp"

namespace wirecall::message {

/// What stands for a response, or for its error object, that has not the shape of one.
[[nodiscard]] Error malformed_response();
/// Whether the text, which is JSON, is an error object: its code an integer, its message, if any, a string.
[[nodiscard]] bool is_error(Reader& reader, std::string_view text);

/// The error of a response, from its validated text as Reader::reset wants it.
[[nodiscard]] Error read_error(Reader& reader, std::string_view text);

}  // namespace wirecall::message
