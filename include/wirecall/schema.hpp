// TypeInfo: a description of how a C++ type looks on the wire, as constant data that type_info<T>() (reflect.hpp) makes
// once per type. Error messages take their words from it, and documents their JSON Schema (draft 2020-12).
// Thread: any, since all of it is constant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wirecall/codec.hpp"

namespace wirecall {

/// Documentation and bounds of one member of a struct. Limits are checked when a value is decoded and stand in the
/// schema; lengths count the characters of a string, the elements of an array, the members of a map.
///
///     template <> struct wirecall::Describe<Job> {
///       static constexpr std::string_view description = "One unit of work.";
///       static constexpr wirecall::About members[] = {
///           {.member = "priority", .description = "Higher goes first.", .minimum = 0, .maximum = 9, .optional = true},
///           {.member = "class_", .name = "class"},
///       };
///     };
struct About {
  std::string_view member;  ///< its name in C++
  std::string_view description = {};
  std::string_view name = {};    ///< its name on the wire, where that is another
  std::string_view format = {};  ///< JSON Schema's "format"; not checked
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  std::size_t length_min = 0;
  std::size_t length_max = std::numeric_limits<std::size_t>::max();
  /// May be absent although it is no std::optional; then it keeps the value of its default initialiser.
  bool optional = false;
};

/// Specialise it to put a type of another library, or one that reflection cannot see into, on the wire:
///
///     template <> struct wirecall::Adapt<Uuid> {
///       static bool decode(wirecall::Reader& reader, Uuid& out);               // false after reader.fail("a UUID")
///       static void encode(wirecall::Writer& writer, const Uuid& value);
///       static constexpr std::string_view name = "a UUID";                     // optional: for error messages
///       static std::string schema() { return R"({"type":"string"})"; }         // optional: JSON text
///     };
///
/// Either function may be left out where the type goes one way only.
template <class T>
struct Adapt {};

/// Specialise it to document a struct (`description`, `members`, both optional) or an enum (`description`).
template <class T>
struct Describe {};

enum class TypeKind : std::uint8_t {
  any,  ///< every value
  null,
  boolean,
  integer,  ///< from `minimum` to `maximum`
  number,
  string,
  bytes,        ///< {"$bytes":"<base64>"}
  enumeration,  ///< a string, one of `names`
  optional,     ///< types[0] or null; as a member it may be absent
  array,        ///< of types[0], exactly `length` of them unless that is kAnyLength
  tuple,        ///< an array of one value of each of `types`, in order
  map,          ///< an object whose members all hold types[0]
  object,       ///< `members`; others are ignored
  one_of,       ///< the first of `types` that fits
};

struct TypeInfo;

/// A schema given as text. It refers to other definitions of its type by "#/$defs/NAME".
struct SchemaDefinition {
  std::string_view name;  ///< with a dot in it, which the names of structs have not
  std::string_view json;
};

struct MemberInfo {
  std::string_view name;  ///< on the wire
  const TypeInfo* type;
  const About* about;  ///< null where nothing is said
  bool required;
};

struct TypeInfo {
  static constexpr std::size_t kAnyLength = std::numeric_limits<std::size_t>::max();

  TypeKind kind = TypeKind::any;
  std::string_view name = {};  ///< of a struct or enum, without its namespace; of an adapted type Adapt::name
  std::string_view description = {};
  std::string_view format = {};  ///< of a string, in JSON Schema's words
  std::int64_t minimum = 0;
  std::uint64_t maximum = 0;
  std::size_t length = kAnyLength;
  std::span<const TypeInfo* const> types = {};
  std::span<const MemberInfo> members = {};
  std::span<const std::string_view> names = {};
  std::string (*schema)() = nullptr;  ///< an adapted type's Adapt::schema; null where it has none
  /// For a type whose schema is given as text, as by a package for another language: its own schema first, then those
  /// that it refers to. json_schema writes a schema that refers to none in place, and all others under "$defs".
  std::span<const SchemaDefinition> definitions = {};
};

/// The type in the words of an error message: "integer", "array of string", "one of red, green", "integer or null".
[[nodiscard]] std::string describe(const TypeInfo& type);
/// Whether a value of this kind can be one of the type, as far as its kind tells.
[[nodiscard]] bool accepts(const TypeInfo& type, ValueKind kind) noexcept;

/// Writes JSON Schemas that share definitions: every struct is defined once, and other places refer to it.
class SchemaWriter {
 public:
  /// References begin with `prefix`, as "#/components/schemas/".
  SchemaWriter(Writer& writer, std::string_view prefix) : writer_(&writer), prefix_(prefix) {}

  /// Appends one schema.
  void write(const TypeInfo& type);
  /// Appends an object: the definitions of all structs that were referred to, by name. Nothing more may be written
  /// after it.
  void write_definitions();
  [[nodiscard]] bool has_definitions() const noexcept { return !definitions_.empty(); }

 private:
  friend std::string json_schema(const TypeInfo& type);
  struct Definition {
    const TypeInfo* type;
    std::string name;
    std::string_view json = {};  ///< instead of what the type says
  };

  /// The schema's members; `limits` may be null.
  void write_type(const TypeInfo& type, const About* limits);
  void write_keywords(const TypeInfo& type, const About* limits);
  void write_object(const TypeInfo& type);
  [[nodiscard]] bool is_defined_apart(const TypeInfo& type) const;
  [[nodiscard]] const std::string& name_of(const TypeInfo& type);
  [[nodiscard]] const std::string& defined_name_of(const TypeInfo& type);

  Writer* writer_;
  std::string prefix_;
  std::vector<Definition> definitions_;
  /// When set, only these structs are defined apart; others stand where they are used.
  const std::vector<const TypeInfo*>* apart_ = nullptr;
};

/// One self-contained schema as JSON text. Structs that occur twice or contain themselves are under "$defs".
[[nodiscard]] std::string json_schema(const TypeInfo& type);

}  // namespace wirecall
