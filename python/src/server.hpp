// wirecall::Server, Broker and Registry::handle for Python; wirecall/server.py builds on it.
#pragma once

#include <nanobind/nanobind.h>

namespace wirecall::python {

void add_server(nanobind::module_& module);

}  // namespace wirecall::python
