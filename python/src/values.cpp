// See values.hpp.
#include "values.hpp"

#include "encode.hpp"
#include "exception.hpp"
#include "reference.hpp"

namespace wirecall::python {

PyObject* text_object(std::string_view utf8) {
  return PyUnicode_FromStringAndSize(utf8.data(), static_cast<Py_ssize_t>(utf8.size()));
}

PyObject* fail_with_exception(Reader& reader) {
  reader.fail("a value that can be read");
  return nullptr;
}

PyObject* fail_with_value_error(Reader& reader) {
  const std::string words = take_value_error();
  if (words.empty()) return fail_with_exception(reader);
  return reader.fail(words), nullptr;
}

// Digits that no type of C++ holds.
static PyObject* long_of(std::string_view digits) {
  const std::string text{digits};
  return PyLong_FromString(text.c_str(), nullptr, 10);
}

// Up to 18 digits fit, whatever they are.
static bool short_integer(std::string_view text, std::int64_t& out) noexcept {
  const bool negative = text.front() == '-';
  if (negative) text.remove_prefix(1);
  if (text.size() > 18) return false;
  std::int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + (c - '0');
  }
  out = negative ? -value : value;
  return true;
}

static bool is_digits(std::string_view text) noexcept { return text.find_first_not_of("-0123456789") == text.npos; }

// Of an encoding that tells integers from floats by their form.
static PyObject* decode_binary_integer(Reader& reader) {
  std::int64_t value = 0;
  if (reader.read_int(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), value))
    return PyLong_FromLongLong(value);
  std::uint64_t large = 0;
  reader.clear_failure();
  if (reader.read_uint(std::numeric_limits<std::uint64_t>::max(), large)) return PyLong_FromUnsignedLongLong(large);
  reader.clear_failure();
  return reader.fail("integer"), nullptr;
}

PyObject* decode_integer(Reader& reader) {
  if (reader.kind() != ValueKind::number) return reader.fail("integer"), nullptr;
  if (!reader.is_json()) return decode_binary_integer(reader);
  const char* const mark = reader.mark();
  std::string_view text;
  if (!reader.read_number_text(text)) return nullptr;
  std::int64_t value = 0;
  if (short_integer(text, value)) return PyLong_FromLongLong(value);
  if (is_digits(text)) {
    if (PyObject* const large = long_of(text)) return large;
    PyErr_Clear();  // more digits than Python takes
    reader.rewind(mark);
    return reader.fail("an integer of fewer digits"), nullptr;
  }
  // 1.0 and 1e3 are integers as well.
  reader.rewind(mark);
  if (!reader.read_int(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), value)) {
    reader.clear_failure();
    return reader.fail("integer"), nullptr;
  }
  return PyLong_FromLongLong(value);
}

PyObject* decode_number(Reader& reader) {
  double value = 0;
  return reader.read_double(value) ? PyFloat_FromDouble(value) : nullptr;
}

PyObject* decode_string(Reader& reader) {
  std::string_view text;
  if (!reader.read_string(text)) return nullptr;
  PyObject* const string = text_object(text);
  return string != nullptr ? string : fail_with_exception(reader);
}

PyObject* decode_bytes(Reader& reader) {
  std::span<const std::byte> bytes;
  if (!reader.read_bytes(bytes)) return nullptr;
  PyObject* const made =
      PyBytes_FromStringAndSize(reinterpret_cast<const char*>(bytes.data()), static_cast<Py_ssize_t>(bytes.size()));
  return made != nullptr ? made : fail_with_exception(reader);
}

namespace {

PyObject* decode_any_array(Reader& reader) {
  static_cast<void>(reader.begin_array());
  Reference list = Reference::steal(PyList_New(0));
  for (std::size_t position = 0; reader.next_element(); ++position) {
    const Reference element = Reference::steal(decode_any(reader));
    if (!element) return reader.failed_at(position), nullptr;
    if (PyList_Append(list.get(), element.get()) != 0) return fail_with_exception(reader);
  }
  return list.release();
}

PyObject* extension_reader = nullptr;

}  // namespace

