// StopSignals: while one lives, SIGINT and SIGTERM are counted and wake its loop, instead of ending the process. A
// server ends at once at the second one; where a handler does not come back, it cannot, and a second later the process
// is ended as SIGINT ends others. A third signal does not wait for that. What the process did on these signals before
// is restored with the last one. Several servers of one process all hear of them. Thread: any; signals may arrive on
// any other.
#pragma once

#include "wirecall/loop.hpp"

namespace wirecall::net {

class StopSignals {
 public:
  explicit StopSignals(Loop& loop);
  ~StopSignals();
  StopSignals(StopSignals&&) = delete;

  /// Signals since this object was made.
  [[nodiscard]] unsigned count() const noexcept;

 private:
  Loop* loop_;
  unsigned before_;
};

}  // namespace wirecall::net
