// See errors.hpp.
#include "errors.hpp"

#include <memory>
#include <string>

#include "encode.hpp"
#include "reference.hpp"
#include "values.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/message.hpp"

namespace wirecall::python {
namespace {

PyObject* make_function = nullptr;
PyObject* explain_function = nullptr;

std::string utf8_of(PyObject* text) {
  Py_ssize_t size = 0;
  const char* const utf8 = PyUnicode_AsUTF8AndSize(text, &size);
  if (utf8 == nullptr) return PyErr_Clear(), std::string{};
  return {utf8, static_cast<std::size_t>(size)};
}

Reference text_of(std::string_view utf8) {
  return Reference::steal(PyUnicode_DecodeUTF8(utf8.data(), static_cast<Py_ssize_t>(utf8.size()), "replace"));
}

// Data that JSON cannot hold is left out: the error itself is what matters. `why` says so then.
std::string data_of(PyObject* value, std::string& why) {
  if (value == Py_None) return {};
  Buffer text;
  const std::unique_ptr<Writer> writer = json_codec().writer();
  writer->reset(text);
  if (encode(*writer, value, why) && !writer->failed()) return std::string{text.view()};
  if (why.empty()) why = writer->failure();
  return {};
}

}  // namespace

void set_error_functions(PyObject* make, PyObject* explain) {
  make_function = Py_NewRef(make);
  explain_function = Py_NewRef(explain);
}

Error error_of(PyObject* exception, std::string_view method, std::string_view id) {
  const Reference told = Reference::steal(
      PyObject_CallFunctionObjArgs(explain_function, exception, text_of(method).get(), text_of(id).get(), nullptr));
  if (!told || !PyTuple_Check(told.get())) {
    PyErr_Clear();
    return Error{ErrorCode::internal_error};
  }
  const long code = PyLong_AsLong(PyTuple_GetItem(told.get(), 0));
  PyErr_Clear();
  std::string why;
  Error error{static_cast<int>(code), utf8_of(PyTuple_GetItem(told.get(), 1)),
              data_of(PyTuple_GetItem(told.get(), 2), why)};
  if (!why.empty()) {
    PyErr_Format(PyExc_TypeError, "the data of an error cannot be sent: %s", why.c_str());
    static_cast<void>(take_error(method, id));  // for the log
  }
  return detail::as_answer(error);
}

Error take_error(std::string_view method, std::string_view id) {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value != nullptr && traceback != nullptr) PyException_SetTraceback(value, traceback);
  const Reference kept_type = Reference::steal(type);
  const Reference kept_value = Reference::steal(value);
  const Reference kept_traceback = Reference::steal(traceback);
  if (value == nullptr) return Error{ErrorCode::internal_error};
  return error_of(value, method, id);
}

Error unreadable(const Reader& reader) {
  std::string why = "the result cannot be read";
  if (reader.failed()) why += ": expected " + reader.failure().expected + ", got " + reader.failure().got;
  return {ErrorCode::internal_error, std::move(why)};
}

PyObject* make_exception(const Error& error, detail::ErrorClass kind) {
  Reference data = Reference::share(Py_None);
  if (!error.data().empty()) {
    Buffer text{error.data()};
    const std::unique_ptr<Reader> reader = json_codec().reader();
    reader->reset(text.padded());
    data = Reference::steal(decode_any(*reader));
    if (!data) {
      PyErr_Clear();
      data = Reference::share(Py_None);
    }
  }
  const Reference code = Reference::steal(PyLong_FromLong(error.code()));
  const Reference which = Reference::steal(PyLong_FromLong(static_cast<long>(kind)));
  return PyObject_CallFunctionObjArgs(make_function, code.get(), text_of(error.message()).get(), data.get(),
                                      which.get(), nullptr);
}

void set_exception(const Error& error, detail::ErrorClass kind) {
  const Reference exception = Reference::steal(make_exception(error, kind));
  if (exception) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
}

}  // namespace wirecall::python
