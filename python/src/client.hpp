// The Python face of wirecall::Client; wirecall/client.py and wirecall/aclient.py make it friendly.
#pragma once

#include <nanobind/nanobind.h>

namespace wirecall::python {

void add_client(nanobind::module_& module);

}  // namespace wirecall::python
