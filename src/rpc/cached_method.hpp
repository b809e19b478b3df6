// CachedMethod: a method whose results are kept, as the Binding of the method that callers see: other methods pay
// nothing. A call whose arguments are known is answered from the cache of its loop; of equal calls in progress the
// function runs once (rpc/cache_flight.hpp). What callers share is the result alone: admission, grants, middleware,
// deadlines and cancelling stay each call's own. Set up before it serves; then all loops' threads read it.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "base/seeded_hash.hpp"
#include "rpc/cache_flight.hpp"
#include "rpc/cache_key.hpp"
#include "rpc/loop_context.hpp"
#include "rpc/result_cache.hpp"
#include "wirecall/cache.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::rpc {

class CachedMethod {
 public:
  /// `inner` is the method without a cache. A null `write_key` makes keys of params without their types. Throws
  /// std::invalid_argument for bounds that are none.
  CachedMethod(Method inner, detail::WriteCacheKey write_key, const CacheOptions& options);

  /// The Binding of the method with the cache, which owns this.
  [[nodiscard]] static detail::Binding bind(std::unique_ptr<CachedMethod> method);

  [[nodiscard]] const Method& inner() const noexcept { return inner_; }
  /// Without methods and middleware.
  [[nodiscard]] const Registry& nobody() const noexcept { return nobody_; }
  [[nodiscard]] const ResultCache::Bounds& bounds() const noexcept { return bounds_; }
  [[nodiscard]] std::string_view write_key(Call& call, CacheKeyWriter& writer) const;

 private:
  friend class LoopCache;

  static void invoke(void* callable, Call& call);

  Method inner_;
  detail::WriteCacheKey write_key_;
  bool sorted_;
  std::vector<detail::ArgumentType> untyped_arguments_;
  detail::Signature untyped_signature_{};
  std::unique_ptr<const Method> untyped_;  // for keys without types; null otherwise
  ResultCache::Bounds bounds_;
  Registry nobody_;
};

/// The cache of one method on one loop. One thread (the loop's).
class LoopCache {
 public:
  LoopCache(const CachedMethod& method, const Method& of, LoopContext& loop);
  ~LoopCache();
  LoopCache(LoopCache&&) = delete;

  [[nodiscard]] bool is_of(const Method& method) const noexcept { return of_ == &method; }
  void serve(Call& call);

 private:
  friend class CacheFlight;

  void answer(Call& call, ResultCache::Entry& entry);
  void join(Call& call, std::string_view key, std::uint64_t hash);
  void keep(const CacheFlight& flight, CachedValue value);
  void count_error() noexcept;
  void count_kept() noexcept;
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept;

  const CachedMethod& method_;
  const Method* of_;  // as callers see it
  LoopContext& loop_;
  SeededHash hash_;
  CacheKeyWriter key_writer_;
  ResultCache results_;
  std::size_t entries_counted_ = 0;  // in the loop's counters
  std::size_t bytes_counted_ = 0;
  std::unordered_map<std::string_view, std::shared_ptr<CacheFlight>, SeededHash> joinable_;  // by CacheFlight::key
  std::unordered_set<CacheFlight*> flights_;  // with those that nobody joins any more
};

}  // namespace wirecall::rpc
