// nlohmann's values on the wire.
#include "wirecall/adapt/nlohmann.hpp"

#include <cmath>
#include <limits>

#include "tests/adapt/values.hpp"

namespace wirecall {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

struct Report {
  int number;
  json body;
  std::optional<json> extra;
};

TEST(Nlohmann, keeps_values) {
  test::expect_values_kept<json>();
  test::expect_values_kept<ordered_json>();
}

TEST(Nlohmann, is_what_its_own_parser_makes) {
  for (const std::string_view text : test::kSameText) {
    const json own = json::parse(text);
    const auto ours = from_json<json>(text);
    ASSERT_TRUE(ours);
    EXPECT_EQ(*ours, own);
    EXPECT_EQ(ours->type(), own.type()) << text;
  }
}

TEST(Nlohmann, bounds_depth) {
  test::expect_depth_bounded<json>();
  json deep = json::array();
  for (std::uint32_t i = 0; i < kDepthMax; ++i) deep = json::array({std::move(deep)});
  EXPECT_THROW(static_cast<void>(to_json(deep)), Error);
}

TEST(Nlohmann, is_parameter_result_and_member) {
  test::expect_called<json>();
  test::expect_called<ordered_json>();
  const auto report = from_json<Report>(R"({"body":{"b":1,"a":[]},"number":7})");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->body.at("b"), 1);
  EXPECT_EQ(to_json(*report), R"({"number":7,"body":{"a":[],"b":1}})");
}

TEST(Nlohmann, keeps_the_order_of_ordered_json) {
  EXPECT_EQ(test::through_json<ordered_json>(R"({"z":1,"a":{"y":2,"b":3}})"), R"({"z":1,"a":{"y":2,"b":3}})");
  EXPECT_EQ(test::through_json<json>(R"({"z":1,"a":2})"), R"({"a":2,"z":1})");
}

TEST(Nlohmann, refuses_a_name_that_stands_twice) {
  EXPECT_EQ(test::through_json<json>(R"([{"a":1,"\u0061":2}])"),
            R"(error {"loc":[0,"a"],"expected":"member given once","got":"2"})");
  EXPECT_NE(test::through_json<ordered_json>(R"({"a":1,"b":0,"a":2})").find("member given once"), std::string::npos);
}

TEST(Nlohmann, has_binary_data_in_msgpack) {
  const std::string data{
      "\xC4\x03"
      "abc",
      5};
  const auto bytes = std::as_bytes(std::span{data});
  const auto value = from_msgpack<json>(bytes);
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, json::binary({'a', 'b', 'c'}));
  EXPECT_EQ(to_json(*value), R"({"$bytes":"YWJj"})");
  EXPECT_EQ(to_msgpack(*value), std::vector(bytes.begin(), bytes.end()));
  const std::string npy{
      "\xD4\x4E"
      "x",
      3};
  const auto extension = std::as_bytes(std::span{npy});
  EXPECT_EQ(to_msgpack(*from_msgpack<json>(extension)), std::vector(extension.begin(), extension.end()));
  EXPECT_TRUE(from_json<json>(R"({"$bytes":"YWJj"})")->is_object());
}

TEST(Nlohmann, cannot_send_what_json_has_not) {
  EXPECT_THROW(static_cast<void>(to_json(json(std::numeric_limits<double>::infinity()))), Error);
  EXPECT_THROW(static_cast<void>(to_json(json("\xFF"))), Error);
  EXPECT_THROW(static_cast<void>(to_json(json(json::value_t::discarded))), Error);
}

}  // namespace
}  // namespace wirecall
