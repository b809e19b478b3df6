// What a value is refused with that does not fit its type, for all that decode.
#pragma once

#include <string>

#include "wirecall/codec.hpp"
#include "wirecall/error.hpp"
#include "wirecall/schema.hpp"

namespace wirecall {
class Value;
}

namespace wirecall::codec {

/// As wirecall::decode_error, of a failure.
[[nodiscard]] Error decode_error(const DecodeFailure& failure);
/// The text, or as much of its beginning as a failure shows.
[[nodiscard]] std::string shorten(std::string text);
/// The same of a value, which need not have a JSON text.
[[nodiscard]] std::string shown(const Value& value);
/// "integer from 0 to 9", "string of length 1 to 20".
[[nodiscard]] std::string limit_words(const TypeInfo& type, const About& about);

}  // namespace wirecall::codec
