// See shape.hpp.
#include "shape.hpp"

#include <algorithm>
#include <array>

#include "exception.hpp"
#include "values.hpp"

namespace wirecall::python {
namespace nb = nanobind;

// What documents say of each kind, in the order of ShapeKind.
constexpr std::array kTypeKinds{
    TypeKind::any,    TypeKind::null,  TypeKind::boolean, TypeKind::integer, TypeKind::number,
    TypeKind::string, TypeKind::bytes, TypeKind::array,   TypeKind::array,   TypeKind::array,
    TypeKind::array,  TypeKind::tuple, TypeKind::map,     TypeKind::one_of,  TypeKind::any,
    TypeKind::object, TypeKind::any,   TypeKind::any,     TypeKind::any,
};
static_assert(kTypeKinds.size() == static_cast<std::size_t>(ShapeKind::extension) + 1);

Shape::Shape(ShapeKind kind, std::string name, nb::object type)
    : kind_(kind), name_(std::move(name)), type_(std::move(type)) {
  info_.kind = kTypeKinds[static_cast<std::size_t>(kind)];
  info_.name = name_;
  if (kind == ShapeKind::integer) {
    // Beyond 64 bits too; a schema has no bounds where these are the least and the most.
    info_.minimum = std::numeric_limits<std::int64_t>::min();
    info_.maximum = std::numeric_limits<std::uint64_t>::max();
  }
}

void Shape::set_parts(nb::list parts) {
  for (nb::handle part : parts) {
    kept_.push_back(nb::borrow(part));
    parts_.push_back(nb::cast<Shape*>(part));
    types_.push_back(&parts_.back()->info());
  }
  switch (kind_) {
    case ShapeKind::map: info_.types = {types_.data() + 1, 1}; break;
    case ShapeKind::converted: {
      // A converted string still is a string to whoever reads the document.
      const TypeInfo& part = parts_[0]->info();
      info_.kind = part.kind;
      info_.types = part.types;
      info_.minimum = part.minimum;
      info_.maximum = part.maximum;
      info_.length = part.length;
      info_.members = part.members;
      info_.definitions = part.definitions;
      if (info_.names.empty()) info_.names = part.names;
      if (info_.format.empty()) info_.format = part.format;
      if (info_.name.empty()) info_.name = part.name;
      break;
    }
    case ShapeKind::record:
      info_.types = types_;
      info_.length = types_.size();
      break;
    case ShapeKind::choice:
      info_.types = types_;
      if (types_.size() == 2 && types_[1]->kind == TypeKind::null) {
        info_.kind = TypeKind::optional;
        info_.types = {types_.data(), 1};
      }
      break;
    default: info_.types = types_;
  }
}

void Shape::set_fields(nb::list fields) {
  const auto keep = [this](std::string text) -> std::string_view { return texts_.emplace_back(std::move(text)); };
  for (nb::handle entry : fields) {
    const auto field = nb::cast<nb::tuple>(entry);
    kept_.push_back(nb::borrow(field[2]));
    fields_.push_back({.name = nb::borrow(field[0]),
                       .wire_name = nb::cast<std::string>(field[1]),
                       .shape = nb::cast<Shape*>(field[2]),
                       .required = nb::cast<bool>(field[3])});
    const std::string docs = nb::cast<std::string>(field[4]);
    const About* about = nullptr;
    const std::string_view name = keep(fields_.back().wire_name);
    if (!docs.empty()) about = &abouts_.emplace_back(About{.member = name, .description = keep(docs)});
    members_.push_back({name, &fields_.back().shape->info(), about, fields_.back().required});
  }
  info_.members = members_;
}

void Shape::set_result(nb::object type, nb::object check) {
  result_type_ = type.is_none() ? nb::object{} : std::move(type);
  result_check_ = check.is_none() ? nb::object{} : std::move(check);
}

void Shape::set_format(std::string format) {
  format_ = std::move(format);
  info_.format = format_;
}

void Shape::set_names(std::vector<std::string> names) {
  for (std::string& name : names) names_.push_back(texts_.emplace_back(std::move(name)));
  info_.kind = TypeKind::enumeration;
  info_.names = names_;
}

void Shape::set_docs(std::string docs) {
  docs_ = std::move(docs);
  info_.description = docs_;
}

void Shape::set_definitions(nb::list definitions) {
  for (nb::handle entry : definitions) {
    const auto definition = nb::cast<nb::tuple>(entry);
    const std::string& name = texts_.emplace_back(nb::cast<std::string>(definition[0]));
    definitions_.push_back({name, texts_.emplace_back(nb::cast<std::string>(definition[1]))});
  }
  info_.definitions = definitions_;
}

// Itself and all that it is made of: shapes may be within themselves.
std::vector<const Shape*> Shape::all() const {
  std::vector<const Shape*> all{this};
  const auto add = [&all](const Shape* shape) {
    if (std::ranges::find(all, shape) == all.end()) all.push_back(shape);
  };
  for (std::size_t i = 0; i != all.size(); ++i) {
    const Shape& shape = *all[i];
    for (const Shape* part : shape.parts_) add(part);
    for (const Field& field : shape.fields_) add(field.shape);
  }
  return all;
}

bool Shape::holds(ShapeKind kind) const {
  const std::vector<const Shape*> all = this->all();
  return std::ranges::find(all, kind, &Shape::kind_) != all.end();
}

bool Shape::runs_python() const {
  return std::ranges::any_of(all(), [](const Shape* shape) {
    switch (shape->kind_) {
      case ShapeKind::converted:
      case ShapeKind::raw:
      case ShapeKind::extension: return true;
      case ShapeKind::record:
      case ShapeKind::object:
      case ShapeKind::map: return shape->type_.is_valid() && !shape->type_.is_none();
      default: return false;
    }
  });
}

bool Shape::checks_by_python() const {
  return std::ranges::any_of(all(), [](const Shape* shape) {
    return shape->kind_ == ShapeKind::converted || shape->kind_ == ShapeKind::raw || shape->result_check() != nullptr;
  });
}

std::string Shape::expected() const {
  const bool named = kind_ == ShapeKind::literal ? info_.kind != TypeKind::enumeration
                                                 : kind_ == ShapeKind::converted || kind_ == ShapeKind::extension;
  return named && !name_.empty() ? name_ : describe(info_);
}

int Shape::traverse(visitproc visit, void* arg) const {
  Py_VISIT(type_.ptr());
  Py_VISIT(result_type_.ptr());
  Py_VISIT(result_check_.ptr());
  for (const nb::object& part : kept_) Py_VISIT(part.ptr());
  return 0;
}

void Shape::clear() {
  parts_.clear();
  fields_.clear();
  type_.reset();
  result_type_.reset();
  result_check_.reset();
  kept_.clear();
}

PyObject* Shape::decode(Reader& reader) const {
  switch (kind_) {
    case ShapeKind::any: return decode_any(reader);
    case ShapeKind::none:
      if (reader.read_null()) Py_RETURN_NONE;
      return reader.fail("null"), nullptr;
    case ShapeKind::boolean: {
      bool value = false;
      return reader.read_bool(value) ? PyBool_FromLong(value ? 1 : 0) : nullptr;
    }
    case ShapeKind::integer: return decode_integer(reader);
    case ShapeKind::number: return decode_number(reader);
    case ShapeKind::string: return decode_string(reader);
    case ShapeKind::bytes: return decode_bytes(reader);
    case ShapeKind::list:
    case ShapeKind::set:
    case ShapeKind::frozenset:
    case ShapeKind::tuple: return decode_sequence(reader);
    case ShapeKind::record: return decode_record(reader);
    case ShapeKind::map: return decode_map(reader);
    case ShapeKind::choice: return decode_choice(reader);
    case ShapeKind::literal: return decode_literal(reader);
    case ShapeKind::object: return decode_object(reader);
    case ShapeKind::converted: return decode_converted(reader);
    case ShapeKind::raw: return decode_raw(reader);
    case ShapeKind::extension: return decode_extension(reader);
  }
  return nullptr;
}

PyObject* Shape::mismatch(Reader& reader) const {
  reader.clear_failure();
  return reader.fail(describe(info_)), nullptr;
}

// Functions of shapes that have a name are ours, and do not know what they are given: whatever they raise, the value is
// wrong. Of others' functions ValueError alone is about the value; anything else stays set.
PyObject* Shape::accepted(Reference made, Reader& reader, const char* mark) const {
  if (made) return made.release();
  reader.rewind(mark);
  if (name_.empty() || PyErr_ExceptionMatches(PyExc_Exception) == 0) return fail_with_value_error(reader);
  Reference exception = take_exception();
  // It may say what was expected more exactly than the name does.
  if (exception && PyObject_HasAttrString(exception.get(), "wirecall_words") != 0) {
    restore_exception(std::move(exception));
    return fail_with_value_error(reader);
  }
  return reader.fail(name_), nullptr;
}

PyObject* Shape::decode_sequence(Reader& reader) const {
  if (!reader.begin_array()) return mismatch(reader);
  const bool is_set = kind_ == ShapeKind::set || kind_ == ShapeKind::frozenset;
  Reference all = Reference::steal(is_set ? PySet_New(nullptr) : PyList_New(0));
  if (!all) return fail_with_exception(reader);
  const Shape& part = *parts_[0];
  for (std::size_t position = 0; reader.next_element(); ++position) {
    const Reference element = Reference::steal(part.decode(reader));
    if (!element) return reader.failed_at(position), nullptr;
    const int added = is_set ? PySet_Add(all.get(), element.get()) : PyList_Append(all.get(), element.get());
    if (added != 0) {
      if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) return fail_with_exception(reader);
      PyErr_Clear();
      reader.fail("a value that can be in a set");
      return reader.failed_at(position), nullptr;
    }
  }
  if (kind_ == ShapeKind::tuple) all = Reference::steal(PyList_AsTuple(all.get()));
  if (kind_ == ShapeKind::frozenset) all = Reference::steal(PyFrozenSet_New(all.get()));
  return all ? all.release() : fail_with_exception(reader);
}

