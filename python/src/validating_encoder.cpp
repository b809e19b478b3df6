// See validating_encoder.hpp.
#include "validating_encoder.hpp"

#include <algorithm>

#include "encoder.hpp"
#include "exception.hpp"
#include "null_writer.hpp"
#include "type_match.hpp"
#include "values.hpp"

namespace wirecall::python {
namespace {

// Of a union, parts are tried; types that hold themselves make that many more trials than values. A result that takes
// more is not looked at any further.
constexpr std::size_t kTrialsMax = 100'000;

class ValidatingEncoder : public Encoder {
 public:
  /// `trials_left` is shared by all trials of one result.
  ValidatingEncoder(Writer& writer, std::string& where, std::size_t& trials_left, bool writes)
      : Encoder(writer, where), trials_left_(&trials_left), writes_(writes) {}

  /// Whether what `as` could not write can be written, but is not of the declared type.
  [[nodiscard]] bool is_refused() const noexcept { return is_refused_; }

  bool as(PyObject* value, const Shape& shape) {
    PyTypeObject* const type = Py_TYPE(value);
    switch (shape.kind()) {
      case ShapeKind::any: return this->value(value);
      case ShapeKind::none:
        if (value == Py_None) return writer_->null(), true;
        break;
      case ShapeKind::boolean:
        if (type == &PyBool_Type) return writer_->boolean(value == Py_True), true;
        break;
      case ShapeKind::integer:
        if (type == &PyLong_Type) return integer(value);
        break;
      case ShapeKind::number:
        if (type == &PyFloat_Type) return number(value);
        if (type == &PyLong_Type) return integer(value);
        break;
      case ShapeKind::string:
        if (type == &PyUnicode_Type) return string(value);
        break;
      case ShapeKind::bytes:
        if (type == &PyBytes_Type) return bytes(PyBytes_AsString(value), PyBytes_Size(value));
        break;
      default: break;
    }
    return nested_as(value, shape);
  }

 private:
  // ---- containers ----

  auto element_of(const Shape& shape) {
    return [this, part = shape.parts()[0]](PyObject* element, Py_ssize_t) { return as(element, *part); };
  }

  template <class Write>
  bool list_or_tuple(PyObject* value, const Write& write) {
    return PyList_CheckExact(value) ? list(value, write) : tuple(value, write);
  }
  // Of elements that are of exactly that type; of others what `as` makes.
  bool sequence_of(PyObject* value, const Shape& part, PyTypeObject& type, bool (Encoder::*write)(PyObject*)) {
    return list_or_tuple(value, [this, &part, &type, write](PyObject* element, Py_ssize_t) {
      return Py_TYPE(element) == &type ? (this->*write)(element) : as(element, part);
    });
  }
  bool sequence(PyObject* value, const Shape& shape) {
    const Shape& part = *shape.parts()[0];
    switch (part.kind()) {
      case ShapeKind::integer: return sequence_of(value, part, PyLong_Type, &ValidatingEncoder::integer);
      case ShapeKind::number: return sequence_of(value, part, PyFloat_Type, &ValidatingEncoder::number);
      case ShapeKind::string: return sequence_of(value, part, PyUnicode_Type, &ValidatingEncoder::string);
      default: return list_or_tuple(value, element_of(shape));
    }
  }

  bool record(PyObject* value, const Shape& shape) {
    const Py_ssize_t wanted = static_cast<Py_ssize_t>(shape.parts().size());
    const Py_ssize_t size = PyList_CheckExact(value) ? PyList_Size(value) : PyTuple_Size(value);
    if (size < wanted) return missing(*shape.parts()[static_cast<std::size_t>(size)]), at(size);
    if (size > wanted) return refuse("expected nothing, got a value: there are " + std::to_string(wanted)), at(wanted);
    const auto element = [&](PyObject* element, Py_ssize_t i) {
      return as(element, *shape.parts()[static_cast<std::size_t>(i)]);
    };
    return list_or_tuple(value, element);
  }

  auto map_member(const Shape& shape) {
    return [this, key_shape = shape.parts()[0], part = shape.parts()[1], reader = shape.type()](PyObject* key,
                                                                                                PyObject* member) {
      // Other keys are read as if they stood there as values.
      const bool any_text = key_shape->kind() == ShapeKind::string || key_shape->kind() == ShapeKind::any;
      if (!any_text && PyUnicode_CheckExact(key) && !passes(reader, nullptr, key, *key_shape)) return false;
      return as(member, *part);
    };
  }

