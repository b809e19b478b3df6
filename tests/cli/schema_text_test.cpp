#include "cli/view/schema_text.hpp"

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
  EXPECT_EQ(text(R"({"type":"array","items":[{"type":"string"},{"type":"integer"}],"additionalItems":false})"),
            "[string, integer]");
  EXPECT_EQ(text(R"({"type":"array","items":[{"type":"string"}],"additionalItems":{"type":"integer"}})"),
            "[string, integer...]");
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

TEST(SchemaText, of_a_definition_has_its_members_once) {
  EXPECT_EQ(text(R"({"$ref":"#/$defs/shop.Order","$defs":{
      "shop.Order":{"properties":{"first":{"$ref":"#/$defs/Item"},"next":{"$ref":"#/$defs/Item"},"none":{"$ref":"#/$defs/x"}}},
      "Item":{"type":"object","properties":{"size":{"$ref":"#/$defs/Size"}},"required":["size"]},
      "Size":{"enum":["small","large"]}}})"),
            R"(Order{first?: Item{size: "small" | "large"}, next?: Item, none?: x})");
  EXPECT_EQ(text(R"({"$ref":"#/$defs/Tree","$defs":{
      "Tree":{"properties":{"children":{"type":"array","items":{"$ref":"#/$defs/Tree"}}},"required":["children"]}}})"),
            "Tree{children: [Tree]}");
}

TEST(SchemaText, of_one_that_is_said_more_of_is_that) {
  EXPECT_EQ(text(R"({"description":"what for","allOf":[{"type":"integer"}]})"), "integer");
}

TEST(SchemaText, does_not_look_for_ever) {
  std::string schema = "{}";
  for (int i = 0; i < 20; ++i) schema = R"({"type":"array","items":)" + schema + "}";
  EXPECT_EQ(text(schema), "[[[[[[[[any]]]]]]]]");
}

}  // namespace
}  // namespace wirecall::cli
