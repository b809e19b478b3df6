// The Python exception that is set: taken, put back, and what it says. Thread: one that holds the GIL.
#pragma once

#include <Python.h>
#include <string>

#include "reference.hpp"

namespace wirecall::python {

/// The exception that is set, with its traceback; it is no longer set. Null for none.
[[nodiscard]] Reference take_exception();
void restore_exception(Reference exception);

/// Its type and text, "ValueError: …"; it is no longer set.
[[nodiscard]] std::string take_exception_text();
/// What a validator says by ValueError, which is then no longer set. Empty for any other exception, which stays.
[[nodiscard]] std::string take_value_error();

}  // namespace wirecall::python
