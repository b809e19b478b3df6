// See encode.hpp.
#include "encode.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "encoder.hpp"
#include "exception.hpp"
#include "reference.hpp"

namespace wirecall::python {
namespace {

// Bounds of what is_written_at_once takes: elements of a list, bytes of texts and of arrays.
constexpr Py_ssize_t kElementsAtOnce = 32;
constexpr Py_ssize_t kTextAtOnce = 256 * 1024;
constexpr std::size_t kArrayAtOnce = 4 * 1024 * 1024;

PyObject* planner = nullptr;

// A plan goes with its type: a program may make types without end.
struct KnownPlan {
  Reference plan;
  Reference type;  // weak
};
using Plans = std::unordered_map<PyTypeObject*, KnownPlan>;
Plans* plans = nullptr;

// The buffer of an object, while this lives; none for null. Not good: an exception is set.
class View {
 public:
  explicit View(PyObject* object) : held_(object != nullptr) {
    if (held_) good_ = PyObject_GetBuffer(object, &view_, PyBUF_SIMPLE) == 0;
  }
  View(View&&) = delete;
  ~View() {
    if (held_ && good_) PyBuffer_Release(&view_);
  }
  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    if (!held_) return {};
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
  bool held_;
  bool good_ = true;
};

}  // namespace

bool Encoder::value(PyObject* value) {
  PyTypeObject* const type = Py_TYPE(value);
  if (type == &PyLong_Type) return integer(value);
  if (type == &PyUnicode_Type) return string(value);
  if (type == &PyFloat_Type) return number(value);
  if (value == Py_None) return writer_->null(), true;
  if (type == &PyBool_Type) return writer_->boolean(value == Py_True), true;
  if (++depth_ > kDepthMax) return fail("nested too deep, or holds itself");
  const bool written = nested(value, type);
  --depth_;
  return written;
}

bool Encoder::is_plain_array(PyObject* value) {
  const auto known = plans == nullptr ? Plans::iterator{} : plans->find(Py_TYPE(value));
  if (plans == nullptr || known == plans->end()) return false;
  PyObject* const plan = known->second.plan.get();
  if (!PyTuple_Check(plan) || kind_of(plan) != Plan::extension ||
      PyLong_AsLong(PyTuple_GetItem(PyTuple_GetItem(plan, 1), 0)) != kNpyExtension)
    return false;
  const View view{value};
  if (!view.good()) return PyErr_Clear(), false;
  return view.bytes().size() <= kArrayAtOnce;
}

bool Encoder::nested(PyObject* value, PyTypeObject* type) {
  const auto element = [this](PyObject* element, Py_ssize_t) { return this->value(element); };
  if (type == &PyList_Type) return list(value, element);
  if (type == &PyDict_Type) return dict(value, [this](PyObject*, PyObject* member) { return this->value(member); });
  if (type == &PyTuple_Type) return tuple(value, element);
  if (type == &PyBytes_Type) return bytes(PyBytes_AsString(value), PyBytes_Size(value));
  const Reference plan = plan_of(type);
  return plan ? planned(value, plan.get()) : fail_with_exception();
}

bool Encoder::integer(PyObject* value) {
  int overflow = 0;
  const long long small = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow == 0) return writer_->integer(small), true;
  if (overflow > 0) {
    const unsigned long long large = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred() == nullptr) return writer_->unsigned_integer(large), true;
    PyErr_Clear();
  }
  // Longer than any type here: its digits.
  Reference text;
  const auto digits = utf8_of_str(value, text);
  if (!digits) return fail_with_exception();
  writer_->number_text(*digits);
  return true;
}

bool Encoder::number(PyObject* value) {
  const double number = PyFloat_AsDouble(value);
  if (!writer_->is_json()) return writer_->number(number), true;
  if (!std::isfinite(number)) return fail("a float that is not finite has no JSON form");
  if (number != std::trunc(number)) return writer_->number(number), true;
  // 4.0 says that it is no integer: whoever reads it without a hint has a float again.
  std::array<char, 32> text;
  char* end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  if (std::find(text.data(), end, 'e') == end) {
    *end++ = '.';
    *end++ = '0';
  }
  writer_->number_text({text.data(), end});
  return true;
}

bool Encoder::string(PyObject* value) {
  const auto utf8 = utf8_of(value);
  if (!utf8) return fail_with_exception();
  writer_->string(*utf8);
  return true;
}

bool Encoder::bytes(const char* data, Py_ssize_t size) {
  writer_->bytes(std::as_bytes(std::span{data, static_cast<std::size_t>(size)}));
  return true;
}

