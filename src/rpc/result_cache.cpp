// See result_cache.hpp.
#include "rpc/result_cache.hpp"

#include <algorithm>
#include <bit>

#include "base/assert.hpp"

namespace wirecall::rpc {

ResultCache::ResultCache(const Bounds& bounds) : bounds_(bounds), buckets_(std::bit_ceil(bounds.entries)) {
  WIRECALL_ASSERT(bounds.entries != 0 && bounds.entries <= kEntriesMax);
}

// One by one: entries that own each other would be destroyed by recursion.
ResultCache::~ResultCache() {
  while (oldest_ != nullptr) erase(*oldest_);
}

ResultCache::Entry* ResultCache::find(std::uint64_t hash, std::string_view key, Time now) noexcept {
  for (Entry* entry = bucket_of(hash).get(); entry != nullptr; entry = entry->next_in_bucket_.get()) {
    if (entry->hash_ != hash || entry->key_ != key) continue;
    if (bounds_.ttl != Time{0} && now >= entry->expires_) {
      erase(*entry);
      return nullptr;
    }
    if (entry != newest_) {
      unlink(*entry);
      link_newest(*entry);
    }
    return entry;
  }
  return nullptr;
}

ResultCache::Entry* ResultCache::insert(std::uint64_t hash, std::string_view key, CachedValue value, Time now) {
  if (Entry* const old = find(hash, key, now)) erase(*old);
  const std::size_t bytes = kEntryBytes + key.size() + value.bytes.size();
  if (bytes > bounds_.bytes) return nullptr;
  auto made = std::make_unique<Entry>();
  made->values_.push_back(std::move(value));
  made->key_ = key;
  made->hash_ = hash;
  made->expires_ = now > kNoDeadline - bounds_.ttl ? kNoDeadline : now + bounds_.ttl;
  made->bytes_ = bytes;
  Entry& entry = *made;
  std::unique_ptr<Entry>& bucket = bucket_of(hash);
  made->next_in_bucket_ = std::move(bucket);
  bucket = std::move(made);
  link_newest(entry);
  ++entries_;
  bytes_ += bytes;
  make_way();
  return &entry;
}

const CachedValue* ResultCache::add(Entry& entry, CachedValue value) {
  const std::size_t more = sizeof(CachedValue) + value.bytes.size();
  if (entry.bytes_ + more > bounds_.bytes) return nullptr;
  entry.values_.push_back(std::move(value));
  entry.bytes_ += more;
  bytes_ += more;
  if (&entry != newest_) {
    unlink(entry);
    link_newest(entry);
  }
  make_way();
  return &entry.values_.back();
}

void ResultCache::link_newest(Entry& entry) noexcept {
  entry.older_ = newest_;
  entry.newer_ = nullptr;
  (newest_ != nullptr ? newest_->newer_ : oldest_) = &entry;
  newest_ = &entry;
}

void ResultCache::unlink(Entry& entry) noexcept {
  (entry.newer_ != nullptr ? entry.newer_->older_ : newest_) = entry.older_;
  (entry.older_ != nullptr ? entry.older_->newer_ : oldest_) = entry.newer_;
}

void ResultCache::erase(Entry& entry) noexcept {
  unlink(entry);
  --entries_;
  bytes_ -= entry.bytes_;
  std::unique_ptr<Entry>* at = &bucket_of(entry.hash_);
  while (at->get() != &entry) at = &(*at)->next_in_bucket_;
  const std::unique_ptr<Entry> erased = std::move(*at);
  *at = std::move(erased->next_in_bucket_);
}

// The newest alone is within the bounds.
void ResultCache::make_way() noexcept {
  while (entries_ > bounds_.entries || bytes_ > bounds_.bytes) {
    WIRECALL_ASSERT(oldest_ != newest_);
    erase(*oldest_);
  }
}

}  // namespace wirecall::rpc
