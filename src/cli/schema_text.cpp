// See schema_text.hpp.
#include "cli/schema_text.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <string_view>

#include "cli/members.hpp"

namespace wirecall::cli {
namespace {

/// A schema within so many others is not looked into.
constexpr int kDepthMax = 8;

std::string text_at(const Value& schema, int depth);

template <class Text>
std::string joined(const Value::Array& values, std::string_view between, const Text& text) {
  std::string all;
  for (const Value& value : values) {
    if (!all.empty()) all += between;
    all += text(value);
  }
  return all;
}

std::string array_text(const Value& schema, int depth) {
  const auto text = [depth](const Value& element) { return text_at(element, depth); };
  const Value* const items = schema.find("items");
  const Value::Array& first = elements_of(schema.find("prefixItems"));
  std::string inside = joined(first, ", ", text);
  if (items != nullptr && items->is_object())
    inside += (inside.empty() ? "" : ", ") + text(*items) + (first.empty() ? "" : "...");
  return inside.empty() ? "array" : "[" + inside + "]";
}

std::string object_text(const Value& schema, int depth) {
  const Value* const properties = schema.find("properties");
  const Value* const others = schema.find("additionalProperties");
  if (properties == nullptr || !properties->is_object() || properties->size() == 0) {
    const bool map = others != nullptr && others->is_object();
    return map ? fmt::format("{{string: {}}}", text_at(*others, depth)) : "object";
  }
  const Value::Array& required = elements_of(schema.find("required"));
  std::string inside;
  for (const auto& [name, member] : properties->as_object()) {
    const bool optional = std::ranges::find(required, Value{name}) == required.end();
    inside += fmt::format("{}{}{}: {}", inside.empty() ? "" : ", ", name, optional ? "?" : "", text_at(member, depth));
  }
  return "{" + inside + "}";
}

std::string typed_text(const Value& schema, const std::string& type, int depth) {
  if (type == "array") return array_text(schema, depth);
  if (type == "object") return object_text(schema, depth);
  return type;
}

std::string text_at(const Value& schema, int depth) {
  if (--depth < 0 || !schema.is_object()) return "any";
  if (const Value* only = schema.find("const")) return only->dump();
  const auto json = [](const Value& value) { return value.dump(); };
  const auto text = [depth](const Value& value) { return text_at(value, depth); };
  for (const std::string_view name : {"enum", "anyOf", "oneOf"}) {
    const Value::Array& choices = elements_of(schema.find(name));
    if (!choices.empty()) return name == "enum" ? joined(choices, " | ", json) : joined(choices, " | ", text);
  }
  const Value* const type = schema.find("type");
  if (type != nullptr && type->is_string()) return typed_text(schema, type->as_string(), depth);
  const Value::Array& types = elements_of(type);
  if (!types.empty()) {
    return joined(types, " | ", [&](const Value& one) {
      return one.is_string() ? typed_text(schema, one.as_string(), depth) : "any";
    });
  }
  if (schema.find("properties") != nullptr) return object_text(schema, depth);
  const std::string reference = text_of(schema, "$ref");
  return reference.empty() ? "any" : reference.substr(reference.rfind('/') + 1);
}

}  // namespace

std::string schema_text(const Value& schema) { return text_at(schema, kDepthMax); }

}  // namespace wirecall::cli
