// See schema_text.hpp.
#include "cli/view/schema_text.hpp"

#include <algorithm>
#include <fmt/core.h>

#include "cli/view/members.hpp"

namespace wirecall::cli {
namespace {

/// A schema within so many others is not looked into.
constexpr int kDepthMax = 8;

/// The words of one schema. A definition is looked into where it is referred to first, and is named from then on.
class Words {
 public:
  explicit Words(const Value& root) : definitions_(root.find("$defs")) {}

  std::string of(const Value& schema, int depth);

 private:
  template <class Text>
  static std::string joined(const Value::Array& values, std::string_view between, const Text& text);
  std::string of_array(const Value& schema, int depth);
  std::string of_object(const Value& schema, int depth);
  std::string of_type(const Value& schema, const std::string& type, int depth);
  std::string of_reference(const std::string& reference, int depth);

  const Value* definitions_;
  std::vector<std::string> told_;
};

template <class Text>
std::string Words::joined(const Value::Array& values, std::string_view between, const Text& text) {
  std::string all;
  for (const Value& value : values) {
    if (!all.empty()) all += between;
    all += text(value);
  }
  return all;
}

std::string Words::of_array(const Value& schema, int depth) {
  // One schema each of the first elements: "prefixItems", and "items" before JSON Schema 2020-12.
  const Value* const each = schema.find("items");
  const bool is_list = each != nullptr && each->is_array();
  const Value* const items = is_list ? schema.find("additionalItems") : each;
  const Value::Array& first = elements_of(is_list ? each : schema.find("prefixItems"));
  std::string inside = joined(first, ", ", [&](const Value& element) { return of(element, depth); });
  if (items != nullptr && items->is_object())
    inside += (inside.empty() ? "" : ", ") + of(*items, depth) + (first.empty() ? "" : "...");
  return inside.empty() ? "array" : "[" + inside + "]";
}

std::string Words::of_object(const Value& schema, int depth) {
  const Value* const properties = schema.find("properties");
  const Value* const others = schema.find("additionalProperties");
  if (properties == nullptr || !properties->is_object() || properties->size() == 0) {
    const bool map = others != nullptr && others->is_object();
    return map ? fmt::format("{{string: {}}}", of(*others, depth)) : "object";
  }
  const Value::Array& required = elements_of(schema.find("required"));
  std::string inside;
  for (const auto& [name, member] : properties->as_object()) {
    const bool optional = std::ranges::find(required, Value{name}) == required.end();
    inside += fmt::format("{}{}{}: {}", inside.empty() ? "" : ", ", name, optional ? "?" : "", of(member, depth));
  }
  return "{" + inside + "}";
}

std::string Words::of_type(const Value& schema, const std::string& type, int depth) {
  if (type == "array") return of_array(schema, depth);
  if (type == "object") return of_object(schema, depth);
  return type;
}

// The members of an object have its name before them, so that it is known where it comes again.
std::string Words::of_reference(const std::string& reference, int depth) {
  constexpr std::string_view kDefinitions = "#/$defs/";
  const std::string name = reference.substr(reference.find_last_of("/.") + 1);
  if (definitions_ == nullptr || !reference.starts_with(kDefinitions)) return name;
  const Value* const definition = definitions_->find(reference.substr(kDefinitions.size()));
  if (definition == nullptr) return name;
  if (elements_of(definition->find("enum")).empty()) {
    if (std::ranges::find(told_, reference) != told_.end()) return name;
    told_.push_back(reference);
  }
  const std::string text = of(*definition, depth + 1);  // it is no level of its own
  return text.starts_with('{') ? name + text : text;
}

std::string Words::of(const Value& schema, int depth) {
  if (--depth < 0 || !schema.is_object()) return "any";
  if (const Value* only = schema.find("const")) return only->dump();
  const auto json = [](const Value& value) { return value.dump(); };
  const auto text = [&](const Value& value) { return of(value, depth); };
  for (const std::string_view name : {"enum", "anyOf", "oneOf"}) {
    const Value::Array& choices = elements_of(schema.find(name));
    if (!choices.empty()) return name == "enum" ? joined(choices, " | ", json) : joined(choices, " | ", text);
  }
  const Value::Array& all = elements_of(schema.find("allOf"));
  if (all.size() == 1) return of(all[0], depth);
  const Value* const type = schema.find("type");
  if (type != nullptr && type->is_string()) return of_type(schema, type->as_string(), depth);
  const Value::Array& types = elements_of(type);
  if (!types.empty()) {
    return joined(types, " | ",
                  [&](const Value& one) { return one.is_string() ? of_type(schema, one.as_string(), depth) : "any"; });
  }
  if (schema.find("properties") != nullptr) return of_object(schema, depth);
  const std::string reference = text_of(schema, "$ref");
  return reference.empty() ? "any" : of_reference(reference, depth);
}

}  // namespace

std::string schema_text(const Value& schema) { return Words{schema}.of(schema, kDepthMax); }

}  // namespace wirecall::cli
