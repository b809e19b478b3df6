// schema_text(): a JSON Schema in a few words, for people: "integer", "[string]", "{name: string, born?: integer}".
// What it has no words for is left out or told as "any". Pure.
#pragma once

#include "wirecall/value.hpp"

namespace wirecall::cli {

[[nodiscard]] std::string schema_text(const Value& schema);

}  // namespace wirecall::cli
