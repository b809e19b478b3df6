// What a value is by its Python type alone, before anything looks into it. Thread: one that holds the GIL.
#pragma once

#include <Python.h>
#include <algorithm>

#include "shape.hpp"

namespace wirecall::python {

/// Whether it is of one of Python's own types, which have no plan.
inline bool is_plain(PyObject* value) {
  PyTypeObject* const type = Py_TYPE(value);
  return type == &PyLong_Type || type == &PyUnicode_Type || type == &PyFloat_Type || type == &PyBool_Type ||
         value == Py_None || type == &PyList_Type || type == &PyDict_Type || type == &PyTuple_Type ||
         type == &PyBytes_Type;
}

/// Whether a value of exactly this type is never of that kind. Types of others may be written as anything.
inline bool is_excluded(PyTypeObject* type, ShapeKind kind) {
  switch (kind) {
    case ShapeKind::none:
    case ShapeKind::boolean:
    case ShapeKind::integer:
    case ShapeKind::number:
    case ShapeKind::string:
    case ShapeKind::bytes: return type == &PyList_Type || type == &PyTuple_Type || type == &PyDict_Type;
    case ShapeKind::list:
    case ShapeKind::set:
    case ShapeKind::frozenset:
    case ShapeKind::tuple:
    case ShapeKind::record: return type == &PyDict_Type || type == &PyUnicode_Type || type == &PyLong_Type;
    case ShapeKind::map:
    case ShapeKind::object:
      return type == &PyList_Type || type == &PyTuple_Type || type == &PyUnicode_Type || type == &PyLong_Type;
    default: return false;
  }
}

/// Whether a value is of that shape by its type alone.
inline bool is_exactly(PyObject* value, const Shape& shape) {
  PyTypeObject* const type = Py_TYPE(value);
  switch (shape.kind()) {
    case ShapeKind::any: return true;
    case ShapeKind::none: return value == Py_None;
    case ShapeKind::boolean: return type == &PyBool_Type;
    case ShapeKind::integer: return type == &PyLong_Type;
    case ShapeKind::number: return type == &PyFloat_Type || type == &PyLong_Type;
    case ShapeKind::string: return type == &PyUnicode_Type;
    case ShapeKind::bytes: return type == &PyBytes_Type;
    case ShapeKind::object:
    case ShapeKind::record: return reinterpret_cast<PyObject*>(type) == shape.type();
    case ShapeKind::converted:
    case ShapeKind::raw:
    case ShapeKind::extension: return reinterpret_cast<PyObject*>(type) == shape.result_type();
    default: return false;
  }
}

/// The first part that a value is of by its type alone; null where it may be one of a literal's values.
inline const Shape* exact_part(PyObject* value, const Shape& shape) {
  PyTypeObject* const type = Py_TYPE(value);
  for (const Shape* part : shape.parts()) {
    if (part->kind() == ShapeKind::literal && (type == &PyUnicode_Type || type == &PyLong_Type)) return nullptr;
    if (is_exactly(value, *part)) return part;
  }
  return nullptr;
}

/// Whether a union has null among its parts.
inline bool takes_none(const Shape& choice) {
  return std::ranges::any_of(choice.parts(), [](const Shape* part) { return part->kind() == ShapeKind::none; });
}

}  // namespace wirecall::python
