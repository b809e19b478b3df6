// See drop_after_loop.hpp. Here, above the pure layers, since it needs a lock.
#include "wirecall/detail/drop_after_loop.hpp"

#include <mutex>
#include <utility>

namespace wirecall::detail {

void drop_after_loop(ReplySink& sink) noexcept {
  static std::mutex dropping;
  if (sink.empty()) return;
  {
    const std::scoped_lock lock{dropping};
    if (!sink.wanted()) {
      const ReplySink dropped{std::move(sink)};
      return;
    }
  }
  const ReplySink answered{std::move(sink)};  // on its loop: whatever looks at answers may drop others
}

}  // namespace wirecall::detail
