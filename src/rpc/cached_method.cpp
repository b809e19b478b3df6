// See cached_method.hpp and loop_caches.hpp.
#include "rpc/cached_method.hpp"

#include <algorithm>
#include <stdexcept>

#include "message/transcoder.hpp"
#include "rpc/loop_caches.hpp"
#include "rpc/method_counts.hpp"

namespace wirecall::rpc {

static ResultCache::Bounds bounds_of(const Method& method, const CacheOptions& options) {
  if (options.entries.count == 0 || options.entries.count > ResultCache::kEntriesMax || options.bytes == 0 ||
      options.ttl < std::chrono::milliseconds{0}) {
    throw std::invalid_argument("wirecall: method " + method.name() +
                                ": a cache has 1 to 16777216 entries, 1 byte at least, and no negative time to live");
  }
  // A time to live that nanoseconds cannot hold has no end.
  const bool endless = options.ttl > std::chrono::duration_cast<std::chrono::milliseconds>(kNoDeadline);
  return {options.entries.count, options.bytes, endless ? std::chrono::milliseconds{0} : options.ttl};
}

CachedMethod::CachedMethod(Method inner, detail::WriteCacheKey write_key, const CacheOptions& options)
    : inner_(std::move(inner)),
      write_key_(write_key),
      sorted_(std::ranges::any_of(inner_.signature().arguments,
                                  [](const auto& argument) { return is_ambiguous(*argument.type); })),
      bounds_(rpc::bounds_of(inner_, options)) {
  if (write_key_ != nullptr) return;
  untyped_arguments_ = untyped(inner_.signature().arguments);
  untyped_signature_ = inner_.signature();
  untyped_signature_.arguments = untyped_arguments_;
  untyped_ = std::make_unique<const Method>(
      inner_.name(), inner_.params(),
      detail::Binding{.callable = {nullptr, [](void*) {}}, .invoke = nullptr, .signature = &untyped_signature_});
}

detail::Binding CachedMethod::bind(std::unique_ptr<CachedMethod> method) {
  const detail::Signature* const signature = &method->inner_.signature();
  return {{method.release(), [](void* stored) { delete static_cast<CachedMethod*>(stored); }},
          &CachedMethod::invoke,
          signature};
}

std::string_view CachedMethod::write_key(Call& call, CacheKeyWriter& writer) const {
  return write_key_ != nullptr ? writer.write(call, write_key_, sorted_) : writer.write_untyped(call, *untyped_);
}

void CachedMethod::invoke(void* callable, Call& call) {
  const CachedMethod& cached = *static_cast<const CachedMethod*>(callable);
  LoopContext& loop = loop_of(call);
  loop.caches.of(call.method(), cached, loop).serve(call);
}

// ---- the caches of a loop ----

LoopCaches::LoopCaches() = default;
LoopCaches::~LoopCaches() = default;

LoopCache& LoopCaches::of(const Method& method, const CachedMethod& cached, LoopContext& loop) {
  const std::size_t index = method.index();
  if (index >= caches_.size()) caches_.resize(index + 1);
  std::unique_ptr<LoopCache>& cache = caches_[index];
  // A method that was removed has left its index to another.
  if (!cache || !cache->is_of(method)) [[unlikely]] {
    auto made = std::make_unique<LoopCache>(cached, method, loop);
    if (cache) removed_.push_back(std::move(cache));
    cache = std::move(made);
  }
  return *cache;
}

LoopCache::LoopCache(const CachedMethod& method, const Method& of, LoopContext& loop)
    : method_(method), of_(&of), loop_(loop), results_(method.bounds()) {}

LoopCache::~LoopCache() {
  joinable_.clear();
  while (!flights_.empty()) {
    CacheFlight& flight = **flights_.begin();
    flights_.erase(flights_.begin());
    flight.abandon();
  }
  loop_.stats.cache_entries -= entries_counted_;
  loop_.stats.cache_bytes -= bytes_counted_;
}

// Where nothing can wait there is no loop, and so no clock of its.
std::chrono::nanoseconds LoopCache::now() const noexcept {
  if (method_.bounds().ttl == std::chrono::nanoseconds{0}) return std::chrono::nanoseconds{0};
  return loop_.scheduler != nullptr ? loop_.scheduler->now() : std::chrono::steady_clock::now().time_since_epoch();
}

void LoopCache::serve(Call& call) {
  if (call.is_notification()) return method_.inner().invoke(call);
  const std::string_view key = method_.write_key(call, key_writer_);
  // What has no key is refused by the function's own call, or is not kept.
  if (key.empty()) return method_.inner().invoke(call);
  const std::uint64_t hash = hash_(key);
  if (ResultCache::Entry* const entry = results_.find(hash, key, now())) return answer(call, *entry);
  join(call, key, hash);
}

void LoopCache::answer(Call& call, ResultCache::Entry& entry) {
  ++loop_.stats.cache_hits;
  const Encoding encoding = call.form().written();
  const CachedValue* value = entry.find(encoding);
  if (value != nullptr) [[likely]]
    return call.cached_result(value->bytes, value->compact);
  std::optional<CachedValue> made = transcoded(loop_.codecs, entry.first(), encoding);
  if (!made) return call.error(message::unrepresentable_result("it has no form in this encoding"));
  call.cached_result(made->bytes, made->compact);
  results_.add(entry, std::move(*made));
  count_kept();
}

void LoopCache::join(Call& call, std::string_view key, std::uint64_t hash) {
  if (const auto found = joinable_.find(key); found != joinable_.end()) {
    ++loop_.stats.cache_joined;
    return found->second->add(call);
  }
  ++loop_.stats.cache_misses;
  const auto flight = std::make_shared<CacheFlight>(*this, key, hash, call.limits(), call.form());
  flight->add(call);
  joinable_.emplace(flight->key(), flight);
  flight->run(call.message());
}

void LoopCache::keep(const CacheFlight& flight, CachedValue value) {
  results_.insert(flight.hash(), flight.key(), std::move(value), now());
  count_kept();
}

void LoopCache::count_error() noexcept {
  OwnCounts* const counts = loop_.services.own_counts;
  if (OwnCountsRow* const row = counts != nullptr ? counts->of(*of_) : nullptr) ++row->errors;
}

void LoopCache::count_kept() noexcept {
  loop_.stats.cache_entries += results_.entries() - entries_counted_;
  loop_.stats.cache_bytes += results_.bytes() - bytes_counted_;
  entries_counted_ = results_.entries();
  bytes_counted_ = results_.bytes();
}

}  // namespace wirecall::rpc