PyObject* Shape::decode_record(Reader& reader) const {
  const char* const mark = reader.mark();
  if (!reader.begin_array()) return mismatch(reader);
  Reference all = Reference::steal(PyTuple_New(static_cast<Py_ssize_t>(parts_.size())));
  if (!all) return fail_with_exception(reader);
  std::size_t position = 0;
  while (reader.next_element()) {
    if (position == parts_.size()) {
      reader.fail("nothing");
      return reader.failed_at(position), nullptr;
    }
    PyObject* const element = parts_[position]->decode(reader);
    if (element == nullptr) return reader.failed_at(position), nullptr;
    PyTuple_SetItem(all.get(), static_cast<Py_ssize_t>(position++), element);
  }
  if (position != parts_.size()) {
    reader.fail_missing(describe(parts_[position]->info()));
    return reader.failed_at(position), nullptr;
  }
  if (type_.is_none()) return all.release();
  return accepted(Reference::steal(PyObject_Call(type_.ptr(), all.get(), nullptr)), reader, mark);
}

PyObject* Shape::decode_map(Reader& reader, bool plain_names) const {
  if (!reader.begin_object()) return mismatch(reader);
  Reference dict = Reference::steal(PyDict_New());
  if (!dict) return fail_with_exception(reader);
  const bool plain = parts_[0]->kind() == ShapeKind::string || parts_[0]->kind() == ShapeKind::any;
  bool first = !plain_names;
  for (std::string_view name; reader.next_member(name); first = false) {
    if (first && name == "$" && is_wrapped(reader)) {
      PyObject* const within = decode_map(reader, true);
      static_cast<void>(reader.next_member(name));
      return within;
    }
    Reference key = Reference::steal(text_object(name));
    if (!key) return fail_with_exception(reader);
    if (!plain) {
      // Other keys are read as if they stood there as values.
      key = call_function(type_.ptr(), key.get());
      if (!key) {
        fail_with_value_error(reader);
        return reader.failed_at(name), nullptr;
      }
    }
    const Reference value = Reference::steal(parts_[1]->decode(reader));
    if (!value) return reader.failed_at(name), nullptr;
    if (PyDict_SetItem(dict.get(), key.get(), value.get()) != 0) return fail_with_exception(reader);
  }
  return dict.release();
}

