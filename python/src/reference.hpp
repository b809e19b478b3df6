// Reference: a counted reference to a Python object, for code that uses the C API directly. Null for none.
// Thread: one that holds the GIL.
#pragma once

#include <Python.h>
#include <utility>

namespace wirecall::python {

class Reference {
 public:
  Reference() = default;
  Reference(Reference&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Reference& operator=(Reference&& other) noexcept {
    Reference former{std::exchange(object_, std::exchange(other.object_, nullptr))};
    return *this;
  }
  ~Reference() { Py_XDECREF(object_); }

  /// Takes over a reference that the caller owns.
  [[nodiscard]] static Reference steal(PyObject* object) noexcept { return Reference{object}; }
  /// Makes a further reference.
  [[nodiscard]] static Reference share(PyObject* object) noexcept {
    Py_XINCREF(object);
    return Reference{object};
  }

  [[nodiscard]] PyObject* get() const noexcept { return object_; }
  [[nodiscard]] PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  [[nodiscard]] explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  explicit Reference(PyObject* object) noexcept : object_(object) {}

  PyObject* object_ = nullptr;
};

}  // namespace wirecall::python