  // Which members of an object there have been. As long as they come in the order in which they were written down,
  // which is mostly, those are all before `expected`.
  struct Given {
    explicit Given(const Shape& of) : shape(&of), expected(of.fields().data()), end(expected + of.fields().size()) {}
    const Shape* shape;
    const Shape::Field* expected;
    const Shape::Field* end;
    std::unique_ptr<std::vector<bool>> each = nullptr;  // once one has come in another order
  };

  auto object_member(Given& given) {
    return [this, &given](PyObject* key, PyObject* member) {
      const Shape::Field* const field = given.expected;
      // Names are interned.
      if (field == given.end || field->name.ptr() != key || given.each) return other_member(given, key, member);
      ++given.expected;
      return as(member, *field->shape);
    };
  }
  // The members of a map or an object: `walk(write)` writes each by `write`.
  template <class Walk>
  bool members_as(const Shape& shape, const Walk& walk) {
    if (shape.kind() == ShapeKind::map) return walk(map_member(shape));
    Given given{shape};
    return walk(object_member(given)) && all_given(given);
  }
  [[gnu::noinline]] bool other_member(Given& given, PyObject* key, PyObject* member) {
    const Shape::Field* const fields = given.shape->fields().data();
    const Shape::Field* found = given.expected;
    if (found == given.end || !is_key(*found, key))
      found = std::find_if(fields, given.end, [key](const Shape::Field& field) { return is_key(field, key); });
    if (found == given.end) return value(member);
    if (found != given.expected && !given.each) {
      given.each = std::make_unique<std::vector<bool>>(given.shape->fields().size());
      std::fill_n(given.each->begin(), given.expected - fields, true);
    }
    if (given.each) (*given.each)[static_cast<std::size_t>(found - fields)] = true;
    given.expected = found + 1;
    return as(member, *found->shape);
  }
  static bool is_key(const Shape::Field& field, PyObject* key) {
    if (field.name.ptr() == key) return true;
    return PyUnicode_Check(key) && PyUnicode_Compare(field.name.ptr(), key) == 0;
  }
  bool all_given(const Given& given) {
    if (given.expected == given.end && !given.each) [[likely]]
      return true;
    const auto& fields = given.shape->fields();
    for (std::size_t i = 0; i != fields.size(); ++i) {
      const bool is_given = given.each ? (*given.each)[i] : &fields[i] < given.expected;
      if (is_given || !fields[i].required) continue;
      missing(*fields[i].shape);
      return at(fields[i].name.ptr());
    }
    return true;
  }

  // ---- by type ----

  // Apart from `as`, which is short for that.
  [[gnu::noinline]] bool nested_as(PyObject* value, const Shape& shape) {
    if (++depth_ > kDepthMax) return fail("nested too deep, or holds itself");
    const bool written = by_kind(value, shape);
    --depth_;
    return written;
  }

  bool by_kind(PyObject* value, const Shape& shape) {
    if (!writes_) {
      if (*trials_left_ == 0) return true;
      --*trials_left_;
    }
    switch (shape.kind()) {
      case ShapeKind::list:
      case ShapeKind::set:
      case ShapeKind::frozenset:
      case ShapeKind::tuple:
        if (PyList_CheckExact(value) || PyTuple_CheckExact(value)) return sequence(value, shape);
        break;
      case ShapeKind::record:
        if (PyList_CheckExact(value) || PyTuple_CheckExact(value)) return record(value, shape);
        break;
      case ShapeKind::map:
      case ShapeKind::object:
        if (PyDict_CheckExact(value)) return members_as(shape, [&](const auto& write) { return dict(value, write); });
        break;
      case ShapeKind::choice: return choice(value, shape);
      case ShapeKind::literal: return literal(value, shape);
      case ShapeKind::converted: return converted(value, shape);
      case ShapeKind::raw: return raw(value, shape);
      case ShapeKind::extension: return extension(value, shape);
      default: break;
    }
    return by_plan(value, shape);
  }

