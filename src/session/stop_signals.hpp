// StopSignals: while one lives, SIGINT and SIGTERM are counted and wake its loop, instead of ending the process; but
// the third one does end it, in case a handler never comes back. What the process did on them before is restored with
// the last one. Several servers of one process all hear of them. Thread: any; signals may arrive on any other.
#pragma once

#include "wirecall/loop.hpp"

namespace wirecall::session {

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

}  // namespace wirecall::session
