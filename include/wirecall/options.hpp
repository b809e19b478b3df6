// Options of a server and of a client. The defaults are right for most; what is a limit on the peer stands in
// limits.hpp. Plain values, read once when the server or client is made.
#pragma once

#include <cstdint>
#include <string>

#include "wirecall/limits.hpp"
#include "wirecall/log.hpp"

namespace wirecall {

struct Options {
  Limits limits;
  /// Milliseconds that calls in progress are given to finish when the server stops.
  std::uint32_t drain_ms = 5000;
  /// Ends every reply, and is accepted between the messages received. Its first byte that is not white space must be
  /// one that no JSON value begins with.
  std::string delimiter = "\n";
  /// Where log lines go; nowhere when empty.
  LogSink log;
};

struct ClientOptions {
  Limits limits;
  /// Milliseconds until a call is given up with -32002; the connection stays usable.
  std::uint32_t call_timeout_ms = 30'000;
  /// Milliseconds until an attempt to connect is given up.
  std::uint32_t connect_timeout_ms = 10'000;
  /// As of Options.
  std::string delimiter = "\n";
  LogSink log;
};

}  // namespace wirecall
