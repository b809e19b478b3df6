// TypeInfo in words and as JSON Schema (draft 2020-12, the keywords type, enum, minimum, maximum, minLength, maxLength,
// minItems, maxItems, items, additionalItems, minProperties, maxProperties, properties, required, additionalProperties,
// anyOf, format, description, $ref, $defs).
#include "wirecall/schema.hpp"

#include <algorithm>
#include <cmath>

namespace wirecall {
namespace {

constexpr unsigned bit(ValueKind kind) noexcept { return 1U << static_cast<unsigned>(kind); }

/// What is said of all types of a kind.
struct KindRow {
  TypeKind kind;
  std::string_view words;   ///< of an error message; empty where they depend on the type
  std::string_view schema;  ///< JSON Schema's "type"; empty for none
  unsigned accepted;        ///< one bit for each ValueKind
};

constexpr KindRow kKinds[] = {
    {TypeKind::any, "", "", ~0U},
    {TypeKind::null, "null", "null", bit(ValueKind::null)},
    {TypeKind::boolean, "boolean", "boolean", bit(ValueKind::boolean)},
    {TypeKind::integer, "integer", "integer", bit(ValueKind::number)},
    {TypeKind::number, "number", "number", bit(ValueKind::number)},
    {TypeKind::string, "", "string", bit(ValueKind::string)},
    // In JSON an object, in other encodings a kind of its own.
    {TypeKind::bytes, R"({"$bytes":"<base64>"})", "object", bit(ValueKind::bytes) | bit(ValueKind::object)},
    {TypeKind::enumeration, "", "string", bit(ValueKind::string)},
    {TypeKind::optional, "", "", bit(ValueKind::null)},  // and what it holds
    {TypeKind::array, "", "array", bit(ValueKind::array)},
    {TypeKind::tuple, "", "array", bit(ValueKind::array)},
    {TypeKind::map, "", "object", bit(ValueKind::object)},
    {TypeKind::object, "object", "object", bit(ValueKind::object)},
    {TypeKind::one_of, "", "", 0},  // what its alternatives are
};
static_assert(std::ranges::all_of(kKinds, [](const KindRow& row) { return &row == &kKinds[std::size_t(row.kind)]; }));

constexpr const KindRow& row_of(const TypeInfo& type) noexcept { return kKinds[static_cast<std::size_t>(type.kind)]; }

/// A type as part of other words: parentheses where the words would run together.
std::string describe_inside(const TypeInfo& type) {
  const bool compound =
      type.kind == TypeKind::optional || type.kind == TypeKind::one_of || type.kind == TypeKind::enumeration;
  return compound ? '(' + describe(type) + ')' : describe(type);
}

/// Structs by their names where they are `named`.
std::string join(std::span<const TypeInfo* const> types, std::string_view separator, bool named = false) {
  std::string words;
  for (const TypeInfo* type : types) {
    if (!words.empty()) words += separator;
    if (named && type->kind == TypeKind::object) (words += type->name) += ' ';
    words += describe_inside(*type);
  }
  return words;
}

/// A member's number limits; integral ones without a fraction.
void write_limits(Writer& writer, const About& limits) {
  for (const auto& [keyword, limit] : {std::pair{"minimum", limits.minimum}, {"maximum", limits.maximum}}) {
    if (std::isinf(limit)) continue;
    writer.key(keyword);
    writer.number(limit);
  }
}

void write_count(Writer& writer, std::string_view keyword, std::size_t count) {
  writer.key(keyword);
  writer.unsigned_integer(count);
}

void write_length(Writer& writer, std::string_view least, std::string_view most, const About& limits) {
  if (limits.length_min != 0) write_count(writer, least, limits.length_min);
  if (limits.length_max != std::numeric_limits<std::size_t>::max()) write_count(writer, most, limits.length_max);
}

void write_word(Writer& writer, std::string_view keyword, std::string_view word) {
  writer.key(keyword);
  writer.string(word);
}

/// Letters, digits and underscores of a type's name: what may stand in a reference without escapes.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    const bool keep = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (keep) {
      plain += c;
    } else if (!plain.empty() && plain.back() != '_') {
      plain += '_';
    }
  }
  while (!plain.empty() && plain.back() == '_') plain.pop_back();
  return plain.empty() ? "Type" : plain;
}

/// Structs that are used more than once below a type, themselves included; each is looked into once.
class Uses {
 public:
  explicit Uses(const TypeInfo& root) { visit(root); }

  std::vector<const TypeInfo*> repeated;

 private:
  void visit(const TypeInfo& type) {
    if (type.kind == TypeKind::object) {
      if (std::find(seen_.begin(), seen_.end(), &type) != seen_.end()) {
        if (std::find(repeated.begin(), repeated.end(), &type) == repeated.end()) repeated.push_back(&type);
        return;
      }
      seen_.push_back(&type);
    }
    for (const TypeInfo* inner : type.types) visit(*inner);
    for (const MemberInfo& member : type.members) visit(*member.type);
  }

