// ResultCache: results of one method by the key of their arguments, bounded by entries and bytes, the least recently
// used makes way. It knows neither calls nor encodings' forms, draws no hash and reads no clock: both are given. An
// entry may have its value in several encodings, all of which count. One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "wirecall/codec.hpp"
#include "wirecall/context.hpp"

namespace wirecall::rpc {

/// One value, as a reply holds it.
struct CachedValue {
  Encoding encoding;
  bool compact;  ///< without line breaks
  std::string bytes;
};

class ResultCache {
 public:
  using Time = std::chrono::nanoseconds;

  /// What an entry takes besides its key and its values.
  static constexpr std::size_t kEntryBytes = 256;
  static constexpr std::size_t kEntriesMax = std::size_t{1} << 24;

  struct Bounds {
    std::size_t entries;
    std::size_t bytes;
    Time ttl;  ///< 0 for no end
  };

  class Entry {
   public:
    /// Null where it has none in that encoding.
    [[nodiscard]] const CachedValue* find(Encoding encoding) const noexcept {
      for (const CachedValue& value : values_) {
        if (value.encoding == encoding) return &value;
      }
      return nullptr;
    }
    /// The first that was given.
    [[nodiscard]] const CachedValue& first() const noexcept { return values_.front(); }

   private:
    friend class ResultCache;

    std::vector<CachedValue> values_;  // never empty
    std::string key_;
    std::uint64_t hash_ = 0;
    Time expires_{0};
    std::size_t bytes_ = 0;
    std::unique_ptr<Entry> next_in_bucket_;
    Entry* newer_ = nullptr;
    Entry* older_ = nullptr;
  };

  /// Throws std::bad_alloc.
  explicit ResultCache(const Bounds& bounds);
  ~ResultCache();
  ResultCache(ResultCache&&) = delete;

  /// The entry of that key, which is the most recently used now; null for none, and for one whose time is up, which is
  /// dropped. Valid until the next function that changes the cache.
  [[nodiscard]] Entry* find(std::uint64_t hash, std::string_view key, Time now) noexcept;
  /// Keeps a value under a key that has no entry, or replaces what it has. Null where it alone is over the bounds.
  /// Throws std::bad_alloc, and keeps nothing then.
  Entry* insert(std::uint64_t hash, std::string_view key, CachedValue value, Time now);
  /// Adds the value of an entry in a further encoding. Null, and nothing is added, where the entry alone would be over
  /// the bounds. Throws std::bad_alloc, and adds nothing then.
  const CachedValue* add(Entry& entry, CachedValue value);

  [[nodiscard]] std::size_t entries() const noexcept { return entries_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  [[nodiscard]] std::unique_ptr<Entry>& bucket_of(std::uint64_t hash) noexcept {
    return buckets_[hash & (buckets_.size() - 1)];
  }
  void link_newest(Entry& entry) noexcept;
  void unlink(Entry& entry) noexcept;
  void erase(Entry& entry) noexcept;
  void make_way() noexcept;

  const Bounds bounds_;
  std::vector<std::unique_ptr<Entry>> buckets_;  // a power of two, as many as entries at least, so it never grows
  Entry* newest_ = nullptr;
  Entry* oldest_ = nullptr;
  std::size_t entries_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace wirecall::rpc
