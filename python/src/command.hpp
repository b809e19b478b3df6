// What `wirecall serve FILE.py` and worker processes need of the native side: the options behind its flags, and SIGTERM
// when the parent process has gone.
#pragma once

#include <nanobind/nanobind.h>

namespace wirecall::python {

void add_command(nanobind::module_& module);

}  // namespace wirecall::python
