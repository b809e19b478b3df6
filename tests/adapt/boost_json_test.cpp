// Boost.JSON's values on the wire.
#include "wirecall/adapt/boost_json.hpp"

#include <boost/json/src.hpp>

#include "tests/adapt/values.hpp"

namespace wirecall {
namespace {

namespace json = boost::json;

struct Report {
  int number;
  json::value body;
  json::object named;
};

TEST(BoostJson, keeps_values) { test::expect_values_kept<json::value>(); }

TEST(BoostJson, is_what_its_own_parser_makes) {
  for (const std::string_view text : test::kSameText) {
    if (text == "1.7976931348623157e+308" || text == "5e-324" || text == "0.1")
      continue;  // its own parser is not exact
    const json::value own = json::parse({text.data(), text.size()});
    const auto ours = from_json<json::value>(text);
    ASSERT_TRUE(ours);
    EXPECT_EQ(*ours, own);
    EXPECT_EQ(ours->kind(), own.kind()) << text;
  }
}

TEST(BoostJson, bounds_depth) {
  test::expect_depth_bounded<json::value>();
  json::value deep = json::array();
  for (std::uint32_t i = 0; i < kDepthMax; ++i) {
    json::array outer;
    outer.push_back(std::move(deep));
    deep = std::move(outer);
  }
  EXPECT_THROW(static_cast<void>(to_json(deep)), Error);
}

TEST(BoostJson, is_parameter_result_and_member) {
  test::expect_called<json::value>();
  const auto report = from_json<Report>(R"({"body":[1],"named":{"b":1,"a":[]},"number":7})");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->named.at("b"), 1);
  EXPECT_EQ(to_json(*report), R"({"number":7,"body":[1],"named":{"b":1,"a":[]}})");
  EXPECT_FALSE(from_json<json::object>("[1]"));
  EXPECT_FALSE(from_json<json::array>("{}"));
  EXPECT_EQ(test::through_json<json::array>("[1,[2]]"), "[1,[2]]");
}

TEST(BoostJson, refuses_a_name_that_stands_twice) {
  EXPECT_NE(test::through_json<json::value>(R"([{"a":1,"\u0061":2}])").find("no name stands twice"), std::string::npos);
  EXPECT_EQ(test::through_json<json::value>(R"([{"a":1},{"a":2}])"), R"([{"a":1},{"a":2}])");
}

TEST(BoostJson, has_binary_data_in_msgpack_as_base64) {
  const std::string data{
      "\x91\xC4\x03"
      "abc",
      6};
  const auto bytes = std::as_bytes(std::span{data});
  const auto value = from_msgpack<json::value>(bytes);
  ASSERT_TRUE(value);
  EXPECT_EQ(to_json(*value), R"([{"$bytes":"YWJj"}])");
  EXPECT_EQ(to_msgpack(*value), std::vector(bytes.begin(), bytes.end()));
}

TEST(BoostJson, uses_the_memory_that_it_was_given) {
  unsigned char memory[4096];
  json::static_resource resource{memory};
  json::value value(&resource);
  const std::string text = std::string{R"({"a":[1,2]})"} + std::string(kPaddingBytes, '\0');
  const auto reader = json_codec().reader();
  reader->reset({text.data(), text.size() - kPaddingBytes});
  ASSERT_TRUE(decode(*reader, value));
  EXPECT_EQ(value.at("a").as_array().storage().get(), &resource);
}

}  // namespace
}  // namespace wirecall
