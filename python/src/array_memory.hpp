// Memory of the large arrays that a batched function is given. It is kept when they have gone, for those of later
// batches: the system takes as long to map and clear new pages as the copy into them takes. One pool for the process.
// Thread: any; only the Python objects need the GIL.
#pragma once

#include <nanobind/nanobind.h>

namespace wirecall::python {

/// Adds `array_memory(bytes)`, a writable memoryview with unspecified contents, or None for an array that is too small
/// for this to pay, or too large to be kept, or where memory is short; and `kept_array_bytes()`. The memory is lent
/// until all have gone that refer to it.
void add_array_memory(nanobind::module_& module);

}  // namespace wirecall::python