  std::vector<const TypeInfo*> seen_;
};

}  // namespace

std::string describe(const TypeInfo& type) {
  switch (type.kind) {
    case TypeKind::any: return type.name.empty() ? "any value" : std::string{type.name};
    case TypeKind::string: return type.format.empty() ? "string" : std::string{type.format};
    case TypeKind::enumeration: {
      std::string words = type.names.size() == 1 ? "" : "one of ";
      for (const std::string_view& name : type.names) {
        if (&name != type.names.data()) words += ", ";
        words += name;
      }
      return words;
    }
    case TypeKind::optional: return describe_inside(*type.types[0]) + " or null";
    case TypeKind::array:
      if (type.length == TypeInfo::kAnyLength) return "array of " + describe_inside(*type.types[0]);
      return "array of " + std::to_string(type.length) + " times " + describe_inside(*type.types[0]);
    case TypeKind::tuple: return "array of [" + join(type.types, ", ") + ']';
    case TypeKind::map: return "object of " + describe_inside(*type.types[0]);
    case TypeKind::one_of:  // "integer or string", "Circle object or Square object"
      return join(type.types, " or ", std::ranges::count(type.types, TypeKind::object, &TypeInfo::kind) > 1);
    default: return std::string{row_of(type).words};
  }
}

bool accepts(const TypeInfo& type, ValueKind kind) noexcept {
  if ((row_of(type).accepted & bit(kind)) != 0) return true;
  // A time may be a timestamp of MessagePack.
  if (type.kind == TypeKind::string) return kind == ValueKind::extension && type.format == "date-time";
  return (type.kind == TypeKind::optional || type.kind == TypeKind::one_of) &&
         std::ranges::any_of(type.types, [&](const TypeInfo* one) { return accepts(*one, kind); });
}

void SchemaWriter::write(const TypeInfo& type) { write_type(type, nullptr); }

bool SchemaWriter::is_defined_apart(const TypeInfo& type) const {
  if (!type.definitions.empty()) return type.definitions.size() > 1;
  if (type.kind != TypeKind::object) return false;
  return apart_ == nullptr || std::find(apart_->begin(), apart_->end(), &type) != apart_->end();
}

const std::string& SchemaWriter::name_of(const TypeInfo& type) {
  if (!type.definitions.empty()) return defined_name_of(type);
  for (const Definition& definition : definitions_) {
    if (definition.type == &type) return definition.name;
  }
  const std::string plain = plain_name(type.name);
  std::string name = plain;
  const auto is_taken = [&](const Definition& definition) { return definition.name == name; };
  for (int i = 2; std::any_of(definitions_.begin(), definitions_.end(), is_taken); ++i)
    name = plain + std::to_string(i);
  definitions_.push_back({&type, name});
  return definitions_.back().name;
}

const std::string& SchemaWriter::defined_name_of(const TypeInfo& type) {
  const std::string_view name = type.definitions[0].name;
  const auto known = std::ranges::find(definitions_, name, &Definition::name);
  if (known != definitions_.end()) return known->name;
  const std::size_t own = definitions_.size();
  for (const SchemaDefinition& one : type.definitions) definitions_.push_back({&type, std::string{one.name}, one.json});
  return definitions_[own].name;
}

void SchemaWriter::write_type(const TypeInfo& type, const About* about) {
  if (type.schema != nullptr && about == nullptr) return writer_->json(type.schema());
  if (type.definitions.size() == 1 && about == nullptr) return writer_->json(type.definitions[0].json);
  writer_->begin_object(Writer::kUnknownSize);
  if (is_defined_apart(type)) {
    write_word(*writer_, "$ref", prefix_ + name_of(type));
  } else {
    write_keywords(type, about);
  }
  if (about != nullptr && !about->description.empty()) write_word(*writer_, "description", about->description);
  writer_->end_object();
}

