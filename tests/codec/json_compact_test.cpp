#include "codec/json_compact.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "wirecall/reflect.hpp"

namespace wirecall::json {
namespace {

struct Behind {
  int number;
};

std::string compacted(const std::string& text) {
  const std::vector<char> from(text.begin(), text.end());  // nothing behind it is ours
  std::vector<char> to(text.size());
  return {to.data(), compact(to.data(), {from.data(), from.size()})};
}

TEST(Compact, white_space_goes_but_for_that_in_strings) {
  EXPECT_EQ(compacted(" { \"a b\" : [ 1 , \"\\\" \" ]\n, \"\" :\t null } "), "{\"a b\":[1,\"\\\" \"],\"\":null}");
  EXPECT_EQ(compacted("\" a \""), "\" a \"");
  EXPECT_EQ(compacted("\"a\" "), "\"a\"");
  EXPECT_EQ(compacted("\""), "\"");
  EXPECT_EQ(compacted(""), "");
}

TEST(Compact, strings_end_where_they_end_however_long_they_are) {
  for (std::size_t size = 0; size < 150; ++size) {
    for (const std::string middle : {"", " ", "\\\"", "\\\\", "\xC3\xA9"}) {
      const std::string string = '"' + std::string(size, 'x') + middle + " y\"";
      EXPECT_EQ(compacted(string), string);
      EXPECT_EQ(compacted("[ " + string + " , " + string + " ]"), "[" + string + "," + string + "]");
      // The reader, which passes over such a string when nobody asks for it, sees where it ends as well.
      const auto read = from_json<Behind>("{\"s\":" + string + ",\"number\":7}");
      ASSERT_TRUE(read.has_value());
      EXPECT_EQ(read->number, 7);
    }
  }
}

TEST(Compact, no_control_byte_comes_out_whatever_the_text_is) {
  // Control bytes within strings, which valid JSON has not, at every place of long and short ones.
  for (std::size_t size = 0; size < 100; ++size) {
    for (const char control : {'\n', '\r', '\0', '\x1F'}) {
      for (const std::string before : {"", "\\", "[\"", "\xC3\xA9"}) {
        const std::string text = '"' + std::string(size, 'x') + before + control + "y\", \"z\"";
        for (const char c : compacted(text)) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << text;
      }
    }
  }
}

}  // namespace
}  // namespace wirecall::json
