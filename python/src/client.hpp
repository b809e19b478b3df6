// wirecall::Client for Python; wirecall/client.py and wirecall/aclient.py build on it.
#pragma once

#include <nanobind/nanobind.h>

namespace wirecall::python {

void add_client(nanobind::module_& module);

}  // namespace wirecall::python
