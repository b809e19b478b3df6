// Text of another's for a terminal or a log.
#include "base/printable.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace wirecall {
namespace {

using namespace std::string_view_literals;

TEST(Printable, shows_control_bytes_instead_of_sending_them) {
  EXPECT_EQ(printable("a\x1b[31mb\n\x7f"), "a\\x1b[31mb\\x0a\\x7f");
  EXPECT_EQ(printable("\0"sv), "\\x00");
  EXPECT_EQ(printable("\xc2\x80\xc2\x9f"), "\\xc2\\x80\\xc2\\x9f");  // U+0080, U+009F
}

TEST(Printable, shows_what_breaks_lines_or_turns_their_direction) {
  EXPECT_EQ(printable("a\xe2\x80\xa8"
                      "b"),
            "a\\xe2\\x80\\xa8"
            "b");                                                    // U+2028
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");           // U+202E
  EXPECT_EQ(printable("\xe2\x81\xa6"), "\\xe2\\x81\\xa6");           // U+2066
  EXPECT_EQ(printable("\xf3\xa0\x80\xa0"), "\\xf3\\xa0\\x80\\xa0");  // U+E0020
}

TEST(Printable, leaves_characters_as_they_are) {
  for (const std::string_view text : {""sv, "a b\\\"~"sv, "größer"sv, "\xc2\xa0"sv, "\xed\x9f\xbf"sv, "\xee\x80\x80"sv,
                                      "\xf0\x90\x80\x80"sv, "\xf4\x8f\xbf\xbf"sv}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, shows_each_byte_of_what_is_no_utf8) {
  EXPECT_EQ(printable("\x80z"), "\\x80z");
  EXPECT_EQ(printable("\xc3(\xe2\x82"), "\\xc3(\\xe2\\x82");         // cut off
  EXPECT_EQ(printable("\xc1\xbf"), "\\xc1\\xbf");                    // overlong
  EXPECT_EQ(printable("\xe0\x9f\xbf"), "\\xe0\\x9f\\xbf");           // overlong
  EXPECT_EQ(printable("\xf0\x8f\xbf\xbf"), "\\xf0\\x8f\\xbf\\xbf");  // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
}

}  // namespace
}  // namespace wirecall
