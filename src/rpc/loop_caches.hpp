// LoopCaches: the caches of one loop, one for each method that keeps its results (rpc/cached_method.hpp). One thread.
#pragma once

#include <memory>
#include <vector>

namespace wirecall {
class Method;
}

namespace wirecall::rpc {

class CachedMethod;
class LoopCache;
struct LoopContext;

class LoopCaches {
 public:
  LoopCaches();
  ~LoopCaches();
  LoopCaches(LoopCaches&&) = delete;

  /// The cache of `method`, which is bound to `cached`; made with its first call. Throws std::bad_alloc.
  [[nodiscard]] LoopCache& of(const Method& method, const CachedMethod& cached, LoopContext& loop);

 private:
  std::vector<std::unique_ptr<LoopCache>> caches_;   // by the method's index
  std::vector<std::unique_ptr<LoopCache>> removed_;  // whose calls may be in progress
};

}  // namespace wirecall::rpc