PyObject* read_extension(Reader& reader, PyObject* function) {
  const char* const mark = reader.mark();
  std::int8_t type = 0;
  std::span<const std::byte> data;
  if (!reader.read_extension(type, data)) return nullptr;
  const Reference number = Reference::steal(PyLong_FromLong(type));
  // An array takes its memory over.
  const auto* const begin = reinterpret_cast<const char*>(data.data());
  const auto size = static_cast<Py_ssize_t>(data.size());
  const Reference bytes = Reference::steal(type == kNpyExtension ? PyByteArray_FromStringAndSize(begin, size)
                                                                 : PyBytes_FromStringAndSize(begin, size));
  Reference made = number && bytes ? call_function(function, number.get(), bytes.get()) : Reference{};
  if (!made) reader.rewind(mark);
  return made.release();
}

// What stands in JSON for a value that JSON has no word for: {"$bytes":"…"}, {"$npy":"…"}, {"$image":"…"}. Null, and
// the reader where it was, when it is none after all; then it is an object like any other.
static PyObject* decode_marked(Reader& reader, const char* mark, bool bytes) {
  reader.rewind(mark);
  PyObject* const value = bytes ? decode_bytes(reader) : read_extension(reader, extension_reader);
  if (value != nullptr) return value;
  PyErr_Clear();
  reader.clear_failure();
  reader.rewind(mark);
  return nullptr;
}

bool is_wrapped(Reader& reader) {
  if (!reader.is_json() || reader.kind() != ValueKind::object) return false;
  const char* const mark = reader.mark();
  std::string_view name;
  static_cast<void>(reader.begin_object());
  bool wrapped = reader.next_member(name) && name.starts_with('$');
  if (wrapped) static_cast<void>(reader.skip());
  wrapped = wrapped && !reader.next_member(name) && !reader.next_member(name);
  reader.rewind(mark);
  return wrapped;
}

// `plain`: none that stands for something else.
static PyObject* decode_any_object(Reader& reader, bool plain = false) {
  const char* const mark = reader.mark();
  static_cast<void>(reader.begin_object());
  Reference dict = Reference::steal(PyDict_New());
  bool first = true;
  for (std::string_view name; reader.next_member(name); first = false) {
    if (first && !plain && is_mark(name)) [[unlikely]] {
      if (name == "$") {
        if (is_wrapped(reader)) {
          PyObject* const value = decode_any_object(reader, true);
          static_cast<void>(reader.next_member(name));
          return value;
        }
      } else {
        if (PyObject* const value = decode_marked(reader, mark, name == "$bytes")) return value;
        static_cast<void>(reader.begin_object());
        static_cast<void>(reader.next_member(name));
      }
    }
    const Reference key = Reference::steal(text_object(name));
    if (!key) return fail_with_exception(reader);
    const Reference value = Reference::steal(decode_any(reader));
    if (!value) return reader.failed_at(name), nullptr;
    if (PyDict_SetItem(dict.get(), key.get(), value.get()) != 0) return fail_with_exception(reader);
  }
  return dict.release();
}

static PyObject* decode_any_number(Reader& reader) {
  if (!reader.is_json()) return reader.next_is_float() ? decode_number(reader) : decode_binary_integer(reader);
  const char* const mark = reader.mark();
  std::string_view text;
  if (!reader.read_number_text(text)) return nullptr;
  std::int64_t value = 0;
  if (short_integer(text, value)) return PyLong_FromLongLong(value);
  reader.rewind(mark);
  return is_digits(text) ? decode_integer(reader) : decode_number(reader);
}

PyObject* decode_any(Reader& reader) {
  switch (reader.kind()) {
    case ValueKind::null: static_cast<void>(reader.read_null()); Py_RETURN_NONE;
    case ValueKind::boolean: {
      bool value = false;
      static_cast<void>(reader.read_bool(value));
      return PyBool_FromLong(value ? 1 : 0);
    }
    case ValueKind::number: return decode_any_number(reader);
    case ValueKind::string: return decode_string(reader);
    case ValueKind::array: return decode_any_array(reader);
    case ValueKind::object: return decode_any_object(reader);
    case ValueKind::bytes: return decode_bytes(reader);
    case ValueKind::extension: {
      PyObject* const made = read_extension(reader, extension_reader);
      if (made != nullptr || reader.failed()) return made;
      if (PyErr_ExceptionMatches(PyExc_Exception) == 0) return fail_with_exception(reader);
      PyErr_Clear();
      return reader.fail("an array, an image or a time"), nullptr;
    }
  }
  return nullptr;
}

void set_extension_reader(PyObject* function) { extension_reader = Py_NewRef(function); }

}  // namespace wirecall::python
