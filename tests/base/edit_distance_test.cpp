// The search for the name that somebody has mistyped: what it finds, and that it ends however many names there are.
#include "base/edit_distance.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace wirecall {
namespace {

struct Names {
  SpelledName& add(std::string name) {
    texts.push_back(std::move(name));
    known.push_back({.name = texts.back()});
    spelled.add(known.back());
    return known.back();
  }
  // What is found, and how many names were looked at closely.
  std::string_view nearest(std::string_view word) {
    looked_at = 0;
    return spelled.nearest(word, [&](std::string_view) {
      ++looked_at;
      return true;
    });
  }

  std::deque<std::string> texts;
  std::deque<SpelledName> known;
  SpelledNames spelled;
  std::size_t looked_at = 0;
};

TEST(SpelledNames, finds_the_nearest_of_names_of_several_sizes) {
  Names names;
  for (const char* name : {"subtract", "sum", "get_data", "user.create", "user.delete", "x"}) names.add(name);
  EXPECT_EQ(names.nearest("subtrac"), "subtract");
  EXPECT_EQ(names.nearest("usbtract"), "subtract");
  EXPECT_EQ(names.nearest("sun"), "sum");
  EXPECT_EQ(names.nearest("user.delet"), "user.delete");
  EXPECT_EQ(names.nearest("multiply"), "");
  EXPECT_EQ(names.nearest(""), "");
  EXPECT_EQ(names.nearest(std::string(65, 'x')), "");
}

TEST(SpelledNames, finds_no_name_that_has_been_removed) {
  Names names;
  SpelledName& first = names.add("sum");
  SpelledName& second = names.add("sun");
  names.add("sub");
  names.spelled.remove(first);
  EXPECT_EQ(names.nearest("sumn"), "sun");
  names.spelled.remove(second);
  EXPECT_EQ(names.nearest("sumn"), "sub");
}

TEST(SpelledNames, leaves_out_names_that_do_not_count) {
  Names names;
  names.add("sum");
  names.add("sump");
  EXPECT_EQ(names.spelled.nearest("sumx", [](std::string_view name) { return name == "sum"; }), "sum");
}

// Permutations of one text: their spelling leaves all of them open.
TEST(SpelledNames, compares_few_names_however_many_could_be_near) {
  Names names;
  std::string name = "abcdefgh";
  for (int i = 0; i < 40'320; ++i) {
    names.add(name);
    std::ranges::next_permutation(name);
  }
  static_cast<void>(names.nearest("hgfedcbx"));
  EXPECT_LE(names.looked_at, kComparedBytesTogether / name.size());
}

TEST(SpelledNames, looks_at_no_more_spellings_than_it_may) {
  Names names;
  for (std::size_t i = 0; i < 2 * kSpellingsLookedAt; ++i) {
    std::string name(8, 'a');
    for (std::size_t digit = i, at = 0; digit != 0; digit /= 8, ++at) name[at] = static_cast<char>('a' + digit % 8);
    names.add(name);
  }
  std::size_t asked = 0;
  static_cast<void>(names.spelled.nearest("aaaaaaaz", [&](std::string_view) {
    ++asked;
    return false;
  }));
  EXPECT_LE(asked, kSpellingsLookedAt);
}

}  // namespace
}  // namespace wirecall
