// Python objects as values on the wire: `encode` writes one with any codec's Writer, without a tree in between.
// What is no int, str, list, … of Python's own is written by a plan that wirecall/_values.py makes for its type once.
// Thread: one that holds the GIL.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>
#include <optional>

#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::python {

/// Writes `value`. False when it cannot be: then `where` says which part of it cannot, and why, and no Python exception
/// is set.
[[nodiscard]] bool encode(Writer& writer, PyObject* value, std::string& where);

/// The same as a text of its own; nullopt when it cannot be.
[[nodiscard]] std::optional<Buffer> encoded(const Codec& codec, PyObject* value, std::string& where);

/// Whether a call with these arguments, a tuple and a dict, has params. Throws TypeError where neither is empty.
[[nodiscard]] bool has_params(nanobind::handle args, nanobind::handle kwargs);
/// Writes them. Throws TypeError that says which cannot be sent, and why.
void write_params(Writer& writer, nanobind::handle args, nanobind::handle kwargs);

/// Whether the only member of an object in JSON, by that name, says that the object stands for something else.
[[nodiscard]] inline bool is_mark(std::string_view name) noexcept {
  return name == "$bytes" || name == "$npy" || name == "$image" || name == "$message" || name == "$packed" ||
         name == "$";
}

/// Whether writing that value runs no user code and is short: a scalar, up to 32 of them in a list, or a small array.
[[nodiscard]] bool is_written_at_once(PyObject* value);

/// `function` makes the plan of a type; it is called once for each type, and kept for good.
void set_planner(PyObject* function);

}  // namespace wirecall::python
