#include "cli/view/blobs.hpp"

#include <gtest/gtest.h>
#include <string>

namespace wirecall::cli {
namespace {

using namespace std::string_literals;

TEST(Blobs, content_is_known_by_its_first_bytes) {
  EXPECT_TRUE(json_of_content("\x93NUMPY\1\0..."s).starts_with(R"({"$npy":")"));
  for (const std::string& image : {"\x89PNG\r\n\x1a\n..."s, "\xff\xd8\xff\xe0"s, "GIF89a..."s, "RIFF\4\0\0\0WEBPVP8 "s,
                                   "II*\0...."s, "BM\x08\0\0\0\1\2"s}) {
    EXPECT_TRUE(json_of_content(image).starts_with(R"({"$image":")")) << image;
  }
  EXPECT_EQ(json_of_content(" [1, 2]\n"), "[1, 2]");
  EXPECT_EQ(json_of_content("BMW\n"), "\"BMW\\n\"");
  EXPECT_EQ(json_of_content("RIFF"), "\"RIFF\"");
  EXPECT_EQ(json_of_content(""), "\"\"");
  EXPECT_EQ(json_of_content("\xff"), R"({"$bytes":"/w=="})");
}

TEST(Blobs, a_result_that_is_nothing_else_is_a_file) {
  const std::string npy = "\x93NUMPY\1\0\x4e\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n"s;
  const auto array = blob_of(json_of_content(npy));
  ASSERT_TRUE(array.has_value());
  EXPECT_EQ(array->content, npy);
  EXPECT_EQ(array->description, "an array of <f4 (2, 3)");
  EXPECT_EQ(array->suffix, ".npy");

  const std::string jpeg = "\xff\xd8\xff\xe0"s;
  const auto image = blob_of(json_of_content(jpeg));
  ASSERT_TRUE(image.has_value());
  EXPECT_EQ(image->content, jpeg);
  EXPECT_EQ(image->suffix, ".jpg");

  const auto bytes = blob_of(R"({"$bytes":"aGk="})");
  ASSERT_TRUE(bytes.has_value());
  EXPECT_EQ(bytes->content, "hi");
}

TEST(Blobs, anything_else_is_none) {
  for (const std::string json : {R"([{"$bytes":"aGk="}])", R"({"$bytes":"!"})", R"({"$bytes":"aGk=","a":1})",
                                 R"({"$bytes":7})", R"({"$other":"aGk="})", R"({"a":1})", "7", "\"$npy\""}) {
    EXPECT_FALSE(blob_of(json).has_value()) << json;
  }
  EXPECT_EQ(blob_of(R"({"$npy":""})").value().description, "an array of ? (?)");
}

}  // namespace
}  // namespace wirecall::cli
