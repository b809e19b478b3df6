// See callback.hpp.
#include "callback.hpp"

#include "errors.hpp"

namespace wirecall::python {

void Callback::log_exception(std::string_view what) {
  try {
    throw;
  } catch (nanobind::python_error& failure) {
    failure.restore();
  } catch (const std::exception& failure) {  // a value that cannot be read
    PyErr_SetString(PyExc_ValueError, failure.what());
  }
  static_cast<void>(take_error(what, {}));
}

}  // namespace wirecall::python
