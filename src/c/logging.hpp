// Logging: a LogSink that calls a function of C. The function is set after the server or client has been made, so the
// sink shares it. Thread: any to log; `set` before that.
#pragma once

#include <memory>

#include "wirecall.h"
#include "wirecall/log.hpp"

namespace wirecall::c {

class Logging {
 public:
  void set(wc_log_function function, void* user) noexcept { *target_ = {function, user}; }
  [[nodiscard]] LogSink sink() const;

 private:
  struct LogTarget {
    wc_log_function function = nullptr;
    void* user = nullptr;
  };
  std::shared_ptr<LogTarget> target_ = std::make_shared<LogTarget>();
};

}  // namespace wirecall::c