  // What is no list, dict, … of Python's own: what its plan makes of it.
  bool by_plan(PyObject* value, const Shape& shape) {
    const bool is_of_it =
        shape.kind() == ShapeKind::object && reinterpret_cast<PyObject*>(Py_TYPE(value)) == shape.type();
    if (!is_of_it && is_plain(value)) return mismatch(value, shape);
    const Reference plan = plan_of(Py_TYPE(value));
    if (!plan) return fail_with_exception();
    const ShapeKind kind = shape.kind();
    switch (kind_of(plan.get())) {
      case Plan::replace: {
        const Reference other = by_function(plan.get(), value);
        return other ? as(other.get(), shape) : fail_with_exception();
      }
      case Plan::elements:
        if (kind == ShapeKind::list || kind == ShapeKind::set || kind == ShapeKind::frozenset ||
            kind == ShapeKind::tuple)
          return elements(value, element_of(shape));
        if (kind == ShapeKind::record) {
          const Reference all = Reference::steal(PySequence_List(value));
          return all ? record(all.get(), shape) : fail_with_exception();
        }
        break;
      case Plan::mapping:
        if (kind == ShapeKind::map || kind == ShapeKind::object)
          return members_as(shape, [&](const auto& write) { return mapping(value, write); });
        break;
      case Plan::members:
        if (kind == ShapeKind::map || kind == ShapeKind::object)
          return members_as(shape,
                            [&](const auto& write) { return members(value, PyTuple_GetItem(plan.get(), 1), write); });
        break;
      case Plan::binary:
        if (kind == ShapeKind::bytes) return planned(value, plan.get());
        break;
      case Plan::refuse: return planned(value, plan.get());
      case Plan::json: return by_json(value, plan.get(), shape);
      case Plan::extension: break;
    }
    return mismatch(value, shape);
  }

  // A model of a library, where something else is declared that it may look like: only its JSON can tell.
  bool by_json(PyObject* value, PyObject* plan, const Shape& shape) {
    const Reference text = by_function(plan, value);
    if (!text) return fail_with_exception();
    if (PyBytes_Check(text.get()) == 0) return mismatch(value, shape);
    Buffer json{std::string_view{PyBytes_AsString(text.get()), static_cast<std::size_t>(PyBytes_Size(text.get()))}};
    if (json_codec().scan(json.padded(), kDepthMax).status != ScanStatus::complete) return planned(value, plan);
    const std::unique_ptr<Reader> reader = json_codec().reader();
    reader->reset(json.view());
    const Reference read = Reference::steal(decode_any(*reader));
    if (!read) return PyErr_Clear(), mismatch(value, shape);
    return as(read.get(), shape);
  }

  // What stands for a value on the wire, where that is another value; else itself. Null with an exception set.
  static Reference stand_in(PyObject* value) {
    if (is_plain(value)) return Reference::share(value);
    const Reference plan = plan_of(Py_TYPE(value));
    if (!plan) return {};
    return kind_of(plan.get()) == Plan::replace ? by_function(plan.get(), value) : Reference::share(value);
  }

  // ---- what has a type of its own ----

  bool literal(PyObject* value, const Shape& shape) {
    const Reference other = stand_in(value);
    if (!other) return fail_with_exception();
    const Reference key =
        Reference::steal(PyTuple_Pack(2, reinterpret_cast<PyObject*>(Py_TYPE(other.get())), other.get()));
    PyObject* const found = key ? PyDict_GetItemWithError(shape.type(), key.get()) : nullptr;
    PyErr_Clear();  // a list cannot be looked for
    return found != nullptr ? this->value(other.get()) : mismatch(value, shape);
  }

  bool converted(PyObject* value, const Shape& shape) {
    if (reinterpret_cast<PyObject*>(Py_TYPE(value)) == shape.result_type()) return as(value, *shape.parts()[0]);
    if (shape.result_check() != nullptr) {
      // Its bounds, of what is of that type to begin with.
      if (!as(value, *shape.parts()[0])) return false;
      return passes(shape.result_check(), nullptr, value, shape);
    }
    const Reference other = stand_in(value);
    if (!other) return fail_with_exception();
    if (!fits(other.get(), *shape.parts()[0])) return mismatch(value, shape);
    if (!passes(shape.type(), nullptr, other.get(), shape)) return false;
    return as(other.get(), *shape.parts()[0]);
  }

  bool raw(PyObject* value, const Shape& shape) {
    if (is_instance(value, shape)) return this->value(value);
    // What its library makes of the JSON that would be written.
    std::string why;
    const std::optional<Buffer> json = encoded(json_codec(), value, why);
    if (!json) return fail(std::move(why));
    const Reference text =
        Reference::steal(PyBytes_FromStringAndSize(json->data(), static_cast<Py_ssize_t>(json->size())));
    if (!text) return fail_with_exception();
    return passes(shape.type(), nullptr, text.get(), shape) && this->value(value);
  }

  bool extension(PyObject* value, const Shape& shape) {
    if (is_instance(value, shape)) {
      if (shape.result_check() != nullptr && !passes(shape.result_check(), nullptr, value, shape)) return false;
      return this->value(value);
    }
    // An array may be written as a list.
    if (shape.parts().empty() || !(PyList_CheckExact(value) || PyTuple_CheckExact(value)))
      return is_plain(value) ? mismatch(value, shape) : other_extension(value, shape);
    const Reference all = Reference::steal(PySequence_List(value));
    if (!all) return fail_with_exception();
    return passes(shape.type(), Py_None, all.get(), shape) && this->value(value);
  }
  bool other_extension(PyObject* value, const Shape& shape) {
    const Reference plan = plan_of(Py_TYPE(value));
    if (!plan) return fail_with_exception();
    return kind_of(plan.get()) == Plan::refuse ? planned(value, plan.get()) : mismatch(value, shape);
  }