// Whether a dict of one member would be taken for what stands in JSON for bytes and the like (docs/wire.md, "Values
// beyond JSON").
bool Encoder::looks_marked(PyObject* dict) {
  Py_ssize_t position = 0;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  if (PyDict_Next(dict, &position, &key, &value) == 0 || !PyUnicode_Check(key)) return false;
  const auto utf8 = utf8_of(key);
  if (!utf8) return PyErr_Clear(), false;
  return is_mark(*utf8);
}

// A library's text: it may hold NaN, or whatever its user has put in.
bool Encoder::json(std::string_view text) {
  Buffer padded{text};
  const Scan scan = json_codec().scan(padded.padded(), kDepthMax);
  if (scan.status != ScanStatus::complete || text.find_first_not_of(" \t\r\n", scan.offset) != text.npos)
    return fail("its own form is no JSON");
  writer_->json(text);
  return true;
}

// Whether an object has each of these keys once.
bool Encoder::keys_differ(PyObject* dict) {
  const Reference texts = Reference::steal(PySet_New(nullptr));
  Py_ssize_t position = 0;
  PyObject* key = nullptr;
  while (texts && PyDict_Next(dict, &position, &key, nullptr)) {
    if (PyUnicode_Check(key) == 0 && Py_TYPE(key) != &PyLong_Type) continue;
    const Reference text = Reference::steal(PyObject_Str(key));
    const int known = text ? PySet_Contains(texts.get(), text.get()) : -1;
    if (known < 0 || (known == 0 && PySet_Add(texts.get(), text.get()) != 0)) return fail_with_exception();
    if (known == 1) return fail("two keys that are the same text"), at(key);
  }
  return texts ? true : fail_with_exception();
}

bool Encoder::key(PyObject* key) {
  if (PyUnicode_Check(key)) return write_key(key);
  if (Py_TYPE(key) == &PyLong_Type) {
    const Reference text = Reference::steal(PyObject_Str(key));
    return text ? write_key(text.get()) : fail_with_exception();
  }
  // An enumerator, a UUID, a date, …: what stands for it.
  const Reference plan = plan_of(Py_TYPE(key));
  if (!plan) return fail_with_exception();
  if (PyTuple_Check(plan.get()) && kind_of(plan.get()) == Plan::replace) {
    const Reference other = by_function(plan.get(), key);
    if (!other) return fail_with_exception();
    if (PyUnicode_Check(other.get()) || Py_TYPE(other.get()) == &PyLong_Type) return this->key(other.get());
  }
  return fail("a key that is neither a string nor an integer, but " + name_of(Py_TYPE(key)));
}

bool Encoder::write_key(PyObject* text) {
  const auto utf8 = utf8_of(text);
  if (!utf8) return fail_with_exception();
  writer_->key(*utf8);
  return true;
}

Reference Encoder::plan_of(PyTypeObject* type) {
  if (plans == nullptr) return PyErr_SetString(PyExc_RuntimeError, "wirecall._bootstrap is not loaded"), Reference{};
  if (const auto known = plans->find(type); known != plans->end()) return Reference::share(known->second.plan.get());
  PyObject* const object = reinterpret_cast<PyObject*>(type);
  Reference plan = call_function(planner, object);
  if (!plan) return plan;
  const nanobind::object forget = nanobind::cpp_function([type](nanobind::handle) { plans->erase(type); });
  Reference weak = Reference::steal(PyWeakref_NewRef(object, forget.ptr()));
  if (!weak) return {};
  plans->insert_or_assign(type, KnownPlan{Reference::share(plan.get()), std::move(weak)});
  return plan;
}

bool Encoder::planned(PyObject* value, PyObject* plan) {
  const auto member = [this](PyObject*, PyObject* member) { return this->value(member); };
  PyObject* const what = PyTuple_GetItem(plan, 1);
  switch (kind_of(plan)) {
    case Plan::members: return members(value, what, member);
    case Plan::elements: return elements(value, [this](PyObject* element, Py_ssize_t) { return this->value(element); });
    case Plan::mapping: return mapping(value, member);
    case Plan::replace: {
      const Reference other = by_function(plan, value);
      return other ? this->value(other.get()) : fail_with_exception();
    }
    case Plan::json: {
      const Reference text = by_function(plan, value);
      if (!text) return fail_with_exception();
      char* data = nullptr;
      Py_ssize_t size = 0;
      if (PyBytes_AsStringAndSize(text.get(), &data, &size) != 0) return fail_with_exception();
      return json({data, static_cast<std::size_t>(size)});
    }
    case Plan::extension: return extension(value, what);
    case Plan::binary: {
      const View view{value};
      if (view.good()) return writer_->bytes(view.bytes()), true;
      PyErr_Clear();  // its bytes are not all in one place
      const Reference copy = Reference::steal(PyBytes_FromObject(value));
      return copy ? bytes(PyBytes_AsString(copy.get()), PyBytes_Size(copy.get())) : fail_with_exception();
    }
    case Plan::refuse: break;
  }
  const auto why = PyUnicode_Check(what) ? utf8_of(what) : std::nullopt;
  return why ? fail(std::string{*why}) : fail_with_exception();
}