PyObject* Shape::decode_choice(Reader& reader) const {
  const ValueKind kind = reader.kind();
  const char* const mark = reader.mark();
  // Where one alone is of this kind, what it says of the value is more than that none fits.
  const Shape* only = nullptr;
  std::size_t fitting = 0;
  for (const Shape* part : parts_) {
    if (!accepts(part->info(), kind)) continue;
    only = part;
    ++fitting;
  }
  if (fitting == 1) return only->decode(reader);
  for (const Shape* part : parts_) {
    if (!accepts(part->info(), kind)) continue;
    if (PyObject* const value = part->decode(reader)) return value;
    if (PyErr_Occurred() != nullptr) return nullptr;
    const auto read = static_cast<std::size_t>(reader.mark() - mark);
    reader.rewind(mark);
    if (!reader.may_reread(read)) break;
    reader.clear_failure();
  }
  return reader.fail(describe(info_)), nullptr;
}

PyObject* Shape::decode_literal(Reader& reader) const {
  const char* const mark = reader.mark();
  const Reference value = Reference::steal(decode_any(reader));
  if (!value) return nullptr;
  const Reference key =
      Reference::steal(PyTuple_Pack(2, reinterpret_cast<PyObject*>(Py_TYPE(value.get())), value.get()));
  PyObject* const found = key ? PyDict_GetItemWithError(type_.ptr(), key.get()) : nullptr;
  if (found != nullptr) return Py_NewRef(found);
  PyErr_Clear();  // a list cannot be looked for
  reader.rewind(mark);
  return reader.fail(info_.kind == TypeKind::enumeration ? describe(info_) : name_), nullptr;
}

