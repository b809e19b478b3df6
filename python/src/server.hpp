// The Python face of wirecall::Server; wirecall/server.py makes it friendly. Broker and Registry::handle included.
#pragma once

#include <nanobind/nanobind.h>

namespace wirecall::python {

void add_server(nanobind::module_& module);

}  // namespace wirecall::python
