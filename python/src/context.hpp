// What a Python handler sees of the call it serves: wirecall::Context as a Python object.
// Thread: one that holds the GIL.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include "wirecall/context.hpp"

namespace wirecall::python {

/// What of a context may be used, and destroyed, on another thread than its loop's.
[[nodiscard]] Context detached(const Context& context);
/// A new reference; null with a Python exception set.
[[nodiscard]] PyObject* make_context(Context context);
void add_context(nanobind::module_& module);

}  // namespace wirecall::python