void SchemaWriter::write_keywords(const TypeInfo& type, const About* about) {
  Writer& w = *writer_;
  const About nothing{.member = {}};
  const About& limits = about == nullptr ? nothing : *about;
  if (!type.description.empty() && limits.description.empty()) write_word(w, "description", type.description);
  if (type.schema != nullptr || type.definitions.size() == 1) {
    w.key("allOf");
    w.begin_array(1);
    w.json(type.schema != nullptr ? type.schema() : std::string{type.definitions[0].json});
    return w.end_array();
  }
  if (type.kind == TypeKind::object) write_word(w, "title", type.name);
  if (!row_of(type).schema.empty()) write_word(w, "type", row_of(type).schema);
  // No type of C++ holds both: it is one that is not bound to 64 bits.
  const bool is_unbound = type.minimum == std::numeric_limits<std::int64_t>::min() &&
                          type.maximum == std::numeric_limits<std::uint64_t>::max();
  switch (type.kind) {
    case TypeKind::null:
    case TypeKind::boolean: break;
    case TypeKind::any:
      if (!type.name.empty() && type.description.empty() && limits.description.empty())
        write_word(w, "description", type.name);
      break;
    case TypeKind::number: write_limits(w, limits); break;
    case TypeKind::integer:
      if (is_unbound) {
        write_limits(w, limits);
        break;
      }
      w.key("minimum");
      // Exact 64-bit limits of the type, unless a narrower one was stated.
      if (limits.minimum > static_cast<double>(type.minimum)) {
        w.number(limits.minimum);
      } else {
        w.integer(type.minimum);
      }
      w.key("maximum");
      if (limits.maximum < static_cast<double>(type.maximum)) {
        w.number(limits.maximum);
      } else {
        w.unsigned_integer(type.maximum);
      }
      break;
    case TypeKind::string:
      if (!limits.format.empty() || !type.format.empty()) {
        write_word(w, "format", limits.format.empty() ? type.format : limits.format);
      }
      write_length(w, "minLength", "maxLength", limits);
      break;
    case TypeKind::bytes:
      w.key("properties");
      w.json(R"({"$bytes":{"type":"string","contentEncoding":"base64"}})");
      w.key("required");
      w.json(R"(["$bytes"])");
      w.key("additionalProperties");
      w.boolean(false);
      break;
    case TypeKind::enumeration:
      w.key("enum");
      w.begin_array(type.names.size());
      for (const std::string_view name : type.names) w.string(name);
      w.end_array();
      break;
    case TypeKind::optional:
    case TypeKind::one_of:
      w.key("anyOf");
      w.begin_array(Writer::kUnknownSize);
      for (const TypeInfo* one : type.types) {
        // A limit speaks of the value, not of its absence.
        About inner = limits;
        inner.description = {};
        write_type(*one, type.kind == TypeKind::optional && about != nullptr ? &inner : nullptr);
      }
      if (type.kind == TypeKind::optional) w.json(R"({"type":"null"})");
      w.end_array();
      break;
    case TypeKind::array:
      w.key("items");
      write_type(*type.types[0], nullptr);
      if (type.length == TypeInfo::kAnyLength) {
        write_length(w, "minItems", "maxItems", limits);
        break;
      }
      [[fallthrough]];
    case TypeKind::tuple:
      if (type.kind == TypeKind::tuple && !type.types.empty()) {  // a list of schemas is never empty
        w.key("items");
        w.begin_array(type.types.size());
        for (const TypeInfo* one : type.types) write_type(*one, nullptr);
        w.end_array();
        w.key("additionalItems");
        w.boolean(false);
      }
      write_count(w, "minItems", type.length);
      write_count(w, "maxItems", type.length);
      break;
    case TypeKind::map:
      w.key("additionalProperties");
      write_type(*type.types[0], nullptr);
      write_length(w, "minProperties", "maxProperties", limits);
      break;
    case TypeKind::object: write_object(type); break;
  }
}

void SchemaWriter::write_object(const TypeInfo& type) {
  Writer& w = *writer_;
  w.key("properties");
  w.begin_object(type.members.size());
  for (const MemberInfo& member : type.members) {
    w.key(member.name);
    write_type(*member.type, member.about);
  }
  w.end_object();
  const auto is_required = [](const MemberInfo& member) { return member.required; };
  if (std::none_of(type.members.begin(), type.members.end(), is_required)) return;
  w.key("required");
  w.begin_array(Writer::kUnknownSize);
  for (const MemberInfo& member : type.members) {
    if (member.required) w.string(member.name);
  }
  w.end_array();
}

void SchemaWriter::write_definitions() {
  writer_->begin_object(Writer::kUnknownSize);
  // Writing one definition may add others behind it.
  for (std::size_t i = 0; i < definitions_.size(); ++i) {
    writer_->key(definitions_[i].name);
    if (!definitions_[i].json.empty()) {
      writer_->json(definitions_[i].json);
      continue;
    }
    const TypeInfo& type = *definitions_[i].type;
    writer_->begin_object(Writer::kUnknownSize);
    write_keywords(type, nullptr);
    writer_->end_object();
  }
  writer_->end_object();
}

std::string json_schema(const TypeInfo& type) {
  if (type.schema != nullptr) return type.schema();
  if (type.definitions.size() == 1) return std::string{type.definitions[0].json};
  const Uses uses{type};
  Buffer text;
  const std::unique_ptr<Writer> writer = json_codec().writer();
  writer->reset(text);
  SchemaWriter schema{*writer, "#/$defs/"};
  schema.apart_ = &uses.repeated;
  writer->begin_object(Writer::kUnknownSize);
  if (schema.is_defined_apart(type)) {
    writer->key("$ref");
    writer->string("#/$defs/" + schema.name_of(type));
  } else {
    schema.write_keywords(type, nullptr);
  }
  if (schema.has_definitions()) {
    writer->key("$defs");
    schema.write_definitions();
  }
  writer->end_object();
  return std::string{text.view()};
}

}  // namespace wirecall
