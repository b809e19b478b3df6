// Where handlers run that say they block: threads that are nobody's loop. Seen from the loop whose calls they are.
// Thread: the loop's.
#pragma once

#include <functional>

namespace wirecall::detail {

class BlockingPool {
 public:
  /// Not to throw.
  using Job = std::move_only_function<void()>;
  /// Not to throw.
  using Work = std::move_only_function<Job()>;

  /// Runs `work` on a thread of the pool, and then what it returns on the loop's thread. What cannot be run any more,
  /// because the server goes, is destroyed. Throws std::system_error when there is no thread to be had.
  virtual void run(Work work) = 0;

 protected:
  ~BlockingPool() = default;
};

}  // namespace wirecall::detail
