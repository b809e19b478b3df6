// Encoder: writes one Python value with a codec's Writer, and says which part of it cannot be written. encode.hpp and
// validating_encoder.hpp are made of it: functions that walk a container are given what writes an element.
// Thread: one that holds the GIL.
#pragma once

#include <Python.h>

#include "encode.hpp"
#include "reference.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::python {

/// What a plan is, by its first element; wirecall/_values.py has the same list.
enum class Plan : long {
  members = 0,    ///< an object: the second element is a tuple of (attribute, name on the wire)
  replace = 1,    ///< the second element is called with the value, and what it returns is written in its place
  elements = 2,   ///< an array of what iterating yields
  json = 3,       ///< the second element is called with the value and returns JSON text, as bytes
  refuse = 4,     ///< it cannot be written; the second element says why
  mapping = 5,    ///< an object: the value has `items()`
  binary = 6,     ///< the value has a buffer
  extension = 7,  ///< the second element is (type of extension, function): that returns its bytes, or two parts of them
};

class Encoder {
 public:
  Encoder(Writer& writer, std::string& where) : writer_(&writer), where_(&where) {}

  /// Writes any value.
  [[nodiscard]] bool value(PyObject* value);
  /// Whether that is an array whose memory is written as it is.
  [[nodiscard]] static bool is_plain_array(PyObject* value);

 protected:
  // Levels of nesting: what a peer accepts by default (Limits::depth), less the message around them. An object that
  // holds itself ends here.
  static constexpr int kDepthMax = 250;

  [[nodiscard]] static Plan kind_of(PyObject* plan) {
    return static_cast<Plan>(PyLong_AsLong(PyTuple_GetItem(plan, 0)));
  }
  /// The plan of a type, made by then; null with an exception set.
  [[nodiscard]] static Reference plan_of(PyTypeObject* type);
  [[nodiscard]] bool planned(PyObject* value, PyObject* plan);
  /// What the function of a plan makes of a value; null with an exception set.
  [[nodiscard]] static Reference by_function(PyObject* plan, PyObject* value) {
    return call_function(PyTuple_GetItem(plan, 1), value);
  }

  [[nodiscard]] bool integer(PyObject* value);
  [[nodiscard]] bool number(PyObject* value);
  [[nodiscard]] bool string(PyObject* value);
  [[nodiscard]] bool bytes(const char* data, Py_ssize_t size);

  // `write(element, index)` writes an element, `write(key, member)` a member behind its key.
  template <class Write>
  bool list(PyObject* value, const Write& write) {
    const Py_ssize_t size = PyList_Size(value);
    writer_->begin_array(static_cast<std::size_t>(size));
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyObject* const borrowed = PyList_GetItem(value, i);
      if (borrowed == nullptr) return fail_with_changed_size();
      const Reference element = Reference::share(borrowed);
      if (!write(element.get(), i)) return at(i);
    }
    if (PyList_Size(value) != size) return fail_with_changed_size();
    writer_->end_array();
    return true;
  }

  template <class Write>
  bool tuple(PyObject* value, const Write& write) {
    const Py_ssize_t size = PyTuple_Size(value);
    writer_->begin_array(static_cast<std::size_t>(size));
    for (Py_ssize_t i = 0; i < size; ++i) {
      if (!write(PyTuple_GetItem(value, i), i)) return at(i);
    }
    writer_->end_array();
    return true;
  }

  template <class Write>
  bool elements(PyObject* value, const Write& write) {
    const Reference iterator = Reference::steal(PyObject_GetIter(value));
    if (!iterator) return fail_with_exception();
    writer_->begin_array(Writer::kUnknownSize);
    for (Py_ssize_t i = 0;; ++i) {
      const Reference element = Reference::steal(PyIter_Next(iterator.get()));
      if (!element) {
        if (PyErr_Occurred() != nullptr) return fail_with_exception();
        break;
      }
      if (!write(element.get(), i)) return at(i);
    }
    writer_->end_array();
    return true;
  }

  template <class Write>
  bool dict(PyObject* value, const Write& write) {
    const Py_ssize_t size = PyDict_Size(value);
    const bool wrapped = size == 1 && writer_->is_json() && looks_marked(value);
    if (wrapped) {
      writer_->begin_object(1);
      writer_->key("$");
    }
    writer_->begin_object(static_cast<std::size_t>(size));
    Py_ssize_t position = 0;
    PyObject* key = nullptr;
    PyObject* member = nullptr;
    bool texts_differ = false;
    while (PyDict_Next(value, &position, &key, &member)) {
      const Reference kept_key = Reference::share(key);
      const Reference kept = Reference::share(member);
      // Keys of other types are written as text, which another one may be.
      if (size > 1 && PyUnicode_Check(key) == 0 && !texts_differ) {
        if (!keys_differ(value)) return false;
        texts_differ = true;
      }
      if (!this->key(key)) return false;
      if (!write(key, member)) return at(key);
      if (PyDict_Size(value) != size) return fail_with_changed_size();
    }
    writer_->end_object();
    if (wrapped) writer_->end_object();
    return true;
  }

  template <class Write>
  bool mapping(PyObject* value, const Write& write) {
    const Reference copy = Reference::steal(PyDict_New());
    if (!copy || PyDict_Update(copy.get(), value) != 0) return fail_with_exception();
    return dict(copy.get(), write);
  }

  /// Of attributes: `names` is a tuple of (attribute, name on the wire).
  template <class Write>
  bool members(PyObject* value, PyObject* names, const Write& write) {
    const Py_ssize_t size = PyTuple_Size(names);
    writer_->begin_object(static_cast<std::size_t>(size));
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyObject* const pair = PyTuple_GetItem(names, i);
      const Reference member = Reference::steal(PyObject_GetAttr(value, PyTuple_GetItem(pair, 0)));
      if (!member) return fail_with_exception();
      if (!write_key(PyTuple_GetItem(pair, 1))) return false;
      if (!write(PyTuple_GetItem(pair, 1), member.get())) return at(PyTuple_GetItem(pair, 1));
    }
    writer_->end_object();
    return true;
  }

  // Failures: what, and from the inside out where. Each returns false.
  bool fail(std::string why);
  bool fail_with_exception();
  bool fail_with_changed_size();
  /// What is wrong, without the location.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  /// Whether the failure is about the value being written, and not about one inside it.
  [[nodiscard]] bool fails_here() const noexcept { return path_.empty(); }
  bool at(Py_ssize_t index);
  bool at(PyObject* key);
  [[nodiscard]] static std::string name_of(PyTypeObject* type);

  Writer* writer_;
  std::string* where_;
  int depth_ = 0;

 private:
  bool nested(PyObject* value, PyTypeObject* type);
  bool json(std::string_view text);
  bool extension(PyObject* value, PyObject* what);
  bool key(PyObject* key);
  bool write_key(PyObject* text);
  static bool looks_marked(PyObject* dict);
  bool keys_differ(PyObject* dict);
  bool at_step(const std::string& step);

  std::string why_;
  std::string path_;
};

}  // namespace wirecall::python
