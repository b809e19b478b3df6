// What a tool reads of a server's answer: members of objects, of whatever version the server is. One that is not there,
// or is something else, reads as nothing.
#pragma once

#include "wirecall/value.hpp"

namespace wirecall::cli {

[[nodiscard]] inline double number_of(const Value& object, std::string_view name) {
  const Value* const member = object.find(name);
  return member != nullptr && member->is_number() ? member->as_double() : 0;
}

[[nodiscard]] inline std::string text_of(const Value& object, std::string_view name) {
  const Value* const member = object.find(name);
  return member != nullptr && member->is_string() ? member->as_string() : std::string{};
}

/// The elements of an array, none of anything else.
[[nodiscard]] inline const Value::Array& elements_of(const Value* value) {
  static const Value::Array kNone;
  return value != nullptr && value->is_array() ? value->as_array() : kNone;
}

}  // namespace wirecall::cli