  static bool is_instance(PyObject* value, const Shape& shape) {
    if (shape.result_type() == nullptr) return false;
    const int is = PyObject_IsInstance(value, shape.result_type());
    if (is < 0) PyErr_Clear();
    return is == 1;
  }

  // Calls what looks at a value, with one argument or two. What it raises says what is wrong.
  bool passes(PyObject* function, PyObject* first, PyObject* value, const Shape& shape) {
    if (first != nullptr ? call_function(function, first, value) : call_function(function, value)) return true;
    if (PyErr_ExceptionMatches(PyExc_Exception) == 0) return fail_with_exception();
    const std::string words = take_exception_text();
    // "ValueError: at least 1" reads as what was expected.
    const std::size_t colon = words.find(": ");
    const std::string own = shape.result_check() != nullptr && colon != words.npos ? words.substr(colon + 2) : "";
    return refuse("expected " + (own.empty() ? shape.expected() : own) + ", got " + got(value) +
                  (own.empty() && shape.kind() == ShapeKind::raw ? " (" + words + ")" : ""));
  }

  // ---- one of several ----

  bool choice(PyObject* value, const Shape& shape) {
    if (const Shape* const part = exact_part(value, shape)) return as(value, *part);
    const Shape* only = nullptr;
    std::size_t possible = 0;
    for (const Shape* part : shape.parts()) {
      if (part->kind() == ShapeKind::none || is_excluded(Py_TYPE(value), part->kind())) continue;
      only = part;
      ++possible;
    }
    // Where one alone is possible, what it says is more than that none fits.
    if (possible == 1) return as(value, *only) || (takes_none(shape) && says_or_null(value, *only));
    for (const Shape* part : shape.parts()) {
      if (is_excluded(Py_TYPE(value), part->kind()) || !fits(value, *part)) continue;
      if (!writes_) return true;
      return *trials_left_ == 0 ? this->value(value) : as(value, *part);
    }
    return mismatch(value, shape);
  }

  // Whether it could be written so; nothing is.
  bool fits(PyObject* value, const Shape& shape) {
    NullWriter nowhere{writer_->is_json()};
    std::string where;
    ValidatingEncoder trial{nowhere, where, *trials_left_, false};
    trial.depth_ = depth_;
    return trial.as(value, shape);
  }

  // ---- failures ----

  // Of what can be written, but is not of the declared type.
  bool refuse(std::string why) {
    is_refused_ = true;
    return fail(std::move(why));
  }
  bool mismatch(PyObject* value, const Shape& shape) { return refuse(expectation(value, shape.expected())); }
  static std::string expectation(PyObject* value, const std::string& expected) {
    return "expected " + expected + ", got " + got(value);
  }
  // A mismatch of the value itself with the one part beside null names null as well. False.
  bool says_or_null(PyObject* value, const Shape& part) {
    if (why() != expectation(value, part.expected())) return false;
    return fails_here() ? refuse(expectation(value, part.expected() + " or null")) : false;
  }
  bool missing(const Shape& shape) { return refuse("expected " + shape.expected() + ", got nothing"); }

  // A number, a text or null as JSON, shortened; of anything else what it is.
  static std::string got(PyObject* value) {
    PyTypeObject* const type = Py_TYPE(value);
    const bool scalar = is_plain(value) && type != &PyList_Type && type != &PyDict_Type && type != &PyTuple_Type &&
                        type != &PyBytes_Type;
    if (!scalar) return name_of(type);
    std::string where;
    std::optional<Buffer> json = encoded(json_codec(), value, where);
    if (!json) return name_of(type);
    const std::unique_ptr<Reader> reader = json_codec().reader();
    reader->reset(json->padded());
    static_cast<void>(reader->fail(""));
    return reader->failure().got;
  }

  std::size_t* trials_left_;
  bool writes_;  // else it is a trial
  bool is_refused_ = false;
};

}  // namespace

bool encode_as(Writer& writer, PyObject* value, const Shape* shape, std::string& where) {
  if (shape == nullptr) return encode(writer, value, where);
  std::size_t trials_left = kTrialsMax;
  ValidatingEncoder encoder{writer, where, trials_left, true};
  if (encoder.as(value, *shape)) return true;
  if (encoder.is_refused()) where.insert(0, kNotAsDeclared);
  return false;
}

}  // namespace wirecall::python
