#include "wirecall/schema.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "support.hpp"
#include "wirecall/value.hpp"

namespace wirecall {

struct Version {
  int major;
};
template <>
struct Adapt<Version> {
  static bool decode(Reader& reader, Version& out) { return wirecall::decode(reader, out.major); }
  static std::string schema() { return R"({"type":"integer","title":"version"})"; }
};

struct Job {
  int priority = 0;
  std::string class_;
  std::optional<std::string> note;
  std::vector<int> sizes;
  Version version;
};
template <>
struct Describe<Job> {
  static constexpr std::string_view description = "One unit of work.";
  static constexpr About members[] = {
      {.member = "priority", .description = "Higher goes first.", .minimum = 0, .maximum = 9, .optional = true},
      {.member = "class_", .name = "class", .format = "email", .length_min = 1},
      {.member = "note", .description = "For people.", .length_max = 80},
      {.member = "sizes", .length_min = 1, .length_max = 4},
      {.member = "version", .description = "Of the peer."},
  };
};

namespace {

using nlohmann::json;

template <class T>
json schema_of() {
  return json::parse(json_schema(type_info<T>()));
}

enum class Color { red, green };
struct Point {
  int x;
  int y;
};
struct Line {
  Point from;
  Point to;
};
struct Tree {
  std::string name;
  std::vector<Tree> children;
};
struct Holder {
  Tree tree;
  std::optional<Color> color;
};
template <class T>
struct Page {
  std::vector<T> items;
};
namespace other {
struct Point {
  double r;
};
}  // namespace other
struct TwoPoints {
  Point a, b;
  other::Point c, d;
};

TEST(Schema, ScalarsHaveTheirTypeAndRange) {
  EXPECT_EQ(schema_of<bool>(), R"({"type":"boolean"})"_json);
  EXPECT_EQ(schema_of<std::uint8_t>(), R"({"type":"integer","minimum":0,"maximum":255})"_json);
  EXPECT_EQ(schema_of<std::int64_t>(),
            R"({"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807})"_json);
  EXPECT_EQ(schema_of<std::uint64_t>(), R"({"type":"integer","minimum":0,"maximum":18446744073709551615})"_json);
  EXPECT_EQ(schema_of<double>(), R"({"type":"number"})"_json);
  EXPECT_EQ(schema_of<std::string>(), R"({"type":"string"})"_json);
  EXPECT_EQ(schema_of<Color>(), R"({"type":"string","enum":["red","green"]})"_json);
  EXPECT_EQ(schema_of<std::monostate>(), R"({"type":"null"})"_json);
  EXPECT_EQ(schema_of<std::chrono::sys_seconds>(), R"({"type":"string","format":"date-time"})"_json);
  EXPECT_EQ(schema_of<std::chrono::duration<double>>(), R"({"type":"number"})"_json);
  EXPECT_EQ(schema_of<Value>(), json::object());
  EXPECT_EQ(schema_of<Version>(), R"({"type":"integer","title":"version"})"_json);
  EXPECT_EQ(schema_of<std::vector<std::byte>>(),
            R"({"type":"object","properties":{"$bytes":{"type":"string","contentEncoding":"base64"}},
                "required":["$bytes"],"additionalProperties":false})"_json);
}

TEST(Schema, ContainersTellWhatTheyHold) {
  EXPECT_EQ(schema_of<std::vector<bool>>(), R"({"type":"array","items":{"type":"boolean"}})"_json);
  EXPECT_EQ((schema_of<std::array<bool, 2>>()),
            R"({"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":2})"_json);
  EXPECT_EQ((schema_of<std::tuple<bool, std::string>>()),
            R"({"type":"array","items":[{"type":"boolean"},{"type":"string"}],"additionalItems":false,
                "minItems":2,"maxItems":2})"_json);
  EXPECT_EQ((schema_of<std::map<std::string, bool>>()),
            R"({"type":"object","additionalProperties":{"type":"boolean"}})"_json);
  EXPECT_EQ((schema_of<std::variant<bool, std::string>>()), R"({"anyOf":[{"type":"boolean"},{"type":"string"}]})"_json);
  EXPECT_EQ(schema_of<std::optional<bool>>(), R"({"anyOf":[{"type":"boolean"},{"type":"null"}]})"_json);
}

TEST(Schema, DocumentedMembersCarryDocsAndLimits) {
  EXPECT_EQ(schema_of<Job>(), R"({"title":"Job","description":"One unit of work.","type":"object","properties":{
    "priority":{"type":"integer","minimum":0,"maximum":9,"description":"Higher goes first."},
    "class":{"type":"string","format":"email","minLength":1},
    "note":{"anyOf":[{"type":"string","maxLength":80},{"type":"null"}],"description":"For people."},
    "sizes":{"type":"array","items":{"type":"integer","minimum":-2147483648,"maximum":2147483647},"minItems":1,"maxItems":4},
    "version":{"allOf":[{"type":"integer","title":"version"}],"description":"Of the peer."}},
    "required":["class","sizes","version"]})"_json);
}

