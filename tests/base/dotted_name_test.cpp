#include "base/dotted_name.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

namespace wirecall {
namespace {

TEST(Words, a_name_is_words_between_dots) {
  const std::string longest(255, 'x');
  for (const std::string& name :
       std::vector<std::string>{"a", "a.b", "sensors.roof.temp", "ä.ö", "rpc.mine", "a-b_c/d", longest}) {
    EXPECT_TRUE(is_name(name)) << name;
    EXPECT_TRUE(is_pattern(name)) << name;
  }
  for (const std::string none : {"", ".", "a.", ".a", "a..b", "a b", "a\tb", "a\x7f", "*", ">", "a.*", "a.>", "a*"})
    EXPECT_FALSE(is_name(none)) << none;
  EXPECT_FALSE(is_name(std::string(256, 'x')));
  EXPECT_FALSE(is_name(std::string{"a\0b", 3}));
}

TEST(Words, no_character_of_a_name_is_space_or_invisible) {
  for (const std::string none :
       {"\u0085", "\u00a0",     "\u00ad",     "\u061c", "\u1680", "\u180e", "\u2000", "\u200a", "\u200b", "\u200f",
        "\u2028", "\u2029",     "\u202a",     "\u202e", "\u202f", "\u205f", "\u2060", "\u2066", "\u2069", "\u3000",
        "\ufeff", "\U000e0001", "\U000e0041", "ä ",     "ä*",     "ä>",     "ä\x7f",  "ä\t"}) {
    for (const std::string& name : {none, "a" + none, none + "b", "a." + none + ".b", "é" + none}) {
      EXPECT_FALSE(is_name(name)) << name;
      EXPECT_FALSE(is_name_or_prefix(name)) << name;
      EXPECT_FALSE(is_pattern(name)) << name;
    }
  }
  for (const std::string name :
       {"\u00a1", "größe", "\u1681", "\u2010", "\u2027", "\u2070", "\u3001", "日本.東京", "\U0001f600", "\ufffd"})
    EXPECT_TRUE(is_name(name)) << name;
}

TEST(Words, wildcards_are_whole_words_and_the_rest_comes_last) {
  for (const std::string pattern : {"*", ">", "a.*", "*.a", "a.*.b.>", "*.*.>"})
    EXPECT_TRUE(is_pattern(pattern)) << pattern;
  for (const std::string none : {"", "a*", "*a", "a.**", ">.a", "a.>.b", "a>", "a.", "*."})
    EXPECT_FALSE(is_pattern(none)) << none;
}

TEST(Words, a_prefix_has_the_rest_as_its_last_word_alone) {
  for (const std::string name : {"a", "a.b", "a.>", ">", "a.b.>"}) EXPECT_TRUE(is_name_or_prefix(name)) << name;
  for (const std::string none : {"", "*", "a.*", "a.*.>", ">.a", "a>"}) EXPECT_FALSE(is_name_or_prefix(none)) << none;
}

TEST(Words, a_star_is_one_word_and_the_rest_is_one_or_more) {
  const auto yes = [](std::string_view pattern, std::string_view name) {
    EXPECT_TRUE(matches(pattern, name)) << pattern << ' ' << name;
  };
  const auto no = [](std::string_view pattern, std::string_view name) {
    EXPECT_FALSE(matches(pattern, name)) << pattern << ' ' << name;
  };
  yes("a.b", "a.b");
  no("a.b", "a.c");
  no("a.b", "a.b.c");
  no("a.b.c", "a.b");
  no("a.b", "a");
  yes("*", "a");
  no("*", "a.b");
  yes("a.*", "a.b");
  no("a.*", "a");
  no("a.*", "a.b.c");
  yes("*.b", "a.b");
  yes("a.*.c", "a.b.c");
  yes(">", "a");
  yes(">", "a.b.c");
  yes("a.>", "a.b");
  yes("a.>", "a.b.c");
  no("a.>", "a");
  yes("*.>", "a.b");
  no("*.>", "a");
  no("a.*.>", "a.b");
}

TEST(Words, only_their_own_first_word_finds_reserved_names) {
  EXPECT_FALSE(matches(">", "rpc.client.joined"));
  EXPECT_FALSE(matches("*.client.joined", "rpc.client.joined"));
  EXPECT_TRUE(matches("rpc.>", "rpc.client.joined"));
  EXPECT_TRUE(matches("rpc.client.*", "rpc.client.joined"));
  EXPECT_TRUE(matches(">", "rpcs.client"));
}

TEST(Words, a_pattern_lies_within_another_that_stands_for_all_it_stands_for) {
  struct Pair {
    std::string_view allowed;
    std::string_view pattern;
  };
  for (const auto& [allowed, pattern] : {Pair{">", "a"}, Pair{">", ">"}, Pair{">", "*.b.>"}, Pair{"a.>", "a.b"},
                                         Pair{"a.>", "a.*.c"}, Pair{"a.>", "a.>"}, Pair{"*", "a"}, Pair{"*", "*"},
                                         Pair{"a.*.c", "a.b.c"}, Pair{"rpc.*", "rpc.x"}, Pair{"*.>", "a.>"}})
    EXPECT_TRUE(covers(allowed, pattern)) << allowed << " " << pattern;
  for (const auto& [allowed, pattern] :
       {Pair{"a.>", "a"}, Pair{"a.>", ">"}, Pair{"a.>", "*.b"}, Pair{"*", ">"}, Pair{"*", "a.b"}, Pair{"a.*", "a.>"},
        Pair{"a.b", "a.*"}, Pair{"*.b", "a.*"}, Pair{">", "rpc.client.joined"}, Pair{"*.x", "rpc.x"}, Pair{"a.b", "a"},
        Pair{"a", "a.b"}, Pair{"*.>", ">"}, Pair{"*.>", "*"}})
    EXPECT_FALSE(covers(allowed, pattern)) << allowed << " " << pattern;
}

}  // namespace
}  // namespace wirecall
