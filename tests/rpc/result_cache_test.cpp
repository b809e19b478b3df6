// The bounded table of results alone: against a model, and under keys that somebody has chosen.
#include "rpc/result_cache.hpp"

#include <deque>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <string>

namespace wirecall::rpc {
namespace {

using namespace std::chrono_literals;

CachedValue json(std::string text) { return {Encoding::json, true, std::move(text)}; }

std::string found(ResultCache& cache, std::uint64_t hash, std::string_view key, ResultCache::Time now = 0ns) {
  ResultCache::Entry* const entry = cache.find(hash, key, now);
  return entry != nullptr ? entry->first().bytes : "";
}

// What the cache has to do, in the simplest way: the newest in front.
class Model {
 public:
  explicit Model(const ResultCache::Bounds& bounds) : bounds_(bounds) {}

  std::string find(const std::string& key, ResultCache::Time now) {
    for (auto at = kept_.begin(); at != kept_.end(); ++at) {
      if (at->key != key) continue;
      const Kept found = *at;
      kept_.erase(at);
      if (bounds_.ttl != 0ns && now >= found.expires) return "";
      kept_.push_front(found);
      return found.value;
    }
    return "";
  }
  void insert(const std::string& key, const std::string& value, ResultCache::Time now) {
    std::erase_if(kept_, [&](const Kept& kept) { return kept.key == key; });
    if (bytes_of(key, value) > bounds_.bytes) return;
    kept_.push_front({key, value, now + bounds_.ttl});
    while (kept_.size() > bounds_.entries || bytes() > bounds_.bytes) kept_.pop_back();
  }
  [[nodiscard]] std::size_t entries() const { return kept_.size(); }
  [[nodiscard]] std::size_t bytes() const {
    std::size_t sum = 0;
    for (const Kept& kept : kept_) sum += bytes_of(kept.key, kept.value);
    return sum;
  }

 private:
  struct Kept {
    std::string key;
    std::string value;
    ResultCache::Time expires;
  };
  static std::size_t bytes_of(const std::string& key, const std::string& value) {
    return ResultCache::kEntryBytes + key.size() + value.size();
  }
  ResultCache::Bounds bounds_;
  std::deque<Kept> kept_;
};

TEST(ResultCache, does_what_a_list_would) {
  const unsigned seed = 20240527;
  std::mt19937 random{seed};
  for (const ResultCache::Time ttl : {0ns, 40ns}) {
    for (const bool colliding : {false, true}) {
      const ResultCache::Bounds bounds{.entries = 8, .bytes = 8 * ResultCache::kEntryBytes + 60, .ttl = ttl};
      ResultCache cache{bounds};
      Model model{bounds};
      ResultCache::Time now{0};
      for (int step = 0; step < 20'000; ++step) {
        now += std::chrono::nanoseconds{random() % 4};
        const std::string key(1 + random() % 2, static_cast<char>('a' + random() % 8));
        const std::uint64_t hash = colliding ? 7 : std::hash<std::string>{}(key);
        if (random() % 3 != 0) {
          ASSERT_EQ(found(cache, hash, key, now), model.find(key, now)) << "seed " << seed << " step " << step;
        } else {
          const std::string value(1 + random() % (random() % 16 == 0 ? 3'000 : 20), 'v');
          cache.insert(hash, key, json(value), now);
          model.insert(key, value, now);
        }
        ASSERT_EQ(cache.entries(), model.entries()) << "seed " << seed << " step " << step;
        ASSERT_EQ(cache.bytes(), model.bytes()) << "seed " << seed << " step " << step;
      }
    }
  }
}

TEST(ResultCache, a_flood_of_keys_stays_within_both_bounds_and_the_one_in_use_survives) {
  ResultCache cache{{.entries = 100, .bytes = 40'000, .ttl = 0ns}};
  cache.insert(1, "used", json("1"), 0ns);
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    cache.insert(i, "key " + std::to_string(i), json(std::string(i % 500, 'x')), 0ns);
    ASSERT_LE(cache.entries(), 100U);
    ASSERT_LE(cache.bytes(), 40'000U);
    ASSERT_EQ(found(cache, 1, "used"), "1");
  }
}

TEST(ResultCache, keys_of_one_hash_are_told_apart) {
  ResultCache cache{{.entries = 1'000, .bytes = std::size_t{1} << 20, .ttl = 0ns}};
  for (int i = 0; i < 500; ++i) cache.insert(42, std::to_string(i), json(std::to_string(2 * i)), 0ns);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(found(cache, 42, std::to_string(i)), std::to_string(2 * i));
  EXPECT_EQ(found(cache, 42, "500"), "");
}

TEST(ResultCache, a_value_that_is_larger_than_all_may_be_is_not_kept) {
  ResultCache cache{{.entries = 10, .bytes = 400, .ttl = 0ns}};
  EXPECT_NE(cache.insert(1, "a", json("1"), 0ns), nullptr);
  EXPECT_EQ(cache.insert(2, "b", json(std::string(400, 'x')), 0ns), nullptr);
  EXPECT_EQ(found(cache, 1, "a"), "1");
  EXPECT_EQ(cache.add(*cache.find(1, "a", 0ns), {Encoding::msgpack, true, std::string(400, 'x')}), nullptr);
  EXPECT_EQ(cache.entries(), 1U);
}

TEST(ResultCache, a_further_encoding_counts_and_makes_older_entries_go) {
  ResultCache cache{{.entries = 10, .bytes = 2 * ResultCache::kEntryBytes + 40, .ttl = 0ns}};
  cache.insert(1, "a", json("1"), 0ns);
  cache.insert(2, "b", json("2"), 0ns);
  ResultCache::Entry* const entry = cache.find(1, "a", 0ns);
  ASSERT_NE(cache.add(*entry, {Encoding::msgpack, true, std::string(50, 'x')}), nullptr);
  EXPECT_EQ(cache.entries(), 1U);
  EXPECT_EQ(entry->find(Encoding::msgpack)->bytes.size(), 50U);
  EXPECT_EQ(entry->find(Encoding::json)->bytes, "1");
}

TEST(ResultCache, a_result_is_used_until_its_time_is_up_however_often_it_is_asked_for) {
  ResultCache cache{{.entries = 10, .bytes = 4'000, .ttl = 10ns}};
  cache.insert(1, "a", json("1"), 5ns);
  EXPECT_EQ(found(cache, 1, "a", 14ns), "1");
  EXPECT_EQ(found(cache, 1, "a", 15ns), "");
  EXPECT_EQ(cache.entries(), 0U);
  EXPECT_EQ(cache.bytes(), 0U);
}

}  // namespace
}  // namespace wirecall::rpc
