// Reference: a counted reference to a Python object, for code that uses the C API directly; null for none. Below it,
// what that code does most: calls, and strings as UTF-8. Thread: one that holds the GIL.
#pragma once

#include <Python.h>
#include <optional>
#include <string_view>
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

/// What a function returns; null with an exception set.
template <class... Arguments>
[[nodiscard]] Reference call_function(PyObject* function, Arguments*... arguments) {
  return Reference::steal(PyObject_CallFunctionObjArgs(function, arguments..., nullptr));
}
/// The same of a method. No argument may be null.
template <class... Arguments>
[[nodiscard]] Reference call_method(PyObject* object, const char* name, Arguments*... arguments) {
  const Reference text = Reference::steal(PyUnicode_FromString(name));
  return Reference::steal(PyObject_CallMethodObjArgs(object, text.get(), arguments..., nullptr));
}

/// The UTF-8 of a string, as long as that lives; nullopt with an exception set.
[[nodiscard]] inline std::optional<std::string_view> utf8_of(PyObject* string) {
  Py_ssize_t size = 0;
  const char* const utf8 = PyUnicode_AsUTF8AndSize(string, &size);
  if (utf8 == nullptr) return std::nullopt;
  return std::string_view{utf8, static_cast<std::size_t>(size)};
}
/// The same of what str() makes of an object. `text` keeps the string.
[[nodiscard]] inline std::optional<std::string_view> utf8_of_str(PyObject* object, Reference& text) {
  text = Reference::steal(PyObject_Str(object));
  return text ? utf8_of(text.get()) : std::nullopt;
}

}  // namespace wirecall::python
