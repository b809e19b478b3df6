// CacheOptions: the bounds within which the results of a method are kept (Registry::method with MethodOptions). Values.
#pragma once

#include <chrono>
#include <cstddef>

namespace wirecall {

/// How many results are kept. It has no default, so that a cache is never meant by accident.
struct CacheEntries {
  CacheEntries(std::size_t count) noexcept : count(count) {}  // NOLINT: implicit, so that .entries = 10'000 reads well
  std::size_t count;
};

/// The bounds of a method's cache. They hold for each loop: a server of N threads has N caches.
struct CacheOptions {
  CacheEntries entries;                       ///< 1 to 16,777,216; the least recently used makes way
  std::size_t bytes = std::size_t{16} << 20;  ///< of keys, results and 256 for each entry
  std::chrono::milliseconds ttl{0};           ///< how long a result is used, by the loop's clock; 0 for no end
};

}  // namespace wirecall
