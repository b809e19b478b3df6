// Which topics a pattern takes, and which names are topics and patterns at all.
#include "session/topic_pattern.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace wirecall::session {
namespace {

TEST(TopicPattern, a_plain_topic_takes_itself_alone) {
  EXPECT_TRUE(matches("news", "news"));
  EXPECT_TRUE(matches("a.b.c", "a.b.c"));
  for (const std::string_view other : {"new", "newss", "News", "news.a", "a.news"}) {
    EXPECT_FALSE(matches("news", other)) << other;
  }
}

TEST(TopicPattern, a_star_takes_one_word) {
  EXPECT_TRUE(matches("sensors.*.temp", "sensors.kitchen.temp"));
  EXPECT_TRUE(matches("*", "a"));
  EXPECT_TRUE(matches("a.*", "a.b"));
  for (const std::string_view other : {"sensors.temp", "sensors.a.b.temp", "sensors.a.humidity", "sensors.a"}) {
    EXPECT_FALSE(matches("sensors.*.temp", other)) << other;
  }
  EXPECT_FALSE(matches("a.*", "a"));
  EXPECT_FALSE(matches("*", "a.b"));
}

TEST(TopicPattern, a_last_greater_than_takes_one_word_or_more) {
  EXPECT_TRUE(matches(">", "a"));
  EXPECT_TRUE(matches(">", "a.b.c"));
  EXPECT_TRUE(matches("a.>", "a.b"));
  EXPECT_TRUE(matches("a.*.>", "a.b.c.d"));
  EXPECT_FALSE(matches("a.>", "a"));
  EXPECT_FALSE(matches("a.*.>", "a.b"));
  EXPECT_FALSE(matches("a.>", "ab.c"));
}

TEST(TopicPattern, what_is_no_topic_and_no_pattern_is_told_from_what_is) {
  for (const std::string_view good : {"a", "a.b", "a-b.c_d", "\xC3\xA4.b"}) {
    EXPECT_TRUE(is_topic(good)) << good;
    EXPECT_TRUE(is_pattern(good)) << good;
  }
  for (const std::string_view bad :
       {"", ".", ".a", "a.", "a..b", "a b", "a\tb", "a\nb", "a\x7F", "a*", "*a.b", "a.b>"}) {
    EXPECT_FALSE(is_topic(bad)) << bad;
    EXPECT_FALSE(is_pattern(bad)) << bad;
  }
  for (const std::string_view pattern : {"*", ">", "a.*", "*.*", "a.>", "*.a.>"}) {
    EXPECT_FALSE(is_topic(pattern)) << pattern;
    EXPECT_TRUE(is_pattern(pattern)) << pattern;
  }
  EXPECT_FALSE(is_pattern(">.a"));
  EXPECT_FALSE(is_pattern(">.>"));
  EXPECT_TRUE(is_topic(std::string(255, 'a')));
  EXPECT_FALSE(is_topic(std::string(256, 'a')));
}

}  // namespace
}  // namespace wirecall::session