PyObject* Shape::decode_object(Reader& reader) const {
  const char* const mark = reader.mark();
  if (!reader.begin_object()) return mismatch(reader);
  Reference members = Reference::steal(PyDict_New());
  if (!members) return fail_with_exception(reader);
  std::size_t expected = 0;
  std::uint64_t given = 0;
  for (std::string_view name; reader.next_member(name);) {
    // Mostly they come in the order in which they were written down.
    std::size_t i = expected;
    if (i >= fields_.size() || fields_[i].wire_name != name) {
      for (i = 0; i != fields_.size() && fields_[i].wire_name != name;) ++i;
    }
    if (i == fields_.size()) {
      static_cast<void>(reader.skip());
      continue;
    }
    const Reference value = Reference::steal(fields_[i].shape->decode(reader));
    if (!value) return reader.failed_at(name), nullptr;
    if (PyDict_SetItem(members.get(), fields_[i].name.ptr(), value.get()) != 0) return fail_with_exception(reader);
    if (i < 64) given |= std::uint64_t{1} << i;
    expected = i + 1;
  }
  for (std::size_t i = 0; i != fields_.size(); ++i) {
    if (!fields_[i].required || (i < 64 && (given >> i & 1) != 0)) continue;
    if (i >= 64 && PyDict_GetItem(members.get(), fields_[i].name.ptr()) != nullptr) continue;
    reader.fail_missing(describe(fields_[i].shape->info()));
    return reader.failed_at(fields_[i].wire_name), nullptr;
  }
  if (type_.is_none()) return members.release();
  const Reference none = Reference::steal(PyTuple_New(0));
  if (PyObject* const made = PyObject_Call(type_.ptr(), none.get(), members.get())) return made;
  // What the class itself says of its members.
  reader.rewind(mark);
  return fail_with_value_error(reader);
}

