// MethodPacking: how the calls of one method are packed, for python/wirecall/_packing.py.
#pragma once

#include <nanobind/nanobind.h>

namespace wirecall::python {

void add_method_packing(nanobind::module_& module);

}  // namespace wirecall::python