bool Encoder::extension(PyObject* value, PyObject* what) {
  const long type = PyLong_AsLong(PyTuple_GetItem(what, 0));
  const Reference data = by_function(what, value);
  if (!data) return fail_with_exception();
  // In one part or in two: a header and the memory of an array, which is not copied behind it.
  const bool parts = PyTuple_Check(data.get());
  const View first{parts ? PyTuple_GetItem(data.get(), 0) : data.get()};
  const View second{parts ? PyTuple_GetItem(data.get(), 1) : nullptr};
  if (!first.good() || !second.good()) return fail_with_exception();
  writer_->extension_in_parts(static_cast<std::int8_t>(type), first.bytes(), second.bytes());
  return true;
}

std::string Encoder::name_of(PyTypeObject* type) {
  const Reference name = Reference::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__qualname__"));
  const auto text = name ? utf8_of(name.get()) : std::nullopt;
  if (!text) return PyErr_Clear(), std::string{"an object"};
  return std::string{*text};
}

bool Encoder::fail(std::string why) {
  why_ = std::move(why);
  *where_ = why_;
  return false;
}

bool Encoder::fail_with_exception() { return fail(take_exception_text()); }

bool Encoder::fail_with_changed_size() {
  PyErr_Clear();  // of an index
  return fail("changed its size while it was written");
}

bool Encoder::at(Py_ssize_t index) { return at_step(std::to_string(index)); }

bool Encoder::at(PyObject* key) {
  Reference text;
  const auto name = utf8_of_str(key, text);
  if (!name) return PyErr_Clear(), at_step("?");
  return at_step(std::string{*name});
}

bool Encoder::at_step(const std::string& step) {
  path_.insert(0, path_.empty() ? step : step + ".");
  *where_ = "at " + path_ + ": " + why_;
  return false;
}

bool is_written_at_once(PyObject* value) {
  Py_ssize_t left = kTextAtOnce;
  const auto is_scalar = [&left](PyObject* one) {
    PyTypeObject* const type = Py_TYPE(one);
    if (type == &PyUnicode_Type) return (left -= PyUnicode_GetLength(one)) >= 0;
    if (type == &PyBytes_Type) return (left -= PyBytes_Size(one)) >= 0;
    return type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || one == Py_None;
  };
  if (is_scalar(value)) return true;
  if (Py_TYPE(value) == &PyList_Type) {
    const Py_ssize_t size = PyList_Size(value);
    for (Py_ssize_t i = 0; i < size && size <= kElementsAtOnce; ++i) {
      if (!is_scalar(PyList_GetItem(value, i))) return false;
    }
    return size <= kElementsAtOnce;
  }
  return Encoder::is_plain_array(value);
}

bool encode(Writer& writer, PyObject* value, std::string& where) { return Encoder{writer, where}.value(value); }

std::optional<Buffer> encoded(const Codec& codec, PyObject* value, std::string& where) {
  Buffer text;
  const std::unique_ptr<Writer> writer = codec.writer();
  writer->reset(text);
  if (!encode(*writer, value, where)) return std::nullopt;
  if (!writer->failed()) return text;
  where = writer->failure();
  return std::nullopt;
}

void set_planner(PyObject* function) {
  if (plans == nullptr) plans = new Plans;  // for good: types end after everything else
  plans->clear();
  Py_XINCREF(function);
  Py_XDECREF(planner);
  planner = function;
}

[[noreturn]] static void raise_type_error(const std::string& text) {
  PyErr_SetString(PyExc_TypeError, text.c_str());
  throw nanobind::python_error();
}

bool has_params(nanobind::handle args, nanobind::handle kwargs) {
  const bool named = PyDict_Size(kwargs.ptr()) != 0;
  const bool placed = PyTuple_Size(args.ptr()) != 0;
  if (named && placed) raise_type_error("JSON-RPC has arguments by position or by name, not both in one call");
  return named || placed;
}

void write_params(Writer& writer, nanobind::handle args, nanobind::handle kwargs) {
  std::string where;
  if (!encode(writer, PyDict_Size(kwargs.ptr()) != 0 ? kwargs.ptr() : args.ptr(), where))
    raise_type_error("an argument cannot be sent, " + where);
  if (writer.failed()) raise_type_error("an argument cannot be sent: " + writer.failure());
}

}  // namespace wirecall::python
