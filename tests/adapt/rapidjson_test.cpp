// RapidJSON's values on the wire.
#include "wirecall/adapt/rapidjson.hpp"

#include <rapidjson/stringbuffer.h>

#include "tests/adapt/values.hpp"

namespace wirecall {
namespace {

using rapidjson::Document;

struct Report {
  int number;
  Document body;
};

TEST(RapidJson, keeps_values) { test::expect_values_kept<Document>(); }

TEST(RapidJson, is_what_its_own_parser_makes) {
  for (const std::string_view text : test::kSameText) {
    Document own;
    own.Parse<rapidjson::kParseFullPrecisionFlag>(text.data(), text.size());
    ASSERT_FALSE(own.HasParseError());
    const auto ours = from_json<Document>(text);
    ASSERT_TRUE(ours);
    EXPECT_TRUE(*ours == own) << text;
  }
}

TEST(RapidJson, bounds_depth) {
  test::expect_depth_bounded<Document>();
  Document deep;
  deep.SetArray();
  for (std::uint32_t i = 0; i < kDepthMax; ++i) {
    rapidjson::Value outer{rapidjson::kArrayType};
    outer.PushBack(static_cast<rapidjson::Value&>(deep), deep.GetAllocator());
    static_cast<rapidjson::Value&>(deep) = outer;
  }
  EXPECT_THROW(static_cast<void>(to_json(deep)), Error);
}

TEST(RapidJson, is_parameter_result_and_member) {
  test::expect_called<Document>();
  const auto report = from_json<Report>(R"({"body":{"b":1,"a":[]},"number":7})");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->body["b"].GetInt(), 1);
  EXPECT_EQ(to_json(*report), R"({"number":7,"body":{"b":1,"a":[]}})");
  EXPECT_EQ(to_json(report->body["b"]), "1");  // a Value of the document
}

TEST(RapidJson, keeps_a_name_that_stands_twice) {
  EXPECT_EQ(test::through_json<Document>(R"({"a":1,"\u0061":2})"), R"({"a":1,"a":2})");
}

TEST(RapidJson, has_binary_data_in_msgpack_as_base64) {
  const std::string data{
      "\x91\xC4\x03"
      "abc",
      6};
  const auto bytes = std::as_bytes(std::span{data});
  const auto value = from_msgpack<Document>(bytes);
  ASSERT_TRUE(value);
  EXPECT_EQ(to_json(*value), R"([{"$bytes":"YWJj"}])");
  EXPECT_EQ(to_msgpack(*value), std::vector(bytes.begin(), bytes.end()));
}

TEST(RapidJson, cannot_send_what_json_has_not) {
  Document value;
  value.SetString("\xFF", 1);
  EXPECT_THROW(static_cast<void>(to_json(value)), Error);
}

TEST(RapidJson, that_could_not_be_decoded_is_as_it_was) {
  Document value;
  value.SetInt(5);
  const auto reader = json_codec().reader();
  const std::string padded = std::string{"[1,[1e400]]"} + std::string(kPaddingBytes, '\0');
  reader->reset({padded.data(), 11});
  EXPECT_FALSE(decode(*reader, value));
  EXPECT_EQ(value.GetInt(), 5);
}

}  // namespace
}  // namespace wirecall
