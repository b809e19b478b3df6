// See errors.hpp.
#include "errors.hpp"

#include "encode.hpp"
#include "exception.hpp"
#include "reference.hpp"
#include "values.hpp"
#include "wirecall/message.hpp"

namespace wirecall::python {
namespace {

PyObject* make_function = nullptr;
PyObject* explain_function = nullptr;

Reference text_of(std::string_view utf8) {
  return Reference::steal(PyUnicode_DecodeUTF8(utf8.data(), static_cast<Py_ssize_t>(utf8.size()), "replace"));
}

// Data that JSON cannot hold is left out: the error itself is what matters. `why` says so then.
std::string data_of(PyObject* value, std::string& why) {
  if (value == Py_None) return {};
  const std::optional<Buffer> text = encoded(json_codec(), value, why);
  return text ? std::string{text->view()} : std::string{};
}

}  // namespace

void set_error_functions(PyObject* make, PyObject* explain) {
  make_function = Py_NewRef(make);
  explain_function = Py_NewRef(explain);
}

Error error_of(PyObject* exception, std::string_view method, std::string_view id) {
  const Reference told = call_function(explain_function, exception, text_of(method).get(), text_of(id).get());
  if (!told || !PyTuple_Check(told.get())) {
    PyErr_Clear();
    return Error{ErrorCode::internal_error};
  }
  const long code = PyLong_AsLong(PyTuple_GetItem(told.get(), 0));
  const auto message = utf8_of(PyTuple_GetItem(told.get(), 1));
  PyErr_Clear();
  std::string why;
  Error error{static_cast<int>(code), std::string{message.value_or("")}, data_of(PyTuple_GetItem(told.get(), 2), why)};
  if (!why.empty()) {
    PyErr_Format(PyExc_TypeError, "the data of an error cannot be sent: %s", why.c_str());
    static_cast<void>(take_error(method, id));  // for the log
  }
  return detail::as_answer(error);
}

Error take_error(std::string_view method, std::string_view id) {
  const Reference exception = take_exception();
  return exception ? error_of(exception.get(), method, id) : Error{ErrorCode::internal_error};
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
  return call_function(make_function, code.get(), text_of(error.message()).get(), data.get(), which.get()).release();
}

void set_exception(const Error& error, detail::ErrorClass kind) {
  const Reference exception = Reference::steal(make_exception(error, kind));
  if (exception) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
}

void raise(const Error& error, detail::ErrorClass kind) {
  set_exception(error, kind);
  throw nanobind::python_error();
}

nanobind::object result_of(Reader& reader) {
  PyObject* const value = decode_any(reader);
  if (value == nullptr && PyErr_Occurred() == nullptr)
    set_exception(unreadable(reader), detail::ErrorClass::local_error);
  if (value == nullptr) throw nanobind::python_error();
  return nanobind::steal(value);
}

nanobind::object result_of(Buffer json) {
  const std::unique_ptr<Reader> reader = json_codec().reader();
  reader->reset(json.padded());
  return result_of(*reader);
}

}  // namespace wirecall::python
