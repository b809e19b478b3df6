#include "wirecall/detail/drop_after_loop.hpp"

#include <mutex>
#include <utility>

namespace wirecall::detail {

void drop_after_loop(ReplySink& sink) noexcept {
  static std::mutex dropping;
  if (sink.empty()) return;
  const std::scoped_lock lock{dropping};
  const ReplySink dropped{std::move(sink)};
}

}  // namespace wirecall::detail
