// PeerLoad: what is in progress for one connection, and so counts against its limits. All dispatchers of a connection
// share one. One thread (the loop's).
#pragma once

#include <limits>

#include "rpc/accounts.hpp"

namespace wirecall::rpc {

struct PeerLoad {
  CallCount calls;                       ///< whose handlers may still be at work; at most Limits::in_flight
  std::size_t held_bytes = 0;            ///< of items gathered, and calls kept; at most Limits::hard_output
  std::size_t params_bytes = 0;          ///< of params that calls keep while they wait
  std::size_t batch_bytes = 0;           ///< of batches that have begun, and answers to them that are not sent
  std::chrono::nanoseconds rate_due{0};  ///< when the next message would be due at Limits::rate, were there no burst
  std::chrono::nanoseconds suggestion_due{0};  ///< likewise of searches for a name that was mistyped
  /// Requests answered with -32601 that no handler has seen, since rpc.undelivered was last asked; 255 for more.
  std::uint8_t undelivered = 0;

  /// What counts against Limits::principal_bytes.
  [[nodiscard]] std::size_t bytes() const noexcept { return held_bytes + params_bytes + batch_bytes; }
  void count_undelivered() noexcept {
    if (undelivered != std::numeric_limits<std::uint8_t>::max()) ++undelivered;
  }
};

}  // namespace wirecall::rpc
