// Shape: what a Python type hint asks of a value on the wire, and how the value becomes a Python object, straight from
// any codec's Reader. Made by wirecall/_shapes.py from hints, once; it does not change afterwards, so any thread that
// holds the GIL may use it. Its TypeInfo gives error messages and documents their words.
#pragma once

#include <Python.h>
#include <deque>
#include <nanobind/nanobind.h>

#include "reference.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/schema.hpp"

namespace wirecall::python {

enum class ShapeKind : std::uint8_t {
  any,
  none,
  boolean,
  integer,
  number,
  string,
  bytes,
  list,
  set,
  frozenset,
  tuple,      ///< of any length, all of parts[0]
  record,     ///< a tuple of one of each of `parts`; `type` is called with them, if it is not None
  map,        ///< a dict: keys of parts[0], values of parts[1]
  choice,     ///< the first of `parts` that fits
  literal,    ///< `type` is a dict: from (type, value) to what it stands for
  object,     ///< members by name: `type` is called with them, by name; without `type` it is a dict of them
  converted,  ///< of parts[0]; `type` is called with it, and says by ValueError what is wrong
  raw,        ///< `type` is called with the JSON text, as bytes, and says by ValueError what is wrong
  extension,  ///< bytes with a type of their own: `type` is called with that type and them; or what parts[0] gives
};

class Shape {
 public:
  Shape(ShapeKind kind, std::string name, nanobind::object type);
  Shape(Shape&&) = delete;

  /// Of what it is made; the parts are kept.
  void set_parts(nanobind::list parts);
  struct Field {
    nanobind::object name;  ///< in Python, interned
    std::string wire_name;
    Shape* shape;
    bool required;
  };
  /// The members of an object: tuples of (name in Python, name on the wire, shape, required, what documents it).
  void set_fields(nanobind::list fields);
  /// What JSON Schema calls the format of a string, the names of an enumeration, what documents it.
  void set_format(std::string format);
  void set_names(std::vector<std::string> names);
  void set_docs(std::string docs);
  /// The JSON Schema that its library has for it: tuples of (name, JSON text), its own first (SchemaDefinition).
  void set_definitions(nanobind::list definitions);

  /// For results: the Python type whose objects are written as they are, and a function that says by ValueError what is
  /// wrong with such an object. Each may be None.
  void set_result(nanobind::object type, nanobind::object check);

  [[nodiscard]] const TypeInfo& info() const noexcept { return info_; }
  [[nodiscard]] ShapeKind kind() const noexcept { return kind_; }
  /// Whether decoding runs user code, which may take any time: classes, validators and the like.
  [[nodiscard]] bool runs_python() const;
  /// Whether it is of that kind, or anything that it is made of.
  [[nodiscard]] bool holds(ShapeKind kind) const;
  /// Of what it is made.
  [[nodiscard]] const std::vector<Shape*>& parts() const noexcept { return parts_; }
  [[nodiscard]] const std::vector<Field>& fields() const noexcept { return fields_; }
  [[nodiscard]] PyObject* type() const noexcept { return type_.ptr(); }
  /// Null for none.
  [[nodiscard]] PyObject* result_type() const noexcept { return result_type_.ptr(); }
  [[nodiscard]] PyObject* result_check() const noexcept { return result_check_.ptr(); }
  /// Whether validating a result may run user code.
  [[nodiscard]] bool checks_by_python() const;
  /// What is expected, in the words of errors.
  [[nodiscard]] std::string expected() const;
  /// A new reference to the value that comes next; null after recording a failure with the reader. A Python exception
  /// is left set where it is not the value that is wrong, but what looks at it (a validator that raises no ValueError).
  [[nodiscard]] PyObject* decode(Reader& reader) const;

  /// For Python's collector of cycles: a class may hold itself. `clear` ends all use of it.
  int traverse(visitproc visit, void* argument) const;
  void clear();

 private:
  [[nodiscard]] std::vector<const Shape*> all() const;
  PyObject* decode_sequence(Reader& reader) const;
  PyObject* decode_record(Reader& reader) const;
  PyObject* decode_map(Reader& reader, bool plain_names = false) const;
  PyObject* decode_choice(Reader& reader) const;
  PyObject* decode_literal(Reader& reader) const;
  PyObject* decode_object(Reader& reader) const;
  PyObject* decode_converted(Reader& reader) const;
  PyObject* decode_timestamp(Reader& reader) const;
  PyObject* decode_raw(Reader& reader) const;
  PyObject* decode_extension(Reader& reader) const;
  /// The value that comes next is of another kind.
  PyObject* mismatch(Reader& reader) const;
  /// What `made` holds; where it is null, a failure of the value at `mark` for the exception that is set.
  PyObject* accepted(Reference made, Reader& reader, const char* mark) const;

  ShapeKind kind_;
  std::string name_;
  nanobind::object type_;
  std::vector<nanobind::object> kept_;
  std::vector<Shape*> parts_;
  std::vector<Field> fields_;
  nanobind::object result_type_;
  nanobind::object result_check_;

  TypeInfo info_;
  std::string format_;
  std::string docs_;
  std::vector<const TypeInfo*> types_;
  std::vector<MemberInfo> members_;
  std::deque<About> abouts_;
  std::deque<std::string> texts_;
  std::vector<std::string_view> names_;
  std::vector<SchemaDefinition> definitions_;
};

}  // namespace wirecall::python
