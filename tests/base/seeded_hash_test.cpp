#include "base/seeded_hash.hpp"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

namespace wirecall {
namespace {

constexpr std::size_t kBuckets = 1024;

std::vector<std::size_t> shares(const SeededHash& hash, const std::vector<std::string>& names) {
  std::vector<std::size_t> counts(kBuckets);
  for (const std::string& name : names) ++counts[hash(name) % kBuckets];
  return counts;
}

TEST(SeededHash, names_that_collide_in_one_table_do_not_in_another) {
  const SeededHash known;
  std::vector<std::string> colliding;
  for (std::size_t i = 0; colliding.size() < 1000; ++i) {
    std::string name = "name." + std::to_string(i);
    if (known(name) % kBuckets == 7) colliding.push_back(std::move(name));
  }
  EXPECT_EQ(shares(known, colliding)[7], 1000U);
  const std::vector<std::size_t> elsewhere = shares(SeededHash{}, colliding);
  EXPECT_LT(*std::ranges::max_element(elsewhere), 20U) << "1000 names in 1024 buckets";
}

TEST(SeededHash, depends_on_every_byte_and_the_length) {
  const SeededHash hash;
  std::set<std::size_t> seen;
  std::size_t names = 0;
  for (std::size_t size = 0; size <= 40; ++size) {
    std::string name(size, 'a');
    seen.insert(hash(name));
    ++names;
    for (char& byte : name) {
      for (const char other : {'\0', 'b'}) {
        byte = other;
        seen.insert(hash(name));
        ++names;
      }
      byte = 'a';
    }
  }
  EXPECT_EQ(seen.size(), names);
  EXPECT_EQ(hash("a name"), hash(std::string{"a name"}));
}

}  // namespace
}  // namespace wirecall