// A point in time has a form of its own in the binary encodings. `type_` is a method of the class for them.
PyObject* Shape::decode_timestamp(Reader& reader) const {
  const char* const mark = reader.mark();
  Reference made = Reference::steal(decode_any(reader));
  if (!made) return nullptr;
  const Reference kind = Reference::steal(PyObject_GetAttrString(type_.ptr(), "__self__"));
  const int is_time = kind ? PyObject_IsInstance(made.get(), kind.get()) : -1;
  if (is_time < 0) return fail_with_exception(reader);
  if (is_time == 1) return made.release();
  reader.rewind(mark);
  return reader.fail(name_), nullptr;
}

PyObject* Shape::decode_converted(Reader& reader) const {
  const char* const mark = reader.mark();
  if (name_ == "date-time" && reader.kind() == ValueKind::extension) return decode_timestamp(reader);
  const Reference value = Reference::steal(parts_[0]->decode(reader));
  if (!value) {
    // A date that is a number is no date; a list in which one element is wrong says which.
    if (!name_.empty() && PyErr_Occurred() == nullptr && reader.failed() && reader.failure().path.empty()) {
      reader.clear_failure();
      reader.rewind(mark);
      reader.fail(name_);
    }
    return nullptr;
  }
  return accepted(call_function(type_.ptr(), value.get()), reader, mark);
}

PyObject* Shape::decode_raw(Reader& reader) const {
  const char* const mark = reader.mark();
  std::string text;
  if (reader.is_json()) {
    text = reader.json();
    static_cast<void>(reader.skip());
  } else {
    std::string_view json;
    if (!reader.read_json(json)) return nullptr;  // the model's library reads JSON
    text = json;
  }
  const Reference bytes =
      Reference::steal(PyBytes_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
  if (!bytes) return fail_with_exception(reader);
  if (Reference made = call_function(type_.ptr(), bytes.get())) return made.release();
  // A ValueError may say where in the value it is.
  Reference exception = take_exception();
  const Reference path =
      Reference::steal(exception ? PyObject_GetAttrString(exception.get(), "wirecall_loc") : nullptr);
  restore_exception(std::move(exception));
  accepted({}, reader, mark);
  if (!path || !PyTuple_Check(path.get()) || PyErr_Occurred() != nullptr) return nullptr;
  for (Py_ssize_t i = PyTuple_Size(path.get()); i-- > 0;) {
    PyObject* const step = PyTuple_GetItem(path.get(), i);
    if (PyLong_Check(step)) {
      reader.failed_at(static_cast<std::size_t>(PyLong_AsLong(step)));
    } else if (const auto name = utf8_of(step)) {
      reader.failed_at(*name);
    }
  }
  PyErr_Clear();
  return nullptr;
}

// In JSON an object with one member, in MessagePack a value of its own.
PyObject* Shape::decode_extension(Reader& reader) const {
  const char* const mark = reader.mark();
  if (reader.kind() == ValueKind::object || reader.kind() == ValueKind::extension) {
    Reference made = Reference::steal(read_extension(reader, type_.ptr()));
    if (made || !reader.failed()) return accepted(std::move(made), reader, mark);
    reader.clear_failure();
    reader.rewind(mark);
    return reader.fail(name_), nullptr;
  }
  if (parts_.empty()) return reader.fail(name_), nullptr;
  const Reference value = Reference::steal(parts_[0]->decode(reader));
  if (!value) return nullptr;
  return accepted(call_function(type_.ptr(), Py_None, value.get()), reader, mark);
}

}  // namespace wirecall::python
