// Load: calls one method of a server over and over, from one thread and over any number of connections, and measures
// how long each call takes. It knows what it sends and expects: requests are built before they are sent, and a reply
// that is byte for byte the one that came before, but for its id, is not parsed again. So it can load a server that
// answers in a quarter of a microsecond.
//
// Closed loop: each connection keeps `pipeline` calls in flight, and a call begins when one before it is answered. Open
// loop: calls are due at a steady rate whatever the server does, and a call's time counts from when it was due, also
// when it had to wait because all connections were full.
#pragma once

#include <chrono>
#include <functional>
#include <map>

#include "cli/load/histogram.hpp"
#include "cli/load/intervals.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/options.hpp"

namespace wirecall::cli {

struct LoadResult {
  Histogram latency;           ///< of calls answered with a result
  std::uint64_t answered = 0;  ///< within the measured time, errors too
  std::uint64_t errors = 0;    ///< calls answered with an error, and strays
  std::map<int, std::uint64_t> errors_by_code;
  std::uint64_t strays = 0;      ///< responses to no call that waited for one, whenever they came
  std::uint64_t unanswered = 0;  ///< sent, and not answered when it was over
  std::uint64_t unsent = 0;      ///< open loop: were due, and could not be sent
  std::chrono::nanoseconds elapsed{};
  bool refused = false;  ///< the server has answered that it does not let this client in, and has closed a connection
  std::string lost;      ///< why there is no connection any more, if so; the rest is what there was until then

  /// Calls answered a second.
  [[nodiscard]] double rate() const {
    const double seconds = std::chrono::duration<double>{elapsed}.count();
    return seconds > 0 ? static_cast<double>(answered) / seconds : 0;
  }
};

struct LoadOptions {
  Endpoint endpoint;
  std::string method;
  std::string params;      ///< JSON text, empty for none
  std::string token = {};  ///< each connection shows it; empty for none
  std::string cafile = {};
  std::string proxy = {};
  ClientTlsOptions tls = {};
  std::uint32_t connections = 1;
  std::uint32_t pipeline = 1;                                         ///< calls in flight on each
  double rate = 0;                                                    ///< calls a second in all; 0 for a closed loop
  std::chrono::nanoseconds warm_up = std::chrono::milliseconds{300};  ///< not measured
  std::chrono::nanoseconds duration = std::chrono::seconds{10};
  std::chrono::nanoseconds patience = std::chrono::seconds{1};  ///< at the end, for what is still unanswered
  /// Called about once a second while it measures.
  std::function<void(const LoadResult&)> progress = {};
  /// Called at the end of each interval of that length; at the end of the load for the rest. 0 for no intervals.
  Intervals::Tell interval = {};
  std::chrono::nanoseconds interval_length{};
  /// Called when all connections are there, before the first call.
  std::function<void()> connected = {};
  /// Asked often: true ends the load before its time, and the result is what there is until then.
  std::function<bool()> stop = {};
};

/// Connects, loads and measures. Throws std::runtime_error with the cause when it cannot connect.
[[nodiscard]] LoadResult run_load(const LoadOptions& options);

}  // namespace wirecall::cli
