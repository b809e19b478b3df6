// Errors between Python and C++: wirecall/errors.py makes the exceptions and knows what an exception says.
// Thread: one that holds the GIL.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/error.hpp"
#include "wirecall/request.hpp"

namespace wirecall::python {

/// `make(code, message, data, kind)` returns an exception; `explain(exception, method, id)` returns (code, message,
/// data) of one that is to be sent, or None after it has told the log. Kept for good.
void set_error_functions(PyObject* make, PyObject* explain);

/// The Python exception that is set, which is cleared, as what the caller of `method` is answered.
[[nodiscard]] Error take_error(std::string_view method, std::string_view id);
/// The same of an exception at hand.
[[nodiscard]] Error error_of(PyObject* exception, std::string_view method, std::string_view id);
/// Of a result that has come and that Python cannot hold; a LocalError.
[[nodiscard]] Error unreadable(const Reader& reader);
/// A new reference to the exception that `error` becomes; null with a Python exception set.
[[nodiscard]] PyObject* make_exception(const Error& error, detail::ErrorClass kind);
void set_exception(const Error& error, detail::ErrorClass kind = detail::ErrorClass::error);
/// Sets that exception, and throws nanobind::python_error.
[[noreturn]] void raise(const Error& error, detail::ErrorClass kind = detail::ErrorClass::error);

/// The value of a result that has come. Throws nanobind::python_error: a LocalError where Python cannot hold it.
[[nodiscard]] nanobind::object result_of(Reader& reader);
/// The same of JSON text.
[[nodiscard]] nanobind::object result_of(Buffer json);

}  // namespace wirecall::python
