// Validates what a method returns against the type that it declares, while it is written: a value is written by its
// plan as any other (encode.hpp), and has to be on the wire what the schema of its Shape says. So a dict may stand for
// a dataclass, a tuple for a list, an IntEnum for an int; True is no integer. Thread: one that holds the GIL.
#pragma once

#include <Python.h>

#include "shape.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::python {

/// What `where` begins with for a value that can be written, but is not of the declared type. The log puts a failure
/// that begins with "is not" right behind "the result" (src/rpc/call.cpp).
inline constexpr std::string_view kNotAsDeclared = "is not of the declared type: ";

/// Writes `value` as `shape` has it; any value, where that is null. False when it cannot be written, or is something
/// else: then `where` says which part of it, what was expected and what is there, and no Python exception is set.
[[nodiscard]] bool encode_as(Writer& writer, PyObject* value, const Shape* shape, std::string& where);

}  // namespace wirecall::python
