// The record of one call in the log (Options::log_calls). Pure functions.
#pragma once

#include "wirecall/log.hpp"

namespace wirecall::rpc {

struct CallRecord {
  std::string_view method;     ///< as the caller names it
  std::string_view client;     ///< empty for no name
  std::string_view principal;  ///< empty where nobody has to say who he is
  std::int64_t us = 0;         ///< since its handling began
  std::string_view outcome;    ///< result, error or notification
  int code = 0;                ///< 0 for a result
};

/// Writes it at level info.
inline void write_call_record(const LogSink& log, const CallRecord& call) noexcept {
  log(LogLevel::info, "a call is answered",
      {{"method", call.method},
       {"client", call.client},
       {"principal", call.principal},
       {"us", call.us},
       {"outcome", call.outcome},
       {"code", call.code}});
}

}  // namespace wirecall::rpc
