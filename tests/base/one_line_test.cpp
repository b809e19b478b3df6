#include "base/one_line.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace wirecall {
namespace {

std::string as_one_line(const std::string& text) {
  std::vector<char> exact(text.begin(), text.end());  // nothing behind it is ours
  make_one_line(exact.data(), exact.data() + exact.size());
  return {exact.begin(), exact.end()};
}

bool breaks(const std::string& text) {
  const std::vector<char> exact(text.begin(), text.end());
  return has_line_break({exact.data(), exact.size()});
}

TEST(OneLine, a_break_is_found_and_replaced_wherever_it_stands) {
  for (std::size_t size = 1; size < 140; ++size) {
    const std::string plain(size, 'x');
    EXPECT_FALSE(breaks(plain));
    EXPECT_EQ(as_one_line(plain), plain);
    for (std::size_t at = 0; at < size; ++at) {
      for (const char c : {'\n', '\r'}) {
        std::string text = plain;
        text[at] = c;
        EXPECT_TRUE(breaks(text)) << size << " bytes, one at " << at;
        text[at] = ' ';
        std::string broken = text;
        broken[at] = c;
        EXPECT_EQ(as_one_line(broken), text);
      }
    }
  }
}

TEST(OneLine, nothing_else_is_a_break) {
  std::string all;
  for (int c = 0; c < 256; ++c) {
    if (c != '\n' && c != '\r') all += static_cast<char>(c);
  }
  EXPECT_FALSE(breaks(all));
  EXPECT_EQ(as_one_line(all), all);
  EXPECT_FALSE(breaks(""));
  EXPECT_EQ(as_one_line(""), "");
}

TEST(OneLine, many_breaks_are_as_many_blanks) {
  EXPECT_EQ(as_one_line(std::string(200, '\n')), std::string(200, ' '));
  EXPECT_EQ(as_one_line("{\r\n\t\"a\": 1\r\n}\r\n"), "{  \t\"a\": 1  }  ");
}

}  // namespace
}  // namespace wirecall
