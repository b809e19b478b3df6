// See exception.hpp.
#include "exception.hpp"

namespace wirecall::python {

Reference take_exception() {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const Reference kept_type = Reference::steal(type);
  const Reference kept_traceback = Reference::steal(traceback);
  if (value != nullptr && traceback != nullptr) PyException_SetTraceback(value, traceback);
  return Reference::steal(value);
}

void restore_exception(Reference exception) {
  PyObject* const value = exception.release();
  if (value == nullptr) return PyErr_Clear();
  PyErr_Restore(Py_NewRef(Py_TYPE(value)), value, PyException_GetTraceback(value));
}

std::string take_exception_text() {
  const Reference exception = take_exception();
  if (!exception) return "an unknown exception";
  std::string text = "an unknown exception";
  const Reference name =
      Reference::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), "__name__"));
  if (const auto utf8 = name ? utf8_of(name.get()) : std::nullopt) text = *utf8;
  Reference words;
  if (const auto utf8 = utf8_of_str(exception.get(), words); utf8 && !utf8->empty()) text.append(": ").append(*utf8);
  PyErr_Clear();
  return text;
}

std::string take_value_error() {
  if (PyErr_ExceptionMatches(PyExc_ValueError) == 0) return {};
  const Reference exception = take_exception();
  Reference text;
  const auto words = exception ? utf8_of_str(exception.get(), text) : std::nullopt;
  PyErr_Clear();
  return words && !words->empty() ? std::string{*words} : "a valid value";
}

}  // namespace wirecall::python
