#include "cli/schema_text.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "wirecall/value.hpp"

namespace wirecall::cli {
namespace {

std::string text(std::string_view schema) { return schema_text(Value::parse(schema).value()); }

TEST(SchemaText, of_plain_types_is_their_name) {
  EXPECT_EQ(text(R"({"type":"integer","minimum":0})"), "integer");
  EXPECT_EQ(text(R"({"type":["string","null"]})"), "string | null");
}

TEST(SchemaText, of_what_says_nothing_is_any) {
  for (const std::string_view schema : {"{}", "true", "null", "7", R"({"type":7})", R"({"description":"x"})"})
    EXPECT_EQ(text(schema), "any");
}

TEST(SchemaText, of_arrays_has_their_elements) {
  EXPECT_EQ(text(R"({"type":"array"})"), "array");
  EXPECT_EQ(text(R"({"type":"array","items":{"type":"string"}})"), "[string]");
  EXPECT_EQ(text(R"({"type":"array","items":{}})"), "[any]");
  EXPECT_EQ(text(R"({"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]})"), "[string, integer]");
  EXPECT_EQ(text(R"({"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"integer"}})"),
            "[string, integer...]");
}

TEST(SchemaText, of_objects_has_their_members) {
  EXPECT_EQ(text(R"({"type":"object"})"), "object");
  EXPECT_EQ(text(R"({"properties":{"a":{"type":"string"},"b":{}},"required":["a"]})"), "{a: string, b?: any}");
  EXPECT_EQ(text(R"({"type":"object","additionalProperties":{"type":"number"}})"), "{string: number}");
}

TEST(SchemaText, of_choices_has_all) {
  EXPECT_EQ(text(R"({"enum":["a",1,null]})"), R"("a" | 1 | null)");
  EXPECT_EQ(text(R"({"const":"a"})"), "\"a\"");
  EXPECT_EQ(text(R"({"anyOf":[{"type":"string"},{"type":"array","items":{"type":"integer"}}]})"), "string | [integer]");
  EXPECT_EQ(text(R"({"oneOf":[{"type":"string"},{}]})"), "string | any");
}

TEST(SchemaText, of_a_reference_is_its_last_word) { EXPECT_EQ(text(R"({"$ref":"#/$defs/Job"})"), "Job"); }

TEST(SchemaText, does_not_look_for_ever) {
  std::string schema = "{}";
  for (int i = 0; i < 20; ++i) schema = R"({"type":"array","items":)" + schema + "}";
  EXPECT_EQ(text(schema), "[[[[[[[[any]]]]]]]]");
}

}  // namespace
}  // namespace wirecall::cli
