// Values as Python has them, read from any codec: those that need no shape, and what shapes are made of. Where a
// function returns null, a failure has been recorded with the reader; or a Python exception is left set, where it is
// not the value that is wrong. Thread: any, with the GIL.
#pragma once

#include <Python.h>

#include "wirecall/codec.hpp"

namespace wirecall::python {

/// What makes an object of an extension where no shape is asked for: a function of its type and its bytes. Kept for
/// good.
void set_extension_reader(PyObject* function);

/// Any JSON value as what Python's own json makes of it; bytes, extensions and what stands for them in JSON as what
/// they are.
[[nodiscard]] PyObject* decode_any(Reader& reader);

[[nodiscard]] PyObject* text_object(std::string_view utf8);
/// With an exception set, which stays: it is none of the peer's business.
PyObject* fail_with_exception(Reader& reader);
/// Of any size.
[[nodiscard]] PyObject* decode_integer(Reader& reader);
[[nodiscard]] PyObject* decode_number(Reader& reader);
[[nodiscard]] PyObject* decode_string(Reader& reader);
[[nodiscard]] PyObject* decode_bytes(Reader& reader);
/// An extension, as the function makes it of its type and its bytes.
[[nodiscard]] PyObject* read_extension(Reader& reader, PyObject* function);
/// Whether the value of `$`, the first member of an object in JSON, is user data that was wrapped, since it would be
/// taken for something else: an object of one member whose name begins with `$`. Reads nothing.
[[nodiscard]] bool is_wrapped(Reader& reader);
/// Records what the validator expected whose ValueError is set. Any other exception stays set: it is no failure of the
/// value. Returns null.
PyObject* fail_with_value_error(Reader& reader);

}  // namespace wirecall::python
