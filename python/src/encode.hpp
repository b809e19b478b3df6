// Python objects as values on the wire: `encode` writes one with any codec's Writer, without a tree in between.
// What is no int, str, list, … of Python's own is written by a plan that wirecall/_values.py makes for its type once.
// Thread: one that holds the GIL.
#pragma once

#include <Python.h>
#include <string>

#include "wirecall/codec.hpp"

namespace wirecall::python {

/// Writes `value`. False when it cannot be: then `where` says which part of it cannot, and why, and no Python exception
/// is set.
[[nodiscard]] bool encode(Writer& writer, PyObject* value, std::string& where);

/// What makes plans: a function of a type, called once for each; kept for good.
void set_planner(PyObject* function);

/// The text of the Python exception that is set, which is cleared: "ValueError: …".
[[nodiscard]] std::string take_exception_text();

}  // namespace wirecall::python
