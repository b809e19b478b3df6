// What a method returns, held against the type that it declares, while it is written: the value goes by its own plan as
// any other (encode.hpp), and each part has to be what its Shape promises to whoever reads the schema. So what counts
// is the form on the wire: a dict may stand for a dataclass, a tuple for a list, an IntEnum for an int; True is no
// integer. Thread: one that holds the GIL.
#pragma once

#include <Python.h>
#include <string>

#include "shape.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::python {

/// Writes `value` as `shape` has it. False when it cannot be written, or is something else: then `where` says which
/// part of it, what was expected and what is there, and no Python exception is set.
[[nodiscard]] bool encode_as(Writer& writer, PyObject* value, const Shape& shape, std::string& where);

}  // namespace wirecall::python
