// TypeInfo in words and as JSON Schema (draft 2020-12, the keywords type, enum, minimum, maximum, minLength, maxLength,
// minItems, maxItems, items, additionalItems, minProperties, maxProperties, properties, required, additionalProperties,
// anyOf, format, description, $ref, $defs).
#include "wirecall/schema.hpp"

#include <algorithm>
#include <cmath>

namespace wirecall {
namespace {

/// A type as part of other words: parentheses where the words would run together.
std::string describe_inside(const TypeInfo& type) {
  const bool compound =
      type.kind == TypeKind::optional || type.kind == TypeKind::one_of || type.kind == TypeKind::enumeration;
  return compound ? '(' + describe(type) + ')' : describe(type);
}

std::string join(std::span<const TypeInfo* const> types, std::string_view separator) {
  std::string words;
  for (const TypeInfo* type : types) {
    if (!words.empty()) words += separator;
    words += describe_inside(*type);
  }
  return words;
}

/// "integer or string"; several structs are told apart by their names: "Circle object or Square object".
std::string join_alternatives(std::span<const TypeInfo* const> types) {
  const auto is_struct = [](const TypeInfo* type) { return type->kind == TypeKind::object; };
  const bool named = std::count_if(types.begin(), types.end(), is_struct) > 1;
  std::string words;
  for (const TypeInfo* type : types) {
    if (!words.empty()) words += " or ";
    if (named && is_struct(type)) (words += type->name) += ' ';
    words += describe_inside(*type);
  }
  return words;
}

/// A member's number limit; integral ones without a fraction.
void write_limit(Writer& writer, std::string_view keyword, double limit) {
  if (std::isinf(limit)) return;
  writer.key(keyword);
  writer.number(limit);
}

void write_length(Writer& writer, std::string_view least, std::string_view most, const About& limits) {
  if (limits.length_min != 0) {
    writer.key(least);
    writer.unsigned_integer(limits.length_min);
  }
  if (limits.length_max != std::numeric_limits<std::size_t>::max()) {
    writer.key(most);
    writer.unsigned_integer(limits.length_max);
  }
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
    case TypeKind::any:
      return type.name.empty() ? "any value" : std::string{type.name};
    case TypeKind::null:
      return "null";
    case TypeKind::boolean:
      return "boolean";
    case TypeKind::integer:
      return "integer";
    case TypeKind::number:
      return "number";
    case TypeKind::string:
      return type.format.empty() ? "string" : std::string{type.format};
    case TypeKind::bytes:
      return R"({"$bytes":"<base64>"})";
    case TypeKind::enumeration: {
      std::string words = type.names.size() == 1 ? "" : "one of ";
      for (const std::string_view& name : type.names) {
        if (&name != type.names.data()) words += ", ";
        words += name;
      }
      return words;
    }
    case TypeKind::optional:
      return describe_inside(*type.types[0]) + " or null";
    case TypeKind::array:
      if (type.length == TypeInfo::kAnyLength) return "array of " + describe_inside(*type.types[0]);
      return "array of " + std::to_string(type.length) + " times " + describe_inside(*type.types[0]);
    case TypeKind::tuple:
      return "array of [" + join(type.types, ", ") + ']';
    case TypeKind::map:
      return "object of " + describe_inside(*type.types[0]);
    case TypeKind::object:
      return "object";
    case TypeKind::one_of:
      return join_alternatives(type.types);
  }
  return {};
}

bool accepts(const TypeInfo& type, ValueKind kind) noexcept {
  const auto any_of = [&] {
    return std::any_of(type.types.begin(), type.types.end(), [&](const TypeInfo* one) { return accepts(*one, kind); });
  };
  switch (type.kind) {
    case TypeKind::any:
      return true;
    case TypeKind::null:
      return kind == ValueKind::null;
    case TypeKind::boolean:
      return kind == ValueKind::boolean;
    case TypeKind::integer:
    case TypeKind::number:
      return kind == ValueKind::number;
    case TypeKind::string:  // a time may be a timestamp of MessagePack
      return kind == ValueKind::string || (kind == ValueKind::extension && type.format == "date-time");
    case TypeKind::enumeration:
      return kind == ValueKind::string;
    case TypeKind::bytes:  // in JSON an object, in other encodings a kind of its own
      return kind == ValueKind::bytes || kind == ValueKind::object;
    case TypeKind::optional:
      return kind == ValueKind::null || any_of();
    case TypeKind::array:
    case TypeKind::tuple:
      return kind == ValueKind::array;
    case TypeKind::map:
    case TypeKind::object:
      return kind == ValueKind::object;
    case TypeKind::one_of:
      return any_of();
  }
  return false;
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
  if (about != nullptr && !about->docs.empty()) write_word(*writer_, "description", about->docs);
  writer_->end_object();
}

void SchemaWriter::write_keywords(const TypeInfo& type, const About* about) {
  Writer& w = *writer_;
  const About nothing{.member = {}};
  const About& limits = about == nullptr ? nothing : *about;
  if (!type.docs.empty() && limits.docs.empty()) write_word(w, "description", type.docs);
  if (type.schema != nullptr || type.definitions.size() == 1) {
    w.key("allOf");
    w.begin_array(1);
    w.json(type.schema != nullptr ? type.schema() : std::string{type.definitions[0].json});
    return w.end_array();
  }
  switch (type.kind) {
    case TypeKind::any:
      if (!type.name.empty() && type.docs.empty() && limits.docs.empty()) write_word(w, "description", type.name);
      break;
    case TypeKind::null:
      write_word(w, "type", "null");
      break;
    case TypeKind::boolean:
      write_word(w, "type", "boolean");
      break;
    case TypeKind::integer:
      write_word(w, "type", "integer");
      if (type.minimum == std::numeric_limits<std::int64_t>::min() &&
          type.maximum == std::numeric_limits<std::uint64_t>::max()) {
        // No type of C++ holds both: it is one that is not bound to 64 bits.
        write_limit(w, "minimum", limits.minimum);
        write_limit(w, "maximum", limits.maximum);
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
    case TypeKind::number:
      write_word(w, "type", "number");
      write_limit(w, "minimum", limits.minimum);
      write_limit(w, "maximum", limits.maximum);
      break;
    case TypeKind::string:
      write_word(w, "type", "string");
      if (!limits.format.empty() || !type.format.empty()) {
        write_word(w, "format", limits.format.empty() ? type.format : limits.format);
      }
      write_length(w, "minLength", "maxLength", limits);
      break;
    case TypeKind::bytes:
      write_word(w, "type", "object");
      w.key("properties");
      w.json(R"({"$bytes":{"type":"string","contentEncoding":"base64"}})");
      w.key("required");
      w.json(R"(["$bytes"])");
      w.key("additionalProperties");
      w.boolean(false);
      break;
    case TypeKind::enumeration:
      write_word(w, "type", "string");
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
        inner.docs = {};
        write_type(*one, type.kind == TypeKind::optional && about != nullptr ? &inner : nullptr);
      }
      if (type.kind == TypeKind::optional) w.json(R"({"type":"null"})");
      w.end_array();
      break;
    case TypeKind::array:
      write_word(w, "type", "array");
      w.key("items");
      write_type(*type.types[0], nullptr);
      if (type.length == TypeInfo::kAnyLength) {
        write_length(w, "minItems", "maxItems", limits);
        break;
      }
      [[fallthrough]];
    case TypeKind::tuple:
      if (type.kind == TypeKind::tuple) {
        write_word(w, "type", "array");
        if (!type.types.empty()) {  // a list of schemas is never empty
          w.key("items");
          w.begin_array(type.types.size());
          for (const TypeInfo* one : type.types) write_type(*one, nullptr);
          w.end_array();
          w.key("additionalItems");
          w.boolean(false);
        }
      }
      w.key("minItems");
      w.unsigned_integer(type.length);
      w.key("maxItems");
      w.unsigned_integer(type.length);
      break;
    case TypeKind::map:
      write_word(w, "type", "object");
      w.key("additionalProperties");
      write_type(*type.types[0], nullptr);
      write_length(w, "minProperties", "maxProperties", limits);
      break;
    case TypeKind::object:
      write_object(type);
      break;
  }
}

void SchemaWriter::write_object(const TypeInfo& type) {
  Writer& w = *writer_;
  write_word(w, "title", type.name);
  write_word(w, "type", "object");
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