TEST(Schema, StructsUsedTwiceAreDefinedOnce) {
  const json schema = schema_of<Line>();
  EXPECT_EQ(schema["properties"]["from"], R"({"$ref":"#/$defs/Point"})"_json);
  EXPECT_EQ(schema["properties"]["to"], R"({"$ref":"#/$defs/Point"})"_json);
  EXPECT_EQ(schema["$defs"]["Point"]["required"], R"(["x","y"])"_json);
  EXPECT_EQ(schema["$defs"].size(), 1U);
  EXPECT_FALSE(schema_of<Page<Point>>().contains("$defs")) << "used once, it stands where it is used";
}

TEST(Schema, RecursiveStructsReferToThemselves) {
  const json tree = schema_of<Tree>();
  EXPECT_EQ(tree["$ref"], "#/$defs/Tree");
  EXPECT_EQ(tree["$defs"]["Tree"]["properties"]["children"]["items"]["$ref"], "#/$defs/Tree");
  const json holder = schema_of<Holder>();
  EXPECT_EQ(holder["properties"]["tree"]["$ref"], "#/$defs/Tree");
  EXPECT_EQ(holder["$defs"]["Tree"]["properties"]["children"]["items"]["$ref"], "#/$defs/Tree");
}

TEST(Schema, StructsOfOneNameAreToldApart) {
  const json schema = schema_of<TwoPoints>();
  EXPECT_EQ(schema["properties"]["a"]["$ref"], "#/$defs/Point");
  EXPECT_EQ(schema["properties"]["d"]["$ref"], "#/$defs/Point2");
  EXPECT_TRUE(schema["$defs"]["Point2"]["properties"].contains("r"));
}

TEST(Schema, AWriterSharesDefinitionsBetweenSchemas) {
  Buffer text;
  const auto writer = json_codec().writer();
  writer->reset(text);
  SchemaWriter schemas{*writer, "#/components/schemas/"};
  writer->begin_array(2);
  describe_schema<std::vector<Line>>(schemas);
  describe_schema<Point>(schemas);
  EXPECT_TRUE(schemas.has_definitions());
  schemas.write_definitions();
  writer->end_array();
  EXPECT_EQ(json::parse(text.view()), R"([{"type":"array","items":{"$ref":"#/components/schemas/Line"}},
    {"$ref":"#/components/schemas/Point"},
    {"Line":{"title":"Line","type":"object","properties":{"from":{"$ref":"#/components/schemas/Point"},
       "to":{"$ref":"#/components/schemas/Point"}},"required":["from","to"]},
     "Point":{"title":"Point","type":"object","properties":{"x":{"type":"integer","minimum":-2147483648,"maximum":2147483647},
       "y":{"type":"integer","minimum":-2147483648,"maximum":2147483647}},"required":["x","y"]}}])"_json);
}

TEST(Schema, TemplatesHaveNamesThatFitAReference) {
  struct TwoPages {
    Page<int> first, second;
  };
  const json schema = schema_of<TwoPages>();
  EXPECT_EQ(schema["properties"]["first"]["$ref"], "#/$defs/Page_int");
  EXPECT_TRUE(schema["$defs"].contains("Page_int"));
}

TEST(Schema, ASchemaThatIsTextStandsWhereItIsUsedOrIsDefinedWithWhatItRefersTo) {
  static constexpr SchemaDefinition kAlone[] = {{.name = "m.A", .json = R"({"type":"object"})"}};
  static constexpr SchemaDefinition kOrder[] = {
      {.name = "m.Order", .json = R"({"properties":{"item":{"$ref":"#/$defs/m.Order.Item"}}})"},
      {.name = "m.Order.Item", .json = R"({"type":"string"})"}};
  const TypeInfo alone{.definitions = kAlone};
  EXPECT_EQ(json_schema(alone), kAlone[0].json);
  const TypeInfo order{.definitions = kOrder};
  const json defined = {{"m.Order", json::parse(kOrder[0].json)}, {"m.Order.Item", json::parse(kOrder[1].json)}};
  EXPECT_EQ(json::parse(json_schema(order)), json({{"$ref", "#/$defs/m.Order"}, {"$defs", defined}}));

  const TypeInfo again{.definitions = kOrder};  // as another use of the same type has it
  const TypeInfo* const each[] = {&order, &again, &alone};
  const json both = json::parse(json_schema({.kind = TypeKind::tuple, .length = 3, .types = each}));
  EXPECT_EQ(both["$defs"], defined);
  EXPECT_EQ(both["items"], json({{{"$ref", "#/$defs/m.Order"}}, {{"$ref", "#/$defs/m.Order"}}, {{"type", "object"}}}));

  const About about{.member = "a", .description = "What for."};
  const MemberInfo member{.name = "a", .type = &alone, .about = &about, .required = false};
  const json holder = json::parse(json_schema({.kind = TypeKind::object, .name = "Holder", .members = {&member, 1}}));
  EXPECT_EQ(holder["properties"]["a"], json({{"allOf", {{{"type", "object"}}}}, {"description", "What for."}}));
}

TEST(Schema, KindsAreToldApartByWhatTypesAccept) {
  EXPECT_TRUE(accepts(type_info<std::optional<int>>(), ValueKind::null));
  EXPECT_TRUE(accepts(type_info<std::optional<int>>(), ValueKind::number));
  EXPECT_FALSE(accepts(type_info<std::optional<int>>(), ValueKind::string));
  EXPECT_TRUE((accepts(type_info<std::variant<int, std::string>>(), ValueKind::string)));
  EXPECT_TRUE(accepts(type_info<std::vector<std::byte>>(), ValueKind::object));
  EXPECT_TRUE(accepts(type_info<Value>(), ValueKind::array));
}

TEST(Schema, an_integer_that_is_not_bound_to_64_bits_has_no_bounds_but_those_stated) {
  TypeInfo any = type_info<std::int64_t>();
  EXPECT_EQ(json::parse(json_schema(any)),
            json::parse(R"({"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807})"));
  any.maximum = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(json::parse(json_schema(any)), json::parse(R"({"type":"integer"})"));
}

}  // namespace
}  // namespace wirecall
